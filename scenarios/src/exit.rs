//! How the program ends, as its caller sees it.

/// The exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// All expectations were met.
    Passed = 0,
    /// A mistake of this program's own, or a panic that was caught.
    Internal = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// There was nothing to run.
    Nothing = 4,
    /// An input file is wrong.
    BadInput = 65,
    /// An input file is missing or cannot be read.
    NoInput = 66,
    /// Output could not be written, for instance because its reader went away.
    NoOutput = 74,
    /// At least one expectation or invariant failed.
    Failed = 100,
    /// A limit was hit before there was a verdict, and nothing failed.
    Limit = 102,
    /// The same seed gave two histories.
    NotDeterministic = 103,
    /// The user interrupted the run.
    Interrupted = 130,
}

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

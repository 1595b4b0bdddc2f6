//! Names of things: one newtype a kind, so that no index is taken for another.

use core::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub $inner);

        impl $name {
            /// As an index into a table.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

ids! {
    /// One peer as one module sees it: an index into the module's endpoint table. An endpoint
    /// keeps its index as long as the module lives, so a late event can never meet a successor.
    EpId(u32), "ep";
    /// A user message on its way out, or an operation on remote memory, as the driver's arena
    /// names it.
    FragId(u32), "frag";
    /// A registered region of memory, as its owner named it.
    RegionId(u32), "region";
    /// A machine of the fabric that holds NICs: a compute node or a card.
    NodeId(u32), "node";
    /// The matching tag of a message. Order is promised per peer and tag.
    Tag(u8), "tag";
}

/// A process: who it is, wherever it runs.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcName {
    /// The job; procs of different jobs never connect.
    pub job: u32,
    /// The rank within the job.
    pub rank: u32,
}

impl fmt::Display for ProcName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.job, self.rank)
    }
}

impl fmt::Debug for ProcName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which life of a proc and which attempt of it a connection record belongs to.
///
/// Ordered: a later attempt is greater, and every attempt of a later incarnation is greater
/// than all of an earlier one. `NONE` stands for "no record yet" on the wire.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Generation(pub u64);

impl Generation {
    /// Before the first attempt.
    pub const NONE: Generation = Generation(0);

    /// The state before the first attempt of incarnation `incarnation` (1 is the first life).
    #[must_use]
    pub const fn born(incarnation: u32) -> Generation {
        Generation((incarnation as u64) << 32)
    }

    /// The next attempt.
    #[must_use]
    pub const fn next(self) -> Generation {
        Generation(self.0 + 1)
    }

    /// The life of the proc that made this attempt.
    #[must_use]
    pub const fn incarnation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.incarnation(), self.0 as u32)
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

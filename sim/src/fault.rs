//! Faults as data: what goes wrong, when, and for whom.

use selvedge_core::{NodeId, Span, Time};

use crate::simulated::{Fault, Simulated};

/// The faults of a world.
#[derive(Clone, Debug)]
pub struct Plan<T: Simulated>(pub Vec<Rule<T>>);

impl<T: Simulated> Default for Plan<T> {
    fn default() -> Self {
        Plan(Vec::new())
    }
}

/// One fault.
#[derive(Clone, Debug)]
pub struct Rule<T: Simulated> {
    /// What goes wrong.
    pub what: What<T>,
    /// When.
    pub when: When,
    /// For which procs; `None` means any.
    pub procs: Option<Vec<u32>>,
}

/// When a fault strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// From a time on, and if it says so only for so long.
    At {
        /// From when.
        at: Time,
        /// How long.
        lasts: Option<Span>,
    },
    /// Each time it could, with a chance.
    Rate {
        /// In a billion.
        ppb: u32,
        /// From when.
        from: Time,
        /// Until when.
        until: Time,
        /// How often at most.
        most: Option<u64>,
    },
    /// When something has happened, and if it says so only for so long.
    Happens {
        /// The word of it.
        event: String,
        /// At which proc; `None` means any.
        proc: Option<u32>,
        /// The how many-th time.
        nth: u64,
        /// How long.
        lasts: Option<Span>,
    },
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum What<T: Simulated> {
    /// Something happens to packets on their way.
    Packets {
        /// What.
        harm: Harm,
        /// Only to those from these procs.
        from: Option<Vec<u32>>,
        /// Only to those to these procs.
        to: Option<Vec<u32>>,
        /// Only to those from or to these nodes.
        nodes: Option<Vec<u32>>,
        /// Only to those that cross one of these links, either way.
        links: Option<Vec<[u32; 2]>>,
    },
    /// These links carry nothing.
    LinksDown(Vec<[u32; 2]>),
    /// These routers carry nothing.
    RoutersDown(Vec<u32>),
    /// These nodes are cut off.
    PortsDown(Vec<NodeId>),
    /// Nothing passes between these groups of procs.
    Partition(Vec<Vec<u32>>),
    /// The procs do nothing.
    Pause,
    /// The procs die.
    Crash,
    /// The procs come back, as new processes.
    Restart,
    /// The procs take longer for everything they hear.
    Slow(Span),
    /// The procs' addresses are not there.
    ModexMissing,
    /// The procs' addresses come late.
    ModexLate(Span),
    /// The procs' addresses are those of a life before.
    ModexStale,
    /// The procs' NICs misbehave.
    Nic(Fault<T>),
}

/// What can happen to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// It is gone.
    Loss,
    /// It comes twice.
    Duplicate,
    /// It comes later than those behind it.
    Reorder(Span),
    /// A bit of it is wrong: whoever reads it finds out, or the link does and drops it.
    Corrupt,
    /// It takes longer.
    Delay {
        /// By how much.
        by: Span,
        /// And up to how much more.
        jitter: Span,
    },
}

impl<T: Simulated> What<T> {
    /// The word by which files and reports call it.
    pub fn word(&self) -> &'static str {
        use selvedge_core::Named;
        match self {
            What::Packets { harm: Harm::Loss, .. } => "loss",
            What::Packets { harm: Harm::Duplicate, .. } => "duplicate",
            What::Packets { harm: Harm::Reorder(_), .. } => "reorder",
            What::Packets { harm: Harm::Corrupt, .. } => "corrupt",
            What::Packets { harm: Harm::Delay { .. }, .. } => "delay",
            What::LinksDown(_) => "link-down",
            What::RoutersDown(_) => "router-down",
            What::PortsDown(_) => "port-down",
            What::Partition(_) => "partition",
            What::Pause => "pause",
            What::Crash => "crash",
            What::Restart => "restart",
            What::Slow(_) => "slow-receiver",
            What::ModexMissing => "modex-missing",
            What::ModexLate(_) => "modex-late",
            What::ModexStale => "modex-stale",
            What::Nic(fault) => fault.word(),
        }
    }
}

impl<T: Simulated> Rule<T> {
    /// Whether `proc` is one of those it strikes.
    #[must_use]
    pub fn concerns(&self, proc: u32) -> bool {
        self.procs.as_ref().is_none_or(|procs| procs.contains(&proc))
    }
}

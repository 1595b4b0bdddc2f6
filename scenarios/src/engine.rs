//! The one seam between the runner and whatever runs scenarios: what it is asked, what it says.
//!
//! Everything here is data. An [`Engine`] reports what happened; whether that is what should have
//! happened is decided by [`judge`](crate::judge), alike for every engine.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use selvedge_core::time::{Span, Time};
use serde::Serialize;

use crate::jobs::Interrupt;
use crate::load::Loaded;

/// Something that runs scenarios.
pub trait Engine: Sync {
    /// Runs a scenario with one seed.
    ///
    /// # Errors
    /// When it cannot be run at all; what goes wrong inside the run is part of the history.
    fn run(
        &self,
        scenario: &Loaded,
        seed: u64,
        detail: Detail,
        stop: &Interrupt,
    ) -> Result<History, EngineError>;

    /// Runs a scenario twice with one seed and compares the histories event by event.
    ///
    /// # Errors
    /// When it cannot be run at all.
    fn run_twice(
        &self,
        scenario: &Loaded,
        seed: u64,
        stop: &Interrupt,
    ) -> Result<Twice, EngineError>;

    /// Searches all histories of a scenario, within its bounds. Calls `progress` now and then.
    ///
    /// # Errors
    /// When it cannot be searched at all.
    fn explore(
        &self,
        scenario: &Loaded,
        stop: &Interrupt,
        progress: &mut dyn FnMut(Searched),
    ) -> Result<Explored, EngineError>;

    /// The names of the benches, in the order in which to run them.
    fn benches(&self) -> &[&'static str];

    /// Runs one bench in this process.
    ///
    /// # Errors
    /// When there is no such bench, or it cannot be run.
    fn bench(&self, name: &str) -> Result<Bench, EngineError>;
}

/// How much a history tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What it came to.
    Outcome,
    /// Also the events around what went wrong, and the last ones.
    Events,
}

/// Why an engine did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// It cannot do this; says why.
    Unable(String),
    /// It was interrupted.
    Interrupted,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Unable(why) => f.write_str(why),
            EngineError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for EngineError {}

/// What happened in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The digest of everything that happened, in order.
    pub digest: u64,
    /// The simulated time it took.
    pub time: Span,
    /// How many events there were.
    pub events: u64,
    /// How many messages were sent, whatever became of them.
    pub messages: u64,
    /// How many of them were delivered.
    pub delivered: u64,
    /// How many operations on remote memory were asked for, whatever became of them.
    pub operations: u64,
    /// How many of them were done.
    pub done: u64,
    /// How many sends and operations ended `Failed`, by reason.
    pub failed: BTreeMap<String, u64>,
    /// How many sends and operations ended `Unknown`, by reason.
    pub unknown: BTreeMap<String, u64>,
    /// How many error notices there were, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Times from send to delivery.
    pub latency: Latency,
    /// How many connections were made.
    pub connections: u64,
    /// How many were made again after one was lost.
    pub reconnects: u64,
    /// How many completion queues overran.
    pub overruns: u64,
    /// What invariants, the ledger and the progress check found.
    pub violations: Vec<Found>,
    /// How often each pattern of `expect.must` was met, in the order of the file.
    pub must: Vec<Matched>,
    /// How often each pattern of `expect.must_not` was met, in the order of the file.
    pub must_not: Vec<Matched>,
    /// Where the last send ended `Failed`, if events are told.
    pub failures: Matched,
    /// Where the last send ended `Unknown`, if events are told.
    pub unknowns: Matched,
    /// For each fault of the file, in its order, how often it struck.
    pub strikes: Vec<u64>,
    /// What is still under way at the end, if anything; `None` when all is settled.
    pub unsettled: Option<String>,
    /// The limit that ended the run, if one did, such as `1000000 events`.
    pub limit: Option<String>,
    /// The last events of the run, oldest first, as traces print them.
    pub tail: Vec<String>,
}

/// Times from send to delivery; all zero when nothing was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Latency {
    /// The median, in picoseconds.
    pub p50_ps: u64,
    /// What 90 % keep, in picoseconds.
    pub p90_ps: u64,
    /// What 99 % keep, in picoseconds.
    pub p99_ps: u64,
    /// What 99.9 % keep, in picoseconds.
    pub p999_ps: u64,
    /// The longest, in picoseconds.
    pub max_ps: u64,
}

/// How often a pattern was met, and where last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// How often.
    pub count: u64,
    /// When last.
    pub last: Option<Time>,
    /// The events around that, oldest first.
    pub around: Vec<String>,
}

/// Something that an engine found wrong while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The rule that was broken.
    pub rule: String,
    /// Of which kind it is.
    pub kind: Kind,
    /// When.
    pub at: Time,
    /// What exactly was the matter.
    pub detail: String,
    /// The events around it, oldest first, as traces print them.
    pub around: Vec<String>,
}

/// The two ways to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Something happened that must never happen.
    Safety,
    /// Something that must happen in the end did not.
    Progress,
}

impl Kind {
    /// As reports spell it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Safety => "safety",
            Kind::Progress => "progress",
        }
    }
}

/// Two runs of one seed, compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Twice {
    /// They are the same.
    Same {
        /// The digest of both.
        digest: u64,
        /// How many events each had.
        events: u64,
    },
    /// They part.
    Differ {
        /// The number of the first event that differs, from 0.
        event: u64,
        /// What it was in the first run; `None` when that had ended.
        first: Option<String>,
        /// What it was in the second run; `None` when that had ended.
        second: Option<String>,
    },
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Distinct states.
    pub states: u64,
    /// Steps from state to state.
    pub edges: u64,
    /// The depth reached.
    pub depth: u32,
    /// States that wait to be visited.
    pub waiting: u64,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// How far it went.
    pub searched: Searched,
    /// How many states are settled.
    pub settled: u64,
    /// What was found wrong, each with the steps that lead to it as `around`.
    pub violations: Vec<Found>,
    /// The bound that ended the search before all states were seen, if one did.
    pub limit: Option<String>,
}

/// What one bench measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bench {
    /// Its name.
    pub name: String,
    /// What is counted, such as `messages`.
    pub counted: String,
    /// How many of that.
    pub count: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Wall time, in nanoseconds.
    pub wall_ns: u64,
    /// The most memory that was resident, in bytes.
    pub peak_bytes: u64,
    /// Messages delivered.
    pub messages: u64,
    /// Events.
    pub events: u64,
    /// Connections made.
    pub connections: u64,
    /// The digest of the history, where there is one.
    pub digest: Option<u64>,
}

impl Bench {
    /// How many of what is counted one second of CPU time gave.
    #[must_use]
    pub fn per_cpu_second(&self) -> u64 {
        let scaled = u128::from(self.count) * 1_000_000_000 / u128::from(self.cpu_ns.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// The engine of a build that has none: it can do nothing and says so.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEngine;

fn unable<T>() -> Result<T, EngineError> {
    Err(EngineError::Unable("this build has no simulator in it".to_owned()))
}

impl Engine for NoEngine {
    fn run(&self, _: &Loaded, _: u64, _: Detail, _: &Interrupt) -> Result<History, EngineError> {
        unable()
    }

    fn run_twice(&self, _: &Loaded, _: u64, _: &Interrupt) -> Result<Twice, EngineError> {
        unable()
    }

    fn explore(
        &self,
        _: &Loaded,
        _: &Interrupt,
        _: &mut dyn FnMut(Searched),
    ) -> Result<Explored, EngineError> {
        unable()
    }

    fn benches(&self) -> &[&'static str] {
        &[]
    }

    fn bench(&self, _: &str) -> Result<Bench, EngineError> {
        unable()
    }
}

//! Scenario and machine files as they are written.
//!
//! These types are the public format, spelled by hand so that it can outlive any change behind
//! it. Keys are `snake_case`, words with a meaning of their own (`link-down`, `ping-pong`) are
//! `kebab-case`. An unknown key or word is always an error. Whether the numbers make sense
//! together is judged by [`check`](crate::check).

pub mod expect;
pub mod faults;
pub mod limits;
pub mod machine;
pub mod mpi;
pub mod procs;
pub mod schedule;
pub mod transport;
pub mod workload;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use expect::Expect;
use faults::Fault;
use limits::{Explore, Limits, Watch};
use machine::MachineRef;
use procs::Procs;
use schedule::{Schedule, Seeds};
use transport::{Transport, Tunable};
use workload::Workload;

/// The one version of the formats that this program reads and writes.
pub const SCHEMA_VERSION: u32 = 1;

/// A scenario: a machine, procs on it, what they do, what goes wrong, and what must come of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The version of this format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub schema_version: u32,
    /// What the scenario is called in reports: a behaviour, such as `both-sides-connect-at-once`.
    #[schemars(regex(pattern = "^[a-z0-9]+(-[a-z0-9]+)*$"))]
    pub name: String,
    /// What it shows and why that matters, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What it runs on: the name of a machine, the path of a machine file, or a fabric.
    pub machine: MachineRef,
    /// The transport that the procs speak, with the tunables that differ from their defaults.
    pub transport: Transport,
    /// Parameters of the transport's NIC that differ from their defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nic: BTreeMap<String, Tunable>,
    /// How many procs there are and where they run.
    #[serde(default)]
    pub procs: Procs,
    /// What the procs do.
    pub workload: Workload,
    /// What goes wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// How things that could happen in any order are ordered.
    #[serde(default)]
    pub schedule: Schedule,
    /// The seeds to run with, unless the command line names others.
    #[serde(default)]
    pub seeds: Seeds,
    /// What must come of it.
    #[serde(default)]
    pub expect: Expect,
    /// When to give a run up.
    #[serde(default)]
    pub limits: Limits,
    /// How far `selvedge explore` goes. Without it the defaults hold.
    #[serde(default)]
    pub explore: Explore,
    /// How closely a run is watched.
    #[serde(default)]
    pub watch: Watch,
}

//! Limits: when a run or a search is given up, and how closely a run is watched.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use selvedge_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::quantity::Duration;

/// When to give a run up. A run that hits a limit has no verdict: it neither passes nor fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Simulated time.
    pub time: Duration,
    /// Events.
    pub events: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time: Duration(Span::from_ms(60_000)), events: 10_000_000_000 }
    }
}

/// How far `selvedge explore` searches. Each budget counts what one path may contain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Explore {
    /// How many faults of each kind may strike on one path, by the kind's word: `{"loss": 1}`.
    /// A kind that is not named never strikes.
    pub faults: BTreeMap<String, u32>,
    /// How often each endpoint may try to connect again.
    pub retries: u32,
    /// How many lives each connection may have.
    pub generations: u32,
    /// How many steps deep to go. Without it, to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// How many distinct states to visit before giving up.
    pub max_states: u64,
}

impl Default for Explore {
    fn default() -> Self {
        Explore {
            faults: BTreeMap::new(),
            retries: 1,
            generations: 2,
            depth: None,
            max_states: 20_000_000,
        }
    }
}

/// How closely a run is watched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Watch {
    /// Check the invariants of the touched endpoint after every this many events; 1 is every one.
    #[schemars(range(min = 1))]
    pub check_every: u64,
    /// Compare what one in so many messages says, of those that are fetched out of memory, with
    /// what was sent; 0: none.
    pub contents_every: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Watch { check_every: 1, contents_every: 1 }
    }
}

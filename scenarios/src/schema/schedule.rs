//! Schedules and seeds: which of the possible histories are run.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::quantity::Duration;

/// How things that happen at the same moment, or could, are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// In the order in which they were caused.
    #[default]
    Fifo,
    /// Ties in random order, and each delay stretched by a random part of `jitter`.
    Random(Random),
    /// Probabilistic concurrency testing: random priorities that change at a few random points.
    Pct(Pct),
}

/// Settings of the `random` schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// The most that any delay is stretched by.
    #[serde(default)]
    pub jitter: Duration,
}

/// Settings of the `pct` schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pct {
    /// How many orderings must conspire in the mistakes that are looked for.
    #[schemars(range(min = 1, max = 64))]
    pub depth: u32,
    /// About how many steps a run takes: the changes of priority are spread over them.
    #[serde(default = "thousand")]
    pub steps: u64,
    /// The most that any delay is stretched by.
    #[serde(default)]
    pub jitter: Duration,
}

const fn thousand() -> u64 {
    1_000
}

/// The seeds of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Seeds {
    /// Exactly these.
    List(Vec<u64>),
    /// From one number up to, but without, another.
    Range(SeedRange),
}

/// Seeds from one number up to, but without, another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedRange {
    /// The first seed.
    pub from: u64,
    /// One more than the last seed.
    pub to: u64,
}

impl Seeds {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Seeds::List(list) => list.len() as u64,
            Seeds::Range(range) => range.to.saturating_sub(range.from),
        }
    }

    /// Number `index` of them, from 0.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<u64> {
        match self {
            Seeds::List(list) => list.get(usize::try_from(index).ok()?).copied(),
            Seeds::Range(range) => range.from.checked_add(index).filter(|seed| *seed < range.to),
        }
    }
}

impl Default for Seeds {
    fn default() -> Self {
        Seeds::List(vec![1])
    }
}

// By hand, since serde's own untagged enums forget where a mistake was.
impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListOrRange;
        impl<'de> Visitor<'de> for ListOrRange {
            type Value = Seeds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of seeds or {\"from\": 0, \"to\": 100}")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Seeds, A::Error> {
                let mut seeds = Vec::new();
                while let Some(seed) = list.next_element()? {
                    seeds.push(seed);
                }
                Ok(Seeds::List(seeds))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Seeds, A::Error> {
                SeedRange::deserialize(MapAccessDeserializer::new(map)).map(Seeds::Range)
            }
        }
        deserializer.deserialize_any(ListOrRange)
    }
}

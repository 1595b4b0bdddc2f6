//! Procs: how many there are and where they run.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::quantity::Duration;

/// The procs of the job, numbered from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Procs {
    /// How many. Without it: as many as the placement names, or `per_node` on every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The most that share a node.
    #[serde(default = "one")]
    pub per_node: u32,
    /// Which proc runs where.
    #[serde(default)]
    pub placement: Placement,
    /// Whether hosts sleep when they have nothing to do; without it they look all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Sleep>,
}

/// How a host sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sleep {
    /// From an interrupt until it is awake.
    #[serde(default = "five_microseconds")]
    pub wakes_in: Duration,
    /// For how long it sleeps on, once a message has come without an interrupt.
    #[serde(default = "one_millisecond")]
    pub nap: Duration,
}

const fn five_microseconds() -> Duration {
    Duration(selvedge_core::Span::from_us(5))
}

const fn one_millisecond() -> Duration {
    Duration(selvedge_core::Span::from_ms(1))
}

/// Which proc runs where.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Placement {
    /// By a rule.
    By(Rule),
    /// The node of proc 0, of proc 1 and so on.
    On(Vec<u32>),
}

/// A rule that places procs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Fill each node before the next one.
    #[default]
    Packed,
    /// One on each node in turn, then round again.
    RoundRobin,
    /// Packed onto nodes in a random order, drawn from the seed.
    Random,
}

const fn one() -> u32 {
    1
}

impl Default for Procs {
    fn default() -> Self {
        Procs { count: None, per_node: one(), placement: Placement::default(), sleep: None }
    }
}

impl Default for Placement {
    fn default() -> Self {
        Placement::By(Rule::default())
    }
}

// By hand, since serde's own untagged enums forget where a mistake was.
impl<'de> Deserialize<'de> for Placement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RuleOrNodes;
        impl<'de> Visitor<'de> for RuleOrNodes {
            type Value = Placement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`packed`, `round-robin`, `random` or a list of nodes")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Placement, E> {
                let word = serde::de::value::StrDeserializer::new(word);
                Rule::deserialize(word).map(Placement::By)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Placement, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = list.next_element()? {
                    nodes.push(node);
                }
                Ok(Placement::On(nodes))
            }
        }
        deserializer.deserialize_any(RuleOrNodes)
    }
}

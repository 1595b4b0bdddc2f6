//! Expectations: what must come of a run.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::quantity::Duration;

/// What must come of a run. What is left out is expected strictly: everything delivered, nothing
/// failed, and at the end nothing still under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// How many messages are delivered.
    pub delivered: Count,
    /// How many operations on remote memory are done.
    pub done: Count,
    /// How many sends and operations end `Failed` (never delivered, never done), by reason. A
    /// reason that is not named must not occur; `"any"` allows whatever comes.
    pub failed: Tally,
    /// How many sends and operations end `Unknown` (once or not at all), by reason. A reason
    /// that is not named must not occur; `"any"` allows whatever comes.
    pub unknown: Tally,
    /// How many error notices there are, by kind. A kind that is not named must not occur;
    /// without this key, whatever comes is allowed.
    pub errors: Tally,
    /// Bounds on what is measured.
    pub metrics: Metrics,
    /// Events that must happen.
    pub must: Vec<Pattern>,
    /// Events that must not happen.
    pub must_not: Vec<Pattern>,
    /// Whether the run must settle: nothing in flight, nothing waiting, no deadline armed.
    pub settle: bool,
}

impl Default for Expect {
    fn default() -> Self {
        Expect {
            delivered: Count::All,
            done: Count::All,
            failed: Tally::default(),
            unknown: Tally::default(),
            errors: Tally::Any,
            metrics: Metrics::default(),
            must: Vec::new(),
            must_not: Vec::new(),
            settle: true,
        }
    }
}

/// A number that is expected: `3`, `{"min": 1, "max": 5}`, `"all"` or `"any"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// From `min` to `max`, both included.
    Between(Bounds),
    /// As many as there could be.
    All,
    /// However many.
    Any,
}

/// Bounds of a number, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { min: 0, max: u64::MAX }
    }
}

impl Bounds {
    /// Exactly `n`.
    #[must_use]
    pub const fn exactly(n: u64) -> Self {
        Bounds { min: n, max: n }
    }

    /// Whether `n` lies between them.
    #[must_use]
    pub const fn hold(&self, n: u64) -> bool {
        self.min <= n && n <= self.max
    }
}

/// Numbers by name; or `"any"`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Tally {
    /// The named ones so often, all others never.
    Named(BTreeMap<String, Count>),
    /// Whatever comes.
    #[serde(serialize_with = "any_word")]
    #[schemars(with = "AnyWord")]
    Any,
}

impl Default for Tally {
    fn default() -> Self {
        Tally::Named(BTreeMap::new())
    }
}

/// Bounds on what is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// The median time from send to delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p50: Option<SpanBounds>,
    /// The time from send to delivery that 90 % of the messages keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p90: Option<SpanBounds>,
    /// The time from send to delivery that 99 % of the messages keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p99: Option<SpanBounds>,
    /// The time from send to delivery that 99.9 % of the messages keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p999: Option<SpanBounds>,
    /// The longest time from send to delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_max: Option<SpanBounds>,
    /// The simulated time that the run takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<SpanBounds>,
    /// Events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Count>,
    /// Connections made, each counted once for its pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Count>,
    /// Connections made again after one was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconnects: Option<Count>,
    /// Completion queues that overran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overruns: Option<Count>,
    /// The digest of the history, as reports print it: for scenarios with one seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{16}$"))]
    pub digest: Option<String>,
}

impl Metrics {
    /// All bounds of times, by key.
    #[must_use]
    pub const fn spans(&self) -> [(&'static str, Option<SpanBounds>); 6] {
        [
            ("latency_p50", self.latency_p50),
            ("latency_p90", self.latency_p90),
            ("latency_p99", self.latency_p99),
            ("latency_p999", self.latency_p999),
            ("latency_max", self.latency_max),
            ("time", self.time),
        ]
    }

    /// All bounds of numbers, by key.
    #[must_use]
    pub const fn counts(&self) -> [(&'static str, Option<Count>); 4] {
        [
            ("events", self.events),
            ("connections", self.connections),
            ("reconnects", self.reconnects),
            ("overruns", self.overruns),
        ]
    }
}

/// Bounds of a time, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpanBounds {
    /// The shortest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Duration>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
}

/// Events that are counted: those of a name, at a proc if one is named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The name of the event, as traces spell it.
    pub event: String,
    /// The proc it happens at. Without it, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proc: Option<u32>,
    /// In `must`: how often it happens; without it, at least once. Not in `must_not`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
}

impl Serialize for Count {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Count::Between(bounds) if bounds.min == bounds.max => {
                serializer.serialize_u64(bounds.min)
            }
            Count::Between(bounds) => bounds.serialize(serializer),
            Count::All => serializer.serialize_str("all"),
            Count::Any => serializer.serialize_str("any"),
        }
    }
}

/// The forms of a [`Count`], for its JSON Schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "read by the derive only")]
enum CountForms {
    /// Exactly so many.
    Exactly(u64),
    /// Between two bounds.
    Between(Bounds),
    /// As many as there could be, or however many.
    Word(CountWord),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "read by the derive only")]
enum CountWord {
    /// As many as there could be.
    All,
    /// However many.
    Any,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "read by the derive only")]
enum AnyWord {
    /// Whatever comes.
    Any,
}

fn any_word<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("any")
}

impl JsonSchema for Count {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = CountForms::json_schema(generator);
        schema.insert("description".into(), "A number that is expected.".into());
        schema
    }
}

// By hand, since serde's own untagged enums forget where a mistake was.
impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, {\"min\": 1, \"max\": 5}, \"all\" or \"any\"")
            }

            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Count, E> {
                Ok(Count::Between(Bounds::exactly(n)))
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Count, E> {
                match word {
                    "all" => Ok(Count::All),
                    "any" => Ok(Count::Any),
                    _ => Err(E::unknown_variant(word, &["all", "any"])),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Count, A::Error> {
                Bounds::deserialize(MapAccessDeserializer::new(map)).map(Count::Between)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Tally;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("numbers by name, such as {\"peer-died\": 3}, or \"any\"")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Tally, E> {
                match word {
                    "any" => Ok(Tally::Any),
                    _ => Err(E::unknown_variant(word, &["any"])),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tally, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(Tally::Named)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

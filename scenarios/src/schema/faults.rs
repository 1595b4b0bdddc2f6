//! Faults: what goes wrong, with the words of netem, Toxiproxy, Chaos Mesh and Jepsen.
//!
//! Every fault says when it strikes in exactly one of three ways:
//!
//! - `at` a time, and with `for` only that long;
//! - at a `rate`, each time it could strike, `between` two times if given and at `most` so often;
//! - `when` something happens, and with `for` only that long.
//!
//! and whom it strikes by selectors, of which those that are left out mean "any".

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Duration, Probability};

/// "When this happens": the trigger of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The name of the event, as traces spell it.
    pub event: String,
    /// The proc it must happen at. Without it, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proc: Option<u32>,
    /// Which occurrence, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub nth: u64,
}

const fn first() -> u64 {
    1
}

/// When a fault strikes: its `at`, `for`, `rate`, `between`, `most` and `when` as one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// From a time on.
    At {
        /// The time, since the start of the run.
        at: Duration,
        /// How long it lasts; without it, for ever.
        lasts: Option<Duration>,
    },
    /// By chance.
    Rate {
        /// The chance, each time it could strike.
        rate: Probability,
        /// The times, since the start of the run, between which it may.
        between: Option<[Duration; 2]>,
        /// How often at most.
        most: Option<u64>,
    },
    /// From an event on.
    When {
        /// The event.
        when: When,
        /// How long it lasts; without it, for ever.
        lasts: Option<Duration>,
    },
}

/// The keys of a fault that say when it strikes, before they are known to make sense.
#[derive(Clone, Copy, Debug)]
pub struct Timing<'a> {
    /// At this time.
    pub at: Option<Duration>,
    /// For so long.
    pub lasts: Option<Duration>,
    /// With this chance.
    pub rate: Option<Probability>,
    /// Between these times.
    pub between: Option<[Duration; 2]>,
    /// So often at most.
    pub most: Option<u64>,
    /// When this happens.
    pub when: Option<&'a When>,
}

impl Timing<'_> {
    /// The one trigger that these keys spell.
    ///
    /// # Errors
    /// When they spell none or several; says what to change.
    pub fn trigger(&self) -> Result<Trigger, &'static str> {
        let trigger = match (self.at, self.rate, self.when) {
            (Some(at), None, None) => Trigger::At { at, lasts: self.lasts },
            (None, Some(rate), None) => {
                Trigger::Rate { rate, between: self.between, most: self.most }
            }
            (None, None, Some(when)) => Trigger::When { when: when.clone(), lasts: self.lasts },
            (None, None, None) => return Err("say when: write one of `at`, `rate` and `when`"),
            _ => return Err("write only one of `at`, `rate` and `when`"),
        };
        match trigger {
            Trigger::Rate { .. } if self.lasts.is_some() => {
                Err("`for` goes with `at` or `when`: bound a `rate` by `between`")
            }
            Trigger::Rate { between: Some([from, to]), .. } if from >= to => {
                Err("`between` must be two times, the earlier one first")
            }
            Trigger::Rate { most: Some(0), .. } => Err("`most` must be at least 1"),
            Trigger::At { .. } | Trigger::When { .. }
                if self.between.is_some() || self.most.is_some() =>
            {
                Err("`between` and `most` go only with `rate`")
            }
            Trigger::When { when: When { nth: 0, .. }, .. } => {
                Err("`nth` counts from 1: write `\"nth\": 1` for the first")
            }
            sound => Ok(sound),
        }
    }
}

/// Whom a fault strikes, all selectors of all kinds in one place; `None` means "any".
#[derive(Clone, Copy, Debug, Default)]
pub struct Selectors<'a> {
    /// Procs.
    pub procs: Option<&'a [u32]>,
    /// Sending procs.
    pub from: Option<&'a [u32]>,
    /// Receiving procs.
    pub to: Option<&'a [u32]>,
    /// Nodes.
    pub nodes: Option<&'a [u32]>,
    /// Routers.
    pub routers: Option<&'a [u32]>,
    /// Links, each as the two routers it joins.
    pub links: Option<&'a [[u32; 2]]>,
    /// Groups of procs.
    pub groups: Option<&'a [Vec<u32>]>,
}

/// A selector as its struct holds it: a list that must be there, or one that may.
trait Selector<T> {
    fn select(&self) -> Option<&[T]>;
}

impl<T> Selector<T> for Vec<T> {
    fn select(&self) -> Option<&[T]> {
        Some(self)
    }
}

impl<T> Selector<T> for Option<Vec<T>> {
    fn select(&self) -> Option<&[T]> {
        self.as_deref()
    }
}

/// Declares the kinds of faults: each gets its own keys and the ones that all faults share, as
/// plain fields, so that an unknown key is caught where it stands.
macro_rules! faults {
    ($(
        $(#[$doc:meta])*
        $kind:ident($word:literal) {
            select { $( $(#[$select_doc:meta])* $select:ident: $select_type:ty, )* }
            $( $(#[$field_doc:meta])* $field:ident: $field_type:ty, )*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            pub struct $kind {
                $( $(#[$field_doc])* pub $field: $field_type, )*
                $( $(#[$select_doc])* pub $select: $select_type, )*
                /// Strike at this time since the start of the run.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub at: Option<Duration>,
                /// With `at` or `when`: last so long. Without it, for ever.
                #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
                pub lasts: Option<Duration>,
                /// Strike with this chance, each time it could.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub rate: Option<Probability>,
                /// With `rate`: strike only between these two times since the start of the run.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub between: Option<[Duration; 2]>,
                /// With `rate`: strike so often at most.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub most: Option<u64>,
                /// Strike when this happens.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub when: Option<When>,
            }
        )*

        /// One thing that goes wrong.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub enum Fault {
            $( $(#[$doc])* #[serde(rename = $word)] $kind($kind), )*
        }

        impl Fault {
            /// The words of all kinds.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// As files spell its kind.
            #[must_use]
            pub const fn word(&self) -> &'static str {
                match self {
                    $( Fault::$kind(_) => $word, )*
                }
            }

            /// When it strikes.
            #[must_use]
            pub fn timing(&self) -> Timing<'_> {
                match self {
                    $( Fault::$kind(fault) => Timing {
                        at: fault.at,
                        lasts: fault.lasts,
                        rate: fault.rate,
                        between: fault.between,
                        most: fault.most,
                        when: fault.when.as_ref(),
                    }, )*
                }
            }

            /// Whom it strikes.
            #[must_use]
            pub fn selectors(&self) -> Selectors<'_> {
                match self {
                    $( Fault::$kind(_fault) => Selectors {
                        $( $select: _fault.$select.select(), )*
                        ..Selectors::default()
                    }, )*
                }
            }
        }
    };
}

/// The same, for what strikes messages on their way: these choose them alike.
macro_rules! message_faults {
    (
        messages { $(
            $(#[$doc:meta])*
            $kind:ident($word:literal) { $( $(#[$field_doc:meta])* $field:ident: $field_type:ty, )* }
        )* }
        others { $($others:tt)* }
    ) => {
        faults! {
            $(
                $(#[$doc])*
                $kind($word) {
                    select {
                        /// Only messages that one of these procs sends.
                        #[serde(default, skip_serializing_if = "Option::is_none")]
                        from: Option<Vec<u32>>,
                        /// Only messages that go to one of these procs.
                        #[serde(default, skip_serializing_if = "Option::is_none")]
                        to: Option<Vec<u32>>,
                        /// Only messages that one of these procs sends or receives.
                        #[serde(default, skip_serializing_if = "Option::is_none")]
                        procs: Option<Vec<u32>>,
                        /// Only messages that leave or reach one of these nodes.
                        #[serde(default, skip_serializing_if = "Option::is_none")]
                        nodes: Option<Vec<u32>>,
                        /// Only messages that cross one of these links, each the pair of routers
                        /// that it joins.
                        #[serde(default, skip_serializing_if = "Option::is_none")]
                        links: Option<Vec<[u32; 2]>>,
                    }
                    $( $(#[$field_doc])* $field: $field_type, )*
                }
            )*
            $($others)*
        }
    };
}

message_faults! {
    messages {
        /// A message is lost on its way.
        Loss("loss") {}
        /// A message arrives twice.
        Duplicate("duplicate") {}
        /// A message is overtaken by later ones.
        Reorder("reorder") {
            /// How long it is held back.
            by: Duration,
        }
        /// A message arrives damaged.
        Corrupt("corrupt") {}
        /// A message takes longer.
        Delay("delay") {
            /// How much longer.
            by: Duration,
            /// How much more or less than that, drawn each time.
            #[serde(default)]
            jitter: Duration,
        }
    }
    others {
        /// A link carries nothing, either way; routes go around it where they can.
        LinkDown("link-down") {
            select {
                /// The links, each the pair of routers that it joins.
                links: Vec<[u32; 2]>,
            }
        }
        /// A router is dead, with its links and nodes.
        RouterDown("router-down") {
            select {
                /// The routers.
                routers: Vec<u32>,
            }
        }
        /// A node is cut off from its router or switch.
        PortDown("port-down") {
            select {
                /// The nodes.
                nodes: Vec<u32>,
            }
        }
        /// Procs reach only those of their own group.
        Partition("partition") {
            select {
                /// The groups; a proc that is in none reaches everybody.
                groups: Vec<Vec<u32>>,
            }
        }
        /// A proc does nothing for a while; its NIC goes on.
        Pause("pause") {
            select {
                /// The procs.
                procs: Vec<u32>,
            }
        }
        /// A proc dies, with all it knew.
        Crash("crash") {
            select {
                /// The procs.
                procs: Vec<u32>,
            }
        }
        /// A proc is born again after a crash, under the same name, in a new epoch.
        Restart("restart") {
            select {
                /// The procs.
                procs: Vec<u32>,
            }
        }
        /// A proc takes its time over each message that it receives.
        SlowReceiver("slow-receiver") {
            select {
                /// The procs. Without it, all.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                procs: Option<Vec<u32>>,
            }
            /// How much longer each message takes.
            by: Duration,
        }
        /// A proc's address record cannot be found.
        ModexMissing("modex-missing") {
            select {
                /// The procs whose record it is. Without it, all.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                procs: Option<Vec<u32>>,
            }
        }
        /// A proc's address record comes late.
        ModexLate("modex-late") {
            select {
                /// The procs whose record it is. Without it, all.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                procs: Option<Vec<u32>>,
            }
            /// How late.
            by: Duration,
        }
        /// A proc's address record is the one of its life before.
        ModexStale("modex-stale") {
            select {
                /// The procs whose record it is. Without it, all.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                procs: Option<Vec<u32>>,
            }
        }
        /// The NIC misbehaves in a way of its own.
        Nic("nic") {
            select {
                /// The procs whose NIC it is. Without it, all.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                procs: Option<Vec<u32>>,
            }
            /// Which way: a word of the transport's NIC, such as `refuse-send`.
            fault: String,
        }
    }
}

impl Fault {
    /// Whether chance can decide when it strikes: there is a throw for each packet, each look at
    /// the directory, each operation of a NIC; there is none for links and procs.
    #[must_use]
    pub const fn strikes_by_chance(&self) -> bool {
        match self {
            Fault::Loss(_)
            | Fault::Duplicate(_)
            | Fault::Reorder(_)
            | Fault::Corrupt(_)
            | Fault::Delay(_)
            | Fault::Partition(_)
            | Fault::ModexMissing(_)
            | Fault::ModexLate(_)
            | Fault::ModexStale(_)
            | Fault::Nic(_) => true,
            Fault::LinkDown(_)
            | Fault::RouterDown(_)
            | Fault::PortDown(_)
            | Fault::Pause(_)
            | Fault::Crash(_)
            | Fault::Restart(_)
            | Fault::SlowReceiver(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spanned::Document;

    fn fault(text: &str) -> Fault {
        let document = Document::parse("f", text.into()).expect("sound JSON");
        document.read().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_fault_strikes_at_a_time_at_a_rate_or_when() {
        let loss =
            fault(r#"{"loss": {"rate": "1%", "between": ["1us", "2us"], "most": 3, "to": [1]}}"#);
        assert_eq!(loss.word(), "loss");
        assert_eq!(loss.selectors().to, Some(&[1][..]));
        assert!(matches!(loss.timing().trigger(), Ok(Trigger::Rate { most: Some(3), .. })));
        let crash = fault(r#"{"crash": {"procs": [1], "when": {"event": "connected"}}}"#);
        assert!(
            matches!(crash.timing().trigger(), Ok(Trigger::When { when, .. }) if when.nth == 1)
        );
        for (text, remedy) in [
            (r#"{"crash": {"procs": [1]}}"#, "say when"),
            (r#"{"crash": {"procs": [1], "at": "1us", "rate": "1%"}}"#, "only one of"),
            (r#"{"loss": {"rate": "1%", "for": "1us"}}"#, "`for` goes with"),
            (r#"{"loss": {"at": "0ns", "most": 1}}"#, "only with `rate`"),
            (r#"{"loss": {"rate": "1%", "between": ["2us", "2us"]}}"#, "earlier one first"),
            (r#"{"loss": {"rate": "1%", "most": 0}}"#, "at least 1"),
            (r#"{"loss": {"when": {"event": "x", "nth": 0}}}"#, "counts from 1"),
        ] {
            let error = fault(text).timing().trigger().expect_err(text);
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        let text = r#"{"crash": {"procs": [1], "at": "1us", "links": []}}"#;
        let error = Document::parse("f", text.into()).and_then(|it| it.read::<Fault>());
        let error = error.expect_err("crash has no links").to_string();
        assert!(error.starts_with("f:1:39: unknown key `links`"), "{error}");
    }
}

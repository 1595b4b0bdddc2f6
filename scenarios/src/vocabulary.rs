//! What each transport adds to the language of scenarios: its tunables, the faults of its NIC,
//! and the names of its events and reasons.

use std::sync::LazyLock;

use selvedge_core::config::{Tunable, Tunables};
use selvedge_core::machine::{Command, Named, Notice, Reason};
use selvedge_core::ugni;

use crate::schema::machine::TransportName;

/// A word with its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// As files spell it.
    pub word: &'static str,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

/// The faults of a search that are not of a NIC.
pub const SEARCH_FAULTS: &[&str] = &["loss", "duplicate", "crash", "early-timeout"];

/// The words of one transport.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary {
    /// The tunables of the transport.
    pub tunables: &'static [Tunable],
    /// The parameters of its NIC.
    pub nic: &'static [Tunable],
    /// The faults of its NIC.
    pub nic_faults: &'static [Word],
    /// The events of its traces. Empty: any name is taken.
    pub events: &'static [&'static str],
    /// Why a send can end `Failed` or `Unknown`. Empty: any name is taken.
    pub reasons: &'static [&'static str],
    /// The kinds of its error notices. Empty: any name is taken.
    pub errors: &'static [&'static str],
}

impl Vocabulary {
    /// The words of the transport called `name`.
    #[must_use]
    pub fn of(name: TransportName) -> &'static Vocabulary {
        match name {
            TransportName::Ugni => &UGNI,
            TransportName::Scif | TransportName::Verbs | TransportName::Ud | TransportName::Tcp => {
                &NONE
            }
        }
    }
}

static NONE: Vocabulary =
    Vocabulary { tunables: &[], nic: &[], nic_faults: &[], events: &[], reasons: &[], errors: &[] };

static UGNI: LazyLock<Vocabulary> = LazyLock::new(|| Vocabulary {
    tunables: ugni::Config::TABLE,
    nic: ugni::nic::Config::TABLE,
    nic_faults: UGNI_NIC_FAULTS.as_slice(),
    events: UGNI_EVENTS.as_slice(),
    reasons: &REASONS,
    errors: &REASONS,
});

static UGNI_NIC_FAULTS: LazyLock<Vec<Word>> = LazyLock::new(|| {
    let words = ugni::nic::Fault::WORDS.iter().zip(ugni::nic::Fault::MEANINGS);
    words.map(|(word, meaning)| Word { word, meaning }).collect()
});

/// What traces of uGNI can say: commands, notices, ops, completions, packets and faults.
static UGNI_EVENTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut words = [
        Command::WORDS,
        Notice::WORDS,
        ugni::Op::WORDS,
        ugni::Completion::WORDS,
        ugni::nic::Packet::WORDS,
        ugni::nic::Fault::WORDS,
        crate::schema::faults::Fault::WORDS,
        &["expired"],
    ]
    .concat();
    words.sort_unstable();
    words.dedup();
    words
});

/// The words of core's reasons, which all transports share.
static REASONS: [&str; Reason::ALL.len()] = {
    let mut words = [""; Reason::ALL.len()];
    let mut index = 0;
    while index < words.len() {
        words[index] = Reason::ALL[index].word();
        index += 1;
    }
    words
};

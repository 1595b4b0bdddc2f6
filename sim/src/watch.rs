//! Who looks on: counters, latencies, the ledger, the digest, the trace. A watch never acts; a
//! world runs the same with another one.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use selvedge_core::{Event, Generation, Notice, ProcName, Reason, Time};

use crate::ledger::{Answer, Ledger};
use crate::memory::{Memory, contents};
use crate::simulated::{Completion, Simulated};
use crate::trace::{Digest, Record, Recorder, What, fold};

/// How a run is watched.
#[derive(Clone, Debug)]
pub struct Watching {
    /// Whether events are folded into the digest.
    pub digest: bool,
    /// Check what an event touched after every so many events.
    pub check_every: u64,
    /// Keep the last so many events whole; 0: none.
    pub record: usize,
    /// Events to count.
    pub patterns: Vec<Pattern>,
    /// Keep the digest after every event, to compare runs.
    pub checkpoints: bool,
    /// Compare what one in so many messages says, where the transport fetches it; 0: none.
    pub contents_every: u64,
}

impl Default for Watching {
    fn default() -> Self {
        Watching {
            digest: true,
            check_every: 1,
            record: 0,
            patterns: Vec::new(),
            checkpoints: false,
            contents_every: 1,
        }
    }
}

/// Events that somebody wants counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The word of the event.
    pub event: String,
    /// At which proc; `None` means any.
    pub proc: Option<u32>,
}

impl Pattern {
    fn is_met(&self, word: &str, proc: u32) -> bool {
        self.event == word && self.proc.is_none_or(|wanted| wanted == proc)
    }
}

/// How often a pattern was met, and where last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// How often.
    pub count: u64,
    /// When last.
    pub last: Option<Time>,
    /// The events up to that, if they were kept.
    pub around: Vec<String>,
}

/// The two ways to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something happened that must never happen.
    Safety,
    /// Something that must happen in the end did not.
    Progress,
}

/// Something wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The rule.
    pub rule: &'static str,
    /// Which way it is wrong.
    pub kind: Kind,
    /// When.
    pub at: Time,
    /// At which proc.
    pub proc: u32,
    /// The events up to it, if they were kept.
    pub around: Vec<String>,
}

/// So many checks of what a step touched are one check of the whole.
const WHOLE: u64 = 4_096;

/// How many events a finding shows.
const AROUND: usize = 24;

/// A message that came, as the ledger of its sender wants to hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) at: u32,
    pub(crate) data: selvedge_core::FragId,
    pub(crate) tag: selvedge_core::Tag,
    pub(crate) len: u32,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Watch<T: Simulated> {
    watching: Watching,
    /// The digest of all events.
    pub digest: Digest,
    /// The digest after each event, if asked for.
    pub checkpoints: Vec<u64>,
    /// Events of transports, packets and faults.
    pub events: u64,
    /// Steps of transports.
    pub steps: u64,
    /// The step after which what it touched is checked next, and the one after which all is.
    check_at: u64,
    whole_at: u64,
    /// Messages asked for.
    pub messages: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Operations on remote memory asked for.
    pub asked: u64,
    /// Operations on remote memory that were done.
    pub operations: u64,
    /// Connections that came up, counted at each end.
    pub connections: u64,
    /// Those among them that were not the first with their peer.
    pub reconnects: u64,
    /// Queues that overran.
    pub overruns: u64,
    /// Messages that failed, by reason.
    pub failed: BTreeMap<Reason, u64>,
    /// Messages of unknown fate, by reason.
    pub unknown: BTreeMap<Reason, u64>,
    /// Error notices and connections that broke, by reason.
    pub errors: BTreeMap<Reason, u64>,
    /// From command to delivery, in picoseconds. Made with the first message.
    pub latency: Option<Box<Histogram<u64>>>,
    /// What each pattern met.
    pub met: Vec<Met>,
    /// What is wrong.
    pub found: Vec<Found>,
    /// The last events.
    pub recorder: Option<Recorder<T>>,
    pub(crate) ledgers: Vec<Ledger>,
    /// If somebody else keeps the ledgers of other procs: what came, by sender.
    pub(crate) foreign: Option<Vec<(u32, Came)>>,
    deaths: Vec<Option<Time>>,
    faulty: bool,
    /// Rules of the fault plan that wait for an event, and those whose event has happened.
    triggers: Vec<(u32, Pattern)>,
    pulled: Vec<u32>,
}

impl<T: Simulated> Watch<T> {
    /// Nothing seen yet of `procs` procs.
    #[must_use]
    pub fn new(watching: Watching, procs: usize) -> Self {
        Watch {
            digest: Digest::default(),
            checkpoints: Vec::new(),
            events: 0,
            steps: 0,
            check_at: watching.check_every,
            whole_at: WHOLE * watching.check_every,
            messages: 0,
            delivered: 0,
            asked: 0,
            operations: 0,
            connections: 0,
            reconnects: 0,
            overruns: 0,
            failed: BTreeMap::new(),
            unknown: BTreeMap::new(),
            errors: BTreeMap::new(),
            latency: None,
            met: vec![Met::default(); watching.patterns.len()],
            found: Vec::new(),
            recorder: (watching.record > 0).then(|| Recorder::new(watching.record)),
            ledgers: vec![Ledger::default(); procs],
            foreign: None,
            deaths: vec![None; procs],
            faulty: false,
            triggers: Vec::new(),
            pulled: Vec::new(),
            watching,
        }
    }

    /// A transport is about to be stepped.
    #[inline]
    pub(crate) fn step(&mut self, now: Time, proc: u32, event: &Event<Completion<T>>) {
        self.events += 1;
        self.steps += 1;
        if self.watching.digest {
            fold::<T>(&mut self.digest, now, proc, event);
            if self.watching.checkpoints {
                self.checkpoints.push(self.digest.value());
            }
        }
        if let Event::Completion(completion) = event
            && T::is_overrun(completion)
        {
            self.overruns += 1;
        }
        if self.is_curious() {
            self.note(now, proc, What::Event(event.clone()));
        }
    }

    /// Whether what the last step touched is to be checked.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.steps >= self.check_at;
        self.check_at += u64::from(due) * self.watching.check_every;
        due
    }

    /// Whether the whole is to be checked.
    #[inline]
    pub(crate) fn is_whole_due(&mut self) -> bool {
        let due = self.steps >= self.whole_at;
        self.whole_at += u64::from(due) * WHOLE * self.watching.check_every;
        due
    }

    /// Whether anybody wants single events.
    #[inline]
    pub(crate) fn is_curious(&self) -> bool {
        self.recorder.is_some() || !self.watching.patterns.is_empty() || !self.triggers.is_empty()
    }

    /// A rule of the fault plan waits for an event.
    pub(crate) fn wait_for(&mut self, rule: u32, event: String, proc: Option<u32>) {
        self.triggers.push((rule, Pattern { event, proc }));
    }

    /// Whether a rule waits to be taken by [`happened`](Self::happened).
    #[inline]
    pub(crate) fn has_happened(&self) -> bool {
        !self.pulled.is_empty()
    }

    /// A rule whose event has happened since this was asked last.
    pub(crate) fn happened(&mut self) -> Option<u32> {
        self.pulled.pop()
    }

    /// Something happened that patterns and the recorder may want.
    pub(crate) fn note(&mut self, at: Time, proc: u32, what: What<T>) {
        let word = what.word();
        if let Some(recorder) = &mut self.recorder {
            recorder.push(Record { at, proc, what });
        }
        for (rule, trigger) in &self.triggers {
            if trigger.is_met(word, proc) {
                self.pulled.push(*rule);
            }
        }
        for (pattern, met) in self.watching.patterns.iter().zip(&mut self.met) {
            if pattern.is_met(word, proc) {
                met.count += 1;
                met.last = Some(at);
                met.around = self.recorder.as_ref().map_or(Vec::new(), |r| r.tail(AROUND));
            }
        }
    }

    /// A fault struck: from now on the device may say strange things.
    pub(crate) fn struck(&mut self, now: Time, proc: u32, word: &'static str) {
        self.faulty = true;
        self.events += 1;
        if self.watching.digest {
            use std::hash::Hash;
            (now.0, proc, word).hash(&mut self.digest);
        }
        if self.is_curious() {
            self.note(now, proc, What::Fault(word));
        }
    }

    /// Whether what the next message says is to be compared.
    const fn checks_contents(&self) -> bool {
        self.watching.contents_every > 0
            && self.delivered.is_multiple_of(self.watching.contents_every)
    }

    pub(crate) fn died(&mut self, now: Time, proc: u32) {
        self.deaths[proc as usize] = Some(now);
        self.ledgers[proc as usize].abandon();
    }

    /// Whether a fault has struck on the path that is followed.
    pub(crate) fn expect_odd(&mut self, faulty: bool) {
        self.faulty = faulty;
    }

    /// A rule is broken that only a fault may break.
    pub(crate) fn odd(&mut self, now: Time, proc: u32, rule: &'static str) {
        if !self.faulty {
            self.find(now, proc, Kind::Safety, rule);
        }
    }

    /// A rule is broken.
    pub(crate) fn find(&mut self, at: Time, proc: u32, kind: Kind, rule: &'static str) {
        // The first of each rule tells the story; the rest would bury it.
        if self.found.len() < 16 && !self.found.iter().any(|found| found.rule == rule) {
            let around = self.recorder.as_ref().map_or(Vec::new(), |r| r.tail(AROUND));
            self.found.push(Found { rule, kind, at, proc, around });
        }
    }

    /// The application of `proc`, whose memory this is, hears something.
    pub(crate) fn notice(&mut self, now: Time, proc: u32, notice: &Notice, memory: &Memory) {
        if self.is_curious() {
            self.note(now, proc, What::Notice(*notice));
        }
        if let Notice::Arrived { from, data, len, at: Some(at), .. } = *notice
            && self.checks_contents()
            && !contents(from.rank, data, len).eq(memory.read(at, len).iter().copied())
        {
            self.find(now, proc, Kind::Safety, "a message arrives as it was sent");
        }
        let broken = match *notice {
            Notice::Arrived { from: ProcName { rank, .. }, tag, len, data, .. }
                if self.foreign.is_some() && rank != proc =>
            {
                let foreign = self.foreign.get_or_insert_default();
                foreign.push((rank, Came { at: proc, data, tag, len }));
                None
            }
            Notice::Arrived { from: ProcName { rank, .. }, tag, len, data, .. } => {
                let ledger = self.ledgers.get_mut(rank as usize);
                match ledger.map(|ledger| ledger.came(data, proc, tag, len, now)) {
                    Some(Ok(took)) => {
                        self.delivered += 1;
                        let latency = self.latency.get_or_insert_with(|| {
                            // One part in 128 up to half a day, growing as it needs to.
                            let mut latency = Histogram::new(2).expect("two digits are legal");
                            latency.auto(true);
                            Box::new(latency)
                        });
                        latency.record(took.0).expect("it grows as it needs to");
                        None
                    }
                    // A message of a life that the sender has left behind.
                    Some(Err(_)) if self.deaths[rank as usize].is_some() => None,
                    Some(Err(rule)) => Some(rule),
                    None => Some("a message comes from a proc of the job"),
                }
            }
            Notice::Sent { frag } => self.answer(proc, frag, Answer::Sent),
            Notice::Done { frag, .. } => {
                self.operations += 1;
                self.answer(proc, frag, Answer::Sent)
            }
            Notice::Registered { .. } | Notice::Unregistered { .. } => None,
            Notice::Failed { frag, reason, .. } => {
                *self.failed.entry(reason).or_default() += 1;
                self.answer(proc, frag, Answer::Failed)
            }
            Notice::Unknown { frag, reason, .. } => {
                *self.unknown.entry(reason).or_default() += 1;
                self.answer(proc, frag, Answer::Unknown)
            }
            Notice::Connected { generation, .. } => {
                self.connections += 1;
                let born = Generation::born(generation.incarnation());
                self.reconnects += u64::from(generation > born.next());
                None
            }
            Notice::Closed { reason: Reason::Closed | Reason::PeerClosed, .. } => None,
            Notice::Closed { reason, .. } | Notice::Trouble { reason, .. } => {
                *self.errors.entry(reason).or_default() += 1;
                None
            }
        };
        if let Some(rule) = broken {
            self.find(now, proc, Kind::Safety, rule);
        }
    }

    fn answer(
        &mut self,
        proc: u32,
        frag: selvedge_core::FragId,
        answer: Answer,
    ) -> Option<&'static str> {
        self.ledgers[proc as usize].answer(frag, answer).err()
    }

    /// Everything is at rest: whether every account is closed.
    pub(crate) fn settle(&mut self, now: Time, is_dead: impl Fn(u32) -> bool) {
        for proc in 0..self.ledgers.len() as u32 {
            if is_dead(proc) {
                continue;
            }
            let ledger = &self.ledgers[proc as usize];
            let died =
                |to: u32, asked: Time| self.deaths[to as usize].is_some_and(|died| died >= asked);
            let lost = ledger.check(died).err();
            let waits = ledger.unanswered() > 0;
            if let Some(rule) = lost {
                self.find(now, proc, Kind::Safety, rule);
            }
            if waits {
                self.find(now, proc, Kind::Progress, "every command is answered in the end");
            }
        }
    }
}

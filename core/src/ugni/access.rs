//! One operation on remote memory, from its first post to its end.
//!
//! What it does never changes, however often it is posted: retries count, requests do not. Only
//! what can be done twice is posted again after an error that may have come too late.

use crate::id::RegionId;
use crate::machine::{Reason, Verdict};
use crate::rma::{Amo, Place};
use crate::time::{Span, Time};

use super::Config;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Access {
    /// What it does.
    pub call: Call,
    /// Its place here.
    pub local: Place,
    /// Its place at the peer.
    pub remote: Place,
    /// Bytes.
    pub len: u32,
    /// Posts that were refused, or ended in an error that passes.
    pub tries: u8,
    /// It may have been done, although nobody has said so.
    pub unsure: bool,
    /// Where it stands.
    pub state: State,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Call {
    /// Writes the peer's memory.
    Put,
    /// Reads the peer's memory.
    Get,
    /// Changes a word of the peer's memory.
    Atomic {
        /// How.
        amo: Amo,
        /// With what.
        operand: u64,
        /// And with what else.
        second: u64,
    },
    /// Raises an interrupt at the peer.
    Wake,
}

/// Which part of the NIC moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Engine {
    /// Fast memory access: the processor stores into a window. Soon begun, and the processor is
    /// busy with it.
    Fma,
    /// The block transfer engine: it takes longer to begin, and needs nobody after that.
    Bte,
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum State {
    /// It waits for the peer's address, or for its turn.
    Waiting,
    /// Posted.
    Out,
    /// To be posted again.
    Resting {
        /// When.
        until: Time,
    },
}

/// Why the device did not take a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Refusal {
    /// `ERROR_RESOURCE`: it is short of something, for now.
    Resource,
    /// `ALIGNMENT_ERROR`.
    Alignment,
    /// `PERMISSION_ERROR`: the local memory is not registered.
    Permission,
    /// `ILLEGAL_OP`: it has no such operation.
    Illegal,
}

/// How a post ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum End {
    /// It is done.
    Done,
    /// The peer's memory is not registered; nothing was done.
    Denied,
    /// A transaction error that passes. Done or not, nobody knows.
    Recoverable,
    /// A transaction error that stays. Done or not, nobody knows.
    Fatal,
    /// The peer is gone.
    Gone,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Event {
    /// It is its turn.
    Turn,
    /// The device did not take it.
    Refused(Refusal),
    /// It ended.
    Ended(End, u64),
    /// Time has passed.
    Expired,
}

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Outcome {
    /// Nothing yet.
    Wait,
    /// Post it.
    Post,
    /// It is done; what it found.
    Done(u64),
    /// It was not done and will not be.
    Never(Reason),
    /// It was done or not; nobody knows.
    Maybe(Reason),
}

impl Access {
    /// An operation that waits.
    #[must_use]
    pub const fn new(call: Call, local: Place, remote: Place, len: u32) -> Access {
        Access { call, local, remote, len, tries: 0, unsure: false, state: State::Waiting }
    }

    /// The part of the NIC that it is for.
    #[must_use]
    pub const fn engine(&self, config: &Config) -> Engine {
        let limit = match self.call {
            Call::Put => config.fma_put_max,
            Call::Get => config.fma_get_max,
            Call::Atomic { .. } | Call::Wake => return Engine::Fma,
        };
        if self.len as u64 <= limit { Engine::Fma } else { Engine::Bte }
    }

    /// The memory of ours that it reads or writes.
    #[must_use]
    pub const fn memory(&self) -> Option<RegionId> {
        match self.call {
            Call::Put | Call::Get => Some(self.local.region),
            Call::Atomic { .. } | Call::Wake => None,
        }
    }

    /// Applies one event.
    pub fn step(&mut self, now: Time, event: Event, config: &Config) -> (Verdict, Outcome) {
        match self.state {
            State::Waiting => match event {
                Event::Turn => self.post(),
                Event::Refused(_) | Event::Ended(..) | Event::Expired => STALE,
            },
            State::Out => match event {
                Event::Refused(Refusal::Resource) => self.rest(now, config),
                Event::Refused(Refusal::Alignment) => self.over(Reason::Misaligned),
                Event::Refused(Refusal::Permission) => self.over(Reason::NotRegistered),
                Event::Refused(Refusal::Illegal) => self.over(Reason::Unsupported),
                Event::Ended(End::Done, found) => (Verdict::Taken, Outcome::Done(found)),
                Event::Ended(End::Denied, _) => self.over(Reason::NotRegistered),
                Event::Ended(End::Recoverable, _) => {
                    self.doubt();
                    if self.may_repeat() {
                        self.rest(now, config)
                    } else {
                        self.over(Reason::TransactionError)
                    }
                }
                Event::Ended(End::Fatal, _) => {
                    self.doubt();
                    self.over(Reason::TransactionError)
                }
                Event::Ended(End::Gone, _) => {
                    self.doubt();
                    self.over(Reason::PeerDied)
                }
                Event::Turn | Event::Expired => STALE,
            },
            State::Resting { until } => match event {
                Event::Expired if now >= until => self.post(),
                Event::Turn | Event::Refused(_) | Event::Ended(..) | Event::Expired => STALE,
            },
        }
    }

    fn post(&mut self) -> (Verdict, Outcome) {
        self.state = State::Out;
        (Verdict::Taken, Outcome::Post)
    }

    /// Puts it off, if it may be posted once more.
    fn rest(&mut self, now: Time, config: &Config) -> (Verdict, Outcome) {
        if u64::from(self.tries) >= config.rdma_retries {
            return self.over(Reason::TransactionError);
        }
        let doublings = u32::from(self.tries).min(config.backoff_doublings as u32);
        self.tries += 1;
        self.state = State::Resting { until: now + Span(config.rdma_retry).doubled(doublings) };
        (Verdict::Taken, Outcome::Wait)
    }

    fn over(&self, why: Reason) -> (Verdict, Outcome) {
        let outcome = if self.unsure { Outcome::Maybe(why) } else { Outcome::Never(why) };
        (Verdict::Taken, outcome)
    }

    /// It may have been done. A get that was done in vain has changed nothing that counts.
    fn doubt(&mut self) {
        self.unsure |= !matches!(self.call, Call::Get);
    }

    /// Whether doing it twice is as good as once.
    const fn may_repeat(&self) -> bool {
        match self.call {
            Call::Put | Call::Get | Call::Wake => true,
            Call::Atomic { amo, .. } => amo.is_idempotent(),
        }
    }
}

const STALE: (Verdict, Outcome) = (Verdict::Stale, Outcome::Wait);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rma::{Does, Width};

    const CONFIG: Config =
        Config { rdma_retries: 2, rdma_retry: 10, backoff_doublings: 6, ..Config::DEFAULT };

    fn out(call: Call) -> Access {
        let mut access = Access::new(call, Place::default(), Place::default(), 8);
        assert_eq!(access.step(Time(0), Event::Turn, &CONFIG), (Verdict::Taken, Outcome::Post));
        access
    }

    fn atomic(does: Does, fetches: bool) -> Call {
        Call::Atomic { amo: Amo::new(does, Width::Eight, fetches), operand: 1, second: 2 }
    }

    /// Every event in every state: what comes of it, and where it leads.
    #[test]
    fn the_table() {
        let resting = State::Resting { until: Time(5) };
        let events = [
            Event::Turn,
            Event::Refused(Refusal::Resource),
            Event::Refused(Refusal::Alignment),
            Event::Refused(Refusal::Permission),
            Event::Refused(Refusal::Illegal),
            Event::Ended(End::Done, 7),
            Event::Ended(End::Denied, 0),
            Event::Ended(End::Recoverable, 0),
            Event::Ended(End::Fatal, 0),
            Event::Ended(End::Gone, 0),
            Event::Expired,
        ];
        let rest = (Outcome::Wait, State::Resting { until: Time(19) });
        let never = |why| (Outcome::Never(why), State::Out);
        let maybe = |why| (Outcome::Maybe(why), State::Out);
        for (state, rows) in [
            (State::Waiting, [(0, (Outcome::Post, State::Out))].as_slice()),
            (
                State::Out,
                [
                    (1, rest),
                    (2, never(Reason::Misaligned)),
                    (3, never(Reason::NotRegistered)),
                    (4, never(Reason::Unsupported)),
                    (5, (Outcome::Done(7), State::Out)),
                    (6, never(Reason::NotRegistered)),
                    (7, rest),
                    (8, maybe(Reason::TransactionError)),
                    (9, maybe(Reason::PeerDied)),
                ]
                .as_slice(),
            ),
            (resting, [(10, (Outcome::Post, State::Out))].as_slice()),
        ] {
            for (at, &event) in events.iter().enumerate() {
                let mut access = out(Call::Put);
                access.state = state;
                let got = access.step(Time(9), event, &CONFIG);
                let row = rows.iter().find(|(row, _)| *row == at).map(|(_, expected)| *expected);
                let expected =
                    row.map_or((STALE, state), |(outcome, next)| ((Verdict::Taken, outcome), next));
                assert_eq!((got, access.state), expected, "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn retries_are_counted_and_wait_longer_each_time() {
        let mut access = out(Call::Put);
        let asked = access;
        let error = Event::Ended(End::Recoverable, 0);
        for (now, until) in [(100, 110), (200, 220)] {
            assert_eq!(access.step(Time(now), error, &CONFIG), (Verdict::Taken, Outcome::Wait));
            assert_eq!(access.state, State::Resting { until: Time(until) });
            assert_eq!(access.step(Time(until - 1), Event::Expired, &CONFIG), STALE);
            let posted = access.step(Time(until), Event::Expired, &CONFIG);
            assert_eq!(posted, (Verdict::Taken, Outcome::Post));
            let same = (access.call, access.local, access.remote, access.len);
            assert_eq!(same, (asked.call, asked.local, asked.remote, asked.len));
        }
        let over = access.step(Time(300), error, &CONFIG);
        assert_eq!(over, (Verdict::Taken, Outcome::Maybe(Reason::TransactionError)));
    }

    #[test]
    fn only_what_can_be_done_twice_is_repeated() {
        let wait = (Verdict::Taken, Outcome::Wait);
        let over = (Verdict::Taken, Outcome::Maybe(Reason::TransactionError));
        for (call, expected) in [
            (Call::Put, wait),
            (Call::Get, wait),
            (Call::Wake, wait),
            (atomic(Does::Or, false), wait),
            (atomic(Does::Or, true), over),
            (atomic(Does::Add, false), over),
            (atomic(Does::CompareSwap, true), over),
        ] {
            let mut access = out(call);
            let got = access.step(Time(0), Event::Ended(End::Recoverable, 0), &CONFIG);
            assert_eq!(got, expected, "{call:?}");
        }
        // A refusal leaves no doubt: anything may be posted again.
        let mut add = out(atomic(Does::Add, true));
        assert_eq!(add.step(Time(0), Event::Refused(Refusal::Resource), &CONFIG), wait);
    }

    #[test]
    fn a_get_that_ends_badly_was_never_done() {
        for (end, why) in [(End::Fatal, Reason::TransactionError), (End::Gone, Reason::PeerDied)] {
            let mut get = out(Call::Get);
            let got = get.step(Time(0), Event::Ended(end, 0), &CONFIG);
            assert_eq!(got, (Verdict::Taken, Outcome::Never(why)));
        }
    }

    #[test]
    fn short_ones_are_for_the_processor() {
        let engine = |call, len| {
            let access = Access::new(call, Place::default(), Place::default(), len);
            access.engine(&Config::DEFAULT)
        };
        assert_eq!([engine(Call::Put, 4096), engine(Call::Put, 4097)], [Engine::Fma, Engine::Bte]);
        assert_eq!([engine(Call::Get, 2048), engine(Call::Get, 2049)], [Engine::Fma, Engine::Bte]);
        assert_eq!(engine(atomic(Does::Add, true), 8), Engine::Fma);
    }
}

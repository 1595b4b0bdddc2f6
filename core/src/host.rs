//! A transport on its NIC: the two machines of one proc, and what passes between them.
//!
//! What comes in is an [`Input`], what goes out is told to an [`Around`] in order. All that lies
//! between them is decided here: answers of the NIC reach the transport before anything else
//! does. So a proc is a function of its inputs, and a recording of them repeats it.

use alloc::collections::VecDeque;

use crate::drive::{Port, deliver};
use crate::machine::{Command, Effect, Event, Notice, Transport, Verdict};
use crate::nic::{Address, Errand, Nic, NicEffect, NicEvent};
use crate::rma::{Amo, Place};
use crate::sink::Effects;
use crate::time::Time;

/// What can happen to a NIC of this kind.
pub type OfNic<N> =
    NicEvent<<N as Nic>::Op, <N as Nic>::Packet, <N as Nic>::Receipt, <N as Nic>::Fault>;
/// What a NIC of this kind wants.
pub type ByNic<N> = NicEffect<<N as Nic>::Completion, <N as Nic>::Packet>;

/// What reaches a proc from outside.
#[derive(Clone, Debug)]
pub enum Input<N: Nic> {
    /// Its application asks.
    Command(Command),
    /// Something happens to its NIC.
    Nic(OfNic<N>),
    /// An errand of the transport is answered.
    Answer(N::Completion),
    /// Its driver looks at deadlines and queues.
    Turn,
}

/// What surrounds a proc: the fabric, the memory, the application. A word of memory is changed,
/// and an errand run, while the step waits; what they say is as good as an input.
pub trait Around<N: Nic> {
    /// A packet goes on its way, with the payload that [`Nic::payload`] names.
    fn packet(&mut self, now: Time, to: Address, packet: N::Packet);
    /// The payload of the packet that just came in is written.
    fn store(&mut self, at: Place, len: u32);
    /// A word is changed in one piece: what it held.
    fn modify(&mut self, at: Place, amo: Amo, operand: u64, second: u64) -> u64;
    /// Something that only the driver can do. `None`: the answer comes later, as an input, or
    /// there is none.
    fn errand(&mut self, now: Time, op: &N::Op, errand: Errand) -> Option<N::Completion>;
    /// The application hears something. What a message says stays where it is until the input is
    /// dealt with.
    fn notice(&mut self, now: Time, notice: Notice);
    /// A step of one of the two machines ended like this.
    fn ended(&mut self, now: Time, verdict: Verdict);
}

/// Events that one turn handles at most, so that a proc looks at the fabric again.
const TURN: usize = 256;

/// A transport on its NIC.
#[derive(Clone, Debug)]
pub struct Host<T: Transport, N: Nic> {
    /// The transport.
    pub transport: T,
    /// Its NIC.
    pub nic: N,
    /// Answers of the NIC that the transport has not heard. Empty between inputs, as the
    /// following two are.
    answers: VecDeque<N::Completion>,
    fx: Effects<Effect<N::Op>>,
    nic_fx: Effects<ByNic<N>>,
}

impl<T, N> Host<T, N>
where
    N: Nic,
    T: Transport<Op = N::Op, Completion = N::Completion>,
{
    /// This transport on this NIC.
    #[must_use]
    pub fn new(transport: T, nic: N) -> Self {
        let (fx, nic_fx) = (Effects::new(T::EFFECTS_MAX), Effects::new(N::EFFECTS_MAX));
        Host { transport, nic, answers: VecDeque::new(), fx, nic_fx }
    }

    /// When something is due here that no packet brings.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        match (self.nic.next_deadline(), self.transport.next_deadline()) {
            (Some(nic), Some(transport)) => Some(nic.min(transport)),
            (nic, transport) => nic.or(transport),
        }
    }

    /// Whether a turn would find something to do.
    #[must_use]
    pub fn is_due(&self, now: Time) -> bool {
        self.nic.any_ready() || self.next_deadline().is_some_and(|at| at <= now)
    }

    /// Deals with one input, down to the last answer. A verdict other than `Taken` says what the
    /// input itself came to.
    pub fn step(&mut self, now: Time, input: Input<N>, around: &mut impl Around<N>) -> Verdict {
        match input {
            Input::Command(command) => self.transport(now, Event::Command(command), around),
            Input::Answer(answer) => self.transport(now, Event::Completion(answer), around),
            Input::Nic(event) => {
                let Host { nic, nic_fx, answers, .. } = self;
                let verdict = Device { nic, fx: nic_fx, answers, around }.step(now, event);
                self.settle(now, around);
                verdict
            }
            Input::Turn => {
                for _ in 0..TURN {
                    if !self.look(now, around) {
                        break;
                    }
                }
                Verdict::Taken
            }
        }
    }

    /// Does the first thing that is due, if there is one.
    fn look(&mut self, now: Time, around: &mut impl Around<N>) -> bool {
        let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if due(self.nic.next_deadline()) {
            let _ = self.step(now, Input::Nic(NicEvent::Expired), around);
        } else if due(self.transport.next_deadline()) {
            let _ = self.transport(now, Event::Expired, around);
        } else if let Some(queue) = (0..N::QUEUES).find(|&queue| self.nic.ready(queue)) {
            let _ = self.step(now, Input::Nic(NicEvent::Poll { queue }), around);
        } else {
            return false;
        }
        true
    }

    fn transport(
        &mut self,
        now: Time,
        event: Event<N::Completion>,
        around: &mut impl Around<N>,
    ) -> Verdict {
        let verdict = self.one(now, event, around);
        self.settle(now, around);
        verdict
    }

    fn settle(&mut self, now: Time, around: &mut impl Around<N>) {
        while let Some(answer) = self.answers.pop_front() {
            let _ = self.one(now, Event::Completion(answer), around);
        }
    }

    /// One step of the transport.
    fn one(
        &mut self,
        now: Time,
        event: Event<N::Completion>,
        around: &mut impl Around<N>,
    ) -> Verdict {
        let Host { transport, nic, answers, fx, nic_fx } = self;
        let mut device = Device { nic, fx: nic_fx, answers, around };
        let verdict = deliver(transport, now, event, fx, &mut device);
        around.ended(now, verdict);
        verdict
    }
}

/// The NIC as the transport's port, and what surrounds both.
struct Device<'a, N: Nic, A> {
    nic: &'a mut N,
    fx: &'a mut Effects<ByNic<N>>,
    answers: &'a mut VecDeque<N::Completion>,
    around: &'a mut A,
}

impl<N: Nic, A: Around<N>> Device<'_, N, A> {
    fn step(&mut self, now: Time, event: OfNic<N>) -> Verdict {
        let verdict = self.nic.step(now, event, self.fx);
        if let Some(found) = self.hand_over(now) {
            let modified = self.nic.step(now, NicEvent::Modified { found }, self.fx);
            self.around.ended(now, modified);
            let again = self.hand_over(now);
            debug_assert!(again.is_none(), "an answer asks for nothing");
        }
        self.around.ended(now, verdict);
        verdict
    }

    /// Hands the effects over. What a word held, if one was to be changed.
    fn hand_over(&mut self, now: Time) -> Option<u64> {
        let mut found = None;
        for effect in self.fx.drain() {
            match effect {
                NicEffect::Completion(completion) => self.answers.push_back(completion),
                NicEffect::Packet { to, packet } => self.around.packet(now, to, packet),
                NicEffect::Store { at, len } => self.around.store(at, len),
                NicEffect::Modify { at, amo, operand, second } => {
                    found = Some(self.around.modify(at, amo, operand, second));
                }
            }
        }
        found
    }
}

impl<N: Nic, A: Around<N>> Port<N::Op> for Device<'_, N, A> {
    fn op(&mut self, now: Time, op: N::Op) {
        match N::errand(&op) {
            Some(errand) => self.answers.extend(self.around.errand(now, &op, errand)),
            None => {
                let _ = self.step(now, NicEvent::Op(op));
            }
        }
    }

    fn notice(&mut self, now: Time, notice: Notice) {
        self.around.notice(now, notice);
    }

    fn flush(&mut self) {}
}

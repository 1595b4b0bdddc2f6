//! The search in packed form: a state of the world is a handful of numbers.
//!
//! What one proc does depends on that proc alone, so each of its states is kept once and each of
//! its steps is done once: the states of the world, which are many, only combine them. A state of
//! the world is the numbers of its procs' states, what is left of the budgets, and the numbers of
//! the things on the wire, in an order of which all that are alike are equal.

use std::hash::Hash;

use selvedge_core::encode::encode;
use selvedge_core::{App, Machine, Nic, NicEvent, Time, Verdict};

use crate::ledger::Ledger;
use crate::memory::Payload;
use crate::proc::Proc;
use crate::simulated::{OfNic, Simulated};
use crate::trace::proc_of;
use crate::watch::{Came, Found};

use super::seen::{Map, fingerprint};
use super::{Bench, CRASHES, DUPLICATES, EARLY, LOSSES, NOW, OnWire, Space, Thing, receive};

/// The number of a state of a proc, or of a thing on the wire.
type Number = u32;

/// A proc that is dead.
const DEAD: Number = u32::MAX;

/// One choice, independent of how a state lays out its wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Deliver(Number),
    Lose(Number),
    Repeat(Number),
    Poll(u8, u8),
    Go(u8),
    Expire(u8),
    ExpireEarly(u8),
    ExpireNic(u8),
    Wake(u8),
    Fault(u8, u8),
    Crash(u8),
}

impl Choice {
    pub(super) const fn is_fault(self) -> bool {
        match self {
            Choice::Lose(_)
            | Choice::Repeat(_)
            | Choice::ExpireEarly(_)
            | Choice::Fault(..)
            | Choice::Crash(_) => true,
            Choice::Deliver(_)
            | Choice::Poll(..)
            | Choice::Go(_)
            | Choice::Expire(_)
            | Choice::ExpireNic(_)
            | Choice::Wake(_) => false,
        }
    }
}

/// What can happen to one proc, as a key of the steps done before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Input {
    /// A thing on the wire comes in.
    Receive(Number),
    /// A packet of its own is lost.
    Lost(Number),
    /// The node of a proc is down.
    Down(u8),
    Poll(u8),
    Expired,
    NicExpired,
    Wake,
    Fault(u8),
    /// The ledger: a message of its own has come.
    Came(Number),
    /// Datagrams between it and a proc are counted anew.
    Rest(u8),
}

impl Input {
    const fn code(self) -> u64 {
        match self {
            Input::Receive(n) => n as u64,
            Input::Lost(n) => 1 << 40 | n as u64,
            Input::Down(n) => 2 << 40 | n as u64,
            Input::Poll(n) => 3 << 40 | n as u64,
            Input::Expired => 4 << 40,
            Input::NicExpired => 5 << 40,
            Input::Wake => 6 << 40,
            Input::Fault(n) => 7 << 40 | n as u64,
            Input::Came(n) => 8 << 40 | n as u64,
            Input::Rest(n) => 9 << 40 | n as u64,
        }
    }
}

/// What came of a step of one proc.
#[derive(Clone, Debug)]
struct Step {
    to: Number,
    /// Things that went on the wire.
    sent: Vec<Number>,
    /// Messages that came, for the ledgers of their senders: (sender, which).
    came: Vec<(u8, Number)>,
    /// What is wrong.
    found: Option<Box<Found>>,
}

/// A state of a proc, and what there is to choose in it.
#[derive(Clone, Debug)]
struct Known<T: Simulated, A> {
    proc: Proc<T, A>,
    ledger: Ledger,
    ready: u8,
    goes: bool,
    waits: bool,
    nic_waits: bool,
    wakes: bool,
    rests: bool,
    /// With which procs its datagrams could be counted anew.
    quiet: u64,
    /// With which of them that would change something.
    stale: u64,
}

#[derive(Clone, Debug)]
struct Item<T: Simulated> {
    thing: OnWire<T>,
    from: u8,
    to: u8,
    ordered: bool,
    packet: bool,
}

/// A state of the world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    procs: Vec<Number>,
    left: Vec<u8>,
    wire: Vec<Number>,
}

impl Packed {
    /// Becomes `other`, in the memory that it has.
    pub(super) fn copy(&mut self, other: &Packed) {
        self.procs.copy_from_slice(&other.procs);
        self.left.copy_from_slice(&other.left);
        self.wire.clear();
        self.wire.extend_from_slice(&other.wire);
    }

    /// As bytes: what is compared and kept.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        self.procs.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(&self.left);
        self.wire.iter().for_each(|number| out.extend(number.to_le_bytes()));
    }

    /// Back from bytes, into `self`, which has the right number of procs and budgets.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        let (procs, rest) = bytes.split_at(self.procs.len() * 4);
        let (left, wire) = rest.split_at(self.left.len());
        let number = |chunk: &[u8]| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        for (proc, chunk) in self.procs.iter_mut().zip(procs.chunks(4)) {
            *proc = number(chunk);
        }
        self.left.copy_from_slice(left);
        self.wire.clear();
        self.wire.extend(wire.chunks(4).map(number));
    }
}

/// All that is known of a space.
pub(super) struct Memory<'a, T: Simulated, A> {
    space: &'a Space<T, A>,
    bench: Bench<T>,
    budgets: Vec<u8>,
    procs: Vec<Known<T, A>>,
    proc_numbers: Map,
    items: Vec<Item<T>>,
    item_numbers: Map,
    messages: Vec<Came>,
    steps: Vec<Step>,
    step_numbers: Map,
    bytes: Vec<u8>,
}

impl<'a, T: Simulated, A: App + Clone + Hash> Memory<'a, T, A> {
    pub(super) fn new(space: &'a Space<T, A>) -> Self {
        let mut bench = space.bench(0);
        bench.watch.foreign = Some(Vec::new());
        Memory {
            space,
            bench,
            budgets: space.budgets(),
            procs: Vec::new(),
            proc_numbers: Map::new(),
            items: Vec::new(),
            item_numbers: Map::new(),
            messages: Vec::new(),
            steps: Vec::new(),
            step_numbers: Map::new(),
            bytes: Vec::new(),
        }
    }

    /// The first state, and what is wrong with it.
    pub(super) fn first(&mut self) -> (Packed, Option<Found>) {
        let mut bench = self.space.bench(0);
        let state = self.space.first(&mut bench);
        let found = self.space.found(&mut bench);
        let mut packed = Packed { left: state.left, ..Packed::default() };
        for (proc, ledger) in state.procs.into_iter().zip(state.ledgers) {
            let number = self.know(proc, ledger);
            packed.procs.push(number);
        }
        for thing in state.wire {
            let number = self.item(thing);
            packed.wire.push(number);
        }
        self.settle(&mut packed);
        (packed, found)
    }

    /// The bytes of a thing, to find it again in a state that is not packed.
    pub(super) fn thing(&self, number: Number) -> &OnWire<T> {
        &self.items[number as usize].thing
    }

    pub(super) fn is_at_rest(&self, state: &Packed) -> bool {
        state.wire.is_empty()
            && state.procs.iter().all(|&proc| proc == DEAD || self.procs[proc as usize].rests)
    }

    /// What is wrong with a state at rest.
    pub(super) fn check_at_rest(&mut self, state: &Packed) -> Option<Found> {
        let dead = |to: u32| state.procs[to as usize] == DEAD;
        for (rank, &number) in state.procs.iter().enumerate() {
            if number == DEAD {
                continue;
            }
            let known = &self.procs[number as usize];
            known.proc.check(NOW, &mut self.bench.watch);
            if let Err(rule) = known.ledger.check(|to, _| dead(to)) {
                let watch = &mut self.bench.watch;
                watch.find(NOW, rank as u32, crate::watch::Kind::Safety, rule);
            }
        }
        self.space.found(&mut self.bench)
    }

    /// Every choice that a state has.
    pub(super) fn choices(&self, state: &Packed, out: &mut Vec<Choice>) {
        out.clear();
        for (at, &number) in state.wire.iter().enumerate() {
            let item = &self.items[number as usize];
            let shadowed = at > 0 && {
                let before = &self.items[state.wire[at - 1] as usize];
                state.wire[at - 1] == number && !item.ordered
                    || item.ordered
                        && before.ordered
                        && (before.from, before.to) == (item.from, item.to)
            };
            if shadowed {
                continue;
            }
            out.push(Choice::Deliver(number));
            if item.packet && state.left[LOSSES] > 0 {
                out.push(Choice::Lose(number));
            }
            if item.packet && state.left[DUPLICATES] > 0 {
                out.push(Choice::Repeat(number));
            }
        }
        let alive = || {
            let procs = state.procs.iter().enumerate().filter(|&(_, &number)| number != DEAD);
            procs.map(|(rank, &number)| (rank as u8, &self.procs[number as usize]))
        };
        for (me, known) in alive() {
            let queues = (0..T::Nic::QUEUES).filter(|queue| known.ready >> queue & 1 == 1);
            out.extend(queues.map(|queue| Choice::Poll(me, queue)));
            out.extend(known.goes.then_some(Choice::Go(me)));
            out.extend(known.nic_waits.then_some(Choice::ExpireNic(me)));
            out.extend(known.wakes.then_some(Choice::Wake(me)));
        }
        let idle = out.iter().all(|choice| choice.is_fault());
        for (me, known) in alive() {
            if known.waits && idle {
                out.push(Choice::Expire(me));
            } else if known.waits && state.left[EARLY] > 0 {
                out.push(Choice::ExpireEarly(me));
            }
            for kind in 0..self.space.bounds.faults.len() {
                if state.left[self.space.budget(me as usize, kind)] > 0 {
                    out.push(Choice::Fault(me, kind as u8));
                }
            }
            out.extend((state.left[CRASHES] > 0).then_some(Choice::Crash(me)));
        }
    }

    /// Makes a choice: what is wrong then.
    pub(super) fn apply(&mut self, state: &mut Packed, choice: Choice) -> Option<Found> {
        let mut found = None;
        match choice {
            Choice::Deliver(number) => {
                self.take(state, number);
                let Item { from, to, packet, .. } = self.items[number as usize];
                if state.procs[to as usize] != DEAD {
                    found = self.step(state, to, Input::Receive(number));
                } else if packet {
                    found = self.step(state, from, Input::Down(to));
                    let lost = self.step(state, from, Input::Lost(number));
                    found = found.or(lost);
                }
            }
            Choice::Lose(number) => {
                state.left[LOSSES] -= 1;
                self.take(state, number);
                let from = self.items[number as usize].from;
                found = self.step(state, from, Input::Lost(number));
            }
            Choice::Repeat(number) => {
                state.left[DUPLICATES] -= 1;
                let to = self.items[number as usize].to;
                // A copy: nobody waits for news of it.
                let sent = state.wire.len();
                found = self.step(state, to, Input::Receive(number));
                let items = &self.items;
                let mut at = 0;
                state.wire.retain(|&number| {
                    at += 1;
                    at <= sent || items[number as usize].packet
                });
            }
            Choice::Poll(rank, queue) => found = self.step(state, rank, Input::Poll(queue)),
            Choice::Go(rank) | Choice::Expire(rank) => {
                found = self.step(state, rank, Input::Expired);
            }
            Choice::ExpireEarly(rank) => {
                state.left[EARLY] -= 1;
                found = self.step(state, rank, Input::Expired);
            }
            Choice::ExpireNic(rank) => found = self.step(state, rank, Input::NicExpired),
            Choice::Wake(rank) => found = self.step(state, rank, Input::Wake),
            Choice::Fault(rank, kind) => {
                let budget = self.space.budget(rank as usize, kind as usize);
                state.left[budget] -= 1;
                found = self.step(state, rank, Input::Fault(kind));
            }
            Choice::Crash(rank) => {
                state.left[CRASHES] -= 1;
                state.procs[rank as usize] = DEAD;
                for other in 0..state.procs.len() as u8 {
                    let down = self.step(state, other, Input::Down(rank));
                    found = found.or(down);
                }
            }
        }
        self.settle(state);
        found
    }

    /// Steps one proc of a state: from memory, if it was done before.
    fn step(&mut self, state: &mut Packed, rank: u8, input: Input) -> Option<Found> {
        let from = state.procs[rank as usize];
        if from == DEAD {
            return None;
        }
        let faulty = state.left != self.budgets;
        let key = u128::from(from) << 64 | u128::from(input.code()) << 1 | u128::from(faulty);
        let (number, new) = self.step_numbers.number(mixed(key));
        if new {
            let step = self.work(rank, from, input, faulty);
            self.steps.push(step);
        }
        let step = &self.steps[number as usize];
        state.procs[rank as usize] = step.to;
        state.wire.extend(&step.sent);
        let mut found = step.found.as_deref().cloned();
        for at in 0..step.came.len() {
            let (sender, message) = self.steps[number as usize].came[at];
            let came = self.step(state, sender, Input::Came(message));
            found = found.or(came);
        }
        found
    }

    /// Does a step for the first time.
    fn work(&mut self, rank: u8, from: Number, input: Input, faulty: bool) -> Step {
        let Known { proc, ledger, .. } = &self.procs[from as usize];
        let (mut proc, mut ledger) = (proc.clone(), ledger.clone());
        let address = proc.address;
        let mut wire = Vec::new();
        let watch = &mut self.bench.watch;
        watch.expect_odd(faulty);
        std::mem::swap(&mut watch.ledgers[rank as usize], &mut ledger);
        let Bench { scratch, watch } = &mut self.bench;
        let mut around = super::Still { fabric: &self.space.fabric, wire: &mut wire, watch };
        let mut verdict = Verdict::Taken;
        let mut fate = None;
        let mut nic = |event: OfNic<T>, payload: &[u8], proc: &mut Proc<T, A>| {
            verdict = proc.nic_event(NOW, event, payload, scratch, &mut around);
        };
        match input {
            Input::Receive(number) => {
                let OnWire { from, to, what, payload } = self.items[number as usize].thing.clone();
                if let Thing::Packet(packet) = &what {
                    fate = T::Nic::receipt(packet).map(|receipt| (from, to, receipt));
                }
                nic(receive(from, what), &payload, &mut proc);
            }
            Input::Lost(number) => {
                let OnWire { to, what, .. } = self.items[number as usize].thing.clone();
                if let Thing::Packet(packet) = what {
                    nic(NicEvent::Lost { to, packet }, &[], &mut proc);
                }
            }
            Input::Down(dead) => {
                let peer = self.space.address_of(dead);
                nic(NicEvent::Down { peer }, &[], &mut proc);
            }
            Input::NicExpired => nic(NicEvent::Expired, &[], &mut proc),
            Input::Fault(kind) => {
                let (fault, _) = self.space.bounds.faults[kind as usize];
                nic(NicEvent::Fault(fault), &[], &mut proc);
            }
            Input::Poll(queue) => proc.poll(NOW, queue, scratch, &mut around),
            Input::Expired => proc.expired(NOW, scratch, &mut around),
            Input::Wake => proc.woken(NOW, scratch, &mut around),
            Input::Came(message) => {
                let Came { at, data, tag, len } = self.messages[message as usize];
                let ledger = &mut around.watch.ledgers[rank as usize];
                if let Err(rule) = ledger.came(data, at, tag, len, NOW) {
                    let kind = crate::watch::Kind::Safety;
                    around.watch.find(NOW, u32::from(rank), kind, rule);
                }
            }
            Input::Rest(peer) => {
                let peer = self.space.address_of(peer);
                proc.nic.rest(peer, true);
            }
        }
        if let Some((from, to, receipt)) = fate {
            let rejected = matches!(verdict, Verdict::Broken(_));
            let what = Thing::Fate { receipt, rejected };
            let payload = Payload::default();
            wire.push(OnWire { from: to, to: from, what, payload });
        }
        debug_assert_eq!(proc.address, address, "nobody moves");
        std::mem::swap(&mut self.bench.watch.ledgers[rank as usize], &mut ledger);
        let found = self.space.found(&mut self.bench).map(Box::new);
        let foreign = self.bench.watch.foreign.as_mut().map(std::mem::take).unwrap_or_default();
        let came = foreign
            .into_iter()
            .map(|(sender, message)| {
                let known = self.messages.iter().position(|other| *other == message);
                let number = known.unwrap_or_else(|| {
                    self.messages.push(message);
                    self.messages.len() - 1
                });
                (sender as u8, number as Number)
            })
            .collect();
        let sent = wire.into_iter().map(|thing| self.item(thing)).collect();
        Step { to: self.know(proc, ledger), sent, came, found }
    }

    /// The number of a state of a proc.
    fn know(&mut self, proc: Proc<T, A>, ledger: Ledger) -> Number {
        self.bytes.clear();
        proc.transport.encode(&mut self.bytes);
        proc.nic.encode(&mut self.bytes);
        encode(&(&proc.app, proc.wake, &proc.memory), &mut self.bytes);
        ledger.encode(&mut self.bytes);
        let (number, new) = self.proc_numbers.number(fingerprint(&self.bytes));
        if new {
            let deadline = proc.transport.next_deadline();
            let nic_waits = proc.nic.next_deadline().is_some();
            let ready = (0..T::Nic::QUEUES)
                .fold(0, |mask, queue| mask | u8::from(proc.nic.ready(queue)) << queue);
            let (mut quiet, mut stale) = (0, 0);
            let form = |nic: &T::Nic| {
                let mut bytes = Vec::new();
                nic.encode(&mut bytes);
                bytes
            };
            for peer in 0..self.space.apps.len() as u8 {
                let address = self.space.address_of(peer);
                let mut asked = proc.nic.clone();
                if asked.rest(address, false) {
                    asked.rest(address, true);
                    quiet |= 1 << peer;
                    stale |= u64::from(form(&asked) != form(&proc.nic)) << peer;
                }
            }
            self.procs.push(Known {
                ready,
                goes: deadline == Some(Time::ZERO),
                waits: deadline.is_some_and(|at| at >= NOW && at != Time::NEVER),
                nic_waits,
                wakes: proc.wake != Time::NEVER,
                rests: ready == 0
                    && !nic_waits
                    && deadline.is_none()
                    && proc.wake == Time::NEVER
                    && proc.transport.settled()
                    && ledger.unanswered() == 0,
                quiet,
                stale,
                proc,
                ledger,
            });
        }
        number
    }

    /// The number of a thing on the wire.
    fn item(&mut self, thing: OnWire<T>) -> Number {
        self.bytes.clear();
        super::write_thing(&thing, &mut self.bytes);
        let (number, new) = self.item_numbers.number(fingerprint(&self.bytes));
        if new {
            let (from, to) = (proc_of(thing.from) as u8, proc_of(thing.to) as u8);
            let (packet, ordered) = match &thing.what {
                Thing::Packet(packet) => (true, T::Nic::ordered(packet)),
                Thing::Fate { .. } => (false, false),
            };
            self.items.push(Item { thing, from, to, ordered, packet });
        }
        number
    }

    /// Removes one thing from the wire.
    fn take(&self, state: &mut Packed, number: Number) {
        if let Some(at) = state.wire.iter().position(|&other| other == number) {
            state.wire.remove(at);
        }
    }

    /// Brings a state into the form that all states have that are alike: ordered packets by
    /// pair, in their order; then everything else by number; and no counters that nobody needs.
    fn settle(&mut self, state: &mut Packed) {
        let items = &self.items;
        let place = |&number: &Number| {
            let item = &items[number as usize];
            if item.ordered { (0, item.from, item.to, 0) } else { (1, 0, 0, number) }
        };
        state.wire.sort_by_key(place);
        for a in 1..state.procs.len() as u8 {
            for b in 0..a {
                let (x, y) = (state.procs[a as usize], state.procs[b as usize]);
                if x == DEAD || y == DEAD {
                    continue;
                }
                let between = |number: &Number| {
                    let item = &self.items[*number as usize];
                    item.ordered && [(a, b), (b, a)].contains(&(item.from, item.to))
                };
                let (x, y) = (&self.procs[x as usize], &self.procs[y as usize]);
                let quiet = x.quiet >> b & 1 == 1 && y.quiet >> a & 1 == 1;
                let stale = x.stale >> b & 1 == 1 || y.stale >> a & 1 == 1;
                if quiet && stale && !state.wire.iter().any(between) {
                    let _ = self.step(state, a, Input::Rest(b));
                    let _ = self.step(state, b, Input::Rest(a));
                }
            }
        }
    }
}

/// Spreads a key over 128 bits, without losing any of it.
fn mixed(key: u128) -> u128 {
    let mixed = (key ^ key >> 61).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    mixed ^ mixed >> 64
}

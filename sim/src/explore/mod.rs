//! The search: every history of a small world, instead of one.
//!
//! The procs are those of a timed run. Time stands still and all spans are zero, so a deadline
//! that is armed may fire at any moment: for nothing when there is nothing else to do, and as
//! often as the bounds allow before that. What is on the wire may arrive next, in any order that
//! the NICs allow; whatever a queue holds may be polled next; each fault that the bounds allow
//! may strike. Every such choice is a branch.
//!
//! **Safety**: no step breaks an invariant or the ledger, and at rest every account is closed.
//! **Progress**: from every state a state at rest can be reached without another fault. (That
//! nothing is in flight is not enough to ask for: two sides that talk for ever never deadlock.)

use std::hash::Hash;
use std::sync::Arc;

use selvedge_core::encode::encode;
use selvedge_core::modex::Card;
use selvedge_core::{Address, App, Machine, Named, Nic, NicEvent, ProcName, Reason, Time, Verdict};

use crate::fabric::Fabric;
use crate::ledger::Ledger;
use crate::memory::Payload;
use crate::proc::{Answer, Around, Proc, Scratch};
use crate::simulated::{Fault, Op, Packet, Receipt, Simulated};
use crate::trace::{What, address, proc_of};
use crate::watch::{Found, Kind, Watch, Watching};

mod packed;
mod search;
mod seen;

pub use search::{Outcome, Progress};

/// How far to search. Each budget counts what one path may contain.
#[derive(Clone, Debug)]
pub struct Bounds<T: Simulated> {
    /// NIC faults: which, and how many of each at each proc.
    pub faults: Vec<(Fault<T>, u8)>,
    /// Packets that may be lost.
    pub losses: u8,
    /// Packets that may come twice.
    pub duplicates: u8,
    /// Procs that may die.
    pub crashes: u8,
    /// Deadlines that may fire while something else could still happen.
    pub early: u8,
    /// Steps from the beginning; 0: no bound.
    pub depth: u32,
    /// Distinct states.
    pub states: u64,
}

impl<T: Simulated> Default for Bounds<T> {
    fn default() -> Self {
        Bounds {
            faults: Vec::new(),
            losses: 0,
            duplicates: 0,
            crashes: 0,
            early: 0,
            depth: 0,
            states: 20_000_000,
        }
    }
}

/// The time of every step. A deadline at zero is work that a machine has left for at once; one
/// at this time is a wait.
const NOW: Time = Time(1);

/// Where the budgets lie that are not of a proc.
const LOSSES: usize = 0;
const DUPLICATES: usize = 1;
const CRASHES: usize = 2;
const EARLY: usize = 3;

/// One choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The `n`-th thing on the wire gets where it goes.
    Deliver(u8),
    /// The `n`-th thing on the wire is lost.
    Lose(u8),
    /// The `n`-th thing on the wire comes twice.
    Repeat(u8),
    /// A host looks into a queue.
    Poll(u8, u8),
    /// A transport goes on with what it has left.
    Go(u8),
    /// A transport's deadline fires, since nothing else can happen.
    Expire(u8),
    /// A transport's deadline fires while something else could.
    ExpireEarly(u8),
    /// A NIC's deadline fires.
    ExpireNic(u8),
    /// An application is woken.
    Wake(u8),
    /// A NIC misbehaves: which proc, and which of the bounds' faults.
    Fault(u8, u8),
    /// A proc dies.
    Crash(u8),
}

impl Action {
    /// Whether something goes wrong by this choice.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        matches!(
            self,
            Action::Lose(_)
                | Action::Repeat(_)
                | Action::ExpireEarly(_)
                | Action::Fault(..)
                | Action::Crash(_)
        )
    }
}

/// A state of the whole world.
#[derive(Clone, Debug)]
pub struct State<T: Simulated, A> {
    procs: Vec<Proc<T, A>>,
    wire: Vec<OnWire<T>>,
    ledgers: Vec<Ledger>,
    dead: u64,
    /// What is left of the budgets: losses, duplicates, crashes, then faults by proc.
    left: Vec<u8>,
}

#[derive(Clone, Debug)]
struct OnWire<T: Simulated> {
    from: Address,
    to: Address,
    what: Thing<T>,
    payload: Payload,
}

#[derive(Clone, Debug)]
enum Thing<T: Simulated> {
    Packet(Packet<T>),
    Fate { receipt: Receipt<T>, rejected: bool },
}

/// A world to search.
#[derive(Clone, Debug)]
pub struct Space<T: Simulated, A> {
    fabric: Arc<Fabric<T>>,
    bounds: Bounds<T>,
    apps: Vec<A>,
}

/// What one search thread works with.
#[derive(Clone, Debug)]
pub struct Bench<T: Simulated> {
    scratch: Scratch<T>,
    /// What was found wrong since it was last asked.
    pub watch: Watch<T>,
}

impl<T: Simulated, A: App + Clone + Hash> Space<T, A> {
    /// The space of a fabric (whose topology, times and plan do not matter here) and one
    /// application a proc.
    #[must_use]
    pub fn new(fabric: Arc<Fabric<T>>, apps: Vec<A>, bounds: Bounds<T>) -> Self {
        Space { fabric, bounds, apps }
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> &Bounds<T> {
        &self.bounds
    }

    /// Tools for one thread; `record` keeps that many events for people.
    #[must_use]
    pub fn bench(&self, record: usize) -> Bench<T> {
        let watching = Watching { digest: false, record, ..Watching::default() };
        Bench { scratch: Scratch::default(), watch: Watch::new(watching, self.apps.len()) }
    }

    /// The first state: every application has started.
    pub fn first(&self, bench: &mut Bench<T>) -> State<T, A> {
        let procs: Vec<_> = (0..self.apps.len() as u32)
            .map(|rank| {
                let name = ProcName { job: self.fabric.job, rank };
                let node = self.fabric.placement[rank as usize];
                let app = self.apps[rank as usize].clone();
                Proc::new(&self.fabric.setup, name, node, self.address_of(rank as u8), 1, app)
            })
            .collect();
        let left = self.budgets();
        let ledgers = vec![Ledger::default(); procs.len()];
        let mut state = State { procs, wire: Vec::new(), ledgers, dead: 0, left };
        for rank in 0..state.procs.len() {
            self.with(&mut state, bench, |state, scratch, around| {
                state.procs[rank].start(NOW, scratch, around);
                while state.procs[rank].transport.next_deadline() == Some(Time::ZERO) {
                    state.procs[rank].expired(NOW, scratch, around);
                }
            });
        }
        state
    }

    /// Every choice that a state has.
    pub fn actions(&self, state: &State<T, A>, out: &mut Vec<Action>) {
        out.clear();
        for at in 0..state.wire.len() {
            // Equal things on the wire are one choice; of ordered ones only the first is one.
            let this = &state.wire[at];
            let before = &state.wire[..at];
            let shadowed = before.iter().any(|other| {
                other.from == this.from && other.to == this.to && this.must_follow(other)
            });
            if shadowed {
                continue;
            }
            out.push(Action::Deliver(at as u8));
            if let Thing::Packet(_) = this.what {
                if state.left[LOSSES] > 0 {
                    out.push(Action::Lose(at as u8));
                }
                if state.left[DUPLICATES] > 0 {
                    out.push(Action::Repeat(at as u8));
                }
            }
        }
        for (rank, proc) in state.procs.iter().enumerate() {
            if state.dead >> rank & 1 == 1 {
                continue;
            }
            let me = rank as u8;
            out.extend(
                (0..T::Nic::QUEUES)
                    .filter(|&queue| proc.nic.ready(queue))
                    .map(|queue| Action::Poll(me, queue)),
            );
            if proc.transport.next_deadline() == Some(Time::ZERO) {
                out.push(Action::Go(me));
            }
            if proc.nic.next_deadline().is_some() {
                out.push(Action::ExpireNic(me));
            }
            if proc.wake != Time::NEVER {
                out.push(Action::Wake(me));
            }
        }
        let idle = out.iter().all(|action| action.is_fault());
        for (rank, proc) in state.procs.iter().enumerate() {
            if state.dead >> rank & 1 == 1 {
                continue;
            }
            let me = rank as u8;
            if proc.transport.next_deadline().is_some_and(|at| at >= NOW && at != Time::NEVER) {
                if idle {
                    out.push(Action::Expire(me));
                } else if state.left[EARLY] > 0 {
                    out.push(Action::ExpireEarly(me));
                }
            }
            for kind in 0..self.bounds.faults.len() {
                if state.left[self.budget(rank, kind)] > 0 {
                    out.push(Action::Fault(me, kind as u8));
                }
            }
            if state.left[CRASHES] > 0 {
                out.push(Action::Crash(me));
            }
        }
    }

    /// Makes a choice.
    pub fn apply(&self, state: &mut State<T, A>, action: Action, bench: &mut Bench<T>) {
        let now = NOW;
        match action {
            Action::Deliver(at) => {
                let OnWire { from, to, what, payload } = state.wire.remove(at as usize);
                self.deliver(state, (from, to), what, &payload, bench);
            }
            Action::Lose(at) => {
                state.left[LOSSES] -= 1;
                let OnWire { from, to, what, .. } = state.wire.remove(at as usize);
                if let Thing::Packet(packet) = what {
                    self.lose(state, from, to, packet, bench);
                }
            }
            Action::Repeat(at) => {
                state.left[DUPLICATES] -= 1;
                let OnWire { from, to, what, payload } = state.wire[at as usize].clone();
                if let Thing::Packet(packet) = what {
                    let event = NicEvent::Packet { from, packet };
                    let _ = self.to_nic(state, to, event, &payload, bench);
                }
            }
            Action::Poll(rank, queue) => self.with(state, bench, |state, scratch, around| {
                state.procs[rank as usize].poll(now, queue, scratch, around);
            }),
            Action::Go(rank) | Action::Expire(rank) | Action::ExpireEarly(rank) => {
                if let Action::ExpireEarly(_) = action {
                    state.left[EARLY] -= 1;
                }
                self.with(state, bench, |state, scratch, around| {
                    state.procs[rank as usize].expired(now, scratch, around);
                });
            }
            Action::ExpireNic(rank) => {
                let to = state.procs[rank as usize].address;
                let _ = self.to_nic(state, to, NicEvent::Expired, &[], bench);
            }
            Action::Wake(rank) => self.with(state, bench, |state, scratch, around| {
                state.procs[rank as usize].woken(now, scratch, around);
            }),
            Action::Fault(rank, kind) => {
                let budget = self.budget(rank as usize, kind as usize);
                state.left[budget] -= 1;
                let (fault, _) = self.bounds.faults[kind as usize];
                bench.watch.struck(now, u32::from(rank), fault.word());
                let to = state.procs[rank as usize].address;
                let _ = self.to_nic(state, to, NicEvent::Fault(fault), &[], bench);
            }
            Action::Crash(rank) => {
                state.left[CRASHES] -= 1;
                state.dead |= 1 << rank;
                bench.watch.struck(now, u32::from(rank), "crash");
                let peer = state.procs[rank as usize].address;
                for other in 0..state.procs.len() {
                    if state.dead >> other & 1 == 0 {
                        let to = state.procs[other].address;
                        let _ = self.to_nic(state, to, NicEvent::Down { peer }, &[], bench);
                    }
                }
            }
        }
        self.rest(state);
    }

    fn deliver(
        &self,
        state: &mut State<T, A>,
        (from, to): (Address, Address),
        what: Thing<T>,
        payload: &[u8],
        bench: &mut Bench<T>,
    ) {
        match what {
            Thing::Packet(packet) if state.is_dead(to) => {
                let _ = self.to_nic(state, from, NicEvent::Down { peer: to }, &[], bench);
                self.lose(state, from, to, packet, bench);
            }
            what => {
                let mut receipt = None;
                if let Thing::Packet(packet) = &what {
                    receipt = T::Nic::receipt(packet);
                    if bench.watch.is_curious() {
                        let what = What::Came { from: proc_of(from), packet: packet.clone() };
                        bench.watch.note(NOW, proc_of(to), what);
                    }
                }
                let verdict = self.to_nic(state, to, receive(from, what), payload, bench);
                if let Some(receipt) = receipt {
                    let rejected = matches!(verdict, Verdict::Broken(_));
                    let what = Thing::Fate { receipt, rejected };
                    let payload = Payload::default();
                    state.wire.push(OnWire { from: to, to: from, what, payload });
                }
            }
        }
    }

    fn lose(
        &self,
        state: &mut State<T, A>,
        from: Address,
        to: Address,
        packet: Packet<T>,
        bench: &mut Bench<T>,
    ) {
        if bench.watch.is_curious() {
            let what = What::Lost { to: proc_of(to), packet: packet.clone() };
            bench.watch.note(NOW, proc_of(from), what);
        }
        let _ = self.to_nic(state, from, NicEvent::Lost { to, packet }, &[], bench);
    }

    fn to_nic(
        &self,
        state: &mut State<T, A>,
        to: Address,
        event: crate::simulated::OfNic<T>,
        payload: &[u8],
        bench: &mut Bench<T>,
    ) -> Verdict {
        if state.is_dead(to) {
            return Verdict::Stale;
        }
        let rank = proc_of(to) as usize;
        let mut verdict = Verdict::Stale;
        self.with(state, bench, |state, scratch, around| {
            verdict = state.procs[rank].nic_event(NOW, event, payload, scratch, around);
        });
        verdict
    }

    /// Steps a proc of `state`, with the rest of `state` around it.
    fn with(
        &self,
        state: &mut State<T, A>,
        bench: &mut Bench<T>,
        step: impl FnOnce(&mut State<T, A>, &mut Scratch<T>, &mut Still<'_, T>),
    ) {
        let Bench { scratch, watch } = bench;
        let mut wire = std::mem::take(&mut state.wire);
        std::mem::swap(&mut watch.ledgers, &mut state.ledgers);
        // What is odd without a fault is a matter of this path, not of those searched before.
        watch.expect_odd(state.left != self.budgets());
        let mut around = Still { fabric: &self.fabric, wire: &mut wire, watch };
        step(state, scratch, &mut around);
        std::mem::swap(&mut watch.ledgers, &mut state.ledgers);
        state.wire = wire;
    }

    /// Forgets what only history knows, where nothing is between two NICs.
    fn rest(&self, state: &mut State<T, A>) {
        for a in 1..state.procs.len() {
            for b in 0..a {
                let (left, right) = state.procs.split_at_mut(a);
                let (here, there) = (&mut right[0], &mut left[b]);
                let quiet = !state.wire.iter().any(|thing| {
                    matches!(&thing.what, Thing::Packet(packet) if T::Nic::ordered(packet))
                        && [thing.from, thing.to].contains(&here.address)
                        && [thing.from, thing.to].contains(&there.address)
                });
                let (x, y) = (here.address, there.address);
                if quiet && here.nic.rest(y, false) && there.nic.rest(x, false) {
                    here.nic.rest(y, true);
                    there.nic.rest(x, true);
                }
            }
        }
    }

    /// Whether nothing is left to happen but deadlines of what is settled.
    pub fn is_at_rest(&self, state: &State<T, A>) -> bool {
        state.wire.is_empty()
            && state.procs.iter().enumerate().all(|(rank, proc)| {
                state.dead >> rank & 1 == 1
                    || !proc.nic.any_ready()
                        && proc.nic.next_deadline().is_none()
                        && proc.wake == Time::NEVER
                        && proc.transport.settled()
                        && proc.transport.next_deadline().is_none()
                        && state.ledgers[rank].unanswered() == 0
            })
    }

    /// Checks what only holds at rest.
    pub fn check_at_rest(&self, state: &State<T, A>, bench: &mut Bench<T>) {
        for (rank, proc) in state.procs.iter().enumerate() {
            if state.dead >> rank & 1 == 1 {
                continue;
            }
            proc.check(NOW, &mut bench.watch);
            let died = |to: u32, _| state.dead >> to & 1 == 1;
            if let Err(rule) = state.ledgers[rank].check(died) {
                bench.watch.find(NOW, rank as u32, Kind::Safety, rule);
            }
        }
    }

    /// The canonical form of a state: equal exactly when what can follow is equal.
    pub fn key(&self, state: &State<T, A>, out: &mut Vec<u8>) {
        out.clear();
        for (rank, proc) in state.procs.iter().enumerate() {
            if state.dead >> rank & 1 == 1 {
                out.push(0xDD);
                continue;
            }
            proc.transport.encode(out);
            proc.nic.encode(out);
            encode(&(&proc.app, proc.wake, &proc.memory), out);
            state.ledgers[rank].encode(out);
        }
        out.extend(&state.left);
        // What is on the wire, as a set; but ordered packets of a pair in their order.
        let start = out.len();
        let mut things: Vec<Vec<u8>> = Vec::with_capacity(state.wire.len());
        for (at, thing) in state.wire.iter().enumerate() {
            let mut bytes = Vec::with_capacity(48);
            let before = state.wire[..at].iter();
            let follows = |other: &&OnWire<T>| other.from == thing.from && thing.must_follow(other);
            bytes.push(before.filter(follows).count() as u8);
            write_thing(thing, &mut bytes);
            things.push(bytes);
        }
        things.sort_unstable();
        things.iter().for_each(|thing| out.extend(thing));
        out.extend(((out.len() - start) as u32).to_le_bytes());
    }

    fn address_of(&self, rank: u8) -> Address {
        let rank = u32::from(rank);
        address(self.fabric.placement[rank as usize].0, rank, 1)
    }

    fn budgets(&self) -> Vec<u8> {
        let Bounds { losses, duplicates, crashes, early, faults, .. } = &self.bounds;
        let mut budgets = vec![*losses, *duplicates, *crashes, *early];
        self.apps.iter().for_each(|_| budgets.extend(faults.iter().map(|&(_, most)| most)));
        budgets
    }

    fn budget(&self, rank: usize, kind: usize) -> usize {
        EARLY + 1 + rank * self.bounds.faults.len() + kind
    }

    /// The first thing found wrong since last asked.
    pub fn found(&self, bench: &mut Bench<T>) -> Option<Found> {
        let first = bench.watch.found.first().cloned();
        bench.watch.found.clear();
        first
    }
}

impl<T: Simulated, A> State<T, A> {
    fn is_dead(&self, address: Address) -> bool {
        let rank = proc_of(address) as usize;
        rank >= self.procs.len() || self.dead >> rank & 1 == 1
    }

    /// The procs.
    #[must_use]
    pub fn procs(&self) -> &[Proc<T, A>] {
        &self.procs
    }
}

impl<T: Simulated> OnWire<T> {
    /// Whether this cannot arrive before `other`, which was sent before it.
    fn must_follow(&self, other: &Self) -> bool {
        match (&self.what, &other.what) {
            (Thing::Packet(this), Thing::Packet(that)) => {
                self.to == other.to && T::Nic::ordered(this) && T::Nic::ordered(that)
            }
            (Thing::Packet(_) | Thing::Fate { .. }, _) => false,
        }
    }
}

/// The canonical form of a thing on the wire.
fn write_thing<T: Simulated>(thing: &OnWire<T>, out: &mut Vec<u8>) {
    encode(&(thing.from, thing.to), out);
    out.extend(&thing.payload);
    match &thing.what {
        Thing::Packet(packet) => encode(&(0_u8, packet), out),
        Thing::Fate { receipt, rejected } => encode(&(1_u8, receipt, rejected), out),
    }
}

/// What a NIC hears when a thing from `from` gets to it.
fn receive<T: Simulated>(from: Address, what: Thing<T>) -> crate::simulated::OfNic<T> {
    match what {
        Thing::Packet(packet) => NicEvent::Packet { from, packet },
        Thing::Fate { receipt, rejected: false } => NicEvent::Delivered { receipt },
        Thing::Fate { receipt, rejected: true } => NicEvent::Rejected { receipt },
    }
}

/// The surroundings while time stands still.
struct Still<'a, T: Simulated> {
    fabric: &'a Fabric<T>,
    wire: &'a mut Vec<OnWire<T>>,
    watch: &'a mut Watch<T>,
}

impl<T: Simulated> Around<T> for Still<'_, T> {
    fn procs(&self) -> u32 {
        self.fabric.placement.len() as u32
    }

    fn carry(&mut self, _: Time, from: Address, to: Address, packet: Packet<T>, payload: Payload) {
        if self.watch.is_curious() {
            let what = What::Sent { to: proc_of(to), packet: packet.clone() };
            self.watch.note(NOW, proc_of(from), what);
        }
        self.wire.push(OnWire { from, to, what: Thing::Packet(packet), payload });
    }

    fn card(&mut self, now: Time, peer: ProcName) -> Answer {
        let node = self.fabric.placement.get(peer.rank as usize);
        let card = node.ok_or(Reason::NoAddress).and_then(|node| {
            let card =
                Card { transport: T::NUMBER, owner: peer, address: address(node.0, peer.rank, 1) };
            let parsed = Card::parse(&card.encode(), T::NUMBER, peer);
            parsed.map(|card| card.address).map_err(|_| Reason::BadAddress)
        });
        Answer { at: now, card }
    }

    fn strike(&mut self, _: Time, _: u32, _: &Op<T>) -> Option<Fault<T>> {
        None
    }

    fn watch(&mut self) -> &mut Watch<T> {
        self.watch
    }
}

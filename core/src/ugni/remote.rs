//! Operations on remote memory: whose turn it is, where the peer is, and who is told.
//!
//! They need the peer's address and nothing else: no connection, no mailbox. As many are out as
//! the queue of their completions has entries, so it cannot overrun.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::apart::Unused;
use crate::id::{EpId, FragId, ProcName, RegionId};
use crate::machine::{Effect, Fault, Notice, Phase, Reason, Verdict, Violation, ensure};
use crate::nic::Address;
use crate::pending::{List, Slab};
use crate::registration::{Limits, Next, Registrations};
use crate::rma::{OWN_REGIONS, is_aligned, is_within};
use crate::sink::Sink;
use crate::time::{Span, Time};

use super::access::{Access, Call, End, Engine, Event, Outcome, Refusal, State};
use super::{Module, Op, tell};

/// What a module keeps for remote memory. Most have no use for it, and it lies apart.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Remote {
    pub(super) registrations: Registrations,
    /// The device was asked to register and has not answered.
    asking: bool,
    routes: BTreeMap<EpId, Route>,
    /// Peers whose address was asked for, and when to ask again.
    asked: BTreeSet<(Time, EpId)>,
    waiting: Slab<Job>,
    /// Those that were posted and are not over, from number `first` on.
    out: VecDeque<Option<Job>>,
    first: u32,
    /// How many of them there are, and how many of these are for the block transfer engine.
    used: u32,
    bulk: u32,
    /// Those of them that are to be posted again, by time.
    resting: VecDeque<(Time, u32)>,
    /// Peers whose operations may be posted, oldest first.
    work: VecDeque<EpId>,
    /// Operations that have to be given up, and why.
    doomed: VecDeque<(List, Reason)>,
}

/// The way to one peer's memory.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Route {
    reach: Reach,
    waiting: List,
    listed: bool,
    /// An interrupt waits to be raised there.
    wakes: bool,
}

/// What is known of where a peer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Reach {
    /// Nothing; nobody has asked.
    #[default]
    Unknown,
    /// It was asked for.
    Asked {
        /// When to ask again.
        until: Time,
        /// How often that was done.
        tries: u8,
    },
    /// Here.
    Known(Address),
}

/// An operation, and for whom it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Job {
    ep: EpId,
    owner: Owner,
    access: Access,
}

/// For whom an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Owner {
    /// The application, which gave it this name.
    User(FragId),
    /// A message that the peer has announced: its number, and the buffer that it goes to.
    Fetch {
        /// Of the announcement.
        number: u32,
        /// The buffer.
        buffer: u16,
    },
    /// The peer, which gave it this name.
    Give(FragId),
    /// Nobody: it raises an interrupt.
    Wake,
}

impl Module {
    fn limits(&self) -> Limits {
        let (most, reserve) = (self.config.regions_max, self.config.regions_reserve);
        Limits { most, reserve, buffers: u64::from(self.mailboxes.slabs()) }
    }

    // ---- registrations -------------------------------------------------------------------

    pub(super) fn register(
        &mut self,
        now: Time,
        region: RegionId,
        len: u32,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        if region.0 >= OWN_REGIONS || len == 0 {
            return tell(fx, Notice::Unregistered { region, reason: Reason::NotRegistered });
        }
        self.want_region(now, region, len, fx);
    }

    pub(super) fn want_region(
        &mut self,
        now: Time,
        region: RegionId,
        len: u32,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        self.remote.registrations.want(region, len);
        self.go_on_registering(now, fx);
    }

    pub(super) fn deregister(&mut self, region: RegionId, fx: &mut impl Sink<Effect<Op>>) {
        let known = region.0 < OWN_REGIONS && self.remote.registrations.give_back(region);
        let reason = if known { Reason::Closed } else { Reason::NotRegistered };
        tell(fx, Notice::Unregistered { region, reason });
    }

    pub(super) fn mem_registered(
        &mut self,
        now: Time,
        ok: bool,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        if !core::mem::take(&mut self.remote.asking) {
            return Verdict::Broken(Fault::Device("a registration that nobody asked for"));
        }
        if let Some(next) = self.remote.registrations.answered(ok) {
            self.registration(now, next, fx);
        }
        self.go_on_registering(now, fx);
        Verdict::Taken
    }

    /// Asks the device for what is wanted, one region at a time.
    pub(super) fn go_on_registering(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        while !self.remote.asking && fx.room() > super::EFFECTS_MAX / 2 {
            let limits = self.limits();
            let Some(next) = self.remote.registrations.next(limits) else { break };
            self.registration(now, next, fx);
        }
    }

    fn registration(&mut self, now: Time, next: Next, fx: &mut impl Sink<Effect<Op>>) {
        match next {
            Next::Granted(region) if region.0 >= OWN_REGIONS => {
                self.pool_is_there(now, region, true);
            }
            Next::Refused(region) if region.0 >= OWN_REGIONS => {
                self.pool_is_there(now, region, false);
            }
            Next::Granted(region) => tell(fx, Notice::Registered { region }),
            Next::Refused(region) => {
                let reason = Reason::NoRegistrations;
                tell(fx, Notice::Unregistered { region, reason });
            }
            Next::Evict(region) => fx.push(Effect::Op(Op::MemDeregister { region })),
            Next::Ask(region, len) => {
                self.remote.asking = true;
                fx.push(Effect::Op(Op::MemRegister { region, len }));
            }
        }
    }

    /// Whether a slab of mailboxes may be registered: if all places are taken, something that
    /// nobody needs makes way.
    pub(super) fn has_room_for_a_slab(&mut self, fx: &mut impl Sink<Effect<Op>>) -> bool {
        self.remote.registrations.has_room(self.limits()) || self.make_way(fx)
    }

    /// Deregisters something that nobody needs, if there is such a thing.
    pub(super) fn make_way(&mut self, fx: &mut impl Sink<Effect<Op>>) -> bool {
        if !self.remote.is_used() {
            return false;
        }
        let Some(region) = self.remote.registrations.evict() else { return false };
        fx.push(Effect::Op(Op::MemDeregister { region }));
        true
    }

    // ---- from the command to the post ----------------------------------------------------

    /// The application wants `access` to the memory of `to`.
    pub(super) fn access(
        &mut self,
        now: Time,
        to: ProcName,
        frag: FragId,
        access: Access,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let refuse = |phase, reason| Notice::Failed { frag, peer: to, phase, reason };
        let ep = if to == self.me.name { Some(SELF) } else { self.endpoint(to) };
        let Some(ep) = ep else { return tell(fx, refuse(Phase::Idle, Reason::NoEndpoints)) };
        let Access { local, remote, len, call, .. } = access;
        let covered = self.remote.registrations.covers(local, len);
        let reason = match call {
            Call::Put if access.engine(&self.config) == Engine::Fma => None,
            Call::Put | Call::Get if !covered => Some(Reason::NotRegistered),
            Call::Put | Call::Get | Call::Wake => None,
            Call::Atomic { amo, .. } => {
                (!remote.offset.is_multiple_of(amo.width())).then_some(Reason::Misaligned)
            }
        };
        let waiting = self.remote.routes.get(&ep).map_or(0, |route| route.waiting.len());
        let full = u64::from(waiting) >= self.config.rdma_waiting_max;
        if let Some(reason) = reason.or(full.then_some(Reason::TooMany)) {
            return tell(fx, refuse(self.phase_of(ep), reason));
        }
        // Nothing to get is there already.
        if call == Call::Get && len == 0 {
            return tell(fx, Notice::Done { frag, value: 0 });
        }
        let whole = is_aligned(local, remote, len, 4);
        if call == Call::Get && (!whole || u64::from(len) > self.config.get_max) && ep != SELF {
            return self.ask_for_a_put(now, ep, frag, access, fx);
        }
        self.enqueue(now, ep, Owner::User(frag), access, fx);
    }

    /// Posts an operation when its turn comes.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        ep: EpId,
        owner: Owner,
        access: Access,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let remote = &mut *self.remote;
        let route = remote.routes.entry(ep).or_default();
        remote.waiting.push_back(&mut route.waiting, Job { ep, owner, access });
        match route.reach {
            Reach::Unknown if ep == SELF => {
                route.reach = Reach::Known(self.me.address);
                remote.list(ep);
            }
            Reach::Unknown => {
                let until = now + Span(self.config.resolve_timeout);
                route.reach = Reach::Asked { until, tries: 0 };
                remote.asked.insert((until, ep));
                fx.push(Effect::Op(Op::Resolve { ep, peer: self.name(ep) }));
            }
            Reach::Asked { .. } => {}
            Reach::Known(_) => remote.list(ep),
        }
    }

    /// Raises an interrupt at a peer that was just sent a message, and may sleep.
    pub(super) fn wake_peer(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let route = self.remote.routes.entry(ep).or_default();
        // One that is not posted yet is late enough for this message too.
        if !core::mem::replace(&mut route.wakes, true) {
            let nowhere = crate::rma::Place::default();
            let access = Access::new(Call::Wake, nowhere, nowhere, 0);
            self.enqueue(now, ep, Owner::Wake, access, fx);
        }
    }

    /// The modex has answered.
    pub(super) fn reached(&mut self, ep: EpId, card: Result<Address, Reason>) -> Verdict {
        if !self.remote.is_used() {
            return Verdict::Stale;
        }
        let Some(route) = self.remote.routes.get_mut(&ep) else { return Verdict::Stale };
        let Reach::Asked { until, .. } = route.reach else { return Verdict::Stale };
        match card {
            Ok(address) => {
                route.reach = Reach::Known(address);
                self.remote.asked.remove(&(until, ep));
                self.remote.list(ep);
            }
            Err(reason) => self.remote.give_up(ep, reason),
        }
        Verdict::Taken
    }

    /// Posts what may be, gives up what must be, and goes on with registrations.
    pub(super) fn work_remotely(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        self.go_on_registering(now, fx);
        while fx.room() > super::EFFECTS_MAX / 2 {
            let Remote { doomed, waiting, .. } = &mut *self.remote;
            let Some((list, reason)) = doomed.front_mut() else { break };
            match waiting.pop_front(list) {
                Some(job) => {
                    let reason = *reason;
                    self.tell_owner(now, job, Outcome::Never(reason), fx);
                }
                None => {
                    doomed.pop_front();
                }
            }
        }
        while fx.room() > super::EFFECTS_MAX / 2 && self.remote.may_post(&self.config) {
            let Remote { work, routes, waiting, .. } = &mut *self.remote;
            let Some(ep) = work.pop_front() else { break };
            let Some(route) = routes.get_mut(&ep) else { continue };
            route.listed = false;
            let Some(mut job) = waiting.pop_front(&mut route.waiting) else { continue };
            let Reach::Known(to) = route.reach else { continue };
            if job.owner == Owner::Wake {
                route.wakes = false;
            }
            if !route.waiting.is_empty() {
                self.remote.list(ep);
            }
            let _ = job.access.step(now, Event::Turn, &self.config);
            if let Some(region) = job.access.memory() {
                self.remote.registrations.pin(region);
            }
            let engine = job.access.engine(&self.config);
            self.remote.used += 1;
            self.remote.bulk += u32::from(engine == Engine::Bte);
            let id = self.remote.first.wrapping_add(self.remote.out.len() as u32);
            fx.push(Effect::Op(post(to, id, &job.access, engine)));
            self.remote.out.push_back(Some(job));
        }
    }

    // ---- from the post to the answer -----------------------------------------------------

    pub(super) fn rdma_refused(
        &mut self,
        now: Time,
        id: u32,
        why: Refusal,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        self.rdma_event(now, id, Event::Refused(why), fx)
    }

    pub(super) fn rdma_done(
        &mut self,
        now: Time,
        id: u32,
        end: End,
        found: u64,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        #[cfg(feature = "mutants")]
        if self.mutant == super::Mutant::RepeatsAtomics && end == End::Recoverable {
            // A refusal leaves no doubt, and this is none.
            return self.rdma_refused(now, id, Refusal::Resource, fx);
        }
        if end == End::Gone
            && let Some(Job { ep, .. }) = self.remote.job(id).copied()
        {
            // The next life is elsewhere.
            self.remote.forget(now, ep);
        }
        self.rdma_event(now, id, Event::Ended(end, found), fx)
    }

    fn rdma_event(
        &mut self,
        now: Time,
        id: u32,
        event: Event,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        let Some(job) = self.remote.job(id) else {
            return Verdict::Broken(Fault::Device("a completion of an operation nobody posted"));
        };
        let (verdict, outcome) = job.access.step(now, event, &self.config);
        let job = *job;
        match outcome {
            Outcome::Wait => {
                if let State::Resting { until } = job.access.state {
                    self.remote.rest(until, id);
                }
            }
            Outcome::Post => {
                let reach = self.remote.routes.get(&job.ep).map(|route| route.reach);
                let Some(Reach::Known(to)) = reach else {
                    // It was reached once: where its next life is does not matter to this one.
                    let (_, over) = self.give_job_up(now, id);
                    self.retire(now, id, over, fx);
                    return verdict;
                };
                let engine = job.access.engine(&self.config);
                fx.push(Effect::Op(post(to, id, &job.access, engine)));
            }
            Outcome::Done(_) | Outcome::Never(_) | Outcome::Maybe(_) => {
                self.retire(now, id, outcome, fx);
            }
        }
        verdict
    }

    fn give_job_up(&mut self, now: Time, id: u32) -> (Verdict, Outcome) {
        let config = &self.config;
        let gone = Event::Ended(End::Gone, 0);
        match self.remote.job(id) {
            Some(job) => job.access.step(now, gone, config),
            None => (Verdict::Stale, Outcome::Wait),
        }
    }

    /// An operation is over.
    fn retire(&mut self, now: Time, id: u32, outcome: Outcome, fx: &mut impl Sink<Effect<Op>>) {
        let Some(job) = self.remote.take(id) else { return };
        self.remote.bulk -= u32::from(job.access.engine(&self.config) == Engine::Bte);
        if let Some(region) = job.access.memory() {
            self.remote.registrations.unpin(region);
        }
        self.tell_owner(now, job, outcome, fx);
    }

    fn tell_owner(
        &mut self,
        now: Time,
        job: Job,
        outcome: Outcome,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let ok = matches!(outcome, Outcome::Done(_));
        match job.owner {
            Owner::User(frag) => {
                let (peer, phase) = (self.peer_name(job.ep), self.phase_of(job.ep));
                match outcome {
                    Outcome::Done(value) => tell(fx, Notice::Done { frag, value }),
                    Outcome::Never(reason) => {
                        tell(fx, Notice::Failed { frag, peer, phase, reason });
                    }
                    Outcome::Maybe(reason) => {
                        tell(fx, Notice::Unknown { frag, peer, phase, reason });
                    }
                    Outcome::Wait | Outcome::Post => {}
                }
            }
            Owner::Fetch { number, buffer } => self.fetched(job.ep, number, buffer, ok),
            Owner::Give(frag) => self.gave(now, job.ep, frag, ok, fx),
            // A wake-up that is lost is late, no more: its message is there.
            Owner::Wake => {}
        }
    }

    fn peer_name(&self, ep: EpId) -> ProcName {
        if ep == SELF { self.me.name } else { self.name(ep) }
    }

    // ---- time ----------------------------------------------------------------------------

    pub(super) fn remote_deadline(&self) -> Option<Time> {
        let remote = &self.remote;
        let registers = remote.registrations.has_work() && !remote.asking;
        if registers || !remote.doomed.is_empty() || remote.may_post(&self.config) {
            return Some(Time::ZERO);
        }
        let asked = remote.asked.first().map(|&(at, _)| at);
        let rested = remote.resting.front().map(|&(at, _)| at);
        asked.into_iter().chain(rested).min()
    }

    pub(super) fn remote_expired(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        // As many as there are, and no more: a span of zero must not hold everybody up.
        for _ in 0..self.remote.resting.len() {
            let Some(&(at, id)) = self.remote.resting.front() else { break };
            if at > now || fx.room() <= super::EFFECTS_MAX / 2 {
                break;
            }
            self.remote.resting.pop_front();
            let _ = self.rdma_event(now, id, Event::Expired, fx);
        }
        for _ in 0..self.remote.asked.len() {
            let Some(&(at, ep)) = self.remote.asked.first() else { break };
            if at > now || fx.room() <= super::EFFECTS_MAX / 2 {
                break;
            }
            self.ask_again(now, ep, fx);
        }
    }

    /// The modex has not said where a peer is, or it was somewhere else.
    fn ask_again(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let Some(route) = self.remote.routes.get_mut(&ep) else { return };
        let Reach::Asked { until, tries } = route.reach else { return };
        if u64::from(tries) >= self.config.connect_tries {
            return self.remote.give_up(ep, Reason::NoAddress);
        }
        let doublings = u32::from(tries).min(self.config.backoff_doublings as u32);
        let next = now + Span(self.config.resolve_timeout).doubled(doublings);
        route.reach = Reach::Asked { until: next, tries: tries + 1 };
        self.remote.asked.remove(&(until, ep));
        self.remote.asked.insert((next, ep));
        fx.push(Effect::Op(Op::Resolve { ep, peer: self.name(ep) }));
    }

    // ---- looks from outside --------------------------------------------------------------

    pub(super) fn is_remotely_idle(&self) -> bool {
        let remote = &self.remote;
        remote.work.is_empty() && remote.doomed.is_empty() && !remote.registrations.has_work()
    }

    pub(super) fn is_remotely_settled(&self) -> bool {
        let remote = &self.remote;
        remote.used == 0 && remote.waiting.used() == 0 && !remote.registrations.has_work()
    }

    pub(super) fn check_remote(&self) -> Result<(), Violation> {
        let remote = &self.remote;
        remote.registrations.check(self.limits())?;
        let out = remote.out.iter().flatten();
        ensure(
            u64::from(remote.used) <= self.config.rdma_cq
                && remote.used as usize == out.clone().count(),
            "no more operations are out than their queue has entries",
        )?;
        let bulk = out.filter(|job| job.access.engine(&self.config) == Engine::Bte).count();
        ensure(remote.bulk as usize == bulk, "the block transfers that are out are counted")?;
        let listed: u32 = remote.routes.values().map(|route| route.waiting.len()).sum();
        let doomed: u32 = remote.doomed.iter().map(|(list, _)| list.len()).sum();
        ensure(listed + doomed == remote.waiting.used(), "every operation is in one list")?;
        let stuck = remote.routes.values().any(|route| {
            !route.waiting.is_empty()
                && !route.listed
                && !matches!(route.reach, Reach::Asked { .. })
        });
        ensure(!stuck, "an operation that waits has a turn or an address to come")
    }
}

/// The endpoint that stands for this proc: its own memory is reached through its own NIC.
const SELF: EpId = EpId(u32::MAX);

/// The op that posts an operation.
fn post(to: Address, id: u32, access: &Access, engine: Engine) -> Op {
    let Access { call, local, remote, len, .. } = *access;
    match call {
        Call::Put => Op::Put { to, id, local, remote, len, engine },
        Call::Get => Op::Get { to, id, local, remote, len, engine },
        Call::Atomic { amo, operand, second } => {
            Op::Atomic { to, id, amo, remote, operand, second }
        }
        Call::Wake => Op::Wake { to, id },
    }
}

impl Unused for Remote {
    const UNUSED: &'static Remote = &Remote {
        registrations: Registrations::new(),
        asking: false,
        routes: BTreeMap::new(),
        asked: BTreeSet::new(),
        waiting: Slab::new(),
        out: VecDeque::new(),
        first: 0,
        used: 0,
        bulk: 0,
        resting: VecDeque::new(),
        work: VecDeque::new(),
        doomed: VecDeque::new(),
    };
}

impl Remote {
    fn list(&mut self, ep: EpId) {
        if let Some(route) = self.routes.get_mut(&ep)
            && !route.listed
            && !route.waiting.is_empty()
        {
            route.listed = true;
            self.work.push_back(ep);
        }
    }

    /// Whether the first of those that wait may be posted now.
    fn may_post(&self, config: &super::Config) -> bool {
        let first = self.work.front().and_then(|ep| self.routes.get(ep));
        let Some(job) = first.map(|route| self.waiting.front(&route.waiting)) else {
            return false;
        };
        let bulk = job.is_some_and(|job| job.access.engine(config) == Engine::Bte);
        u64::from(self.used) < config.rdma_cq && !(bulk && u64::from(self.bulk) >= config.bte_max)
    }

    fn job(&mut self, id: u32) -> Option<&mut Job> {
        self.out.get_mut(id.wrapping_sub(self.first) as usize)?.as_mut()
    }

    fn take(&mut self, id: u32) -> Option<Job> {
        let job = self.out.get_mut(id.wrapping_sub(self.first) as usize)?.take()?;
        self.used -= 1;
        while self.out.front().is_some_and(Option::is_none) {
            self.out.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(job)
    }

    fn rest(&mut self, until: Time, id: u32) {
        let at = self.resting.partition_point(|&(other, _)| other <= until);
        self.resting.insert(at, (until, id));
    }

    /// The peer is not where it was.
    fn forget(&mut self, now: Time, ep: EpId) {
        let Some(route) = self.routes.get_mut(&ep) else { return };
        if ep == SELF || !matches!(route.reach, Reach::Known(_)) {
            return;
        }
        self.work.retain(|&other| other != ep);
        route.listed = false;
        route.reach = Reach::Unknown;
        if !route.waiting.is_empty() {
            // Due at once: asking is for those who have room for it.
            route.reach = Reach::Asked { until: now, tries: 0 };
            self.asked.insert((now, ep));
        }
    }

    fn give_up(&mut self, ep: EpId, reason: Reason) {
        let Some(route) = self.routes.get_mut(&ep) else { return };
        if let Reach::Asked { until, .. } = route.reach {
            self.asked.remove(&(until, ep));
        }
        route.reach = Reach::Unknown;
        route.wakes = false;
        let list = core::mem::take(&mut route.waiting);
        self.doomed.push_back((list, reason));
    }

    /// The logical state, in canonical order.
    pub(super) fn encode(&self, out: &mut impl Sink<u8>) {
        use crate::encode::encode;
        encode(&(&self.registrations, self.asking, &self.out, self.first, &self.resting), out);
        for (ep, route) in &self.routes {
            encode(&(ep, route.reach, route.listed, route.wakes), out);
            self.waiting.iter(&route.waiting).for_each(|job| encode(job, out));
            out.push(0xFF);
        }
        encode(&self.work, out);
        for (list, reason) in &self.doomed {
            encode(reason, out);
            self.waiting.iter(list).for_each(|job| encode(job, out));
            out.push(0xFE);
        }
    }
}

impl Module {
    /// Whether a place of ours may be given to a peer that asks for it.
    pub(super) fn may_give(&self, from: crate::rma::Place, len: u32) -> bool {
        from.region.0 < OWN_REGIONS
            && is_within(from.offset, len, u32::MAX)
            && self.remote.registrations.covers(from, len)
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;

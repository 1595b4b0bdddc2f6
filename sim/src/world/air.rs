//! What is between the procs: packets on links, the modex, and chance.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_core::modex::{Card, CardBytes};
use selvedge_core::pending::Slab;
use selvedge_core::{Address, Load, Nic, NodeId, ProcName, Reason, Span, Time};

use crate::draw::{Draws, Purpose};
use crate::fabric::{Fabric, Routing, Strategy};
use crate::fault::{Harm, Rule, What as Wrong, When};
use crate::link::{Crossing, Links};
use crate::memory::Payload;
use crate::proc::{Answer, Around};
use crate::queue::Queue;
use crate::simulated::{Fault, Op, Packet, Receipt, Simulated};
use crate::topology::{At, Down, LinkId, Topology};
use crate::trace::{What, address, life_of, proc_of};
use crate::watch::Watch;

use super::active::Active;

/// The changing part of the fabric.
#[derive(Clone, Debug)]
pub(super) struct Air<T: Simulated> {
    pub(super) queue: Queue<Item>,
    pub(super) flights: Vec<Flight<T>>,
    free: Vec<u32>,
    /// The bytes that packets bring, of those that bring some.
    payloads: BTreeMap<u32, Payload>,
    /// News that waits for the senders' hosts, in the lists of [`Host`](super::Host).
    pub(super) news: Slab<News<Receipt<T>>>,
    /// What is known of the few packets that do not simply go their way.
    asides: BTreeMap<u32, Aside>,
    links: Links,
    /// Per node, until when each of the movers of its NIC is busy.
    movers: Vec<[Time; 3]>,
    pub(super) down: Down,
    pub(super) rules: Vec<Active>,
    /// Rules that bear on packets, and faults of NICs that have a rate and strike ops: few or
    /// none, looked at often.
    pub(super) packet_rules: Vec<u32>,
    op_rules: Vec<(u32, Fault<T>)>,
    pub(super) modex_rules: Vec<u32>,
    pub(super) cards: Vec<CardBytes>,
    /// Events scheduled so far: the tie-breaker.
    seq: u64,
    /// For `pct`: who has become the last, latest last.
    demoted: Vec<u32>,
    /// What struck since the last event, to be told.
    pub(super) struck: Vec<(u32, u32)>,
}

/// Something that is to happen. Small: thousands wait in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Turn(u32),
    Flight(u32),
    Rule {
        rule: u32,
        on: bool,
    },
    /// Of the proc with this instance of its NIC, which says who it was and in which life.
    Obituary(u32),
}

/// A packet on its way, and afterwards, if it did not get through, the news of it.
///
/// One cache line: a world of a thousand hosts has thousands on their way, and looks at each
/// at every hop.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Flight<T: Simulated> {
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) packet: Option<Packet<T>>,
    pub(super) stage: Stage,
}

/// What its sender will know of a packet that arrived. Nobody waits for it, so it is no event of
/// its own: it lies here until the sender's host looks, and until then changes nothing that
/// anybody could see.
#[derive(Clone, Copy, Debug)]
pub(super) struct News<R> {
    /// When it is there.
    pub(super) due: Time,
    pub(super) receipt: R,
    /// Which life of the sender it is for.
    pub(super) instance: u32,
    pub(super) rejected: bool,
}

/// What stands beside a packet, if it has to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Aside {
    /// By how much a fault delays it.
    late: Span,
    /// The router that it goes by first, where it does not take a shortest way.
    by: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// Its head is at the end of a link. An echo is a copy that the fabric made: nobody waits
    /// for news of it. With `aside`, more stands beside.
    Hop { previous: LinkId, slowest: Span, echo: bool, aside: bool },
    /// It is at the NIC that it is for.
    Arrive { echo: bool },
    /// It did not get through.
    Lost,
    /// Nobody lives there.
    Void,
}

impl<T: Simulated> Air<T> {
    pub(super) fn new(fabric: &Fabric<T>) -> Self {
        let which = |bears: fn(&Wrong<T>) -> bool| {
            let rules = fabric.plan.0.iter().enumerate();
            rules.filter(|(_, rule)| bears(&rule.what)).map(|(at, _)| at as u32).collect()
        };
        Air {
            queue: Queue::new(),
            flights: Vec::new(),
            free: Vec::new(),
            payloads: BTreeMap::new(),
            news: Slab::new(),
            asides: BTreeMap::new(),
            links: Links::new(&fabric.topology, fabric.timing.queue_bytes),
            movers: vec![[Time::ZERO; 3]; fabric.topology.nodes() as usize],
            down: Down::default(),
            rules: Active::all(&fabric.plan),
            packet_rules: which(|what| matches!(what, Wrong::Packets { .. } | Wrong::Partition(_))),
            op_rules: (0..)
                .zip(&fabric.plan.0)
                .filter_map(|(at, rule)| {
                    let (Wrong::Nic(fault), When::Rate { .. }) = (&rule.what, &rule.when) else {
                        return None;
                    };
                    Some((at, *fault))
                })
                .collect(),
            modex_rules: which(|what| {
                matches!(what, Wrong::ModexMissing | Wrong::ModexLate(_) | Wrong::ModexStale)
            }),
            cards: Vec::with_capacity(fabric.placement.len()),
            seq: 0,
            demoted: Vec::new(),
            struck: Vec::new(),
        }
    }

    // ---- time ----------------------------------------------------------------------------

    /// Schedules something that concerns no proc in particular.
    pub(super) fn schedule(&mut self, at: Time, item: Item) {
        self.seq += 1;
        self.queue.push(at, self.seq, item);
    }

    /// Schedules something at `rank`, in the order that the strategy gives.
    #[inline]
    pub(super) fn schedule_for(&mut self, fabric: &Fabric<T>, rank: u32, at: Time, item: Item) {
        self.seq += 1;
        let tie = match fabric.strategy {
            Strategy::Fifo => self.seq,
            Strategy::Random { .. } => fabric.draws.draw(Purpose::Tie, 0, self.seq),
            Strategy::Pct { .. } => self.rank_of(&fabric.draws, rank) << 40 | self.seq,
        };
        self.queue.push(at, tie, item);
    }

    /// `at`, and as much later as the strategy wants it for `rank`.
    #[inline]
    pub(super) fn late(&mut self, fabric: &Fabric<T>, rank: u32, at: Time) -> Time {
        match fabric.strategy {
            Strategy::Fifo => at,
            Strategy::Random { jitter } => {
                let counter = self.seq;
                at + Span(fabric.draws.below(Purpose::Jitter, 0, counter, jitter.0 + 1))
            }
            Strategy::Pct { depth, steps, jitter } => {
                let change = (1..depth).any(|nth| {
                    fabric.draws.below(Purpose::Pct, u32::MAX, u64::from(nth), steps) == self.seq
                });
                if change {
                    self.demoted.retain(|&other| other != rank);
                    self.demoted.push(rank);
                }
                let last = self.rank_of(&fabric.draws, rank);
                at + Span(((u128::from(jitter.0) * u128::from(last)) >> 16) as u64)
            }
        }
    }

    /// The place of a proc among all, for `pct`: 16 bits, small is first.
    fn rank_of(&self, draws: &Draws, rank: u32) -> u64 {
        match self.demoted.iter().position(|&other| other == rank) {
            Some(at) => 0xFF00 + (at as u64).min(0xFF),
            None => draws.below(Purpose::Pct, rank, 0, 0xFF00),
        }
    }

    // ---- flights -------------------------------------------------------------------------

    /// The router that a packet goes by, if it does not take a shortest way.
    fn detour(&mut self, fabric: &Fabric<T>, now: Time, from: Address, to: Address) -> Option<u32> {
        let adapts = match fabric.routing {
            Routing::Minimal => return None,
            Routing::Valiant => false,
            Routing::Adaptive => true,
        };
        let topology = &fabric.topology;
        let [here, there] = [from, to].map(|end| topology.router_of(NodeId(end.nic)));
        let mut counter = self.seq * 8;
        let mut draw = |below| {
            counter += 1;
            fabric.draws.below(Purpose::Route, proc_of(from), counter, below)
        };
        if !adapts {
            return topology.detour(here, there, draw);
        }
        let others: [_; Routing::CANDIDATES - 1] = [
            topology.another(here, there, &mut draw),
            topology.detour(here, there, &mut draw),
            topology.detour(here, there, &mut draw),
        ];
        let mut best = (self.wait(topology, now, here, there), None);
        for by in others.into_iter().flatten() {
            let wait = self.wait(topology, now, here, by);
            let wait = wait + self.wait(topology, now, by, there);
            if wait < best.0 {
                best = (wait, Some(by));
            }
        }
        best.1
    }

    /// How long a head would take from router to router with what waits there now.
    fn wait(&mut self, topology: &Topology, now: Time, mut from: u32, to: u32) -> Span {
        let mut wait = Span::ZERO;
        while from != to {
            let Some(link) = topology.towards(from, to, &mut self.down) else {
                return Span::FOREVER;
            };
            let At::Router(next) = topology.enters(link) else { return Span::FOREVER };
            let backlog = self.links.free_at(link).max(now).since(now);
            wait = wait + topology.wire(link).latency + backlog;
            from = next;
        }
        wait
    }

    /// A packet leaves its NIC.
    fn launch(
        &mut self,
        fabric: &Fabric<T>,
        now: Time,
        (from, to): (Address, Address),
        (packet, payload): (Packet<T>, Payload),
        late: Span,
        echo: bool,
    ) {
        let load = T::load(&fabric.setup, &packet);
        if T::Nic::is_light(&packet) && self.down.is_clear() && self.packet_rules.is_empty() {
            // Nothing on its way can stop it, and it stops nobody: one event for the whole way.
            let to_node = (NodeId(from.nic), NodeId(to.nic));
            let arrives = now + fabric.quiet(to_node.0, to_node.1, load.wire) + late;
            let stage = Stage::Arrive { echo };
            let at = self.put(Flight { from, to, packet: Some(packet), stage });
            self.load(at, payload);
            let arrives = self.late(fabric, proc_of(to), arrives);
            return self.schedule_for(fabric, proc_of(to), arrives, Item::Flight(at));
        }
        let inject = fabric.topology.inject(NodeId(from.nic));
        let (start, lasts) = self.departure(fabric, now, from, &load);
        let crossing = self.cross(&fabric.topology, inject, None, start, &load);
        let (previous, slowest) = (inject, crossing.serialisation.max(lasts));
        let aside = late > Span::ZERO;
        let stage = Stage::Hop { previous, slowest, echo, aside };
        let at = self.put(Flight { from, to, packet: Some(packet), stage });
        self.load(at, payload);
        if aside {
            self.asides.insert(at, Aside { late, by: None });
        }
        if self.down.is_up(inject) {
            self.schedule_for(fabric, proc_of(to), crossing.arrives, Item::Flight(at));
        } else {
            self.lose(fabric, now, at, Stage::Lost);
        }
    }

    /// When the head of a packet is before the link of its node, and how long its mover takes
    /// for the rest. Each mover of a NIC does one thing after another.
    #[inline]
    fn departure(
        &mut self,
        fabric: &Fabric<T>,
        now: Time,
        from: Address,
        load: &Load,
    ) -> (Time, Span) {
        let (start, lasts) = fabric.timing.moving(load);
        let busy = &mut self.movers[from.nic as usize][load.mover as usize];
        let begins = (now + start).max(*busy);
        *busy = begins + lasts;
        (begins + fabric.timing.end(), lasts)
    }

    /// A train goes over a link, and the responses to it over the other direction.
    #[inline]
    fn cross(
        &mut self,
        topology: &Topology,
        link: LinkId,
        previous: Option<LinkId>,
        now: Time,
        load: &Load,
    ) -> Crossing {
        if load.back > 0 {
            self.links.respond(topology, link, now, load.back);
        }
        self.links.cross(topology, link, previous, now, load.wire)
    }

    /// A packet does not even leave.
    fn drop(
        &mut self,
        fabric: &Fabric<T>,
        now: Time,
        (from, to): (Address, Address),
        packet: Packet<T>,
        stage: Stage,
    ) {
        let flight = Flight { from, to, packet: Some(packet), stage };
        let at = self.put(flight);
        self.lose(fabric, now, at, stage);
    }

    fn put(&mut self, flight: Flight<T>) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.flights[at as usize] = flight;
                at
            }
            None => {
                self.flights.push(flight);
                (self.flights.len() - 1) as u32
            }
        }
    }

    fn load(&mut self, at: u32, payload: Payload) {
        if !payload.is_empty() {
            self.payloads.insert(at, payload);
        }
    }

    /// Takes the bytes that a packet brings.
    pub(super) fn unload(&mut self, at: u32) -> Payload {
        if self.payloads.is_empty() {
            return Payload::default();
        }
        self.payloads.remove(&at).unwrap_or_default()
    }

    /// Forgets what is kept beside a packet on its way.
    fn straighten(&mut self, at: u32) {
        if let Stage::Hop { aside: true, .. } = self.flights[at as usize].stage {
            self.asides.remove(&at);
        }
    }

    pub(super) fn free(&mut self, at: u32) {
        self.straighten(at);
        self.unload(at);
        self.flights[at as usize].packet = None;
        self.free.push(at);
    }

    /// The head of a packet is at the end of a link. Whether it goes on.
    pub(super) fn hop(&mut self, fabric: &Fabric<T>, now: Time, at: u32) -> bool {
        let topology = &fabric.topology;
        let Flight { from, to, packet, stage } = &self.flights[at as usize];
        let Stage::Hop { previous, slowest, echo, mut aside } = *stage else { return false };
        let At::Router(router) = topology.enters(previous) else { return false };
        let from = *from;
        let (to, load) = (*to, packet.as_ref().map(|packet| T::load(&fabric.setup, packet)));
        let Some(load) = load else { return false };
        let node = NodeId(to.nic);
        let mut beside = Aside::default();
        if aside && let Some(known) = self.asides.get_mut(&at) {
            // Once it was there, it takes the shortest way.
            known.by = known.by.filter(|&by| by != router);
            beside = *known;
        }
        if fabric.routing != Routing::Minimal && previous == topology.inject(NodeId(from.nic)) {
            // Its first router sends it on its way, by what waits there then.
            beside.by = self.detour(fabric, now, from, to);
            aside = beside != Aside::default();
            self.flights[at as usize].stage = Stage::Hop { previous, slowest, echo, aside };
            if aside {
                self.asides.insert(at, beside);
            }
        }
        // A router that cannot be reached any more is no reason not to arrive.
        let detour = beside.by.and_then(|by| topology.towards(router, by, &mut self.down));
        let next = detour.or_else(|| topology.next(router, node, &mut self.down));
        let Some(link) = next.filter(|&link| self.down.is_up(link)) else {
            self.lose(fabric, now, at, Stage::Lost);
            return true;
        };
        if !self.packet_rules.is_empty() && self.harmed_on(fabric, now, at, link) {
            self.lose(fabric, now, at, Stage::Lost);
            return true;
        }
        let crossing = self.cross(topology, link, Some(previous), now, &load);
        let slowest = slowest.max(crossing.serialisation);
        match topology.enters(link) {
            At::Router(_) => {
                self.flights[at as usize].stage =
                    Stage::Hop { previous: link, slowest, echo, aside };
                self.schedule_for(fabric, proc_of(to), crossing.arrives, Item::Flight(at));
            }
            At::Node(_) => {
                self.straighten(at);
                self.flights[at as usize].stage = Stage::Arrive { echo };
                let arrives = crossing.arrives + slowest + fabric.timing.end() + beside.late;
                let arrives = self.late(fabric, proc_of(to), arrives);
                self.schedule_for(fabric, proc_of(to), arrives, Item::Flight(at));
            }
        }
        true
    }

    /// A packet does not get through; its sender will know in a while.
    pub(super) fn lose(&mut self, fabric: &Fabric<T>, now: Time, at: u32, stage: Stage) {
        let flight = &mut self.flights[at as usize];
        if let Stage::Hop { echo: true, .. } | Stage::Arrive { echo: true } = flight.stage {
            return self.free(at);
        }
        let after = match stage {
            Stage::Void => fabric.timing.death,
            Stage::Hop { .. } | Stage::Arrive { .. } | Stage::Lost => fabric.timing.loss,
        };
        let from = flight.from;
        self.straighten(at);
        self.flights[at as usize].stage = stage;
        self.schedule_for(fabric, proc_of(from), now + after, Item::Flight(at));
    }

    // ---- chance --------------------------------------------------------------------------

    /// Whether rule `at` strikes now, if it is one that could.
    pub(super) fn strikes(
        &mut self,
        fabric: &Fabric<T>,
        now: Time,
        at: u32,
        proc: u32,
        purpose: Purpose,
    ) -> bool {
        let when = &fabric.plan.0[at as usize].when;
        let strikes = self.rules[at as usize].strikes_now(when, now, &fabric.draws, purpose);
        if strikes {
            self.struck.push((at, proc));
        }
        strikes
    }

    /// What happens to a packet as it leaves: whether it goes, how late, and whether twice.
    fn harm(
        &mut self,
        fabric: &Fabric<T>,
        now: Time,
        (from, to): (u32, u32),
        packet: &mut Packet<T>,
    ) -> Option<(Span, bool)> {
        let (mut late, mut twice) = (Span::ZERO, false);
        for nth in 0..self.packet_rules.len() {
            let at = self.packet_rules[nth];
            let rule = &fabric.plan.0[at as usize];
            let (harm, purpose) = match &rule.what {
                Wrong::Partition(groups) => {
                    let group = |proc: u32| groups.iter().position(|group| group.contains(&proc));
                    if group(from) == group(to) {
                        continue;
                    }
                    (Harm::Loss, Purpose::Loss)
                }
                Wrong::Packets { harm, from: senders, to: receivers, nodes, links } => {
                    let among = |list: &Option<Vec<u32>>, item: u32| {
                        list.as_ref().is_none_or(|list| list.contains(&item))
                    };
                    let node = |proc: u32| fabric.placement[proc as usize].0;
                    let concerned = links.is_none()
                        && among(senders, from)
                        && among(receivers, to)
                        && (rule.concerns(from) || rule.concerns(to))
                        && (among(nodes, node(from)) || among(nodes, node(to)));
                    if !concerned {
                        continue;
                    }
                    (*harm, purpose_of(*harm))
                }
                Wrong::LinksDown(_)
                | Wrong::RoutersDown(_)
                | Wrong::PortsDown(_)
                | Wrong::Pause
                | Wrong::Crash
                | Wrong::Restart
                | Wrong::Slow(_)
                | Wrong::ModexMissing
                | Wrong::ModexLate(_)
                | Wrong::ModexStale
                | Wrong::Nic(_) => continue,
            };
            if !self.strikes(fabric, now, at, from, purpose) {
                continue;
            }
            let &Active { owner, draws: counter, .. } = &self.rules[at as usize];
            match harm {
                Harm::Loss => return None,
                Harm::Duplicate => twice = true,
                Harm::Reorder(by) => late = late + by,
                Harm::Delay { by, jitter } => {
                    let more = fabric.draws.below(Purpose::Jitter, owner, counter, jitter.0 + 1);
                    late = late + by + Span(more);
                }
                Harm::Corrupt => {
                    let bit = fabric.draws.draw(Purpose::Corrupt, owner, counter);
                    *packet = T::Nic::corrupted(packet, bit)?;
                }
            }
        }
        Some((late, twice))
    }

    /// Whether a rule about this link strikes a packet that is about to cross it.
    fn harmed_on(&mut self, fabric: &Fabric<T>, now: Time, flight: u32, link: LinkId) -> bool {
        let from = proc_of(self.flights[flight as usize].from);
        for nth in 0..self.packet_rules.len() {
            let at = self.packet_rules[nth];
            let Wrong::Packets { harm: Harm::Loss | Harm::Corrupt, links: Some(links), .. } =
                &fabric.plan.0[at as usize].what
            else {
                continue;
            };
            let (At::Router(a), At::Router(b)) =
                (fabric.topology.leaves(link), fabric.topology.enters(link))
            else {
                continue;
            };
            let named = links.iter().any(|&ends| ends == [a, b] || ends == [b, a]);
            if named && self.strikes(fabric, now, at, from, Purpose::Loss) {
                return true;
            }
        }
        false
    }
}

fn purpose_of(harm: Harm) -> Purpose {
    match harm {
        Harm::Loss => Purpose::Loss,
        Harm::Duplicate => Purpose::Duplicate,
        Harm::Reorder(_) | Harm::Delay { .. } => Purpose::Reorder,
        Harm::Corrupt => Purpose::Corrupt,
    }
}

/// The fabric around the procs, while one of them is stepped.
pub(super) struct Surroundings<'a, T: Simulated> {
    pub(super) fabric: &'a Arc<Fabric<T>>,
    pub(super) air: &'a mut Air<T>,
    pub(super) watch: &'a mut Watch<T>,
}

impl<T: Simulated> Around<T> for Surroundings<'_, T> {
    #[inline]
    fn procs(&self) -> u32 {
        self.fabric.placement.len() as u32
    }

    fn carry(
        &mut self,
        now: Time,
        from: Address,
        to: Address,
        mut packet: Packet<T>,
        payload: Payload,
    ) {
        let Surroundings { fabric, air, watch } = self;
        let (source, target) = (proc_of(from), proc_of(to));
        if watch.is_curious() {
            watch.note(now, source, What::Sent { to: target, packet: packet.clone() });
        }
        if target as usize >= fabric.placement.len() || to.nic >= fabric.topology.nodes() {
            // Nobody was ever there: the fabric says so as of the dead.
            return air.drop(fabric, now, (from, to), packet, Stage::Void);
        }
        let (mut late, mut twice) = (Span::ZERO, false);
        if !air.packet_rules.is_empty() {
            match air.harm(fabric, now, (source, target), &mut packet) {
                Some(harm) => (late, twice) = harm,
                None => return air.drop(fabric, now, (from, to), packet, Stage::Lost),
            }
        }
        if twice {
            let copy = (packet.clone(), payload.clone());
            air.launch(fabric, now, (from, to), copy, late, true);
        }
        air.launch(fabric, now, (from, to), (packet, payload), late, false);
    }

    fn card(&mut self, now: Time, peer: ProcName) -> Answer {
        let Surroundings { fabric, air, .. } = self;
        let mut at = now;
        let mut stale = false;
        for nth in 0..air.modex_rules.len() {
            let rule = air.modex_rules[nth];
            let Rule { what, .. } = &fabric.plan.0[rule as usize];
            if !fabric.plan.0[rule as usize].concerns(peer.rank)
                || !air.strikes(fabric, now, rule, peer.rank, Purpose::Crash)
            {
                continue;
            }
            match what {
                Wrong::ModexMissing => return Answer { at, card: Err(Reason::NoAddress) },
                Wrong::ModexLate(by) => at += *by,
                Wrong::ModexStale => stale = true,
                Wrong::Packets { .. }
                | Wrong::LinksDown(_)
                | Wrong::RoutersDown(_)
                | Wrong::PortsDown(_)
                | Wrong::Partition(_)
                | Wrong::Pause
                | Wrong::Crash
                | Wrong::Restart
                | Wrong::Slow(_)
                | Wrong::Nic(_) => {}
            }
        }
        let Some(bytes) = air.cards.get(peer.rank as usize) else {
            return Answer { at, card: Err(Reason::NoAddress) };
        };
        let card = Card::parse(bytes, T::NUMBER, peer).map_err(|_| Reason::BadAddress);
        let card = card.map(|card| {
            let Address { nic, .. } = card.address;
            let life = life_of(card.address);
            if stale { address(nic, peer.rank, life.saturating_sub(1)) } else { card.address }
        });
        Answer { at, card }
    }

    fn strike(&mut self, now: Time, proc: u32, op: &Op<T>) -> Option<Fault<T>> {
        let Surroundings { fabric, air, watch } = self;
        for nth in 0..air.op_rules.len() {
            let (at, fault) = air.op_rules[nth];
            if T::Nic::bears_on(fault, op)
                && fabric.plan.0[at as usize].concerns(proc)
                && air.strikes(fabric, now, at, proc, Purpose::NicFault)
            {
                // What comes of it may be seen before the turn is over.
                watch.expect_odd(true);
                return Some(fault);
            }
        }
        None
    }

    #[inline]
    fn watch(&mut self) -> &mut Watch<T> {
        self.watch
    }
}

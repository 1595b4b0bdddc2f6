//! The world: procs, fabric, time and faults, as one value.
//!
//! A world is a discrete-event loop on one thread. It has no ambient state: two worlds in one
//! process know nothing of each other, and the same fabric, applications and seed give the same
//! history, event for event, wherever they run.

use std::sync::Arc;

use selvedge_core::modex::Card;
use selvedge_core::pending::List;
use selvedge_core::{Address, App, Machine, Nic, NicEvent, NodeId, ProcName, Span, Time, Verdict};

use crate::fabric::Fabric;
use crate::proc::{Proc, Scratch};
use crate::simulated::{Receipt, Simulated};
use crate::trace::{What, address, proc_of};
use crate::watch::{Kind, Watch, Watching};

mod active;
mod air;
mod rules;

use air::{Air, Flight, Item, News, Stage, Surroundings};

/// A world.
#[derive(Clone, Debug)]
pub struct World<T: Simulated, A> {
    fabric: Arc<Fabric<T>>,
    births: Arc<Vec<A>>,
    procs: Vec<Proc<T, A>>,
    hosts: Vec<Host>,
    air: Air<T>,
    /// Who looks on.
    pub watch: Watch<T>,
    scratch: Scratch<T>,
    now: Time,
}

/// A proc as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// When its next turn is; `NEVER` if none is due.
    turn: Time,
    /// Until when it is busy with the turn before.
    busy: Time,
    /// What it takes longer for each event.
    slow: Span,
    /// News of its packets, by time; the NIC has those that are due as soon as anybody looks.
    news: List,
    paused: bool,
    dead: bool,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to happen.
    Rest,
    /// The time limit.
    Time,
    /// The event limit.
    Events,
    /// Something is wrong, and the run was to end then.
    Found,
}

impl<T: Simulated, A: App + Clone> World<T, A> {
    /// A world with one application for each proc that the fabric places. Nothing has happened.
    ///
    /// # Panics
    /// When there is not one application a proc: that is a mistake of the caller.
    #[must_use]
    pub fn new(fabric: Arc<Fabric<T>>, apps: Vec<A>, watching: Watching) -> Self {
        assert_eq!(apps.len(), fabric.placement.len(), "one application a proc");
        let births = Arc::new(apps);
        let mut air = Air::new(&fabric);
        let procs: Vec<_> =
            (0..births.len() as u32).map(|rank| born(&fabric, &births, rank, 1)).collect();
        for proc in &procs {
            air.cards.push(card::<T, A>(proc));
        }
        let idle = Host {
            turn: Time::NEVER,
            busy: Time::ZERO,
            slow: Span::ZERO,
            news: List::EMPTY,
            paused: false,
            dead: false,
        };
        let mut world = World {
            hosts: vec![idle; procs.len()],
            watch: Watch::new(watching, procs.len()),
            scratch: Scratch::default(),
            now: Time::ZERO,
            fabric,
            births,
            procs,
            air,
        };
        world.schedule_rules();
        for rank in 0..world.procs.len() as u32 {
            if !world.hosts[rank as usize].dead {
                world.start(rank);
            }
        }
        world.happen();
        world
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The procs.
    #[must_use]
    pub fn procs(&self) -> &[Proc<T, A>] {
        &self.procs
    }

    /// How often each rule of the plan has struck.
    #[must_use]
    pub fn strikes(&self) -> Vec<u64> {
        self.air.rules.iter().map(|rule| rule.strikes).collect()
    }

    /// Runs until nothing is left to happen, or a limit is hit; `stop_at_fault` ends the run at
    /// the first thing that is wrong.
    pub fn run(&mut self, until: Time, events: u64, stop_at_fault: bool) -> End {
        loop {
            let Some((at, item)) = self.air.queue.pop() else { return End::Rest };
            if at > until {
                self.air.schedule(at, item);
                return End::Time;
            }
            self.now = at;
            match item {
                Item::Turn(proc) => self.turn(proc),
                Item::Flight(flight) => self.flight(flight),
                Item::Rule { rule, on } => self.rule(rule, on),
                Item::Obituary(instance) => self.obituary(instance),
            }
            self.happen();
            if self.watch.events >= events {
                return End::Events;
            }
            if stop_at_fault && !self.watch.found.is_empty() {
                return End::Found;
            }
        }
    }

    /// At rest: checks everything that only holds then, and says what is still under way.
    pub fn settle(&mut self) -> Option<String> {
        let now = self.now;
        for (proc, host) in self.procs.iter().zip(&self.hosts) {
            if !host.dead {
                proc.check(now, &mut self.watch);
            }
        }
        let hosts = &self.hosts;
        self.watch.settle(now, |proc| hosts[proc as usize].dead);
        let busy = self
            .procs
            .iter()
            .zip(&self.hosts)
            .find(|(proc, host)| !host.dead && (host.paused || !proc.transport.settled()));
        let (proc, host) = busy?;
        let rank = proc.name.rank;
        self.watch.find(now, rank, Kind::Progress, "everything comes to rest in the end");
        let what = if host.paused { "is paused for ever" } else { "has not finished" };
        Some(format!("proc {rank} {what}"))
    }

    /// Checks the two ends of every pair that `pairs` names.
    pub fn check_pairs(&mut self, pairs: impl IntoIterator<Item = (u32, u32)>) {
        for (a, b) in pairs {
            let (here, there) = (&self.procs[a as usize], &self.procs[b as usize]);
            let checked =
                T::check_pair((&here.transport, &here.nic), (&there.transport, &there.nic));
            if let Err(violation) = checked {
                self.watch.find(self.now, a, Kind::Safety, violation.0);
            }
        }
    }

    fn start(&mut self, rank: u32) {
        let World { fabric, procs, air, watch, scratch, now, .. } = self;
        let mut around = Surroundings { fabric, air, watch };
        procs[rank as usize].start(*now, scratch, &mut around);
        self.rest(rank, 1);
    }

    // ---- hosts ---------------------------------------------------------------------------

    /// A host looks at its transport, its NIC and its application, a few times.
    fn turn(&mut self, rank: u32) {
        let host = &mut self.hosts[rank as usize];
        if host.turn != self.now || host.dead {
            return;
        }
        host.turn = Time::NEVER;
        if host.paused {
            return;
        }
        self.hear(rank);
        let World { fabric, procs, air, watch, scratch, now, .. } = self;
        let (now, batch) = (*now, fabric.timing.batch);
        let proc = &mut procs[rank as usize];
        let mut around = Surroundings { fabric, air, watch };
        let mut handled = 0;
        while handled < batch {
            if !proc.turn(now, scratch, &mut around) {
                break;
            }
            handled += 1;
        }
        self.rest(rank, handled);
    }

    /// After a turn of `handled` events: busy for that long, then again when there is a reason.
    fn rest(&mut self, rank: u32, handled: u32) {
        let host = &mut self.hosts[rank as usize];
        let cost = self.fabric.timing.work + host.slow;
        host.busy = self.now + cost * u64::from(handled);
        let proc = &self.procs[rank as usize];
        let next = if proc.nic.any_ready() { self.now } else { proc.next_deadline() };
        let news = self.air.news.front(&host.news);
        let seen = news.map_or(Time::NEVER, |news| news.due + self.fabric.timing.lazy);
        self.call(rank, next.min(seen));
    }

    /// The host is to have a turn at `at`, or as soon after as it is free.
    fn call(&mut self, rank: u32, at: Time) {
        let host = &mut self.hosts[rank as usize];
        if at == Time::NEVER || host.dead || host.paused {
            return;
        }
        let at = at.max(host.busy).max(self.now);
        if at < host.turn {
            host.turn = at;
            let at = self.air.late(&self.fabric, rank, at);
            self.hosts[rank as usize].turn = at;
            self.air.schedule_for(&self.fabric, rank, at, Item::Turn(rank));
        }
    }

    /// Something reached the NIC of `rank`: its host will see.
    fn look(&mut self, rank: u32) {
        let (proc, timing) = (&self.procs[rank as usize], &self.fabric.timing);
        let mut ready = (0..T::Nic::QUEUES).filter(|&queue| proc.nic.ready(queue)).peekable();
        if ready.peek().is_some() {
            let wait = match timing.sleep {
                None if ready.any(T::Nic::is_urgent) => timing.poll,
                None => timing.lazy,
                Some(sleep) if ready.any(T::Nic::interrupts) => sleep.wakes_in,
                Some(sleep) => sleep.nap,
            };
            self.call(rank, self.now + wait);
        }
        if let Some(at) = self.procs[rank as usize].nic.next_deadline() {
            self.call(rank, at);
        }
    }

    // ---- packets -------------------------------------------------------------------------

    fn flight(&mut self, at: u32) {
        match self.air.flights[at as usize].stage {
            Stage::Hop { .. } => {
                if self.air.hop(&self.fabric, self.now, at) {
                    self.watch.events += 1;
                }
            }
            Stage::Arrive { echo } => self.arrive(at, echo),
            Stage::Lost | Stage::Void => self.fate(at),
        }
    }

    /// A packet is at the NIC that it was for.
    fn arrive(&mut self, at: u32, echo: bool) {
        self.watch.events += 1;
        let Flight { from, to, .. } = self.air.flights[at as usize];
        let rank = proc_of(to);
        let alive = (rank as usize) < self.procs.len()
            && !self.hosts[rank as usize].dead
            && self.procs[rank as usize].address == to;
        if !alive {
            return self.air.lose(&self.fabric, self.now, at, Stage::Void);
        }
        self.hear(rank);
        let Some(packet) = self.air.flights[at as usize].packet.take() else { return };
        if self.watch.is_curious() {
            let what = What::Came { from: proc_of(from), packet: packet.clone() };
            self.watch.note(self.now, rank, what);
        }
        let receipt = T::Nic::receipt(&packet).filter(|_| !echo);
        let event = NicEvent::Packet { from, packet };
        let payload = self.air.unload(at);
        let World { fabric, procs, air, watch, scratch, now, .. } = self;
        let mut around = Surroundings { fabric, air, watch };
        let verdict = procs[rank as usize].nic_event(*now, event, &payload, scratch, &mut around);
        if let Verdict::Broken(selvedge_core::Fault::Peer(rule)) = verdict {
            self.watch.odd(self.now, rank, rule);
        }
        self.air.free(at);
        if let Some(receipt) = receipt {
            self.answer(from, to, receipt, matches!(verdict, Verdict::Broken(_)));
        }
        self.look(rank);
    }

    /// The response to a packet is on its way back, over quiet links and without load. Its host
    /// will see in a while.
    fn answer(&mut self, from: Address, to: Address, receipt: Receipt<T>, rejected: bool) {
        let due = self.now + self.fabric.quiet(NodeId(to.nic), NodeId(from.nic), 0);
        let news = News { due, receipt, instance: from.instance, rejected };
        let rank = proc_of(from);
        let list = &mut self.hosts[rank as usize].news;
        self.air.news.insert_before(list, news, |other| other.due > due);
        self.call(rank, due + self.fabric.timing.lazy);
    }

    /// The NIC of `rank` has the news that is due.
    fn hear(&mut self, rank: u32) {
        let World { fabric, procs, hosts, air, watch, scratch, now, .. } = self;
        let (proc, list) = (&mut procs[rank as usize], &mut hosts[rank as usize].news);
        while air.news.front(list).is_some_and(|news| news.due <= *now)
            && let Some(News { receipt, instance, rejected, due }) = air.news.pop_front(list)
        {
            watch.events += 1;
            if instance != proc.address.instance {
                continue;
            }
            let event = if rejected {
                NicEvent::Rejected { receipt }
            } else {
                NicEvent::Delivered { receipt }
            };
            let mut around = Surroundings { fabric, air, watch };
            let _ = proc.nic_event(due, event, &[], scratch, &mut around);
        }
    }

    /// The sender of a packet learns that it did not get through.
    fn fate(&mut self, at: u32) {
        self.watch.events += 1;
        let flight = &mut self.air.flights[at as usize];
        let Flight { from, to, stage, .. } = *flight;
        let packet = flight.packet.take();
        self.air.free(at);
        let rank = proc_of(from);
        if self.hosts[rank as usize].dead || self.procs[rank as usize].address != from {
            return;
        }
        self.hear(rank);
        let World { fabric, procs, air, watch, scratch, now, .. } = self;
        let (now, proc) = (*now, &mut procs[rank as usize]);
        if let Some(packet) = &packet
            && watch.is_curious()
        {
            let packet = packet.clone();
            watch.note(now, rank, What::Lost { to: proc_of(to), packet });
        }
        let mut around = Surroundings { fabric, air, watch };
        if let Stage::Void = stage {
            let _ = proc.nic_event(now, NicEvent::Down { peer: to }, &[], scratch, &mut around);
        }
        if let Some(packet) = packet {
            let event = NicEvent::Lost { to, packet };
            let _ = proc.nic_event(now, event, &[], scratch, &mut around);
        }
        self.look(rank);
    }

    // ---- life and death ------------------------------------------------------------------

    fn crash(&mut self, rank: u32) {
        let host = &mut self.hosts[rank as usize];
        if host.dead {
            return;
        }
        host.dead = true;
        host.turn = Time::NEVER;
        self.watch.died(self.now, rank);
        let at = self.now + self.fabric.timing.death;
        let Address { instance, .. } = self.procs[rank as usize].address;
        self.air.schedule(at, Item::Obituary(instance));
    }

    /// The fabric says that a life of a proc is over.
    fn obituary(&mut self, instance: u32) {
        let dead = proc_of(Address { nic: 0, instance });
        let peer = Address { nic: self.fabric.placement[dead as usize].0, instance };
        for rank in 0..self.procs.len() as u32 {
            if self.hosts[rank as usize].dead || rank == dead {
                continue;
            }
            self.hear(rank);
            let World { fabric, procs, air, watch, scratch, now, .. } = self;
            let mut around = Surroundings { fabric, air, watch };
            let event = NicEvent::Down { peer };
            let _ = procs[rank as usize].nic_event(*now, event, &[], scratch, &mut around);
            self.look(rank);
        }
    }

    fn restart(&mut self, rank: u32) {
        self.crash(rank);
        let life = self.procs[rank as usize].life + 1;
        if life > crate::trace::LIVES_MAX {
            return;
        }
        let proc = born(&self.fabric, &self.births, rank, life);
        self.air.cards[rank as usize] = card::<T, A>(&proc);
        self.procs[rank as usize] = proc;
        let host = &mut self.hosts[rank as usize];
        host.dead = false;
        host.paused = false;
        host.busy = self.now;
        self.start(rank);
    }
}

fn born<T: Simulated, A: App + Clone>(
    fabric: &Fabric<T>,
    births: &[A],
    rank: u32,
    life: u32,
) -> Proc<T, A> {
    let name = ProcName { job: fabric.job, rank };
    let node = fabric.placement[rank as usize];
    let app = births[rank as usize].clone();
    Proc::new(&fabric.setup, name, node, address(node.0, rank, life), life, app)
}

/// What a proc publishes.
fn card<T: Simulated, A>(proc: &Proc<T, A>) -> selvedge_core::modex::CardBytes {
    Card { transport: T::NUMBER, owner: proc.name, address: proc.address }.encode()
}

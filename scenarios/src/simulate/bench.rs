//! Benches: scenarios whose speed is known by name, measured in CPU time.

use std::path::Path;
use std::time::Instant;

use selvedge_core::ugni::nic::{Exchange, Nic, Packet};
use selvedge_core::ugni::record::{Body, Peer, Record};
use selvedge_core::ugni::{self, Completion, Identity, MboxId, Module};
use selvedge_core::{
    Address, Command, Effect, Effects, Event, Generation, Machine, NicEffect, NicEvent, ProcName,
    Time,
};
use selvedge_sim::watch::Watching;
use selvedge_sim::world::{End, World};

use super::{Run, explore, lower, run_on, watching};
use crate::engine::{Bench, EngineError};
use crate::jobs::Interrupt;
use crate::load::{Loaded, parse};
use crate::workload::Work;

/// The benches, in the order in which to run them.
pub(super) const NAMES: &[&str] = &[
    "uniform-1024",
    "pingpong",
    "storm-1024x16",
    "titan-storm",
    "endpoints-1m",
    "explore",
    "seeds",
];

const FILES: [(&str, &str); 6] = [
    ("uniform-1024", include_str!("../../bench/uniform-1024.json")),
    ("pingpong", include_str!("../../bench/pingpong.json")),
    ("storm-1024x16", include_str!("../../bench/storm-1024x16.json")),
    ("titan-storm", include_str!("../../bench/titan-storm.json")),
    ("explore", include_str!("../../bench/explore.json")),
    ("seeds", include_str!("../../bench/seeds.json")),
];

/// Runs one bench.
pub(super) fn run(name: &str) -> Result<Bench, EngineError> {
    match name {
        "uniform-1024" => whole(name, "messages", are_connected),
        "pingpong" => whole(name, "messages", |_| true),
        "storm-1024x16" | "titan-storm" => whole(name, "connections", |_| true),
        "endpoints-1m" => Ok(endpoints(name, 1_000_000)),
        "explore" => search(name),
        "seeds" => seeds(name, 20_000),
        _ => Err(EngineError::Unable(format!("no bench `{name}`"))),
    }
}

fn file(name: &str) -> Result<Loaded, EngineError> {
    let text = FILES.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
    parse(Path::new(name), text.into()).map_err(|error| {
        let all: Vec<String> = error.diagnostics().iter().map(ToString::to_string).collect();
        EngineError::Unable(all.join("; "))
    })
}

/// Whether every sender that wanted its connections first has them.
fn are_connected(world: &Run) -> bool {
    world.procs().iter().all(|proc| match &proc.app {
        Work::Sender(sender) => sender.missing == 0,
        Work::Idle | Work::Player(_) | Work::Remote(_) | Work::Script(_) => true,
    })
}

/// One run, timed from the moment that `ready` says.
fn whole(name: &str, counted: &str, ready: impl Fn(&Run) -> bool) -> Result<Bench, EngineError> {
    const STEP: u64 = 10_000;
    let loaded = file(name)?;
    let lowered = lower(&loaded, 1)?;
    let clock = (counted == "connections").then(Clock::start);
    let mut world = World::new(lowered.fabric, lowered.apps, watching(&loaded, 0));
    while !ready(&world) {
        if world.run(Time::NEVER, world.watch.events + STEP, false) != End::Events {
            break;
        }
    }
    let (events, delivered) = (world.watch.events, world.watch.delivered);
    let clock = clock.unwrap_or_else(Clock::start);
    run_on(&mut world, &loaded, &Interrupt::new())?;
    let (cpu_ns, wall_ns) = clock.stop();
    if let Some(what) = world.settle() {
        return Err(EngineError::Unable(what));
    }
    if let Some(found) = world.watch.found.first() {
        return Err(EngineError::Unable(found.rule.to_owned()));
    }
    let connections = world.watch.connections.div_ceil(2);
    let messages = world.watch.delivered - delivered;
    Ok(Bench {
        name: name.to_owned(),
        counted: counted.to_owned(),
        count: if counted == "connections" { connections } else { messages },
        cpu_ns,
        wall_ns,
        peak_bytes: peak_bytes(),
        messages,
        events: world.watch.events - events,
        connections,
        digest: Some(world.watch.digest.value()),
    })
}

fn search(name: &str) -> Result<Bench, EngineError> {
    let loaded = file(name)?;
    let clock = Clock::start();
    let explored = explore(&loaded, &Interrupt::new(), &mut |_| {})?;
    let (cpu_ns, wall_ns) = clock.stop();
    if let Some(found) = explored.violations.first() {
        return Err(EngineError::Unable(found.rule.clone()));
    }
    Ok(Bench {
        name: name.to_owned(),
        counted: "states".to_owned(),
        count: explored.searched.states,
        cpu_ns,
        wall_ns,
        peak_bytes: peak_bytes(),
        events: explored.searched.edges,
        ..Bench::default()
    })
}

fn seeds(name: &str, count: u64) -> Result<Bench, EngineError> {
    let loaded = file(name)?;
    let clock = Clock::start();
    let mut bench = Bench::default();
    let mut digest = 0_u64;
    for seed in 0..count {
        let lowered = lower(&loaded, seed)?;
        let mut world = World::new(lowered.fabric, lowered.apps, Watching::default());
        world.run(Time::NEVER, u64::MAX, false);
        if let Some(what) = world.settle() {
            return Err(EngineError::Unable(format!("seed {seed}: {what}")));
        }
        if let Some(found) = world.watch.found.first() {
            return Err(EngineError::Unable(format!("seed {seed}: {}", found.rule)));
        }
        bench.messages += world.watch.delivered;
        bench.events += world.watch.events;
        bench.connections += world.watch.connections.div_ceil(2);
        digest = digest.rotate_left(1) ^ world.watch.digest.value();
    }
    let (cpu_ns, wall_ns) = clock.stop();
    Ok(Bench {
        name: name.to_owned(),
        counted: "seeds".to_owned(),
        count,
        cpu_ns,
        wall_ns,
        peak_bytes: peak_bytes(),
        digest: Some(digest),
        ..bench
    })
}

/// One proc, its NIC, and a million peers of which each answers as briefly as it can: what a
/// connection costs in time and memory, with nothing around it.
fn endpoints(name: &str, count: u32) -> Bench {
    let config = ugni::Config { slab_mailboxes: 1_024, ..ugni::Config::default() };
    let (me, address) = (ProcName { job: 1, rank: 0 }, Address { nic: 0, instance: 0 });
    let identity = Identity { name: me, address, incarnation: 1 };
    let clock = Clock::start();
    let mut hub = Hub {
        module: Module::new(identity, config),
        nic: Nic::new(address, ugni::nic::Config::default(), config),
        fx: ugni::effects(),
        nic_fx: Effects::new(Nic::EFFECTS_MAX),
        answers: Vec::new(),
        calls: Vec::new(),
        connections: 0,
    };
    for rank in 1..=count {
        let to = ProcName { job: 1, rank };
        hub.step(Event::Command(Command::Connect { to }));
        // The peer meets our datagram with its own offer.
        while let Some((to, serial)) = hub.calls.pop() {
            let record = Record {
                who: ProcName { job: 1, rank: to.instance },
                generation: Generation::born(1).next(),
                sees: Generation::NONE,
                over: Generation::NONE,
                body: Body::Offer(Peer { mbox: MboxId(0), index: 0, credits: 32, size: 1_024 }),
            };
            let body = Exchange::Matched(Box::new(record.encode()));
            let packet = Packet::Datagram { seq: 0, floor: 0, tries: 0, serial, body };
            hub.nic(NicEvent::Packet { from: to, packet });
            hub.nic(NicEvent::Poll { queue: 0 });
            hub.settle();
        }
    }
    let (cpu_ns, wall_ns) = clock.stop();
    Bench {
        name: name.to_owned(),
        counted: "connections".to_owned(),
        count: u64::from(hub.connections),
        cpu_ns,
        wall_ns,
        peak_bytes: peak_bytes(),
        connections: u64::from(hub.connections),
        ..Bench::default()
    }
}

struct Hub {
    module: Module,
    nic: Nic,
    fx: Effects<Effect<ugni::Op>>,
    nic_fx: Effects<NicEffect<Completion, Packet>>,
    answers: Vec<Completion>,
    calls: Vec<(Address, u32)>,
    connections: u32,
}

impl Hub {
    fn step(&mut self, event: Event<Completion>) {
        let _ = self.module.step(Time::ZERO, event, &mut self.fx);
        let effects: Vec<_> = self.fx.drain().collect();
        for effect in effects {
            match effect {
                Effect::Notice(selvedge_core::Notice::Connected { .. }) => self.connections += 1,
                Effect::Notice(_) => {}
                Effect::Op(ugni::Op::Resolve { ep, peer }) => {
                    let card = Ok(Address { nic: peer.rank, instance: peer.rank });
                    self.answers.push(Completion::Resolved { ep, card });
                }
                Effect::Op(op) => self.nic(NicEvent::Op(op)),
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        while !self.answers.is_empty() {
            let answer = self.answers.remove(0);
            self.step(Event::Completion(answer));
        }
    }

    fn nic(&mut self, event: NicEvent<ugni::Op, Packet, ugni::nic::Receipt, ugni::nic::Fault>) {
        let _ = self.nic.step(Time::ZERO, event, &mut self.nic_fx);
        for effect in self.nic_fx.drain() {
            match effect {
                NicEffect::Completion(completion) => self.answers.push(completion),
                NicEffect::Packet { to, packet: Packet::Datagram { serial, .. } } => {
                    self.calls.push((to, serial));
                }
                NicEffect::Packet { .. } | NicEffect::Store { .. } | NicEffect::Modify { .. } => {}
            }
        }
    }
}

/// CPU time of this thread and wall time, from a moment on.
struct Clock {
    cpu_ns: u64,
    wall: Instant,
}

impl Clock {
    fn start() -> Clock {
        Clock { cpu_ns: cpu_ns().unwrap_or(0), wall: Instant::now() }
    }

    /// CPU time, or wall time where the system does not say; and wall time.
    fn stop(self) -> (u64, u64) {
        let wall = u64::try_from(self.wall.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (cpu_ns().map_or(wall, |cpu_ns| cpu_ns.saturating_sub(self.cpu_ns)), wall)
    }
}

/// Nanoseconds that this thread has run.
fn cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The most memory that this process has had resident, in bytes; 0 where nobody says.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1_024
}

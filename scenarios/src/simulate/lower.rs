//! From a scenario as written to a fabric and applications.

use std::sync::Arc;

use selvedge_core::config::Tunables;
use selvedge_core::rma::{Amo, Does, Place, Width};
use selvedge_core::ugni::{self, Module};
use selvedge_core::{NodeId, RegionId, Span, Time};
use selvedge_sim::draw::{Draws, Purpose};
use selvedge_sim::fabric::{Fabric, Routing, Sleep, Strategy, Timing};
use selvedge_sim::fault::{Harm, Plan, Rule, What, When};
use selvedge_sim::simulated::Simulated;
use selvedge_sim::topology::{self, DirectSpec, Wire};
use selvedge_sim::ugni::Setup;

use crate::engine::EngineError;
use crate::load::Loaded;
use crate::schema::faults::{Fault, Trigger};
use crate::schema::machine::{self as machines, Machine};
use crate::schema::procs::{Placement, Rule as Placing};
use crate::schema::schedule::Schedule;
use crate::schema::transport::resolve;
use crate::schema::workload::{
    self as written, Action as Written, AtomicOp, Mix, NeighbourShape, Neighbours, Workload,
};
use crate::workload::{
    Access, Action, Pace, Plan as Accesses, Player, Remote, Script, Sender, Step, When as Moment,
    Work,
};

/// What the simulator needs for one run.
#[derive(Debug)]
pub struct Lowered {
    /// The fabric.
    pub fabric: Arc<Fabric<Module>>,
    /// An application a proc.
    pub apps: Vec<Work>,
}

/// Lowers a scenario for one seed.
///
/// # Errors
/// When it asks for what this simulator cannot do.
pub fn lower(loaded: &Loaded, seed: u64) -> Result<Lowered, EngineError> {
    let draws = Draws::new(seed);
    let (topology, timing) = fabric_of(&loaded.machine)?;
    let sleep = loaded.scenario.procs.sleep;
    let sleep = sleep.map(|it| Sleep { wakes_in: it.wakes_in.0, nap: it.nap.0 });
    let timing = Timing { sleep, ..timing };
    let placement = placement_of(loaded, &draws);
    let apps = apps_of(loaded, &topology, &placement, &draws);
    let fabric = Fabric {
        topology,
        routing: routing_of(&loaded.machine.fabric),
        timing,
        setup: setup_of(loaded)?,
        job: 1,
        placement,
        plan: plan_of(loaded)?,
        strategy: strategy_of(&loaded.scenario.schedule),
        draws,
    };
    Ok(Lowered { fabric: Arc::new(fabric), apps })
}

/// A machine on which nothing goes wrong and nobody runs yet.
///
/// # Errors
/// When it cannot be built.
pub fn quiet(machine: &Machine) -> Result<Fabric<Module>, EngineError> {
    let (topology, timing) = fabric_of(machine)?;
    let nic = nic_of(&machine.fabric);
    Ok(Fabric {
        topology,
        routing: routing_of(&machine.fabric),
        timing,
        setup: Setup::new(ugni::Config::default(), nic),
        job: 1,
        placement: Vec::new(),
        plan: Plan::default(),
        strategy: Strategy::Fifo,
        draws: Draws::new(1),
    })
}

fn unable(why: impl ToString) -> EngineError {
    EngineError::Unable(why.to_string())
}

fn fabric_of(machine: &Machine) -> Result<(topology::Topology, Timing), EngineError> {
    let nodes = machine.node_count();
    // The two classes have the same parts.
    macro_rules! timing {
        ($parts:expr) => {
            Timing {
                host: $parts.host_latency.0,
                nic: $parts.nic_latency.0,
                interface: topology::Rate($parts.host_rate.0),
                stores: topology::Rate($parts.fma_rate.0),
                dma_start: $parts.bte_start.0,
                dma: topology::Rate($parts.bte_rate.0),
                hop: $parts.hop_latency.0,
                poll: $parts.poll_latency.0,
                work: $parts.event_cost.0,
                ..Timing::default()
            }
        };
    }
    let (built, timing) = match &machine.fabric {
        machines::Fabric::Gemini(gemini) => (gemini.spec(nodes).build(), timing!(gemini)),
        machines::Fabric::Aries(aries) => (aries.spec(nodes).build(), timing!(aries)),
        machines::Fabric::Crossbar(crossbar) => {
            // Half of the way is before the crossbar and half behind it.
            let rate = topology::Rate(crossbar.rate.0);
            let wire = |latency| Wire { rate, latency };
            let half = crossbar.latency.0.0 / 2;
            let (inject, eject) = (wire(Span(half)), wire(Span(crossbar.latency.0.0 - half)));
            let timing = Timing {
                host: Span::ZERO,
                nic: crossbar.nic_latency.0,
                interface: rate,
                stores: rate,
                dma_start: Span::ZERO,
                dma: rate,
                hop: Span::ZERO,
                poll: crossbar.software_latency.0,
                // What a message costs its hosts in all is mostly the way through the software,
                // once; each event of it takes about a tenth of that.
                work: Span(crossbar.software_latency.0.0 / 10),
                ..Timing::default()
            };
            (DirectSpec { nodes, inject, eject }.build(), timing)
        }
    };
    Ok((built.map_err(unable)?, timing))
}

fn routing_of(fabric: &machines::Fabric) -> Routing {
    match fabric {
        machines::Fabric::Gemini(_) | machines::Fabric::Crossbar(_) => Routing::Minimal,
        machines::Fabric::Aries(aries) => match aries.routing {
            machines::Routing::Minimal => Routing::Minimal,
            machines::Routing::Valiant => Routing::Valiant,
            machines::Routing::Adaptive => Routing::Adaptive,
        },
    }
}

/// The NIC of such a fabric, as far as the fabric says which it is.
fn nic_of(fabric: &machines::Fabric) -> ugni::nic::Config {
    let aries = u64::from(matches!(fabric, machines::Fabric::Aries(_)));
    ugni::nic::Config { aries, ..Default::default() }
}

fn setup_of(loaded: &Loaded) -> Result<Setup, EngineError> {
    let (mut module, mut nic) = (ugni::Config::default(), nic_of(&loaded.machine.fabric));
    let scenario = &loaded.scenario;
    for (name, value) in scenario.transport.tunables() {
        let value = resolve("tunable", ugni::Config::TABLE, name, value);
        ugni::Config::set(&mut module, name, value.map_err(unable)?).map_err(unable)?;
    }
    for (name, value) in &scenario.nic {
        let value = resolve("parameter", ugni::nic::Config::TABLE, name, value);
        ugni::nic::Config::set(&mut nic, name, value.map_err(unable)?).map_err(unable)?;
    }
    Ok(Setup::new(module, nic))
}

fn placement_of(loaded: &Loaded, draws: &Draws) -> Vec<NodeId> {
    let procs = &loaded.scenario.procs;
    let (count, nodes, per) = (loaded.procs, loaded.machine.node_count().max(1), procs.per_node);
    let place: Box<dyn Fn(u32) -> u32> = match &procs.placement {
        Placement::On(list) => {
            let list = list.clone();
            Box::new(move |rank| list[rank as usize])
        }
        Placement::By(Placing::Packed) => Box::new(move |rank| rank / per.max(1)),
        Placement::By(Placing::RoundRobin) => Box::new(move |rank| rank % nodes),
        Placement::By(Placing::Random) => {
            let mut order: Vec<u32> = (0..nodes).collect();
            draws.shuffle(Purpose::Placement, 0, &mut order);
            Box::new(move |rank| order[(rank / per.max(1)) as usize])
        }
    };
    (0..count).map(|rank| NodeId(place(rank))).collect()
}

fn strategy_of(schedule: &Schedule) -> Strategy {
    match schedule {
        Schedule::Fifo => Strategy::Fifo,
        Schedule::Random(random) => Strategy::Random { jitter: random.jitter.0 },
        Schedule::Pct(pct) => {
            Strategy::Pct { depth: pct.depth, steps: pct.steps.max(1), jitter: pct.jitter.0 }
        }
    }
}

fn plan_of(loaded: &Loaded) -> Result<Plan<Module>, EngineError> {
    loaded.scenario.faults.iter().map(rule_of).collect::<Result<_, _>>().map(Plan)
}

fn rule_of(fault: &Fault) -> Result<Rule<Module>, EngineError> {
    let selected = fault.selectors();
    let list = |list: Option<&[u32]>| list.map(<[u32]>::to_vec);
    let packets = |harm| What::Packets {
        harm,
        from: list(selected.from),
        to: list(selected.to),
        nodes: list(selected.nodes),
        links: selected.links.map(<[[u32; 2]]>::to_vec),
    };
    let what = match fault {
        Fault::Loss(_) => packets(Harm::Loss),
        Fault::Duplicate(_) => packets(Harm::Duplicate),
        Fault::Reorder(reorder) => packets(Harm::Reorder(reorder.by.0)),
        Fault::Corrupt(_) => packets(Harm::Corrupt),
        Fault::Delay(delay) => packets(Harm::Delay { by: delay.by.0, jitter: delay.jitter.0 }),
        Fault::LinkDown(down) => What::LinksDown(down.links.clone()),
        Fault::RouterDown(down) => What::RoutersDown(down.routers.clone()),
        Fault::PortDown(down) => {
            What::PortsDown(down.nodes.iter().map(|&node| NodeId(node)).collect())
        }
        Fault::Partition(partition) => What::Partition(partition.groups.clone()),
        Fault::Pause(_) => What::Pause,
        Fault::Crash(_) => What::Crash,
        Fault::Restart(_) => What::Restart,
        Fault::SlowReceiver(slow) => What::Slow(slow.by.0),
        Fault::ModexMissing(_) => What::ModexMissing,
        Fault::ModexLate(late) => What::ModexLate(late.by.0),
        Fault::ModexStale(_) => What::ModexStale,
        Fault::Nic(nic) => {
            let fault = <Module as Simulated>::fault(&nic.fault);
            What::Nic(fault.ok_or_else(|| unable(format!("no NIC fault `{}`", nic.fault)))?)
        }
    };
    let when = match fault.timing().trigger().map_err(unable)? {
        Trigger::At { at, lasts } => {
            When::At { at: Time(at.0.0), lasts: lasts.map(|lasts| lasts.0) }
        }
        Trigger::Rate { rate, between, most } => When::Rate {
            ppb: rate.0,
            from: between.map_or(Time::ZERO, |[from, _]| Time(from.0.0)),
            until: between.map_or(Time::NEVER, |[_, until]| Time(until.0.0)),
            most,
        },
        Trigger::When { when, lasts } => When::Happens {
            event: when.event,
            proc: when.proc,
            nth: when.nth,
            lasts: lasts.map(|lasts| lasts.0),
        },
    };
    Ok(Rule { what, when, procs: list(selected.procs) })
}

/// `count` different procs for `rank` to talk to, drawn once.
fn partners(draws: &Draws, rank: u32, procs: u32, count: u32) -> Vec<u32> {
    let mut drawn = Vec::with_capacity(count as usize);
    let mut counter = 0;
    while (drawn.len() as u32) < count.min(procs.saturating_sub(1)) {
        let other = draws.below(Purpose::Partner, rank, counter, u64::from(procs)) as u32;
        counter += 1;
        if other != rank && !drawn.contains(&other) {
            drawn.push(other);
        }
    }
    drawn
}

/// The procs on the routers around: at most 26 times as many as sit on one.
fn around(
    topology: &topology::Topology,
    placement: &[NodeId],
    by_node: &[u32],
    rank: u32,
) -> Vec<u32> {
    let home = topology.router_of(placement[rank as usize]);
    let place = topology.coordinates(home).map(i64::from);
    let dims = topology.dims().map(i64::from);
    let node = placement[rank as usize].0;
    let slot = node - topology.first_node(home);
    let mut found = Vec::with_capacity(26);
    for step in 0..27 {
        let steps = [step / 9 - 1, step / 3 % 3 - 1, step % 3 - 1];
        let at: [i64; 3] =
            std::array::from_fn(|axis| (place[axis] + steps[axis]).rem_euclid(dims[axis]));
        let [x, y, z] = at.map(|n| n as u32);
        let Some(router) = topology.router_at(x, y, z).filter(|&router| router != home) else {
            continue;
        };
        let other = topology.first_node(router) + slot;
        match by_node.get(other as usize) {
            Some(&proc) if proc != u32::MAX && !found.contains(&proc) => found.push(proc),
            Some(_) | None => {}
        }
    }
    found
}

/// One step of a script.
fn action_of(action: Written) -> Action {
    let bytes = |size: crate::quantity::Bytes| u32::try_from(size.0).unwrap_or(u32::MAX);
    let at = |place: written::Place| Place { region: RegionId(place.region), offset: place.offset };
    match action {
        Written::Send(send) => Action::Send {
            to: send.to,
            size: bytes(send.size),
            count: send.count,
            tag: send.tag,
            from: send.from.map(at),
        },
        Written::Connect(peer) => Action::Connect(peer.to),
        Written::Close(peer) => Action::Close(peer.to),
        Written::Register(it) => Action::Register(RegionId(it.region), bytes(it.size)),
        Written::Deregister(it) => Action::Deregister(RegionId(it.region)),
        Written::Put(it) => {
            let (local, remote, size) = (at(it.local), at(it.remote), bytes(it.size));
            let access = Access::Put { local, remote, size };
            Action::Access { to: it.to, access, count: it.count }
        }
        Written::Get(it) => {
            let (local, remote, size) = (at(it.local), at(it.remote), bytes(it.size));
            let access = Access::Get { local, remote, size };
            Action::Access { to: it.to, access, count: it.count }
        }
        Written::Atomic(it) => {
            let width = if it.width == 4 { Width::Four } else { Width::Eight };
            let amo = Amo::new(does(it.op), width, it.fetch);
            let operands = [it.operand, it.second];
            let access = Access::Atomic { amo, remote: at(it.remote), operands };
            Action::Access { to: it.to, access, count: it.count }
        }
        Written::Stop => Action::Stop,
    }
}

const fn does(op: AtomicOp) -> Does {
    match op {
        AtomicOp::Add => Does::Add,
        AtomicOp::And => Does::And,
        AtomicOp::Or => Does::Or,
        AtomicOp::Xor => Does::Xor,
        AtomicOp::AndXor => Does::AndXor,
        AtomicOp::Swap => Does::Swap,
        AtomicOp::CompareSwap => Does::CompareSwap,
        AtomicOp::Min => Does::Min,
        AtomicOp::Max => Does::Max,
        AtomicOp::FloatAdd => Does::FloatAdd,
        AtomicOp::FloatMin => Does::FloatMin,
        AtomicOp::FloatMax => Does::FloatMax,
    }
}

fn apps_of(
    loaded: &Loaded,
    topology: &topology::Topology,
    placement: &[NodeId],
    draws: &Draws,
) -> Vec<Work> {
    let procs = loaded.procs;
    let sender = |partners: Vec<u32>, size: u64, left: u64, pace: Pace| Sender {
        partners: partners.into(),
        size: u32::try_from(size).unwrap_or(u32::MAX),
        left,
        pace,
        connect_first: false,
        delay: Span::ZERO,
        turn: 0,
        missing: 0,
    };
    let pace = |gap: Span| match gap {
        Span::ZERO => Pace::Answers,
        every => Pace::Clock { length: 1, every },
    };
    let mut by_node = Vec::new();
    if let Workload::ConnectStorm(_) = loaded.scenario.workload {
        by_node = vec![u32::MAX; topology.nodes() as usize];
        for (rank, node) in placement.iter().enumerate() {
            by_node[node.index()] = rank as u32;
        }
    }
    let app = |rank: u32| match &loaded.scenario.workload {
        Workload::PingPong(game) => {
            let peer = rank ^ 1;
            if peer >= procs {
                return Work::Idle;
            }
            let size = u32::try_from(game.size.0).unwrap_or(u32::MAX);
            Work::Player(Player { peer, serves: rank < peer, left: game.rounds, size })
        }
        Workload::Uniform(uniform) => Work::Sender(Sender {
            connect_first: uniform.connect_first,
            ..sender(
                partners(draws, rank, procs, uniform.partners),
                uniform.size.0,
                uniform.messages,
                pace(uniform.gap.0),
            )
        }),
        Workload::AllToAll(all) => {
            let others: Vec<u32> = (1..procs).map(|step| (rank + step) % procs).collect();
            let left = all.rounds.saturating_mul(others.len() as u64);
            Work::Sender(sender(others, all.size.0, left, pace(all.gap.0)))
        }
        Workload::ConnectStorm(storm) => {
            let others = match storm.neighbours {
                Neighbours::Drawn(count) => partners(draws, rank, procs, count),
                Neighbours::Shape(NeighbourShape::Torus26) => {
                    around(topology, placement, &by_node, rank)
                }
            };
            let left = others.len() as u64;
            let spread = storm.spread.0.0;
            let delay = Span(draws.below(Purpose::Workload, rank, 0, spread.saturating_add(1)));
            Work::Sender(Sender { delay, ..sender(others, storm.size.0, left, Pace::Answers) })
        }
        Workload::Incast(incast) if rank == incast.target => Work::Idle,
        Workload::Incast(incast) => {
            let pace = pace(incast.gap.0);
            Work::Sender(sender(vec![incast.target], incast.size.0, incast.messages, pace))
        }
        Workload::Bursts(bursts) => Work::Sender(sender(
            partners(draws, rank, procs, bursts.partners),
            bursts.size.0,
            bursts.bursts.saturating_mul(bursts.length),
            Pace::Clock { length: bursts.length, every: bursts.every.0 },
        )),
        Workload::Remote(remote) => {
            let Mix { put, get, add, set } = remote.mix;
            let plan = Accesses {
                size: u32::try_from(remote.size.0).unwrap_or(u32::MAX),
                procs,
                mix: [put, get, add, set],
                odd: remote.odd,
                check_every: remote.check_every,
                seed: draws.draw(Purpose::Workload, rank, 1),
            };
            let partners = partners(draws, rank, procs, remote.partners);
            Work::Remote(Remote::new(plan, partners.into(), remote.operations))
        }
        Workload::Script(scripts) => {
            let steps: Vec<Step> = scripts
                .iter()
                .filter(|script| script.proc == rank)
                .flat_map(|script| &script.steps)
                .map(|step| Step {
                    when: match (step.at, step.after) {
                        (Some(at), _) => Moment::At(Time(at.0.0)),
                        (None, Some(after)) => Moment::After(after.0),
                        (None, None) => Moment::After(Span::ZERO),
                    },
                    action: action_of(step.action),
                })
                .collect();
            if steps.is_empty() { Work::Idle } else { Work::Script(Script::new(steps)) }
        }
    };
    (0..procs).map(app).collect()
}

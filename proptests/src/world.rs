//! Small worlds: two or three procs, each with a list of things to ask for.
//!
//! The same procs run in a timed [`World`] and stand in a [`Space`] where time stands still, so
//! what a property says of one history a search can say of all.

use std::sync::Arc;

use selvedge_core::rma::{Amo, Does, Place, Tail, Width};
use selvedge_core::ugni::{Config, nic};
use selvedge_core::{
    App, Fabric as Asking, FragId, Hold, NodeId, Notice, ProcName, RegionId, Span, Tag,
};
use selvedge_sim::draw::Draws;
use selvedge_sim::explore::{Bounds, Space};
use selvedge_sim::fabric::{Fabric, Routing, Strategy, Timing};
use selvedge_sim::fault::{Plan, Rule};
use selvedge_sim::simulated::Simulated;
use selvedge_sim::topology::{DirectSpec, DragonflySpec, Rate, Topology, TorusSpec, Wire};
use selvedge_sim::ugni::Setup;
use selvedge_sim::watch::Watching;
use selvedge_sim::world::World;

/// The job that all small worlds run.
pub const JOB: u32 = 1;

/// Bytes of every message, but for the long ones, and of every operation on remote memory.
pub const BYTES: u32 = 8;

/// Bytes of a long message: not a whole number of words.
pub const LONG: u32 = 18;

/// The memory of every proc that peers may use: a word for atomics, then one slot a rank.
pub const WINDOW: RegionId = RegionId(1);

/// Its bytes.
const WINDOW_BYTES: u32 = 64;

/// Memory that only its own proc uses.
const OWN: RegionId = RegionId(2);

/// Its bytes.
const OWN_BYTES: u32 = 256;

/// One thing that a proc asks for, and of which rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A connection.
    Connect(u32),
    /// A message.
    Send(u32),
    /// The end of a connection.
    Close(u32),
    /// A message that does not fit the mailbox.
    SendLong(u32),
    /// The same out of memory that is registered.
    SendPlaced(u32),
    /// Our slot of a window is written.
    Put(u32),
    /// Our slot of a window is read.
    Get(u32),
    /// The same, to a place where no NIC can get it.
    GetOdd(u32),
    /// One is added to the word of a window, and what it was comes back.
    Add(u32),
    /// A bit of the word of a window is set, which may be done twice.
    Set(u32),
}

impl Ask {
    /// The rank that it is about.
    #[must_use]
    pub const fn rank(self) -> u32 {
        match self {
            Ask::Connect(rank)
            | Ask::Send(rank)
            | Ask::Close(rank)
            | Ask::SendLong(rank)
            | Ask::SendPlaced(rank)
            | Ask::Put(rank)
            | Ask::Get(rank)
            | Ask::GetOdd(rank)
            | Ask::Add(rank)
            | Ask::Set(rank) => rank,
        }
    }

    const fn is_message(self) -> bool {
        matches!(self, Ask::Send(_) | Ask::SendLong(_) | Ask::SendPlaced(_))
    }

    const fn is_remote(self) -> bool {
        matches!(
            self,
            Ask::SendPlaced(_)
                | Ask::Put(_)
                | Ask::Get(_)
                | Ask::GetOdd(_)
                | Ask::Add(_)
                | Ask::Set(_)
        )
    }
}

/// The place of `rank`'s slot in any window.
#[must_use]
pub const fn slot(rank: u32) -> Place {
    Place { region: WINDOW, offset: 8 + rank * BYTES }
}

/// The word of any window.
#[must_use]
pub const fn word() -> Place {
    Place { region: WINDOW, offset: 0 }
}

/// The bit of it that [`Ask::Set`] sets, far above what is counted in it.
pub const SET: u64 = 1 << 40;

/// What `rank` writes into its slots.
#[must_use]
pub const fn mark(rank: u32) -> [u8; BYTES as usize] {
    [0x50 + rank as u8; BYTES as usize]
}

/// When a proc asks for the next thing on its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pace {
    /// For all of it as soon as it is up.
    AtOnce,
    /// When what it asked for before has been answered.
    InTurn,
}

/// What a proc does: it goes through a list, and takes whatever comes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Script {
    asks: Arc<[Ask]>,
    pace: Pace,
    next: u16,
    /// Whether it has memory for peers.
    remote: bool,
    /// What became of its operations on remote memory, if somebody wants to know.
    tally: Option<Tally>,
}

/// What became of operations on remote memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    out: Vec<(FragId, Ask)>,
    /// What was done, and what it found.
    pub done: Vec<(Ask, u64)>,
    /// What was done or not.
    pub maybe: Vec<Ask>,
}

impl Tally {
    fn settle(&mut self, frag: FragId) -> Option<Ask> {
        let at = self.out.iter().position(|(other, _)| *other == frag)?;
        Some(self.out.remove(at).1)
    }

    fn hear(&mut self, notice: Notice) {
        match notice {
            Notice::Done { frag, value } => {
                let ask = self.settle(frag);
                self.done.extend(ask.map(|ask| (ask, value)));
            }
            Notice::Unknown { frag, .. } => {
                let ask = self.settle(frag);
                self.maybe.extend(ask);
            }
            Notice::Failed { frag, .. } => drop(self.settle(frag)),
            Notice::Arrived { .. }
            | Notice::Sent { .. }
            | Notice::Connected { .. }
            | Notice::Closed { .. }
            | Notice::Trouble { .. }
            | Notice::Registered { .. }
            | Notice::Unregistered { .. } => {}
        }
    }
}

impl Script {
    /// A proc that asks for nothing.
    #[must_use]
    pub fn idle() -> Script {
        Script::at_once(&[])
    }

    /// A proc that asks for everything at once.
    #[must_use]
    pub fn at_once(asks: &[Ask]) -> Script {
        Script::new(asks, Pace::AtOnce)
    }

    /// A proc that asks for one thing after another.
    #[must_use]
    pub fn in_turn(asks: &[Ask]) -> Script {
        Script::new(asks, Pace::InTurn)
    }

    /// A proc that asks for nothing and has memory for peers.
    #[must_use]
    pub fn served() -> Script {
        Script { remote: true, ..Script::idle() }
    }

    fn new(asks: &[Ask], pace: Pace) -> Script {
        let remote = asks.iter().any(|ask| ask.is_remote());
        Script { asks: asks.into(), pace, next: 0, remote, tally: None }
    }

    /// The operations on remote memory on the list.
    #[must_use]
    pub fn operations(&self) -> u64 {
        let all = self.asks.iter();
        all.filter(|ask| ask.is_remote() && !ask.is_message()).count() as u64
    }

    /// The same, with a record of what becomes of its operations.
    #[must_use]
    pub fn tallied(self) -> Script {
        Script { tally: Some(Tally::default()), remote: true, ..self }
    }

    /// That record.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.tally.as_ref()
    }

    /// How often it asks for `ask`.
    #[must_use]
    pub fn count(&self, ask: Ask) -> u64 {
        self.asks.iter().filter(|&&other| other == ask).count() as u64
    }

    /// Whether everything on the list was asked for.
    #[must_use]
    pub fn is_through(&self) -> bool {
        usize::from(self.next) == self.asks.len()
    }

    /// The messages on the list.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.asks.iter().filter(|ask| ask.is_message()).count() as u64
    }

    fn go_on(&mut self, fabric: &mut impl Asking) {
        while let Some(&ask) = self.asks.get(usize::from(self.next)) {
            self.next += 1;
            let to = ProcName { job: JOB, rank: ask.rank() };
            let me = fabric.me().rank;
            let own = |offset| Place { region: OWN, offset };
            let one = |does, fetches| Amo::new(does, Width::Eight, fetches);
            let name = match ask {
                Ask::Connect(_) => {
                    fabric.connect(to);
                    None
                }
                Ask::Close(_) => {
                    fabric.close(to);
                    None
                }
                Ask::Send(_) => Some(fabric.send(to, Tag(0), BYTES, Hold::Copied)),
                Ask::SendLong(_) => Some(fabric.send(to, Tag(0), LONG, Hold::Copied)),
                Ask::SendPlaced(_) => {
                    // Memory of its own for each: what is on its way stays as it is.
                    let at = own(32 + 24 * (u32::from(self.next) % 8));
                    let hold = Hold::Registered { at, tail: Tail::default() };
                    Some(fabric.send(to, Tag(0), LONG, hold))
                }
                Ask::Put(_) => {
                    fabric.write(own(0), &mark(me));
                    Some(fabric.put(to, own(0), slot(me), BYTES))
                }
                Ask::Get(_) => Some(fabric.get(to, own(8), slot(me), BYTES)),
                Ask::GetOdd(_) => Some(fabric.get(to, own(17), slot(me), BYTES)),
                Ask::Add(_) => Some(fabric.atomic(to, one(Does::Add, true), word(), 1, 0)),
                Ask::Set(_) => Some(fabric.atomic(to, one(Does::Or, false), word(), SET, 0)),
            };
            if let (Some(tally), Some(name)) = (&mut self.tally, name) {
                tally.out.push((name, ask));
            }
            if self.pace == Pace::InTurn {
                break;
            }
        }
    }

    /// Whether `notice` answers what was asked for last.
    fn is_answer(&self, notice: Notice) -> bool {
        let Some(last) = self.next.checked_sub(1) else { return false };
        match (self.asks[usize::from(last)], notice) {
            (Ask::Connect(to), Notice::Connected { peer, .. } | Notice::Closed { peer, .. })
            | (Ask::Close(to), Notice::Closed { peer, .. }) => peer.rank == to,
            (Ask::Connect(_) | Ask::Close(_), _) => false,
            (
                _,
                Notice::Sent { .. }
                | Notice::Done { .. }
                | Notice::Failed { .. }
                | Notice::Unknown { .. },
            ) => true,
            (_, _) => false,
        }
    }
}

impl App for Script {
    /// It begins a moment after it is up: so a search may let something go wrong before.
    fn start(&mut self, fabric: &mut impl Asking) {
        if self.remote {
            fabric.register(WINDOW, WINDOW_BYTES);
            fabric.register(OWN, OWN_BYTES);
        }
        if !self.is_through() {
            fabric.wake_after(Span::ZERO);
        }
    }

    fn woken(&mut self, fabric: &mut impl Asking) {
        self.go_on(fabric);
    }

    fn notice(&mut self, fabric: &mut impl Asking, notice: Notice) {
        if let Some(tally) = &mut self.tally {
            tally.hear(notice);
        }
        if let Notice::Done { .. } = notice {
            // A get brings nothing, or what we have put there, and no other bytes.
            for offset in [8, 17] {
                let mut got = [0; BYTES as usize];
                fabric.read(Place { region: OWN, offset }, &mut got);
                if got != [0; BYTES as usize] && got != mark(fabric.me().rank) {
                    fabric.wrong("a get brings what was put");
                }
            }
        }
        if self.pace == Pace::InTurn && self.is_answer(notice) {
            self.go_on(fabric);
        }
    }
}

/// A fabric of `procs` procs on a crossbar, each on its own node. Nothing goes wrong there, and
/// ties are broken in the order of causes.
#[must_use]
pub fn crossbar<T: Simulated>(procs: u32, setup: T::Setup) -> Fabric<T> {
    let topology = DirectSpec::crossbar(procs).build().expect("a crossbar of some nodes builds");
    around(topology, (0..procs).map(NodeId).collect(), setup)
}

/// A fabric of `procs` procs on a ring of as many Gemini routers.
#[must_use]
pub fn ring<T: Simulated>(procs: u32, setup: T::Setup) -> Fabric<T> {
    let topology = TorusSpec::gemini([procs, 1, 1]).build().expect("a ring of some routers builds");
    let placement = (0..procs).map(|proc| NodeId(topology.first_node(proc))).collect();
    around(topology, placement, setup)
}

/// A fabric of a dragonfly of three groups of two chassis of four Aries routers with a proc each,
/// and one cable between each two groups, which is thin: messages are short.
#[must_use]
pub fn dragonfly<T: Simulated>(routing: Routing, setup: T::Setup) -> Fabric<T> {
    let spec = DragonflySpec {
        chassis: 2,
        slots: 4,
        nodes_per_router: 1,
        nodes: 24,
        rank3: Wire { rate: Rate(100_000_000), latency: Span::from_ns(100) },
        ..DragonflySpec::aries(3, 1)
    };
    let topology = spec.build().expect("a dragonfly of some routers builds");
    Fabric { routing, ..around(topology, (0..24).map(NodeId).collect(), setup) }
}

fn around<T: Simulated>(topology: Topology, placement: Vec<NodeId>, setup: T::Setup) -> Fabric<T> {
    Fabric {
        topology,
        routing: Routing::default(),
        timing: Timing::default(),
        setup,
        job: JOB,
        placement,
        plan: Plan::default(),
        strategy: Strategy::Fifo,
        draws: Draws::new(1),
    }
}

/// A fabric with other rules of chance: seed, schedule, faults.
#[must_use]
pub fn shaken<T: Simulated>(
    fabric: Fabric<T>,
    seed: u64,
    strategy: Strategy,
    rules: Vec<Rule<T>>,
) -> Fabric<T> {
    Fabric { draws: Draws::new(seed), strategy, plan: Plan(rules), ..fabric }
}

/// A timed world in which nothing has happened yet.
#[must_use]
pub fn timed<T: Simulated>(fabric: Fabric<T>, scripts: &[Script]) -> World<T, Script> {
    let watching = Watching { record: 64, ..Watching::default() };
    World::new(Arc::new(fabric), scripts.to_vec(), watching)
}

/// A module and a NIC of which a search can see all: two slots a mailbox, no time, and one
/// repetition at most of any one step.
#[must_use]
pub fn tiny() -> Setup {
    let module = Config { smsg_credits: 2, slab_mailboxes: 1, ..Config::default() };
    Setup::new(module, nic::Config::default()).timeless(1)
}

/// The same where messages of more than eight bytes are fetched, into one buffer and out of one;
/// and operations on remote memory are short, one at a time, and repeated once.
#[must_use]
pub fn tiny_remote() -> Setup {
    let module = Config {
        smsg_credits: 3,
        slab_mailboxes: 1,
        smsg_max: 8,
        eager_max: 20,
        eager_buffers: 1,
        rdma_cq: 2,
        rdma_retries: 1,
        ..Config::default()
    };
    let nic = nic::Config { transaction_retries: 1, ..nic::Config::default() };
    Setup::new(module, nic).timeless(1)
}

/// Every history of a crossbar with these procs.
#[must_use]
pub fn timeless<T: Simulated>(
    setup: T::Setup,
    scripts: &[Script],
    bounds: Bounds<T>,
) -> Space<T, Script> {
    let fabric = crossbar(scripts.len() as u32, setup);
    Space::new(Arc::new(fabric), scripts.to_vec(), bounds)
}

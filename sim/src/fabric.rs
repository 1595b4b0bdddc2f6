//! What of a world never changes: topology, times, placement, faults, the schedule.

use selvedge_core::{Load, Mover, NodeId, Span};

use crate::draw::Draws;
use crate::fault::Plan;
use crate::simulated::Simulated;
use crate::topology::{Rate, Topology};

/// The unchanging part of a world; many worlds may share one.
#[derive(Clone, Debug)]
pub struct Fabric<T: Simulated> {
    /// Routers, nodes and links.
    pub topology: Topology,
    /// Which way packets take.
    pub routing: Routing,
    /// How long things take that are not on a link.
    pub timing: Timing,
    /// The transports and NICs.
    pub setup: T::Setup,
    /// The job.
    pub job: u32,
    /// On which node each proc runs.
    pub placement: Vec<NodeId>,
    /// What goes wrong.
    pub plan: Plan<T>,
    /// How ties are broken.
    pub strategy: Strategy,
    /// Where all chance comes from.
    pub draws: Draws,
}

impl<T: Simulated> Fabric<T> {
    /// How long `bytes` take from one NIC to another when nothing else is on the way.
    #[must_use]
    pub fn quiet(&self, from: NodeId, to: NodeId, bytes: u32) -> Span {
        let hops = u64::from(self.topology.hops(from, to));
        let [out, home] = [self.topology.inject(from), self.topology.eject(to)]
            .map(|link| *self.topology.wire(link));
        let links = out.latency + home.latency + self.timing.hop * hops;
        self.timing.end() * 2 + links + home.rate.time_of(u64::from(bytes))
    }
}

/// Which way packets take that are sent link by link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// A shortest one: dimension order in a torus.
    #[default]
    Minimal,
    /// By way of a router that is drawn for each packet: twice as long, and whatever the pattern
    /// of traffic, none of it shows (Valiant).
    Valiant,
    /// The one of two shortest ways and two that are drawn which would be quickest with what
    /// waits before its links now. Aries hears of its neighbours' loads every ten cycles; here
    /// every load is known.
    Adaptive,
}

impl Routing {
    /// Ways that an adaptive choice weighs: two shortest and two drawn.
    pub const CANDIDATES: usize = 4;
}

/// Times of hosts and NICs, and of what the fabric does when something is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between a host and its NIC, each way: HyperTransport or PCIe.
    pub host: Span,
    /// Through a NIC, on the way out and again on the way in.
    pub nic: Span,
    /// As fast as data pass between them.
    pub interface: Rate,
    /// As fast as a processor stores into its NIC.
    pub stores: Rate,
    /// From the posting of a block until the engine of the NIC moves it.
    pub dma_start: Span,
    /// As fast as that engine reads memory.
    pub dma: Rate,
    /// Over one link between routers, as a response goes: without load.
    pub hop: Span,
    /// From a completion until the host has seen it.
    pub poll: Span,
    /// The same for completions of what the host did itself, which nobody waits for: it sees
    /// them when it looks anyway, or after this.
    pub lazy: Span,
    /// What the host does for each event.
    pub work: Span,
    /// Events that a host handles before it looks up.
    pub batch: u32,
    /// From the sending of a packet until its NIC knows that it is lost.
    pub loss: Span,
    /// From the death of a node until the fabric says so.
    pub death: Span,
    /// Bytes that may wait before a link.
    pub queue_bytes: u64,
    /// Whether hosts sleep when they have nothing to do, instead of looking all the time.
    pub sleep: Option<Sleep>,
}

/// How a host sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// From an interrupt until it is awake.
    pub wakes_in: Span,
    /// For how long at most, once something has come that raises no interrupt.
    pub nap: Span,
}

impl Timing {
    /// Those of Gemini. A put of eight bytes to a neighbour takes 0.7 us in all (Hot
    /// Interconnects 2010), one hop of it 105 ns: the rest is divided between the two ends, and
    /// there between HyperTransport and NIC. The NIC moves more than 6 GB/s of user data (the
    /// same source) by its engine; what stores move is our choice, and so is the engine's start,
    /// which lets it overtake the stores between one and two thousand bytes, where runtimes
    /// change over. Nobody has published how long loss and death take to be noticed; those are
    /// ours.
    pub const GEMINI: Timing = Timing {
        host: Span::from_ns(140),
        nic: Span::from_ns(150),
        // HyperTransport 3: 16 bits at 5.2 GT/s.
        interface: Rate(10_400_000_000),
        stores: Rate(4_500_000_000),
        dma_start: Span::from_ns(100),
        dma: Rate(6_200_000_000),
        hop: Span::from_ns(105),
        poll: Span::from_ns(100),
        lazy: Span::from_us(2),
        work: Span::from_ns(30),
        batch: 16,
        loss: Span::from_us(20),
        death: Span::from_ms(1),
        queue_bytes: 64 * 1024,
        sleep: None,
    };

    /// Those of Aries. A put of eight bytes takes 0.8 us (Cray XC white paper, 2012), with a hop
    /// of 100 ns or none in it; PCIe takes a little longer than HyperTransport. The engine is as
    /// fast as the greatest bandwidth that two nodes have been seen to reach, 9.9 GB/s; stores
    /// are as fast as the slope of short messages says, once their receiver has copied them.
    pub const ARIES: Timing = Timing {
        host: Span::from_ns(200),
        nic: Span::from_ns(155),
        // PCIe 3: sixteen lanes at 8 GT/s.
        interface: Rate(16_000_000_000),
        stores: Rate(5_500_000_000),
        dma: Rate(9_900_000_000),
        hop: Span::from_ns(100),
        ..Timing::GEMINI
    };

    /// Between a host's memory and the link behind its NIC, each way.
    #[must_use]
    pub const fn end(&self) -> Span {
        Span(self.host.0 + self.nic.0)
    }

    /// How long the mover of a packet takes to begin, and then for its bytes.
    #[must_use]
    pub fn moving(&self, load: &Load) -> (Span, Span) {
        let (start, rate) = match load.mover {
            Mover::Processor => (Span::ZERO, self.stores),
            Mover::Dma => (self.dma_start, self.dma),
            Mover::Answer => (Span::ZERO, self.dma),
        };
        (start, rate.min(self.interface).time_of(u64::from(load.data)))
    }
}

impl Default for Timing {
    fn default() -> Self {
        Timing::GEMINI
    }
}

/// How things that could happen at one moment are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// In the order in which they were caused.
    #[default]
    Fifo,
    /// By chance, and up to `jitter` late.
    Random {
        /// How late.
        jitter: Span,
    },
    /// Probabilistic concurrency testing: procs have priorities, drawn once; at `depth` - 1
    /// moments among the first `steps` events one proc becomes the last of all.
    Pct {
        /// How many things have to come together for the bug that is looked for.
        depth: u32,
        /// Among how many events to look.
        steps: u64,
        /// How late the proc of least priority is.
        jitter: Span,
    },
}

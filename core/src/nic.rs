//! A NIC that has to be emulated, seen from outside: ops and packets in, completions and
//! packets out. A world carries its packets over links with time and faults; a driver carries
//! them over a real fabric.

use core::fmt::Debug;
use core::hash::Hash;

use crate::id::{FragId, ProcName};
use crate::machine::{Machine, Named, Reason};
use crate::rma::{Amo, Place, Tail};

/// Where a NIC is reached: the node's NIC, and which instance on it.
///
/// The instance is fresh for every life of a proc, so what was meant for an earlier life never
/// reaches a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Address {
    /// The NIC.
    pub nic: u32,
    /// The instance on it.
    pub instance: u32,
}

/// An emulated NIC.
pub trait Nic:
    Machine<
        Event = NicEvent<Self::Op, Self::Packet, Self::Receipt, Self::Fault>,
        Effect = NicEffect<Self::Completion, Self::Packet>,
    >
{
    /// What its host asks.
    type Op: Clone + Debug + Hash + Named;
    /// What its host is told.
    type Completion: Clone + Debug + Hash + Named;
    /// What it puts on the wire.
    type Packet: Clone + Debug + Hash + Named;
    /// What it needs to know a packet again when its fate is known.
    type Receipt: Copy + Debug + Hash;
    /// The misbehaviours that it can be told to show.
    type Fault: Copy + Debug + Named + PartialEq + 'static;

    /// How many queues its host polls.
    const QUEUES: u8;
    /// Every fault, for scenario files and the search.
    const FAULTS: &'static [Self::Fault];

    /// Whether polling `queue` would bring something.
    fn ready(&self, queue: u8) -> bool;

    /// Whether somebody waits for what is in `queue`. What is not urgent is seen when the host
    /// looks for another reason, or after a while.
    #[must_use]
    fn is_urgent(queue: u8) -> bool {
        let _ = queue;
        true
    }

    /// Whether what comes into `queue` wakes a host that sleeps.
    #[must_use]
    fn interrupts(queue: u8) -> bool {
        let _ = queue;
        false
    }

    /// Whether any queue would.
    #[inline]
    fn any_ready(&self) -> bool {
        (0..Self::QUEUES).any(|queue| self.ready(queue))
    }

    /// Whether a packet is so small, and answers something, that its load on the links does not
    /// count: a world may carry it in one go.
    fn is_light(packet: &Self::Packet) -> bool {
        let _ = packet;
        false
    }

    /// Whether the NIC takes packets like this in the order in which their sender sent them,
    /// whatever the fabric does: then a search need not try other orders.
    fn ordered(packet: &Self::Packet) -> bool;

    /// Forgets counters whose only use is to order what is on the wire, if nothing is: makes
    /// states equal that differ in history alone. Both ends are asked; each says yes first.
    fn rest(&mut self, peer: Address, forget: bool) -> bool {
        let _ = (peer, forget);
        false
    }

    /// What to keep of a packet whose safe arrival its sender wants to hear of.
    fn receipt(packet: &Self::Packet) -> Option<Self::Receipt>;

    /// The packet with a bit of what its software reads flipped, or `None` where the device's
    /// own check would have caught it.
    fn corrupted(packet: &Self::Packet, bit: u64) -> Option<Self::Packet>;

    /// The bytes of this proc's memory that go with a packet, as they are when it leaves.
    fn payload(packet: &Self::Packet) -> Option<(Place, u32)> {
        let _ = packet;
        None
    }

    /// What `op` asks of the driver, who knows the modex and holds the memory, instead of the
    /// device.
    fn errand(op: &Self::Op) -> Option<Errand>;

    /// The driver's answer to an op that asked for an address.
    fn found(op: &Self::Op, card: Result<Address, Reason>) -> Option<Self::Completion>;

    /// Whether `fault` bears on `op`: what a fault with a rate is drawn for.
    fn bears_on(fault: Self::Fault, op: &Self::Op) -> bool;
}

/// What a driver does for a transport besides carrying its ops to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Errand {
    /// Look up the address that this proc published.
    Resolve(ProcName),
    /// Copy the payload of a message into registered memory.
    Stage {
        /// Which.
        data: FragId,
        /// Where to.
        into: Place,
        /// Its bytes.
        len: u32,
    },
    /// Write a few bytes.
    Write {
        /// Where to.
        at: Place,
        /// What.
        tail: Tail,
    },
}

/// What a packet asks of the parts between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Load {
    /// What moves it.
    pub mover: Mover,
    /// Bytes that the mover fetches from memory.
    pub data: u32,
    /// Bytes that it takes on each link of its way.
    pub wire: u32,
    /// Bytes that the device sends over the same links the other way on its account.
    pub back: u32,
}

/// What brings the bytes of a packet from memory to the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Mover {
    /// Stores of the processor: at once, and as fast as a processor stores.
    Processor,
    /// An engine of the NIC: has to be started, and is as fast as the interface of the host.
    Dma,
    /// The same engine on behalf of somebody else, whose question it answers.
    Answer,
}

/// What can happen to a NIC.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NicEvent<O, P, R, F> {
    /// Its host asks.
    Op(O),
    /// A packet came in.
    Packet {
        /// Who sent it.
        from: Address,
        /// What.
        packet: P,
    },
    /// A packet of its own is safely there.
    Delivered {
        /// Which.
        receipt: R,
    },
    /// A packet of its own arrived, and was refused for good.
    Rejected {
        /// Which.
        receipt: R,
    },
    /// A packet of its own did not get through this time.
    Lost {
        /// Where it was to go.
        to: Address,
        /// What.
        packet: P,
    },
    /// The fabric says that the node behind this address is gone.
    Down {
        /// Which.
        peer: Address,
    },
    /// Its host looks into a queue; at most one completion comes of it.
    Poll {
        /// Which queue.
        queue: u8,
    },
    /// The word that it asked for by `Modify` held this.
    Modified {
        /// Before.
        found: u64,
    },
    /// It is to misbehave.
    Fault(F),
    /// The deadline that it named has come.
    Expired,
}

/// What a NIC wants done. A completion that comes of an op is that op's answer and reaches the
/// host before anything else does; one that comes of a poll is an entry of that queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NicEffect<C, P> {
    /// Tell the host.
    Completion(C),
    /// Put a packet on the wire.
    Packet {
        /// Where to.
        to: Address,
        /// What.
        packet: P,
    },
    /// Write the payload of the packet that it was just given.
    Store {
        /// Where to.
        at: Place,
        /// How many bytes.
        len: u32,
    },
    /// Change a word of memory, at once, and say by `Modified` what it held.
    Modify {
        /// Which.
        at: Place,
        /// How.
        amo: Amo,
        /// With what.
        operand: u64,
        /// And with what else.
        second: u64,
    },
}

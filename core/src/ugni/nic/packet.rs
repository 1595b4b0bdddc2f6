//! What NICs say to each other.

use alloc::boxed::Box;

use crate::id::EpId;
use crate::machine::Named;
use crate::rma::{Amo, Place};
use crate::ugni::access::{End, Engine};
use crate::ugni::{Content, Control, MboxId, RecordBytes};

/// What the NIC puts on the wire.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Packet {
    /// One step of the datagram exchange; in order between two NICs.
    Datagram {
        /// Its place in the order.
        seq: u32,
        /// No place before this one is waited for any more.
        floor: u32,
        /// How often it was sent before.
        tries: u8,
        /// Which directed datagram it is about.
        serial: u32,
        /// What it says of it.
        body: Exchange,
    },
    /// A message on its way into a mailbox.
    Smsg {
        /// The mailbox, by address: the device asks no further.
        mbox: MboxId,
        /// Event data: the receiver's endpoint.
        index: u32,
        /// The sender's endpoint.
        ep: EpId,
        /// Its slot.
        seq: u32,
        /// What.
        content: Content,
        /// Payload bytes.
        len: u32,
        /// How often it was sent before.
        tries: u8,
    },
    /// Credits on their way back.
    Credit {
        /// The endpoint that gets them.
        ep: EpId,
        /// The mailbox whose slots they are: tells a late return from one of this connection.
        mbox: MboxId,
        /// Slots freed since the connection came up.
        freed: u16,
        /// How often it was sent before.
        tries: u8,
    },
    /// A message of the transport's own on its way into a mailbox.
    Control(Box<ControlPacket>),
    /// Bytes for a place; they go with it.
    Put {
        /// Its number.
        serial: u32,
        /// How many numbers before it are not all settled.
        behind: u16,
        /// What sends it.
        engine: Engine,
        /// Where to.
        remote: Place,
        /// How many.
        len: u32,
        /// Where they lie at the sender.
        local: Place,
    },
    /// A question for the bytes of a place.
    Get {
        /// Its number.
        serial: u32,
        /// What receives the answer.
        engine: Engine,
        /// Which place.
        remote: Place,
        /// How many.
        len: u32,
    },
    /// A word is to be changed.
    Atomic {
        /// Its number.
        serial: u32,
        /// How many numbers before it are not all settled.
        behind: u16,
        /// How.
        amo: Amo,
        /// Which.
        remote: Place,
        /// With what.
        operand: u64,
        /// And with what else.
        second: u64,
    },
    /// An interrupt is to be raised.
    Wake {
        /// Its number.
        serial: u32,
    },
    /// The answer to any of these.
    Reply {
        /// To which.
        serial: u32,
        /// How it went.
        end: End,
        /// How often it was sent before.
        tries: u8,
        /// What an atomic found.
        found: u64,
        /// Where the bytes that a get asked for lie at the sender; they go with it.
        from: Place,
        /// How many.
        len: u32,
    },
}

/// A message of the transport's own as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ControlPacket {
    pub(super) mbox: MboxId,
    pub(super) index: u32,
    pub(super) ep: EpId,
    pub(super) seq: u32,
    pub(super) control: Control,
    pub(super) tries: u8,
}

/// A step of the datagram exchange.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Exchange {
    /// A directed datagram.
    Directed(Box<RecordBytes>),
    /// It met one here, which said this.
    Matched(Box<RecordBytes>),
    /// It is withdrawn.
    Cancel,
    /// It will not be met any more.
    Cancelled,
}

/// What is kept of a message until its fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Receipt {
    pub(super) ep: EpId,
    pub(super) seq: u32,
}

impl Packet {
    /// Whether it answers something and is so small that its load does not count.
    pub(super) fn is_light(&self) -> bool {
        match self {
            Packet::Datagram { body: Exchange::Directed(_), .. }
            | Packet::Smsg { .. }
            | Packet::Control(_)
            | Packet::Put { .. }
            | Packet::Get { .. }
            | Packet::Atomic { .. }
            | Packet::Wake { .. } => false,
            Packet::Reply { len, .. } => *len == 0,
            Packet::Datagram { .. } | Packet::Credit { .. } => true,
        }
    }

    /// The bytes of its sender's memory that go with it.
    pub(super) fn payload(&self) -> Option<(Place, u32)> {
        match *self {
            Packet::Put { local, len, .. } if len > 0 => Some((local, len)),
            Packet::Reply { end: End::Done, from, len, .. } if len > 0 => Some((from, len)),
            Packet::Put { .. }
            | Packet::Reply { .. }
            | Packet::Datagram { .. }
            | Packet::Smsg { .. }
            | Packet::Control(_)
            | Packet::Credit { .. }
            | Packet::Get { .. }
            | Packet::Atomic { .. }
            | Packet::Wake { .. } => None,
        }
    }
}

impl Named for Packet {
    const WORDS: &'static [&'static str] = &[
        "directed",
        "matched",
        "cancel",
        "cancelled",
        "smsg",
        "credit",
        "control",
        "put-request",
        "get-request",
        "atomic-request",
        "wake",
        "reply",
    ];
    fn word(&self) -> &'static str {
        match self {
            Packet::Datagram { body: Exchange::Directed(_), .. } => "directed",
            Packet::Datagram { body: Exchange::Matched(_), .. } => "matched",
            Packet::Datagram { body: Exchange::Cancel, .. } => "cancel",
            Packet::Datagram { body: Exchange::Cancelled, .. } => "cancelled",
            Packet::Smsg { .. } => "smsg",
            Packet::Credit { .. } => "credit",
            Packet::Control(_) => "control",
            Packet::Put { .. } => "put-request",
            Packet::Get { .. } => "get-request",
            Packet::Atomic { .. } => "atomic-request",
            Packet::Wake { .. } => "wake",
            Packet::Reply { .. } => "reply",
        }
    }
}

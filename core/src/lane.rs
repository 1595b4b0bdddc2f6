//! Frames between two emulated NICs, on a fabric that carries messages.
//!
//! The fabric brings each frame once and in order, or says that the peer is gone. What it says of
//! a frame of its own sending means different things on different fabrics, so frames are
//! acknowledged here: a packet is delivered when the peer's NIC has had it. All that collected
//! since the last doorbell goes in one frame, and an acknowledgement goes with it; alone it goes
//! only if nothing else did for a while.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt::Debug;

use crate::id::FragId;
use crate::machine::{Violation, ensure};
use crate::nic::Address;
use crate::rma::Place;
use crate::time::{Span, Time};
use crate::wire::{Fields, WireError};

crate::tunables! {
    /// How frames go.
    pub struct Config {
        window: Count = 32, 2 => 65_535, "Frames to one peer that may be unacknowledged.";
        ack_every: Count = 8, 1 => 65_535, "Frames after which an acknowledgement goes alone, at once.";
        ack_delay: Time = 20_000_000, 0 => 9_000_000_000_000_000_000, "Wait for something to go along with, before an acknowledgement goes alone.";
    }
}

/// A packet that frames can carry.
pub trait Carried: Sized + Clone + Debug {
    /// Bytes that none exceeds, without its payload.
    const BYTES_MAX: usize;
    /// Appends it as bytes.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are none, or too few.
    fn read(fields: &mut Fields<'_>) -> Result<Self, WireError>;
    /// Where its payload lies at its sender.
    fn source(&self) -> Source;
    /// The name under which its receiver keeps what it says, if it is a message for a mailbox of
    /// `slots` slots. It goes by that name from now on.
    fn land(&mut self, slots: u16) -> Option<FragId>;

    /// Bytes of its payload.
    fn payload_len(&self) -> u32 {
        match self.source() {
            Source::None => 0,
            Source::Message(_, len) | Source::Memory(_, len) => len,
        }
    }
}

/// Where a payload lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// There is none.
    None,
    /// It is the message of this name.
    Message(FragId, u32),
    /// It lies in registered memory.
    Memory(Place, u32),
}

/// `SLVF`.
const MAGIC: u32 = u32::from_le_bytes(*b"SLVF");
const VERSION: u8 = 1;

/// What a frame starts with. Packets follow to its end.
///
/// | offset | bytes | field |
/// | --- | --- | --- |
/// | 0 | 4 | magic `SLVF` |
/// | 4 | 1 | version, 1 |
/// | 5 | 1 | kind: 0 an acknowledgement alone, 1 with packets |
/// | 6 | 2 | how many refusals follow the header |
/// | 8 | 8 | token, which only procs of the job can know |
/// | 16 | 8 | the sender: NIC, instance |
/// | 24 | 4 | number |
/// | 28 | 4 | the next number that the sender expects |
/// | 32 | 6 each | refusals: number of a frame, place of the packet in it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Proves that the sender belongs to the job.
    pub token: u64,
    /// Who sends.
    pub from: Address,
    /// The frame's number, if it carries packets.
    pub number: Option<u32>,
    /// All frames before this one have been heard.
    pub heard: u32,
    /// How many refusals follow.
    pub refusals: u16,
}

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = 32;

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&[VERSION, u8::from(self.number.is_some())]);
        out.extend_from_slice(&self.refusals.to_le_bytes());
        out.extend_from_slice(&self.token.to_le_bytes());
        out.extend_from_slice(&self.from.nic.to_le_bytes());
        out.extend_from_slice(&self.from.instance.to_le_bytes());
        out.extend_from_slice(&self.number.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&self.heard.to_le_bytes());
    }

    /// Reads it.
    ///
    /// # Errors
    /// When the bytes do not start like a frame.
    pub fn read(fields: &mut Fields<'_>) -> Result<Header, WireError> {
        let magic = fields.u32()?;
        if magic != MAGIC {
            return Err(WireError::Magic(magic));
        }
        let version = fields.u8()?;
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let kind = fields.u8()?;
        let refusals = fields.u16()?;
        let token = fields.u64()?;
        let from = Address { nic: fields.u32()?, instance: fields.u32()? };
        let (number, heard) = (fields.u32()?, fields.u32()?);
        let number = match kind {
            0 => None,
            1 => Some(number),
            _ => return Err(WireError::Field("kind of a frame")),
        };
        Ok(Header { token, from, number, heard, refusals })
    }
}

/// A packet that the peer's NIC has refused: the frame, and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// Number of the frame.
    pub frame: u32,
    /// Which of its packets, from zero.
    pub place: u16,
}

impl Refusal {
    /// Bytes of one.
    pub const BYTES: usize = 6;

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame.to_le_bytes());
        out.extend_from_slice(&self.place.to_le_bytes());
    }

    /// Reads it.
    ///
    /// # Errors
    /// When there are too few bytes.
    pub fn read(fields: &mut Fields<'_>) -> Result<Refusal, WireError> {
        Ok(Refusal { frame: fields.u32()?, place: fields.u16()? })
    }
}

/// What to do with a frame that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Its packets are for the NIC.
    Now,
    /// It came before; nothing in it is new.
    Again,
    /// It has no packets.
    Empty,
    /// A frame before it is missing, which the fabric does not let happen; or it acknowledges what
    /// was never sent. The lane is of no use any more.
    Broken,
}

/// One peer's lane: what goes there, and what comes from there.
#[derive(Clone, Debug)]
pub struct Lane<P> {
    /// Packets that wait for the doorbell, or for the window.
    waiting: VecDeque<P>,
    /// Packets in frames that are not acknowledged, with the frame's number.
    out: VecDeque<(u32, P)>,
    /// The number of the next frame.
    next: u32,
    /// The oldest frame that is not acknowledged.
    oldest: u32,
    /// The number of the next frame that is to come.
    expected: u32,
    /// What the peer was told of that.
    told: u32,
    /// Since when it could have been told more.
    owes: Option<Time>,
    refused: Vec<Refusal>,
}

impl<P> Default for Lane<P> {
    fn default() -> Self {
        Lane {
            waiting: VecDeque::new(),
            out: VecDeque::new(),
            next: 0,
            oldest: 0,
            expected: 0,
            told: 0,
            owes: None,
            refused: Vec::new(),
        }
    }
}

/// Refusals that one frame carries at most: it has to have room for a packet besides.
const REFUSALS_MAX: usize = 64;

impl<P: Carried> Lane<P> {
    /// A packet is to go.
    pub fn push(&mut self, packet: P) {
        self.waiting.push_back(packet);
    }

    /// Whether a frame is to go now.
    #[must_use]
    pub fn is_due(&self, now: Time, config: &Config) -> bool {
        let open = u64::from(self.next.wrapping_sub(self.oldest)) < config.window;
        let unheard = u64::from(self.expected.wrapping_sub(self.told));
        (open && !self.waiting.is_empty())
            || unheard >= config.ack_every
            || self.deadline(config).is_some_and(|at| at <= now)
    }

    /// When an acknowledgement goes alone.
    #[must_use]
    pub fn deadline(&self, config: &Config) -> Option<Time> {
        self.owes.map(|since| since + Span(config.ack_delay))
    }

    /// Starts a frame: its header's part of the lane, and the refusals that go with it. If it has
    /// a number, packets are to follow by [`load`](Self::load).
    pub fn open(&mut self, config: &Config) -> (Option<u32>, u32, Vec<Refusal>) {
        let open = u64::from(self.next.wrapping_sub(self.oldest)) < config.window;
        let number = (open && !self.waiting.is_empty()).then(|| {
            let number = self.next;
            self.next = number.wrapping_add(1);
            number
        });
        let count = self.refused.len().min(REFUSALS_MAX);
        let refused = self.refused.drain(..count).collect();
        self.owes = None;
        // Whoever refuses more than a frame can say has to hold back what it has heard.
        self.told = self.refused.first().map_or(self.expected, |refusal| refusal.frame);
        (number, self.told, refused)
    }

    /// The packet that is next to go.
    #[must_use]
    pub fn peek(&self) -> Option<&P> {
        self.waiting.front()
    }

    /// It goes in the frame of this number.
    pub fn load(&mut self, number: u32) {
        if let Some(packet) = self.waiting.pop_front() {
            self.out.push_back((number, packet));
        }
    }

    /// A frame came in: what it acknowledges is told, oldest first, with whether the peer's NIC
    /// has refused it.
    pub fn hear(
        &mut self,
        now: Time,
        header: &Header,
        refused: &[Refusal],
        mut settle: impl FnMut(P, bool),
    ) -> Heard {
        let acknowledged = header.heard.wrapping_sub(self.oldest);
        let outstanding = self.next.wrapping_sub(self.oldest);
        if acknowledged <= outstanding {
            self.oldest = header.heard;
            let (mut frame, mut place) = (None, 0);
            while let Some((number, packet)) = self.out.pop_front() {
                if (number.wrapping_sub(header.heard) as i32) >= 0 {
                    self.out.push_front((number, packet));
                    break;
                }
                place = if frame == Some(number) { place + 1 } else { 0 };
                frame = Some(number);
                settle(packet, refused.contains(&Refusal { frame: number, place }));
            }
        } else if (acknowledged as i32) > 0 {
            return Heard::Broken;
        }
        let Some(number) = header.number else { return Heard::Empty };
        match number.wrapping_sub(self.expected) as i32 {
            0 => {
                self.expected = number.wrapping_add(1);
                self.owes = self.owes.or(Some(now));
                Heard::Now
            }
            early if early > 0 => Heard::Broken,
            _ => Heard::Again,
        }
    }

    /// The NIC here has refused a packet of the frame that came last.
    pub fn refuse(&mut self, place: u16) {
        let frame = self.expected.wrapping_sub(1);
        self.refused.push(Refusal { frame, place });
    }

    /// The peer is gone: what never got there, oldest first.
    pub fn give_up(&mut self) -> impl Iterator<Item = P> + '_ {
        self.owes = None;
        self.refused.clear();
        self.told = self.expected;
        self.oldest = self.next;
        self.out.drain(..).map(|(_, packet)| packet).chain(self.waiting.drain(..))
    }

    /// Whether nothing is on its way, and nothing is owed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty() && self.owes.is_none()
    }

    /// The invariants.
    ///
    /// # Errors
    /// The rule that does not hold.
    pub fn check(&self, config: &Config) -> Result<(), Violation> {
        let outstanding = self.next.wrapping_sub(self.oldest);
        ensure(u64::from(outstanding) <= config.window, "no more frames are out than may be")?;
        let within = |&(number, _): &(u32, P)| number.wrapping_sub(self.oldest) < outstanding;
        ensure(self.out.iter().all(within), "what is out is in a frame that is out")
    }
}

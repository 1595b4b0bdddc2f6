//! What happened, as a number and as lines.
//!
//! The digest folds every event of every proc, with its time, into 64 bits, the same on every
//! machine: same digest, same history. The recorder keeps the last events whole, for people; it
//! is off unless somebody will read it.

use std::collections::VecDeque;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

use selvedge_core::{Address, Event, Named, Nic, Notice, Time};

use crate::simulated::{Completion, Op, Packet, Simulated};

/// A running digest. Fixed arithmetic, no dependence on word size or byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0x5E1F_ED6E_5E1F_ED6E)
    }
}

impl Digest {
    /// The digest so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    #[inline]
    fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.mix(u64::from(n));
    }
    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.mix(u64::from(n));
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.mix(u64::from(n));
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }
    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }
    #[inline]
    fn write_isize(&mut self, n: isize) {
        self.mix(n as u64);
    }
}

/// One thing that happened at one proc.
#[derive(Clone, Debug)]
pub struct Record<T: Simulated> {
    /// When.
    pub at: Time,
    /// At which proc.
    pub proc: u32,
    /// What.
    pub what: What<T>,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What<T: Simulated> {
    /// The transport was stepped.
    Event(Event<Completion<T>>),
    /// It asked its device for something.
    Op(Op<T>),
    /// It told the application something.
    Notice(Notice),
    /// A packet left for another proc.
    Sent {
        /// Where to.
        to: u32,
        /// What.
        packet: Packet<T>,
    },
    /// A packet came in.
    Came {
        /// Where from.
        from: u32,
        /// What.
        packet: Packet<T>,
    },
    /// A packet did not get through.
    Lost {
        /// Where it was to go.
        to: u32,
        /// What.
        packet: Packet<T>,
    },
    /// A fault struck.
    Fault(&'static str),
}

impl<T: Simulated> What<T> {
    /// The word by which files and reports call it.
    pub fn word(&self) -> &'static str {
        match self {
            What::Event(Event::Command(command)) => command.word(),
            What::Event(Event::Completion(completion)) => completion.word(),
            What::Event(Event::Expired) => "expired",
            What::Op(op) => op.word(),
            What::Notice(notice) => notice.word(),
            What::Sent { packet, .. } | What::Came { packet, .. } | What::Lost { packet, .. } => {
                packet.word()
            }
            What::Fault(word) => word,
        }
    }
}

impl<T: Simulated> std::fmt::Display for Record<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut line = String::new();
        match &self.what {
            What::Event(Event::Command(command)) => write!(line, "asked   {command:?}"),
            What::Event(Event::Completion(completion)) => write!(line, "heard   {completion:?}"),
            What::Event(Event::Expired) => write!(line, "heard   Expired"),
            What::Op(op) => write!(line, "op      {op:?}"),
            What::Notice(notice) => write!(line, "told    {notice:?}"),
            What::Sent { to, packet } => write!(line, "-> {to:<4} {packet:?}"),
            What::Came { from, packet } => write!(line, "<- {from:<4} {packet:?}"),
            What::Lost { to, packet } => write!(line, "-x {to:<4} {packet:?}"),
            What::Fault(word) => write!(line, "FAULT   {word}"),
        }?;
        // Records of connections print as the bytes they are: keep the line readable.
        if line.len() > 200 {
            let end = (0..=200).rev().find(|&end| line.is_char_boundary(end)).unwrap_or(0);
            line.truncate(end);
            line.push_str(" ...");
        }
        write!(f, "{:>12} proc {:<4} {line}", self.at.to_string(), self.proc)
    }
}

/// The last events, whole.
#[derive(Clone, Debug)]
pub struct Recorder<T: Simulated> {
    ring: VecDeque<Record<T>>,
    keep: usize,
}

impl<T: Simulated> Recorder<T> {
    /// Keeps the last `keep` events.
    #[must_use]
    pub fn new(keep: usize) -> Self {
        Recorder { ring: VecDeque::with_capacity(keep.min(4_096)), keep: keep.max(1) }
    }

    /// One more.
    pub fn push(&mut self, record: Record<T>) {
        if self.ring.len() == self.keep {
            self.ring.pop_front();
        }
        self.ring.push_back(record);
    }

    /// All that is kept, oldest first.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &Record<T>> {
        self.ring.iter()
    }

    /// The last `n` as lines, oldest first.
    #[must_use]
    pub fn tail(&self, n: usize) -> Vec<String> {
        self.ring.iter().skip(self.ring.len().saturating_sub(n)).map(ToString::to_string).collect()
    }
}

/// Folds one step of one proc into `digest`.
#[inline]
pub fn fold<T: Simulated>(
    digest: &mut Digest,
    now: Time,
    proc: u32,
    event: &Event<<T::Nic as Nic>::Completion>,
) {
    (now.0, proc).hash(digest);
    event.hash(digest);
}

/// The proc behind an address, as [`address`] made it.
#[must_use]
pub const fn proc_of(address: Address) -> u32 {
    address.instance & PROC_MASK
}

/// Which life of the proc an address belongs to.
#[must_use]
pub const fn life_of(address: Address) -> u32 {
    address.instance >> PROC_BITS
}

/// The address of a proc in its `life`-th life, on node `nic`.
#[must_use]
pub const fn address(nic: u32, proc: u32, life: u32) -> Address {
    Address { nic, instance: life << PROC_BITS | proc }
}

const PROC_BITS: u32 = 24;
const PROC_MASK: u32 = (1 << PROC_BITS) - 1;

/// As many procs as a world can hold.
pub const PROCS_MAX: u32 = 1 << PROC_BITS;
/// As many lives as a proc can have.
pub const LIVES_MAX: u32 = (1 << (32 - PROC_BITS)) - 1;

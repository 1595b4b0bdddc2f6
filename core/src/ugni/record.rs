//! The connection record: what travels in a datagram.
//!
//! One record says everything about one attempt of its sender: which attempt it is, which
//! attempt of the receiver it has accepted (`sees`), and which attempts of the receiver it will
//! never write to again (`over`). The last is what lets a mailbox leave quarantine.

use core::fmt;

use crate::id::{Generation, ProcName};
use crate::wire::{Reader, WireError, Writer};

use super::MboxId;

/// `SLVG`.
const MAGIC: u32 = u32::from_le_bytes(*b"SLVG");
const VERSION: u8 = 1;

/// How to reach the sender's mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Peer {
    /// The mailbox, in the sender's registered memory.
    pub mbox: MboxId,
    /// The sender's endpoint for us: goes into the event that our messages raise there.
    pub index: u32,
    /// Messages that the mailbox holds.
    pub credits: u16,
    /// Bytes of the longest message.
    pub size: u32,
}

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Body {
    /// A wildcard's answer: somebody lives here, and will call back.
    Open,
    /// Here is my mailbox.
    Offer(Peer),
    /// This attempt is over.
    Bye {
        /// The sender already knows that the receiver will not write to it again. Unless it
        /// does, the receiver has to answer.
        answered: bool,
        /// The mailbox of the attempt, if it was ever used: a receiver that never got the offer
        /// needs it to read what was sent meanwhile.
        from: Option<Peer>,
    },
}

/// A connection record as it travels. Shown as what it says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RecordBytes(
    #[cfg_attr(feature = "serde", serde(with = "serde_big_array::BigArray"))]
    pub  [u8; Record::BYTES],
);

impl fmt::Debug for RecordBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Record::read(&self.0) {
            Ok(record) => write!(f, "{record}"),
            Err(error) => write!(f, "bad record ({error})"),
        }
    }
}

/// A connection record.
///
/// | offset | bytes | field |
/// | --- | --- | --- |
/// | 0 | 4 | magic `SLVG` |
/// | 4 | 1 | version, 1 |
/// | 5 | 1 | kind: 0 open, 1 offer, 2 bye, 3 bye answered; plus 4: a bye with a mailbox |
/// | 6 | 2 | credits |
/// | 8 | 4 | job |
/// | 12 | 4 | rank |
/// | 16 | 8 | generation |
/// | 24 | 8 | sees |
/// | 32 | 8 | over |
/// | 40 | 4 | mailbox |
/// | 44 | 4 | endpoint index, below 2^24 (the width of Aries event data) |
/// | 48 | 4 | longest message |
/// | 52 | 4 | CRC-32C of the bytes before |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// The sender.
    pub who: ProcName,
    /// Its attempt.
    pub generation: Generation,
    /// The receiver's attempt that it has accepted, or `NONE`.
    pub sees: Generation,
    /// It will not write to this attempt of the receiver, nor to any before.
    pub over: Generation,
    /// What it says.
    pub body: Body,
}

impl Record {
    /// Bytes of a record; a datagram carries at most 128.
    pub const BYTES: usize = 56;
    /// Endpoint indices lie below this: Aries carries 24 bits of event data.
    pub const INDEX_END: u32 = 1 << 24;

    /// As sent.
    #[must_use]
    pub fn encode(&self) -> RecordBytes {
        let (kind, peer) = match self.body {
            Body::Open => (0, None),
            Body::Offer(peer) => (1, Some(peer)),
            Body::Bye { answered, from } => {
                (2 + u8::from(answered) + 4 * u8::from(from.is_some()), from)
            }
        };
        let peer = peer.unwrap_or(Peer { mbox: MboxId(0), index: 0, credits: 0, size: 0 });
        let mut bytes = Writer::default();
        bytes
            .u32(MAGIC)
            .u8(VERSION)
            .u8(kind)
            .u16(peer.credits)
            .u32(self.who.job)
            .u32(self.who.rank)
            .u64(self.generation.0)
            .u64(self.sees.0)
            .u64(self.over.0)
            .u32(peer.mbox.0)
            .u32(peer.index)
            .u32(peer.size);
        RecordBytes(bytes.sealed())
    }

    /// Reads a record sent within `job`.
    ///
    /// # Errors
    /// When the bytes are no record, or of another job, or say what no sender can mean.
    pub fn parse(bytes: &[u8], job: u32) -> Result<Record, WireError> {
        let record = Record::read(bytes)?;
        if record.who.job != job {
            return Err(WireError::Job(record.who.job));
        }
        Ok(record)
    }

    /// Reads a record of whatever job.
    fn read(bytes: &[u8]) -> Result<Record, WireError> {
        let mut reader = Reader::open::<{ Record::BYTES }>(bytes, MAGIC, VERSION)?;
        let kind = reader.u8();
        let credits = reader.u16();
        let who = ProcName { job: reader.u32(), rank: reader.u32() };
        let generation = Generation(reader.u64());
        let sees = Generation(reader.u64());
        let over = Generation(reader.u64());
        let peer =
            Peer { mbox: MboxId(reader.u32()), index: reader.u32(), credits, size: reader.u32() };
        let body = match kind {
            0 => Body::Open,
            1 => Body::Offer(peer),
            2 | 3 | 6 | 7 => {
                Body::Bye { answered: kind & 1 == 1, from: (kind & 4 == 4).then_some(peer) }
            }
            _ => return Err(WireError::Field("kind")),
        };
        let mailbox = match body {
            Body::Open => return Ok(Record { who, generation, sees, over, body }),
            Body::Offer(peer) => Some(peer),
            Body::Bye { from, .. } => from,
        };
        let possible = [
            (mailbox.is_none_or(|peer| peer.credits >= 2), "credits"),
            (mailbox.is_none_or(|peer| peer.index < Record::INDEX_END), "endpoint index"),
            (mailbox.is_none_or(|peer| peer.size > 0), "longest message"),
            (generation.incarnation() > 0, "generation"),
            (over < sees || sees == Generation::NONE, "over"),
        ];
        for (possible, field) in possible {
            if !possible {
                return Err(WireError::Field(field));
            }
        }
        Ok(Record { who, generation, sees, over, body })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { who, generation, sees, over, body } = self;
        let (word, peer) = match body {
            Body::Open => return write!(f, "open by {who}"),
            Body::Offer(peer) => ("offer", Some(peer)),
            Body::Bye { answered: false, from } => ("bye", from.as_ref()),
            Body::Bye { answered: true, from } => ("last bye", from.as_ref()),
        };
        write!(f, "{word} by {who}, generation {generation}, sees {sees}, over {over}")?;
        let Some(Peer { mbox: MboxId(mbox), index, credits, size }) = peer else { return Ok(()) };
        write!(f, ", mailbox {mbox} of {credits} x {size} B, index {index}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Record {
        Record {
            who: ProcName { job: 1, rank: 2 },
            generation: Generation::born(1).next(),
            sees: Generation::NONE,
            over: Generation::NONE,
            body: Body::Offer(Peer { mbox: MboxId(3), index: 4, credits: 32, size: 1_024 }),
        }
    }

    #[test]
    fn every_kind_reads_back() {
        let from = match offer().body {
            Body::Offer(peer) => Some(peer),
            Body::Open | Body::Bye { .. } => None,
        };
        for body in [
            Body::Open,
            offer().body,
            Body::Bye { answered: false, from: None },
            Body::Bye { answered: true, from: None },
            Body::Bye { answered: false, from },
            Body::Bye { answered: true, from },
        ] {
            let record = Record { body, ..offer() };
            assert_eq!(Record::parse(&record.encode().0, 1), Ok(record));
        }
    }

    #[test]
    fn what_no_sender_means_is_refused() {
        let peer = Peer { mbox: MboxId(3), index: 4, credits: 32, size: 1_024 };
        let later = Generation::born(1).next();
        let wrong = [
            (Record { body: Body::Offer(Peer { credits: 1, ..peer }), ..offer() }, "credits"),
            (
                Record { body: Body::Offer(Peer { index: 1 << 24, ..peer }), ..offer() },
                "endpoint index",
            ),
            (Record { body: Body::Offer(Peer { size: 0, ..peer }), ..offer() }, "longest message"),
            (Record { generation: Generation(1), ..offer() }, "generation"),
            (Record { sees: later, over: later, ..offer() }, "over"),
        ];
        for (record, field) in wrong {
            assert_eq!(Record::parse(&record.encode().0, 1), Err(WireError::Field(field)));
        }
        assert_eq!(Record::parse(&offer().encode().0, 2), Err(WireError::Job(1)));
    }
}

//! What packets take on the wire.
//!
//! Both chips move data in transactions of 64 bytes, each of which is answered. Requests and
//! responses are counted in phits: Gemini's as Sandia report SAND2013-0216C has them, Aries' as
//! the Cray XC white paper WP-Aries01-1112 does. A phit of Gemini has 24 bits. That of Aries was
//! not found; 24 bits cannot be, since 14 of them hold less than 64 bytes. 48 are taken, the least
//! multiple that leaves room for a header.

use crate::nic::{Load, Mover};

use super::{Config, Packet};
use crate::ugni::access::Engine;

/// Bytes of data that one transaction moves at most.
pub const TRANSACTION: u32 = 64;

/// The phits of one transaction, and what a phit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bits of a phit.
    pub phit_bits: u32,
    /// Of a put: request and response.
    pub put: [u32; 2],
    /// Of a get: request and response.
    pub get: [u32; 2],
}

impl Framing {
    /// Gemini's.
    pub const GEMINI: Framing = Framing { phit_bits: 24, put: [32, 3], get: [8, 27] };
    /// Aries'.
    pub const ARIES: Framing = Framing { phit_bits: 48, put: [14, 1], get: [3, 12] };

    /// That of the chip that `config` describes.
    #[must_use]
    pub const fn of(config: &Config) -> Framing {
        if config.aries == 0 { Framing::GEMINI } else { Framing::ARIES }
    }

    /// What so many phits take, in bytes.
    #[must_use]
    pub const fn bytes(self, phits: u32) -> u32 {
        phits * self.phit_bits / 8
    }

    /// The load of a put of so many bytes.
    const fn put(self, mover: Mover, data: u32) -> Load {
        self.load(mover, data, self.put)
    }

    /// The load of so many bytes whose transactions take so many phits there and back.
    const fn load(self, mover: Mover, data: u32, [there, back]: [u32; 2]) -> Load {
        let all = transactions(data);
        let (there, back) = (self.bytes(there), self.bytes(back));
        Load { mover, data, wire: all.saturating_mul(there), back: all.saturating_mul(back) }
    }
}

/// How many transactions move so many bytes: one, if there are none.
const fn transactions(data: u32) -> u32 {
    if data == 0 { 1 } else { data.div_ceil(TRANSACTION) }
}

/// What `packet` asks of the parts between two hosts. A message carries a header of 16 bytes, a
/// datagram always its 128; both are puts into memory of the peer that the library knows.
///
/// Each transaction is answered as soon as it is there. So the train of those that bring the data
/// takes the others along: the responses to a put, and the requests of a get but for the first,
/// which goes ahead.
pub(super) fn load(config: &Config, packet: &Packet) -> Load {
    let framing = Framing::of(config);
    match packet {
        Packet::Datagram { .. } => framing.put(Mover::Processor, 128),
        Packet::Smsg { len, .. } => framing.put(Mover::Processor, len.saturating_add(16)),
        Packet::Control(packet) => framing.put(Mover::Processor, packet.control.wire_len() + 16),
        Packet::Credit { .. } | Packet::Wake { .. } => framing.put(Mover::Processor, 8),
        Packet::Atomic { .. } => framing.put(Mover::Processor, 16),
        Packet::Put { engine, len, .. } => framing.put(mover(*engine), *len),
        Packet::Get { engine, .. } => framing.load(mover(*engine), 0, framing.get),
        Packet::Reply { len: 0, .. } => framing.load(Mover::Answer, 0, [framing.put[1], 0]),
        Packet::Reply { len, .. } => {
            let [request, response] = framing.get;
            framing.load(Mover::Answer, *len, [response, request])
        }
    }
}

fn mover(engine: Engine) -> Mover {
    match engine {
        Engine::Fma => Mover::Processor,
        Engine::Bte => Mover::Dma,
    }
}

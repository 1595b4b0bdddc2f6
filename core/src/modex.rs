//! The modex: the address record that each proc publishes and that its peers read before they
//! connect.

use crate::id::ProcName;
use crate::nic::Address;
use crate::wire::{Reader, WireError, Writer};

/// `SLVM`.
const MAGIC: u32 = u32::from_le_bytes(*b"SLVM");
const VERSION: u8 = 1;

/// What one proc publishes for one module.
///
/// | offset | bytes | field |
/// | --- | --- | --- |
/// | 0 | 4 | magic `SLVM` |
/// | 4 | 1 | version, 1 |
/// | 5 | 1 | zero |
/// | 6 | 2 | transport |
/// | 8 | 4 | job |
/// | 12 | 4 | rank |
/// | 16 | 4 | NIC address |
/// | 20 | 4 | instance |
/// | 24 | 4 | CRC-32C of the bytes before |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Card {
    /// Which transport the address belongs to.
    pub transport: u16,
    /// Who published it.
    pub owner: ProcName,
    /// Where the owner is reached.
    pub address: Address,
}

/// A card as bytes.
pub type CardBytes = [u8; Card::BYTES];

impl Card {
    /// Bytes of a card.
    pub const BYTES: usize = 28;

    /// As published.
    #[must_use]
    pub fn encode(&self) -> CardBytes {
        Writer::default()
            .u32(MAGIC)
            .u8(VERSION)
            .u8(0)
            .u16(self.transport)
            .u32(self.owner.job)
            .u32(self.owner.rank)
            .u32(self.address.nic)
            .u32(self.address.instance)
            .sealed()
    }

    /// Reads what `owner` published for `transport`.
    ///
    /// # Errors
    /// When the bytes are no card, or the card of another proc, job or transport.
    pub fn parse(bytes: &[u8], transport: u16, owner: ProcName) -> Result<Card, WireError> {
        let mut reader = Reader::open::<{ Card::BYTES }>(bytes, MAGIC, VERSION)?;
        if reader.u8() != 0 {
            return Err(WireError::Field("reserved byte"));
        }
        let card = Card {
            transport: reader.u16(),
            owner: ProcName { job: reader.u32(), rank: reader.u32() },
            address: Address { nic: reader.u32(), instance: reader.u32() },
        };
        if card.transport != transport {
            return Err(WireError::Field("transport"));
        }
        if card.owner.job != owner.job {
            return Err(WireError::Job(card.owner.job));
        }
        if card.owner != owner {
            return Err(WireError::Field("rank"));
        }
        Ok(card)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_reads_back_for_its_owner_only() {
        let owner = ProcName { job: 3, rank: 4 };
        let card = Card { transport: 1, owner, address: Address { nic: 5, instance: 6 } };
        let bytes = card.encode();
        assert_eq!(Card::parse(&bytes, 1, owner), Ok(card));
        assert_eq!(Card::parse(&bytes, 2, owner), Err(WireError::Field("transport")));
        let stranger = ProcName { job: 4, rank: 4 };
        assert_eq!(Card::parse(&bytes, 1, stranger), Err(WireError::Job(3)));
        let neighbour = ProcName { job: 3, rank: 5 };
        assert_eq!(Card::parse(&bytes, 1, neighbour), Err(WireError::Field("rank")));
        assert_eq!(Card::parse(&bytes[..8], 1, owner), Err(WireError::Size { want: 28, got: 8 }));
    }
}

//! The memory of a proc: regions of bytes that its NIC, its peers and its application use.

use std::collections::BTreeMap;

use selvedge_core::rma::{Amo, Place};
use selvedge_core::{FragId, RegionId};

/// Bytes on their way, or none.
pub type Payload = Box<[u8]>;

/// The memory of a proc. Whoever may use which part is for others to say: what nobody has
/// written is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    regions: BTreeMap<RegionId, Vec<u8>>,
}

impl Memory {
    /// Makes sure that a region has `len` bytes.
    pub fn provide(&mut self, region: RegionId, len: u32) {
        let bytes = self.regions.entry(region).or_default();
        if bytes.len() < len as usize {
            bytes.resize(len as usize, 0);
        }
    }

    /// The bytes at a place.
    #[must_use]
    pub fn read(&self, at: Place, len: u32) -> Payload {
        let mut bytes = vec![0; len as usize].into_boxed_slice();
        self.read_into(at, &mut bytes);
        bytes
    }

    /// The bytes at a place, into a buffer.
    pub fn read_into(&self, at: Place, into: &mut [u8]) {
        into.fill(0);
        let region = self.regions.get(&at.region).map_or(&[][..], Vec::as_slice);
        let there = region.get(at.offset as usize..).unwrap_or_default();
        let len = there.len().min(into.len());
        into[..len].copy_from_slice(&there[..len]);
    }

    /// Writes bytes to a place.
    pub fn write(&mut self, at: Place, bytes: &[u8]) {
        let start = at.offset as usize;
        let end = start + bytes.len();
        let region = self.regions.entry(at.region).or_default();
        if region.len() < end {
            region.resize(end, 0);
        }
        region[start..end].copy_from_slice(bytes);
    }

    /// Does an atomic operation on the word at a place: what it held.
    pub fn modify(&mut self, at: Place, amo: Amo, operand: u64, second: u64) -> u64 {
        let width = amo.width() as usize;
        let mut word = [0; 8];
        self.read_into(at, &mut word[..width]);
        let found = u64::from_le_bytes(word);
        let after = amo.apply(found, operand, second).to_le_bytes();
        self.write(at, &after[..width]);
        found
    }
}

/// What a message says: bytes that its sender and its name alone give, so that whoever receives
/// it can tell whether they are the right ones.
pub fn contents(sender: u32, data: FragId, len: u32) -> impl Iterator<Item = u8> {
    let mut state = u64::from(sender) << 32 | u64::from(data.0);
    let words = std::iter::repeat_with(move || {
        // SplitMix64: neighbouring names give words that have nothing in common.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)).to_le_bytes()
    });
    words.flatten().take(len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::rma::{Does, Width};

    const fn at(offset: u32) -> Place {
        Place { region: RegionId(7), offset }
    }

    #[test]
    fn what_is_written_is_read_and_the_rest_is_zero() {
        let mut memory = Memory::default();
        assert_eq!(*memory.read(at(3), 2), [0, 0]);
        memory.provide(RegionId(7), 4);
        memory.write(at(2), &[1, 2, 3]);
        assert_eq!(*memory.read(at(0), 6), [0, 0, 1, 2, 3, 0]);
        memory.provide(RegionId(7), 2);
        assert_eq!(*memory.read(at(4), 1), [3], "what is there stays");
    }

    #[test]
    fn a_word_is_changed_in_place() {
        let mut memory = Memory::default();
        memory.write(at(0), &[0xFF; 16]);
        let add = Amo::new(Does::Add, Width::Four, true);
        assert_eq!(memory.modify(at(4), add, 3, 0), 0xFFFF_FFFF);
        assert_eq!(*memory.read(at(0), 12), [255, 255, 255, 255, 2, 0, 0, 0, 255, 255, 255, 255]);
    }

    #[test]
    fn no_two_messages_say_the_same() {
        let say = |sender, data, len| contents(sender, FragId(data), len).collect::<Vec<u8>>();
        assert_eq!(say(1, 2, 9), say(1, 2, 12)[..9]);
        assert_ne!(say(1, 2, 8), say(1, 3, 8));
        assert_ne!(say(1, 2, 8), say(2, 2, 8));
    }
}

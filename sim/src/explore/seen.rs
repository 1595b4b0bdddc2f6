//! What was seen before: 128-bit fingerprints in one flat table.

/// Numbers, counted from zero, for fingerprints in the order in which they are seen first.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// Open addressing: the low half says where to look, the high half is kept. A power of two,
    /// at most 3/4 full.
    slots: Vec<Slot>,
    len: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    high: u64,
    /// From where it was first looked for, to move it when the table grows.
    low: u32,
    /// One more than the number; zero is a free slot.
    number: u32,
}

impl Map {
    pub(super) fn new() -> Self {
        Map { slots: vec![Slot::default(); 1 << 12], len: 0 }
    }

    /// The number of a fingerprint, and whether it is new.
    #[inline]
    pub(super) fn number(&mut self, fingerprint: u128) -> (u32, bool) {
        if (self.len as usize + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let (high, low) = ((fingerprint >> 64) as u64, fingerprint as u32);
        let at = self.find(high, low);
        match self.slots[at].number {
            0 => {
                self.len += 1;
                self.slots[at] = Slot { high, low, number: self.len };
                (self.len - 1, true)
            }
            number => (number - 1, false),
        }
    }

    #[inline]
    fn find(&self, high: u64, low: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = low as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.number == 0 || slot.high == high && slot.low == low {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let bigger = vec![Slot::default(); self.slots.len() * 4];
        let old = std::mem::replace(&mut self.slots, bigger);
        for slot in old.into_iter().filter(|slot| slot.number != 0) {
            let at = self.find(slot.high, slot.low);
            self.slots[at] = slot;
        }
    }
}

/// A fingerprint of bytes: two 64-bit lanes, of which a table keeps 96 bits. Two of twenty
/// million states collide with a chance below 10^-14.
pub(super) fn fingerprint(bytes: &[u8]) -> u128 {
    const K: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];
    let mut lanes = [bytes.len() as u64, 0x5E1F_ED6E];
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        for (lane, k) in lanes.iter_mut().zip(K) {
            let wide = u128::from(*lane ^ word) * u128::from(k);
            *lane = (wide as u64 ^ (wide >> 64) as u64).wrapping_add(word.rotate_left(32) ^ k);
        }
    }
    u128::from(lanes[0]) << 64 | u128::from(lanes[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_kept() {
        let mut seen = Map::new();
        for n in 0..20_000_u32 {
            assert_eq!(seen.number(fingerprint(&n.to_le_bytes())), (n, true));
        }
        for n in 0..20_000_u32 {
            assert_eq!(seen.number(fingerprint(&n.to_le_bytes())), (n, false));
        }
    }

    #[test]
    fn the_fingerprint_tells_lengths_and_bits_apart() {
        let base = fingerprint(&[0; 24]);
        assert_ne!(base, fingerprint(&[0; 25]));
        for bit in 0..24 * 8 {
            let mut bytes = [0; 24];
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(base, fingerprint(&bytes));
        }
    }
}

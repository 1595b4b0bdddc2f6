//! What was seen before: 128-bit fingerprints in one flat table.

/// Numbers, counted from zero, for fingerprints in the order in which they are seen first.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// Open addressing; a number of zero is a free slot. A power of two, at most 3/4 full.
    slots: Vec<(u128, u32)>,
    len: u32,
}

impl Map {
    pub(super) fn new() -> Self {
        Map { slots: vec![(0, 0); 1 << 12], len: 0 }
    }

    /// The number of a fingerprint, and whether it is new.
    pub(super) fn number(&mut self, fingerprint: u128) -> (u32, bool) {
        if (self.len as usize + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let slot = self.slot(fingerprint);
        match self.slots[slot].1 {
            0 => {
                self.len += 1;
                self.slots[slot] = (fingerprint, self.len);
                (self.len - 1, true)
            }
            number => (number - 1, false),
        }
    }

    fn slot(&self, fingerprint: u128) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = fingerprint as usize & mask;
        while self.slots[slot].1 != 0 && self.slots[slot].0 != fingerprint {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let bigger = vec![(0, 0); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, bigger);
        for entry in old.into_iter().filter(|entry| entry.1 != 0) {
            let slot = self.slot(entry.0);
            self.slots[slot] = entry;
        }
    }
}

/// A fingerprint of bytes: two 64-bit lanes over 16 bytes at a time. Two of twenty million
/// states collide with a chance below 10^-23.
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

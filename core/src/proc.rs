//! The table of procs that a module knows: who has which endpoint; and whatever else is numbered
//! by who it is about.
//!
//! Looking a name up changes nothing; adding one is a step of its own, and a name that is
//! already there keeps its number. So an unknown peer whose record arrives while the
//! application asks for the same peer ends with one endpoint, whichever comes first.

use alloc::vec::Vec;

use crate::id::ProcName;
use crate::nic::Address;

/// What a [`Table`] numbers.
pub trait Name: Copy + Eq + Default {
    /// Its bits.
    fn bits(self) -> u64;
}

impl Name for ProcName {
    fn bits(self) -> u64 {
        u64::from(self.job) << 32 | u64::from(self.rank)
    }
}

impl Name for Address {
    fn bits(self) -> u64 {
        u64::from(self.instance) << 32 | u64::from(self.nic)
    }
}

/// Procs by endpoint, and endpoints by proc.
pub type ProcTable = Table<ProcName>;

/// Names by number, and numbers by name. Open addressing with a fixed hash; walked only in the
/// order of numbers, so nothing leaks from the layout.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Table<N> {
    /// The name, so that a look-up is one look, and its number plus one; zero is a free slot.
    /// A power of two, at most three quarters full.
    slots: Vec<(N, u32)>,
    names: Vec<N>,
}

impl<N: Name> Table<N> {
    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The number of `name`.
    #[inline]
    #[must_use]
    pub fn find(&self, name: N) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.slot(name)].1.checked_sub(1)
    }

    /// The name behind `number`.
    #[must_use]
    pub fn name(&self, number: u32) -> Option<N> {
        self.names.get(number as usize).copied()
    }

    /// All names, in the order of their numbers.
    #[must_use]
    pub fn names(&self) -> &[N] {
        &self.names
    }

    /// The number of `name`, given now if it is new.
    pub fn add(&mut self, name: N) -> u32 {
        if let Some(number) = self.find(name) {
            return number;
        }
        if (self.names.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.names.push(name);
        let number = (self.names.len() - 1) as u32;
        let slot = self.slot(name);
        self.slots[slot] = (name, number + 1);
        number
    }

    /// The slot where `name` is, or where it would go.
    #[inline]
    fn slot(&self, name: N) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (name.bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        loop {
            match self.slots[slot] {
                (_, 0) => return slot,
                (found, _) if found == name => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        self.slots = alloc::vec![(N::default(), 0); (self.slots.len() * 2).max(4)];
        for index in 0..self.names.len() {
            let slot = self.slot(self.names[index]);
            self.slots[slot] = (self.names[index], index as u32 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_for_ever() {
        let mut table = ProcTable::default();
        for pass in 0..2 {
            for n in 0..1_000 {
                let name = ProcName { job: n % 3, rank: n * 7 };
                assert_eq!(table.find(name).is_some(), pass == 1);
                assert_eq!(table.add(name), n);
                assert_eq!((table.find(name), table.name(n)), (Some(n), Some(name)));
            }
        }
        assert_eq!((table.len(), table.find(ProcName { job: 9, rank: 0 })), (1_000, None));
    }
}

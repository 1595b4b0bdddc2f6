//! The table of procs that a module knows: who has which endpoint.
//!
//! Looking a name up changes nothing; adding one is a step of its own, and a name that is
//! already there keeps its endpoint. So an unknown peer whose record arrives while the
//! application asks for the same peer ends with one endpoint, whichever comes first.

use alloc::vec::Vec;

use crate::id::{EpId, ProcName};

/// Names by endpoint, and endpoints by name. Open addressing with a fixed hash; walked only in
/// endpoint order, so nothing leaks from the layout.
#[derive(Clone, Debug, Default)]
pub struct ProcTable {
    names: Vec<ProcName>,
    /// The name, so that a look-up is one look, and its endpoint plus one; zero is a free slot.
    /// A power of two, at most three quarters full.
    slots: Vec<(ProcName, u32)>,
}

impl ProcTable {
    /// How many procs are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The endpoint of `name`.
    #[inline]
    #[must_use]
    pub fn find(&self, name: ProcName) -> Option<EpId> {
        if self.slots.is_empty() {
            return None;
        }
        match self.slots[self.slot(name)].1 {
            0 => None,
            found => Some(EpId(found - 1)),
        }
    }

    /// The name behind `ep`.
    #[must_use]
    pub fn name(&self, ep: EpId) -> Option<ProcName> {
        self.names.get(ep.index()).copied()
    }

    /// The endpoint of `name`, made now if it is new.
    pub fn add(&mut self, name: ProcName) -> EpId {
        if let Some(ep) = self.find(name) {
            return ep;
        }
        if (self.names.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.names.push(name);
        let ep = EpId((self.names.len() - 1) as u32);
        let slot = self.slot(name);
        self.slots[slot] = (name, ep.0 + 1);
        ep
    }

    /// The slot where `name` is, or where it would go.
    fn slot(&self, name: ProcName) -> usize {
        let mask = self.slots.len() - 1;
        let key = u64::from(name.job) << 32 | u64::from(name.rank);
        let mut slot = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        loop {
            match self.slots[slot] {
                (_, 0) => return slot,
                (found, _) if found == name => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        self.slots = alloc::vec![(ProcName::default(), 0); (self.slots.len() * 2).max(4)];
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
    fn a_name_has_one_endpoint_for_ever() {
        let mut table = ProcTable::default();
        for pass in 0..2 {
            for n in 0..1_000 {
                let name = ProcName { job: n % 3, rank: n * 7 };
                assert_eq!(table.find(name).is_some(), pass == 1);
                assert_eq!(table.add(name), EpId(n));
                assert_eq!((table.find(name), table.name(EpId(n))), (Some(EpId(n)), Some(name)));
            }
        }
        assert_eq!((table.len(), table.find(ProcName { job: 9, rank: 0 })), (1_000, None));
    }
}

//! What is registered with a device, and kept for later.
//!
//! A device registers a limited number of regions, so they are counted. Registering is slow, so
//! a region that nobody needs any more stays registered until its place is wanted: the one that
//! has been idle for longest goes first. Message buffers must not find every place taken by
//! user memory, so some are kept for them.

use alloc::collections::{BTreeMap, VecDeque};

use crate::id::RegionId;
use crate::machine::{Violation, ensure};
use crate::rma::{Place, is_within};

/// The registrations of one module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Registrations {
    regions: BTreeMap<RegionId, Region>,
    /// Registered and not needed, the one idle for longest first.
    idle: VecDeque<RegionId>,
    /// What was asked for and is not answered, oldest first; the device is asked for one at a
    /// time.
    asked: VecDeque<(RegionId, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Region {
    len: u32,
    /// How often it was asked for and not given back.
    users: u32,
    /// Operations that move its bytes now.
    pins: u32,
}

/// How many regions there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// In all.
    pub most: u64,
    /// Of these, kept for buffers of the transport.
    pub reserve: u64,
    /// Taken by such buffers now.
    pub buffers: u64,
}

/// What is to be done for the request that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Next {
    /// It is registered already: say so.
    Granted(RegionId),
    /// It cannot be registered: say so.
    Refused(RegionId),
    /// Deregister this one first, to make room.
    Evict(RegionId),
    /// Ask the device.
    Ask(RegionId, u32),
}

impl Registrations {
    /// Nothing is registered.
    #[must_use]
    pub const fn new() -> Registrations {
        Registrations { regions: BTreeMap::new(), idle: VecDeque::new(), asked: VecDeque::new() }
    }

    /// Somebody wants `len` bytes of `region` registered.
    pub fn want(&mut self, region: RegionId, len: u32) {
        self.asked.push_back((region, len));
    }

    /// Whether requests wait.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The next thing to do; `None` when no request waits.
    pub fn next(&mut self, limits: Limits) -> Option<Next> {
        let &(region, len) = self.asked.front()?;
        let full = self.is_full(limits);
        let next = match self.regions.get_mut(&region) {
            Some(known) if known.len >= len => {
                known.users += 1;
                self.idle.retain(|&other| other != region);
                Next::Granted(region)
            }
            // Another piece of memory under an old name.
            Some(known) if known.users == 0 && known.pins == 0 => {
                self.forget(region);
                return Some(Next::Evict(region));
            }
            Some(_) => Next::Refused(region),
            None if !full => return Some(Next::Ask(region, len)),
            None => match self.evict() {
                Some(other) => return Some(Next::Evict(other)),
                None => Next::Refused(region),
            },
        };
        self.asked.pop_front();
        Some(next)
    }

    /// The device was asked and has answered. When it has no room, the request stays the next
    /// one as long as something idle can make way.
    pub fn answered(&mut self, ok: bool) -> Option<Next> {
        if !ok && let Some(other) = self.evict() {
            return Some(Next::Evict(other));
        }
        let (region, len) = self.asked.pop_front()?;
        if !ok {
            return Some(Next::Refused(region));
        }
        self.regions.insert(region, Region { len, users: 1, pins: 0 });
        Some(Next::Granted(region))
    }

    /// Somebody does not need `region` any more. False when nobody has asked for it. It stays
    /// registered as long as there is room.
    pub fn give_back(&mut self, region: RegionId) -> bool {
        let Some(known) = self.regions.get_mut(&region).filter(|known| known.users > 0) else {
            return false;
        };
        known.users -= 1;
        if known.users == 0 {
            self.idle.push_back(region);
        }
        true
    }

    /// Makes the idle region that can go at once forget that it was registered.
    pub fn evict(&mut self) -> Option<RegionId> {
        let at = self.idle.iter().position(|region| {
            self.regions.get(region).is_none_or(|known| known.users == 0 && known.pins == 0)
        })?;
        let region = self.idle.remove(at)?;
        self.regions.remove(&region);
        Some(region)
    }

    /// The regions that are registered for later only.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.idle.len()
    }

    /// Whether a buffer of the transport may be registered: all places are for it.
    #[must_use]
    pub fn has_room(&self, limits: Limits) -> bool {
        self.used(limits) < limits.most
    }

    /// Whether `len` bytes from `place` on may be used.
    #[must_use]
    pub fn covers(&self, place: Place, len: u32) -> bool {
        self.regions
            .get(&place.region)
            .is_some_and(|known| known.users > 0 && is_within(place.offset, len, known.len))
    }

    /// An operation begins to move bytes of `region`: it stays until the operation is over.
    pub fn pin(&mut self, region: RegionId) {
        if let Some(known) = self.regions.get_mut(&region) {
            known.pins += 1;
        }
    }

    /// It is over.
    pub fn unpin(&mut self, region: RegionId) {
        if let Some(known) = self.regions.get_mut(&region) {
            known.pins = known.pins.saturating_sub(1);
        }
    }

    /// The account.
    ///
    /// # Errors
    /// When there are more regions than may be, or one is idle and needed.
    pub fn check(&self, limits: Limits) -> Result<(), Violation> {
        ensure(self.used(limits) <= limits.most, "no more is registered than may be")?;
        let idle = self.regions.values().filter(|known| known.users == 0).count();
        ensure(idle == self.idle.len(), "what nobody needs is idle, and nothing else")
    }

    fn used(&self, limits: Limits) -> u64 {
        self.regions.len() as u64 + limits.buffers
    }

    /// Whether user memory may take no further place.
    fn is_full(&self, limits: Limits) -> bool {
        let kept = limits.reserve.saturating_sub(limits.buffers);
        self.used(limits) + kept >= limits.most
    }

    fn forget(&mut self, region: RegionId) {
        self.regions.remove(&region);
        self.idle.retain(|&other| other != region);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const LIMITS: Limits = Limits { most: 3, reserve: 1, buffers: 0 };
    const A: RegionId = RegionId(1);
    const B: RegionId = RegionId(2);
    const C: RegionId = RegionId(3);

    /// Registers, with a device that has room.
    fn register(all: &mut Registrations, region: RegionId, len: u32) -> Vec<Next> {
        all.want(region, len);
        let mut seen = Vec::new();
        while let Some(next) = all.next(LIMITS) {
            seen.push(next);
            if let Next::Ask(..) = next {
                seen.extend(all.answered(true));
            }
        }
        seen
    }
    #[test]
    fn what_is_idle_is_found_again_and_makes_way() {
        let mut all = Registrations::default();
        assert_eq!(register(&mut all, A, 8), [Next::Ask(A, 8), Next::Granted(A)]);
        assert_eq!(register(&mut all, B, 8), [Next::Ask(B, 8), Next::Granted(B)]);
        assert_eq!(register(&mut all, C, 8), [Next::Refused(C)], "one place is kept");
        assert!(all.give_back(A) && !all.give_back(A) && !all.give_back(C));
        assert_eq!((all.idle(), all.check(LIMITS)), (1, Ok(())));
        assert_eq!(register(&mut all, A, 4), [Next::Granted(A)], "it was kept");
        assert!(all.give_back(B) && all.give_back(A));
        let seen = [Next::Evict(B), Next::Ask(C, 8), Next::Granted(C)];
        assert_eq!(register(&mut all, C, 8), seen, "idle for longest");
        assert!(all.has_room(LIMITS));
        let limits = Limits { buffers: 1, ..LIMITS };
        assert!(!all.has_room(limits));
        assert_eq!(all.check(limits), Ok(()));
    }

    #[test]
    fn a_longer_piece_of_memory_takes_the_name_over_once_it_is_free() {
        let mut all = Registrations::default();
        register(&mut all, A, 8);
        assert_eq!(register(&mut all, A, 16), [Next::Refused(A)]);
        all.give_back(A);
        all.pin(A);
        assert_eq!(register(&mut all, A, 16), [Next::Refused(A)], "its bytes are moved now");
        all.unpin(A);
        let seen = [Next::Evict(A), Next::Ask(A, 16), Next::Granted(A)];
        assert_eq!(register(&mut all, A, 16), seen);
        let at = |offset| Place { region: A, offset };
        assert!(all.covers(at(8), 8) && !all.covers(at(9), 8));
        all.give_back(A);
        assert!(!all.covers(at(0), 1), "given back is given back");
    }

    #[test]
    fn a_device_without_room_is_asked_again_after_each_that_made_way() {
        let mut all = Registrations::default();
        register(&mut all, A, 8);
        all.give_back(A);
        all.want(B, 8);
        assert_eq!(all.next(LIMITS), Some(Next::Ask(B, 8)));
        assert_eq!(all.answered(false), Some(Next::Evict(A)));
        assert_eq!(all.next(LIMITS), Some(Next::Ask(B, 8)));
        assert_eq!(all.answered(false), Some(Next::Refused(B)));
        assert_eq!((all.next(LIMITS), all.has_work()), (None, false));
    }
}

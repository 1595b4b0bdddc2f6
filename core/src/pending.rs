//! Wait lists: first in, first out, linked through one slab, so that a list that is empty costs
//! twelve bytes and a move between lists copies nothing.

use alloc::vec::Vec;

/// No slot. Private to this module: outside it, `Option` says so.
const NIL: u32 = u32::MAX;

/// A slab of `T` whose slots can be chained into lists.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    used: u32,
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Slot<T> {
    value: T,
    next: u32,
}

/// A chain of slots. Meaningless without the slab that it was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List::EMPTY
    }
}

impl List {
    /// Nobody waits.
    pub const EMPTY: List = List { head: NIL, tail: NIL, len: 0 };

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether nobody waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T: Copy> Default for Slab<T> {
    fn default() -> Self {
        Slab::new()
    }
}

impl<T: Copy> Slab<T> {
    /// An empty slab.
    #[must_use]
    pub const fn new() -> Self {
        Slab { slots: Vec::new(), free: NIL, used: 0 }
    }

    /// How many slots are in use, over all lists.
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.used
    }

    /// Appends `value` to `list`.
    #[inline]
    pub fn push_back(&mut self, list: &mut List, value: T) {
        let slot = self.take(value);
        match list.tail {
            NIL => list.head = slot,
            tail => self.slots[tail as usize].next = slot,
        }
        list.tail = slot;
        list.len += 1;
    }

    /// Takes the oldest of `list`.
    #[inline]
    pub fn pop_front(&mut self, list: &mut List) -> Option<T> {
        let slot = list.head;
        if slot == NIL {
            return None;
        }
        let Slot { value, next } = self.slots[slot as usize];
        list.head = next;
        list.len -= 1;
        if next == NIL {
            list.tail = NIL;
        }
        self.slots[slot as usize].next = self.free;
        self.free = slot;
        self.used -= 1;
        Some(value)
    }

    /// The oldest of `list`.
    #[must_use]
    pub fn front(&self, list: &List) -> Option<&T> {
        self.slots.get(list.head as usize).map(|slot| &slot.value)
    }

    /// Moves the oldest of `from` to the end of `to`, in place.
    pub fn move_front(&mut self, from: &mut List, to: &mut List) -> Option<&mut T> {
        let slot = from.head;
        if slot == NIL {
            return None;
        }
        from.head = self.slots[slot as usize].next;
        from.len -= 1;
        if from.head == NIL {
            from.tail = NIL;
        }
        self.slots[slot as usize].next = NIL;
        match to.tail {
            NIL => to.head = slot,
            tail => self.slots[tail as usize].next = slot,
        }
        to.tail = slot;
        to.len += 1;
        Some(&mut self.slots[slot as usize].value)
    }

    /// Cuts `list` after its first `keep` and puts what follows, in order, before all of `onto`.
    pub fn return_tail(&mut self, list: &mut List, keep: u32, onto: &mut List) {
        if keep >= list.len {
            return;
        }
        let mut last = NIL;
        let mut cut = list.head;
        for _ in 0..keep {
            last = cut;
            cut = self.slots[cut as usize].next;
        }
        let tail = list.tail;
        self.slots[tail as usize].next = onto.head;
        if onto.tail == NIL {
            onto.tail = tail;
        }
        onto.head = cut;
        onto.len += list.len - keep;
        *list = if last == NIL {
            List::EMPTY
        } else {
            self.slots[last as usize].next = NIL;
            List { head: list.head, tail: last, len: keep }
        };
    }

    /// The values of `list`, oldest first.
    pub fn iter(&self, list: &List) -> impl Iterator<Item = &T> {
        let mut slot = list.head;
        core::iter::from_fn(move || {
            let found = self.slots.get(slot as usize)?;
            slot = found.next;
            Some(&found.value)
        })
    }

    /// The `n`-th oldest of `list`, to change.
    pub fn nth_mut(&mut self, list: &List, n: u32) -> Option<&mut T> {
        let mut slot = list.head;
        for _ in 0..n {
            slot = self.slots.get(slot as usize)?.next;
        }
        self.slots.get_mut(slot as usize).map(|slot| &mut slot.value)
    }

    /// Inserts `value` before the first of `list` for which `later` holds.
    pub fn insert_before(&mut self, list: &mut List, value: T, later: impl Fn(&T) -> bool) {
        let mut before = NIL;
        let mut at = list.head;
        while let Some(slot) = self.slots.get(at as usize) {
            if later(&slot.value) {
                break;
            }
            before = at;
            at = slot.next;
        }
        if at == NIL {
            return self.push_back(list, value);
        }
        let slot = self.take(value);
        self.slots[slot as usize].next = at;
        match before {
            NIL => list.head = slot,
            before => self.slots[before as usize].next = slot,
        }
        list.len += 1;
    }

    #[inline]
    fn take(&mut self, value: T) -> u32 {
        self.used += 1;
        match self.free {
            NIL => {
                self.slots.push(Slot { value, next: NIL });
                (self.slots.len() - 1) as u32
            }
            slot => {
                self.free = self.slots[slot as usize].next;
                self.slots[slot as usize] = Slot { value, next: NIL };
                slot
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(slab: &Slab<u8>, list: &List) -> Vec<u8> {
        slab.iter(list).copied().collect()
    }

    #[test]
    fn lists_share_a_slab_and_keep_their_order() {
        let mut slab = Slab::new();
        let (mut a, mut b) = (List::EMPTY, List::EMPTY);
        for n in 1..=4 {
            slab.push_back(if n % 2 == 0 { &mut a } else { &mut b }, n);
        }
        assert_eq!((all(&slab, &a), all(&slab, &b)), (alloc::vec![2, 4], alloc::vec![1, 3]));
        assert_eq!(slab.move_front(&mut a, &mut b).copied(), Some(2));
        assert_eq!((all(&slab, &a), all(&slab, &b)), (alloc::vec![4], alloc::vec![1, 3, 2]));
        assert_eq!(slab.pop_front(&mut a), Some(4));
        assert_eq!((slab.pop_front(&mut a), a), (None, List::EMPTY));
        assert_eq!((slab.used(), slab.front(&b).copied()), (3, Some(1)));
    }

    #[test]
    fn a_returned_tail_goes_before_what_already_waits() {
        for keep in 0..=3 {
            let mut slab = Slab::new();
            let (mut flight, mut waiting) = (List::EMPTY, List::EMPTY);
            for n in [1, 2, 3] {
                slab.push_back(&mut flight, n);
            }
            slab.push_back(&mut waiting, 4);
            slab.return_tail(&mut flight, keep, &mut waiting);
            let kept: Vec<u8> = (1..=keep as u8).collect();
            let back: Vec<u8> = (keep as u8 + 1..=4).collect();
            assert_eq!((all(&slab, &flight), all(&slab, &waiting)), (kept, back));
            slab.push_back(&mut flight, 9);
            slab.push_back(&mut waiting, 5);
            assert_eq!(all(&slab, &flight).last(), Some(&9));
            assert_eq!(all(&slab, &waiting).last(), Some(&5));
            assert_eq!((flight.len(), waiting.len()), (keep + 1, 5 - keep));
        }
    }

    #[test]
    fn insertion_finds_its_place() {
        let mut slab = Slab::new();
        let mut list = List::EMPTY;
        for n in [5, 1, 3, 4, 2] {
            slab.insert_before(&mut list, n, |&other| other > n);
        }
        assert_eq!((all(&slab, &list), list.len()), (alloc::vec![1, 2, 3, 4, 5], 5));
        slab.push_back(&mut list, 6);
        assert_eq!(slab.nth_mut(&list, 5).copied(), Some(6));
        assert_eq!(slab.nth_mut(&list, 6), None);
    }
}

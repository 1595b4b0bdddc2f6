//! The timed event queue: a radix heap with a sorted front.
//!
//! Events come out by time, then by tie, whatever order they went in. What is due soon stands
//! in `front`, sorted, and is simply walked. Everything later waits in slots: one slot for each
//! value of the highest digit in which a time differs from `base`. When the front runs out, the
//! earliest slot is the next front if it is fine or holds little, and is spread over finer slots
//! if not. The finest slots and their reach suit a fabric: most delays are longer than the one
//! and shorter than the other, so that most events are moved twice in their life, into a slot
//! and into the front, whatever the number that wait.
//!
//! Slots are lists of small blocks from one pool, so memory follows the number of pending
//! events, not the sum of what each slot held at its fullest.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use selvedge_core::time::Time;

/// The finest slots are so many bits of picoseconds wide: 8 ns.
const GRAIN: u32 = 13;
/// Bits of a digit.
const DIGIT: u32 = 9;
/// Slots of a level: the values of a digit. The finest reach 4.2 us.
const FAN: usize = 1 << DIGIT;
/// Levels: the digits of a time.
const LEVELS: usize = (u64::BITS - GRAIN).div_ceil(DIGIT) as usize;
/// Words of a level's map.
const WORDS: usize = FAN / u64::BITS as usize;
/// Up to so many entries of a coarse slot are sorted into the front rather than spread.
const SMALL: usize = 32;
/// A front of more entries than this gives its later half back to the slots.
const LARGE: usize = 4 * SMALL;
/// Entries of a block.
const BLOCK: usize = 8;
/// No block.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    time: u64,
    tie: u64,
    item: T,
}

impl<T> Entry<T> {
    /// Time, then tie: as one number, which compares without a branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.tie)
    }
}

/// Reversed, so that the standard heap, which gives its greatest, gives the earliest.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

/// A list of blocks. All but the first are full.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    /// Entries.
    len: u32,
}

const EMPTY: Slot = Slot { first: NONE, len: 0 };

/// The blocks that all slots share.
#[derive(Clone, Debug)]
struct Pool<T> {
    /// Block `b` is `entries[b * BLOCK..][..BLOCK]`.
    entries: Vec<Entry<T>>,
    /// The block after each in its list, or in the list of free ones.
    next: Vec<u32>,
    /// The first free block.
    free: u32,
}

impl<T: Copy> Pool<T> {
    #[inline]
    fn push(&mut self, slot: &mut Slot, entry: Entry<T>) {
        let place = slot.len as usize % BLOCK;
        if place == 0 {
            let block = self.take_block(entry);
            self.next[block as usize] = slot.first;
            slot.first = block;
        }
        self.entries[slot.first as usize * BLOCK + place] = entry;
        slot.len += 1;
    }

    /// A free block; `fill` gives new ones a content.
    #[inline(never)]
    fn take_block(&mut self, fill: Entry<T>) -> u32 {
        if self.free == NONE {
            self.entries.resize(self.entries.len() + BLOCK, fill);
            self.next.push(NONE);
            return (self.next.len() - 1) as u32;
        }
        let block = self.free;
        self.free = self.next[block as usize];
        block
    }

    /// Moves the content of a slot to the end of `into`.
    fn empty(&mut self, slot: &mut Slot, into: &mut Vec<Entry<T>>) {
        while slot.len > 0 {
            let block = slot.first as usize;
            let count = (slot.len - 1) as usize % BLOCK + 1;
            into.extend_from_slice(&self.entries[block * BLOCK..][..count]);
            slot.len -= count as u32;
            slot.first = std::mem::replace(&mut self.next[block], self.free);
            self.free = block as u32;
        }
    }
}

/// Pending events in order of time, then tie.
///
/// The tie is usually an increasing sequence number, which makes events of one instant leave in
/// the order they came; a strategy may give any other number. No two pending events should
/// share both: their order would be repeatable but arbitrary.
///
/// Time only moves forward: an event may be pushed at the instant last popped or later.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    /// Sorted; `front[..gone]` has been popped. While it holds anything, every pending event up
    /// to `limit` is here or in `late`, and nothing later is.
    front: Vec<Entry<T>>,
    gone: usize,
    limit: u64,
    /// Events of the instant `limit` that came out of order into a front too long to shift.
    late: BinaryHeap<Entry<T>>,
    /// What slots are relative to: not later than anything in them.
    base: u64,
    /// Level by level.
    slots: Box<[Slot; FAN * LEVELS]>,
    /// Per level, which of its slots hold something.
    used: [[u64; WORDS]; LEVELS],
    /// Which levels have such a slot.
    levels: u32,
    pool: Pool<T>,
    /// The time last popped.
    last: u64,
    len: usize,
}

impl<T: Copy> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Queue<T> {
    /// An empty queue whose clock stands at zero.
    #[must_use]
    pub fn new() -> Self {
        Queue {
            front: Vec::new(),
            gone: 0,
            limit: 0,
            late: BinaryHeap::new(),
            base: 0,
            slots: Box::new([EMPTY; FAN * LEVELS]),
            used: [[0; WORDS]; LEVELS],
            levels: 0,
            pool: Pool { entries: Vec::new(), next: Vec::new(), free: NONE },
            last: 0,
            len: 0,
        }
    }

    /// How many events are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event. A time before the one last popped is a mistake of the caller and is taken
    /// as that time.
    pub fn push(&mut self, at: Time, tie: u64, item: T) {
        debug_assert!(at.0 >= self.last, "an event at {at} is before {}", Time(self.last));
        let entry = Entry { time: at.0.max(self.last), tie, item };
        self.len += 1;
        self.place(entry);
    }

    /// Takes the earliest event.
    pub fn pop(&mut self) -> Option<(Time, T)> {
        if !self.front_pending() && !self.load() {
            return None;
        }
        self.len -= 1;
        let entry = if self.late_is_next() {
            self.late.pop()?
        } else {
            self.gone += 1;
            self.front[self.gone - 1]
        };
        self.last = entry.time;
        Some((Time(entry.time), entry.item))
    }

    /// When the earliest event is due.
    pub fn peek_time(&mut self) -> Option<Time> {
        if !self.front_pending() && !self.load() {
            return None;
        }
        match (self.late.peek(), self.front.get(self.gone)) {
            (Some(late), Some(front)) => Some(Time(late.time.min(front.time))),
            (Some(entry), None) | (None, Some(entry)) => Some(Time(entry.time)),
            (None, None) => None,
        }
    }

    fn front_pending(&self) -> bool {
        self.gone < self.front.len() || !self.late.is_empty()
    }

    fn late_is_next(&self) -> bool {
        match (self.late.peek(), self.front.get(self.gone)) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(late), Some(front)) => late.key() < front.key(),
        }
    }

    fn push_front(&mut self, entry: Entry<T>) {
        let pending = &self.front[self.gone..];
        if let [first, .., last] = pending
            && pending.len() >= LARGE
            && first.time != last.time
        {
            self.shorten();
            return self.place(entry);
        }
        if self.gone >= LARGE && self.gone >= pending.len() {
            self.front.drain(..self.gone);
            self.gone = 0;
        }
        let pending = &self.front[self.gone..];
        let shift = pending.iter().rev().take_while(|other| other.key() > entry.key()).take(LARGE);
        match shift.count() {
            LARGE => self.late.push(entry),
            shift => self.front.insert(self.front.len() - shift, entry),
        }
    }

    /// Gives the later half of a front that spans several instants back to the slots.
    fn shorten(&mut self) {
        self.front.drain(..self.gone);
        self.gone = 0;
        let middle = self.front[self.front.len() / 2].time;
        let mut keep = self.front.partition_point(|entry| entry.time <= middle);
        if keep == self.front.len() {
            keep = self.front.partition_point(|entry| entry.time < middle);
        }
        self.limit = self.front[keep - 1].time;
        if self.limit < self.base || self.levels == 0 {
            self.rebase();
        }
        for at in keep..self.front.len() {
            self.push_slot(self.front[at]);
        }
        self.front.truncate(keep);
        for entry in std::mem::take(&mut self.late).into_sorted_vec() {
            self.place(entry);
        }
    }

    /// Brings the base back to the present, after somebody looked far ahead and then pushed
    /// many events before what was seen there.
    fn rebase(&mut self) {
        let mut all = Vec::new();
        while self.take_slot(&mut all).is_some() {}
        self.base = self.last;
        for entry in all {
            self.push_slot(entry);
        }
    }

    /// Fills the empty front with the earliest pending events.
    fn load(&mut self) -> bool {
        let mut front = std::mem::take(&mut self.front);
        self.gone = 0;
        loop {
            front.clear();
            match self.take_slot(&mut front) {
                Some(level) if level > 0 && front.len() > SMALL => {
                    self.base = front.iter().fold(u64::MAX, |least, entry| least.min(entry.time));
                    front.drain(..).for_each(|entry| self.push_slot(entry));
                }
                Some(_) => {
                    front.sort_unstable_by_key(Entry::key);
                    self.base = front[0].time;
                    self.limit = front[front.len() - 1].time;
                    self.front = front;
                    return true;
                }
                None => {
                    self.front = front;
                    return false;
                }
            }
        }
    }

    fn place(&mut self, entry: Entry<T>) {
        if entry.time <= self.limit && self.front_pending() {
            self.push_front(entry);
        } else if self.levels == 0 && self.front.len() - self.gone < SMALL && self.late.is_empty() {
            // So few are pending that all of them may stand in front.
            self.limit = entry.time;
            self.push_front(entry);
        } else {
            if self.levels == 0 {
                self.base = self.last;
            }
            self.push_slot(entry);
        }
    }

    #[inline]
    fn push_slot(&mut self, entry: Entry<T>) {
        let differs = (entry.time ^ self.base) >> GRAIN | 1;
        let level = (u64::BITS - 1 - differs.leading_zeros()) / DIGIT;
        let digit = (entry.time >> (GRAIN + level * DIGIT)) as usize % FAN;
        self.pool.push(&mut self.slots[level as usize * FAN + digit], entry);
        self.used[level as usize][digit / 64] |= 1 << (digit % 64);
        self.levels |= 1 << level;
    }

    /// Moves the content of the earliest slot to the end of `into`; says its level.
    fn take_slot(&mut self, into: &mut Vec<Entry<T>>) -> Option<usize> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let used = &mut self.used[level];
        let word = used.iter().position(|&word| word != 0)?;
        let digit = word * 64 + used[word].trailing_zeros() as usize;
        used[word] &= used[word] - 1;
        if used.iter().all(|&word| word == 0) {
            self.levels &= self.levels - 1;
        }
        self.pool.empty(&mut self.slots[level * FAN + digit], into);
        Some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lcg(u64);

    impl Lcg {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 8
        }
    }

    /// Pushes and pops `rounds` events in a queue that holds about `pending`, and compares
    /// each pop with the least of a plain list.
    fn compare(
        rounds: u64,
        pending: usize,
        mut delay: impl FnMut(u64) -> u64,
        tie: fn(u64) -> u64,
    ) {
        let mut random = Lcg(rounds ^ pending as u64);
        let (mut queue, mut model, mut now) = (Queue::new(), Vec::new(), 0);
        for round in 0..rounds {
            let target = if (round / 500) % 2 == 0 { pending } else { pending / 8 };
            if model.len() < target {
                let key = (now + delay(random.next()), tie(round), round);
                queue.push(Time(key.0), key.1, key.2);
                model.push(key);
            }
            if random.next().is_multiple_of(16) {
                assert_eq!(queue.peek_time().map(|t| t.0), model.iter().min().map(|key| key.0));
            }
            if model.len() >= target {
                let least = model.iter().enumerate().min_by_key(|(_, key)| **key).map(|(i, _)| i);
                let expected = least.map(|i| model.swap_remove(i));
                let got = queue.pop();
                assert_eq!(got, expected.map(|(at, _, item)| (Time(at), item)));
                now = got.map_or(now, |(at, _)| at.0);
            }
            assert_eq!(queue.len(), model.len());
        }
        model.sort_unstable();
        for (at, _, item) in model {
            assert_eq!(queue.pop(), Some((Time(at), item)));
        }
        assert!(queue.is_empty() && queue.pop().is_none() && queue.peek_time().is_none());
    }

    fn scrambled(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn pops_agree_with_a_sorted_list() {
        for pending in [1, 3, 40, 300, 1_500] {
            for tie in [|n| n, scrambled, |n: u64| u64::MAX - n] {
                compare(6_000, pending, |r| r % 2_000_000, tie);
                compare(6_000, pending, |r| r % 3, tie);
                compare(6_000, pending, |_| 0, tie);
                compare(6_000, pending, |r| (r % 7) * 105_000, tie);
                compare(6_000, pending, |r| r >> (r % 50 + 8), tie);
            }
        }
    }

    #[test]
    fn a_crowd_of_one_instant_is_ordered_by_tie_while_it_grows() {
        let mut queue = Queue::new();
        for n in 0..1_000u64 {
            queue.push(Time(5), 2 * n, n);
        }
        assert_eq!(queue.pop(), Some((Time(5), 0)));
        // Far behind the last of the crowd, and before all of it.
        queue.push(Time(5), 3, 7_003);
        queue.push(Time(5), 1, 7_001);
        assert_eq!(queue.peek_time(), Some(Time(5)));
        let next: Vec<u64> = (0..4).filter_map(|_| queue.pop().map(|(_, item)| item)).collect();
        assert_eq!(next, [7_001, 1, 7_003, 2]);
    }

    #[test]
    fn looking_far_ahead_does_not_disturb_what_comes_before() {
        let mut queue = Queue::new();
        queue.push(Time(1 << 50), 0, 0u32);
        queue.push(Time((1 << 50) + 1), 1, 1);
        assert_eq!(queue.peek_time(), Some(Time(1 << 50)));
        for n in 2..1_002 {
            queue.push(Time(u64::from(n) * 1_000), u64::from(n), n);
        }
        for n in (2..1_002).chain(0..2) {
            assert_eq!(queue.pop().map(|(_, item)| item), Some(n));
        }
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut queue = Queue::new();
        queue.push(Time::NEVER, 1, 'b');
        queue.push(Time::ZERO, 2, 'a');
        queue.push(Time::NEVER, 0, 'c');
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(Time::ZERO, 'a'), (Time::NEVER, 'c'), (Time::NEVER, 'b')]);
    }

    #[test]
    fn memory_follows_what_is_pending() {
        let mut queue = Queue::new();
        let mut random = Lcg(9);
        for n in 0..200_000u64 {
            let now = if n < 1_000 { 0 } else { queue.pop().map_or(0, |(at, _)| at.0) };
            queue.push(Time(now + random.next() % 1_000_000), n, n);
        }
        assert_eq!(queue.len(), 1_000);
        assert!(queue.front.capacity() <= 8 * LARGE, "{}", queue.front.capacity());
        assert!(queue.pool.entries.len() <= 1_000 + FAN * BLOCK, "{}", queue.pool.entries.len());
    }

    #[test]
    #[should_panic(expected = "is before")]
    #[cfg(debug_assertions)]
    fn the_past_is_refused() {
        let mut queue = Queue::new();
        queue.push(Time(10), 0, ());
        queue.pop();
        queue.push(Time(9), 1, ());
    }

    #[test]
    fn a_clone_goes_its_own_way() {
        let mut queue = Queue::new();
        for n in 0..100u64 {
            queue.push(Time(n / 3), n, n);
        }
        queue.pop();
        let mut other = queue.clone();
        other.push(Time(0), 100, 100);
        let left: Vec<u64> = std::iter::from_fn(|| queue.pop().map(|(_, item)| item)).collect();
        assert_eq!(left, (1..100).collect::<Vec<_>>());
        let left: Vec<u64> = std::iter::from_fn(|| other.pop().map(|(_, item)| item)).collect();
        assert_eq!(left[..4], [1, 2, 100, 3]);
    }
}

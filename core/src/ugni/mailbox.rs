//! The mailboxes of a module: registered memory that peers write into, many to a slab.
//!
//! A mailbox is free, or leased to one connection. A connection that ends keeps its lease until
//! no peer can write any more, and even then the mailbox rests for a while, so that a copy of a
//! packet that dawdles on the wire finds nobody.

use alloc::collections::VecDeque;

use crate::machine::{Violation, ensure};
use crate::time::{Span, Time};

use super::{Config, MboxId};

/// The pool.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mailboxes {
    /// Oldest first, with the time from which each may be used.
    free: VecDeque<(Time, MboxId)>,
    total: u32,
    slabs: u32,
    asked: bool,
}

impl Mailboxes {
    /// Leases a mailbox.
    pub fn take(&mut self, now: Time) -> Option<MboxId> {
        match self.free.front() {
            Some(&(from, _)) if from <= now => self.free.pop_front().map(|(_, mbox)| mbox),
            Some(_) | None => None,
        }
    }

    /// Whether a lease could be had.
    #[must_use]
    pub fn has_one(&self, now: Time) -> bool {
        self.free.front().is_some_and(|&(from, _)| from <= now)
    }

    /// Ends a lease.
    pub fn give_back(&mut self, mbox: MboxId, now: Time, config: &Config) {
        self.free.push_back((now + Span(config.mailbox_rest), mbox));
    }

    /// Whether one more slab may be registered now.
    #[must_use]
    pub fn may_grow(&self, config: &Config) -> bool {
        !self.asked && u64::from(self.slabs) < config.slabs_max
    }

    /// Whether one more slab is to be registered: its number.
    pub fn grow(&mut self, config: &Config) -> Option<u32> {
        if !self.may_grow(config) {
            return None;
        }
        self.asked = true;
        Some(self.slabs)
    }

    /// The device answered.
    pub fn grown(&mut self, registered: bool, now: Time, config: &Config) {
        self.asked = false;
        if registered {
            self.slabs += 1;
            for _ in 0..config.slab_mailboxes {
                self.free.push_back((now, MboxId(self.total)));
                self.total += 1;
            }
            // What rests is behind what is new.
            self.free.make_contiguous().sort_unstable();
        }
    }

    /// Slabs that are registered.
    #[must_use]
    pub const fn slabs(&self) -> u32 {
        self.slabs
    }

    /// Mailboxes in all.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// Those that are free, in the order in which they will be leased.
    pub fn free(&self) -> impl Iterator<Item = &(Time, MboxId)> {
        self.free.iter()
    }

    /// The account: what is free and what is leased is all there is.
    ///
    /// # Errors
    /// When a mailbox is lost or counted twice.
    pub fn check(&self, leased: usize) -> Result<(), Violation> {
        ensure(
            self.free.len() + leased == self.total as usize,
            "a mailbox is free or leased to one connection",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_rests_before_its_next_lease() {
        let config =
            Config { slab_mailboxes: 1, slabs_max: 2, mailbox_rest: 10, ..Config::default() };
        let mut pool = Mailboxes::default();
        assert_eq!((pool.take(Time(0)), pool.grow(&config)), (None, Some(0)));
        assert_eq!(pool.grow(&config), None, "the first question is not answered yet");
        pool.grown(true, Time(0), &config);
        assert_eq!((pool.take(Time(0)), pool.check(1)), (Some(MboxId(0)), Ok(())));
        pool.give_back(MboxId(0), Time(5), &config);
        assert_eq!((pool.take(Time(14)), pool.grow(&config)), (None, Some(1)));
        pool.grown(false, Time(14), &config);
        assert_eq!((pool.grow(&config), pool.take(Time(15))), (Some(1), Some(MboxId(0))));
        pool.grown(true, Time(15), &config);
        assert_eq!((pool.grow(&config), pool.total()), (None, 2), "that is all there may be");
        assert!(pool.check(0).is_err());
    }
}

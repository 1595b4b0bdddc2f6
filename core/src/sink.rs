//! Where a step puts its effects: a sink records, it never runs anything.

use alloc::vec::Vec;

/// Takes what a step produces, in order.
pub trait Sink<E> {
    /// Records one more.
    fn push(&mut self, item: E);
    /// How many more fit. A step that has more to say than this leaves the rest in its state.
    fn room(&self) -> usize;
}

impl<E> Sink<E> for Vec<E> {
    fn push(&mut self, item: E) {
        Vec::push(self, item);
    }
    fn room(&self) -> usize {
        usize::MAX
    }
}

/// The effects of one step: a buffer of fixed size that its owner reuses for ever, so that
/// stepping allocates nothing.
#[derive(Clone, Debug)]
pub struct Effects<E> {
    items: Vec<E>,
    max: usize,
}

impl<E> Effects<E> {
    /// Room for `max` effects, which is a machine's `EFFECTS_MAX`.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Effects { items: Vec::with_capacity(max), max }
    }

    /// Hands the effects over in order and leaves the buffer empty.
    pub fn drain(&mut self) -> impl Iterator<Item = E> + '_ {
        self.items.drain(..)
    }

    /// What the last step said.
    #[must_use]
    pub fn as_slice(&self) -> &[E] {
        &self.items
    }
}

impl<E> Sink<E> for Effects<E> {
    #[inline(always)]
    fn push(&mut self, item: E) {
        debug_assert!(self.items.len() < self.max, "a step said more than its EFFECTS_MAX");
        self.items.push(item);
    }
    #[inline]
    fn room(&self) -> usize {
        self.max - self.items.len()
    }
}

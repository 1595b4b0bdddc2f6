//! What most values of a type never use, and therefore do not carry.

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

/// What it is like before it is used.
pub trait Unused: Default + 'static {
    /// Nothing yet.
    const UNUSED: &'static Self;
}

/// A `T` that lies apart, and takes memory only once it was changed: whoever does not use it
/// carries eight bytes and looks no further.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Apart<T>(Option<Box<T>>);

impl<T> Default for Apart<T> {
    fn default() -> Self {
        Apart(None)
    }
}

impl<T> Apart<T> {
    /// Whether it was ever used.
    #[inline]
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.0.is_some()
    }
}

impl<T: Unused> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::UNUSED)
    }
}

impl<T: Unused> DerefMut for Apart<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(Box::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[derive(Default, Debug, PartialEq)]
    struct List(Vec<u8>);

    impl Unused for List {
        const UNUSED: &'static List = &List(Vec::new());
    }

    impl List {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn push(&mut self, n: u8) {
            self.0.push(n);
        }
    }

    #[test]
    fn reading_takes_no_memory_and_writing_does() {
        let mut list: Apart<List> = Apart::default();
        assert_eq!((list.len(), list.is_used()), (0, false));
        list.push(1);
        assert_eq!((list.len(), list.is_used()), (1, true));
    }
}

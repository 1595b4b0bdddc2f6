//! Who goes first when both sides start at the same moment.

use core::cmp::Ordering;

/// The outcome of a strict order that both sides compute alike: opposite at the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Tie {
    /// This side goes first.
    Mine,
    /// The other side does.
    Theirs,
}

impl Tie {
    /// Breaks the tie between two names that are totally ordered and unique; the smaller goes
    /// first. `None` when they are equal: then there are no two sides.
    #[must_use]
    pub fn between<N: Ord>(mine: N, theirs: N) -> Option<Tie> {
        match mine.cmp(&theirs) {
            Ordering::Less => Some(Tie::Mine),
            Ordering::Greater => Some(Tie::Theirs),
            Ordering::Equal => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_ends_never_agree_on_who_they_are() {
        for a in 0..4_u8 {
            for b in 0..4_u8 {
                match (Tie::between(a, b), Tie::between(b, a)) {
                    (None, None) => assert_eq!(a, b),
                    (Some(here), Some(there)) => assert_ne!(here, there),
                    (here, there) => panic!("{here:?} here, {there:?} there"),
                }
            }
        }
    }
}

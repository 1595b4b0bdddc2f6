//! Credits: the right to use one receive slot of the peer. Taken and given back, never assigned.

/// The sender's account with one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Credits {
    max: u16,
    held: u16,
}

impl Credits {
    /// An account of `max` slots, all of them free.
    #[must_use]
    pub const fn full(max: u16) -> Credits {
        Credits { max, held: max }
    }

    /// How many may still be taken.
    #[must_use]
    pub const fn held(self) -> u16 {
        self.held
    }

    /// How many the peer owes.
    #[must_use]
    pub const fn owed(self) -> u16 {
        self.max - self.held
    }

    /// Takes one, leaving at least `reserve`. False, and nothing taken, when there is none.
    #[must_use]
    pub fn take(&mut self, reserve: u16) -> bool {
        let granted = self.held > reserve;
        if granted {
            self.held -= 1;
        }
        granted
    }

    /// Gives `n` back. False, and nothing given, when the peer returns more than it owes.
    #[must_use]
    pub fn give_back(&mut self, n: u16) -> bool {
        let owed = n <= self.owed();
        if owed {
            self.held += n;
        }
        owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_balances() {
        let mut credits = Credits::full(3);
        assert!(credits.take(1) && credits.take(1));
        assert!(!credits.take(1), "one is held in reserve");
        assert!(credits.take(0), "the reserve is there for who may use it");
        assert_eq!((credits.held(), credits.owed()), (0, 3));
        assert!(!credits.give_back(4), "nobody returns more than they owe");
        assert!(credits.give_back(2));
        assert_eq!((credits.held(), credits.owed()), (2, 1));
    }
}

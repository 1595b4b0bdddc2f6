//! Messages of one connection: credits, what is in flight, and how it is settled.
//!
//! Completions may come in any order; answers do not. A message is answered `Sent` only when
//! all before it are, so that after a loss everything behind it is `Unknown`: it may lie in the
//! peer's mailbox behind a gap that nobody can read across.

use core::hash::{Hash, Hasher};

use crate::credit::Credits;
use crate::id::{FragId, Tag};
use crate::pending::{List, Slab};
use crate::time::Time;

/// Credits that user messages leave alone, so that a goodbye can always be said.
pub const RESERVED: u16 = 1;

/// One message, waiting or in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Frag {
    /// What it carries.
    pub kind: Kind,
    /// Payload bytes.
    pub len: u32,
    /// What became of it.
    pub fate: Fate,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Kind {
    /// The application's.
    User {
        /// Its name in the driver's arena.
        id: FragId,
        /// Its tag.
        tag: Tag,
        /// Whether the payload was copied into a buffer of the transport.
        copied: bool,
    },
    /// A message of the transport's own, which lies beside under this number.
    Control {
        /// The number.
        number: u32,
    },
    /// The last of a connection.
    Goodbye,
}

impl Kind {
    /// Credits that it leaves to others.
    const fn reserve(self) -> u16 {
        match self {
            Kind::User { .. } | Kind::Control { .. } => RESERVED,
            Kind::Goodbye => 0,
        }
    }
}

/// What became of a message in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Fate {
    /// Nothing yet.
    Pending,
    /// It is in the peer's mailbox.
    Delivered,
    /// The device gave it up.
    Lost,
}

/// Credits and messages in flight of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Window {
    credits: Credits,
    epoch: u8,
    lost: bool,
    seq: u32,
    flight: List,
    wake: Time,
}

/// The logical part: where in the slab the messages lie does not matter, what they are is
/// encoded by who owns the slab.
impl Hash for Window {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.credits, self.epoch, self.lost, self.seq, self.flight.len(), self.wake).hash(state);
    }
}

impl Window {
    /// No connection.
    pub const NONE: Window = Window {
        credits: Credits::full(0),
        epoch: 0,
        lost: false,
        seq: 0,
        flight: List::EMPTY,
        wake: Time::NEVER,
    };

    /// A new connection with a mailbox of `credits` messages at the peer.
    #[must_use]
    pub const fn open(credits: u16) -> Window {
        Window { credits: Credits::full(credits), ..Window::NONE }
    }

    /// Whether there ever was a connection.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.credits.held() > 0 || self.credits.owed() > 0
    }

    /// The account.
    #[must_use]
    pub const fn credits(&self) -> Credits {
        self.credits
    }

    /// The messages in flight.
    #[must_use]
    pub const fn flight(&self) -> &List {
        &self.flight
    }

    /// Which run of ops this is: after a refusal the device refuses the rest of its epoch.
    #[must_use]
    pub const fn epoch(&self) -> u8 {
        self.epoch
    }

    /// When the owner wants to look at what waits here; `NEVER` when something else will come.
    #[must_use]
    pub const fn wake(&self) -> Time {
        self.wake
    }

    /// Sets that time.
    pub const fn wake_at(&mut self, at: Time) {
        self.wake = at;
    }

    /// Whether a user message may go.
    #[must_use]
    pub const fn may_send(&self) -> bool {
        self.credits.held() > RESERVED
    }

    /// Puts the oldest of `waiting` in flight: its sequence number, and the message.
    pub fn launch(&mut self, frags: &mut Slab<Frag>, waiting: &mut List) -> Option<(u32, Frag)> {
        let reserve = frags.front(waiting)?.kind.reserve();
        if !self.credits.take(reserve) {
            return None;
        }
        let frag = *frags.move_front(waiting, &mut self.flight)?;
        Some((self.number(), frag))
    }

    /// Puts a message in flight that nothing waits before.
    #[inline]
    pub fn launch_now(&mut self, frags: &mut Slab<Frag>, frag: Frag) -> Option<u32> {
        if !self.credits.take(frag.kind.reserve()) {
            return None;
        }
        frags.push_back(&mut self.flight, frag);
        Some(self.number())
    }

    fn number(&mut self) -> u32 {
        let seq = self.seq;
        self.seq = self.seq.wrapping_add(1);
        seq
    }

    /// The device refused message `seq` and all after it: back to the front of `waiting`, in
    /// order, with their credits, and a new epoch begins. False for a refusal of an epoch that
    /// is over.
    pub fn refused(
        &mut self,
        seq: u32,
        epoch: u8,
        frags: &mut Slab<Frag>,
        waiting: &mut List,
    ) -> bool {
        let behind = self.seq.wrapping_sub(seq);
        if epoch != self.epoch || behind == 0 || behind > self.flight.len() {
            return false;
        }
        let keep = self.flight.len() - behind;
        frags.return_tail(&mut self.flight, keep, waiting);
        self.seq = seq;
        self.epoch = self.epoch.wrapping_add(1);
        self.credits.give_back(behind as u16)
    }

    /// The device says what became of message `seq`. False if it is not in flight.
    pub fn completed(&mut self, seq: u32, fate: Fate, frags: &mut Slab<Frag>) -> bool {
        let oldest = self.seq.wrapping_sub(self.flight.len());
        match frags.nth_mut(&self.flight, seq.wrapping_sub(oldest).min(self.flight.len())) {
            Some(frag) if frag.fate == Fate::Pending => {
                frag.fate = fate;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Takes the oldest message if its fate is known: what it is, and whether it is sure to
    /// have been delivered.
    pub fn settle(&mut self, frags: &mut Slab<Frag>) -> Option<(Frag, bool)> {
        let fate = frags.front(&self.flight)?.fate;
        if fate == Fate::Pending {
            return None;
        }
        self.lost |= fate == Fate::Lost;
        let frag = frags.pop_front(&mut self.flight)?;
        Some((frag, !self.lost))
    }

    /// The device is out of order: nothing more will be heard of what is in flight.
    pub fn abandon(&mut self, frags: &mut Slab<Frag>) -> Option<Frag> {
        let frag = frags.pop_front(&mut self.flight)?;
        self.lost = true;
        Some(frag)
    }

    /// The peer gives `n` credits back. False if it did not owe them.
    pub fn credit(&mut self, n: u16) -> bool {
        self.credits.give_back(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(n: u32) -> Frag {
        let kind = Kind::User { id: FragId(n), tag: Tag(0), copied: true };
        Frag { kind, len: n, fate: Fate::Pending }
    }

    /// A window of four credits with three messages in flight and one waiting.
    fn busy() -> (Window, Slab<Frag>, List) {
        let (mut window, mut frags, mut waiting) = (Window::open(4), Slab::new(), List::EMPTY);
        for n in 0..4 {
            frags.push_back(&mut waiting, user(n));
        }
        for n in 0..3 {
            assert_eq!(window.launch(&mut frags, &mut waiting).map(|(seq, _)| seq), Some(n));
        }
        assert_eq!(window.launch(&mut frags, &mut waiting), None, "one credit is reserved");
        (window, frags, waiting)
    }

    #[test]
    fn answers_come_in_order_whatever_the_completions_do() {
        let (mut window, mut frags, _) = busy();
        assert!(window.completed(1, Fate::Delivered, &mut frags));
        assert_eq!(window.settle(&mut frags), None);
        assert!(window.completed(0, Fate::Delivered, &mut frags));
        assert!(!window.completed(0, Fate::Delivered, &mut frags), "once only");
        let settled: [_; 3] =
            core::array::from_fn(|_| window.settle(&mut frags).map(|(f, sure)| (f.len, sure)));
        assert_eq!(settled, [Some((0, true)), Some((1, true)), None]);
        assert!(!window.completed(7, Fate::Delivered, &mut frags));
    }

    #[test]
    fn nothing_behind_a_loss_is_sure() {
        let (mut window, mut frags, _) = busy();
        for (seq, fate) in [(2, Fate::Delivered), (1, Fate::Lost), (0, Fate::Delivered)] {
            assert!(window.completed(seq, fate, &mut frags));
        }
        let settled: [_; 3] =
            core::array::from_fn(|_| window.settle(&mut frags).map(|(f, sure)| (f.len, sure)));
        assert_eq!(settled, [Some((0, true)), Some((1, false)), Some((2, false))]);
    }

    #[test]
    fn a_refusal_returns_the_rest_of_its_epoch_in_order() {
        let (mut window, mut frags, mut waiting) = busy();
        assert!(window.refused(1, 0, &mut frags, &mut waiting));
        assert!(!window.refused(2, 0, &mut frags, &mut waiting), "that epoch is over");
        let order: alloc::vec::Vec<u32> = frags.iter(&waiting).map(|frag| frag.len).collect();
        assert_eq!((order, window.credits().held()), (alloc::vec![1, 2, 3], 3));
        let next = window.launch(&mut frags, &mut waiting).map(|(seq, frag)| (seq, frag.len));
        assert_eq!((next, window.epoch()), (Some((1, 1)), 1));
    }

    #[test]
    fn a_quiet_connection_has_nothing_to_abandon() {
        let (mut window, mut frags) = (Window::open(4), Slab::new());
        assert_eq!(window.abandon(&mut frags), None);
        assert_eq!(window.launch_now(&mut frags, user(0)), Some(0));
        assert!(window.completed(0, Fate::Delivered, &mut frags));
        assert_eq!(window.settle(&mut frags).map(|(_, sure)| sure), Some(true));
        assert_eq!(window.launch_now(&mut frags, user(1)), Some(1));
        assert_eq!(window.abandon(&mut frags), Some(user(1)));
        assert_eq!(window.launch_now(&mut frags, user(2)), Some(2));
        assert!(window.completed(2, Fate::Delivered, &mut frags));
        assert_eq!(window.settle(&mut frags).map(|(_, sure)| sure), Some(false));
    }

    #[test]
    fn the_goodbye_uses_the_reserve() {
        let (mut window, mut frags, _) = busy();
        let goodbye = Frag { kind: Kind::Goodbye, len: 0, fate: Fate::Pending };
        assert_eq!(window.launch_now(&mut frags, user(9)), None);
        assert_eq!(window.launch_now(&mut frags, goodbye), Some(3));
        assert_eq!(window.credits().held(), 0);
        assert!(!window.credit(5) && window.credit(4));
    }
}

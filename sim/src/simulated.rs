//! What a transport has to bring to be simulated: its NIC, and how to open both.

use std::fmt::Debug;

use selvedge_core::{Address, Load, Named, Nic, NicEffect, NicEvent, ProcName, Transport};

/// A transport with a NIC model.
pub trait Simulated:
    Transport<Op = <Self::Nic as Nic>::Op, Completion = <Self::Nic as Nic>::Completion> + 'static
{
    /// The NIC under it.
    type Nic: Nic + Debug;
    /// What it is configured with.
    type Setup: Clone + Debug + Send + Sync;
    /// Its number in modex cards.
    const NUMBER: u16;

    /// A proc's transport and NIC at the start of a life; 1 is the first.
    fn open(setup: &Self::Setup, name: ProcName, address: Address, life: u32) -> (Self, Self::Nic);

    /// What `packet` asks of the parts between two hosts.
    fn load(setup: &Self::Setup, packet: &Packet<Self>) -> Load;

    /// Whether `completion` says that a queue overran.
    fn is_overrun(completion: &Completion<Self>) -> bool;

    /// An invariant across the two ends of a pair, between events of a world at rest.
    ///
    /// # Errors
    /// The rule that does not hold.
    fn check_pair(
        here: (&Self, &Self::Nic),
        there: (&Self, &Self::Nic),
    ) -> Result<(), selvedge_core::Violation> {
        let _ = (here, there);
        Ok(())
    }

    /// How a proc's rate fault is spelt.
    #[must_use]
    fn fault(word: &str) -> Option<Fault<Self>> {
        <Self::Nic as Nic>::FAULTS.iter().copied().find(|fault| fault.word() == word)
    }
}

/// What a transport asks of its NIC.
pub type Op<T> = <<T as Simulated>::Nic as Nic>::Op;
/// What its NIC says.
pub type Completion<T> = <<T as Simulated>::Nic as Nic>::Completion;
/// What its NIC puts on the wire.
pub type Packet<T> = <<T as Simulated>::Nic as Nic>::Packet;
/// What its NIC keeps of a packet.
pub type Receipt<T> = <<T as Simulated>::Nic as Nic>::Receipt;
/// How its NIC can misbehave.
pub type Fault<T> = <<T as Simulated>::Nic as Nic>::Fault;
/// What can happen to its NIC.
pub type OfNic<T> = NicEvent<Op<T>, Packet<T>, Receipt<T>, Fault<T>>;
/// What its NIC wants.
pub type ByNic<T> = NicEffect<Completion<T>, Packet<T>>;
/// What it wants.
pub type Effect<T> = selvedge_core::Effect<Op<T>>;

//! The ways in which the NIC can be told to misbehave.

use crate::machine::Named;
use crate::ugni::Op;

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal,)*) => {
        /// A way to misbehave. Most wait for the next op or packet that they bear on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Fault { $($(#[doc = $doc])* $name,)* }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[$(Fault::$name,)*];
            /// What each does, in the same order.
            pub const MEANINGS: &'static [&'static str] = &[$(concat!($($doc),*).trim_ascii(),)*];
        }

        impl Named for Fault {
            const WORDS: &'static [&'static str] = &[$($word,)*];
            fn word(&self) -> &'static str {
                match self { $(Fault::$name => $word,)* }
            }
        }
    };
}

faults! {
    /// The next directed post is refused: `ERROR_RESOURCE`.
    RefusePostSession = "refuse-post-session",
    /// The next directed post is refused: `ERROR_NOMEM`.
    RefusePostMemory = "refuse-post-memory",
    /// The next wildcard post is refused: `ERROR_NOMEM`.
    RefuseWildcard = "refuse-wildcard",
    /// The next directed datagram ends in `TIMEOUT`, whatever the peer sees.
    EndTimeout = "end-timeout",
    /// The next directed datagram ends in `TERMINATED`, whatever the peer sees.
    EndTerminated = "end-terminated",
    /// The next directed datagram ends in `ERROR`, whatever the peer sees.
    EndError = "end-error",
    /// The next completion of a datagram is seen late.
    HoldDatagram = "hold-datagram",
    /// The wildcard meets nobody for a while.
    DeafWildcard = "deaf-wildcard",
    /// The next mailbox set-up is refused.
    RefuseSetup = "refuse-setup",
    /// The next registration of mailboxes is refused.
    RefuseRegister = "refuse-register",
    /// The next send is refused although there are credits.
    RefuseSend = "refuse-send",
    /// The next send ends in a transaction error.
    FailSend = "fail-send",
    /// The event of the next message runs ahead of it.
    EarlyEvent = "early-event",
    /// The event of the next message comes twice.
    DuplicateEvent = "duplicate-event",
    /// The next credit return is held.
    HoldCredits = "hold-credits",
    /// The remote queue overruns with the next event.
    RemoteOverrun = "remote-overrun",
    /// The local queue loses its next completion.
    LocalOverrun = "local-overrun",
    /// The next unbind is answered `NOT_DONE`.
    BusyUnbind = "busy-unbind",
    /// The next registration of a region is refused: `ERROR_RESOURCE`.
    RefuseMemory = "refuse-memory",
    /// The next operation on remote memory is refused: `ERROR_RESOURCE`.
    RefuseRdma = "refuse-rdma",
    /// The next operation on remote memory ends in a recoverable error, and is not done.
    RdmaError = "rdma-error",
    /// The next operation on remote memory ends in a recoverable error, and is done.
    RdmaErrorLate = "rdma-error-late",
    /// The next operation on remote memory ends in a fatal error, and is not done.
    RdmaFatal = "rdma-fatal",
    /// The next operation on remote memory ends in a fatal error, and is done.
    RdmaFatalLate = "rdma-fatal-late",
    /// The next interrupt is not raised.
    LoseInterrupt = "lose-interrupt",
}

impl Fault {
    /// Whether it can strike at `op`.
    pub(super) fn bears_on(self, op: &Op) -> bool {
        match self {
            Fault::RefusePostSession
            | Fault::RefusePostMemory
            | Fault::EndTimeout
            | Fault::EndTerminated
            | Fault::EndError
            | Fault::HoldDatagram => matches!(op, Op::PostDirected { .. }),
            Fault::RefuseWildcard | Fault::DeafWildcard => matches!(op, Op::PostWildcard { .. }),
            Fault::RefuseSetup => matches!(op, Op::Init { .. }),
            Fault::RefuseRegister => matches!(op, Op::Register { .. }),
            Fault::RefuseSend | Fault::FailSend | Fault::LocalOverrun => {
                matches!(op, Op::Send { .. } | Op::SendControl { .. })
            }
            Fault::EarlyEvent | Fault::DuplicateEvent | Fault::RemoteOverrun => {
                matches!(op, Op::Next { .. })
            }
            Fault::HoldCredits => matches!(op, Op::Release { .. }),
            Fault::BusyUnbind => matches!(op, Op::Unbind { .. }),
            Fault::RefuseMemory => matches!(op, Op::MemRegister { .. }),
            Fault::RefuseRdma
            | Fault::RdmaError
            | Fault::RdmaErrorLate
            | Fault::RdmaFatal
            | Fault::RdmaFatalLate => {
                matches!(op, Op::Put { .. } | Op::Get { .. } | Op::Atomic { .. })
            }
            Fault::LoseInterrupt => matches!(op, Op::Wake { .. }),
        }
    }
}

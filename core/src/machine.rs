//! What a machine is, what a transport is, and the words that all transports share.

use core::fmt::Debug;

use crate::id::{FragId, Generation, ProcName, RegionId, Tag};
use crate::rma::{Amo, Place, Tail};
use crate::sink::Sink;
use crate::time::Time;

/// A pure state machine: plain data that changes only in [`step`](Machine::step).
pub trait Machine: Clone + Debug {
    /// What can happen to it.
    type Event;
    /// What it wants done.
    type Effect;
    /// The most effects of one step. Work that is left over stays in the state, and
    /// `next_deadline` says [`Time::ZERO`] until it is done.
    const EFFECTS_MAX: usize;

    /// Applies one event. Never blocks, never panics.
    fn step(&mut self, now: Time, event: Self::Event, fx: &mut impl Sink<Self::Effect>) -> Verdict;

    /// When this machine wants its `Expired` event. Derived from the state, so no timer is ever
    /// cancelled and none can go stale.
    fn next_deadline(&self) -> Option<Time>;

    /// The invariants that hold between events.
    ///
    /// # Errors
    /// The rule that does not hold.
    fn check(&self) -> Result<(), Violation>;

    /// The logical state in canonical order: two states that behave alike from now on encode
    /// alike, whatever slots their records happen to lie in. Key of the search, snapshot of a
    /// recording, comparison in replay.
    fn encode(&self, out: &mut impl Sink<u8>);
}

/// How a step ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The event was for this state.
    Taken,
    /// The event came too late to matter; nothing changed.
    Stale,
    /// The event should not have happened, and here is whose fault it is.
    Broken(Fault),
}

/// Who broke the rules, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The application asked for what it may not.
    Owner(&'static str),
    /// The other side sent what it may not.
    Peer(&'static str),
    /// The device said what it may not.
    Device(&'static str),
}

/// An invariant that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Violation(pub &'static str);

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Violation {}

/// Ensures an invariant: `Err(Violation(rule))` unless `holds`.
///
/// # Errors
/// When `holds` is false.
#[inline]
pub fn ensure(holds: bool, rule: &'static str) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(rule)) }
}

/// One transport in one proc, whole: composed of small machines, one per endpoint and per
/// shared thing.
pub trait Transport: Machine<Event = Event<Self::Completion>, Effect = Effect<Self::Op>> {
    /// What it asks of its device.
    type Op: Clone + Debug + Named;
    /// What its device says.
    type Completion: Clone + Debug + Named;

    /// The invariants of what the last step touched: cheap enough to ask after every event.
    ///
    /// # Errors
    /// The rule that does not hold.
    fn check_touched(&self) -> Result<(), Violation>;

    /// Whether nothing is under way: no command unanswered, no connection half made.
    fn settled(&self) -> bool;
}

/// What can happen to a transport.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Event<C> {
    /// The application asks.
    Command(Command),
    /// The device says.
    Completion(C),
    /// The deadline that the transport named has come.
    Expired,
}

/// What a transport wants done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Effect<O> {
    /// Tell the application.
    Notice(Notice),
    /// Tell the device.
    Op(O),
}

/// What the application asks. Each command is answered exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Command {
    /// Deliver `len` bytes of `frag` to `to`. Answered by `Sent`, `Failed` or `Unknown`.
    Send {
        /// The receiver.
        to: ProcName,
        /// Order is promised per peer and tag.
        tag: Tag,
        /// The driver's name for the payload.
        frag: FragId,
        /// Payload bytes.
        len: u32,
        /// Who holds the payload until it is answered.
        hold: Hold,
    },
    /// Bring a connection up without sending. Answered by `Connected`, or `Closed` with the
    /// reason why not.
    Connect {
        /// The peer.
        to: ProcName,
    },
    /// Finish what was accepted, then take the connection down. Answered by `Closed`.
    Close {
        /// The peer.
        to: ProcName,
    },
    /// Register a region of memory, so that the NIC can move its bytes, and peers with it.
    /// Answered by `Registered`, or `Unregistered` with the reason why not.
    Register {
        /// The name that it shall have, here and at peers.
        region: RegionId,
        /// Its bytes.
        len: u32,
    },
    /// Take that back, once for each time it was asked for. Answered by `Unregistered`.
    Deregister {
        /// Which.
        region: RegionId,
    },
    /// Write to a peer's memory. Answered by `Done`, `Failed` or `Unknown`.
    Put {
        /// Whose.
        to: ProcName,
        /// The driver's name for the operation.
        frag: FragId,
        /// From where.
        local: Place,
        /// Where to.
        remote: Place,
        /// Bytes.
        len: u32,
    },
    /// Read a peer's memory. Answered by `Done`, `Failed` or `Unknown`.
    Get {
        /// Whose.
        to: ProcName,
        /// The driver's name for the operation.
        frag: FragId,
        /// Where to.
        local: Place,
        /// From where.
        remote: Place,
        /// Bytes.
        len: u32,
    },
    /// Change a word of a peer's memory in one piece. Answered by `Done`, `Failed` or `Unknown`.
    Atomic {
        /// Whose.
        to: ProcName,
        /// The driver's name for the operation.
        frag: FragId,
        /// How.
        amo: Amo,
        /// Which word.
        remote: Place,
        /// With what.
        operand: u64,
        /// The second operand of those that have two.
        second: u64,
    },
}

/// Who holds a payload while it is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Hold {
    /// The driver copied it into a buffer of the transport: the caller's memory is free at once.
    Copied,
    /// It stays in the caller's memory, which is free when the command is answered.
    InPlace,
    /// The same, in memory that is registered: where the peer fetches a long message itself.
    Registered {
        /// Where it lies.
        at: Place,
        /// Its last bytes, which a NIC cannot fetch.
        tail: Tail,
    },
}

/// What the application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Notice {
    /// A message came. Its bytes lie in the device until the next effect: the driver copies now.
    Arrived {
        /// The sender.
        from: ProcName,
        /// Its tag.
        tag: Tag,
        /// Payload bytes.
        len: u32,
        /// The device's name for the payload.
        data: FragId,
        /// Where its bytes lie instead, if the transport had to fetch them.
        at: Option<Place>,
    },
    /// The message lies in the peer's memory, exactly once.
    Sent {
        /// Which.
        frag: FragId,
    },
    /// The message was never delivered and never will be.
    Failed {
        /// Which.
        frag: FragId,
        /// For whom.
        peer: ProcName,
        /// How far the connection was.
        phase: Phase,
        /// Why.
        reason: Reason,
    },
    /// The message was delivered once or not at all; nobody can know which.
    Unknown {
        /// Which.
        frag: FragId,
        /// For whom.
        peer: ProcName,
        /// How far the connection was.
        phase: Phase,
        /// Why.
        reason: Reason,
    },
    /// The connection is up.
    Connected {
        /// With whom.
        peer: ProcName,
        /// Which attempt of ours it is.
        generation: Generation,
    },
    /// The connection, or the attempt at one, is over.
    Closed {
        /// With whom.
        peer: ProcName,
        /// How far it had come.
        phase: Phase,
        /// Why it ended.
        reason: Reason,
    },
    /// Something went wrong that ends nothing by itself.
    Trouble {
        /// With whom, as far as is known.
        peer: ProcName,
        /// How far the connection was.
        phase: Phase,
        /// What.
        reason: Reason,
    },
    /// The region can be used, here and by peers.
    Registered {
        /// Which.
        region: RegionId,
    },
    /// The region is not registered, or not any more. Peers that use it all the same may still
    /// find it for a while: registrations are kept as long as there is room.
    Unregistered {
        /// Which.
        region: RegionId,
        /// Why.
        reason: Reason,
    },
    /// The operation on remote memory is done: a put lies in the peer's memory, a get in ours.
    Done {
        /// Which.
        frag: FragId,
        /// What a fetching atomic found; otherwise zero.
        value: u64,
    },
}

/// How far a connection has come, in words that every transport shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Phase {
    /// Nothing is under way.
    Idle,
    /// The peer's address is being looked up.
    Resolving,
    /// The two sides are exchanging what they need.
    Connecting,
    /// Messages flow.
    Ready,
    /// It is being taken down.
    Closing,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Why something did not go the good way.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// As files and reports spell it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Reason::$name => $word,)* }
            }
        }
    };
}

reasons! {
    /// This side asked for it.
    Closed = "closed",
    /// The peer asked for it.
    PeerClosed = "peer-closed",
    /// The peer, or its node, is gone.
    PeerDied = "peer-died",
    /// The peer came back as a new process, or gave this connection up.
    PeerRestarted = "peer-restarted",
    /// No answer after every retry.
    Unreachable = "unreachable",
    /// Nobody published an address for this peer.
    NoAddress = "no-address",
    /// The peer's address record cannot be read.
    BadAddress = "bad-address",
    /// The peer's connection record cannot be read, or is not meant for us.
    BadRecord = "bad-record",
    /// The device gave a transaction up after its retransmissions.
    TransactionError = "transaction-error",
    /// The device refused to set the connection up.
    SetupRefused = "setup-refused",
    /// Longer than the transport carries.
    TooLong = "too-long",
    /// As many messages wait for this peer as may.
    QueueFull = "queue-full",
    /// All copy buffers are taken.
    NoBuffers = "no-buffers",
    /// All endpoints are taken.
    NoEndpoints = "no-endpoints",
    /// The connection is being closed; it takes nothing more.
    Closing = "closing",
    /// The device lost completions and cannot be trusted any more.
    DeviceFailed = "device-failed",
    /// The memory is not registered, there or here, or not so much of it.
    NotRegistered = "not-registered",
    /// No more memory can be registered.
    NoRegistrations = "no-registrations",
    /// An atomic operation needs a whole word.
    Misaligned = "misaligned",
    /// The device has no such operation.
    Unsupported = "unsupported",
    /// As many operations on remote memory wait as may.
    TooMany = "too-many",
}

/// A closed set of words: how a trace, a scenario file and a diagram call each variant.
pub trait Named {
    /// Every word, in the order of the variants.
    const WORDS: &'static [&'static str];
    /// The word of this one.
    fn word(&self) -> &'static str;
}

impl Named for Command {
    const WORDS: &'static [&'static str] =
        &["send", "connect", "close", "register", "deregister", "put", "get", "atomic"];
    fn word(&self) -> &'static str {
        match self {
            Command::Send { .. } => "send",
            Command::Connect { .. } => "connect",
            Command::Close { .. } => "close",
            Command::Register { .. } => "register",
            Command::Deregister { .. } => "deregister",
            Command::Put { .. } => "put",
            Command::Get { .. } => "get",
            Command::Atomic { .. } => "atomic",
        }
    }
}

impl Named for Notice {
    const WORDS: &'static [&'static str] = &[
        "arrived",
        "sent",
        "failed",
        "unknown",
        "connected",
        "closed",
        "trouble",
        "registered",
        "unregistered",
        "done",
    ];
    fn word(&self) -> &'static str {
        match self {
            Notice::Arrived { .. } => "arrived",
            Notice::Sent { .. } => "sent",
            Notice::Failed { .. } => "failed",
            Notice::Unknown { .. } => "unknown",
            Notice::Connected { .. } => "connected",
            Notice::Closed { .. } => "closed",
            Notice::Trouble { .. } => "trouble",
            Notice::Registered { .. } => "registered",
            Notice::Unregistered { .. } => "unregistered",
            Notice::Done { .. } => "done",
        }
    }
}

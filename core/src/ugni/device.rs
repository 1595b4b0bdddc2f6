//! What a uGNI module asks of its NIC, and what the NIC says: the calls of the GNI library as
//! data. Where a call answers at once, only the answers that matter exist.

use alloc::boxed::Box;

use crate::id::{EpId, FragId, ProcName, Tag};
use crate::machine::{Named, Reason};
use crate::nic::Address;

use super::record::RecordBytes;

/// A mailbox in a module's registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MboxId(pub u32);

/// Why a datagram was not posted. Kept apart on purpose: the first is flow control and ends with
/// an event that is sure to come, the second ends with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PostError {
    /// `ERROR_RESOURCE`: a completion that concerns this peer has to be read first.
    Session,
    /// `ERROR_NOMEM`.
    Memory,
    /// `INVALID_PARAM`: the endpoint is not bound.
    Invalid,
}

/// How a datagram ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PostState {
    /// Both sides have each other's data.
    Completed,
    /// The peer's node is dead.
    Timeout,
    /// Cancelled, here or there.
    Terminated,
    /// It failed.
    Error,
}

/// A message as the wire tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// A user message.
    User {
        /// Its tag.
        tag: Tag,
        /// The sender's name for the payload, by which the carrier finds the bytes.
        data: FragId,
    },
    /// The last message of a connection.
    Goodbye,
}

/// What the module asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Look up the address that `peer` published. Answered by `Resolved`, now or later.
    Resolve {
        /// For which endpoint.
        ep: EpId,
        /// Whose.
        peer: ProcName,
    },
    /// Register a slab of mailboxes. Answered by `Registered`.
    Register {
        /// Which; its mailboxes are numbered on from those of the slabs before.
        slab: u32,
        /// How many mailboxes.
        mailboxes: u32,
    },
    /// Zero a mailbox: from now on a peer may write into it.
    Arm {
        /// Which.
        mbox: MboxId,
    },
    /// Bind an endpoint.
    Bind {
        /// Which.
        ep: EpId,
        /// To whom.
        to: Address,
    },
    /// Post a directed datagram. Ends by a `Datagram`; or is answered by `PostRefused`.
    PostDirected {
        /// From which endpoint.
        ep: EpId,
        /// Its payload.
        record: Box<RecordBytes>,
    },
    /// Post the wildcard. Ends by a `Datagram`; or is answered by `PostRefused`.
    PostWildcard {
        /// Its payload.
        record: Box<RecordBytes>,
    },
    /// Cancel the directed datagram of an endpoint; it still ends by a `Datagram`.
    Cancel {
        /// Which.
        ep: EpId,
    },
    /// `SmsgInit`: pair our mailbox with the peer's. Answered by `SetupRefused` if it cannot be.
    Init {
        /// Which endpoint.
        ep: EpId,
        /// Ours.
        local: MboxId,
        /// Theirs.
        remote: MboxId,
        /// Event data for the peer's queue.
        index: u32,
    },
    /// `SmsgSend`. Ends by a `SendDone`; or is answered by `Refused`, and so is every later send
    /// of the same endpoint and epoch.
    Send {
        /// On which endpoint.
        ep: EpId,
        /// The message's place in the peer's mailbox.
        seq: u32,
        /// The run of sends that a refusal ends.
        epoch: u8,
        /// What.
        content: Content,
        /// Payload bytes.
        len: u32,
    },
    /// `SmsgGetNext`. Answered by `Message` or `Empty`.
    Next {
        /// On which endpoint.
        ep: EpId,
    },
    /// `SmsgRelease`: the message just got has been copied.
    Release {
        /// On which endpoint.
        ep: EpId,
    },
    /// `EpUnbind`. Answered by `Unbound` or `UnbindBusy`.
    Unbind {
        /// Which.
        ep: EpId,
    },
}

/// What the NIC says: answers first, then what its queues hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Completion {
    /// The peer's address, or why there is none.
    Resolved {
        /// For which endpoint.
        ep: EpId,
        /// The address.
        card: Result<Address, Reason>,
    },
    /// A slab was registered, or was not.
    Registered {
        /// Whether.
        ok: bool,
    },
    /// A datagram was not posted.
    PostRefused {
        /// Whose; `None` for the wildcard.
        ep: Option<EpId>,
        /// Why.
        why: PostError,
    },
    /// The mailboxes do not fit each other, or the endpoint is not bound.
    SetupRefused {
        /// Which endpoint.
        ep: EpId,
    },
    /// A message was not sent.
    Refused {
        /// On which endpoint.
        ep: EpId,
        /// Which.
        seq: u32,
        /// Of which epoch.
        epoch: u8,
    },
    /// The next message of a mailbox; it stays there until it is released.
    Message {
        /// On which endpoint.
        ep: EpId,
        /// What.
        content: Content,
        /// Payload bytes.
        len: u32,
    },
    /// No message is there.
    Empty {
        /// On which endpoint.
        ep: EpId,
    },
    /// The endpoint is free.
    Unbound {
        /// Which.
        ep: EpId,
    },
    /// Something is still outstanding on it.
    UnbindBusy {
        /// Which.
        ep: EpId,
    },
    /// A datagram ended.
    Datagram {
        /// Whose; `None` for the wildcard.
        ep: Option<EpId>,
        /// How.
        state: PostState,
        /// The other side.
        from: Address,
        /// What it sent, as it came; `None` unless completed.
        record: Option<Box<RecordBytes>>,
    },
    /// A message of ours is in the peer's mailbox, or was given up.
    SendDone {
        /// On which endpoint.
        ep: EpId,
        /// Which.
        seq: u32,
        /// Whether it is there.
        delivered: bool,
    },
    /// The local queue lost completions.
    LocalOverrun,
    /// A peer wrote something; or it may only seem so.
    Arrival {
        /// Which endpoint, as we told the peer.
        index: u32,
    },
    /// The remote queue lost events.
    RemoteOverrun,
    /// The peer freed slots of its mailbox.
    Credits {
        /// On which endpoint.
        ep: EpId,
        /// How many.
        n: u16,
    },
}

impl Named for Op {
    const WORDS: &'static [&'static str] = &[
        "resolve",
        "register",
        "arm",
        "bind",
        "post-directed",
        "post-wildcard",
        "cancel",
        "init",
        "smsg-send",
        "get-next",
        "release",
        "unbind",
    ];
    fn word(&self) -> &'static str {
        match self {
            Op::Resolve { .. } => "resolve",
            Op::Register { .. } => "register",
            Op::Arm { .. } => "arm",
            Op::Bind { .. } => "bind",
            Op::PostDirected { .. } => "post-directed",
            Op::PostWildcard { .. } => "post-wildcard",
            Op::Cancel { .. } => "cancel",
            Op::Init { .. } => "init",
            Op::Send { .. } => "smsg-send",
            Op::Next { .. } => "get-next",
            Op::Release { .. } => "release",
            Op::Unbind { .. } => "unbind",
        }
    }
}

impl Named for Completion {
    const WORDS: &'static [&'static str] = &[
        "resolved",
        "registered",
        "post-refused",
        "setup-refused",
        "send-refused",
        "message",
        "empty",
        "unbound",
        "unbind-busy",
        "datagram",
        "send-done",
        "local-overrun",
        "arrival",
        "remote-overrun",
        "credits",
    ];
    fn word(&self) -> &'static str {
        match self {
            Completion::Resolved { .. } => "resolved",
            Completion::Registered { .. } => "registered",
            Completion::PostRefused { .. } => "post-refused",
            Completion::SetupRefused { .. } => "setup-refused",
            Completion::Refused { .. } => "send-refused",
            Completion::Message { .. } => "message",
            Completion::Empty { .. } => "empty",
            Completion::Unbound { .. } => "unbound",
            Completion::UnbindBusy { .. } => "unbind-busy",
            Completion::Datagram { .. } => "datagram",
            Completion::SendDone { .. } => "send-done",
            Completion::LocalOverrun => "local-overrun",
            Completion::Arrival { .. } => "arrival",
            Completion::RemoteOverrun => "remote-overrun",
            Completion::Credits { .. } => "credits",
        }
    }
}

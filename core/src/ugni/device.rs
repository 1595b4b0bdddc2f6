//! What a uGNI module asks of its NIC, and what the NIC says: the calls of the GNI library as
//! data. Where a call answers at once, only the answers that matter exist.

use alloc::boxed::Box;

use crate::id::{EpId, FragId, ProcName, RegionId, Tag};
use crate::machine::{Named, Reason};
use crate::nic::Address;
use crate::rma::{Amo, Place, Tail};

use super::access::{End, Engine, Refusal};
use super::record::RecordBytes;

/// A mailbox in a module's registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MboxId(pub u32);

/// Why a datagram was not posted. Kept apart on purpose: the first is flow control and ends with
/// an event that is sure to come, the second ends with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

/// A message of the transport to itself: what its receiver shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Control {
    /// Fetch a user message that is too long for the mailbox.
    Fetch {
        /// Its tag.
        tag: Tag,
        /// The sender's name for it, which comes back in `Fetched`.
        data: FragId,
        /// Its bytes.
        len: u32,
        /// Where they lie at the sender.
        at: Place,
        /// The last of them.
        tail: Tail,
    },
    /// A message was fetched, or cannot be.
    Fetched {
        /// Which.
        data: FragId,
        /// Whether it was.
        ok: bool,
    },
    /// Put for me: I cannot get this.
    Give {
        /// The asker's name for the operation, which comes back in `Given`.
        frag: FragId,
        /// Where the bytes lie, at the receiver of this.
        from: Place,
        /// Where they shall go, at its sender.
        into: Place,
        /// How many.
        len: u32,
    },
    /// They are there, or will not be.
    Given {
        /// Which operation.
        frag: FragId,
        /// Whether they are there.
        ok: bool,
    },
}

impl Control {
    /// Its bytes in a mailbox: the header of the old transport's eager get has 40.
    #[must_use]
    pub const fn wire_len(&self) -> u32 {
        match self {
            Control::Fetch { .. } | Control::Give { .. } => 40,
            Control::Fetched { .. } | Control::Given { .. } => 8,
        }
    }
}

/// What the module asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
    /// `SmsgSend` of a message of the transport's own; otherwise as `Send`.
    SendControl {
        /// On which endpoint.
        ep: EpId,
        /// The message's place in the peer's mailbox.
        seq: u32,
        /// The run of sends that a refusal ends.
        epoch: u8,
        /// What.
        control: Box<Control>,
    },
    /// `MemRegister`. Answered by `MemRegistered`.
    MemRegister {
        /// Which.
        region: RegionId,
        /// Its bytes.
        len: u32,
    },
    /// `MemDeregister`: it is not registered any more.
    MemDeregister {
        /// Which.
        region: RegionId,
    },
    /// `PostFma` or `PostRdma`, of a put. Ends by `RdmaDone`; or is answered by `RdmaRefused`.
    Put {
        /// To whom. The endpoint is one of a pool, bound for this operation only.
        to: Address,
        /// The descriptor.
        id: u32,
        /// From where.
        local: Place,
        /// Where to.
        remote: Place,
        /// Bytes.
        len: u32,
        /// By which part of the NIC.
        engine: Engine,
    },
    /// The same of a get.
    Get {
        /// From whom.
        to: Address,
        /// The descriptor.
        id: u32,
        /// Where to.
        local: Place,
        /// From where.
        remote: Place,
        /// Bytes.
        len: u32,
        /// By which part of the NIC.
        engine: Engine,
    },
    /// The same of an atomic operation.
    Atomic {
        /// At whom.
        to: Address,
        /// The descriptor.
        id: u32,
        /// How.
        amo: Amo,
        /// Which word.
        remote: Place,
        /// With what.
        operand: u64,
        /// And with what else.
        second: u64,
    },
    /// The same of a `CQWRITE` that raises an interrupt.
    Wake {
        /// At whom.
        to: Address,
        /// The descriptor.
        id: u32,
    },
    /// For the driver: copy the payload of a message to `into`, from where a peer will fetch it.
    Stage {
        /// Which.
        data: FragId,
        /// Where to.
        into: Place,
        /// Its bytes.
        len: u32,
    },
    /// For the driver: write the last bytes of a message that was fetched.
    Finish {
        /// Where to.
        at: Place,
        /// What.
        tail: Tail,
    },
}

/// What the NIC says: answers first, then what its queues hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
    /// The next message of a mailbox, which is one of the transport's own; it stays there until
    /// it is released.
    Control {
        /// On which endpoint.
        ep: EpId,
        /// What.
        control: Box<Control>,
    },
    /// A region was registered, or was not: `ERROR_RESOURCE`.
    MemRegistered {
        /// Whether.
        ok: bool,
    },
    /// An operation on remote memory was not posted.
    RdmaRefused {
        /// Which.
        id: u32,
        /// Why.
        why: Refusal,
    },
    /// An operation on remote memory ended.
    RdmaDone {
        /// Which.
        id: u32,
        /// How.
        end: End,
        /// What a fetching atomic found.
        found: u64,
    },
    /// A peer raised an interrupt.
    Interrupt,
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
        "send-control",
        "mem-register",
        "mem-deregister",
        "post-put",
        "post-get",
        "post-atomic",
        "post-wake",
        "stage",
        "finish",
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
            Op::SendControl { .. } => "send-control",
            Op::MemRegister { .. } => "mem-register",
            Op::MemDeregister { .. } => "mem-deregister",
            Op::Put { .. } => "post-put",
            Op::Get { .. } => "post-get",
            Op::Atomic { .. } => "post-atomic",
            Op::Wake { .. } => "post-wake",
            Op::Stage { .. } => "stage",
            Op::Finish { .. } => "finish",
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
        "control",
        "mem-registered",
        "rdma-refused",
        "rdma-done",
        "interrupt",
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
            Completion::Control { .. } => "control",
            Completion::MemRegistered { .. } => "mem-registered",
            Completion::RdmaRefused { .. } => "rdma-refused",
            Completion::RdmaDone { .. } => "rdma-done",
            Completion::Interrupt => "interrupt",
        }
    }
}

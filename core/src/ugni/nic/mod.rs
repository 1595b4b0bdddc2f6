//! The GNI NIC and the laws of its library, as a machine: datagrams and the session rule,
//! mailboxes, credit returns, queues that overrun.
//!
//! Facts are those of the public GNI API and of what users of the device saw. Where the library
//! does not say what it does, a tunable of [`Config`] decides, and its meaning starts with
//! "Model choice". [`Fault`] lists the ways in which it can be told to misbehave.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::encode::encode;
use crate::id::{EpId, ProcName};
use crate::machine::{Fault as Guilt, Machine, Named, Reason, Verdict, Violation, ensure};
use crate::nic::{Address, Nic as Emulated, NicEffect, NicEvent};
use crate::pending::Slab;
use crate::sink::Sink;
use crate::time::{Span, Time};

use super::{Completion, Content, MboxId, Op, RecordBytes};

mod datagram;
mod mailbox;

use datagram::{Done, Pending, Sessions};
use mailbox::{Endpoint, Mailbox, Unread};

crate::tunables! {
    /// How the device behaves where its library does not say.
    pub struct Config {
        credit_batch: Count = 8, 1 => 8_192, "Model choice: slots a receiver frees before it returns their credits; at most half a mailbox counts.";
        credit_event: Flag = 0, 0 => 1, "Model choice: a credit return also raises an event at the sender, with no message behind it.";
        datagram_delay: Time = 0, 0 => 9_000_000_000_000_000_000, "Model choice: from a match until its completion can be seen.";
        early_by: Time = 2_000_000, 0 => 9_000_000_000_000_000_000, "How far an early event runs ahead of its message.";
        announce_again: Flag = 1, 0 => 1, "Model choice: a message whose event came early raises another when it is there.";
        hold_for: Time = 1_000_000_000, 0 => 9_000_000_000_000_000_000, "How long a held completion or credit return is held, and a deaf wildcard is deaf.";
        datagram_retries: Count = 10, 0 => 250, "Retransmissions of a datagram before it ends in error.";
        stubborn_retries: Count = 250, 0 => 250, "Retransmissions of what nothing else makes good: answers to datagrams, and credit returns.";
        slabs: Count = 65_536, 0 => 1_048_576, "Memory domain descriptors left for mailbox slabs.";
    }
}

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal,)*) => {
        /// A way to misbehave. Most wait for the next op or packet that they bear on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
}

/// What the NIC puts on the wire.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packet {
    /// One step of the datagram exchange; in order between two NICs.
    Datagram {
        /// Its place in the order.
        seq: u32,
        /// No place before this one is waited for any more.
        floor: u32,
        /// How often it was sent before.
        tries: u8,
        /// Which directed datagram it is about.
        serial: u32,
        /// What it says of it.
        body: Exchange,
    },
    /// A message on its way into a mailbox.
    Smsg {
        /// The mailbox, by address: the device asks no further.
        mbox: MboxId,
        /// Event data: the receiver's endpoint.
        index: u32,
        /// The sender's endpoint.
        ep: EpId,
        /// Its slot.
        seq: u32,
        /// What.
        content: Content,
        /// Payload bytes.
        len: u32,
        /// How often it was sent before.
        tries: u8,
    },
    /// Credits on their way back.
    Credit {
        /// The endpoint that gets them.
        ep: EpId,
        /// The mailbox whose slots they are: tells a late return from one of this connection.
        mbox: MboxId,
        /// Slots freed since the connection came up.
        freed: u16,
        /// How often it was sent before.
        tries: u8,
    },
}

/// A step of the datagram exchange.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exchange {
    /// A directed datagram.
    Directed(Box<RecordBytes>),
    /// It met one here, which said this.
    Matched(Box<RecordBytes>),
    /// It is withdrawn.
    Cancel,
    /// It will not be met any more.
    Cancelled,
}

/// What is kept of a message until its fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt {
    ep: EpId,
    seq: u32,
}

/// What shall happen later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Later {
    /// A completion of a datagram is seen.
    Done(Done),
    /// A message is there.
    Message { mbox: MboxId, unread: Unread, index: u32 },
    /// A credit return goes out.
    Return(EpId),
    /// The wildcard can hear again.
    Hear,
}

/// An entry of the local queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Local {
    /// A send ended.
    Done { ep: EpId, seq: u32, delivered: bool },
    /// A credit return ended: takes an entry, and its host never sees it.
    Hidden,
}

/// A GNI NIC as one proc sees it. Laid out by hand, like the module: what its host polls and what
/// a message touches comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Nic {
    local: VecDeque<Local>,
    remote: VecDeque<u32>,
    done: VecDeque<Done>,
    credits: VecDeque<EpId>,
    later: Vec<(Time, Later)>,
    /// Entries of `local` that are credit returns.
    hidden: u32,
    local_overrun: bool,
    remote_overrun: bool,
    deaf: bool,
    armed: [u8; Fault::ALL.len()],
    endpoints: Vec<Endpoint>,
    mailboxes: Vec<Mailbox>,
    unread: Slab<Unread>,
    config: Arc<Config>,
    library: Arc<super::Config>,
    me: Address,
    slabs: u32,
    returns: VecDeque<EpId>,
    sessions: Sessions,
    pending: VecDeque<Pending>,
    wildcard: Option<Box<RecordBytes>>,
    held: Vec<(Address, Packet)>,
}

type Fx = NicEffect<Completion, Packet>;

impl Nic {
    /// A NIC at `me`, opened by a module with the configuration `library`.
    #[must_use]
    pub fn new(
        me: Address,
        config: impl Into<Arc<Config>>,
        library: impl Into<Arc<super::Config>>,
    ) -> Nic {
        let (config, library) = (config.into(), library.into());
        Nic {
            me,
            config,
            library,
            endpoints: Vec::new(),
            mailboxes: Vec::new(),
            unread: Slab::new(),
            slabs: 0,
            sessions: Sessions::default(),
            pending: VecDeque::new(),
            wildcard: None,
            deaf: false,
            held: Vec::new(),
            done: VecDeque::new(),
            local: VecDeque::new(),
            hidden: 0,
            local_overrun: false,
            returns: VecDeque::new(),
            remote: VecDeque::new(),
            remote_overrun: false,
            credits: VecDeque::new(),
            later: Vec::new(),
            armed: [0; Fault::ALL.len()],
        }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> Address {
        self.me
    }

    /// Slots of the mailbox that `peer` writes into that hold a message, or whose credit has not
    /// gone back.
    #[must_use]
    pub fn unreturned(&self, peer: Address) -> u16 {
        let here = self.endpoints.iter().find(|endpoint| endpoint.to == Some(peer));
        here.map_or(0, |endpoint| endpoint.kept(&self.mailboxes))
    }

    /// Takes one armed `fault`, if there is one.
    fn strike(&mut self, fault: Fault) -> bool {
        let armed = &mut self.armed[fault as usize];
        let struck = *armed > 0;
        *armed -= u8::from(struck);
        struck
    }

    fn op(&mut self, now: Time, op: Op, fx: &mut impl Sink<Fx>) -> Verdict {
        match op {
            // The driver's business: it knows the modex.
            Op::Resolve { .. } => Verdict::Stale,
            Op::Register { mailboxes, .. } => {
                let full = u64::from(self.slabs) >= self.config.slabs;
                let ok = !full && !self.strike(Fault::RefuseRegister);
                if ok {
                    self.slabs += 1;
                    let total = self.mailboxes.len() + mailboxes as usize;
                    self.mailboxes.resize(total, Mailbox::default());
                }
                say(fx, Completion::Registered { ok });
                Verdict::Taken
            }
            Op::Arm { mbox } => self.arm(mbox),
            Op::Bind { ep, to } => {
                self.endpoint(ep).to = Some(to);
                Verdict::Taken
            }
            Op::PostDirected { ep, record } => self.post_directed(now, ep, record, fx),
            Op::PostWildcard { record } => self.post_wildcard(now, record, fx),
            Op::Cancel { ep } => self.cancel(ep, fx),
            Op::Init { ep, local, remote, index } => self.init(ep, local, remote, index, fx),
            Op::Send { ep, seq, epoch, content, len } => {
                self.send(ep, seq, epoch, content, len, fx)
            }
            Op::Next { ep } => self.get_next(ep, fx),
            Op::Release { ep } => self.release(now, ep, fx),
            Op::Unbind { ep } => {
                let busy = self.strike(Fault::BusyUnbind) || self.is_busy(ep);
                if busy {
                    say(fx, Completion::UnbindBusy { ep });
                } else {
                    *self.endpoint(ep) = Endpoint::default();
                    // What was on its way to the host or the peer was about this connection.
                    self.credits.retain(|&other| other != ep);
                    self.returns.retain(|&other| other != ep);
                    self.later.retain(|(_, later)| *later != Later::Return(ep));
                    say(fx, Completion::Unbound { ep });
                }
                Verdict::Taken
            }
        }
    }

    /// Whether something is outstanding on `ep`.
    fn is_busy(&mut self, ep: EpId) -> bool {
        let endpoint = *self.endpoint(ep);
        let session = endpoint.to.and_then(|to| self.sessions.get(to));
        endpoint.outstanding > 0 || session.is_some_and(|session| session.is_about(ep))
    }

    fn poll(&mut self, queue: u8, fx: &mut impl Sink<Fx>) -> Verdict {
        match queue {
            0 => self.poll_datagrams(fx),
            1 => self.poll_local(fx),
            2 => {
                if core::mem::take(&mut self.remote_overrun) {
                    say(fx, Completion::RemoteOverrun);
                } else if let Some(index) = self.remote.pop_front() {
                    say(fx, Completion::Arrival { index });
                }
                Verdict::Taken
            }
            3 => {
                if let Some(ep) = self.credits.pop_front() {
                    let n = core::mem::take(&mut self.endpoint(ep).returned);
                    if n > 0 {
                        say(fx, Completion::Credits { ep, n });
                    }
                }
                Verdict::Taken
            }
            _ => Verdict::Broken(Guilt::Owner("no such queue")),
        }
    }

    fn poll_local(&mut self, fx: &mut impl Sink<Fx>) -> Verdict {
        if core::mem::take(&mut self.local_overrun) {
            say(fx, Completion::LocalOverrun);
            return Verdict::Taken;
        }
        while let Some(entry) = self.local.pop_front() {
            match entry {
                Local::Hidden => self.hidden -= 1,
                Local::Done { ep, seq, delivered } => {
                    say(fx, Completion::SendDone { ep, seq, delivered });
                    break;
                }
            }
        }
        // What waited for entries gets them: at most one packet each, and only as many as fit.
        while fx.room() > 1 && self.may_return() {
            let Some(ep) = self.returns.pop_front() else { break };
            self.return_credits(ep, fx);
        }
        Verdict::Taken
    }

    /// An event for the host's remote queue.
    fn announce(&mut self, index: u32) {
        let full = self.remote.len() as u64 >= self.library.remote_cq;
        if full || self.strike(Fault::RemoteOverrun) {
            self.remote_overrun = true;
        } else {
            self.remote.push_back(index);
        }
    }

    /// A completion for the host's local queue.
    fn complete(&mut self, entry: Local) {
        let full = self.local.len() as u64 >= self.library.local_cq;
        if full || self.strike(Fault::LocalOverrun) {
            self.local_overrun = true;
        } else {
            self.local.push_back(entry);
        }
    }

    fn put_off(&mut self, until: Time, what: Later) {
        let at = self.later.partition_point(|&(other, _)| other <= until);
        self.later.insert(at, (until, what));
    }

    fn expired(&mut self, now: Time, fx: &mut impl Sink<Fx>) -> Verdict {
        while fx.room() > 2 {
            if self.later.first().is_none_or(|&(until, _)| until > now) {
                break;
            }
            match self.later.remove(0).1 {
                Later::Done(done) => self.done.push_back(done),
                Later::Message { mbox, unread, index } => {
                    // A second copy may have been read, or the mailbox lent anew, meanwhile.
                    if self.admit(mbox, unread.seq) == Verdict::Taken {
                        self.store(mbox, unread);
                        if self.config.announce_again == 1 {
                            self.announce(index);
                        }
                    }
                }
                Later::Return(ep) => self.return_credits(ep, fx),
                Later::Hear => {
                    self.deaf = false;
                    self.match_pending(now, fx);
                }
            }
        }
        Verdict::Taken
    }

    fn endpoint(&mut self, ep: EpId) -> &mut Endpoint {
        if self.endpoints.len() <= ep.index() {
            self.endpoints.resize(ep.index() + 1, Endpoint::default());
        }
        &mut self.endpoints[ep.index()]
    }
}

fn say(fx: &mut impl Sink<Fx>, completion: Completion) {
    fx.push(NicEffect::Completion(completion));
}

impl Machine for Nic {
    type Event = NicEvent<Op, Packet, Receipt, Fault>;
    type Effect = NicEffect<Completion, Packet>;
    const EFFECTS_MAX: usize = 8;

    fn step(&mut self, now: Time, event: Self::Event, fx: &mut impl Sink<Self::Effect>) -> Verdict {
        match event {
            NicEvent::Op(op) => self.op(now, op, fx),
            NicEvent::Packet { from, packet } => match packet {
                Packet::Datagram { .. } => self.exchange(now, from, packet, fx),
                Packet::Smsg { mbox, index, seq, content, len, .. } => {
                    self.deposit(now, mbox, Unread { seq, content, len }, index)
                }
                Packet::Credit { ep, mbox, freed, .. } => self.credit(from, ep, mbox, freed),
            },
            NicEvent::Delivered { receipt: Receipt { ep, seq } } => {
                self.sent(ep, seq, true);
                Verdict::Taken
            }
            NicEvent::Rejected { receipt: Receipt { ep, seq } } => {
                self.sent(ep, seq, false);
                Verdict::Taken
            }
            NicEvent::Lost { to, packet } => self.lost(now, to, packet, fx),
            NicEvent::Down { peer } => self.down(now, peer),
            NicEvent::Poll { queue } => self.poll(queue, fx),
            NicEvent::Fault(Fault::DeafWildcard) => {
                self.deaf = true;
                self.later.retain(|(_, later)| *later != Later::Hear);
                self.put_off(now + Span(self.config.hold_for), Later::Hear);
                Verdict::Taken
            }
            NicEvent::Fault(fault) => {
                let armed = &mut self.armed[fault as usize];
                *armed = armed.saturating_add(1);
                Verdict::Taken
            }
            NicEvent::Expired => self.expired(now, fx),
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.later.first().map(|&(until, _)| until)
    }

    fn check(&self) -> Result<(), Violation> {
        ensure(
            self.local.len() as u64 <= self.library.local_cq
                && self.remote.len() as u64 <= self.library.remote_cq,
            "a queue holds no more than it has entries",
        )?;
        let listed: u32 = self.mailboxes.iter().map(Mailbox::unread).sum();
        ensure(listed == self.unread.used(), "every unread message lies in one mailbox")
    }

    fn encode(&self, out: &mut impl Sink<u8>) {
        // An entry that says nothing is as good as none: that it exists is history.
        let endpoints = self.endpoints.iter().enumerate();
        let endpoints = endpoints.filter(|(_, endpoint)| **endpoint != Endpoint::default());
        let sessions = self.sessions.begun();
        encode(&(self.me, self.slabs), out);
        encode(&(endpoints.clone().count(), sessions.len()), out);
        endpoints.for_each(|entry| encode(&entry, out));
        sessions.iter().for_each(|entry| encode(entry, out));
        for mailbox in &self.mailboxes {
            encode(mailbox, out);
            self.unread.iter(&mailbox.list).for_each(|unread| encode(unread, out));
        }
        encode(&(&self.pending, &self.wildcard, self.deaf, &self.held, &self.done), out);
        encode(&(&self.local, self.local_overrun, &self.returns), out);
        encode(&(&self.remote, self.remote_overrun, &self.credits), out);
        encode(&(&self.later, self.armed), out);
    }
}

impl Emulated for Nic {
    type Op = Op;
    type Completion = Completion;
    type Packet = Packet;
    type Receipt = Receipt;
    type Fault = Fault;
    const QUEUES: u8 = 4;
    const FAULTS: &'static [Fault] = Fault::ALL;

    #[inline]
    fn ready(&self, queue: u8) -> bool {
        match queue {
            0 => !self.done.is_empty(),
            1 => !self.local.is_empty() || self.local_overrun,
            2 => !self.remote.is_empty() || self.remote_overrun,
            3 => !self.credits.is_empty(),
            _ => false,
        }
    }

    /// Everything but the completions of own sends: credits and messages wait for nobody there.
    fn is_urgent(queue: u8) -> bool {
        queue != 1
    }

    /// Gemini moves data in transactions of 64 bytes; a request of one takes 32 phits of 24 bits
    /// on the wire, that is 96 bytes (Sandia report SAND2013-0216C). A message carries a header
    /// of 16 bytes, a datagram always its 128.
    fn wire_bytes(packet: &Packet) -> u32 {
        const TRANSACTION: u32 = 64;
        const ON_THE_WIRE: u32 = 96;
        let bytes = match packet {
            Packet::Datagram { .. } => 128,
            Packet::Smsg { len, .. } => len.saturating_add(16),
            Packet::Credit { .. } => 8,
        };
        bytes.div_ceil(TRANSACTION).saturating_mul(ON_THE_WIRE)
    }

    fn is_light(packet: &Packet) -> bool {
        match packet {
            Packet::Datagram { body: Exchange::Directed(_), .. } | Packet::Smsg { .. } => false,
            Packet::Datagram { .. } | Packet::Credit { .. } => true,
        }
    }

    fn ordered(packet: &Packet) -> bool {
        matches!(packet, Packet::Datagram { .. })
    }

    fn rest(&mut self, peer: Address, forget: bool) -> bool {
        self.rest_session(peer, forget)
    }

    fn receipt(packet: &Packet) -> Option<Receipt> {
        match packet {
            Packet::Smsg { ep, seq, .. } => Some(Receipt { ep: *ep, seq: *seq }),
            Packet::Datagram { .. } | Packet::Credit { .. } => None,
        }
    }

    fn corrupted(packet: &Packet, bit: u64) -> Option<Packet> {
        let mut packet = packet.clone();
        match &mut packet {
            Packet::Datagram {
                body: Exchange::Directed(record) | Exchange::Matched(record),
                ..
            } => {
                let bytes = &mut record.0;
                let bit = (bit % (bytes.len() as u64 * 8)) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
                Some(packet)
            }
            Packet::Datagram { .. } | Packet::Smsg { .. } | Packet::Credit { .. } => None,
        }
    }

    fn bears_on(fault: Fault, op: &Op) -> bool {
        match fault {
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
                matches!(op, Op::Send { .. })
            }
            Fault::EarlyEvent | Fault::DuplicateEvent | Fault::RemoteOverrun => {
                matches!(op, Op::Next { .. })
            }
            Fault::HoldCredits => matches!(op, Op::Release { .. }),
            Fault::BusyUnbind => matches!(op, Op::Unbind { .. }),
        }
    }

    fn lookup(op: &Op) -> Option<ProcName> {
        match op {
            Op::Resolve { peer, .. } => Some(*peer),
            Op::Register { .. }
            | Op::Arm { .. }
            | Op::Bind { .. }
            | Op::PostDirected { .. }
            | Op::PostWildcard { .. }
            | Op::Cancel { .. }
            | Op::Init { .. }
            | Op::Send { .. }
            | Op::Next { .. }
            | Op::Release { .. }
            | Op::Unbind { .. } => None,
        }
    }

    fn found(op: &Op, card: Result<Address, Reason>) -> Option<Completion> {
        match op {
            Op::Resolve { ep, .. } => Some(Completion::Resolved { ep: *ep, card }),
            Op::Register { .. }
            | Op::Arm { .. }
            | Op::Bind { .. }
            | Op::PostDirected { .. }
            | Op::PostWildcard { .. }
            | Op::Cancel { .. }
            | Op::Init { .. }
            | Op::Send { .. }
            | Op::Next { .. }
            | Op::Release { .. }
            | Op::Unbind { .. } => None,
        }
    }
}

impl Named for Packet {
    const WORDS: &'static [&'static str] =
        &["directed", "matched", "cancel", "cancelled", "smsg", "credit"];
    fn word(&self) -> &'static str {
        match self {
            Packet::Datagram { body: Exchange::Directed(_), .. } => "directed",
            Packet::Datagram { body: Exchange::Matched(_), .. } => "matched",
            Packet::Datagram { body: Exchange::Cancel, .. } => "cancel",
            Packet::Datagram { body: Exchange::Cancelled, .. } => "cancelled",
            Packet::Smsg { .. } => "smsg",
            Packet::Credit { .. } => "credit",
        }
    }
}

#[cfg(test)]
mod tests;

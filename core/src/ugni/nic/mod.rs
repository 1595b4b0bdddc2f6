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

use crate::apart::Apart;
use crate::encode::encode;
use crate::id::EpId;
use crate::machine::{Fault as Guilt, Machine, Reason, Verdict, Violation, ensure};
use crate::nic::{Address, Errand, Load, Nic as Emulated, NicEffect, NicEvent};
use crate::pending::Slab;
use crate::rma::Place;
use crate::sink::Sink;
use crate::time::{Span, Time};

use super::{Completion, Content, Control, MboxId, Op, RecordBytes};

mod datagram;
mod fault;
mod load;
mod mailbox;
mod packet;
mod remote;
mod wire;

pub use fault::Fault;
pub use packet::{ControlPacket, Exchange, Packet, Receipt};

use datagram::{Done, Pending, Sessions};
pub use load::{Framing, TRANSACTION};
use mailbox::{Endpoint, Mailbox, Unread};
use remote::Remote;

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
        transaction_retries: Count = 2, 0 => 250, "Retransmissions of a request to remote memory before it ends in a recoverable error.";
        mdds: Count = 65_536, 0 => 1_048_576, "Memory domain descriptors: each slab of mailboxes and each region takes one.";
        aries: Flag = 0, 0 => 1, "An Aries NIC: it has more atomic operations than Gemini, and gets to any place.";
    }
}

/// What shall happen later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

/// What a send carries.
enum What {
    /// A user message or a goodbye, and the bytes of its payload.
    Message(Content, u32),
    /// A message of the transport's own.
    Control(Box<Control>),
}

/// An entry of the local queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Local {
    /// A send ended.
    Done { ep: EpId, seq: u32, delivered: bool },
    /// A credit return ended: takes an entry, and its host never sees it.
    Hidden,
}

/// A GNI NIC as one proc sees it. Laid out by hand, like the module: what its host polls and what
/// a message touches comes first.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C, align(64))]
pub struct Nic {
    local: VecDeque<Local>,
    arrivals: VecDeque<u32>,
    done: VecDeque<Done>,
    credits: VecDeque<EpId>,
    later: Vec<(Time, Later)>,
    library: Arc<super::Config>,
    /// Entries of `local` that are credit returns.
    hidden: u32,
    local_overrun: bool,
    remote_overrun: bool,
    deaf: bool,
    remote: Apart<Remote>,
    armed: [u8; Fault::ALL.len()],
    endpoints: Vec<Endpoint>,
    config: Arc<Config>,
    unread: Slab<Unread>,
    mailboxes: Vec<Mailbox>,
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
            arrivals: VecDeque::new(),
            remote_overrun: false,
            credits: VecDeque::new(),
            later: Vec::new(),
            armed: [0; Fault::ALL.len()],
            remote: Apart::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> Address {
        self.me
    }

    /// What `packet` asks of the parts between two hosts.
    #[inline]
    #[must_use]
    pub fn load(config: &Config, packet: &Packet) -> Load {
        load::load(config, packet)
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
            // The driver's business: it knows the modex, and holds the memory.
            Op::Resolve { .. } | Op::Stage { .. } | Op::Finish { .. } => Verdict::Stale,
            Op::Register { mailboxes, .. } => {
                let full = self.mdds() >= self.config.mdds;
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
                self.send(ep, seq, epoch, What::Message(content, len), fx)
            }
            Op::SendControl { ep, seq, epoch, control } => {
                self.send(ep, seq, epoch, What::Control(control), fx)
            }
            Op::Next { ep } => self.get_next(ep, fx),
            Op::Release { ep } => self.release(now, ep, fx),
            Op::MemRegister { region, len } => {
                self.register(region, len, fx);
                Verdict::Taken
            }
            Op::MemDeregister { region } => self.deregister(region),
            Op::Put { .. } | Op::Get { .. } | Op::Atomic { .. } | Op::Wake { .. } => {
                self.post(&op, fx)
            }
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
                } else if let Some(index) = next(&mut self.arrivals) {
                    say(fx, Completion::Arrival { index });
                }
                Verdict::Taken
            }
            3 => {
                if let Some(ep) = next(&mut self.credits) {
                    let n = core::mem::take(&mut self.endpoint(ep).returned);
                    if n > 0 {
                        say(fx, Completion::Credits { ep, n });
                    }
                }
                Verdict::Taken
            }
            4 => {
                self.poll_rdma(fx);
                Verdict::Taken
            }
            5 => {
                self.poll_interrupts(fx);
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
        while let Some(entry) = next(&mut self.local) {
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
        let full = self.arrivals.len() as u64 >= self.library.remote_cq;
        if full || self.strike(Fault::RemoteOverrun) {
            self.remote_overrun = true;
        } else {
            self.arrivals.push_back(index);
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

/// The next of a queue. One that runs empty begins again where its buffer begins, so that it
/// does not wander through memory.
fn next<E>(queue: &mut VecDeque<E>) -> Option<E> {
    let next = queue.pop_front();
    if queue.is_empty() {
        queue.clear();
    }
    next
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
                    let content = Some(content);
                    self.deposit(now, mbox, Unread { seq, content, len }, index)
                }
                Packet::Control(packet) => self.deposit_control(now, &packet),
                Packet::Credit { ep, mbox, freed, .. } => self.credit(from, ep, mbox, freed),
                Packet::Put { .. }
                | Packet::Get { .. }
                | Packet::Atomic { .. }
                | Packet::Wake { .. }
                | Packet::Reply { .. } => self.remote_packet(from, packet, fx),
            },
            NicEvent::Modified { found } => self.modified(found, fx),
            NicEvent::Delivered { receipt: Receipt { ep, seq } } => {
                self.sent(ep, seq, true);
                Verdict::Taken
            }
            NicEvent::Rejected { receipt: Receipt { ep, seq } } => {
                self.sent(ep, seq, false);
                Verdict::Taken
            }
            NicEvent::Lost { to, packet } => self.lost(now, to, packet, fx),
            NicEvent::Down { peer } => {
                self.remote_down(peer);
                self.down(now, peer)
            }
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
                && self.arrivals.len() as u64 <= self.library.remote_cq,
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
        encode(&(&self.arrivals, self.remote_overrun, &self.credits), out);
        encode(&(&self.later, self.armed), out);
        if self.remote.is_used() {
            encode(&*self.remote, out);
        }
    }
}

impl Emulated for Nic {
    type Op = Op;
    type Completion = Completion;
    type Packet = Packet;
    type Receipt = Receipt;
    type Fault = Fault;
    const QUEUES: u8 = 6;
    const FAULTS: &'static [Fault] = Fault::ALL;

    #[inline]
    fn ready(&self, queue: u8) -> bool {
        match queue {
            0 => !self.done.is_empty(),
            1 => !self.local.is_empty() || self.local_overrun,
            2 => !self.arrivals.is_empty() || self.remote_overrun,
            3 => !self.credits.is_empty(),
            4 => self.remote.is_used() && !self.remote.done.is_empty(),
            5 => self.remote.is_used() && self.remote.interrupted,
            _ => false,
        }
    }

    /// Everything but the completions of own sends: credits and messages wait for nobody there.
    fn is_urgent(queue: u8) -> bool {
        queue != 1
    }

    /// A message alone wakes nobody: its sender raises an interrupt. Datagrams are probed for by
    /// a timer, and the queue of own operations on remote memory is watched.
    fn interrupts(queue: u8) -> bool {
        matches!(queue, 0 | 4 | 5)
    }

    fn is_light(packet: &Packet) -> bool {
        packet.is_light()
    }

    fn payload(packet: &Packet) -> Option<(Place, u32)> {
        packet.payload()
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
            Packet::Control(packet) => Some(Receipt { ep: packet.ep, seq: packet.seq }),
            Packet::Datagram { .. }
            | Packet::Credit { .. }
            | Packet::Put { .. }
            | Packet::Get { .. }
            | Packet::Atomic { .. }
            | Packet::Wake { .. }
            | Packet::Reply { .. } => None,
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
            Packet::Datagram { .. }
            | Packet::Smsg { .. }
            | Packet::Control(_)
            | Packet::Credit { .. }
            | Packet::Put { .. }
            | Packet::Get { .. }
            | Packet::Atomic { .. }
            | Packet::Wake { .. }
            | Packet::Reply { .. } => None,
        }
    }

    fn bears_on(fault: Fault, op: &Op) -> bool {
        fault.bears_on(op)
    }

    fn errand(op: &Op) -> Option<Errand> {
        match *op {
            Op::Resolve { peer, .. } => Some(Errand::Resolve(peer)),
            Op::Stage { data, into, len } => Some(Errand::Stage { data, into, len }),
            Op::Finish { at, tail } => Some(Errand::Write { at, tail }),
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
            | Op::Unbind { .. }
            | Op::SendControl { .. }
            | Op::MemRegister { .. }
            | Op::MemDeregister { .. }
            | Op::Put { .. }
            | Op::Get { .. }
            | Op::Atomic { .. }
            | Op::Wake { .. } => None,
        }
    }

    fn found(op: &Op, card: Result<Address, Reason>) -> Option<Completion> {
        if let Op::Resolve { ep, .. } = op {
            return Some(Completion::Resolved { ep: *ep, card });
        }
        None
    }
}

#[cfg(test)]
mod tests;

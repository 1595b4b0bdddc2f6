//! uGNI: connections and small messages on Cray Gemini and Aries.
//!
//! A module is one proc's share of one NIC. Its rooms:
//!
//! | room | what lives there |
//! | --- | --- |
//! | [`connect`] | one connection: records, goodbyes, breaks; the state table |
//! | [`smsg`] | its messages: credits, what is in flight, how it is answered |
//! | [`mailbox`] | the pool of mailboxes, and who may write where |
//! | [`overrun`] | which mailboxes to look at when events were lost |
//! | [`record`] | what a datagram says |
//! | [`device`] | what the module asks of the NIC, and what it hears |
//! | [`nic`] | the NIC itself, where none is left: the laws of the GNI library |
//!
//! This file is the switchboard. It owns the tables, hands each event to the machine that it is
//! for, and turns what that machine wants into ops and notices.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::deadline::Deadlines;
use crate::encode::encode;
use crate::id::{EpId, Generation, ProcName};
use crate::machine::{
    Command, Effect, Event, Fault, Hold, Machine, Notice, Phase, Reason, Transport, Verdict,
    Violation, ensure,
};
use crate::nic::Address;
use crate::pending::{List, Slab};
use crate::proc::ProcTable;
use crate::sink::{Effects, Sink};
use crate::tie::Tie;
use crate::time::{Span, Time};

pub mod config;
pub mod connect;
pub mod device;
pub mod mailbox;
pub mod nic;
pub mod overrun;
pub mod record;
pub mod smsg;

pub use config::Config;
pub use device::{Completion, Content, MboxId, Op, PostError, PostState, RecordBytes};

use connect::{Call, Link, Says};
use mailbox::Mailboxes;
use overrun::Scan;
use record::{Body, Peer, Record};
use smsg::{Fate, Frag, Kind};

/// The number of this transport in modex cards.
pub const TRANSPORT: u16 = 1;

/// Who a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its proc.
    pub name: ProcName,
    /// Where its NIC is reached.
    pub address: Address,
    /// Which life of the proc this is; 1 is the first.
    pub incarnation: u32,
}

/// A uGNI module.
///
/// Laid out by hand: what every step and every look at the deadlines touches comes first, and so
/// lies in few cache lines. In a world of a thousand modules that is a quarter of the time.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Module {
    /// Entries of the local queue that sends may still take. A goodbye may overdraw them.
    slots: i64,
    /// Messages read from all mailboxes.
    read: u64,
    touched: Option<EpId>,
    /// After the local queue overran: the next endpoint to break.
    abandoning: Option<EpId>,
    /// Copied messages not answered yet.
    copies: u32,
    wildcard: Wildcard,
    scan: Scan,
    /// Endpoints whose waiting messages may go, oldest first.
    work: VecDeque<EpId>,
    /// Messages that have to be given up, and why.
    doomed: VecDeque<Doomed>,
    deadlines: Deadlines,
    endpoints: Vec<Endpoint>,
    links: Vec<Slot>,
    frags: Slab<Frag>,
    procs: ProcTable,
    config: Arc<Config>,
    me: Identity,
    /// Endpoints to look at again, in the order of time.
    relooks: VecDeque<(Time, EpId)>,
    /// Attempts that found no mailbox, oldest first.
    starving: VecDeque<EpId>,
    free_links: Vec<u32>,
    mailboxes: Mailboxes,
    #[cfg(feature = "mutants")]
    mutant: Mutant,
}

/// A way of being wrong on purpose, to prove that the checks bite.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// None: the module as it is.
    Sound,
    /// A directed post that the device refuses is forgotten: nothing retries it.
    ForgetsRefusedPosts,
    /// A mailbox is given back when an attempt breaks, while the peer can still write into it.
    ReturnsMailboxesEarly,
}

/// What is kept of a peer for ever.
#[derive(Clone, Copy, Debug)]
struct Endpoint {
    link: Option<LinkId>,
    waiting: List,
    /// Our last attempt.
    generation: Generation,
    /// The peer's last attempt, as far as it was heard.
    heard: Generation,
    reading: Reading,
    listed: bool,
    /// The application asked for the connection.
    wanted: bool,
    /// The application knows of the connection.
    up: bool,
    /// The application wants it closed.
    closing: bool,
}

#[derive(Clone, Copy, Debug)]
struct LinkId(u32);

/// What is kept of a peer while there is a connection, or an attempt at one.
#[derive(Clone, Copy, Debug)]
struct Slot {
    link: Link,
    /// Where the peer is.
    address: Option<Address>,
    bound: bool,
    /// Where its last call came from: a peer that comes back may be elsewhere.
    caller: Option<Address>,
    /// The mailboxes, ours and theirs, once there are two.
    pair: Option<(MboxId, Peer)>,
    /// Whether the device has set them up. If it would not, reading ours takes another try.
    paired: bool,
}

/// Whether a mailbox is being read. A second event meanwhile leaves a mark, so that whoever
/// reads looks once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reading {
    No,
    Yes { found: bool },
    Again,
}

#[derive(Clone, Copy, Debug)]
struct Doomed {
    ep: EpId,
    list: List,
    /// They were in flight: nobody can know.
    flown: bool,
    phase: Phase,
    reason: Reason,
}

/// The one datagram that anybody may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wildcard {
    Posted,
    Due { at: Time },
}

/// Most effects of one step: the longest chain (a wildcard that ends one attempt, opens the
/// next and is posted again) takes eleven.
const EFFECTS_MAX: usize = 16;

impl Module {
    /// A module that has done nothing yet.
    #[must_use]
    pub fn new(me: Identity, config: impl Into<Arc<Config>>) -> Module {
        let config = config.into();
        let slots = config.local_cq.saturating_sub(config.local_cq_reserve).max(1) as i64;
        Module {
            me,
            config,
            procs: ProcTable::default(),
            endpoints: Vec::new(),
            links: Vec::new(),
            free_links: Vec::new(),
            frags: Slab::new(),
            mailboxes: Mailboxes::default(),
            deadlines: Deadlines::default(),
            work: VecDeque::new(),
            starving: VecDeque::new(),
            doomed: VecDeque::new(),
            abandoning: None,
            relooks: VecDeque::new(),
            scan: Scan::None,
            wildcard: Wildcard::Due { at: Time::ZERO },
            slots,
            copies: 0,
            read: 0,
            touched: None,
            #[cfg(feature = "mutants")]
            mutant: Mutant::Sound,
        }
    }

    /// Makes this module wrong on purpose.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn mutated(mut self, mutant: Mutant) -> Module {
        self.mutant = mutant;
        self
    }

    /// Who this is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.me
    }

    /// How many peers it knows.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.endpoints.len()
    }

    /// How far the connection with `peer` is.
    #[must_use]
    pub fn phase(&self, peer: ProcName) -> Phase {
        self.procs.find(peer).map_or(Phase::Idle, |ep| self.phase_of(ep))
    }

    /// The credits held and owed on the connection with `peer`, if it is up.
    #[must_use]
    pub fn credits(&self, peer: ProcName) -> Option<crate::credit::Credits> {
        let link = self.link(self.procs.find(peer)?)?;
        link.is_ready().then(|| link.window.credits())
    }

    // ---- commands ------------------------------------------------------------------------

    fn command(&mut self, now: Time, command: Command, fx: &mut impl Sink<Effect<Op>>) -> Verdict {
        match command {
            Command::Send { to, tag, frag, len, hold } => {
                self.send(now, to, Kind::User { id: frag, tag, hold }, len, fx);
            }
            Command::Connect { to } => self.connect(now, to, fx),
            Command::Close { to } => match self.procs.find(to) {
                Some(ep) if self.endpoints[ep.index()].link.is_some() => {
                    self.touched = Some(ep);
                    self.endpoints[ep.index()].closing = true;
                    self.nudge(now, ep, fx);
                }
                Some(_) | None => {
                    let (phase, reason) = (Phase::Idle, Reason::Closed);
                    tell(fx, Notice::Closed { peer: to, phase, reason });
                }
            },
        }
        Verdict::Taken
    }

    fn connect(&mut self, now: Time, to: ProcName, fx: &mut impl Sink<Effect<Op>>) {
        if to == self.me.name {
            return tell(fx, Notice::Connected { peer: to, generation: Generation::NONE });
        }
        let Some(ep) = self.endpoint(to) else {
            let (phase, reason) = (Phase::Idle, Reason::NoEndpoints);
            return tell(fx, Notice::Closed { peer: to, phase, reason });
        };
        self.touched = Some(ep);
        if let Some(link) = self.link(ep).filter(|link| link.is_ready()) {
            return tell(fx, Notice::Connected { peer: to, generation: link.generation });
        }
        self.endpoints[ep.index()].wanted = true;
        self.open(now, ep, fx);
    }

    fn send(
        &mut self,
        now: Time,
        to: ProcName,
        kind: Kind,
        len: u32,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let Kind::User { id, tag, hold } = kind else { return };
        let frag = Frag { kind, len, fate: Fate::Pending };
        let refuse = |phase, reason| Notice::Failed { frag: id, peer: to, phase, reason };
        if u64::from(len) > self.config.smsg_max {
            return tell(fx, refuse(self.phase(to), Reason::TooLong));
        }
        if to == self.me.name {
            tell(fx, Notice::Arrived { from: to, tag, len, data: id });
            return tell(fx, Notice::Sent { frag: id });
        }
        let Some(ep) = self.endpoint(to) else {
            return tell(fx, refuse(Phase::Idle, Reason::NoEndpoints));
        };
        self.touched = Some(ep);
        let endpoint = &self.endpoints[ep.index()];
        let reason = if endpoint.closing {
            Some(Reason::Closing)
        } else if u64::from(endpoint.waiting.len()) >= self.config.waiting_max {
            Some(Reason::QueueFull)
        } else if hold == Hold::Copied && u64::from(self.copies) >= self.config.copies_max {
            Some(Reason::NoBuffers)
        } else {
            None
        };
        if let Some(reason) = reason {
            return tell(fx, refuse(self.phase_of(ep), reason));
        }
        self.copies += u32::from(hold == Hold::Copied);
        // Straight out, if it is ready and nothing is before it.
        if self.slots > 0 && endpoint.waiting.is_empty() {
            if let Some(LinkId(at)) = endpoint.link {
                let link = &mut self.links[at as usize].link;
                if link.is_ready() && link.window.wake() == Time::NEVER {
                    if let Some(seq) = link.window.launch_now(&mut self.frags, frag) {
                        let epoch = link.window.epoch();
                        self.slots -= 1;
                        let content = Content::User { tag, data: id };
                        return fx.push(Effect::Op(Op::Send { ep, seq, epoch, content, len }));
                    }
                }
            }
        }
        self.frags.push_back(&mut self.endpoints[ep.index()].waiting, frag);
        match self.endpoints[ep.index()].link {
            None => self.open(now, ep, fx),
            Some(_) => self.look_at_waiting(now, ep),
        }
    }

    // ---- completions ---------------------------------------------------------------------

    fn completion(
        &mut self,
        now: Time,
        completion: Completion,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        match completion {
            Completion::Resolved { ep, card } => {
                let Some(slot) = self.slot_mut(ep) else { return Verdict::Stale };
                match card {
                    Ok(address) if slot.address.is_none() => {
                        slot.address = Some(address);
                        self.bind(ep, fx);
                        self.link_event(now, ep, connect::Event::Resolved, fx)
                    }
                    Ok(_) => Verdict::Stale,
                    Err(reason) => {
                        self.link_event(now, ep, connect::Event::Unresolved(reason), fx)
                    }
                }
            }
            Completion::Registered { ok } => {
                self.mailboxes.grown(ok, now, &self.config);
                Verdict::Taken
            }
            Completion::PostRefused { ep: Some(ep), why } => {
                #[cfg(feature = "mutants")]
                if self.mutant == Mutant::ForgetsRefusedPosts {
                    return Verdict::Stale;
                }
                self.link_event(now, ep, connect::Event::PostRefused(why), fx)
            }
            // Without a wildcard nobody can call, so this is never given up.
            Completion::PostRefused { ep: None, why: _ } => {
                self.wildcard = Wildcard::Due { at: now + Span(self.config.post_retry) };
                Verdict::Taken
            }
            Completion::SetupRefused { ep } => {
                if let Some(slot) = self.slot_mut(ep) {
                    slot.paired = false;
                }
                self.link_event(now, ep, connect::Event::SetupRefused, fx)
            }
            Completion::Refused { ep, seq, epoch } => self.refused(now, ep, seq, epoch),
            Completion::Message { ep, content, len } => self.message(now, ep, content, len, fx),
            Completion::Empty { ep } => self.empty(now, ep, fx),
            Completion::Unbound { ep } => {
                if let Some(slot) = self.slot_mut(ep) {
                    slot.bound = false;
                }
                self.link_event(now, ep, connect::Event::Unbound, fx)
            }
            Completion::UnbindBusy { ep } => {
                self.link_event(now, ep, connect::Event::UnbindBusy, fx)
            }
            Completion::Datagram { ep, state, from, record } => {
                self.datagram(now, ep, state, from, record, fx)
            }
            Completion::SendDone { ep, seq, delivered } => {
                self.send_done(now, ep, seq, delivered, fx)
            }
            Completion::LocalOverrun => {
                self.abandoning = Some(EpId(0));
                Verdict::Broken(Fault::Device("the local queue overran"))
            }
            Completion::Arrival { index } => self.arrival(EpId(index), fx),
            Completion::RemoteOverrun => {
                self.scan.start(self.read, &self.config);
                Verdict::Taken
            }
            Completion::Credits { ep, n } => {
                let Some(slot) = self.slot_mut(ep) else { return Verdict::Stale };
                let window = &mut slot.link.window;
                if !window.is_open() {
                    return Verdict::Stale;
                }
                if !window.credit(n) {
                    return Verdict::Broken(Fault::Peer("credits that were not owed"));
                }
                window.wake_at(Time::NEVER);
                self.look_at_waiting(now, ep);
                Verdict::Taken
            }
        }
    }

    fn datagram(
        &mut self,
        now: Time,
        ep: Option<EpId>,
        state: PostState,
        from: Address,
        bytes: Option<Box<RecordBytes>>,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        let mut verdict = match ep {
            Some(ep) => self.link_event(now, ep, connect::Event::Posted(state), fx),
            None => Verdict::Taken,
        };
        if let Some(bytes) = bytes {
            let record = Record::parse(&bytes[..], self.me.name.job);
            match record {
                Ok(record) if ep.is_none_or(|ep| self.procs.name(ep) == Some(record.who)) => {
                    verdict = self.heard(now, &record, from, fx);
                }
                Ok(_) | Err(_) => {
                    let (peer, phase) = match ep {
                        Some(ep) => (self.name(ep), self.phase_of(ep)),
                        None => (ProcName { job: self.me.name.job, rank: u32::MAX }, Phase::Idle),
                    };
                    tell(fx, Notice::Trouble { peer, phase, reason: Reason::BadRecord });
                    verdict = Verdict::Broken(Fault::Peer("a record that cannot be read"));
                }
            }
        }
        // Our own datagram to this peer goes first: then the peer can meet it.
        if ep.is_none() {
            self.post_wildcard(fx);
        }
        verdict
    }

    fn heard(
        &mut self,
        now: Time,
        record: &Record,
        from: Address,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        let says = match record.body {
            Body::Open => return Verdict::Taken,
            Body::Offer(peer) => Says::Offer(peer),
            Body::Bye { answered, from } => Says::Bye { answered, from },
        };
        if record.who == self.me.name {
            return Verdict::Broken(Fault::Peer("a record in our own name"));
        }
        let Some(ep) = self.endpoint(record.who) else {
            let (phase, reason) = (Phase::Idle, Reason::NoEndpoints);
            tell(fx, Notice::Trouble { peer: record.who, phase, reason });
            return Verdict::Taken;
        };
        let endpoint = &mut self.endpoints[ep.index()];
        match endpoint.link {
            Some(LinkId(at)) => {
                let slot = &mut self.links[at as usize];
                let reborn = record.generation.incarnation() > slot.link.heard.incarnation();
                if !reborn && slot.address.is_some_and(|known| known != from) {
                    return Verdict::Broken(Fault::Peer("a record from a strange address"));
                }
                slot.caller = Some(from);
                if !slot.bound {
                    slot.address = Some(from);
                }
            }
            // Old news wants no connection, unless it is a goodbye that wants an answer.
            None => match says {
                Says::Offer(_) if record.generation > endpoint.heard => {
                    self.attempt(now, ep, Some(from));
                }
                Says::Bye { answered: false, .. } if record.generation >= endpoint.heard => {
                    self.attempt(now, ep, Some(from));
                }
                Says::Bye { .. } => {
                    endpoint.heard = endpoint.heard.max(record.generation);
                    return Verdict::Stale;
                }
                Says::Offer(_) => return Verdict::Stale,
            },
        }
        self.bind(ep, fx);
        let call = Call {
            generation: record.generation,
            sees: record.sees,
            over: record.over,
            says,
        };
        self.link_event(now, ep, connect::Event::Heard(call), fx)
    }

    fn send_done(
        &mut self,
        now: Time,
        ep: EpId,
        seq: u32,
        delivered: bool,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        let fate = if delivered { Fate::Delivered } else { Fate::Lost };
        let Some(LinkId(at)) = self.endpoints.get(ep.index()).and_then(|e| e.link) else {
            return Verdict::Broken(Fault::Device("a completion of a send nobody made"));
        };
        if !self.links[at as usize].link.window.completed(seq, fate, &mut self.frags) {
            return Verdict::Broken(Fault::Device("a completion of a send nobody made"));
        }
        self.touched = Some(ep);
        self.slots += 1;
        let mut goodbye = false;
        while let Some((frag, sure)) = self.links[at as usize].link.window.settle(&mut self.frags) {
            match frag.kind {
                Kind::User { .. } => self.answer(ep, frag, sure, Reason::TransactionError, fx),
                Kind::Goodbye => goodbye = sure,
            }
            if fx.room() < EFFECTS_MAX / 2 {
                // The rest goes on at once: see `Machine::EFFECTS_MAX`.
                self.list(ep);
                break;
            }
        }
        let verdict = if !delivered {
            self.link_event(now, ep, connect::Event::Lost, fx)
        } else if goodbye {
            self.link_event(now, ep, connect::Event::GoodbyeDone, fx)
        } else {
            Verdict::Taken
        };
        self.nudge(now, ep, fx);
        verdict
    }

    /// Answers a message that was in flight.
    fn answer(
        &mut self,
        ep: EpId,
        frag: Frag,
        sure: bool,
        reason: Reason,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        if let Kind::User { id, hold, .. } = frag.kind {
            self.copies -= u32::from(hold == Hold::Copied);
            tell(
                fx,
                if sure {
                    Notice::Sent { frag: id }
                } else {
                    let (peer, phase) = (self.name(ep), self.phase_of(ep));
                    Notice::Unknown { frag: id, peer, phase, reason }
                },
            );
        }
    }

    fn refused(&mut self, now: Time, ep: EpId, seq: u32, epoch: u8) -> Verdict {
        let Some(endpoint) = self.endpoints.get_mut(ep.index()) else { return Verdict::Stale };
        let Some(LinkId(at)) = endpoint.link else { return Verdict::Stale };
        let window = &mut self.links[at as usize].link.window;
        let before = window.flight().len();
        if !window.refused(seq, epoch, &mut self.frags, &mut endpoint.waiting) {
            return Verdict::Stale;
        }
        self.slots += i64::from(before - window.flight().len());
        window.wake_at(now + Span(self.config.send_retry));
        self.rearm(ep);
        self.touched = Some(ep);
        Verdict::Taken
    }

    // ---- reading -------------------------------------------------------------------------

    fn arrival(&mut self, ep: EpId, fx: &mut impl Sink<Effect<Op>>) -> Verdict {
        // An index from the wire: it may name nobody, or somebody whose mailbox is not open
        // yet. The second is read when the connection comes up.
        if !self.link(ep).is_some_and(Link::is_reading) {
            return Verdict::Stale;
        }
        self.touched = Some(ep);
        self.read_mailbox(ep, fx);
        Verdict::Taken
    }

    fn read_mailbox(&mut self, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let reading = &mut self.endpoints[ep.index()].reading;
        match *reading {
            Reading::No => {
                *reading = Reading::Yes { found: false };
                fx.push(Effect::Op(Op::Next { ep }));
            }
            Reading::Yes { .. } | Reading::Again => *reading = Reading::Again,
        }
    }

    fn message(
        &mut self,
        now: Time,
        ep: EpId,
        content: Content,
        len: u32,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        let Some(endpoint) = self.endpoints.get_mut(ep.index()) else { return Verdict::Stale };
        if endpoint.reading == (Reading::Yes { found: false }) {
            endpoint.reading = Reading::Yes { found: true };
        }
        self.touched = Some(ep);
        self.read += 1;
        let from = self.name(ep);
        if let Content::User { tag, data } = content {
            tell(fx, Notice::Arrived { from, tag, len, data });
        }
        fx.push(Effect::Op(Op::Release { ep }));
        fx.push(Effect::Op(Op::Next { ep }));
        match content {
            Content::User { .. } => Verdict::Taken,
            Content::Goodbye => {
                let verdict = self.link_event(now, ep, connect::Event::GoodbyeHeard, fx);
                self.nudge(now, ep, fx);
                verdict
            }
        }
    }

    fn empty(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) -> Verdict {
        let Some(endpoint) = self.endpoints.get_mut(ep.index()) else { return Verdict::Stale };
        self.touched = Some(ep);
        match endpoint.reading {
            Reading::Again => {
                endpoint.reading = Reading::Yes { found: true };
                fx.push(Effect::Op(Op::Next { ep }));
                Verdict::Taken
            }
            Reading::Yes { found } => {
                endpoint.reading = Reading::No;
                if !found && self.config.relook_delay > 0 {
                    self.relooks.push_back((now + Span(self.config.relook_delay), ep));
                }
                // What could not be read because it could not be set up is not empty.
                let drained = |slot: &mut Slot| slot.paired && !slot.link.is_ready();
                if self.slot_mut(ep).is_some_and(drained) {
                    let _ = self.link_event(now, ep, connect::Event::Drained, fx);
                }
                Verdict::Taken
            }
            Reading::No => Verdict::Stale,
        }
    }

    // ---- connections ---------------------------------------------------------------------

    /// Hands `event` to the connection of `ep` and carries out what it wants.
    fn link_event(
        &mut self,
        now: Time,
        ep: EpId,
        event: connect::Event,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        let Some(LinkId(at)) = self.endpoints.get(ep.index()).and_then(|e| e.link) else {
            return Verdict::Stale;
        };
        self.touched = Some(ep);
        let mut wants = Wants::default();
        let verdict = self.links[at as usize].link.step(now, event, &self.config, &mut wants);
        for want in wants.0.into_iter().flatten() {
            self.carry_out(now, ep, want, fx);
        }
        self.nudge(now, ep, fx);
        verdict
    }

    fn carry_out(
        &mut self,
        now: Time,
        ep: EpId,
        want: connect::Effect,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let peer = self.name(ep);
        match want {
            connect::Effect::Resolve => fx.push(Effect::Op(Op::Resolve { ep, peer })),
            connect::Effect::TakeMailbox => match self.mailboxes.take(now) {
                Some(mbox) => {
                    fx.push(Effect::Op(Op::Arm { mbox }));
                    let _ = self.link_event(now, ep, connect::Event::Granted(mbox), fx);
                }
                None => {
                    if let Some(slab) = self.mailboxes.grow(&self.config) {
                        let mailboxes = self.config.slab_mailboxes as u32;
                        fx.push(Effect::Op(Op::Register { slab, mailboxes }));
                    }
                    // The answer is on its way, or others have to give a mailbox back first.
                    self.starving.push_back(ep);
                }
            },
            connect::Effect::Publish => {
                if let Some(link) = self.link(ep) {
                    let record = link.record(self.me.name, |mbox| self.as_peer(ep, mbox));
                    let record = Box::new(record.encode());
                    fx.push(Effect::Op(Op::PostDirected { ep, record }));
                }
            }
            connect::Effect::Cancel => fx.push(Effect::Op(Op::Cancel { ep })),
            connect::Effect::Raise { mbox, peer } => self.raise(ep, mbox, peer, fx),
            connect::Effect::Down(reason) => self.down(ep, reason, fx),
            connect::Effect::GiveUp(reason) => self.give_up(ep, reason, fx),
            connect::Effect::SayGoodbye => {
                let frag = Frag { kind: Kind::Goodbye, len: 0, fate: Fate::Pending };
                if let Some(LinkId(at)) = self.endpoints[ep.index()].link {
                    let window = &mut self.links[at as usize].link.window;
                    if let Some(seq) = window.launch_now(&mut self.frags, frag) {
                        let (epoch, content) = (window.epoch(), Content::Goodbye);
                        self.slots -= 1;
                        fx.push(Effect::Op(Op::Send { ep, seq, epoch, content, len: 0 }));
                    }
                }
            }
            connect::Effect::Drain => {
                if let Some(Slot { paired: false, pair: Some((mbox, peer)), .. }) = self.slot_mut(ep)
                {
                    let (mbox, peer) = (*mbox, *peer);
                    self.pair(ep, mbox, peer, fx);
                }
                self.read_mailbox(ep, fx);
            }
            connect::Effect::Unbind => fx.push(Effect::Op(Op::Unbind { ep })),
            connect::Effect::End { mbox, why, next } => self.end(now, ep, mbox, why, next, fx),
        }
    }

    fn raise(&mut self, ep: EpId, local: MboxId, theirs: Peer, fx: &mut impl Sink<Effect<Op>>) {
        let Some(link) = self.link(ep) else { return };
        let (peer, generation) = (self.name(ep), link.generation);
        self.pair(ep, local, theirs, fx);
        tell(fx, Notice::Connected { peer, generation });
        let endpoint = &mut self.endpoints[ep.index()];
        endpoint.wanted = false;
        endpoint.up = true;
        // What came before the connection was up raised events that nobody could place.
        self.read_mailbox(ep, fx);
        self.list(ep);
    }

    fn pair(&mut self, ep: EpId, local: MboxId, theirs: Peer, fx: &mut impl Sink<Effect<Op>>) {
        if let Some(slot) = self.slot_mut(ep) {
            slot.pair = Some((local, theirs));
            slot.paired = true;
        }
        let (remote, index) = (theirs.mbox, theirs.index);
        fx.push(Effect::Op(Op::Init { ep, local, remote, index }));
    }

    /// The connection is of no use any more: what waits for it fails.
    fn down(&mut self, ep: EpId, reason: Reason, fx: &mut impl Sink<Effect<Op>>) {
        if self.endpoints[ep.index()].up {
            self.closed(ep, reason, fx);
            self.doom_waiting(ep, reason);
            self.endpoints[ep.index()].closing = false;
            self.endpoints[ep.index()].wanted = false;
        } else {
            self.give_up(ep, reason, fx);
        }
        #[cfg(feature = "mutants")]
        if self.mutant == Mutant::ReturnsMailboxesEarly {
            if let Some(LinkId(at)) = self.endpoints[ep.index()].link {
                if let connect::State::Breaking { mbox, .. } = &mut self.links[at as usize].link.state
                {
                    if let Some(mbox) = mbox.take() {
                        self.mailboxes.give_back(mbox, Time::ZERO, &self.config);
                    }
                }
            }
        }
    }

    /// What was asked of this peer will not be: says so, if anything was.
    fn give_up(&mut self, ep: EpId, reason: Reason, fx: &mut impl Sink<Effect<Op>>) {
        let endpoint = &mut self.endpoints[ep.index()];
        let asked = endpoint.wanted || endpoint.closing || !endpoint.waiting.is_empty();
        endpoint.wanted = false;
        endpoint.closing = false;
        if asked {
            self.closed(ep, reason, fx);
            self.doom_waiting(ep, reason);
        }
    }

    fn closed(&mut self, ep: EpId, reason: Reason, fx: &mut impl Sink<Effect<Op>>) {
        self.endpoints[ep.index()].up = false;
        let (peer, phase) = (self.name(ep), self.phase_of(ep));
        tell(fx, Notice::Closed { peer, phase, reason });
    }

    fn doom_waiting(&mut self, ep: EpId, reason: Reason) {
        let phase = self.phase_of(ep);
        let list = core::mem::take(&mut self.endpoints[ep.index()].waiting);
        if !list.is_empty() {
            self.doomed.push_back(Doomed { ep, list, flown: false, phase, reason });
        }
    }

    fn end(
        &mut self,
        now: Time,
        ep: EpId,
        mbox: Option<MboxId>,
        why: Reason,
        next: Option<Peer>,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let Some(LinkId(at)) = self.endpoints[ep.index()].link else { return };
        if let Some(mbox) = mbox {
            self.mailboxes.give_back(mbox, now, &self.config);
        }
        let Slot { link, address, caller, .. } = self.links[at as usize];
        // A goodbye that was refused and never said is not for the next connection.
        let waiting = &mut self.endpoints[ep.index()].waiting;
        if self.frags.front(waiting).is_some_and(|frag| frag.kind == Kind::Goodbye) {
            self.frags.pop_front(waiting);
        }
        // An attempt that could not even begin fails what asked for it.
        match why {
            Reason::NoAddress | Reason::BadAddress | Reason::SetupRefused => {
                self.give_up(ep, why, fx);
            }
            Reason::PeerClosed if self.config.reconnect == 0 => self.doom_waiting(ep, why),
            Reason::Closed
            | Reason::PeerClosed
            | Reason::PeerDied
            | Reason::PeerRestarted
            | Reason::Unreachable
            | Reason::BadRecord
            | Reason::TransactionError
            | Reason::TooLong
            | Reason::QueueFull
            | Reason::NoBuffers
            | Reason::NoEndpoints
            | Reason::Closing
            | Reason::DeviceFailed => {}
        }
        let endpoint = &self.endpoints[ep.index()];
        let done = endpoint.closing && endpoint.waiting.is_empty() && !endpoint.wanted;
        if endpoint.up || done {
            self.closed(ep, if done { Reason::Closed } else { why }, fx);
        }
        let endpoint = &mut self.endpoints[ep.index()];
        endpoint.closing &= !done;
        endpoint.link = None;
        endpoint.heard = link.heard;
        endpoint.reading = Reading::No;
        self.free_links.push(at);
        self.deadlines.set(ep.0, None);
        if let Some(theirs) = next {
            // The peer has called: `heard` names its attempt, which is not used up yet.
            let generation = endpoint.heard;
            endpoint.heard = Generation(generation.0 - 1);
            self.attempt(now, ep, caller.or(address));
            self.bind(ep, fx);
            let (sees, over) = (Generation::NONE, link.generation);
            let call = Call { generation, sees, over, says: Says::Offer(theirs) };
            let _ = self.link_event(now, ep, connect::Event::Heard(call), fx);
        } else if endpoint.wanted || !endpoint.waiting.is_empty() {
            self.open(now, ep, fx);
        }
    }

    /// Starts an attempt of our own, unless there is one.
    fn open(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        if self.endpoints[ep.index()].link.is_none() {
            self.attempt(now, ep, None);
            fx.push(Effect::Op(Op::Resolve { ep, peer: self.name(ep) }));
        }
    }

    /// A new attempt with a peer that is at `address`, if that is known.
    fn attempt(&mut self, now: Time, ep: EpId, address: Option<Address>) {
        let tie = Tie::between(self.me.name, self.name(ep)).unwrap_or(Tie::Mine);
        let endpoint = &mut self.endpoints[ep.index()];
        let link = Link::new(endpoint.generation, endpoint.heard, tie, now, &self.config);
        endpoint.generation = link.generation;
        let slot =
            Slot { link, address, bound: false, caller: None, pair: None, paired: false };
        let at = match self.free_links.pop() {
            Some(at) => {
                self.links[at as usize] = slot;
                at
            }
            None => {
                self.links.push(slot);
                (self.links.len() - 1) as u32
            }
        };
        endpoint.link = Some(LinkId(at));
        self.rearm(ep);
    }

    fn bind(&mut self, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        if let Some(slot) = self.slot_mut(ep) {
            if let (false, Some(to)) = (slot.bound, slot.address) {
                slot.bound = true;
                fx.push(Effect::Op(Op::Bind { ep, to }));
            }
        }
    }

    /// After anything that touched `ep`: is there a step that only waited for it?
    fn nudge(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let endpoint = self.endpoints[ep.index()];
        let Some(LinkId(at)) = endpoint.link else { return };
        let link = &self.links[at as usize].link;
        let quiet = link.window.flight().is_empty();
        if link.is_settling() && quiet {
            let _ = self.link_event(now, ep, connect::Event::Settled, fx);
        } else if endpoint.closing && link.is_ready() && quiet && endpoint.waiting.is_empty() {
            let _ = self.link_event(now, ep, connect::Event::CloseAsked, fx);
        } else {
            self.look_at_waiting(now, ep);
            self.rearm(ep);
        }
    }

    /// Whether the first that waits on `ep` may go as far as the connection is concerned: all
    /// while it is ready; after that only a goodbye that was refused once.
    fn may_launch(&self, ep: EpId) -> bool {
        let Some(link) = self.link(ep) else { return false };
        let first = self.frags.front(&self.endpoints[ep.index()].waiting);
        link.window.wake() == Time::NEVER
            && match first.map(|frag| frag.kind) {
                Some(Kind::User { .. }) => link.is_ready(),
                Some(Kind::Goodbye) => matches!(link.state, connect::State::Parting { .. }),
                None => false,
            }
    }

    /// Sees to it that what waits on `ep` will go: now, or when credits come, or when it has
    /// waited for so long that the peer must be asked.
    fn look_at_waiting(&mut self, now: Time, ep: EpId) {
        let Some(LinkId(at)) = self.endpoints[ep.index()].link else { return };
        if !self.may_launch(ep) {
            return;
        }
        let link = &mut self.links[at as usize].link;
        if link.window.may_send() || !link.is_ready() {
            self.list(ep);
        } else if link.window.flight().is_empty() {
            link.window.wake_at(now + Span(self.config.stall_timeout));
            self.rearm(ep);
        }
    }

    fn rearm(&mut self, ep: EpId) {
        let deadline = self.link(ep).and_then(Link::next_deadline);
        self.deadlines.set(ep.0, deadline);
    }

    fn list(&mut self, ep: EpId) {
        let endpoint = &mut self.endpoints[ep.index()];
        if !endpoint.listed {
            endpoint.listed = true;
            self.work.push_back(ep);
        }
    }

    // ---- time and slices -----------------------------------------------------------------

    fn expired(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        // As many as there are, and no more: a span of zero must not hold everybody up.
        for _ in 0..self.deadlines.len() {
            match self.deadlines.first() {
                Some((at, key)) if at <= now && fx.room() >= EFFECTS_MAX / 2 => {
                    self.deadline(now, EpId(key), fx);
                }
                Some(_) | None => break,
            }
        }
        while let Some(&(at, ep)) = self.relooks.front() {
            if at > now || fx.room() == 0 {
                break;
            }
            self.relooks.pop_front();
            if self.link(ep).is_some_and(Link::is_reading) {
                self.read_mailbox(ep, fx);
                // One more look; if it finds nothing either, there was nothing.
                if let Reading::Yes { found } = &mut self.endpoints[ep.index()].reading {
                    *found = true;
                }
            }
        }
    }

    fn deadline(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let waiting = !self.endpoints[ep.index()].waiting.is_empty();
        let Some(slot) = self.slot_mut(ep) else { return self.deadlines.set(ep.0, None) };
        let window = &mut slot.link.window;
        if window.wake() <= now {
            window.wake_at(Time::NEVER);
            if !window.may_send() && waiting {
                let _ = self.link_event(now, ep, connect::Event::Stalled, fx);
            }
            self.nudge(now, ep, fx);
        } else {
            let _ = self.link_event(now, ep, connect::Event::Expired, fx);
        }
        self.rearm(ep);
    }

    fn post_wildcard(&mut self, fx: &mut impl Sink<Effect<Op>>) {
        let record = Record {
            who: self.me.name,
            generation: Generation::NONE,
            sees: Generation::NONE,
            over: Generation::NONE,
            body: Body::Open,
        };
        self.wildcard = Wildcard::Posted;
        fx.push(Effect::Op(Op::PostWildcard { record: Box::new(record.encode()) }));
    }

    /// Goes on with what is left, while there is room for effects.
    fn work(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        match self.wildcard {
            Wildcard::Due { at } if at <= now && fx.room() > 0 => self.post_wildcard(fx),
            Wildcard::Due { .. } | Wildcard::Posted => {}
        }
        while fx.room() > 0 && !self.doomed.is_empty() {
            self.doom(fx);
        }
        while fx.room() >= EFFECTS_MAX / 2 && self.abandoning.is_some() {
            self.abandon(now, fx);
        }
        while fx.room() >= EFFECTS_MAX / 2 {
            let Some(ep) =
                self.scan.next(self.endpoints.len() as u32, self.read, now, &self.config)
            else {
                break;
            };
            if self.link(ep).is_some_and(Link::is_reading) {
                self.read_mailbox(ep, fx);
            }
        }
        while fx.room() >= EFFECTS_MAX / 2 && self.can_feed(now) {
            let Some(ep) = self.starving.pop_front() else { break };
            self.feed(now, ep, fx);
        }
        while fx.room() >= EFFECTS_MAX / 2 && self.has_work() {
            let Some(ep) = self.work.pop_front() else { break };
            self.endpoints[ep.index()].listed = false;
            self.serve(now, ep, fx);
        }
    }

    /// Whether what is listed can go on now; if not, a completion will come that lets it.
    fn has_work(&self) -> bool {
        self.slots > 0 && !self.work.is_empty()
    }

    fn can_feed(&self, now: Time) -> bool {
        !self.starving.is_empty() && self.mailboxes.has_one(now)
    }

    fn feed(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let starved = |link: &Link| matches!(link.state, connect::State::Starved { .. });
        if self.link(ep).is_some_and(starved) {
            self.carry_out(now, ep, connect::Effect::TakeMailbox, fx);
        }
    }

    fn serve(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let Some(LinkId(at)) = self.endpoints[ep.index()].link else { return };
        while let Some((frag, sure)) = self.links[at as usize].link.window.settle(&mut self.frags) {
            self.answer(ep, frag, sure, Reason::TransactionError, fx);
            if fx.room() == 0 {
                return self.list(ep);
            }
        }
        while self.may_launch(ep) && fx.room() > 0 && self.slots > 0 {
            let window = &mut self.links[at as usize].link.window;
            let waiting = &mut self.endpoints[ep.index()].waiting;
            let Some((seq, frag)) = window.launch(&mut self.frags, waiting) else { break };
            let epoch = window.epoch();
            self.slots -= 1;
            let content = match frag.kind {
                Kind::User { id, tag, .. } => Content::User { tag, data: id },
                Kind::Goodbye => Content::Goodbye,
            };
            fx.push(Effect::Op(Op::Send { ep, seq, epoch, content, len: frag.len }));
        }
        self.nudge(now, ep, fx);
    }

    /// Answers one message that is given up.
    fn doom(&mut self, fx: &mut impl Sink<Effect<Op>>) {
        let Some(Doomed { ep, list, flown, phase, reason }) = self.doomed.front_mut() else {
            return;
        };
        let (ep, flown, phase, reason) = (*ep, *flown, *phase, *reason);
        match self.frags.pop_front(list) {
            Some(Frag { kind: Kind::User { id: frag, hold, .. }, .. }) => {
                self.copies -= u32::from(hold == Hold::Copied);
                let peer = self.name(ep);
                tell(
                    fx,
                    if flown {
                        Notice::Unknown { frag, peer, phase, reason }
                    } else {
                        Notice::Failed { frag, peer, phase, reason }
                    },
                );
            }
            Some(Frag { kind: Kind::Goodbye, .. }) => {}
            None => {
                self.doomed.pop_front();
            }
        }
    }

    /// The local queue lost completions: nothing in flight will be heard of again. Gives up
    /// what the next endpoint has in flight, and breaks its connection.
    fn abandon(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        let Some(ep) = self.abandoning else { return };
        let Some(endpoint) = self.endpoints.get(ep.index()) else {
            self.abandoning = None;
            return;
        };
        self.abandoning = Some(EpId(ep.0 + 1));
        let Some(LinkId(at)) = endpoint.link else { return };
        let link = &mut self.links[at as usize].link;
        let phase = link.phase();
        let mut list = List::EMPTY;
        while let Some(frag) = link.window.abandon(&mut self.frags) {
            self.slots += 1;
            self.frags.push_back(&mut list, frag);
        }
        if !list.is_empty() {
            let reason = Reason::DeviceFailed;
            self.doomed.push_back(Doomed { ep, list, flown: true, phase, reason });
            let _ = self.link_event(now, ep, connect::Event::Lost, fx);
        }
    }

    // ---- look-ups ------------------------------------------------------------------------

    fn endpoint(&mut self, name: ProcName) -> Option<EpId> {
        if let Some(ep) = self.procs.find(name) {
            return Some(ep);
        }
        if name == self.me.name || self.endpoints.len() as u64 >= self.config.endpoints_max {
            return None;
        }
        self.endpoints.push(Endpoint {
            link: None,
            waiting: List::EMPTY,
            generation: Generation::born(self.me.incarnation),
            heard: Generation::NONE,
            reading: Reading::No,
            listed: false,
            wanted: false,
            up: false,
            closing: false,
        });
        Some(self.procs.add(name))
    }

    fn slot_mut(&mut self, ep: EpId) -> Option<&mut Slot> {
        let LinkId(at) = self.endpoints.get(ep.index())?.link?;
        self.links.get_mut(at as usize)
    }

    fn link(&self, ep: EpId) -> Option<&Link> {
        let LinkId(at) = self.endpoints.get(ep.index())?.link?;
        self.links.get(at as usize).map(|slot| &slot.link)
    }

    fn name(&self, ep: EpId) -> ProcName {
        self.procs.name(ep).unwrap_or_default()
    }

    fn phase_of(&self, ep: EpId) -> Phase {
        self.link(ep).map_or(Phase::Idle, Link::phase)
    }

    fn as_peer(&self, ep: EpId, mbox: MboxId) -> Peer {
        let credits = self.config.smsg_credits as u16;
        Peer { mbox, index: ep.0, credits, size: self.config.smsg_max as u32 }
    }

    fn check_endpoint(&self, ep: EpId) -> Result<(), Violation> {
        let endpoint = &self.endpoints[ep.index()];
        let Some(link) = self.link(ep) else {
            return ensure(
                endpoint.waiting.is_empty() && !endpoint.wanted,
                "nobody waits on an endpoint that does nothing",
            );
        };
        link.check()?;
        let stuck = link.is_ready()
            && !endpoint.waiting.is_empty()
            && !endpoint.listed
            && link.window.wake() == Time::NEVER
            && link.window.flight().is_empty();
        ensure(!stuck, "what waits on a ready endpoint waits for something")?;
        ensure(
            link.is_ready()
                || link.is_settling()
                || link.next_deadline().is_some()
                || matches!(link.post, connect::Post::Out { .. } | connect::Post::Cancelling)
                || matches!(
                    link.state,
                    connect::State::Unbinding { .. }
                        | connect::State::Breaking { step: connect::Break::Draining, .. }
                ),
            "every state that is not settled has something that will wake it",
        )
    }
}

fn tell(fx: &mut impl Sink<Effect<Op>>, notice: Notice) {
    fx.push(Effect::Notice(notice));
}

/// What one step of a connection wants: a fixed few.
#[derive(Default)]
struct Wants([Option<connect::Effect>; connect::EFFECTS_MAX]);

impl Sink<connect::Effect> for Wants {
    fn push(&mut self, want: connect::Effect) {
        let free = self.0.iter_mut().find(|slot| slot.is_none());
        debug_assert!(free.is_some(), "a connection wanted more than its EFFECTS_MAX");
        if let Some(slot) = free {
            *slot = Some(want);
        }
    }
    fn room(&self) -> usize {
        self.0.iter().filter(|slot| slot.is_none()).count()
    }
}

impl Machine for Module {
    type Event = Event<Completion>;
    type Effect = Effect<Op>;
    const EFFECTS_MAX: usize = EFFECTS_MAX;

    fn step(
        &mut self,
        now: Time,
        event: Event<Completion>,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        self.touched = None;
        let verdict = match event {
            Event::Command(command) => self.command(now, command, fx),
            Event::Completion(completion) => self.completion(now, completion, fx),
            Event::Expired => {
                self.expired(now, fx);
                Verdict::Taken
            }
        };
        self.work(now, fx);
        verdict
    }

    fn next_deadline(&self) -> Option<Time> {
        if !self.doomed.is_empty() || self.abandoning.is_some() || self.has_work() {
            return Some(Time::ZERO);
        }
        let wildcard = match self.wildcard {
            Wildcard::Posted => None,
            Wildcard::Due { at } => Some(at),
        };
        let first = self.deadlines.first().map(|(at, _)| at);
        let relook = self.relooks.front().map(|&(at, _)| at);
        [wildcard, first, relook, self.scan.deadline()].into_iter().flatten().min()
    }

    fn check(&self) -> Result<(), Violation> {
        let mut leased = 0;
        let mut waiting = 0;
        for at in 0..self.endpoints.len() as u32 {
            let ep = EpId(at);
            self.check_endpoint(ep)?;
            waiting += self.endpoints[ep.index()].waiting.len();
            if let Some(link) = self.link(ep) {
                waiting += link.window.flight().len();
                leased += usize::from(match link.state {
                    connect::State::Exchanging { .. }
                    | connect::State::Ready { .. }
                    | connect::State::Parting { .. } => true,
                    connect::State::Breaking { mbox, .. }
                    | connect::State::Unbinding { mbox, .. } => mbox.is_some(),
                    connect::State::Resolving { .. } | connect::State::Starved { .. } => false,
                });
            }
        }
        self.mailboxes.check(leased)?;
        let doomed: u32 = self.doomed.iter().map(|doomed| doomed.list.len()).sum();
        ensure(waiting + doomed == self.frags.used(), "every message is in exactly one list")
    }

    fn encode(&self, out: &mut impl Sink<u8>) {
        encode(&(self.me, self.slots, self.copies, self.wildcard, self.scan), out);
        for (at, endpoint) in self.endpoints.iter().enumerate() {
            let ep = EpId(at as u32);
            let Endpoint { generation, heard, reading, listed, wanted, up, closing, .. } = *endpoint;
            encode(&(self.name(ep), generation, heard), out);
            encode(&(reading, listed, wanted, up, closing), out);
            self.frags.iter(&endpoint.waiting).for_each(|frag| encode(frag, out));
            out.push(0xFF);
            if let Some(LinkId(link)) = endpoint.link {
                let Slot { link, address, bound, caller, pair, paired } =
                    &self.links[link as usize];
                encode(&(link, address, bound, caller, pair, paired), out);
                self.frags.iter(link.window.flight()).for_each(|frag| encode(frag, out));
            }
            out.push(0xFF);
        }
        self.mailboxes.free().for_each(|free| encode(free, out));
        out.push(0xFE);
        self.work.iter().for_each(|ep| encode(ep, out));
        out.push(0xFE);
        self.starving.iter().for_each(|ep| encode(ep, out));
        encode(&self.abandoning, out);
        self.relooks.iter().for_each(|look| encode(look, out));
        for doomed in &self.doomed {
            encode(&(doomed.ep, doomed.flown, doomed.phase, doomed.reason), out);
            self.frags.iter(&doomed.list).for_each(|frag| encode(frag, out));
        }
    }
}

impl Transport for Module {
    type Op = Op;
    type Completion = Completion;

    fn check_touched(&self) -> Result<(), Violation> {
        self.touched.map_or(Ok(()), |ep| self.check_endpoint(ep))
    }

    fn settled(&self) -> bool {
        self.frags.used() == 0
            && self.doomed.is_empty()
            && self.endpoints.iter().enumerate().all(|(at, endpoint)| {
                !endpoint.wanted
                    && !endpoint.closing
                    && self.link(EpId(at as u32)).is_none_or(Link::is_ready)
            })
    }
}

/// The buffer that a driver of this transport reuses.
#[must_use]
pub fn effects() -> Effects<Effect<Op>> {
    Effects::new(EFFECTS_MAX)
}

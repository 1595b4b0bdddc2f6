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
//! | `sending`, `reading`, `linking`, `slices` | the switchboard at work: messages out, messages in, connections, time |
//! | [`access`], `remote`, `long` | remote memory: one operation; all of them; long messages by way of it |
//! | [`device`] | what the module asks of the NIC, and what it hears |
//! | [`nic`] | the NIC itself, where none is left: the laws of the GNI library |
//!
//! This file is the switchboard's tables: who is asked about which event. It and the four rooms
//! beside it hand each event to the machine that it is for, and turn what that machine wants into
//! ops and notices.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::apart::Apart;
use crate::deadline::Deadlines;
use crate::encode::encode;
use crate::id::{EpId, Generation, ProcName};
use crate::machine::{
    Command, Effect, Event, Fault, Machine, Notice, Phase, Reason, Transport, Verdict, Violation,
    ensure,
};
use crate::nic::Address;
use crate::pending::{List, Slab};
use crate::proc::ProcTable;
use crate::rma::{Does, Place};
use crate::sink::{Effects, Sink};
use crate::time::{Span, Time};

pub mod access;
pub mod config;
pub mod connect;
pub mod device;
mod linking;
mod long;
pub mod mailbox;
pub mod nic;
pub mod overrun;
mod reading;
pub mod record;
mod remote;
mod sending;
mod slices;
pub mod smsg;

pub use config::Config;
pub use device::{Completion, Content, Control, MboxId, Op, PostError, PostState};
pub use record::RecordBytes;

use access::{Access, Call};
use connect::Link;
use long::Long;
use mailbox::Mailboxes;
use overrun::Scan;
use record::Peer;
use remote::Remote;
use smsg::Frag;

/// The number of this transport in modex cards.
pub const TRANSPORT: u16 = 1;

/// Who a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C, align(64))]
pub struct Module {
    /// Entries of the local queue that sends may still take. A goodbye may overdraw them.
    slots: i64,
    touched: Option<EpId>,
    long: Apart<Long>,
    remote: Apart<Remote>,
    /// After the local queue overran: the next endpoint to break.
    abandoning: Option<EpId>,
    wildcard: Wildcard,
    scan: Scan,
    /// Copied messages not answered yet.
    copies: u32,
    /// Endpoints whose waiting messages may go, oldest first.
    work: VecDeque<EpId>,
    /// Messages that have to be given up, and why.
    doomed: VecDeque<Doomed>,
    /// Endpoints to look at again, in the order of time.
    relooks: VecDeque<(Time, EpId)>,
    /// Attempts that found no mailbox, oldest first.
    starving: VecDeque<EpId>,
    endpoints: Vec<Endpoint>,
    links: Vec<Slot>,
    config: Arc<Config>,
    /// Messages read from all mailboxes.
    read: u64,
    frags: Slab<Frag>,
    procs: ProcTable,
    deadlines: Deadlines,
    me: Identity,
    free_links: Vec<u32>,
    mailboxes: Mailboxes,
    #[cfg(feature = "mutants")]
    mutant: Mutant,
}

/// A way of being wrong on purpose, to prove that the checks bite.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Mutant {
    /// None: the module as it is.
    Sound,
    /// A directed post that the device refuses is forgotten: nothing retries it.
    ForgetsRefusedPosts,
    /// A mailbox is given back when an attempt breaks, while the peer can still write into it.
    ReturnsMailboxesEarly,
    /// A long message is over when it is announced: its buffer is free while the peer fetches.
    TakesOneSignalForTwo,
    /// A short message does not wait for the long one that was announced before it.
    LetsShortMessagesPass,
    /// A buffer that comes free is not offered to what is parked.
    ForgetsWhatIsParked,
    /// An atomic that may have been done is done again.
    RepeatsAtomics,
}

/// What is kept of a peer for ever. Laid out by hand: attempts are rarer than messages.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
struct Endpoint {
    link: Option<LinkId>,
    waiting: List,
    reading: Reading,
    listed: bool,
    /// The application asked for the connection.
    wanted: bool,
    /// The application knows of the connection.
    up: bool,
    /// The application wants it closed.
    closing: bool,
    /// The first message in the mailbox waits for one that was announced before it.
    held: bool,
    /// The peer has time to do what it was asked; then it is asked whether it lives.
    doubted: bool,
    /// Our last attempt.
    generation: Generation,
    /// The peer's last attempt, as far as it was heard.
    heard: Generation,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct LinkId(u32);

/// What is kept of a peer while there is a connection, or an attempt at one. Laid out by hand:
/// a message touches the first cache line, and no other.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C, align(64))]
struct Slot {
    /// Whether the device has set the mailboxes up. If it would not, reading ours takes another
    /// try.
    paired: bool,
    bound: bool,
    link: Link,
    /// Where the peer is.
    address: Option<Address>,
    /// Where its last call came from: a peer that comes back may be elsewhere.
    caller: Option<Address>,
    /// The mailboxes, ours and theirs, once there are two.
    pair: Option<(MboxId, Peer)>,
}

/// Whether a mailbox is being read. A second event meanwhile leaves a mark, so that whoever
/// reads looks once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Reading {
    No,
    Yes,
    Again,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
            long: Apart::default(),
            remote: Apart::default(),
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
        self.procs.find(peer).map_or(Phase::Idle, |ep| self.phase_of(EpId(ep)))
    }

    /// The credits held and owed on the connection with `peer`, if it is up.
    #[must_use]
    pub fn credits(&self, peer: ProcName) -> Option<crate::credit::Credits> {
        let link = self.link(EpId(self.procs.find(peer)?))?;
        link.is_ready().then(|| link.window.credits())
    }

    #[inline]
    fn command(&mut self, now: Time, command: Command, fx: &mut impl Sink<Effect<Op>>) -> Verdict {
        match command {
            Command::Send { to, tag, frag, len, hold } => {
                self.send(now, to, (frag, tag, len), hold, fx);
            }
            Command::Connect { to } => self.connect(now, to, fx),
            Command::Register { region, len } => self.register(now, region, len, fx),
            Command::Deregister { region } => self.deregister(region, fx),
            Command::Put { to, frag, local, remote, len } => {
                self.access(now, to, frag, Access::new(Call::Put, local, remote, len), fx);
            }
            Command::Get { to, frag, local, remote, len } => {
                self.access(now, to, frag, Access::new(Call::Get, local, remote, len), fx);
            }
            Command::Atomic { to, frag, amo, remote, operand, second } => {
                // The short compare and swap has no form that brings nothing back.
                let short = amo.does() == Does::CompareSwap && amo.width() == 4;
                let amo = if short { amo.fetching() } else { amo };
                let call = Call::Atomic { amo, operand, second };
                let access = Access::new(call, Place::default(), remote, amo.width());
                self.access(now, to, frag, access, fx);
            }
            Command::Close { to } => match self.procs.find(to).map(EpId) {
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

    fn completion(
        &mut self,
        now: Time,
        completion: Completion,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        match completion {
            Completion::Resolved { ep, card } => {
                let reached = self.reached(ep, card);
                let Some(slot) = self.slot_mut(ep) else { return reached };
                match card {
                    Ok(address) if slot.address.is_none() => {
                        slot.address = Some(address);
                        self.bind(ep, fx);
                        self.link_event(now, ep, connect::Event::Resolved, fx)
                    }
                    Ok(_) => reached,
                    Err(reason) => self.link_event(now, ep, connect::Event::Unresolved(reason), fx),
                }
            }
            Completion::Registered { ok } => {
                self.mailboxes.grown(ok, now, &self.config);
                if !ok
                    && !self.starving.is_empty()
                    && self.make_way(fx)
                    && let Some(slab) = self.mailboxes.grow(&self.config)
                {
                    // Memory that nobody needs has made way.
                    let mailboxes = self.config.slab_mailboxes as u32;
                    fx.push(Effect::Op(Op::Register { slab, mailboxes }));
                }
                Verdict::Taken
            }
            Completion::Control { ep, control } => self.control_message(now, ep, *control, fx),
            Completion::MemRegistered { ok } => self.mem_registered(now, ok, fx),
            Completion::RdmaRefused { id, why } => self.rdma_refused(now, id, why, fx),
            Completion::RdmaDone { id, end, found } => self.rdma_done(now, id, end, found, fx),
            // Whoever slept is awake; what there is to do is in the other queues.
            Completion::Interrupt => Verdict::Taken,
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
            Completion::Arrival { index } => self.arrival(now, EpId(index), fx),
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
                if window.wake() != Time::NEVER {
                    window.wake_at(Time::NEVER);
                    self.rearm(ep);
                }
                self.look_at_waiting(now, ep);
                Verdict::Taken
            }
        }
    }

    #[inline]
    fn endpoint(&mut self, name: ProcName) -> Option<EpId> {
        self.procs.find(name).map(EpId).or_else(|| self.meet(name))
    }

    #[cold]
    fn meet(&mut self, name: ProcName) -> Option<EpId> {
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
            held: false,
            doubted: false,
        });
        Some(EpId(self.procs.add(name)))
    }

    fn slot_mut(&mut self, ep: EpId) -> Option<&mut Slot> {
        let LinkId(at) = self.endpoints.get(ep.index())?.link?;
        self.links.get_mut(at as usize)
    }

    fn link(&self, ep: EpId) -> Option<&Link> {
        let LinkId(at) = self.endpoints.get(ep.index())?.link?;
        self.links.get(at as usize).map(|slot| &slot.link)
    }

    /// The deadline of what lies apart; out of line, since most modules have nothing there.
    #[inline(never)]
    fn deadline_apart(&self) -> Time {
        let all = [self.remote_deadline(), self.long_deadline()];
        all.into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Whether remote memory or long messages were ever used.
    #[inline]
    fn is_apart(&self) -> bool {
        self.long.is_used() || self.remote.is_used()
    }

    fn name(&self, ep: EpId) -> ProcName {
        self.procs.name(ep.0).unwrap_or_default()
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
            && link.window.flight().is_empty()
            && self.may_launch(ep);
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
        if !self.is_idle() {
            self.work(now, fx);
        }
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
        // As times and not as options: asked before and after every step.
        let mut at = [wildcard, first, relook, self.scan.deadline()]
            .map(|at| at.unwrap_or(Time::NEVER))
            .into_iter()
            .fold(Time::NEVER, Time::min);
        if self.is_apart() {
            at = at.min(self.deadline_apart());
        }
        (at != Time::NEVER).then_some(at)
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
        self.check_remote()?;
        self.check_long()?;
        let doomed: u32 = self.doomed.iter().map(|doomed| doomed.list.len()).sum();
        ensure(waiting + doomed == self.frags.used(), "every message is in exactly one list")
    }

    fn encode(&self, out: &mut impl Sink<u8>) {
        encode(&(self.me, self.slots, self.copies, self.wildcard, self.scan), out);
        for (at, endpoint) in self.endpoints.iter().enumerate() {
            let ep = EpId(at as u32);
            let Endpoint { generation, heard, reading, listed, wanted, up, closing, held, .. } =
                *endpoint;
            encode(&(self.name(ep), generation, heard), out);
            encode(&(reading, listed, wanted, up, closing, held), out);
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
        if self.is_apart() {
            encode(&*self.long, out);
            self.remote.encode(out);
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
            && self.is_long_settled()
            && self.is_remotely_settled()
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

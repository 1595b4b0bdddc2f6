//! Connections at work: records that come, and what a connection wants done.

use crate::id::{EpId, Generation, ProcName};
use crate::machine::{Effect, Fault, Notice, Phase, Reason, Verdict};
use crate::nic::Address;
use crate::sink::Sink;
use crate::tie::Tie;
use crate::time::Time;
use alloc::boxed::Box;

#[cfg(feature = "mutants")]
use super::Mutant;
use super::connect::{Call, Link, Says};
use super::record::{Body, Peer, Record};
use super::smsg::{Fate, Frag, Kind};
use super::{
    Content, LinkId, MboxId, Module, Op, PostState, Reading, RecordBytes, Slot, connect, tell,
};

impl Module {
    pub(super) fn connect(&mut self, now: Time, to: ProcName, fx: &mut impl Sink<Effect<Op>>) {
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

    pub(super) fn datagram(
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
            let record = Record::parse(&bytes.0, self.me.name.job);
            match record {
                Ok(record) if ep.is_none_or(|ep| self.procs.name(ep.0) == Some(record.who)) => {
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

    pub(super) fn heard(
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
                // What an earlier life has said may be read after a later one has called.
                if record.generation >= slot.link.heard {
                    slot.caller = Some(from);
                    if !slot.bound {
                        slot.address = Some(from);
                    }
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
        let Record { generation, sees, over, .. } = *record;
        let bound_to = self.slot_mut(ep).and_then(|slot| slot.address.filter(|_| slot.bound));
        let elsewhere = bound_to.is_some_and(|address| address != from);
        let call = Call { generation, sees, over, says, elsewhere };
        self.link_event(now, ep, connect::Event::Heard(call), fx)
    }

    /// Hands `event` to the connection of `ep` and carries out what it wants.
    pub(super) fn link_event(
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
        self.rearm(ep);
        self.nudge(now, ep, fx);
        verdict
    }

    pub(super) fn carry_out(
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
                    if self.mailboxes.may_grow(&self.config)
                        && self.has_room_for_a_slab(fx)
                        && let Some(slab) = self.mailboxes.grow(&self.config)
                    {
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
                if let Some(Slot { paired: false, pair: Some((mbox, peer)), .. }) =
                    self.slot_mut(ep)
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

    pub(super) fn raise(
        &mut self,
        ep: EpId,
        local: MboxId,
        theirs: Peer,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
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

    pub(super) fn pair(
        &mut self,
        ep: EpId,
        local: MboxId,
        theirs: Peer,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        if let Some(slot) = self.slot_mut(ep) {
            slot.pair = Some((local, theirs));
            slot.paired = true;
        }
        let (remote, index) = (theirs.mbox, theirs.index);
        fx.push(Effect::Op(Op::Init { ep, local, remote, index }));
    }

    /// The connection is of no use any more: what waits for it fails.
    pub(super) fn down(&mut self, ep: EpId, reason: Reason, fx: &mut impl Sink<Effect<Op>>) {
        self.forget_peer_requests(ep, fx);
        if self.endpoints[ep.index()].up {
            self.closed(ep, reason, fx);
            self.doom_waiting(ep, reason);
            self.endpoints[ep.index()].closing = false;
            self.endpoints[ep.index()].wanted = false;
        } else {
            self.give_up(ep, reason, fx);
        }
        #[cfg(feature = "mutants")]
        if self.mutant == Mutant::ReturnsMailboxesEarly
            && let Some(LinkId(at)) = self.endpoints[ep.index()].link
            && let connect::State::Breaking { mbox, .. } = &mut self.links[at as usize].link.state
            && let Some(mbox) = mbox.take()
        {
            self.mailboxes.give_back(mbox, Time::ZERO, &self.config);
        }
    }

    /// What was asked of this peer will not be: says so, if anything was.
    pub(super) fn give_up(&mut self, ep: EpId, reason: Reason, fx: &mut impl Sink<Effect<Op>>) {
        let endpoint = &mut self.endpoints[ep.index()];
        let asked = endpoint.wanted || endpoint.closing || !endpoint.waiting.is_empty();
        endpoint.wanted = false;
        endpoint.closing = false;
        if asked {
            self.closed(ep, reason, fx);
            self.doom_waiting(ep, reason);
        }
    }

    pub(super) fn closed(&mut self, ep: EpId, reason: Reason, fx: &mut impl Sink<Effect<Op>>) {
        self.endpoints[ep.index()].up = false;
        let (peer, phase) = (self.name(ep), self.phase_of(ep));
        tell(fx, Notice::Closed { peer, phase, reason });
    }

    pub(super) fn end(
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
        self.end_requests(ep, why);
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
            | Reason::DeviceFailed
            | Reason::NotRegistered
            | Reason::NoRegistrations
            | Reason::Misaligned
            | Reason::Unsupported
            | Reason::TooMany => {}
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
        endpoint.held = false;
        self.free_links.push(at);
        self.deadlines.set(ep.0, None);
        if let Some(theirs) = next {
            // The peer has called: `heard` names its attempt, which is not used up yet.
            let generation = endpoint.heard;
            endpoint.heard = Generation(generation.0 - 1);
            self.attempt(now, ep, caller.or(address));
            self.bind(ep, fx);
            let (sees, over) = (Generation::NONE, link.generation);
            let says = Says::Offer(theirs);
            let call = Call { generation, sees, over, says, elsewhere: false };
            let _ = self.link_event(now, ep, connect::Event::Heard(call), fx);
        } else if endpoint.wanted || !endpoint.waiting.is_empty() {
            self.open(now, ep, fx);
        }
    }

    /// Starts an attempt of our own, unless there is one.
    pub(super) fn open(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        if self.endpoints[ep.index()].link.is_none() {
            self.attempt(now, ep, None);
            fx.push(Effect::Op(Op::Resolve { ep, peer: self.name(ep) }));
        }
    }

    /// A new attempt with a peer that is at `address`, if that is known.
    pub(super) fn attempt(&mut self, now: Time, ep: EpId, address: Option<Address>) {
        let tie = Tie::between(self.me.name, self.name(ep)).unwrap_or(Tie::Mine);
        let endpoint = &mut self.endpoints[ep.index()];
        let link = Link::new(endpoint.generation, endpoint.heard, tie, now, &self.config);
        endpoint.generation = link.generation;
        let slot = Slot { link, address, bound: false, caller: None, pair: None, paired: false };
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

    pub(super) fn bind(&mut self, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        if let Some(slot) = self.slot_mut(ep)
            && let (false, Some(to)) = (slot.bound, slot.address)
        {
            slot.bound = true;
            fx.push(Effect::Op(Op::Bind { ep, to }));
        }
    }

    /// After anything that touched `ep`: is there a step that only waited for it?
    pub(super) fn nudge(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let endpoint = &self.endpoints[ep.index()];
        let Some(LinkId(at)) = endpoint.link else { return };
        let link = &self.links[at as usize].link;
        if link.is_ready() && !endpoint.closing && endpoint.waiting.is_empty() {
            return;
        }
        let quiet = link.window.flight().is_empty();
        if link.is_settling() && quiet {
            let _ = self.link_event(now, ep, connect::Event::Settled, fx);
        } else if endpoint.closing
            && link.is_ready()
            && quiet
            && endpoint.waiting.is_empty()
            && !self.has_asked(ep)
            && !self.owes(ep)
        {
            let _ = self.link_event(now, ep, connect::Event::CloseAsked, fx);
        } else {
            self.look_at_waiting(now, ep);
        }
    }

    pub(super) fn rearm(&mut self, ep: EpId) {
        let deadline = self.link(ep).and_then(Link::next_deadline);
        self.deadlines.set(ep.0, deadline);
    }
}

/// What one step of a connection wants: a fixed few.
#[derive(Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

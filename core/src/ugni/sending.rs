//! Messages on their way out: from a command to its one answer.

use crate::id::{EpId, FragId, ProcName, Tag};
use crate::machine::{Effect, Fault, Hold, Notice, Phase, Reason, Verdict};
use crate::pending::List;
use crate::sink::Sink;
use crate::time::{Span, Time};

use super::smsg::{Fate, Frag, Kind};
use super::{Content, Doomed, EFFECTS_MAX, LinkId, Module, Op, connect, tell};

impl Module {
    #[inline]
    pub(super) fn send(
        &mut self,
        now: Time,
        to: ProcName,
        (id, tag, len): (FragId, Tag, u32),
        hold: Hold,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let refuse = |phase, reason| Notice::Failed { frag: id, peer: to, phase, reason };
        let long = u64::from(len) > self.config.smsg_max;
        if long && u64::from(len) > self.config.eager_max {
            return tell(fx, refuse(self.phase(to), Reason::TooLong));
        }
        if to == self.me.name {
            tell(fx, Notice::Arrived { from: to, tag, len, data: id, at: None });
            return tell(fx, Notice::Sent { frag: id });
        }
        let Some(ep) = self.endpoint(to) else {
            return tell(fx, refuse(Phase::Idle, Reason::NoEndpoints));
        };
        self.touched = Some(ep);
        let endpoint = &self.endpoints[ep.index()];
        let copied = hold == Hold::Copied && !long;
        let reason = if endpoint.closing {
            Some(Reason::Closing)
        } else if u64::from(endpoint.waiting.len()) >= self.config.waiting_max {
            Some(Reason::QueueFull)
        } else if u64::from(self.copies + u32::from(copied)) > self.config.copies_max {
            Some(Reason::NoBuffers)
        } else {
            None
        };
        if let Some(reason) = reason {
            return tell(fx, refuse(self.phase_of(ep), reason));
        }
        if long {
            match self.announce(now, ep, (id, tag, len), hold, fx) {
                Ok(frag) => self.await_turn(now, ep, frag, fx),
                Err(reason) => tell(fx, refuse(self.phase_of(ep), reason)),
            }
            return;
        }
        self.copies += u32::from(copied);
        let frag = Frag { kind: Kind::User { id, tag, copied }, len, fate: Fate::Pending };
        // Straight out, if it is ready and nothing is before it.
        if self.slots > 0
            && endpoint.waiting.is_empty()
            && let Some(LinkId(at)) = endpoint.link
            && let link = &mut self.links[at as usize].link
            && link.is_ready()
            && link.window.wake() == Time::NEVER
            && let Some(seq) = link.window.launch_now(&mut self.frags, frag)
        {
            let epoch = link.window.epoch();
            self.slots -= 1;
            let content = Content::User { tag, data: id };
            fx.push(Effect::Op(Op::Send { ep, seq, epoch, content, len }));
            if self.config.wake_peers == 1 {
                self.wake_peer(now, ep, fx);
            }
            return;
        }
        self.frags.push_back(&mut self.endpoints[ep.index()].waiting, frag);
        match self.endpoints[ep.index()].link {
            None => self.open(now, ep, fx),
            Some(_) => self.look_at_waiting(now, ep),
        }
    }

    pub(super) fn send_done(
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
                Kind::User { .. } => self.answer(now, ep, frag, sure, Reason::TransactionError, fx),
                Kind::Goodbye => goodbye = sure,
                Kind::Control { number } => self.control_settled(now, ep, number, sure),
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
    pub(super) fn answer(
        &mut self,
        now: Time,
        ep: EpId,
        frag: Frag,
        sure: bool,
        reason: Reason,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        if let Kind::Control { number } = frag.kind {
            self.control_settled(now, ep, number, sure);
        }
        if let Kind::User { id, copied, .. } = frag.kind {
            self.copies -= u32::from(copied);
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

    pub(super) fn refused(&mut self, now: Time, ep: EpId, seq: u32, epoch: u8) -> Verdict {
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

    /// Whether the first that waits on `ep` may go as far as the connection is concerned: all
    /// while it is ready; after that only a goodbye that was refused once.
    pub(super) fn may_launch(&self, ep: EpId) -> bool {
        let Some(link) = self.link(ep) else { return false };
        let first = self.frags.front(&self.endpoints[ep.index()].waiting);
        link.window.wake() == Time::NEVER
            && match first.map(|frag| frag.kind) {
                Some(Kind::User { .. }) => link.is_ready(),
                Some(Kind::Control { number }) => link.is_ready() && self.may_go(number),
                Some(Kind::Goodbye) => matches!(link.state, connect::State::Parting { .. }),
                None => false,
            }
    }

    /// Sees to it that what waits on `ep` will go: now, or when credits come, or when it has
    /// waited for so long that the peer must be asked.
    pub(super) fn look_at_waiting(&mut self, now: Time, ep: EpId) {
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

    pub(super) fn serve(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let Some(LinkId(at)) = self.endpoints[ep.index()].link else { return };
        while let Some((frag, sure)) = self.links[at as usize].link.window.settle(&mut self.frags) {
            self.answer(now, ep, frag, sure, Reason::TransactionError, fx);
            if fx.room() == 0 {
                return self.list(ep);
            }
        }
        let before = fx.room();
        while self.may_launch(ep) && fx.room() > 2 && self.slots > 0 {
            let window = &mut self.links[at as usize].link.window;
            let waiting = &mut self.endpoints[ep.index()].waiting;
            let Some((seq, frag)) = window.launch(&mut self.frags, waiting) else { break };
            let epoch = window.epoch();
            self.slots -= 1;
            let content = match frag.kind {
                Kind::User { id, tag, .. } => Content::User { tag, data: id },
                Kind::Goodbye => Content::Goodbye,
                Kind::Control { number } => {
                    if let Some(op) = self.control_op(ep, seq, epoch, number) {
                        fx.push(Effect::Op(op));
                    }
                    continue;
                }
            };
            fx.push(Effect::Op(Op::Send { ep, seq, epoch, content, len: frag.len }));
        }
        if self.config.wake_peers == 1 && fx.room() < before {
            self.wake_peer(now, ep, fx);
        }
        self.nudge(now, ep, fx);
    }

    /// Answers one message that is given up.
    pub(super) fn doom(&mut self, fx: &mut impl Sink<Effect<Op>>) {
        let Some(Doomed { ep, list, flown, phase, reason }) = self.doomed.front_mut() else {
            return;
        };
        let (ep, flown, phase, reason) = (*ep, *flown, *phase, *reason);
        match self.frags.pop_front(list) {
            Some(Frag { kind: Kind::User { id: frag, copied, .. }, .. }) => {
                self.copies -= u32::from(copied);
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
            Some(Frag { kind: Kind::Control { number }, .. }) => {
                self.control_doomed(ep, number, flown, reason);
            }
            None => {
                self.doomed.pop_front();
            }
        }
    }

    pub(super) fn doom_waiting(&mut self, ep: EpId, reason: Reason) {
        let phase = self.phase_of(ep);
        let list = core::mem::take(&mut self.endpoints[ep.index()].waiting);
        if !list.is_empty() {
            self.doomed.push_back(Doomed { ep, list, flown: false, phase, reason });
        }
    }

    /// The local queue lost completions: nothing in flight will be heard of again. Gives up
    /// what the next endpoint has in flight, and breaks its connection.
    pub(super) fn abandon(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
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
}

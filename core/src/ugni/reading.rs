//! Messages on their way in: which mailbox to look into, and what is found there.

use crate::id::EpId;
use crate::machine::{Effect, Notice, Verdict};
use crate::sink::Sink;
use crate::time::{Span, Time};

use super::{Content, Module, Op, Reading, Slot, connect, tell};

impl Module {
    pub(super) fn arrival(
        &mut self,
        now: Time,
        ep: EpId,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        // An index from the wire: it may name nobody, or somebody whose mailbox is not open
        // yet. The second is read when the connection comes up.
        let Some(link) = self.link(ep) else { return Verdict::Stale };
        let reads = link.is_reading();
        if self.config.relook_delay > 0 {
            // Whatever this look finds: it may be another message than the one announced.
            self.relooks.push_back((now + Span(self.config.relook_delay), ep));
        }
        if !reads {
            return Verdict::Stale;
        }
        self.touched = Some(ep);
        self.read_mailbox(ep, fx);
        Verdict::Taken
    }

    pub(super) fn read_mailbox(&mut self, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let reading = &mut self.endpoints[ep.index()].reading;
        match *reading {
            Reading::No => {
                *reading = Reading::Yes;
                fx.push(Effect::Op(Op::Next { ep }));
            }
            Reading::Yes | Reading::Again => *reading = Reading::Again,
        }
    }

    pub(super) fn message(
        &mut self,
        now: Time,
        ep: EpId,
        content: Content,
        len: u32,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        if ep.index() >= self.endpoints.len() {
            return Verdict::Stale;
        }
        self.touched = Some(ep);
        if let Content::User { .. } = content
            && self.is_coming(ep)
        {
            // One that was announced before it comes first. This one stays where it is.
            self.endpoints[ep.index()].held = true;
            return Verdict::Taken;
        }
        self.read += 1;
        let from = self.name(ep);
        if let Content::User { tag, data } = content {
            tell(fx, Notice::Arrived { from, tag, len, data, at: None });
        }
        fx.push(Effect::Op(Op::Release { ep }));
        fx.push(Effect::Op(Op::Next { ep }));
        match content {
            Content::User { .. } => Verdict::Taken,
            Content::Goodbye => {
                self.goodbye_ends_requests(ep);
                let verdict = self.link_event(now, ep, connect::Event::GoodbyeHeard, fx);
                self.nudge(now, ep, fx);
                verdict
            }
        }
    }

    pub(super) fn empty(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) -> Verdict {
        let Some(endpoint) = self.endpoints.get_mut(ep.index()) else { return Verdict::Stale };
        self.touched = Some(ep);
        match endpoint.reading {
            Reading::Again => {
                endpoint.reading = Reading::Yes;
                fx.push(Effect::Op(Op::Next { ep }));
                Verdict::Taken
            }
            Reading::Yes => {
                endpoint.reading = Reading::No;
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
}

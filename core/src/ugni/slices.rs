//! Time, and work that is left over: nothing is done in one bite.

use crate::id::{EpId, Generation};
use crate::machine::Effect;
use crate::sink::Sink;
use crate::time::Time;
use alloc::boxed::Box;

use super::connect::Link;
use super::overrun::Scan;
use super::record::{Body, Record};
use super::{EFFECTS_MAX, Module, Op, Wildcard, connect};

impl Module {
    pub(super) fn expired(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        // As many as there are, and no more: a span of zero must not hold everybody up.
        for _ in 0..self.deadlines.len() {
            match self.deadlines.first() {
                Some((at, key)) if at <= now && fx.room() >= EFFECTS_MAX / 2 => {
                    self.deadline(now, EpId(key), fx);
                }
                Some(_) | None => break,
            }
        }
        if self.is_apart() {
            self.remote_expired(now, fx);
            self.long_expired(now, fx);
        }
        while let Some(&(at, ep)) = self.relooks.front() {
            if at > now || fx.room() == 0 {
                break;
            }
            self.relooks.pop_front();
            if self.link(ep).is_some_and(Link::is_reading) {
                self.read_mailbox(ep, fx);
            }
        }
    }

    pub(super) fn deadline(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
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

    pub(super) fn post_wildcard(&mut self, fx: &mut impl Sink<Effect<Op>>) {
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

    /// Whether nothing is left over, as after most steps.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.work.is_empty()
            && self.doomed.is_empty()
            && self.abandoning.is_none()
            && self.wildcard == Wildcard::Posted
            && self.scan == Scan::None
            && self.starving.is_empty()
            && (!self.is_apart() || self.is_idle_apart())
    }

    /// The same of what lies apart; out of line, since most modules have nothing there.
    #[inline(never)]
    fn is_idle_apart(&self) -> bool {
        self.is_long_idle() && self.is_remotely_idle()
    }

    /// Goes on with what is left, while there is room for effects.
    #[inline(never)]
    pub(super) fn work(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
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
        if self.is_apart() {
            self.work_on_long(now, fx);
            self.work_remotely(now, fx);
        }
    }

    pub(super) fn list(&mut self, ep: EpId) {
        let endpoint = &mut self.endpoints[ep.index()];
        if !endpoint.listed {
            endpoint.listed = true;
            self.work.push_back(ep);
        }
    }

    /// Whether what is listed can go on now; if not, a completion will come that lets it.
    pub(super) fn has_work(&self) -> bool {
        self.slots > 0 && !self.work.is_empty()
    }

    pub(super) fn can_feed(&self, now: Time) -> bool {
        !self.starving.is_empty() && self.mailboxes.has_one(now)
    }

    pub(super) fn feed(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        let starved = |link: &Link| matches!(link.state, connect::State::Starved { .. });
        if self.link(ep).is_some_and(starved) {
            self.carry_out(now, ep, connect::Effect::TakeMailbox, fx);
        }
    }
}

//! Mailboxes: memory that a peer writes into, slot after slot, and the credits for its slots.
//!
//! The device does not ask who writes: whoever knows the address of a mailbox may, also when the
//! mailbox belongs to somebody else by now. Keeping that from happening is the module's duty.

use alloc::boxed::Box;

use crate::id::EpId;
use crate::machine::{Fault as Guilt, Verdict};
use crate::nic::{Address, NicEffect};
use crate::pending::List;
use crate::sink::Sink;
use crate::time::{Span, Time};
use crate::ugni::{Completion, Content, MboxId};

use super::{ControlPacket, Fault, Fx, Later, Local, Nic, Packet, What, say};

/// A GNI endpoint. Laid out by hand: what reading a message touches comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub(super) struct Endpoint {
    /// Set up with which mailboxes.
    pub(super) smsg: Option<Smsg>,
    /// Sends whose fate is not known.
    pub(super) outstanding: u16,
    /// Credits that came back and that the host has not seen.
    pub(super) returned: u16,
    /// Slots freed since it was set up, and as many of them as the peer has been told of. Returns
    /// count from the beginning, so that one that comes twice, or late, adds nothing.
    freed: u16,
    told: u16,
    /// What the peer has told so.
    heard: u16,
    /// The epoch whose sends are all refused.
    refused: Option<u8>,
    /// Bound to whom.
    pub(super) to: Option<Address>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Smsg {
    local: MboxId,
    remote: MboxId,
    index: u32,
}

impl Endpoint {
    /// Slots of its mailbox that the peer may not use again yet.
    pub(super) fn kept(&self, mailboxes: &[Mailbox]) -> u16 {
        let unread = self.smsg.map_or(0, |smsg| mailboxes[smsg.local.0 as usize].unread());
        self.freed.wrapping_sub(self.told) + unread as u16
    }
}

/// A mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Mailbox {
    armed: bool,
    /// The slot that is read next.
    next: u32,
    /// Written and not released, by slot.
    pub(super) list: List,
}

/// The logical part; the messages are encoded by who owns the slab.
impl core::hash::Hash for Mailbox {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        (self.armed, self.next, self.list.len()).hash(state);
    }
}

impl Mailbox {
    /// Messages in it.
    pub(super) fn unread(&self) -> u32 {
        self.list.len()
    }
}

/// A message in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Unread {
    pub(super) seq: u32,
    /// `None`: one of the transport's own, which the NIC keeps beside.
    pub(super) content: Option<Content>,
    pub(super) len: u32,
}

impl Nic {
    pub(super) fn arm(&mut self, mbox: MboxId) -> Verdict {
        let Some(mailbox) = self.mailboxes.get_mut(mbox.0 as usize) else {
            return Verdict::Broken(Guilt::Owner("a mailbox that is not registered"));
        };
        while self.unread.pop_front(&mut mailbox.list).is_some() {}
        if self.remote.is_used() {
            self.remote.controls.retain(|&(other, _), _| other != mbox);
        }
        *mailbox = Mailbox { armed: true, ..Mailbox::default() };
        Verdict::Taken
    }

    pub(super) fn init(
        &mut self,
        ep: EpId,
        local: MboxId,
        remote: MboxId,
        index: u32,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        let armed = self.mailboxes.get(local.0 as usize).is_some_and(|mailbox| mailbox.armed);
        if self.endpoint(ep).to.is_none() || !armed || self.strike(Fault::RefuseSetup) {
            say(fx, Completion::SetupRefused { ep });
            return Verdict::Taken;
        }
        let endpoint = self.endpoint(ep);
        endpoint.smsg = Some(Smsg { local, remote, index });
        endpoint.refused = None;
        Verdict::Taken
    }

    pub(super) fn send(
        &mut self,
        ep: EpId,
        seq: u32,
        epoch: u8,
        what: What,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        let Endpoint { to, smsg, refused, .. } = *self.endpoint(ep);
        let (Some(to), Some(smsg)) = (to, smsg) else {
            // The set-up may have been refused a moment ago; its answer is on its way.
            say(fx, Completion::Refused { ep, seq, epoch });
            return Verdict::Taken;
        };
        // Whatever refuses it, the fault has had its send: else, of those that follow each other,
        // one more each time would stay for the next.
        let struck = self.strike(Fault::RefuseSend);
        if struck || refused == Some(epoch) {
            self.endpoint(ep).refused = Some(epoch);
            say(fx, Completion::Refused { ep, seq, epoch });
            return Verdict::Taken;
        }
        self.endpoint(ep).outstanding += 1;
        if self.strike(Fault::FailSend) {
            self.sent(ep, seq, false);
            return Verdict::Taken;
        }
        let Smsg { remote: mbox, index, .. } = smsg;
        let packet = match what {
            What::Message(content, len) => {
                Packet::Smsg { mbox, index, ep, seq, content, len, tries: 0 }
            }
            What::Control(control) => {
                let control = *control;
                Packet::Control(Box::new(ControlPacket { mbox, index, ep, seq, control, tries: 0 }))
            }
        };
        fx.push(NicEffect::Packet { to, packet });
        Verdict::Taken
    }

    /// The fate of a send is known.
    pub(super) fn sent(&mut self, ep: EpId, seq: u32, delivered: bool) {
        let endpoint = self.endpoint(ep);
        endpoint.outstanding = endpoint.outstanding.saturating_sub(1);
        self.complete(Local::Done { ep, seq, delivered });
    }

    /// A message came in.
    pub(super) fn deposit(
        &mut self,
        now: Time,
        mbox: MboxId,
        unread: Unread,
        index: u32,
    ) -> Verdict {
        let admitted = self.admit(mbox, unread.seq);
        if admitted != Verdict::Taken {
            return admitted;
        }
        if self.strike(Fault::EarlyEvent) {
            self.announce(index);
            let until = now + Span(self.config.early_by);
            self.put_off(until, Later::Message { mbox, unread, index });
            return Verdict::Taken;
        }
        if self.strike(Fault::DuplicateEvent) {
            self.announce(index);
        }
        self.store(mbox, unread);
        self.announce(index);
        Verdict::Taken
    }

    /// A message of the transport's own came in.
    pub(super) fn deposit_control(&mut self, now: Time, packet: &ControlPacket) -> Verdict {
        let &ControlPacket { mbox, index, seq, control, .. } = packet;
        if self.admit(mbox, seq) == Verdict::Taken {
            self.remote.controls.insert((mbox, seq), control);
        }
        let len = control.wire_len();
        self.deposit(now, mbox, Unread { seq, content: None, len }, index)
    }

    /// Whether slot `seq` of a mailbox can be written to now.
    pub(super) fn admit(&self, mbox: MboxId, seq: u32) -> Verdict {
        let Some(mailbox) = self.mailboxes.get(mbox.0 as usize).filter(|mailbox| mailbox.armed)
        else {
            return Verdict::Broken(Guilt::Peer("a message for memory that is not a mailbox"));
        };
        let ahead = seq.wrapping_sub(mailbox.next) as i32;
        if ahead < 0 {
            return Verdict::Stale;
        }
        if ahead as u64 >= self.library.smsg_credits {
            return Verdict::Broken(Guilt::Peer("a message beyond the end of the mailbox"));
        }
        Verdict::Taken
    }

    /// Writes a slot, over whatever was in it.
    pub(super) fn store(&mut self, mbox: MboxId, unread: Unread) {
        let Some(mailbox) = self.mailboxes.get_mut(mbox.0 as usize) else { return };
        let position = self.unread.iter(&mailbox.list).position(|other| other.seq == unread.seq);
        match position.and_then(|at| self.unread.nth_mut(&mailbox.list, at as u32)) {
            Some(slot) => *slot = unread,
            None => {
                let next = mailbox.next;
                let place = |seq: u32| seq.wrapping_sub(next);
                self.unread.insert_before(&mut mailbox.list, unread, |other| {
                    place(other.seq) > place(unread.seq)
                });
            }
        }
    }

    pub(super) fn get_next(&mut self, ep: EpId, fx: &mut impl Sink<Fx>) -> Verdict {
        let Some(smsg) = self.endpoint(ep).smsg else {
            say(fx, Completion::Empty { ep });
            return Verdict::Stale;
        };
        let mailbox = &self.mailboxes[smsg.local.0 as usize];
        match self.unread.front(&mailbox.list) {
            Some(&Unread { seq, content: Some(content), len }) if seq == mailbox.next => {
                say(fx, Completion::Message { ep, content, len });
            }
            Some(&Unread { seq, content: None, .. })
                if seq == mailbox.next
                    && let Some(control) = self.remote.controls.get(&(smsg.local, seq)) =>
            {
                say(fx, Completion::Control { ep, control: Box::new(*control) });
            }
            Some(_) | None => say(fx, Completion::Empty { ep }),
        }
        Verdict::Taken
    }

    pub(super) fn release(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Fx>) -> Verdict {
        let Some(smsg) = self.endpoint(ep).smsg else { return Verdict::Stale };
        let mailbox = &mut self.mailboxes[smsg.local.0 as usize];
        if self.unread.front(&mailbox.list).is_none_or(|front| front.seq != mailbox.next) {
            return Verdict::Broken(Guilt::Owner("a release without a message"));
        }
        if let Some(Unread { seq, content: None, .. }) = self.unread.pop_front(&mut mailbox.list) {
            self.remote.controls.remove(&(smsg.local, seq));
        }
        mailbox.next = mailbox.next.wrapping_add(1);
        let batch = self.config.credit_batch.min(self.library.smsg_credits / 2).max(1);
        let endpoint = self.endpoint(ep);
        endpoint.freed = endpoint.freed.wrapping_add(1);
        let owed = endpoint.freed.wrapping_sub(endpoint.told);
        let held = self.later.iter().any(|(_, later)| *later == Later::Return(ep));
        if u64::from(owed) < batch || held {
            return Verdict::Taken;
        }
        if self.strike(Fault::HoldCredits) {
            self.put_off(now + Span(self.config.hold_for), Later::Return(ep));
        } else {
            self.return_credits(ep, fx);
        }
        Verdict::Taken
    }

    /// Whether the local queue has an entry for a credit return: those that sends count on are
    /// not for it.
    pub(super) fn may_return(&self) -> bool {
        u64::from(self.hidden) < self.library.local_cq_reserve
            && (self.local.len() as u64) < self.library.local_cq
    }

    /// Sends the credits of `ep` back, if the local queue has an entry for that; if not, they
    /// wait until the host polls it.
    pub(super) fn return_credits(&mut self, ep: EpId, fx: &mut impl Sink<Fx>) {
        if !self.may_return() {
            if !self.returns.contains(&ep) {
                self.returns.push_back(ep);
            }
            return;
        }
        let endpoint = self.endpoint(ep);
        let (Some(to), Some(smsg)) = (endpoint.to, endpoint.smsg) else { return };
        let freed = endpoint.freed;
        if freed != endpoint.told {
            endpoint.told = freed;
            self.local.push_back(Local::Hidden);
            self.hidden += 1;
            let (ep, mbox) = (EpId(smsg.index), smsg.local);
            let packet = Packet::Credit { ep, mbox, freed, tries: 0 };
            fx.push(NicEffect::Packet { to, packet });
        }
    }

    /// Credits came back.
    pub(super) fn credit(&mut self, from: Address, ep: EpId, mbox: MboxId, freed: u16) -> Verdict {
        let known = self.endpoints.get(ep.index()).is_some_and(|endpoint| {
            endpoint.to == Some(from) && endpoint.smsg.is_some_and(|smsg| smsg.remote == mbox)
        });
        if !known {
            return Verdict::Stale;
        }
        let endpoint = self.endpoint(ep);
        let news = freed.wrapping_sub(endpoint.heard);
        if news == 0 || news > u16::MAX / 2 {
            return Verdict::Stale;
        }
        endpoint.heard = freed;
        let first = endpoint.returned == 0;
        endpoint.returned = endpoint.returned.saturating_add(news);
        if first {
            self.credits.push_back(ep);
        }
        if self.config.credit_event == 1 {
            self.announce(ep.0);
        }
        Verdict::Taken
    }

    /// A packet did not get through.
    pub(super) fn lost(
        &mut self,
        now: Time,
        to: Address,
        packet: Packet,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        match packet {
            Packet::Datagram { .. } => self.step_lost(now, to, packet, fx),
            Packet::Smsg { mbox, index, ep, seq, content, len, tries } => {
                if u64::from(tries) < self.library.smsg_retries {
                    let tries = tries + 1;
                    let packet = Packet::Smsg { mbox, index, ep, seq, content, len, tries };
                    fx.push(NicEffect::Packet { to, packet });
                } else {
                    self.sent(ep, seq, false);
                }
                Verdict::Taken
            }
            Packet::Control(mut packet) => {
                if u64::from(packet.tries) < self.library.smsg_retries {
                    packet.tries += 1;
                    fx.push(NicEffect::Packet { to, packet: Packet::Control(packet) });
                } else {
                    self.sent(packet.ep, packet.seq, false);
                }
                Verdict::Taken
            }
            Packet::Put { .. }
            | Packet::Get { .. }
            | Packet::Atomic { .. }
            | Packet::Wake { .. }
            | Packet::Reply { .. } => self.remote_lost(to, packet, fx),
            Packet::Credit { ep, mbox, freed, tries } => {
                // A lost return is a slot lost for ever.
                if u64::from(tries) < self.config.stubborn_retries {
                    let packet = Packet::Credit { ep, mbox, freed, tries: tries + 1 };
                    fx.push(NicEffect::Packet { to, packet });
                }
                Verdict::Taken
            }
        }
    }
}

//! Datagrams: who meets whom.
//!
//! A directed datagram that reaches a NIC meets, in this order, a directed one that this NIC has
//! out to its sender; the wildcard; or nobody, and waits. Two that cross on the wire meet at both
//! ends, and both ends see the same pair, because the steps between two NICs are kept in order.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::id::EpId;
use crate::machine::{Fault as Guilt, Verdict};
use crate::nic::{Address, NicEffect};
use crate::proc::Table;
use crate::sink::Sink;
use crate::time::{Span, Time};
use crate::ugni::{Completion, PostError, PostState, RecordBytes};

use super::{Exchange, Fault, Fx, Later, Nic, Packet, say};

/// Steps that may wait for one that comes before them. Each end has at most a datagram and its
/// cancellation out, and one answer to each of the other's, so more are not under way unless
/// somebody makes them up; and all that wait may become due in one step.
const AHEAD_MAX: i32 = 7;

/// The datagrams between this NIC and one other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Session {
    /// Steps sent.
    out: u32,
    /// The peer need not wait for a step before this one.
    floor: u32,
    /// The next step expected.
    expected: u32,
    /// Our directed datagram that is out.
    directed: Option<Directed>,
    /// Completions that concern this peer and that our host has not read.
    unread: u16,
    /// The peer's node is gone: nothing is repeated for it.
    gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Directed {
    ep: EpId,
    serial: u32,
    cancelled: bool,
    /// How it will end, whatever happens.
    fate: Option<PostState>,
}

/// The sessions with all peers.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Sessions {
    peers: Table<Address>,
    list: Vec<Session>,
}

impl Sessions {
    /// The one with `peer`, begun now if there was none.
    fn of(&mut self, peer: Address) -> &mut Session {
        let number = self.peers.add(peer) as usize;
        if number == self.list.len() {
            self.list.push(Session::default());
        }
        &mut self.list[number]
    }

    fn get_mut(&mut self, peer: Address) -> Option<&mut Session> {
        self.list.get_mut(self.peers.find(peer)? as usize)
    }

    pub(super) fn get(&self, peer: Address) -> Option<&Session> {
        self.list.get(self.peers.find(peer)? as usize)
    }

    /// Those in which something has happened, by peer.
    pub(super) fn begun(&self) -> Vec<(Address, Session)> {
        let all = self.peers.names().iter().copied().zip(self.list.iter().copied());
        let mut begun: Vec<_> = all.filter(|(_, it)| *it != Session::default()).collect();
        begun.sort_unstable_by_key(|&(peer, _)| peer);
        begun
    }
}

impl Session {
    pub(super) fn is_about(&self, ep: EpId) -> bool {
        self.directed.is_some_and(|directed| directed.ep == ep)
    }
}

/// A directed datagram that has met nobody here yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Pending {
    from: Address,
    serial: u32,
    record: Box<RecordBytes>,
}

/// A datagram of this NIC that ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Done {
    ep: Option<EpId>,
    state: PostState,
    from: Address,
    record: Option<Box<RecordBytes>>,
}

impl Nic {
    pub(super) fn post_directed(
        &mut self,
        now: Time,
        ep: EpId,
        record: Box<RecordBytes>,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        let refuse = |why| Completion::PostRefused { ep: Some(ep), why };
        let Some(to) = self.endpoint(ep).to else {
            say(fx, refuse(PostError::Invalid));
            return Verdict::Broken(Guilt::Owner("a post on an endpoint that is not bound"));
        };
        let session = *self.sessions.of(to);
        if session.directed.is_some() || session.unread > 0 || self.strike(Fault::RefusePostSession)
        {
            say(fx, refuse(PostError::Session));
            return Verdict::Taken;
        }
        if self.strike(Fault::RefusePostMemory) {
            say(fx, refuse(PostError::Memory));
            return Verdict::Taken;
        }
        let ends = [
            (Fault::EndTimeout, PostState::Timeout),
            (Fault::EndTerminated, PostState::Terminated),
            (Fault::EndError, PostState::Error),
        ];
        let fate = ends.into_iter().find(|&(fault, _)| self.strike(fault)).map(|(_, state)| state);
        let waiting = self.pending.iter().position(|pending| pending.from == to);
        if let Some(met) = waiting.and_then(|at| self.pending.remove(at)) {
            self.end(now, Some(ep), fate.unwrap_or(PostState::Completed), to, Some(met.record));
            self.step_out(to, met.serial, Exchange::Matched(record), fx);
        } else {
            // Its place in the order of steps is as good a name as any.
            let serial = session.out;
            let directed = Directed { ep, serial, cancelled: false, fate };
            self.sessions.of(to).directed = Some(directed);
            self.step_out(to, serial, Exchange::Directed(record), fx);
        }
        Verdict::Taken
    }

    pub(super) fn post_wildcard(
        &mut self,
        now: Time,
        record: Box<RecordBytes>,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        if self.wildcard.is_some() {
            return Verdict::Broken(Guilt::Owner("a second wildcard"));
        }
        if self.strike(Fault::RefuseWildcard) {
            say(fx, Completion::PostRefused { ep: None, why: PostError::Memory });
            return Verdict::Taken;
        }
        self.wildcard = Some(record);
        self.match_pending(now, fx);
        Verdict::Taken
    }

    /// The oldest that waits meets the wildcard.
    pub(super) fn match_pending(&mut self, now: Time, fx: &mut impl Sink<Fx>) {
        if self.deaf || self.wildcard.is_none() {
            return;
        }
        if let Some(Pending { from, serial, record }) = self.pending.pop_front() {
            self.meet_wildcard(now, from, serial, record, fx);
        }
    }

    fn meet_wildcard(
        &mut self,
        now: Time,
        from: Address,
        serial: u32,
        record: Box<RecordBytes>,
        fx: &mut impl Sink<Fx>,
    ) {
        if let Some(ours) = self.wildcard.take() {
            self.end(now, None, PostState::Completed, from, Some(record));
            self.step_out(from, serial, Exchange::Matched(ours), fx);
        }
    }

    pub(super) fn cancel(&mut self, ep: EpId, fx: &mut impl Sink<Fx>) -> Verdict {
        let Some(to) = self.endpoint(ep).to else { return Verdict::Stale };
        let Some(session) = self.sessions.get_mut(to) else { return Verdict::Stale };
        match &mut session.directed {
            // Asked again, it asks the peer again: the answer may have been given up.
            Some(directed) if directed.ep == ep => {
                directed.cancelled = true;
                let serial = directed.serial;
                self.step_out(to, serial, Exchange::Cancel, fx);
                Verdict::Taken
            }
            Some(_) | None => Verdict::Stale,
        }
    }

    /// A step of the exchange came in.
    pub(super) fn exchange(
        &mut self,
        now: Time,
        from: Address,
        packet: Packet,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        let Packet::Datagram { seq, floor, .. } = packet else { return Verdict::Stale };
        let session = self.sessions.of(from);
        session.gone = false;
        if floor.wrapping_sub(session.expected) as i32 > 0 {
            session.expected = floor;
        }
        let ahead = seq.wrapping_sub(session.expected) as i32;
        if ahead > AHEAD_MAX {
            return Verdict::Broken(Guilt::Peer("a datagram step far before its turn"));
        }
        if let (0, true) = (ahead, self.held.is_empty()) {
            // As it nearly always is: it is its turn, and nothing waits.
            self.take_step(now, from, packet, fx);
            return Verdict::Taken;
        }
        let late = ahead < 0;
        let held = self.held.iter().any(|other| turn(other) == Some((from, seq)));
        if !late && !held {
            self.held.push((from, packet));
        }
        self.catch_up(now, from, fx);
        if late { Verdict::Stale } else { Verdict::Taken }
    }

    /// Takes the step of `from` whose turn it is.
    fn take_step(&mut self, now: Time, from: Address, packet: Packet, fx: &mut impl Sink<Fx>) {
        if let Packet::Datagram { seq, serial, body, .. } = packet {
            self.sessions.of(from).expected = seq.wrapping_add(1);
            self.step_in(now, from, serial, body, fx);
        }
    }

    /// Takes the steps of `from` whose turn has come.
    fn catch_up(&mut self, now: Time, from: Address, fx: &mut impl Sink<Fx>) {
        loop {
            let expected = self.sessions.of(from).expected;
            let due = |other: &(Address, Packet)| turn(other) == Some((from, expected));
            let Some(at) = self.held.iter().position(due) else { break };
            let (_, packet) = self.held.remove(at);
            self.take_step(now, from, packet, fx);
        }
        let expected = self.sessions.of(from).expected;
        let overtaken = |(sender, seq): (Address, u32)| {
            sender == from && (seq.wrapping_sub(expected) as i32) < 0
        };
        self.held.retain(|other| !turn(other).is_some_and(overtaken));
    }

    fn step_in(
        &mut self,
        now: Time,
        from: Address,
        serial: u32,
        body: Exchange,
        fx: &mut impl Sink<Fx>,
    ) {
        let session = self.sessions.of(from);
        match body {
            Exchange::Directed(record) => match session.directed {
                // They crossed. The peer takes ours for the match of its own just as surely,
                // also when a cancellation is on its way behind it.
                Some(Directed { ep, cancelled, fate, .. }) => {
                    session.directed = None;
                    self.end(now, Some(ep), met(cancelled, fate), from, Some(record));
                }
                None => {
                    // A peer has one out at a time: what waits from it was given up.
                    self.pending.retain(|pending| pending.from != from);
                    if self.deaf || self.wildcard.is_none() {
                        self.pending.push_back(Pending { from, serial, record });
                    } else {
                        self.meet_wildcard(now, from, serial, record, fx);
                    }
                }
            },
            Exchange::Matched(record) => match session.directed {
                Some(Directed { ep, serial: ours, cancelled, fate }) if ours == serial => {
                    session.directed = None;
                    self.end(now, Some(ep), met(cancelled, fate), from, Some(record));
                }
                Some(_) | None => {}
            },
            Exchange::Cancel => {
                self.pending.retain(|pending| pending.from != from || pending.serial != serial);
                self.step_out(from, serial, Exchange::Cancelled, fx);
            }
            Exchange::Cancelled => match session.directed {
                Some(Directed { ep, serial: ours, fate, .. }) if ours == serial => {
                    session.directed = None;
                    let state = fate.unwrap_or(PostState::Terminated);
                    self.end(now, Some(ep), state, from, None);
                }
                Some(_) | None => {}
            },
        }
    }

    /// A step did not get through. It is repeated; a datagram that was repeated too often ends
    /// in error, and its cancellation takes its place, so that nothing waits for the gap.
    pub(super) fn step_lost(
        &mut self,
        now: Time,
        to: Address,
        packet: Packet,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        let Packet::Datagram { seq, tries, serial, body, .. } = packet else {
            return Verdict::Stale;
        };
        let session = self.sessions.of(to);
        let floor = session.floor;
        let asks = matches!(body, Exchange::Directed(_) | Exchange::Cancel);
        let ours = session.directed.filter(|directed| asks && directed.serial == serial);
        if session.gone {
            // It was posted after the node had died, and got lost before it could find out.
            let Some(Directed { ep, .. }) = ours else { return Verdict::Stale };
            session.directed = None;
            self.end(now, Some(ep), PostState::Timeout, to, None);
            return Verdict::Taken;
        }
        // Answers, and datagrams that met one of the peer's, are repeated more stubbornly: the
        // peer's end hangs on them.
        let (body, tries) = match ours {
            Some(_) if u64::from(tries) < self.config.datagram_retries => (body, tries + 1),
            Some(Directed { ep, fate, .. }) => {
                session.directed = None;
                self.end(now, Some(ep), fate.unwrap_or(PostState::Error), to, None);
                (Exchange::Cancel, 0)
            }
            None if u64::from(tries) < self.config.stubborn_retries => (body, tries + 1),
            None => {
                session.floor = floor.max(seq.wrapping_add(1));
                return Verdict::Taken;
            }
        };
        let packet = Packet::Datagram { seq, floor, tries, serial, body };
        fx.push(NicEffect::Packet { to, packet });
        Verdict::Taken
    }

    /// The node of `peer` is dead: what is out to it ends, what came from it is forgotten.
    pub(super) fn down(&mut self, now: Time, peer: Address) -> Verdict {
        self.pending.retain(|pending| pending.from != peer);
        self.held.retain(|(from, _)| *from != peer);
        let Some(session) = self.sessions.get_mut(peer) else { return Verdict::Stale };
        session.gone = true;
        let Some(directed) = session.directed.take() else { return Verdict::Stale };
        self.end(now, Some(directed.ep), PostState::Timeout, peer, None);
        Verdict::Taken
    }

    pub(super) fn poll_datagrams(&mut self, fx: &mut impl Sink<Fx>) -> Verdict {
        if let Some(Done { ep, state, from, record }) = self.done.pop_front() {
            let session = self.sessions.of(from);
            session.unread = session.unread.saturating_sub(1);
            say(fx, Completion::Datagram { ep, state, from, record });
        }
        Verdict::Taken
    }

    fn end(
        &mut self,
        now: Time,
        ep: Option<EpId>,
        state: PostState,
        from: Address,
        record: Option<Box<RecordBytes>>,
    ) {
        let session = self.sessions.of(from);
        session.unread = session.unread.saturating_add(1);
        let record = record.filter(|_| state == PostState::Completed);
        let done = Done { ep, state, from, record };
        let mut delay = Span(self.config.datagram_delay);
        let held = self.strike(Fault::HoldDatagram);
        if held {
            delay = delay + Span(self.config.hold_for);
        }
        if delay == Span::ZERO && !held {
            self.done.push_back(done);
        } else {
            self.put_off(now + delay, Later::Done(done));
        }
    }

    /// Starts to count the steps to and from `peer` anew, if no datagram of either is out.
    pub(super) fn rest_session(&mut self, peer: Address, forget: bool) -> bool {
        let waits = self.pending.iter().any(|pending| pending.from == peer)
            || self.held.iter().any(|(from, _)| *from == peer);
        let Some(session) = self.sessions.get_mut(peer) else { return true };
        let rests = session.directed.is_none() && !waits;
        if rests && forget {
            *session = Session { unread: session.unread, ..Session::default() };
        }
        rests
    }

    fn step_out(&mut self, to: Address, serial: u32, body: Exchange, fx: &mut impl Sink<Fx>) {
        let session = self.sessions.of(to);
        let (seq, floor) = (session.out, session.floor);
        session.out = seq.wrapping_add(1);
        let packet = Packet::Datagram { seq, floor, tries: 0, serial, body };
        fx.push(NicEffect::Packet { to, packet });
    }
}

/// Whose step it is, and when its turn is.
fn turn((from, packet): &(Address, Packet)) -> Option<(Address, u32)> {
    match packet {
        Packet::Datagram { seq, .. } => Some((*from, *seq)),
        Packet::Smsg { .. }
        | Packet::Credit { .. }
        | Packet::Control(_)
        | Packet::Put { .. }
        | Packet::Get { .. }
        | Packet::Atomic { .. }
        | Packet::Wake { .. }
        | Packet::Reply { .. } => None,
    }
}

/// How a directed datagram ends that met one of the peer's.
fn met(cancelled: bool, fate: Option<PostState>) -> PostState {
    if cancelled { PostState::Terminated } else { fate.unwrap_or(PostState::Completed) }
}

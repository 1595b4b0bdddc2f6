//! What two modules do for each other by messages of their own: long messages, which the
//! receiver fetches (an eager get), and gets that the NIC cannot do, which the peer does by a put.
//!
//! Both are a request and its answer, and both rest on two signals. A long message is over when
//! its announcement is in the peer's mailbox *and* the peer has fetched it, in whichever order
//! the two become known. Until then, or until the connection is gone for good, its bytes stay
//! where they are: the peer may be reading them.
//!
//! Order is kept on the receiver's side: what lies in the mailbox behind an announcement waits
//! there until that message has come.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::apart::Unused;
use crate::id::{EpId, FragId, RegionId, Tag};
use crate::machine::{Effect, Fault, Hold, Notice, Reason, Verdict, Violation, ensure};
use crate::rma::{OWN_REGIONS, Place, Tail, is_aligned};
use crate::sink::Sink;
use crate::time::{Span, Time};

use super::access::{Access, Call};
use super::remote::Owner;
use super::smsg::{Fate, Frag, Kind};
use super::{Control, Module, Op, tell};

/// Buffers from which peers fetch.
const OUTBOX: RegionId = RegionId(OWN_REGIONS);
/// Buffers into which messages are fetched.
const INBOX: RegionId = RegionId(OWN_REGIONS + 1);

/// Requests of peers that are taken on at a time, of either kind: whoever asks for more is told
/// no, so that no peer fills our memory.
const REQUESTS_MAX: usize = 65_536;

/// What a module keeps of messages of its own kind. Most have none, and it lies apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Long {
    outbox: Pool,
    inbox: Pool,
    /// Our requests that are not over: long messages, and gets that the peer shall do.
    asked: BTreeMap<(EpId, FragId), Request>,
    /// Requests that are over and not answered yet: done, or why not.
    over: VecDeque<(EpId, FragId, Ending)>,
    /// What messages that wait or are in flight say, by number.
    controls: BTreeMap<u32, Control>,
    next_control: u32,
    /// The peers' announcements, by endpoint and then in their order.
    coming: BTreeMap<(EpId, u32), Coming>,
    next_coming: u32,
    /// Announcements that found no buffer, oldest first.
    parked: VecDeque<(EpId, u32)>,
    /// Endpoints whose next message may be there.
    due: VecDeque<EpId>,
    /// Peers that have not done what they were asked, and when to ask whether they live.
    doubts: VecDeque<(Time, EpId)>,
    /// Puts that peers have asked for.
    giving: BTreeSet<(EpId, FragId)>,
}

/// A request of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Request {
    /// For a long message: its buffer, if it was copied.
    buffer: Option<u16>,
    /// It is a get, not a message.
    gets: bool,
    /// The first signal: it is in the peer's mailbox.
    sent: bool,
    /// The second: whether the peer has done it.
    done: Option<bool>,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Ending {
    Done,
    Never(Reason),
    Maybe(Reason),
}

/// A message that a peer has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Coming {
    tag: Tag,
    data: FragId,
    len: u32,
    from: Place,
    tail: Tail,
    step: Step,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Step {
    /// There is no buffer for it.
    Parked,
    /// Its bytes are being fetched.
    Fetching,
    /// They are there.
    There { buffer: u16 },
    /// They will not come.
    Lost,
}

/// Buffers of one length in one region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Pool {
    state: PoolState,
    /// Free ones, oldest first, with the time from which each may be used.
    free: VecDeque<(Time, u16)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum PoolState {
    /// Not registered; nobody needed it yet.
    #[default]
    None,
    /// The registration is on its way.
    Asked { tries: u8 },
    /// It was refused, and is asked for again later.
    Resting { until: Time, tries: u8 },
    /// Registered.
    There,
    /// Refused for good, until the next message that needs it.
    Refused,
}

impl Pool {
    fn take(&mut self, now: Time) -> Option<u16> {
        let &(from, buffer) = self.free.front()?;
        (from <= now).then(|| {
            self.free.pop_front();
            buffer
        })
    }

    fn give_back(&mut self, buffer: u16, from: Time) {
        let at = self.free.partition_point(|&(other, _)| other <= from);
        self.free.insert(at, (from, buffer));
    }

    fn deadline(&self) -> Option<Time> {
        match self.state {
            PoolState::Resting { until, .. } => Some(until),
            PoolState::None | PoolState::Asked { .. } | PoolState::There | PoolState::Refused => {
                None
            }
        }
    }
}

impl Unused for Long {
    const UNUSED: &'static Long = &Long {
        outbox: Pool { state: PoolState::None, free: VecDeque::new() },
        inbox: Pool { state: PoolState::None, free: VecDeque::new() },
        asked: BTreeMap::new(),
        over: VecDeque::new(),
        controls: BTreeMap::new(),
        next_control: 0,
        coming: BTreeMap::new(),
        next_coming: 0,
        parked: VecDeque::new(),
        due: VecDeque::new(),
        doubts: VecDeque::new(),
        giving: BTreeSet::new(),
    };
}

impl Long {
    const fn pool(&mut self, region: RegionId) -> &mut Pool {
        if region.0 == OUTBOX.0 { &mut self.outbox } else { &mut self.inbox }
    }

    /// Whether messages that peers shall fetch may be announced: not while it is open whether
    /// there will be buffers for them.
    const fn may_announce(&self) -> bool {
        matches!(self.outbox.state, PoolState::There | PoolState::Refused)
    }

    fn is_coming(&self, ep: EpId) -> bool {
        self.coming.range((ep, 0)..=(ep, u32::MAX)).next().is_some()
    }
}

const ALL: core::ops::RangeInclusive<FragId> = FragId(0)..=FragId(u32::MAX);

/// The keys of all requests of `ep`.
const fn of(ep: EpId) -> core::ops::RangeInclusive<(EpId, FragId)> {
    (ep, *ALL.start())..=(ep, *ALL.end())
}

impl Module {
    fn buffer(&self, region: RegionId, buffer: u16) -> Place {
        Place { region, offset: u32::from(buffer) * self.config.eager_buffer() }
    }

    /// Registers a pool, unless that was done.
    fn want_pool(&mut self, now: Time, region: RegionId, fx: &mut impl Sink<Effect<Op>>) {
        let count = self.config.eager_count();
        let pool = self.long.pool(region);
        match pool.state {
            PoolState::None => pool.free = (0..count).map(|at| (Time::ZERO, at)).collect(),
            PoolState::Refused => {}
            PoolState::Asked { .. } | PoolState::Resting { .. } | PoolState::There => return,
        }
        self.ask_for_pool(now, region, 0, fx);
    }

    fn ask_for_pool(
        &mut self,
        now: Time,
        region: RegionId,
        tries: u8,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        self.long.pool(region).state = PoolState::Asked { tries };
        let len = self.config.eager_buffer() * u32::from(self.config.eager_count());
        self.want_region(now, region, len, fx);
    }

    /// A pool was registered, or could not be.
    pub(super) fn pool_is_there(&mut self, now: Time, region: RegionId, ok: bool) {
        let (most, wait) = (self.config.connect_tries, self.config.mailbox_retry);
        let pool = self.long.pool(region);
        let PoolState::Asked { tries } = pool.state else { return };
        pool.state = if ok {
            PoolState::There
        } else if u64::from(tries) < most {
            PoolState::Resting { until: now + Span(wait), tries: tries + 1 }
        } else {
            PoolState::Refused
        };
        // Whatever it came to, those that waited for it go on: at last by failing.
        let waiting: BTreeSet<EpId> = if region == OUTBOX {
            self.long.asked.keys().map(|&(ep, _)| ep).collect()
        } else {
            self.long.parked.iter().map(|&(ep, _)| ep).collect()
        };
        self.long.due.extend(waiting);
    }

    // ---- requests ------------------------------------------------------------------------

    /// Takes a message on that does not fit the mailbox: what waits in its place, or why it
    /// cannot be taken.
    pub(super) fn announce(
        &mut self,
        now: Time,
        ep: EpId,
        (data, tag, len): (FragId, Tag, u32),
        hold: Hold,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Result<Frag, Reason> {
        let (at, tail, buffer) = match hold {
            // Fetched from where it is, if the NIC can read there.
            Hold::Registered { at, tail }
                if is_aligned(at, at, 0, 4)
                    && tail.bytes().len() as u32 == len % 4
                    && self.remote.registrations.covers(at, len) =>
            {
                self.want_pool(now, OUTBOX, fx);
                (at, tail, None)
            }
            Hold::Registered { .. } | Hold::Copied | Hold::InPlace => {
                self.want_pool(now, OUTBOX, fx);
                let buffer = self.long.outbox.take(now).ok_or(Reason::NoBuffers)?;
                let into = self.buffer(OUTBOX, buffer);
                fx.push(Effect::Op(Op::Stage { data, into, len }));
                (into, Tail::default(), Some(buffer))
            }
        };
        let request = Request { buffer, gets: false, sent: false, done: None };
        self.long.asked.insert((ep, data), request);
        Ok(self.control(Control::Fetch { tag, data, len, at, tail }))
    }

    /// A get that the NIC cannot do: the peer is asked to put.
    pub(super) fn ask_for_a_put(
        &mut self,
        now: Time,
        ep: EpId,
        frag: FragId,
        access: Access,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let Access { local: into, remote: from, len, .. } = access;
        let request = Request { buffer: None, gets: true, sent: false, done: None };
        self.long.asked.insert((ep, frag), request);
        let waiting = self.control(Control::Give { frag, from, into, len });
        self.await_turn(now, ep, waiting, fx);
    }

    /// A message of our own kind, as it waits.
    fn control(&mut self, control: Control) -> Frag {
        let number = self.long.next_control;
        self.long.next_control = number.wrapping_add(1);
        self.long.controls.insert(number, control);
        Frag { kind: Kind::Control { number }, len: control.wire_len(), fate: Fate::Pending }
    }

    /// Puts a message behind those that wait for `ep`.
    pub(super) fn await_turn(
        &mut self,
        now: Time,
        ep: EpId,
        frag: Frag,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        self.touched = Some(ep);
        self.frags.push_back(&mut self.endpoints[ep.index()].waiting, frag);
        match self.endpoints[ep.index()].link {
            None => self.open(now, ep, fx),
            Some(_) => self.look_at_waiting(now, ep),
        }
    }

    /// Whether a message of our own kind may go, as far as it goes by itself.
    pub(super) fn may_go(&self, number: u32) -> bool {
        match self.long.controls.get(&number) {
            Some(Control::Fetch { .. }) => self.long.may_announce(),
            Some(Control::Fetched { .. } | Control::Give { .. } | Control::Given { .. }) | None => {
                true
            }
        }
    }

    /// The op that sends it.
    pub(super) fn control_op(&self, ep: EpId, seq: u32, epoch: u8, number: u32) -> Option<Op> {
        let control = Box::new(*self.long.controls.get(&number)?);
        Some(Op::SendControl { ep, seq, epoch, control })
    }

    /// A message of our own kind was in flight and is settled: `sure` when it is in the peer's
    /// mailbox.
    pub(super) fn control_settled(&mut self, now: Time, ep: EpId, number: u32, sure: bool) {
        let Some(control) = self.long.controls.remove(&number) else { return };
        let (Control::Fetch { data: id, .. } | Control::Give { frag: id, .. }) = control else {
            return;
        };
        // If it may be lost, the end of the connection answers it.
        if let Some(request) = self.long.asked.get_mut(&(ep, id))
            && (sure || request.done.is_some())
        {
            request.sent = true;
            #[cfg(feature = "mutants")]
            if self.mutant == super::Mutant::TakesOneSignalForTwo {
                request.done = request.done.or(Some(true));
            }
            self.finish_request(ep, id);
            self.doubt(now, ep);
        }
    }

    /// The peer has what it was asked for, and time to do it. Nothing else may tell that it dies.
    fn doubt(&mut self, now: Time, ep: EpId) {
        let waits = self.long.asked.range(of(ep)).any(|(_, request)| request.done.is_none());
        if waits && !core::mem::replace(&mut self.endpoints[ep.index()].doubted, true) {
            self.long.doubts.push_back((now + Span(self.config.stall_timeout), ep));
        }
    }

    /// The peer has done what we asked for, or will not.
    fn answered(&mut self, ep: EpId, id: FragId, gets: bool, ok: bool) -> Verdict {
        match self.long.asked.get_mut(&(ep, id)) {
            Some(request) if request.gets == gets && request.done.is_none() => {
                request.done = Some(ok);
                self.finish_request(ep, id);
                Verdict::Taken
            }
            Some(_) | None => Verdict::Broken(Fault::Peer("an answer to what was not asked")),
        }
    }

    /// A request is over once both signals are there.
    fn finish_request(&mut self, ep: EpId, id: FragId) {
        let Some(&Request { sent: true, done: Some(ok), gets, .. }) =
            self.long.asked.get(&(ep, id))
        else {
            return;
        };
        let ending = match (ok, gets) {
            (true, _) => Ending::Done,
            (false, _) if self.link(ep).is_none_or(|link| !link.is_ready()) => {
                Ending::Never(Reason::PeerClosed)
            }
            (false, false) => Ending::Never(Reason::TransactionError),
            (false, true) => Ending::Never(Reason::NotRegistered),
        };
        self.long.over.push_back((ep, id, ending));
    }

    /// Answers a request.
    fn close_request(
        &mut self,
        now: Time,
        (ep, frag, ending): (EpId, FragId, Ending),
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        let Some(Request { buffer, gets, .. }) = self.long.asked.remove(&(ep, frag)) else {
            return;
        };
        if let Some(buffer) = buffer {
            // A peer of which nobody knows may read for a while yet.
            let rest = match ending {
                Ending::Done | Ending::Never(_) => 0,
                Ending::Maybe(_) => self.config.mailbox_rest,
            };
            self.long.outbox.give_back(buffer, now + Span(rest));
        }
        if !self.has_asked(ep) && core::mem::take(&mut self.endpoints[ep.index()].doubted) {
            self.long.doubts.retain(|&(_, other)| other != ep);
        }
        let (peer, phase) = (self.name(ep), self.phase_of(ep));
        tell(
            fx,
            match ending {
                Ending::Done if gets => Notice::Done { frag, value: 0 },
                Ending::Done => Notice::Sent { frag },
                Ending::Never(reason) => Notice::Failed { frag, peer, phase, reason },
                Ending::Maybe(reason) => Notice::Unknown { frag, peer, phase, reason },
            },
        );
        self.nudge(now, ep, fx);
    }

    /// A message of our own kind is given up before it went, or (`flown`) after; then the end of
    /// the connection answers what it asked for.
    pub(super) fn control_doomed(&mut self, ep: EpId, number: u32, flown: bool, why: Reason) {
        let Some(control) = self.long.controls.remove(&number) else { return };
        if let Control::Fetch { data: id, .. } | Control::Give { frag: id, .. } = control
            && !flown
        {
            self.long.over.push_back((ep, id, Ending::Never(why)));
        }
    }

    /// Requests of `ep` that went to the peer: those of which nothing waits here any more.
    fn flown(&self, ep: EpId) -> alloc::vec::Vec<FragId> {
        let here = self.doomed.iter().filter(|doomed| doomed.ep == ep && !doomed.flown);
        let here = here.flat_map(|doomed| self.frags.iter(&doomed.list));
        let waiting: BTreeSet<FragId> = (self.frags.iter(&self.endpoints[ep.index()].waiting))
            .chain(here)
            .filter_map(|frag| match frag.kind {
                Kind::Control { number } => match self.long.controls.get(&number)? {
                    Control::Fetch { data: id, .. } | Control::Give { frag: id, .. } => Some(*id),
                    Control::Fetched { .. } | Control::Given { .. } => None,
                },
                Kind::User { .. } | Kind::Goodbye => None,
            })
            .collect();
        let over = |id: FragId| self.long.over.iter().any(|&(of, it, _)| (of, it) == (ep, id));
        let ids = self.long.asked.range(of(ep)).map(|(&(_, id), _)| id);
        ids.filter(|&id| !waiting.contains(&id) && !over(id)).collect()
    }

    /// The peer's goodbye was read: what it has not done it will not do.
    pub(super) fn goodbye_ends_requests(&mut self, ep: EpId) {
        if !self.has_asked(ep) {
            return;
        }
        for id in self.flown(ep) {
            if let Some(request) = self.long.asked.get_mut(&(ep, id))
                && request.done.is_none()
            {
                request.done = Some(false);
                if request.sent {
                    self.long.over.push_back((ep, id, Ending::Never(Reason::PeerClosed)));
                }
            }
        }
    }

    /// The connection is gone for good: what went to the peer and was not answered may have been
    /// done or not.
    pub(super) fn end_requests(&mut self, ep: EpId, why: Reason) {
        if !self.has_asked(ep) {
            return;
        }
        for id in self.flown(ep) {
            let done = self.long.asked.get(&(ep, id)).and_then(|request| request.done);
            let ending = match done {
                Some(true) => Ending::Done,
                Some(false) => Ending::Never(why),
                None => Ending::Maybe(why),
            };
            self.long.over.push_back((ep, id, ending));
        }
    }

    /// Whether requests to `ep` are not over.
    pub(super) fn has_asked(&self, ep: EpId) -> bool {
        self.long.is_used() && self.long.asked.range(of(ep)).next().is_some()
    }

    // ---- what peers ask ------------------------------------------------------------------

    /// A peer's message to this module itself.
    pub(super) fn control_message(
        &mut self,
        now: Time,
        ep: EpId,
        control: Control,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        if ep.index() >= self.endpoints.len() {
            return Verdict::Stale;
        }
        self.touched = Some(ep);
        self.read += 1;
        fx.push(Effect::Op(Op::Release { ep }));
        fx.push(Effect::Op(Op::Next { ep }));
        let ready = self.link(ep).is_some_and(super::connect::Link::is_ready);
        let verdict = match control {
            Control::Fetched { data, ok } => self.answered(ep, data, false, ok),
            Control::Given { frag, ok } => self.answered(ep, frag, true, ok),
            // Whoever has said goodbye does nothing more; the peer knows.
            Control::Fetch { .. } | Control::Give { .. } if !ready => Verdict::Stale,
            Control::Fetch { tag, data, len, at: from, tail } => {
                let tail_len = tail.bytes().len() as u32;
                let wrong = u64::from(len) > self.config.eager_max
                    || tail_len != 0 && tail_len != len % 4
                    || self.long.coming.len() >= REQUESTS_MAX;
                if wrong {
                    self.reply(now, ep, Control::Fetched { data, ok: false }, fx);
                    return Verdict::Broken(Fault::Peer(
                        "a message longer than any may be, or one too many",
                    ));
                }
                self.want_pool(now, INBOX, fx);
                let number = self.long.next_coming;
                self.long.next_coming = number.wrapping_add(1);
                let coming = Coming { tag, data, len, from, tail, step: Step::Parked };
                self.long.coming.insert((ep, number), coming);
                self.long.parked.push_back((ep, number));
                self.start_parked(now, fx);
                Verdict::Taken
            }
            Control::Give { frag, from, into, len } => {
                let few = self.long.giving.len() < REQUESTS_MAX;
                if few && self.may_give(from, len) {
                    self.long.giving.insert((ep, frag));
                    let access = Access::new(Call::Put, from, into, len);
                    self.enqueue(now, ep, Owner::Give(frag), access, fx);
                } else {
                    self.reply(now, ep, Control::Given { frag, ok: false }, fx);
                }
                Verdict::Taken
            }
        };
        self.nudge(now, ep, fx);
        verdict
    }

    /// Answers a peer, if there still is a connection to do so.
    fn reply(&mut self, now: Time, ep: EpId, control: Control, fx: &mut impl Sink<Effect<Op>>) {
        if self.link(ep).is_some_and(super::connect::Link::is_ready) {
            let frag = self.control(control);
            self.await_turn(now, ep, frag, fx);
        }
    }

    /// A put that a peer asked for is over.
    pub(super) fn gave(
        &mut self,
        now: Time,
        ep: EpId,
        frag: FragId,
        ok: bool,
        fx: &mut impl Sink<Effect<Op>>,
    ) {
        if self.long.giving.remove(&(ep, frag)) {
            self.reply(now, ep, Control::Given { frag, ok }, fx);
            self.nudge(now, ep, fx);
        }
    }

    /// Fetches what is parked, as far as there are buffers.
    fn start_parked(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        while let Some(&(ep, number)) = self.long.parked.front() {
            let refused = match self.long.inbox.state {
                PoolState::There => false,
                PoolState::Refused => true,
                PoolState::None | PoolState::Asked { .. } | PoolState::Resting { .. } => return,
            };
            let buffer = if refused { None } else { self.long.inbox.take(now) };
            if buffer.is_none() && !refused {
                return;
            }
            self.long.parked.pop_front();
            let into = buffer.map(|buffer| self.buffer(INBOX, buffer));
            let Some(coming) = self.long.coming.get_mut(&(ep, number)) else { continue };
            let (Some(buffer), Some(into)) = (buffer, into) else {
                coming.step = Step::Lost;
                self.long.due.push_back(ep);
                continue;
            };
            // The sender's buffer has room for whole words; memory in place has a tail instead.
            let len = match coming.tail.bytes().len() as u32 {
                0 => coming.len.next_multiple_of(4),
                tail => coming.len - tail,
            };
            if len == 0 {
                coming.step = Step::There { buffer };
                self.long.due.push_back(ep);
                continue;
            }
            coming.step = Step::Fetching;
            let access = Access::new(Call::Get, into, coming.from, len);
            self.enqueue(now, ep, Owner::Fetch { number, buffer }, access, fx);
        }
    }

    /// A message was fetched, or cannot be.
    pub(super) fn fetched(&mut self, ep: EpId, number: u32, buffer: u16, ok: bool) {
        match self.long.coming.get_mut(&(ep, number)) {
            Some(coming) if ok => coming.step = Step::There { buffer },
            Some(coming) => {
                coming.step = Step::Lost;
                self.long.inbox.give_back(buffer, Time::ZERO);
            }
            // Its connection is gone.
            None => self.long.inbox.give_back(buffer, Time::ZERO),
        }
        self.long.due.push_back(ep);
    }

    /// Hands over what has come of a peer, in order.
    fn hand_over(&mut self, now: Time, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        while let Some((&key, &coming)) = self.long.coming.range((ep, 0)..=(ep, u32::MAX)).next() {
            if fx.room() <= super::EFFECTS_MAX / 2 {
                self.long.due.push_back(ep);
                return;
            }
            let Coming { tag, data, len, tail, step, .. } = coming;
            let ok = match step {
                Step::Parked | Step::Fetching => return,
                Step::There { buffer } => {
                    let at = self.buffer(INBOX, buffer);
                    let tail_len = tail.bytes().len() as u32;
                    if tail_len > 0 {
                        let at = at.after(len - tail_len);
                        fx.push(Effect::Op(Op::Finish { at, tail }));
                    }
                    let (from, at) = (self.name(ep), Some(at));
                    tell(fx, Notice::Arrived { from, tag, len, data, at });
                    self.long.inbox.give_back(buffer, Time::ZERO);
                    true
                }
                Step::Lost => false,
            };
            self.long.coming.remove(&key);
            self.reply(now, ep, Control::Fetched { data, ok }, fx);
        }
        // What lay behind it in the mailbox may be read now.
        if core::mem::take(&mut self.endpoints[ep.index()].held) {
            fx.push(Effect::Op(Op::Next { ep }));
        }
        self.nudge(now, ep, fx);
    }

    /// The connection is of no use any more: what its peer has announced is not fetched, and
    /// what it asked for is not answered.
    pub(super) fn forget_peer_requests(&mut self, ep: EpId, fx: &mut impl Sink<Effect<Op>>) {
        if !self.long.is_used() {
            return;
        }
        let keys: alloc::vec::Vec<(EpId, u32)> =
            self.long.coming.range((ep, 0)..=(ep, u32::MAX)).map(|(&key, _)| key).collect();
        for key in keys {
            if let Some(Coming { step: Step::There { buffer }, .. }) = self.long.coming.remove(&key)
            {
                self.long.inbox.give_back(buffer, Time::ZERO);
            }
        }
        self.long.parked.retain(|&(other, _)| other != ep);
        self.long.giving.retain(|&(other, _)| other != ep);
        if core::mem::take(&mut self.endpoints[ep.index()].held) {
            fx.push(Effect::Op(Op::Next { ep }));
        }
    }

    /// Whether a message lies before those in the mailbox of `ep`.
    pub(super) fn is_coming(&self, ep: EpId) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutant == super::Mutant::LetsShortMessagesPass {
            return false;
        }
        self.long.is_used() && self.long.is_coming(ep)
    }

    /// Whether the peer waits for something that we do.
    pub(super) fn owes(&self, ep: EpId) -> bool {
        self.long.is_coming(ep) || self.long.giving.range(of(ep)).next().is_some()
    }

    // ---- what is left over, and time -----------------------------------------------------

    pub(super) fn work_on_long(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        while fx.room() > super::EFFECTS_MAX / 2 {
            let Some(over) = self.long.over.pop_front() else { break };
            self.close_request(now, over, fx);
        }
        while fx.room() > super::EFFECTS_MAX / 2 {
            let Some(ep) = self.long.due.pop_front() else { break };
            self.hand_over(now, ep, fx);
            #[cfg(feature = "mutants")]
            if self.mutant == super::Mutant::ForgetsWhatIsParked {
                continue;
            }
            // Buffers may have come free.
            self.start_parked(now, fx);
            self.look_at_waiting(now, ep);
        }
    }

    pub(super) fn long_expired(&mut self, now: Time, fx: &mut impl Sink<Effect<Op>>) {
        for region in [OUTBOX, INBOX] {
            if let PoolState::Resting { until, tries } = self.long.pool(region).state
                && until <= now
            {
                self.ask_for_pool(now, region, tries, fx);
            }
        }
        for _ in 0..self.long.doubts.len() {
            let Some(&(at, ep)) = self.long.doubts.front() else { break };
            if at > now || fx.room() <= super::EFFECTS_MAX / 2 {
                break;
            }
            self.long.doubts.pop_front();
            self.endpoints[ep.index()].doubted = false;
            if self.has_asked(ep) {
                let _ = self.link_event(now, ep, super::connect::Event::Stalled, fx);
                self.doubt(now, ep);
            }
        }
    }

    pub(super) fn long_deadline(&self) -> Option<Time> {
        if !self.is_long_idle() {
            return Some(Time::ZERO);
        }
        let doubt = self.long.doubts.front().map(|&(at, _)| at);
        let all = [self.long.outbox.deadline(), self.long.inbox.deadline(), doubt];
        all.into_iter().flatten().min()
    }

    pub(super) fn is_long_idle(&self) -> bool {
        self.long.over.is_empty() && self.long.due.is_empty()
    }

    pub(super) fn is_long_settled(&self) -> bool {
        let long = &self.long;
        long.asked.is_empty() && long.coming.is_empty() && long.giving.is_empty()
    }

    pub(super) fn check_long(&self) -> Result<(), Violation> {
        let long = &self.long;
        let leased = long.asked.values().filter(|request| request.buffer.is_some()).count();
        let whole = |pool: &Pool, leased: usize| {
            pool.state == PoolState::None
                || pool.free.len() + leased == usize::from(self.config.eager_count())
        };
        ensure(whole(&long.outbox, leased), "a buffer is free or holds one message")?;
        let parked = long.coming.values().filter(|coming| coming.step == Step::Parked).count();
        ensure(parked == long.parked.len(), "what has no buffer is parked")?;
        let waits = long.parked.is_empty()
            || !matches!(long.inbox.state, PoolState::None | PoolState::Refused)
            || !long.due.is_empty();
        ensure(waits, "what is parked waits for something")
    }
}

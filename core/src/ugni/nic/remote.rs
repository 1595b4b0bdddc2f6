//! Remote memory: registrations, the two engines, atomics, and what a transaction ends in.
//!
//! A post becomes one request packet, and its target answers it with one reply; the fabric may
//! lose and repeat either. A request carries its number and how far behind the oldest that is
//! not settled is, so that the target knows a copy of one that it has done: a put that came a
//! second time after another put would undo that one.

use alloc::collections::{BTreeMap, VecDeque};

use crate::apart::Unused;
use crate::id::RegionId;
use crate::machine::{Fault as Guilt, Verdict};
use crate::nic::{Address, NicEffect};
use crate::rma::{Amo, Does, Place, is_aligned, is_within};
use crate::sink::Sink;
use crate::ugni::access::{Call, End, Engine, Refusal};
use crate::ugni::{Completion, Control, MboxId, Op};

use super::{Fault, Fx, Nic, Packet, say};

/// What a NIC keeps for remote memory and for messages of the transport's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Remote {
    /// Registered memory, and how long it is.
    regions: BTreeMap<RegionId, u32>,
    /// Requests that are not settled, from number `first` on.
    posts: VecDeque<Option<Post>>,
    first: u32,
    /// How many of them there are.
    out: u32,
    /// What its host has not seen.
    pub(super) done: VecDeque<Done>,
    /// Whose requests have been done here.
    origins: BTreeMap<Address, Origin>,
    /// The atomic that the driver is doing, and for whom.
    modifying: Option<(Address, u32)>,
    /// An interrupt was raised, and its host has not seen it.
    pub(super) interrupted: bool,
    /// What the transport's own messages in the mailboxes say.
    pub(super) controls: BTreeMap<(MboxId, u32), Control>,
}

impl Unused for Remote {
    const UNUSED: &'static Remote = &Remote {
        regions: BTreeMap::new(),
        posts: VecDeque::new(),
        first: 0,
        out: 0,
        done: VecDeque::new(),
        origins: BTreeMap::new(),
        modifying: None,
        interrupted: false,
        controls: BTreeMap::new(),
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Post {
    id: u32,
    to: Address,
    local: Place,
    len: u32,
    gets: bool,
    tries: u8,
    /// It will end in this, whatever the target does.
    fails: Option<End>,
}

/// An operation that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Done {
    id: u32,
    end: End,
    found: u64,
}

/// Requests of one peer: those before `floor` are settled, and of the others it is marked which
/// have been done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Origin {
    floor: u32,
    seen: VecDeque<bool>,
}

impl Origin {
    /// Whether request `serial`, sent when those up to `behind` before it were settled, is new.
    fn admit(&mut self, serial: u32, behind: u16) -> bool {
        let floor = serial.wrapping_sub(u32::from(behind));
        let forward = floor.wrapping_sub(self.floor);
        if forward as i32 > 0 {
            self.floor = floor;
            let gone = self.seen.len().min(forward as usize);
            self.seen.drain(..gone);
        }
        let at = serial.wrapping_sub(self.floor);
        if at as i32 > i32::from(u16::MAX) || (at as i32) < 0 {
            return false;
        }
        let at = at as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, false);
        }
        !core::mem::replace(&mut self.seen[at], true)
    }
}

/// Operations of Gemini; Aries has all.
const fn has_gemini(amo: Amo) -> bool {
    let known = matches!(
        amo.does(),
        Does::Add | Does::And | Does::Or | Does::Xor | Does::AndXor | Does::CompareSwap
    );
    known && amo.width() == 8
}

impl Nic {
    pub(super) fn register(&mut self, region: RegionId, len: u32, fx: &mut impl Sink<Fx>) {
        let full = self.mdds() >= self.config.mdds;
        let ok = !full && len > 0 && !self.strike(Fault::RefuseMemory);
        if ok {
            self.remote.regions.insert(region, len);
        }
        say(fx, Completion::MemRegistered { ok });
    }

    pub(super) fn deregister(&mut self, region: RegionId) -> Verdict {
        match self.remote.regions.remove(&region) {
            Some(_) => Verdict::Taken,
            None => Verdict::Broken(Guilt::Owner("memory that is not registered")),
        }
    }

    /// Memory domain descriptors in use: each slab and each region takes one.
    pub(super) fn mdds(&self) -> u64 {
        u64::from(self.slabs) + self.remote.regions.len() as u64
    }

    fn covers(&self, at: Place, len: u32) -> bool {
        self.remote.regions.get(&at.region).is_some_and(|&size| is_within(at.offset, len, size))
    }

    /// The host posts an operation.
    pub(super) fn post(&mut self, op: &Op, fx: &mut impl Sink<Fx>) -> Verdict {
        let (to, id, call, local, remote, len, engine) = match *op {
            Op::Put { to, id, local, remote, len, engine } => {
                (to, id, Call::Put, local, remote, len, engine)
            }
            Op::Get { to, id, local, remote, len, engine } => {
                (to, id, Call::Get, local, remote, len, engine)
            }
            Op::Atomic { to, id, amo, remote, operand, second } => {
                let call = Call::Atomic { amo, operand, second };
                (to, id, call, Place::default(), remote, amo.width(), Engine::Fma)
            }
            Op::Wake { to, id } => {
                let nowhere = Place::default();
                (to, id, Call::Wake, nowhere, nowhere, 0, Engine::Fma)
            }
            Op::Resolve { .. }
            | Op::Register { .. }
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
            | Op::Stage { .. }
            | Op::Finish { .. } => return Verdict::Stale,
        };
        if self.waiting() >= self.library.rdma_cq {
            return Verdict::Broken(Guilt::Owner("more posts than the queue has entries"));
        }
        if let Some(why) = self.refusal(call, local, remote, len, engine) {
            say(fx, Completion::RdmaRefused { id, why });
            return Verdict::Taken;
        }
        if call == Call::Wake && self.strike(Fault::LoseInterrupt) {
            self.remote.done.push_back(Done { id, end: End::Done, found: 0 });
            return Verdict::Taken;
        }
        for (fault, end) in [(Fault::RdmaError, End::Recoverable), (Fault::RdmaFatal, End::Fatal)] {
            if self.strike(fault) {
                self.remote.done.push_back(Done { id, end, found: 0 });
                return Verdict::Taken;
            }
        }
        let fails = if self.strike(Fault::RdmaErrorLate) {
            Some(End::Recoverable)
        } else if self.strike(Fault::RdmaFatalLate) {
            Some(End::Fatal)
        } else {
            None
        };
        let Remote { posts, first, out, .. } = &mut *self.remote;
        let behind = posts.len() as u16;
        let serial = first.wrapping_add(posts.len() as u32);
        let gets = call == Call::Get;
        posts.push_back(Some(Post { id, to, local, len, gets, tries: 0, fails }));
        *out += 1;
        let packet = match call {
            Call::Put => Packet::Put { serial, behind, engine, remote, len, local },
            Call::Get => Packet::Get { serial, engine, remote, len },
            Call::Atomic { amo, operand, second } => {
                Packet::Atomic { serial, behind, amo, remote, operand, second }
            }
            Call::Wake => Packet::Wake { serial },
        };
        fx.push(NicEffect::Packet { to, packet });
        Verdict::Taken
    }

    /// Entries of the queue that are taken, or will be.
    fn waiting(&self) -> u64 {
        u64::from(self.remote.out) + self.remote.done.len() as u64
    }

    /// Why a post is not taken, if it is not.
    fn refusal(
        &mut self,
        call: Call,
        local: Place,
        remote: Place,
        len: u32,
        engine: Engine,
    ) -> Option<Refusal> {
        // The window of numbers that a request can name is as long as the queue may be.
        if self.strike(Fault::RefuseRdma) || self.remote.posts.len() > usize::from(u16::MAX / 2) {
            return Some(Refusal::Resource);
        }
        let aries = self.config.aries == 1;
        match call {
            Call::Put if engine == Engine::Fma => None,
            Call::Put => (!self.covers(local, len)).then_some(Refusal::Permission),
            Call::Get => {
                // Aries asks nothing of the place here.
                let here = if aries { Place { offset: 0, ..local } } else { local };
                if len == 0 || !is_aligned(here, remote, len, 4) {
                    return Some(Refusal::Alignment);
                }
                (!self.covers(local, len)).then_some(Refusal::Permission)
            }
            Call::Atomic { amo, .. } => {
                let narrow = amo.does() == Does::CompareSwap && amo.width() == 4;
                if !aries && !has_gemini(amo) || narrow && !amo.fetches() {
                    return Some(Refusal::Illegal);
                }
                (!remote.offset.is_multiple_of(amo.width())).then_some(Refusal::Alignment)
            }
            Call::Wake => None,
        }
    }

    /// A request or a reply came in.
    pub(super) fn remote_packet(
        &mut self,
        from: Address,
        packet: Packet,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        match packet {
            Packet::Put { serial, behind, remote, len, .. } => {
                if !self.is_new(from, serial, behind) {
                    return Verdict::Stale;
                }
                let ok = self.covers(remote, len);
                if ok && len > 0 {
                    fx.push(NicEffect::Store { at: remote, len });
                }
                self.reply(from, serial, ok, 0, fx);
            }
            Packet::Get { serial, remote, len, .. } => {
                let ok = self.covers(remote, len);
                let (end, found, tries) = (if ok { End::Done } else { End::Denied }, 0, 0);
                let packet = Packet::Reply { serial, end, tries, found, from: remote, len };
                fx.push(NicEffect::Packet { to: from, packet });
            }
            Packet::Atomic { serial, behind, amo, remote, operand, second } => {
                if !self.is_new(from, serial, behind) {
                    return Verdict::Stale;
                }
                if !self.covers(remote, amo.width()) {
                    self.reply(from, serial, false, 0, fx);
                    return Verdict::Taken;
                }
                self.remote.modifying = Some((from, serial));
                fx.push(NicEffect::Modify { at: remote, amo, operand, second });
            }
            Packet::Wake { serial } => {
                self.remote.interrupted = true;
                self.reply(from, serial, true, 0, fx);
            }
            Packet::Reply { serial, end, found, len, .. } => {
                return self.replied(from, serial, end, found, len, fx);
            }
            Packet::Datagram { .. }
            | Packet::Smsg { .. }
            | Packet::Credit { .. }
            | Packet::Control(_) => return Verdict::Stale,
        }
        Verdict::Taken
    }

    /// The driver has done an atomic.
    pub(super) fn modified(&mut self, found: u64, fx: &mut impl Sink<Fx>) -> Verdict {
        let Some((from, serial)) = self.remote.modifying.take() else {
            return Verdict::Broken(Guilt::Owner("an atomic that nobody asked for"));
        };
        self.reply(from, serial, true, found, fx);
        Verdict::Taken
    }

    fn is_new(&mut self, from: Address, serial: u32, behind: u16) -> bool {
        self.remote.origins.entry(from).or_default().admit(serial, behind)
    }

    fn reply(&mut self, to: Address, serial: u32, ok: bool, found: u64, fx: &mut impl Sink<Fx>) {
        let end = if ok { End::Done } else { End::Denied };
        let (tries, from, len) = (0, Place::default(), 0);
        let packet = Packet::Reply { serial, end, tries, found, from, len };
        fx.push(NicEffect::Packet { to, packet });
    }

    fn replied(
        &mut self,
        from: Address,
        serial: u32,
        end: End,
        found: u64,
        len: u32,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        let Some(post) = self.remote.find(serial).filter(|post| post.to == from) else {
            return Verdict::Stale;
        };
        let done = end == End::Done && post.fails.is_none();
        let Post { gets, local, len: asked, fails, .. } = *post;
        if gets && done {
            if len != asked {
                return Verdict::Broken(Guilt::Peer("an answer of another length"));
            }
            // The memory may have been deregistered meanwhile; then it is nobody's to write to.
            if !self.covers(local, len) {
                self.remote.settle(serial, End::Fatal, 0);
                return Verdict::Taken;
            }
            fx.push(NicEffect::Store { at: local, len });
        }
        self.remote.settle(serial, fails.unwrap_or(end), found);
        Verdict::Taken
    }

    /// A request or a reply did not get through.
    pub(super) fn remote_lost(
        &mut self,
        to: Address,
        packet: Packet,
        fx: &mut impl Sink<Fx>,
    ) -> Verdict {
        let limit = self.config.transaction_retries;
        match packet {
            Packet::Put { serial, .. }
            | Packet::Get { serial, .. }
            | Packet::Atomic { serial, .. }
            | Packet::Wake { serial } => {
                let Some(post) = self.remote.find(serial) else { return Verdict::Stale };
                if u64::from(post.tries) < limit {
                    post.tries += 1;
                    fx.push(NicEffect::Packet { to, packet });
                } else {
                    self.remote.settle(serial, End::Recoverable, 0);
                }
                Verdict::Taken
            }
            Packet::Reply { serial, mut end, tries, found, from, len } => {
                if u64::from(tries) < self.config.stubborn_retries {
                    if len > 0 && !self.covers(from, len) {
                        end = End::Denied;
                    }
                    let packet = Packet::Reply { serial, end, tries: tries + 1, found, from, len };
                    fx.push(NicEffect::Packet { to, packet });
                }
                Verdict::Taken
            }
            Packet::Datagram { .. }
            | Packet::Smsg { .. }
            | Packet::Credit { .. }
            | Packet::Control(_) => Verdict::Stale,
        }
    }

    /// A peer is gone: what it was asked for ends, and what it asked for is nobody's business.
    pub(super) fn remote_down(&mut self, peer: Address) {
        if !self.remote.is_used() {
            return;
        }
        self.remote.origins.remove(&peer);
        let Remote { posts, first, .. } = &*self.remote;
        let gone: alloc::vec::Vec<u32> = (posts.iter().enumerate())
            .filter(|(_, post)| post.is_some_and(|post| post.to == peer))
            .map(|(at, _)| first.wrapping_add(at as u32))
            .collect();
        gone.into_iter().for_each(|serial| self.remote.settle(serial, End::Gone, 0));
    }

    pub(super) fn poll_rdma(&mut self, fx: &mut impl Sink<Fx>) {
        if let Some(Done { id, end, found }) = self.remote.done.pop_front() {
            say(fx, Completion::RdmaDone { id, end, found });
        }
    }

    pub(super) fn poll_interrupts(&mut self, fx: &mut impl Sink<Fx>) {
        if core::mem::take(&mut self.remote.interrupted) {
            say(fx, Completion::Interrupt);
        }
    }
}

impl Remote {
    fn find(&mut self, serial: u32) -> Option<&mut Post> {
        self.posts.get_mut(serial.wrapping_sub(self.first) as usize)?.as_mut()
    }

    fn settle(&mut self, serial: u32, end: End, found: u64) {
        let at = serial.wrapping_sub(self.first) as usize;
        let Some(Post { id, .. }) = self.posts.get_mut(at).and_then(Option::take) else { return };
        self.out -= 1;
        self.done.push_back(Done { id, end, found });
        while self.posts.front().is_some_and(Option::is_none) {
            self.posts.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_done_once_whatever_the_fabric_does() {
        let mut origin = Origin::default();
        assert!(origin.admit(0, 0) && origin.admit(2, 2) && origin.admit(1, 1));
        assert!(![0, 1, 2].into_iter().any(|serial| origin.admit(serial, serial as u16)));
        // The first two are settled: nothing is remembered of them, and they stay done.
        assert!(origin.admit(3, 1));
        assert_eq!((origin.floor, origin.seen.len()), (2, 2));
        assert!(!origin.admit(0, 0) && !origin.admit(1, 0) && !origin.admit(2, 0));
        assert!(!origin.admit(3, 3));
    }

    #[test]
    fn numbers_go_around_the_end() {
        let mut origin = Origin { floor: u32::MAX - 1, seen: VecDeque::new() };
        assert!(origin.admit(u32::MAX, 0) && origin.admit(0, 1) && !origin.admit(u32::MAX, 0));
        assert_eq!(origin.floor, u32::MAX);
    }
}

//! The workload that uses the memory of peers, and checks what it finds there.
//!
//! Every proc has a window: a word that all count in, and a slot for each proc, in which that
//! proc alone writes. So whoever has written knows what a get must bring: the last of its puts
//! that is done, or one after it of unknown fate.

use std::sync::Arc;

use selvedge_core::rma::{Amo, Does, Place, Width};
use selvedge_core::{Fabric, FragId, Notice, ProcName, Reason, RegionId};

/// The memory that peers use.
const WINDOW: RegionId = RegionId(1);
/// The memory that puts come from and gets go to.
const OWN: RegionId = RegionId(2);
/// The words before the slots.
const WORDS: u32 = 8;
/// The bit of the word that is set; all below it count.
const SET: u64 = 1 << 63;

/// Uses the memory of its partners, one operation a partner at a time.
#[derive(Clone, Debug, Hash)]
pub struct Remote {
    /// How it is done.
    pub plan: Plan,
    /// Whose memory is used.
    pub partners: Arc<[u32]>,
    /// Operations still to ask for.
    pub left: u64,
    /// What is known of each partner.
    known: Vec<Known>,
    /// Regions that are registered, or cannot be.
    answered: u8,
    /// Gets that were done.
    gets: u64,
}

/// What all procs do alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Bytes of a put or get.
    pub size: u32,
    /// How many slots a window has.
    pub procs: u32,
    /// Weights of puts, gets, fetch-and-adds and sets, which may be done twice.
    pub mix: [u32; 4],
    /// Gets go to places where no NIC can get them.
    pub odd: bool,
    /// Compare what one in so many gets brings; 0: none.
    pub check_every: u64,
    /// Where choices come from.
    pub seed: u64,
}

/// What is known of one partner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Known {
    /// What is under way.
    out: Option<(FragId, Kind)>,
    /// The number of the last put.
    last: u32,
    /// The puts of which one is in our slot there; empty while nobody knows.
    slot: Vec<u32>,
    /// What the last fetch-and-add found, and one more.
    count: u64,
    /// Adds that were done, and of unknown fate.
    adds: [u64; 2],
    /// How many operations were asked for.
    asked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Put,
    Get,
    Add,
    Set,
}

const KINDS: [Kind; 4] = [Kind::Put, Kind::Get, Kind::Add, Kind::Set];

impl Plan {
    /// Bytes from one slot to the next: whole words, and room for an odd place.
    fn stride(&self) -> u32 {
        (self.size + 1).next_multiple_of(8)
    }

    fn slot(&self, rank: u32) -> Place {
        Place { region: WINDOW, offset: WORDS + rank * self.stride() }
    }

    /// Where a put to the `at`-th partner comes from.
    fn source(&self, at: usize) -> Place {
        Place { region: OWN, offset: 2 * at as u32 * self.stride() }
    }

    /// Where a get from the `at`-th partner goes to.
    fn target(&self, at: usize) -> Place {
        let place = self.source(at).after(self.stride());
        place.after(u32::from(self.odd))
    }

    /// Bytes of a window, and of the memory for `partners` partners.
    #[must_use]
    pub fn sizes(&self, partners: usize) -> [u64; 2] {
        let stride = u64::from(self.stride());
        [u64::from(WORDS) + u64::from(self.procs) * stride, 2 * partners as u64 * stride]
    }

    /// What put `number` of `rank` writes.
    fn bytes(&self, rank: u32, number: u32) -> impl Iterator<Item = u8> {
        let start = u64::from(rank) << 32 | u64::from(number);
        let words = (0_u64..).map(move |n| mix(start ^ mix(n)).to_le_bytes());
        words.flatten().take(self.size as usize)
    }
}

/// A word in which every bit hangs on every bit of `n` (the finish of `SplitMix64`).
const fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

impl Remote {
    /// A proc that asks `left` operations of its partners.
    #[must_use]
    pub fn new(plan: Plan, partners: Arc<[u32]>, left: u64) -> Remote {
        let known = vec![Known::default(); partners.len()];
        Remote { plan, partners, left, known, answered: 0, gets: 0 }
    }

    /// For each partner the adds that were done there, and those of unknown fate.
    pub fn adds(&self) -> impl Iterator<Item = (u32, [u64; 2])> {
        self.partners.iter().zip(&self.known).map(|(&partner, known)| (partner, known.adds))
    }

    /// What a word that holds `bits` counts.
    #[must_use]
    pub const fn counted(bits: u64) -> u64 {
        bits & !SET
    }

    /// Where the word of a window is.
    #[must_use]
    pub const fn word() -> Place {
        Place { region: WINDOW, offset: 0 }
    }

    pub(super) fn start(&self, fabric: &mut impl Fabric) {
        let [window, own] = self.plan.sizes(self.partners.len());
        fabric.register(WINDOW, u32::try_from(window).unwrap_or(u32::MAX));
        if own > 0 {
            fabric.register(OWN, u32::try_from(own).unwrap_or(u32::MAX));
        }
    }

    pub(super) fn notice(&mut self, fabric: &mut impl Fabric, notice: Notice) {
        match notice {
            Notice::Registered { .. } | Notice::Unregistered { .. } => {
                self.answered += 1;
                if self.answered == 2 {
                    (0..self.partners.len()).for_each(|at| self.ask(fabric, at));
                }
            }
            Notice::Done { frag, value } => {
                let Some((at, kind)) = self.settle(frag) else { return };
                self.done(fabric, at, kind, value);
                self.ask(fabric, at);
            }
            Notice::Failed { frag, reason, .. } => {
                let Some((at, _)) = self.settle(frag) else { return };
                self.missed(at, None, reason);
                self.ask(fabric, at);
            }
            Notice::Unknown { frag, reason, .. } => {
                let Some((at, kind)) = self.settle(frag) else { return };
                self.missed(at, Some(kind), reason);
                self.ask(fabric, at);
            }
            Notice::Arrived { .. }
            | Notice::Sent { .. }
            | Notice::Connected { .. }
            | Notice::Closed { .. }
            | Notice::Trouble { .. } => {}
        }
    }

    fn settle(&mut self, frag: FragId) -> Option<(usize, Kind)> {
        let at = self.known.iter().position(|known| known.out.is_some_and(|(it, _)| it == frag))?;
        let (_, kind) = self.known[at].out.take()?;
        Some((at, kind))
    }

    /// Asks the `at`-th partner for the next operation.
    fn ask(&mut self, fabric: &mut impl Fabric, at: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let (plan, known) = (self.plan, &mut self.known[at]);
        let to = ProcName { job: fabric.me().job, rank: self.partners[at] };
        let me = fabric.me().rank;
        known.asked += 1;
        let kind = plan.choose(me, at, known.asked);
        let atomic = |does, fetches| Amo::new(does, Width::Eight, fetches);
        let frag = match kind {
            Kind::Put => {
                known.last += 1;
                let bytes: Vec<u8> = plan.bytes(me, known.last).collect();
                fabric.write(plan.source(at), &bytes);
                fabric.put(to, plan.source(at), plan.slot(me), plan.size)
            }
            Kind::Get => fabric.get(to, plan.target(at), plan.slot(me), plan.size),
            Kind::Add => fabric.atomic(to, atomic(Does::Add, true), Remote::word(), 1, 0),
            Kind::Set => fabric.atomic(to, atomic(Does::Or, false), Remote::word(), SET, 0),
        };
        known.out = Some((frag, kind));
    }

    fn done(&mut self, fabric: &mut impl Fabric, at: usize, kind: Kind, value: u64) {
        let plan = self.plan;
        let known = &mut self.known[at];
        match kind {
            Kind::Put => known.slot = vec![known.last],
            Kind::Get => {
                self.gets += 1;
                let due = plan.check_every > 0 && self.gets.is_multiple_of(plan.check_every);
                if !due || known.slot.is_empty() {
                    return;
                }
                let mut got = vec![0; plan.size as usize];
                fabric.read(plan.target(at), &mut got);
                let me = fabric.me().rank;
                let is = |&put: &u32| plan.bytes(me, put).eq(got.iter().copied());
                if !known.slot.iter().any(is) {
                    fabric.wrong("a get brings what was put last");
                }
            }
            Kind::Add => {
                let found = Remote::counted(value);
                if found < known.count {
                    fabric.wrong("a word that is counted in only grows");
                }
                known.count = found + 1;
                known.adds[0] += 1;
            }
            Kind::Set => {}
        }
    }

    /// An operation was not done, or perhaps it was.
    fn missed(&mut self, at: usize, perhaps: Option<Kind>, reason: Reason) {
        let known = &mut self.known[at];
        match perhaps {
            Some(Kind::Put) if !known.slot.is_empty() => known.slot.push(known.last),
            Some(Kind::Add) => known.adds[1] += 1,
            Some(Kind::Put | Kind::Get | Kind::Set) | None => {}
        }
        match reason {
            // Its memory died with it.
            Reason::PeerDied | Reason::PeerRestarted => {
                known.slot.clear();
                known.count = 0;
            }
            Reason::Closed
            | Reason::PeerClosed
            | Reason::Unreachable
            | Reason::NoAddress
            | Reason::BadAddress
            | Reason::BadRecord
            | Reason::TransactionError
            | Reason::SetupRefused
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
    }
}

impl Plan {
    /// What operation `number` of `rank` with its `at`-th partner does.
    fn choose(&self, rank: u32, at: usize, number: u64) -> Kind {
        let all: u64 = self.mix.iter().map(|&weight| u64::from(weight)).sum();
        let draw = mix(self.seed ^ mix(u64::from(rank)) ^ mix(at as u64) << 1 ^ mix(number) << 2);
        let mut left = draw % all.max(1);
        for (kind, weight) in KINDS.into_iter().zip(self.mix) {
            if left < u64::from(weight) {
                return kind;
            }
            left -= u64::from(weight);
        }
        Kind::Put
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan =
        Plan { size: 12, procs: 3, mix: [4, 3, 2, 1], odd: true, check_every: 1, seed: 7 };

    #[test]
    fn places_do_not_overlap() {
        assert_eq!(PLAN.stride(), 16);
        assert_eq!([0, 1, 2].map(|rank| PLAN.slot(rank).offset), [8, 24, 40]);
        assert_eq!(PLAN.sizes(2), [56, 64]);
        let places = [PLAN.source(0), PLAN.target(0), PLAN.source(1), PLAN.target(1)];
        assert_eq!(places.map(|place| place.offset), [0, 17, 32, 49]);
    }

    #[test]
    fn the_mix_is_as_asked_for() {
        let mut counts = [0_u32; 4];
        for number in 0..10_000 {
            let kind = PLAN.choose(1, 0, number);
            counts[KINDS.iter().position(|&other| other == kind).expect("one of the four")] += 1;
        }
        for (count, weight) in counts.into_iter().zip(PLAN.mix) {
            assert!(count.abs_diff(weight * 1_000) < 150, "{counts:?}");
        }
    }

    #[test]
    fn no_two_puts_write_the_same() {
        let bytes = |rank, number| PLAN.bytes(rank, number).collect::<Vec<_>>();
        assert_eq!(bytes(1, 2).len(), 12);
        assert_ne!(bytes(1, 2), bytes(1, 3));
        assert_ne!(bytes(1, 2), bytes(2, 2));
    }
}

//! NICs face to face: no fabric lies between them, so every packet is carried by hand.

use alloc::vec;

use super::*;
use crate::id::{FragId, Tag};
use crate::machine::Named;
use crate::sink::Effects;
use crate::ugni::access::Engine;
use crate::ugni::{PostError, PostState};

/// A NIC on a bench: what it puts on the wire stays there until it is carried.
#[derive(Clone)]
struct Bench {
    nic: Nic,
    now: Time,
    said: Vec<Completion>,
    wire: Vec<(Address, Packet)>,
    /// What it wrote to its memory.
    stored: Vec<(Place, u32)>,
    /// It has asked its driver for an atomic.
    modifies: bool,
}

/// Queues that a host polls.
const DATAGRAMS: u8 = 0;
const LOCAL: u8 = 1;
const REMOTE: u8 = 2;
const CREDITS: u8 = 3;
const RDMA: u8 = 4;
const INTERRUPTS: u8 = 5;

/// The endpoint of X for Y, of Y for X, and of Z for Y: all different, so that none is mistaken
/// for another.
const AT_X: EpId = EpId(1);
const AT_Y: EpId = EpId(2);
const AT_Z: EpId = EpId(0);

const BOX: MboxId = MboxId(0);

impl Bench {
    fn new(place: u32, config: Config, library: super::super::Config) -> Bench {
        let me = Address { nic: place, instance: 1 };
        let nic = Nic::new(me, config, library);
        let (said, wire, stored) = (Vec::new(), Vec::new(), Vec::new());
        Bench { nic, now: Time::ZERO, said, wire, stored, modifies: false }
    }

    fn address(&self) -> Address {
        self.nic.address()
    }

    fn step(&mut self, event: NicEvent<Op, Packet, Receipt, Fault>) -> Verdict {
        let mut fx = Effects::new(Nic::EFFECTS_MAX);
        let verdict = self.nic.step(self.now, event, &mut fx);
        assert_eq!(self.nic.check(), Ok(()));
        for effect in fx.drain() {
            match effect {
                NicEffect::Completion(completion) => self.said.push(completion),
                NicEffect::Packet { to, packet } => self.wire.push((to, packet)),
                NicEffect::Store { at, len } => self.stored.push((at, len)),
                NicEffect::Modify { .. } => self.modifies = true,
            }
        }
        verdict
    }

    /// Asks something that is well asked; what it says to that.
    fn ask(&mut self, op: Op) -> Vec<Completion> {
        assert_eq!(self.step(NicEvent::Op(op)), Verdict::Taken);
        core::mem::take(&mut self.said)
    }

    fn post(&mut self, ep: EpId, text: u8) -> Vec<Completion> {
        self.ask(Op::PostDirected { ep, record: record(text) })
    }

    fn listen(&mut self, text: u8) -> Vec<Completion> {
        self.ask(Op::PostWildcard { record: record(text) })
    }

    fn send(&mut self, ep: EpId, seq: u32) -> Vec<Completion> {
        self.ask(Op::Send { ep, seq, epoch: 0, content: text(seq), len: seq })
    }

    /// Everything that `queue` holds.
    fn read(&mut self, queue: u8) -> Vec<Completion> {
        while self.nic.ready(queue) {
            assert_eq!(self.step(NicEvent::Poll { queue }), Verdict::Taken);
        }
        core::mem::take(&mut self.said)
    }

    /// Everything in the mailbox of `ep`: gets and releases until it is empty.
    fn receive(&mut self, ep: EpId) -> Vec<Content> {
        let mut got = Vec::new();
        while let [Completion::Message { content, .. }] = self.ask(Op::Next { ep })[..] {
            got.push(content);
            assert_eq!(self.ask(Op::Release { ep }), []);
        }
        got
    }

    fn arm(&mut self, fault: Fault) {
        assert_eq!(self.step(NicEvent::Fault(fault)), Verdict::Taken);
    }

    /// Lets time pass until its next deadline.
    fn expire(&mut self) {
        self.now = self.nic.next_deadline().expect("something was put off");
        assert_eq!(self.step(NicEvent::Expired), Verdict::Taken);
    }

    /// The next packet on its wire does not get through.
    fn lose(&mut self) {
        let (to, packet) = self.wire.remove(0);
        assert_eq!(self.step(NicEvent::Lost { to, packet }), Verdict::Taken);
    }

    /// Nothing on its wire gets through, until it has given up: so many packets were lost.
    fn lose_all(&mut self) -> u64 {
        let mut lost = 0;
        while !self.wire.is_empty() {
            self.lose();
            lost += 1;
        }
        lost
    }

    /// Takes a packet from the wire of `from`, and lets `from` know what became of it.
    fn take(&mut self, from: &mut Bench, packet: Packet) -> Verdict {
        let receipt = Nic::receipt(&packet);
        let verdict = self.step(NicEvent::Packet { from: from.address(), packet });
        if let Some(receipt) = receipt {
            let fate = match verdict {
                Verdict::Taken | Verdict::Stale => NicEvent::Delivered { receipt },
                Verdict::Broken(_) => NicEvent::Rejected { receipt },
            };
            assert_eq!(from.step(fate), Verdict::Taken);
        }
        verdict
    }

    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.nic.encode(&mut out);
        out
    }
}

fn record(text: u8) -> Box<RecordBytes> {
    Box::new(RecordBytes([text; super::super::record::Record::BYTES]))
}

fn text(seq: u32) -> Content {
    Content::User { tag: Tag(1), data: FragId(seq) }
}

/// Carries what `from` has for `to`, in order; all of it has to be taken.
fn carry(from: &mut Bench, to: &mut Bench) {
    while let Some(at) = from.wire.iter().position(|(there, _)| *there == to.address()) {
        let packet = from.wire.remove(at).1;
        assert_eq!(to.take(from, packet), Verdict::Taken);
    }
}

/// Carries to and fro until both wires are empty.
fn settle(x: &mut Bench, y: &mut Bench) {
    while !(x.wire.is_empty() && y.wire.is_empty()) {
        carry(x, y);
        carry(y, x);
    }
}

/// X and Y, bound to each other.
fn meet_with(config: Config, library: super::super::Config) -> (Bench, Bench) {
    let (mut x, mut y) = (Bench::new(7, config, library), Bench::new(8, config, library));
    x.ask(Op::Bind { ep: AT_X, to: y.address() });
    y.ask(Op::Bind { ep: AT_Y, to: x.address() });
    (x, y)
}

fn meet() -> (Bench, Bench) {
    meet_with(Config::default(), super::super::Config::default())
}

/// X and Y with mailboxes for each other: X writes to box 0 of Y, Y to box 1 of X.
fn link_with(config: Config, library: super::super::Config) -> (Bench, Bench) {
    let (mut x, mut y) = meet_with(config, library);
    for bench in [&mut x, &mut y] {
        let ok = Completion::Registered { ok: true };
        assert_eq!(bench.ask(Op::Register { slab: 0, mailboxes: 2 }), [ok]);
    }
    x.ask(Op::Arm { mbox: MboxId(1) });
    y.ask(Op::Arm { mbox: BOX });
    let (to_y, to_x) = (AT_Y.0, AT_X.0);
    assert_eq!(x.ask(Op::Init { ep: AT_X, local: MboxId(1), remote: BOX, index: to_y }), []);
    assert_eq!(y.ask(Op::Init { ep: AT_Y, local: BOX, remote: MboxId(1), index: to_x }), []);
    (x, y)
}

fn link() -> (Bench, Bench) {
    link_with(Config::default(), super::super::Config::default())
}

/// A library whose mailboxes and queues are small.
fn small(smsg_credits: u64, local_cq: u64, remote_cq: u64) -> super::super::Config {
    super::super::Config { smsg_credits, local_cq, remote_cq, ..Default::default() }
}

fn completed(ep: Option<EpId>, other: &Bench, text: u8) -> Vec<Completion> {
    let (state, from) = (PostState::Completed, other.address());
    vec![Completion::Datagram { ep, state, from, record: Some(record(text)) }]
}

fn ended(ep: EpId, other: &Bench, state: PostState) -> Vec<Completion> {
    vec![Completion::Datagram { ep: Some(ep), state, from: other.address(), record: None }]
}

fn refused(ep: EpId, why: PostError) -> Vec<Completion> {
    vec![Completion::PostRefused { ep: Some(ep), why }]
}

fn done(ep: EpId, seq: u32, delivered: bool) -> Completion {
    Completion::SendDone { ep, seq, delivered }
}

fn arrival(ep: EpId) -> Completion {
    Completion::Arrival { index: ep.0 }
}

/// Every order of `n` things.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(n - 1).into_iter();
    let longer = shorter.flat_map(|order| {
        (0..n).map(move |at| {
            let mut order = order.clone();
            order.insert(at, n - 1);
            order
        })
    });
    longer.collect()
}

// ---- datagrams ---------------------------------------------------------------------------

#[test]
fn two_datagrams_that_cross_meet_each_other() {
    let (mut x, mut y) = meet();
    y.listen(b'w');
    assert_eq!((x.post(AT_X, b'x'), y.post(AT_Y, b'y')), (vec![], vec![]));
    settle(&mut x, &mut y);
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'y'));
    assert_eq!(y.read(DATAGRAMS), completed(Some(AT_Y), &x, b'x'), "and not the wildcard");
}

#[test]
fn a_datagram_meets_the_wildcard() {
    let (mut x, mut y) = meet();
    y.listen(b'w');
    x.post(AT_X, b'x');
    settle(&mut x, &mut y);
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'w'));
    assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'x'));
}

#[test]
fn without_a_wildcard_datagrams_wait_and_the_oldest_is_met_first() {
    let (mut x, mut y) = meet();
    let mut z = Bench::new(9, Config::default(), super::super::Config::default());
    z.ask(Op::Bind { ep: AT_Z, to: y.address() });
    z.post(AT_Z, b'z');
    carry(&mut z, &mut y);
    x.post(AT_X, b'x');
    carry(&mut x, &mut y);
    assert_eq!((y.read(DATAGRAMS), y.wire.len()), (vec![], 0));

    y.listen(b'v');
    assert_eq!(y.read(DATAGRAMS), completed(None, &z, b'z'));
    y.listen(b'w');
    assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'x'));
    carry(&mut y, &mut z);
    carry(&mut y, &mut x);
    assert_eq!(z.read(DATAGRAMS), completed(Some(AT_Z), &y, b'v'));
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'w'));
}

#[test]
fn a_directed_post_meets_the_datagram_that_waits() {
    let (mut x, mut y) = meet();
    x.post(AT_X, b'x');
    carry(&mut x, &mut y);
    y.post(AT_Y, b'y');
    assert_eq!(y.read(DATAGRAMS), completed(Some(AT_Y), &x, b'x'));
    carry(&mut y, &mut x);
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'y'));
}

#[test]
fn a_session_takes_one_datagram_until_its_completion_is_read() {
    let (mut x, mut y) = meet();
    y.listen(b'w');
    x.post(AT_X, b'x');
    assert_eq!(x.post(AT_X, b'2'), refused(AT_X, PostError::Session), "one is out");
    settle(&mut x, &mut y);
    assert_eq!(x.post(AT_X, b'2'), refused(AT_X, PostError::Session), "its end is unread");
    assert_eq!(y.post(AT_Y, b'2'), refused(AT_Y, PostError::Session), "so is the wildcard's");
    assert_eq!(x.read(DATAGRAMS).len() + y.read(DATAGRAMS).len(), 2);
    assert_eq!((x.post(AT_X, b'2'), y.post(AT_Y, b'2')), (vec![], vec![]));
}

#[test]
fn sessions_with_two_peers_do_not_hinder_each_other() {
    let (mut x, y) = meet();
    let z = Bench::new(9, Config::default(), super::super::Config::default());
    x.ask(Op::Bind { ep: EpId(3), to: z.address() });
    assert_eq!(x.post(AT_X, b'x'), []);
    assert_eq!(x.post(EpId(3), b'x'), []);
    assert_eq!(x.wire.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [y.address(), z.address()]);
}

#[test]
fn a_post_that_makes_no_sense_is_the_owners_mistake() {
    let (mut x, _) = meet();
    let post = Op::PostDirected { ep: EpId(5), record: record(b'x') };
    let unbound = Guilt::Owner("a post on an endpoint that is not bound");
    assert_eq!(x.step(NicEvent::Op(post)), Verdict::Broken(unbound));
    assert_eq!(x.said, refused(EpId(5), PostError::Invalid));
    x.listen(b'w');
    let post = Op::PostWildcard { record: record(b'v') };
    let second = Guilt::Owner("a second wildcard");
    assert_eq!(x.step(NicEvent::Op(post)), Verdict::Broken(second));
}

#[test]
fn a_cancelled_datagram_ends_terminated_and_is_met_no_more() {
    let (mut x, mut y) = meet();
    x.post(AT_X, b'x');
    x.ask(Op::Cancel { ep: AT_X });
    assert_eq!(x.read(DATAGRAMS), [], "a cancellation is asynchronous");
    settle(&mut x, &mut y);
    assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, PostState::Terminated));
    assert_eq!((y.listen(b'w'), y.read(DATAGRAMS), y.wire.len()), (vec![], vec![], 0));
    assert_eq!(x.step(NicEvent::Op(Op::Cancel { ep: AT_X })), Verdict::Stale);
}

#[test]
fn a_cancellation_that_crosses_its_match_ends_terminated_here_and_completed_there() {
    let (mut x, mut y) = meet();
    y.listen(b'w');
    x.post(AT_X, b'x');
    carry(&mut x, &mut y);
    x.ask(Op::Cancel { ep: AT_X });
    settle(&mut x, &mut y);
    assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, PostState::Terminated));
    assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'x'));
}

#[test]
fn a_cancellation_cannot_part_two_datagrams_that_crossed() {
    let (mut x, mut y) = meet();
    x.post(AT_X, b'x');
    y.post(AT_Y, b'y');
    y.ask(Op::Cancel { ep: AT_Y });
    settle(&mut x, &mut y);
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'y'));
    assert_eq!(y.read(DATAGRAMS), ended(AT_Y, &x, PostState::Terminated));
    // X has had its answer: nothing of it may be left for a later datagram to meet.
    assert_eq!((y.listen(b'w'), y.read(DATAGRAMS)), (vec![], vec![]));
}

#[test]
fn a_cancellation_whose_answer_was_given_up_can_be_repeated() {
    let (mut x, mut y) = meet();
    x.post(AT_X, b'x');
    x.ask(Op::Cancel { ep: AT_X });
    carry(&mut x, &mut y);
    let most = Config::default().stubborn_retries;
    assert_eq!(y.lose_all(), most + 1);
    x.ask(Op::Cancel { ep: AT_X });
    settle(&mut x, &mut y);
    assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, PostState::Terminated));
}

#[test]
fn a_lost_datagram_is_repeated_and_at_last_given_up() {
    let config = Config { datagram_retries: 3, ..Config::default() };
    for (losses, gets_through) in [(0, true), (3, true), (4, false)] {
        let (mut x, mut y) = meet_with(config, Default::default());
        y.listen(b'w');
        x.post(AT_X, b'x');
        for _ in 0..losses {
            assert_eq!(x.read(DATAGRAMS), []);
            x.lose();
        }
        settle(&mut x, &mut y);
        let (here, there) = if gets_through {
            (completed(Some(AT_X), &y, b'w'), completed(None, &x, b'x'))
        } else {
            (ended(AT_X, &y, PostState::Error), vec![])
        };
        assert_eq!((x.read(DATAGRAMS), y.read(DATAGRAMS)), (here, there), "{losses} losses");
    }
}

#[test]
fn a_datagram_to_the_dead_that_gets_lost_ends_like_any_other() {
    let (mut x, y) = meet();
    x.post(AT_X, b'1');
    assert_eq!(x.step(NicEvent::Down { peer: y.address() }), Verdict::Taken);
    assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, PostState::Timeout));
    x.wire.clear();
    x.post(AT_X, b'2');
    x.lose_all();
    assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, PostState::Timeout));
}

#[test]
fn what_was_given_up_leaves_no_gap_for_what_comes_next() {
    let config = Config { datagram_retries: 0, ..Config::default() };
    let (mut x, mut y) = meet_with(config, Default::default());
    x.post(AT_X, b'1');
    x.lose();
    assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, PostState::Error));
    x.post(AT_X, b'2');
    y.listen(b'w');
    // The second comes first: it waits until the place of the first is filled.
    let second = x.wire.remove(1).1;
    assert_eq!(y.take(&mut x, second), Verdict::Taken);
    assert_eq!(y.read(DATAGRAMS), []);
    settle(&mut x, &mut y);
    assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'2'));
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'w'));
}

#[test]
fn after_the_last_retransmission_of_a_step_later_ones_go_on_without_it() {
    let config = Config { datagram_retries: 0, ..Config::default() };
    let (mut x, mut y) = meet_with(config, Default::default());
    y.listen(b'w');
    x.post(AT_X, b'1');
    // The datagram itself, then its cancellation in its place.
    assert_eq!(x.lose_all(), 1 + 1 + config.stubborn_retries);
    assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, PostState::Error));
    x.post(AT_X, b'2');
    settle(&mut x, &mut y);
    assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'2'));
}

#[test]
fn a_step_that_the_peers_end_hangs_on_is_repeated_beyond_all_retries() {
    let config = Config { datagram_retries: 0, ..Config::default() };
    // A match.
    let (mut x, mut y) = meet_with(config, Default::default());
    y.listen(b'w');
    x.post(AT_X, b'x');
    carry(&mut x, &mut y);
    y.lose();
    settle(&mut x, &mut y);
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'w'));
    // A datagram that met one of the peer's before it arrived there.
    let (mut x, mut y) = meet_with(config, Default::default());
    x.post(AT_X, b'x');
    y.post(AT_Y, b'y');
    carry(&mut y, &mut x);
    x.lose();
    settle(&mut x, &mut y);
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'y'));
    assert_eq!(y.read(DATAGRAMS), completed(Some(AT_Y), &x, b'x'));
}

#[test]
fn steps_are_taken_in_order_and_once_whatever_the_wire_does() {
    let (mut x, y) = meet();
    x.post(AT_X, b'1');
    x.ask(Op::Cancel { ep: AT_X });
    let mut first = y.clone();
    carry(&mut x.clone(), &mut first);
    carry(&mut first, &mut x);
    assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, PostState::Terminated));
    x.post(AT_X, b'2');
    let steps: Vec<Packet> = x.wire.iter().map(|(_, packet)| packet.clone()).collect();
    assert_eq!(steps.len(), 3, "a datagram, its cancellation, another datagram");
    let mut ends = orders(3).into_iter().map(|order| {
        let mut y = y.clone();
        for (at, copy) in order.iter().flat_map(|&at| [(at, 1), (at, 2)]) {
            let packet = steps[at].clone();
            let verdict = y.step(NicEvent::Packet { from: x.address(), packet });
            assert!(matches!(verdict, Verdict::Taken | Verdict::Stale), "{order:?}, copy {copy}");
        }
        assert_eq!(y.wire.len(), 1, "one answer to one cancellation, {order:?}");
        y.listen(b'w');
        assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'2'), "{order:?}");
        y.encoded()
    });
    let one = ends.next().expect("there is an order");
    assert!(ends.all(|other| other == one), "the way there leaves no trace");
}

#[test]
fn a_step_far_before_its_turn_is_the_peers_mistake() {
    let (x, mut y) = meet();
    let step = |seq| NicEvent::Packet {
        from: x.address(),
        packet: Packet::Datagram { seq, floor: 0, tries: 0, serial: 0, body: Exchange::Cancel },
    };
    let far = Guilt::Peer("a datagram step far before its turn");
    assert_eq!(y.step(step(8)), Verdict::Broken(far));
    for seq in (0..8).rev() {
        assert_eq!(y.step(step(seq)), Verdict::Taken);
    }
    assert_eq!(y.wire.len(), 8, "no more than one step may say");
}

#[test]
fn a_dead_node_ends_what_is_out_to_it_and_forgets_what_came_from_it() {
    let (mut x, mut y) = meet();
    y.post(AT_Y, b'y');
    carry(&mut y, &mut x);
    let mut z = Bench::new(9, Config::default(), super::super::Config::default());
    z.ask(Op::Bind { ep: AT_Z, to: x.address() });
    z.post(AT_Z, b'z');
    assert_eq!(x.step(NicEvent::Down { peer: y.address() }), Verdict::Stale, "nothing is out");
    x.listen(b'w');
    assert_eq!(x.read(DATAGRAMS), [], "the dead are met by nobody");
    assert_eq!(z.step(NicEvent::Down { peer: x.address() }), Verdict::Taken);
    assert_eq!(z.read(DATAGRAMS), ended(AT_Z, &x, PostState::Timeout));
    let (to, packet) = z.wire.remove(0);
    assert_eq!(z.step(NicEvent::Lost { to, packet }), Verdict::Stale);
    assert_eq!(z.wire, [], "nothing is repeated for the dead");
}

#[test]
fn a_datagram_ends_as_it_is_told_whatever_the_peer_sees() {
    let ends = [
        (Fault::EndTimeout, PostState::Timeout),
        (Fault::EndTerminated, PostState::Terminated),
        (Fault::EndError, PostState::Error),
    ];
    for (fault, state) in ends {
        let (mut x, mut y) = meet();
        y.listen(b'w');
        x.arm(fault);
        x.post(AT_X, b'x');
        settle(&mut x, &mut y);
        assert_eq!(x.read(DATAGRAMS), ended(AT_X, &y, state), "{fault:?}");
        assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'x'), "{fault:?}");
        x.post(AT_X, b'2');
        y.listen(b'v');
        settle(&mut x, &mut y);
        assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'v'), "{fault:?} strikes once");
    }
}

#[test]
fn an_armed_refusal_strikes_once() {
    let faults = [
        (Fault::RefusePostSession, PostError::Session),
        (Fault::RefusePostMemory, PostError::Memory),
    ];
    for (fault, why) in faults {
        let (mut x, _) = meet();
        x.arm(fault);
        assert_eq!(x.post(AT_X, b'x'), refused(AT_X, why), "{fault:?}");
        assert_eq!((x.wire.len(), x.post(AT_X, b'x')), (0, vec![]), "{fault:?}");
    }
    let (mut x, _) = meet();
    x.arm(Fault::RefuseWildcard);
    let refusal = Completion::PostRefused { ep: None, why: PostError::Memory };
    assert_eq!((x.listen(b'w'), x.listen(b'w')), (vec![refusal], vec![]));
}

#[test]
fn a_held_completion_is_seen_late_and_holds_the_session() {
    let (mut x, mut y) = meet();
    y.listen(b'w');
    x.arm(Fault::HoldDatagram);
    x.post(AT_X, b'x');
    settle(&mut x, &mut y);
    assert_eq!((x.read(DATAGRAMS), y.read(DATAGRAMS).len()), (vec![], 1));
    assert_eq!(x.post(AT_X, b'2'), refused(AT_X, PostError::Session));
    assert_eq!(x.nic.next_deadline(), Some(Time(Config::default().hold_for)));
    x.expire();
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'w'));
}

#[test]
fn the_two_completions_of_a_match_come_after_the_delay_of_each() {
    let config = Config { datagram_delay: 5, ..Config::default() };
    let (mut x, mut y) = meet_with(config, Default::default());
    y.listen(b'w');
    x.post(AT_X, b'x');
    (x.now, y.now) = (Time(20), Time(10));
    settle(&mut x, &mut y);
    assert_eq!((x.nic.next_deadline(), y.nic.next_deadline()), (Some(Time(25)), Some(Time(15))));
    assert_eq!(y.read(DATAGRAMS), []);
    y.expire();
    assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'x'));
}

#[test]
fn a_deaf_wildcard_meets_who_waits_when_it_hears_again() {
    let (mut x, mut y) = meet();
    y.arm(Fault::DeafWildcard);
    y.listen(b'w');
    x.post(AT_X, b'x');
    settle(&mut x, &mut y);
    y.now = Time(9);
    y.arm(Fault::DeafWildcard);
    assert_eq!(y.nic.next_deadline(), Some(Time(9 + Config::default().hold_for)), "again");
    assert_eq!(y.read(DATAGRAMS), []);
    y.expire();
    settle(&mut x, &mut y);
    assert_eq!(y.read(DATAGRAMS), completed(None, &x, b'x'));
    assert_eq!(x.read(DATAGRAMS), completed(Some(AT_X), &y, b'w'));
}

mod remote;
mod smsg;

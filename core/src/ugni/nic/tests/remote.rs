//! Remote memory, with requests and replies carried by hand.

use super::*;
use crate::id::RegionId;
use crate::rma::{Amo, Does, Width};
use crate::ugni::access::{End, Refusal};

const HERE: RegionId = RegionId(1);
const THERE: RegionId = RegionId(2);

const fn here(offset: u32) -> Place {
    Place { region: HERE, offset }
}

const fn there(offset: u32) -> Place {
    Place { region: THERE, offset }
}

/// X with memory of its own, and Y with memory for X.
fn two(aries: u64) -> (Bench, Bench) {
    let config = Config { aries, ..Config::default() };
    let library = super::super::super::Config::default();
    let mut x = Bench::new(1, config, library);
    let mut y = Bench::new(2, config, library);
    let ok = [Completion::MemRegistered { ok: true }];
    assert_eq!(x.ask(Op::MemRegister { region: HERE, len: 64 }), ok);
    assert_eq!(y.ask(Op::MemRegister { region: THERE, len: 64 }), ok);
    (x, y)
}

fn put(to: &Bench, id: u32, offset: u32, len: u32) -> Op {
    let (to, engine) = (to.address(), Engine::Fma);
    Op::Put { to, id, local: here(0), remote: there(offset), len, engine }
}

fn get(to: &Bench, id: u32, local: Place, remote: Place, len: u32) -> Op {
    Op::Get { to: to.address(), id, local, remote, len, engine: Engine::Bte }
}

fn atomic(to: &Bench, id: u32, amo: Amo, offset: u32) -> Op {
    Op::Atomic { to: to.address(), id, amo, remote: there(offset), operand: 3, second: 0 }
}

const ADD: Amo = Amo::new(Does::Add, Width::Eight, true);

fn done(id: u32, end: End) -> [Completion; 1] {
    [Completion::RdmaDone { id, end, found: 0 }]
}

fn refused(id: u32, why: Refusal) -> [Completion; 1] {
    [Completion::RdmaRefused { id, why }]
}

#[test]
fn a_put_is_written_there_and_a_get_here() {
    let (mut x, mut y) = two(0);
    assert_eq!(x.ask(put(&y, 7, 8, 16)), []);
    assert_eq!(Nic::payload(&x.wire[0].1), Some((here(0), 16)), "its bytes go with the request");
    settle(&mut x, &mut y);
    assert_eq!((&y.stored[..], x.read(RDMA)), (&[(there(8), 16)][..], done(7, End::Done).into()));

    assert_eq!(x.ask(get(&y, 8, here(4), there(8), 16)), []);
    assert_eq!(Nic::payload(&x.wire[0].1), None);
    carry(&mut x, &mut y);
    assert_eq!(Nic::payload(&y.wire[0].1), Some((there(8), 16)), "those of a get with the reply");
    settle(&mut x, &mut y);
    assert_eq!((x.read(RDMA), &x.stored[..]), (done(8, End::Done).into(), &[(here(4), 16)][..]));
}

#[test]
fn an_atomic_is_done_by_the_driver_and_brings_what_it_found() {
    let (mut x, mut y) = two(0);
    assert_eq!(x.ask(atomic(&y, 1, ADD, 8)), []);
    carry(&mut x, &mut y);
    assert!(y.modifies && y.wire.is_empty());
    assert_eq!(y.step(NicEvent::Modified { found: 40 }), Verdict::Taken);
    settle(&mut x, &mut y);
    let expected = Completion::RdmaDone { id: 1, end: End::Done, found: 40 };
    assert_eq!(x.read(RDMA), [expected]);
    assert!(matches!(y.step(NicEvent::Modified { found: 40 }), Verdict::Broken(_)));
}

/// What each chip takes and what it does not.
#[test]
fn posts_are_refused_for_what_the_chip_cannot_do() {
    let cas = |width, fetches| Amo::new(Does::CompareSwap, width, fetches);
    for (op, gemini, aries) in [
        (get(&two(0).1, 1, here(4), there(8), 16), None, None),
        (get(&two(0).1, 1, here(2), there(8), 16), Some(Refusal::Alignment), None),
        (
            get(&two(0).1, 1, here(4), there(2), 16),
            Some(Refusal::Alignment),
            Some(Refusal::Alignment),
        ),
        (
            get(&two(0).1, 1, here(4), there(8), 15),
            Some(Refusal::Alignment),
            Some(Refusal::Alignment),
        ),
        (
            get(&two(0).1, 1, here(4), there(8), 0),
            Some(Refusal::Alignment),
            Some(Refusal::Alignment),
        ),
        (
            get(&two(0).1, 1, here(60), there(8), 8),
            Some(Refusal::Permission),
            Some(Refusal::Permission),
        ),
        (put(&two(0).1, 1, 0, 0), None, None),
        (atomic(&two(0).1, 1, ADD, 4), Some(Refusal::Alignment), Some(Refusal::Alignment)),
        (
            atomic(&two(0).1, 1, Amo::new(Does::Add, Width::Four, true), 4),
            Some(Refusal::Illegal),
            None,
        ),
        (
            atomic(&two(0).1, 1, Amo::new(Does::Min, Width::Eight, true), 8),
            Some(Refusal::Illegal),
            None,
        ),
        (atomic(&two(0).1, 1, cas(Width::Eight, false), 8), None, None),
        (
            atomic(&two(0).1, 1, cas(Width::Four, false), 8),
            Some(Refusal::Illegal),
            Some(Refusal::Illegal),
        ),
        (atomic(&two(0).1, 1, cas(Width::Four, true), 8), Some(Refusal::Illegal), None),
    ] {
        for (chip, why) in [(0, gemini), (1, aries)] {
            let (mut x, _) = two(chip);
            let expected: Vec<_> = why.map(|why| refused(1, why)).into_iter().flatten().collect();
            assert_eq!(x.ask(op.clone()), expected, "{chip} {op:?}");
        }
    }
}

#[test]
fn memory_that_is_not_registered_is_not_touched() {
    let (mut x, mut y) = two(0);
    for (id, op) in [
        put(&y, 0, 60, 8),
        get(&y, 1, here(0), there(64), 4),
        atomic(&y, 2, ADD, 64),
        get(&y, 3, here(0), Place { region: HERE, offset: 0 }, 4),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(x.ask(op), []);
        settle(&mut x, &mut y);
        assert_eq!(x.read(RDMA), done(id as u32, End::Denied));
    }
    assert!(x.stored.is_empty() && y.stored.is_empty() && !y.modifies);
    // What was deregistered meanwhile is not written to either.
    assert_eq!(x.ask(get(&y, 4, here(0), there(0), 4)), []);
    assert_eq!(x.ask(Op::MemDeregister { region: HERE }), []);
    settle(&mut x, &mut y);
    assert_eq!((x.read(RDMA), x.stored.len()), (done(4, End::Fatal).into(), 0));
}

#[test]
fn a_copy_of_a_request_changes_nothing() {
    let (mut x, mut y) = two(0);
    x.ask(put(&y, 0, 0, 8));
    let (_, first) = x.wire[0].clone();
    settle(&mut x, &mut y);
    assert_eq!(x.read(RDMA), done(0, End::Done));
    // It came twice; and again after the next one, which may have overwritten it.
    for _ in 0..2 {
        let (from, packet) = (x.address(), first.clone());
        assert_eq!(y.step(NicEvent::Packet { from, packet }), Verdict::Stale);
        x.ask(put(&y, 1, 0, 8));
        settle(&mut x, &mut y);
        assert_eq!(x.read(RDMA), done(1, End::Done));
    }
    assert_eq!(y.stored.len(), 3, "one each");
    // A reply that comes twice is nobody's.
    x.ask(put(&y, 2, 0, 8));
    carry(&mut x, &mut y);
    let (from, packet) = (y.address(), y.wire[0].1.clone());
    settle(&mut x, &mut y);
    assert_eq!(x.step(NicEvent::Packet { from, packet }), Verdict::Stale);
}

#[test]
fn what_is_lost_is_sent_again_and_ends_in_an_error_that_passes() {
    let (mut x, mut y) = two(0);
    x.ask(put(&y, 0, 0, 8));
    assert_eq!(x.lose_all(), 1 + Config::default().transaction_retries);
    assert_eq!(x.read(RDMA), done(0, End::Recoverable));
    // A reply is repeated until it is through, and the request is not done again.
    x.ask(put(&y, 1, 0, 8));
    carry(&mut x, &mut y);
    (0..9).for_each(|_| y.lose());
    settle(&mut x, &mut y);
    assert_eq!((x.read(RDMA), y.stored.len()), (done(1, End::Done).into(), 1));
}

#[test]
fn faults_strike_before_or_after_the_deed() {
    for (fault, end, deeds) in [
        (Fault::RdmaError, End::Recoverable, 0),
        (Fault::RdmaErrorLate, End::Recoverable, 1),
        (Fault::RdmaFatal, End::Fatal, 0),
        (Fault::RdmaFatalLate, End::Fatal, 1),
    ] {
        let (mut x, mut y) = two(0);
        x.arm(fault);
        assert_eq!(x.ask(put(&y, 0, 0, 8)), []);
        settle(&mut x, &mut y);
        assert_eq!((x.read(RDMA), y.stored.len()), (done(0, end).into(), deeds), "{fault:?}");
        // A get that ends so has not written here.
        x.arm(fault);
        assert_eq!(x.ask(get(&y, 1, here(0), there(0), 8)), []);
        settle(&mut x, &mut y);
        assert_eq!((x.read(RDMA), x.stored.len()), (done(1, end).into(), 0), "{fault:?}");
    }
    let (mut x, y) = two(0);
    x.arm(Fault::RefuseRdma);
    assert_eq!(x.ask(put(&y, 0, 0, 8)), refused(0, Refusal::Resource));
    x.arm(Fault::RefuseMemory);
    let no = [Completion::MemRegistered { ok: false }];
    assert_eq!(x.ask(Op::MemRegister { region: THERE, len: 8 }), no);
}

#[test]
fn the_death_of_a_peer_ends_what_it_was_asked() {
    let (mut x, y) = two(0);
    x.ask(put(&y, 0, 0, 8));
    let peer = y.address();
    let _ = x.step(NicEvent::Down { peer });
    assert_eq!(x.read(RDMA), done(0, End::Gone));
    let (to, packet) = x.wire.remove(0);
    assert_eq!(x.step(NicEvent::Lost { to, packet }), Verdict::Stale);
}

#[test]
fn an_interrupt_is_raised_once_and_seen_once() {
    let (mut x, mut y) = two(0);
    let wake = |id| Op::Wake { to: y.address(), id };
    let (first, second, third) = (wake(0), wake(1), wake(2));
    x.ask(first);
    x.ask(second);
    settle(&mut x, &mut y);
    assert_eq!(y.read(INTERRUPTS), [Completion::Interrupt]);
    assert_eq!(x.read(RDMA).len(), 2);
    x.arm(Fault::LoseInterrupt);
    x.ask(third);
    settle(&mut x, &mut y);
    assert_eq!((y.read(INTERRUPTS), x.read(RDMA)), (vec![], done(2, End::Done).into()));
}

#[test]
fn descriptors_are_counted_with_those_of_the_mailboxes() {
    let config = Config { mdds: 2, ..Config::default() };
    let mut x = Bench::new(1, config, super::super::super::Config::default());
    let register = |region| Op::MemRegister { region, len: 8 };
    let [yes, no] = [true, false].map(|ok| [Completion::MemRegistered { ok }]);
    assert_eq!(
        x.ask(Op::Register { slab: 0, mailboxes: 1 }),
        [Completion::Registered { ok: true }]
    );
    assert_eq!(x.ask(register(HERE)), yes);
    assert_eq!(x.ask(register(THERE)), no);
    assert_eq!(x.ask(Op::MemDeregister { region: HERE }), []);
    assert_eq!(x.ask(register(THERE)), yes);
    assert!(matches!(x.step(NicEvent::Op(Op::MemDeregister { region: HERE })), Verdict::Broken(_)));
}

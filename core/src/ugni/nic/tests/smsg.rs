//! Mailboxes, credits and queues, with messages carried by hand.

use super::*;
use crate::id::RegionId;

// ---- mailboxes ---------------------------------------------------------------------------

#[test]
fn messages_are_read_in_the_order_of_their_slots() {
    for order in orders(3) {
        let (mut x, mut y) = link();
        (0..3).for_each(|seq| assert_eq!(x.send(AT_X, seq), []));
        let packets: Vec<_> = x.wire.drain(..).map(|(_, packet)| packet).collect();
        let mut got = Vec::new();
        for &at in &order {
            assert_eq!(y.take(&mut x, packets[at].clone()), Verdict::Taken);
            got.extend(y.receive(AT_Y));
        }
        assert_eq!(got, [text(0), text(1), text(2)], "{order:?}");
        assert_eq!(y.read(REMOTE), vec![arrival(AT_Y); 3], "an event a message, {order:?}");
        let ends: Vec<_> = order.iter().map(|&seq| done(AT_X, seq as u32, true)).collect();
        assert_eq!(x.read(LOCAL), ends);
    }
}

#[test]
fn a_message_stays_until_it_is_released() {
    let (mut x, mut y) = link();
    x.send(AT_X, 0);
    carry(&mut x, &mut y);
    for _ in 0..2 {
        let message = Completion::Message { ep: AT_Y, content: text(0), len: 0 };
        assert_eq!(y.ask(Op::Next { ep: AT_Y }), [message]);
    }
    y.ask(Op::Release { ep: AT_Y });
    assert_eq!(y.ask(Op::Next { ep: AT_Y }), [Completion::Empty { ep: AT_Y }]);
    let early = Guilt::Owner("a release without a message");
    assert_eq!(y.step(NicEvent::Op(Op::Release { ep: AT_Y })), Verdict::Broken(early));
}

#[test]
fn a_second_copy_of_a_message_is_not_read_again() {
    let (mut x, mut y) = link();
    x.send(AT_X, 0);
    let (_, packet) = x.wire[0].clone();
    carry(&mut x, &mut y);
    let copy = || NicEvent::Packet { from: x.address(), packet: packet.clone() };
    assert_eq!(y.step(copy()), Verdict::Taken, "unread, it is the same once more");
    assert_eq!(y.receive(AT_Y), [text(0)]);
    assert_eq!(y.step(copy()), Verdict::Stale, "its slot has been read");
    assert_eq!(y.receive(AT_Y), []);
}

#[test]
fn what_lands_outside_of_a_mailbox_is_refused_and_its_sender_told() {
    let unarmed = "a message for memory that is not a mailbox";
    let beyond = "a message beyond the end of the mailbox";
    let cases = [(BOX, 4, Some(beyond)), (BOX, 3, None), (MboxId(1), 0, Some(unarmed))];
    let cases = cases.into_iter().chain([(MboxId(2), 0, Some(unarmed))]);
    for (remote, seq, rule) in cases {
        let (mut x, mut y) = link_with(Config::default(), small(4, 8, 8));
        x.ask(Op::Init { ep: AT_X, local: MboxId(1), remote, index: AT_Y.0 });
        x.send(AT_X, seq);
        let (_, packet) = x.wire.remove(0);
        let verdict = rule.map_or(Verdict::Taken, |rule| Verdict::Broken(Guilt::Peer(rule)));
        assert_eq!(y.take(&mut x, packet), verdict, "{remote:?} {seq}");
        assert_eq!(x.read(LOCAL), [done(AT_X, seq, rule.is_none())]);
        assert_eq!(y.read(REMOTE).len(), usize::from(rule.is_none()));
    }
}

#[test]
fn arming_empties_a_mailbox_and_starts_it_anew() {
    let (mut x, mut y) = link();
    (0..2).for_each(|seq| assert_eq!(x.send(AT_X, seq), []));
    carry(&mut x, &mut y);
    y.ask(Op::Arm { mbox: BOX });
    assert_eq!(y.receive(AT_Y), []);
    x.send(AT_X, 0);
    carry(&mut x, &mut y);
    assert_eq!(y.receive(AT_Y), [text(0)]);
    let nowhere = Guilt::Owner("a mailbox that is not registered");
    assert_eq!(y.step(NicEvent::Op(Op::Arm { mbox: MboxId(2) })), Verdict::Broken(nowhere));
}

/// The hazard that mailboxes rest for: memory does not know whose turn it is to write.
#[test]
fn a_peer_that_still_knows_the_mailbox_writes_into_it() {
    let (mut z, mut y) = link();
    z.send(AT_X, 0);
    // Meanwhile Y has unbound Z, and lent the mailbox to X.
    y.ask(Op::Unbind { ep: AT_Y });
    let mut x = Bench::new(9, Config::default(), Default::default());
    y.ask(Op::Arm { mbox: BOX });
    y.ask(Op::Bind { ep: EpId(3), to: x.address() });
    y.ask(Op::Init { ep: EpId(3), local: BOX, remote: BOX, index: AT_Z.0 });
    carry(&mut z, &mut y);
    assert_eq!(y.read(REMOTE), [arrival(AT_Y)], "for the endpoint that Z was told");
    assert_eq!(y.receive(EpId(3)), [text(0)], "as if X had sent it");
    x.ask(Op::Bind { ep: AT_Z, to: y.address() });
}

#[test]
fn mailboxes_are_set_up_only_where_both_ends_can_be() {
    let (mut x, _) = meet();
    let init = |ep, local| Op::Init { ep, local, remote: BOX, index: 0 };
    let no = |ep| vec![Completion::SetupRefused { ep }];
    x.ask(Op::Register { slab: 0, mailboxes: 1 });
    assert_eq!(x.ask(init(AT_X, BOX)), no(AT_X), "its memory may hold anything");
    x.ask(Op::Arm { mbox: BOX });
    assert_eq!(x.ask(init(EpId(3), BOX)), no(EpId(3)), "bound to nobody");
    assert_eq!(x.ask(init(AT_X, MboxId(1))), no(AT_X), "not registered");
    x.arm(Fault::RefuseSetup);
    assert_eq!(x.ask(init(AT_X, BOX)), no(AT_X));
    assert_eq!(x.ask(init(AT_X, BOX)), []);
}

#[test]
fn slabs_are_registered_until_none_is_left() {
    let config = Config { mdds: 1, ..Config::default() };
    let (mut x, _) = meet_with(config, Default::default());
    let mut register = || x.ask(Op::Register { slab: 0, mailboxes: 1 });
    assert_eq!(register(), [Completion::Registered { ok: true }]);
    assert_eq!(register(), [Completion::Registered { ok: false }]);
    let (mut x, _) = meet();
    x.arm(Fault::RefuseRegister);
    let mut register = || x.ask(Op::Register { slab: 0, mailboxes: 1 });
    assert_eq!(register(), [Completion::Registered { ok: false }]);
    assert_eq!(register(), [Completion::Registered { ok: true }]);
}

// ---- sends -------------------------------------------------------------------------------

#[test]
fn a_refusal_sticks_to_its_epoch() {
    let (mut x, _) = link();
    let send = |seq, epoch| Op::Send { ep: AT_X, seq, epoch, content: text(seq), len: 0 };
    let no = |seq, epoch| vec![Completion::Refused { ep: AT_X, seq, epoch }];
    assert_eq!(x.ask(send(0, 0)), []);
    x.arm(Fault::RefuseSend);
    assert_eq!(x.ask(send(1, 0)), no(1, 0));
    assert_eq!(x.ask(send(2, 0)), no(2, 0), "or it would overtake the one before");
    assert_eq!(x.ask(send(1, 1)), []);
    assert_eq!(x.wire.len(), 2);
}

#[test]
fn a_send_on_an_endpoint_that_is_not_set_up_is_refused() {
    let (mut x, _) = meet();
    let refusal = Completion::Refused { ep: AT_X, seq: 0, epoch: 0 };
    assert_eq!((x.send(AT_X, 0), x.wire.len()), (vec![refusal], 0));
    assert_eq!(x.ask(Op::Unbind { ep: AT_X }), [Completion::Unbound { ep: AT_X }]);
}

#[test]
fn a_failed_send_leaves_nothing_on_the_wire() {
    let (mut x, _) = link();
    x.arm(Fault::FailSend);
    x.send(AT_X, 0);
    assert_eq!((x.wire.len(), x.read(LOCAL)), (0, vec![done(AT_X, 0, false)]));
    x.send(AT_X, 1);
    assert_eq!((x.wire.len(), x.read(LOCAL)), (1, vec![]));
}

#[test]
fn a_lost_message_is_repeated_and_at_last_given_up() {
    let library = super::super::super::Config { smsg_retries: 2, ..Default::default() };
    for (losses, gets_through) in [(2, true), (3, false)] {
        let (mut x, mut y) = link_with(Config::default(), library);
        x.send(AT_X, 0);
        (0..losses).for_each(|_| x.lose());
        carry(&mut x, &mut y);
        assert_eq!(x.read(LOCAL), [done(AT_X, 0, gets_through)]);
        assert_eq!(y.receive(AT_Y).len(), usize::from(gets_through));
    }
}

// ---- credits -----------------------------------------------------------------------------

/// X sends, Y reads, `n` messages from slot `from` on; what then is on the wire of Y.
fn stream(x: &mut Bench, y: &mut Bench, from: u32, n: u32) -> Vec<u16> {
    for seq in from..from + n {
        x.send(AT_X, seq);
        carry(x, y);
        assert_eq!(y.receive(AT_Y), [text(seq)]);
    }
    let credits = y.wire.iter().map(|(_, packet)| {
        let Packet::Credit { freed, .. } = packet else { panic!("not a credit: {packet:?}") };
        *freed
    });
    credits.collect()
}

#[test]
fn credits_come_back_in_batches_of_at_most_half_a_mailbox() {
    for (batch, slots, returned) in [(1, 8, 1), (3, 8, 3), (8, 8, 4), (8, 2, 1), (8, 3, 1)] {
        let config = Config { credit_batch: batch, ..Config::default() };
        let (mut x, mut y) = link_with(config, small(slots, 64, 64));
        let n = u32::from(returned);
        assert_eq!(stream(&mut x, &mut y, 0, n - 1), [], "{batch} {slots}");
        assert_eq!(stream(&mut x, &mut y, n - 1, 1), [returned], "{batch} {slots}");
        carry(&mut y, &mut x);
        assert_eq!(x.read(CREDITS), [Completion::Credits { ep: AT_X, n: returned }]);
        assert_eq!(x.read(REMOTE), [], "they raise no event unless told so");
    }
}

#[test]
fn credits_that_come_in_turn_are_read_as_one() {
    let config = Config { credit_batch: 1, credit_event: 1, ..Config::default() };
    let (mut x, mut y) = link_with(config, Default::default());
    assert_eq!(stream(&mut x, &mut y, 0, 2), [1, 2], "returns count from the beginning");
    carry(&mut y, &mut x);
    assert_eq!(x.read(CREDITS), [Completion::Credits { ep: AT_X, n: 2 }]);
    assert_eq!(x.read(REMOTE), vec![arrival(AT_X); 2], "with no message behind them");
    assert_eq!(x.receive(AT_X), []);
}

#[test]
fn a_credit_return_waits_for_an_entry_that_only_the_host_can_free() {
    let config = Config { credit_batch: 1, ..Config::default() };
    let (mut x, mut y) = link_with(config, small(32, 4, 64));
    // Returns that nobody polls for fill the local queue of Y; then they stop.
    assert_eq!(stream(&mut x, &mut y, 0, 4), [1, 2, 3, 4]);
    x.read(LOCAL);
    assert_eq!(stream(&mut x, &mut y, 4, 3), [1, 2, 3, 4]);
    assert_eq!(y.step(NicEvent::Poll { queue: LOCAL }), Verdict::Taken);
    assert_eq!(y.said, [], "the host never sees them");
    assert_eq!(stream(&mut x, &mut y, 7, 0), [1, 2, 3, 4, 7], "what waited goes at once");
}

#[test]
fn held_credits_stay_until_their_time() {
    let config = Config { credit_batch: 2, ..Config::default() };
    let (mut x, mut y) = link_with(config, Default::default());
    y.arm(Fault::HoldCredits);
    assert_eq!(stream(&mut x, &mut y, 0, 2), []);
    assert_eq!(stream(&mut x, &mut y, 2, 3), [], "nor do others free them");
    y.expire();
    assert_eq!(stream(&mut x, &mut y, 5, 0), [5]);
    assert_eq!(stream(&mut x, &mut y, 5, 2), [5, 7]);
}

#[test]
fn a_credit_return_that_comes_twice_or_late_adds_nothing() {
    let (mut x, y) = link();
    let credit = |freed| {
        let packet = Packet::Credit { ep: AT_X, mbox: BOX, freed, tries: 0 };
        NicEvent::Packet { from: y.address(), packet }
    };
    let verdicts = [3, 3, 1, 5].map(|freed| x.step(credit(freed)));
    assert_eq!(verdicts, [Verdict::Taken, Verdict::Stale, Verdict::Stale, Verdict::Taken]);
    assert_eq!(x.read(CREDITS), [Completion::Credits { ep: AT_X, n: 5 }]);
}

#[test]
fn credit_returns_leave_the_entries_that_sends_count_on() {
    let config = Config { credit_batch: 1, ..Config::default() };
    let library = crate::ugni::Config { local_cq_reserve: 2, ..small(32, 8, 64) };
    let (mut x, mut y) = link_with(config, library);
    assert_eq!(stream(&mut x, &mut y, 0, 5), [1, 2], "the others wait for the host");
    y.read(LOCAL);
    assert_eq!(stream(&mut x, &mut y, 5, 0), [1, 2, 5]);
}

#[test]
fn late_credits_of_an_older_mailbox_are_ignored() {
    let (mut x, y) = link();
    x.ask(Op::Unbind { ep: AT_X });
    x.ask(Op::Bind { ep: AT_X, to: y.address() });
    x.ask(Op::Init { ep: AT_X, local: MboxId(1), remote: MboxId(5), index: AT_Y.0 });
    let credit = |from, mbox| {
        let packet = Packet::Credit { ep: AT_X, mbox, freed: 1, tries: 0 };
        NicEvent::Packet { from, packet }
    };
    assert_eq!(x.step(credit(y.address(), BOX)), Verdict::Stale, "of the mailbox before");
    assert_eq!(x.step(credit(x.address(), MboxId(5))), Verdict::Stale, "of somebody else");
    assert_eq!(x.read(CREDITS), []);
    assert_eq!(x.step(credit(y.address(), MboxId(5))), Verdict::Taken);
    assert_eq!(x.read(CREDITS), [Completion::Credits { ep: AT_X, n: 1 }]);
}

// ---- queues ------------------------------------------------------------------------------

#[test]
fn a_full_remote_queue_drops_the_newest_events_and_says_so_once() {
    let (mut x, mut y) = link_with(Config::default(), small(8, 8, 2));
    (0..4).for_each(|seq| assert_eq!(x.send(AT_X, seq), []));
    carry(&mut x, &mut y);
    let survivors = [Completion::RemoteOverrun, arrival(AT_Y), arrival(AT_Y)];
    assert_eq!(y.read(REMOTE), survivors);
    assert_eq!(y.receive(AT_Y).len(), 4, "no message is lost");
    x.send(AT_X, 4);
    carry(&mut x, &mut y);
    assert_eq!(y.read(REMOTE), [arrival(AT_Y)]);
}

#[test]
fn a_remote_overrun_can_be_had_for_the_asking() {
    let (mut x, mut y) = link();
    y.arm(Fault::RemoteOverrun);
    (0..2).for_each(|seq| assert_eq!(x.send(AT_X, seq), []));
    carry(&mut x, &mut y);
    assert_eq!(y.read(REMOTE), [Completion::RemoteOverrun, arrival(AT_Y)]);
}

#[test]
fn a_local_overrun_loses_a_completion_and_says_so_once() {
    for (armed, entries) in [(true, 8), (false, 4)] {
        let (mut x, mut y) = link_with(Config::default(), small(8, entries, 8));
        if armed {
            x.arm(Fault::LocalOverrun);
        }
        (0..5).for_each(|seq| assert_eq!(x.send(AT_X, seq), []));
        carry(&mut x, &mut y);
        let survivors = if armed { 1..5 } else { 0..4 };
        let mut said = vec![Completion::LocalOverrun];
        said.extend(survivors.map(|seq| done(AT_X, seq, true)));
        assert_eq!(x.read(LOCAL), said);
    }
}

#[test]
fn an_early_event_runs_ahead_of_its_message() {
    for again in [0, 1] {
        let config = Config { announce_again: again, ..Config::default() };
        let (mut x, mut y) = link_with(config, Default::default());
        y.arm(Fault::EarlyEvent);
        x.send(AT_X, 0);
        carry(&mut x, &mut y);
        assert_eq!((y.read(REMOTE), y.receive(AT_Y)), (vec![arrival(AT_Y)], vec![]));
        assert_eq!(y.nic.next_deadline(), Some(Time(config.early_by)));
        y.expire();
        assert_eq!(y.read(REMOTE), vec![arrival(AT_Y); again as usize]);
        assert_eq!(y.receive(AT_Y), [text(0)]);
    }
}

#[test]
fn a_message_behind_its_event_is_dropped_if_a_copy_was_read_before() {
    let (mut x, mut y) = link();
    y.arm(Fault::EarlyEvent);
    x.send(AT_X, 0);
    let (_, packet) = x.wire[0].clone();
    carry(&mut x, &mut y);
    let copy = NicEvent::Packet { from: x.address(), packet };
    assert_eq!(y.step(copy), Verdict::Taken);
    assert_eq!((y.read(REMOTE).len(), y.receive(AT_Y)), (2, vec![text(0)]));
    y.expire();
    assert_eq!((y.read(REMOTE), y.receive(AT_Y)), (vec![], vec![]));
    assert_eq!(y.nic.unread.used(), 0, "nothing is left in the mailbox");
}

#[test]
fn a_duplicate_event_has_one_message_behind_it() {
    let (mut x, mut y) = link();
    y.arm(Fault::DuplicateEvent);
    x.send(AT_X, 0);
    carry(&mut x, &mut y);
    assert_eq!(y.read(REMOTE), vec![arrival(AT_Y); 2]);
    assert_eq!(y.receive(AT_Y), [text(0)]);
}

#[test]
fn there_are_four_queues() {
    let (mut x, _) = meet();
    let none = Guilt::Owner("no such queue");
    assert_eq!(x.step(NicEvent::Poll { queue: Nic::QUEUES }), Verdict::Broken(none));
    assert!(!x.nic.any_ready() && !x.nic.ready(Nic::QUEUES));
}

// ---- endpoints and states ----------------------------------------------------------------

#[test]
fn an_endpoint_is_busy_while_anything_is_outstanding_on_it() {
    let unbind = || Op::Unbind { ep: AT_X };
    let (busy, free) = ([Completion::UnbindBusy { ep: AT_X }], [Completion::Unbound { ep: AT_X }]);
    // A send.
    let (mut x, mut y) = link();
    x.send(AT_X, 0);
    assert_eq!(x.ask(unbind()), busy);
    carry(&mut x, &mut y);
    assert_eq!(x.ask(unbind()), free);
    // A datagram.
    let (mut x, mut y) = meet();
    x.post(AT_X, b'x');
    assert_eq!(x.ask(unbind()), busy);
    x.ask(Op::Cancel { ep: AT_X });
    settle(&mut x, &mut y);
    assert_eq!(x.ask(unbind()), free);
    // Nothing, but the device says so.
    let (mut x, _) = meet();
    x.arm(Fault::BusyUnbind);
    assert_eq!(x.ask(unbind()), busy);
    assert_eq!(x.ask(unbind()), free);
}

#[test]
fn an_unbound_endpoint_owes_nothing_to_its_next_connection() {
    let config = Config { credit_batch: 1, ..Config::default() };
    let (mut x, mut y) = link_with(config, small(32, 4, 64));
    y.arm(Fault::HoldCredits);
    stream(&mut x, &mut y, 0, 6);
    y.ask(Op::Unbind { ep: AT_Y });
    assert_eq!(y.nic.next_deadline(), None, "what was held is held for nobody");
    y.wire.clear();
    y.ask(Op::Arm { mbox: BOX });
    y.ask(Op::Bind { ep: AT_Y, to: x.address() });
    y.ask(Op::Init { ep: AT_Y, local: BOX, remote: MboxId(1), index: AT_X.0 });
    assert_eq!((y.read(LOCAL), y.wire.len()), (vec![], 0));
}

#[test]
fn states_that_differ_only_in_history_encode_alike() {
    // Messages that came in another order lie in other places of the same memory.
    let (mut x, y) = link();
    (0..3).for_each(|seq| assert_eq!(x.send(AT_X, seq), []));
    let ends = orders(3).into_iter().map(|order| {
        let mut y = y.clone();
        for at in order {
            let packet = x.wire[at].1.clone();
            assert_eq!(y.step(NicEvent::Packet { from: x.address(), packet }), Verdict::Taken);
        }
        y.encoded()
    });
    let ends: Vec<_> = ends.collect();
    assert!(ends.iter().all(|end| *end == ends[0]) && ends[0] != y.encoded());
    // An endpoint that was used and is free again is as one that never was.
    let mut used = y.clone();
    used.ask(Op::Bind { ep: EpId(9), to: x.address() });
    assert_ne!(used.encoded(), y.encoded());
    used.ask(Op::Unbind { ep: EpId(9) });
    assert_eq!(used.encoded(), y.encoded());
    // A peer that died without a word is as one that never was.
    let stranger = Address { nic: 99, instance: 1 };
    assert_eq!(used.step(NicEvent::Down { peer: stranger }), Verdict::Stale);
    assert_eq!(used.encoded(), y.encoded());
}

#[test]
fn what_waits_for_its_time_is_encoded_by_time() {
    let (x, _) = meet();
    let puts = [(Time(5), Later::Hear), (Time(3), Later::Return(AT_X)), (Time(8), Later::Hear)];
    let ends = orders(3).into_iter().map(|order| {
        let mut x = x.clone();
        order.into_iter().for_each(|at| x.nic.put_off(puts[at].0, puts[at].1.clone()));
        assert_eq!(x.nic.next_deadline(), Some(Time(3)));
        x.encoded()
    });
    let ends: Vec<_> = ends.collect();
    assert!(ends.iter().all(|end| *end == ends[0]));
}

// ---- packets -----------------------------------------------------------------------------

#[test]
fn packets_take_whole_transactions_on_the_wire() {
    let smsg = |len| Packet::Smsg {
        mbox: BOX,
        index: 0,
        ep: AT_X,
        seq: 0,
        content: Content::Goodbye,
        len,
        tries: 0,
    };
    let credit = Packet::Credit { ep: AT_X, mbox: BOX, freed: 1, tries: 0 };
    let step = Packet::Datagram { seq: 0, floor: 0, tries: 0, serial: 0, body: Exchange::Cancel };
    let aries = Config { aries: 1, ..Config::default() };
    let sizes = [
        (&smsg(0), [96, 9], [84, 6]),
        (&smsg(48), [96, 9], [84, 6]),
        (&smsg(49), [192, 18], [168, 12]),
        (&credit, [96, 9], [84, 6]),
        (&step, [192, 18], [168, 12]),
    ];
    for (packet, on_gemini, on_aries) in sizes {
        for (config, bytes) in [(Config::default(), on_gemini), (aries, on_aries)] {
            let load = Nic::load(&config, packet);
            assert_eq!([load.wire, load.back], bytes, "{packet:?}");
        }
        assert_eq!(Nic::corrupted(packet, 0), None, "nothing here that software checks");
    }
}

#[test]
fn corruption_flips_one_bit_of_a_record() {
    let (mut x, _) = meet();
    x.post(AT_X, 0);
    let bit = 56 * 8 + 9;
    match Nic::corrupted(&x.wire[0].1, bit) {
        Some(Packet::Datagram { body: Exchange::Directed(bent), .. }) => {
            let mut flipped = record(0);
            flipped.0[1] = 2;
            assert_eq!(bent, flipped);
        }
        other => panic!("not a bent datagram: {other:?}"),
    }
}

#[test]
fn every_fault_has_a_word_of_its_own_and_bears_on_some_op() {
    let ops = [
        Op::Register { slab: 0, mailboxes: 1 },
        Op::PostDirected { ep: AT_X, record: record(0) },
        Op::PostWildcard { record: record(0) },
        Op::Init { ep: AT_X, local: BOX, remote: BOX, index: 0 },
        Op::Send { ep: AT_X, seq: 0, epoch: 0, content: text(0), len: 0 },
        Op::Next { ep: AT_X },
        Op::Release { ep: AT_X },
        Op::Unbind { ep: AT_X },
        Op::MemRegister { region: RegionId(1), len: 8 },
        Op::Wake { to: Address::default(), id: 0 },
        Op::Put {
            to: Address::default(),
            id: 0,
            local: Place::default(),
            remote: Place::default(),
            len: 8,
            engine: Engine::Fma,
        },
    ];
    for (&fault, &word) in Fault::ALL.iter().zip(Fault::WORDS) {
        assert_eq!(fault.word(), word);
        assert_eq!(Fault::WORDS.iter().filter(|&&other| other == word).count(), 1, "{word}");
        let borne = ops.iter().filter(|op| Nic::bears_on(fault, op)).count();
        assert_eq!(borne, 1, "{word}");
    }
}

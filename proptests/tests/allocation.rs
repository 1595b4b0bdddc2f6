//! A message allocates nothing: neither when it is sent, nor when it waits, nor when it comes.

use selvedge_core::ugni::record::{Body, Peer, Record};
use selvedge_core::ugni::{
    self, Completion, Config, Content, Identity, MboxId, Module, Op, PostState,
};
use selvedge_core::{
    Address, Command, Effect, Effects, EpId, Event, FragId, Generation, Hold, Machine, Notice,
    Phase, ProcName, Tag, Time, Transport, Verdict,
};

const ME: ProcName = ProcName { job: 1, rank: 0 };
const PEER: ProcName = ProcName { job: 1, rank: 1 };
const EP: EpId = EpId(0);
const CREDITS: u16 = 8;

/// A module under our hands: we are its application and its device.
struct Bench {
    module: Module,
    fx: Effects<Effect<Op>>,
    clock: u64,
}

impl Bench {
    fn step(&mut self, event: Event<Completion>) {
        self.clock += 1;
        let verdict = self.module.step(Time(self.clock), event, &mut self.fx);
        assert_eq!(verdict, Verdict::Taken);
    }

    /// One event, and all that comes of it.
    fn expect(&mut self, event: Event<Completion>, effects: &[Effect<Op>]) {
        self.step(event);
        assert_eq!(self.fx.as_slice(), effects);
        drop(self.fx.drain());
    }

    /// One event, of whose effects only `op` matters.
    fn bring_up(&mut self, event: Event<Completion>, op: &str) {
        use selvedge_core::Named;
        self.step(event);
        let done = |effect: &Effect<Op>| matches!(effect, Effect::Op(done) if done.word() == op);
        assert!(self.fx.as_slice().iter().any(done), "{op}: {:?}", self.fx);
        drop(self.fx.drain());
    }

    /// A module with one connection that is up.
    fn connected() -> Bench {
        let me = Identity { name: ME, address: Address { nic: 0, instance: 0 }, incarnation: 1 };
        let module = Module::new(me, Config::default());
        let mut bench = Bench { module, fx: ugni::effects(), clock: 0 };
        let from = Address { nic: 1, instance: 1 };
        bench.bring_up(Event::Expired, "post-wildcard");
        bench.bring_up(Event::Command(Command::Connect { to: PEER }), "resolve");
        let said = |completion| Event::Completion(completion);
        bench.bring_up(said(Completion::Resolved { ep: EP, card: Ok(from) }), "register");
        bench.bring_up(said(Completion::Registered { ok: true }), "post-directed");
        let offer = Record {
            who: PEER,
            generation: Generation::born(1).next(),
            sees: Generation::NONE,
            over: Generation::NONE,
            body: Body::Offer(Peer { mbox: MboxId(7), index: 3, credits: CREDITS, size: 1_024 }),
        };
        let (ep, state, record) = (Some(EP), PostState::Completed, Some(offer.encode().into()));
        bench.bring_up(said(Completion::Datagram { ep, state, from, record }), "init");
        bench.expect(said(Completion::Empty { ep: EP }), &[]);
        assert_eq!(bench.module.phase(PEER), Phase::Ready);
        bench
    }

    fn send(&self, n: u32) -> Event<Completion> {
        let (frag, len, hold) = (FragId(n), 64, Hold::Copied);
        Event::Command(Command::Send { to: PEER, tag: Tag(1), frag, len, hold })
    }

    /// A message out, its completion, its credit; a message in, and its release.
    fn round(&mut self, n: u32) {
        let content = Content::User { tag: Tag(1), data: FragId(n) };
        let said = |completion| Event::Completion(completion);
        let op = |op| Effect::Op(op);
        let smsg = Op::Send { ep: EP, seq: n, epoch: 0, content, len: 64 };
        self.expect(self.send(n), &[op(smsg)]);
        let sent = Effect::Notice(Notice::Sent { frag: FragId(n) });
        self.expect(said(Completion::SendDone { ep: EP, seq: n, delivered: true }), &[sent]);
        self.expect(said(Completion::Credits { ep: EP, n: 1 }), &[]);
        self.expect(said(Completion::Arrival { index: EP.0 }), &[op(Op::Next { ep: EP })]);
        let (from, tag, data) = (PEER, Tag(1), FragId(n));
        let arrived = Notice::Arrived { from, tag, len: 64, data, at: None };
        self.expect(
            said(Completion::Message { ep: EP, content, len: 64 }),
            &[Effect::Notice(arrived), op(Op::Release { ep: EP }), op(Op::Next { ep: EP })],
        );
        self.expect(said(Completion::Empty { ep: EP }), &[]);
    }

    /// Twice as many messages as there are slots: half of them wait for credits.
    fn flood(&mut self, first: u32) {
        let many = 2 * u32::from(CREDITS - ugni::smsg::RESERVED);
        for n in first..first + many {
            self.step(self.send(n));
            drop(self.fx.drain());
        }
        for seq in first..first + many {
            self.step(Event::Completion(Completion::SendDone { ep: EP, seq, delivered: true }));
            drop(self.fx.drain());
            self.step(Event::Completion(Completion::Credits { ep: EP, n: 1 }));
            drop(self.fx.drain());
        }
        let credits = self.module.credits(PEER).expect("it is up");
        assert_eq!((credits.held(), credits.owed()), (CREDITS, 0));
        assert!(self.module.settled(), "everything was answered");
    }
}

#[test]
fn a_message_allocates_nothing() {
    let mut bench = Bench::connected();
    bench.round(0);
    let counted = allocation_counter::measure(|| (1..10_001).for_each(|n| bench.round(n)));
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
    assert_eq!(bench.module.check(), Ok(()));
}

#[test]
fn a_message_that_waits_allocates_nothing() {
    let mut bench = Bench::connected();
    bench.flood(0);
    let counted = allocation_counter::measure(|| (1..1_001).for_each(|n| bench.flood(n * 14)));
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
    assert_eq!(bench.module.check(), Ok(()));
}

/// The counter counts: a connection, which is no message, does allocate.
#[test]
fn a_connection_allocates() {
    let counted = allocation_counter::measure(|| drop(Bench::connected()));
    assert!(counted.count_total > 0);
}

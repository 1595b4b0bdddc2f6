//! A module alone, with a device that answers as each test wants it to.

use alloc::vec::Vec;

use super::super::access::{End, Engine, Refusal};
use super::super::{Completion, Config, Control, EFFECTS_MAX, Identity, Module, Op};
use crate::id::{EpId, FragId, ProcName, RegionId, Tag};
use crate::machine::{Command, Effect, Event, Machine, Notice, Reason, Transport, Verdict};
use crate::nic::Address;
use crate::rma::{Amo, Does, Place, Tail, Width};
use crate::sink::Effects;
use crate::time::Time;

const ME: ProcName = ProcName { job: 1, rank: 0 };
const PEER: ProcName = ProcName { job: 1, rank: 1 };
const THERE: Address = Address { nic: 9, instance: 9 };
const WINDOW: RegionId = RegionId(1);

struct Bench {
    module: Module,
    now: Time,
    ops: Vec<Op>,
    told: Vec<Notice>,
}

impl Bench {
    fn new(config: Config) -> Bench {
        let me = Identity { name: ME, address: Address { nic: 0, instance: 0 }, incarnation: 1 };
        let (ops, told) = (Vec::new(), Vec::new());
        let mut bench = Bench { module: Module::new(me, config), now: Time::ZERO, ops, told };
        bench.step(Event::Expired);
        assert!(matches!(bench.ops[..], [Op::PostWildcard { .. }]));
        bench.ops.clear();
        bench
    }

    /// One step, and the work that it leaves for at once.
    fn step(&mut self, event: Event<Completion>) {
        let mut event = Some(event);
        while let Some(this) = event.take() {
            let mut fx = Effects::new(EFFECTS_MAX);
            let verdict = self.module.step(self.now, this, &mut fx);
            assert!(matches!(verdict, Verdict::Taken | Verdict::Stale), "{verdict:?}");
            assert_eq!(self.module.check(), Ok(()));
            for effect in fx.drain() {
                match effect {
                    Effect::Op(op) => self.ops.push(op),
                    Effect::Notice(notice) => self.told.push(notice),
                }
            }
            let more = self.module.next_deadline() == Some(Time::ZERO);
            event = more.then_some(Event::Expired);
        }
    }

    fn ask(&mut self, command: Command) -> Vec<Op> {
        self.step(Event::Command(command));
        core::mem::take(&mut self.ops)
    }

    fn hear(&mut self, completion: Completion) -> Vec<Op> {
        self.step(Event::Completion(completion));
        core::mem::take(&mut self.ops)
    }

    fn told(&mut self) -> Vec<Notice> {
        core::mem::take(&mut self.told)
    }

    fn register(&mut self, region: u32, ok: bool) -> Vec<Notice> {
        let region = RegionId(region);
        let ops = self.ask(Command::Register { region, len: 64 });
        assert_eq!(ops, [Op::MemRegister { region, len: 64 }]);
        self.hear(Completion::MemRegistered { ok });
        self.told()
    }

    /// A put, and the address of its peer if the module asks for it.
    fn put(&mut self, frag: u32, len: u32) -> Vec<Op> {
        let (local, remote) = (at(0), at(8));
        let frag = FragId(frag);
        let ops = self.ask(Command::Put { to: PEER, frag, local, remote, len });
        if let [Op::Resolve { ep, .. }] = ops[..] {
            return self.hear(Completion::Resolved { ep, card: Ok(THERE) });
        }
        ops
    }

    fn done(&mut self, id: u32, end: End) -> Vec<Op> {
        self.hear(Completion::RdmaDone { id, end, found: 0 })
    }
}

const fn at(offset: u32) -> Place {
    Place { region: WINDOW, offset }
}

fn posted(id: u32, len: u32, engine: Engine) -> [Op; 1] {
    [Op::Put { to: THERE, id, local: at(0), remote: at(8), len, engine }]
}

fn failed(frag: u32, reason: Reason) -> Vec<Notice> {
    let (frag, phase) = (FragId(frag), crate::machine::Phase::Idle);
    alloc::vec![Notice::Failed { frag, peer: PEER, phase, reason }]
}

#[test]
fn an_operation_needs_an_address_and_no_connection() {
    let mut bench = Bench::new(Config::DEFAULT);
    assert_eq!(bench.put(5, 8), posted(0, 8, Engine::Fma));
    assert_eq!(bench.put(6, 8), posted(1, 8, Engine::Fma), "the address is known by now");
    assert!(!bench.module.settled());
    assert_eq!(bench.done(1, End::Done), []);
    assert_eq!(bench.done(0, End::Done), []);
    let done = |frag| Notice::Done { frag: FragId(frag), value: 0 };
    assert_eq!(bench.told(), [done(6), done(5)]);
    assert!(bench.module.settled() && bench.module.next_deadline().is_none());
    assert_eq!(bench.module.mailboxes.total(), 0, "nobody asked for a mailbox");
}

#[test]
fn nobody_where_no_address_is() {
    let mut bench = Bench::new(Config::DEFAULT);
    let (local, remote) = (at(0), at(8));
    for frag in [0, 1] {
        let frag = FragId(frag);
        bench.ask(Command::Put { to: PEER, frag, local, remote, len: 8 });
    }
    bench.hear(Completion::Resolved { ep: EpId(0), card: Err(Reason::NoAddress) });
    let expected = [failed(0, Reason::NoAddress), failed(1, Reason::NoAddress)].concat();
    assert_eq!(bench.told(), expected);
    // The next one asks anew.
    assert_eq!(bench.put(2, 8), posted(0, 8, Engine::Fma));
}

#[test]
fn an_address_that_does_not_come_is_asked_for_again_and_given_up() {
    let config = Config { connect_tries: 2, resolve_timeout: 100, ..Config::DEFAULT };
    let mut bench = Bench::new(config);
    let (local, remote) = (at(0), at(8));
    let ask = Op::Resolve { ep: EpId(0), peer: PEER };
    let put = Command::Put { to: PEER, frag: FragId(0), local, remote, len: 8 };
    assert_eq!(bench.ask(put), core::slice::from_ref(&ask));
    for until in [100, 200] {
        assert_eq!(bench.module.next_deadline(), Some(Time(until)));
        bench.now = Time(until);
        bench.step(Event::Expired);
        assert_eq!(core::mem::take(&mut bench.ops), core::slice::from_ref(&ask));
    }
    bench.now = Time(400);
    bench.step(Event::Expired);
    assert_eq!(bench.told(), failed(0, Reason::NoAddress));
}

#[test]
fn no_more_are_out_than_their_queue_has_entries() {
    let config = Config { rdma_cq: 3, bte_max: 1, fma_put_max: 8, ..Config::DEFAULT };
    let mut bench = Bench::new(config);
    bench.register(1, true);
    assert_eq!(bench.put(0, 16), posted(0, 16, Engine::Bte));
    assert_eq!(bench.put(1, 16), [], "one block at a time");
    assert_eq!(bench.put(2, 8), [], "in the order of the commands");
    assert_eq!(
        bench.done(0, End::Done),
        [posted(1, 16, Engine::Bte), posted(2, 8, Engine::Fma)].concat()
    );
    assert_eq!(bench.put(3, 8), posted(3, 8, Engine::Fma));
    assert_eq!(bench.put(4, 8), [], "three are out");
    assert_eq!(bench.done(2, End::Done), posted(4, 8, Engine::Fma));
}

#[test]
fn more_than_may_wait_are_failed_at_once() {
    let mut bench = Bench::new(Config { rdma_waiting_max: 1, ..Config::DEFAULT });
    let (local, remote) = (at(0), at(8));
    for frag in [0, 1] {
        bench.ask(Command::Put { to: PEER, frag: FragId(frag), local, remote, len: 8 });
    }
    assert_eq!(bench.told(), failed(1, Reason::TooMany));
}

#[test]
fn a_refused_post_is_the_same_when_it_is_posted_again() {
    let mut bench = Bench::new(Config { rdma_retry: 10, ..Config::DEFAULT });
    assert_eq!(bench.put(0, 7), posted(0, 7, Engine::Fma));
    bench.hear(Completion::RdmaRefused { id: 0, why: Refusal::Resource });
    assert_eq!(bench.module.next_deadline(), Some(Time(10)));
    bench.now = Time(10);
    bench.step(Event::Expired);
    assert_eq!(core::mem::take(&mut bench.ops), posted(0, 7, Engine::Fma));
    bench.done(0, End::Done);
    assert_eq!(bench.told().len(), 1);
}

#[test]
fn a_peer_that_died_is_looked_for_again() {
    let mut bench = Bench::new(Config::DEFAULT);
    bench.put(0, 8);
    bench.done(0, End::Gone);
    let (frag, phase, reason) = (FragId(0), crate::machine::Phase::Idle, Reason::PeerDied);
    assert_eq!(bench.told(), [Notice::Unknown { frag, peer: PEER, phase, reason }]);
    let (local, remote) = (at(0), at(8));
    let put = Command::Put { to: PEER, frag: FragId(1), local, remote, len: 8 };
    assert_eq!(bench.ask(put), [Op::Resolve { ep: EpId(0), peer: PEER }]);
}

#[test]
fn memory_has_to_be_registered_where_the_device_wants_it() {
    let mut bench = Bench::new(Config { fma_put_max: 8, ..Config::DEFAULT });
    let (local, remote) = (at(0), at(8));
    let get = |frag, len| Command::Get { to: PEER, frag: FragId(frag), local, remote, len };
    assert_eq!(bench.put(0, 8), posted(0, 8, Engine::Fma), "a short put copies");
    assert_eq!((bench.put(1, 12), bench.told()), (alloc::vec![], failed(1, Reason::NotRegistered)));
    assert_eq!(
        (bench.ask(get(2, 8)), bench.told()),
        (alloc::vec![], failed(2, Reason::NotRegistered))
    );
    assert_eq!(bench.register(1, true), [Notice::Registered { region: WINDOW }]);
    assert_eq!(bench.put(3, 12), posted(1, 12, Engine::Bte));
    assert_eq!(bench.ask(get(4, 8)).len(), 1);
    assert_eq!(
        (bench.ask(get(5, 68)), bench.told()),
        (alloc::vec![], failed(5, Reason::NotRegistered))
    );
    bench.ask(Command::Get { to: PEER, frag: FragId(6), local, remote, len: 0 });
    assert_eq!(
        bench.told(),
        [Notice::Done { frag: FragId(6), value: 0 }],
        "nothing is there already"
    );
}

#[test]
fn atomics_need_whole_words_and_the_short_swap_fetches() {
    let mut bench = Bench::new(Config::DEFAULT);
    bench.put(0, 8);
    let atomic = |amo, offset| Command::Atomic {
        to: PEER,
        frag: FragId(1),
        amo,
        remote: at(offset),
        operand: 1,
        second: 0,
    };
    let swap = Amo::new(Does::CompareSwap, Width::Four, false);
    assert!(bench.ask(atomic(Amo::new(Does::Add, Width::Eight, false), 4)).is_empty());
    assert_eq!(bench.told(), failed(1, Reason::Misaligned));
    let ops = bench.ask(atomic(swap, 4));
    assert!(matches!(ops[..], [Op::Atomic { amo, .. }] if amo == swap.fetching()), "{ops:?}");
    bench.hear(Completion::RdmaRefused { id: 1, why: Refusal::Illegal });
    assert_eq!(bench.told(), failed(1, Reason::Unsupported));
}

#[test]
fn idle_memory_makes_way_for_other_memory_and_for_mailboxes() {
    let config = Config { regions_max: 2, regions_reserve: 0, ..Config::DEFAULT };
    let mut bench = Bench::new(config);
    bench.register(1, true);
    bench.register(2, true);
    let closed = |region| Notice::Unregistered { region: RegionId(region), reason: Reason::Closed };
    bench.ask(Command::Deregister { region: RegionId(1) });
    assert_eq!(bench.told(), [closed(1)]);
    // Wanted again: it was kept. Wanted for another: it goes.
    assert_eq!(bench.ask(Command::Register { region: RegionId(1), len: 64 }), []);
    assert_eq!(bench.told(), [Notice::Registered { region: RegionId(1) }]);
    bench.ask(Command::Deregister { region: RegionId(1) });
    let ops = bench.ask(Command::Register { region: RegionId(3), len: 8 });
    let region = RegionId(3);
    let expected = [Op::MemDeregister { region: RegionId(1) }, Op::MemRegister { region, len: 8 }];
    assert_eq!(ops, expected);
    bench.hear(Completion::MemRegistered { ok: true });
    // The device has no room for mailboxes: what is idle goes, and it is asked again.
    bench.ask(Command::Deregister { region });
    bench.told();
    bench.ask(Command::Connect { to: PEER });
    let ops = bench.hear(Completion::Resolved { ep: EpId(0), card: Ok(THERE) });
    let register = Op::Register { slab: 0, mailboxes: 32 };
    assert!(ops.contains(&Op::MemDeregister { region }) && ops.contains(&register), "{ops:?}");
    bench.hear(Completion::Registered { ok: true });
    // Every place is taken now, and nothing is idle.
    let no = Notice::Unregistered { region: WINDOW, reason: Reason::NoRegistrations };
    assert_eq!(bench.ask(Command::Register { region: WINDOW, len: 8 }), []);
    assert_eq!(bench.told(), [no]);
    // Names of the transport's own are not for applications.
    let region = RegionId(crate::rma::OWN_REGIONS);
    bench.ask(Command::Register { region, len: 8 });
    assert_eq!(bench.told(), [Notice::Unregistered { region, reason: Reason::NotRegistered }]);
}

#[test]
fn memory_in_use_does_not_make_way() {
    let config = Config { regions_max: 1, regions_reserve: 0, fma_put_max: 0, ..Config::DEFAULT };
    let mut bench = Bench::new(config);
    bench.register(1, true);
    assert_eq!(bench.put(0, 8), posted(0, 8, Engine::Bte));
    bench.ask(Command::Deregister { region: WINDOW });
    bench.told();
    let region = RegionId(2);
    let no = Notice::Unregistered { region, reason: Reason::NoRegistrations };
    assert_eq!(bench.ask(Command::Register { region, len: 8 }), []);
    assert_eq!(bench.told(), [no]);
    bench.done(0, End::Done);
    let ops = bench.ask(Command::Register { region, len: 8 });
    assert_eq!(ops[0], Op::MemDeregister { region: WINDOW });
}

#[test]
fn a_peer_is_woken_once_for_messages_that_go_together() {
    let mut bench = Bench::new(Config { wake_peers: 1, ..Config::DEFAULT });
    bench.put(0, 8);
    let mut fx = Effects::new(EFFECTS_MAX);
    bench.module.wake_peer(Time::ZERO, EpId(0), &mut fx);
    bench.module.wake_peer(Time::ZERO, EpId(0), &mut fx);
    bench.step(Event::Expired);
    assert_eq!(core::mem::take(&mut bench.ops), [Op::Wake { to: THERE, id: 1 }]);
    bench.module.wake_peer(Time::ZERO, EpId(0), &mut fx);
    bench.step(Event::Expired);
    assert_eq!(core::mem::take(&mut bench.ops), [Op::Wake { to: THERE, id: 2 }]);
}

#[test]
fn what_peers_say_out_of_turn_changes_nothing() {
    let mut bench = Bench::new(Config::DEFAULT);
    bench.put(0, 8);
    let mut fx = Effects::new(EFFECTS_MAX);
    let mut say = |ep, control| {
        let control = alloc::boxed::Box::new(control);
        let event = Event::Completion(Completion::Control { ep: EpId(ep), control });
        let verdict = bench.module.step(Time::ZERO, event, &mut fx);
        assert_eq!(bench.module.check(), Ok(()));
        fx.drain().for_each(drop);
        verdict
    };
    let data = FragId(7);
    assert_eq!(say(9, Control::Fetched { data, ok: true }), Verdict::Stale, "nobody is there");
    assert!(matches!(say(0, Control::Fetched { data, ok: true }), Verdict::Broken(_)));
    assert!(matches!(say(0, Control::Given { frag: data, ok: true }), Verdict::Broken(_)));
    // Without a connection nothing is done for anybody.
    let (tag, tail) = (Tag(0), Tail::default());
    let fetch = Control::Fetch { tag, data, len: u32::MAX, at: at(0), tail };
    assert_eq!(say(0, fetch), Verdict::Stale);
    let give = Control::Give { frag: data, from: at(0), into: at(0), len: 8 };
    assert_eq!(say(0, give), Verdict::Stale);
    // An answer of the device to what was not asked is the device's fault.
    for completion in [
        Completion::RdmaDone { id: 5, end: End::Done, found: 0 },
        Completion::RdmaRefused { id: 5, why: Refusal::Resource },
        Completion::MemRegistered { ok: true },
    ] {
        let verdict = bench.module.step(Time::ZERO, Event::Completion(completion), &mut fx);
        assert!(matches!(verdict, Verdict::Broken(crate::machine::Fault::Device(_))));
    }
}

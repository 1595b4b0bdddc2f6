//! Modules that are wrong on purpose. Each has to be caught, by the rule that is there for it,
//! in a world where the sound module is not.

use std::collections::BTreeSet;

use selvedge_core::ugni::nic::{self, Fault};
use selvedge_core::ugni::{self, Completion, Module, Mutant, Op};
use selvedge_core::{
    Address, Effect, Event, Load, Machine, ProcName, Sink, Span, Time, Transport, Verdict,
    Violation,
};
use selvedge_proptests::world::{
    Ask::{self, Add, Close, Send, SendLong},
    Script, crossbar, shaken, timed, timeless, tiny, tiny_remote, word,
};
use selvedge_sim::explore::{Bounds, Outcome};
use selvedge_sim::fabric::Strategy;
use selvedge_sim::fault::{Rule, What, When};
use selvedge_sim::simulated::Simulated;
use selvedge_sim::ugni::Setup;
use selvedge_sim::watch::{Found, Kind};
use selvedge_sim::world::End;

/// A module that may be wrong.
#[derive(Clone, Debug)]
struct Mutated(Module);

/// How it is wrong, and how it is configured.
#[derive(Clone, Debug)]
struct Wrong(Mutant, Setup);

impl Machine for Mutated {
    type Event = Event<Completion>;
    type Effect = Effect<Op>;
    const EFFECTS_MAX: usize = <Module as Machine>::EFFECTS_MAX;

    fn step(
        &mut self,
        now: Time,
        event: Event<Completion>,
        fx: &mut impl Sink<Effect<Op>>,
    ) -> Verdict {
        self.0.step(now, event, fx)
    }
    fn next_deadline(&self) -> Option<Time> {
        self.0.next_deadline()
    }
    fn check(&self) -> Result<(), Violation> {
        self.0.check()
    }
    fn encode(&self, out: &mut impl Sink<u8>) {
        self.0.encode(out);
    }
}

impl Transport for Mutated {
    type Op = Op;
    type Completion = Completion;

    fn check_touched(&self) -> Result<(), Violation> {
        self.0.check_touched()
    }
    fn settled(&self) -> bool {
        self.0.settled()
    }
}

impl Simulated for Mutated {
    type Nic = nic::Nic;
    type Setup = Wrong;
    const NUMBER: u16 = ugni::TRANSPORT;

    fn open(
        Wrong(mutant, setup): &Wrong,
        name: ProcName,
        address: Address,
        life: u32,
    ) -> (Self, nic::Nic) {
        let (module, nic) = <Module as Simulated>::open(setup, name, address, life);
        (Mutated(module.mutated(*mutant)), nic)
    }

    fn load(Wrong(_, setup): &Wrong, packet: &nic::Packet) -> Load {
        <Module as Simulated>::load(setup, packet)
    }

    fn is_overrun(completion: &Completion) -> bool {
        <Module as Simulated>::is_overrun(completion)
    }
}

// ---- a refused post that nobody repeats -------------------------------------------------------

fn search(mutant: Mutant, fault: Fault) -> Option<Found> {
    let bounds = Bounds { faults: vec![(fault, 1)], ..Bounds::default() };
    let scripts = [Script::at_once(&[Send(1), Close(1)]), Script::idle()];
    let outcome = timeless::<Mutated>(Wrong(mutant, tiny()), &scripts, bounds).search(|_| true);
    assert!(outcome.complete || outcome.found.is_some());
    outcome.found
}

#[test]
fn a_forgotten_refusal_is_a_lack_of_progress() {
    for fault in [Fault::RefusePostSession, Fault::RefusePostMemory] {
        assert_eq!(search(Mutant::Sound, fault), None);
        let found = search(Mutant::ForgetsRefusedPosts, fault).expect("the mutant is caught");
        let rule = "a state at rest can be reached from everywhere";
        assert_eq!((found.rule, found.kind), (rule, Kind::Progress), "{found:?}");
    }
    // Without a refusal there is nothing to forget.
    assert_eq!(search(Mutant::ForgetsRefusedPosts, Fault::RefuseSetup), None);
}

// ---- a mailbox that goes to somebody else too early --------------------------------------------

/// A proc has one mailbox, so that it is lent to two others in turn, and may write to one of
/// them, which breaks that connection if it fails.
fn pair_and_third(mutant: Mutant) -> Outcome {
    let Setup { module, nic } = tiny();
    let setup = Setup::new(ugni::Config { slabs_max: 1, ..*module }, *nic);
    let scripts = [&[Send(1)], &[Send(0)], &[Send(0)]].map(|asks: &[_; 1]| Script::at_once(asks));
    let bounds = Bounds { faults: vec![(Fault::FailSend, 1)], depth: 18, ..Bounds::default() };
    timeless::<Mutated>(Wrong(mutant, setup), &scripts, bounds).search(|_| true)
}

#[test]
fn an_early_return_has_a_shortest_history() {
    let sound = pair_and_third(Mutant::Sound);
    assert_eq!((sound.found, sound.progress.depth), (None, 18));
    let wrong = pair_and_third(Mutant::ReturnsMailboxesEarly);
    let found = wrong.found.expect("the mutant is caught");
    assert_eq!((found.rule, found.kind), (TWICE, Kind::Safety));
    // The search stops at the first level that has one.
    assert_eq!(wrong.path.len(), 18);
}

const TWICE: &str = "a message is delivered once";
const LOST: &str = "what is called sent is delivered";

/// The same in time, with more to write. A mailbox rests for longer than a packet lives.
fn crowd(mutant: Mutant, seed: u64) -> Vec<Found> {
    let rest = Span::from_us(10).0;
    let module = ugni::Config {
        slab_mailboxes: 1,
        slabs_max: 1,
        mailbox_rest: rest,
        ..ugni::Config::default()
    };
    let setup = Wrong(mutant, Setup::new(module, nic::Config::default()));
    let fail = Rule {
        what: What::Nic(Fault::FailSend),
        when: When::Rate { ppb: 200_000_000, from: Time::ZERO, until: Time::NEVER, most: Some(4) },
        procs: Some(vec![0]),
    };
    let strategy = Strategy::Random { jitter: Span::from_us(2) };
    let fabric = shaken(crossbar(3, setup), seed, strategy, vec![fail]);
    let scripts = [&[Send(1); 12], &[Send(0); 12], &[Send(0); 12]]
        .map(|asks: &[_; 12]| Script::in_turn(asks));
    let mut world = timed::<Mutated>(fabric, &scripts);
    assert_eq!(world.run(Time::NEVER, 1_000_000, false), End::Rest);
    world.settle();
    world.watch.found
}

#[test]
fn an_early_return_is_a_lack_of_safety() {
    let mut caught = 0;
    let mut rules = BTreeSet::new();
    for seed in 0..16 {
        assert_eq!(crowd(Mutant::Sound, seed), [], "seed {seed}");
        let found = crowd(Mutant::ReturnsMailboxesEarly, seed);
        assert!(found.iter().all(|found| found.kind == Kind::Safety), "seed {seed}: {found:?}");
        caught += u32::from(!found.is_empty());
        rules.extend(found.iter().map(|found| found.rule));
    }
    assert!(caught > 8, "{caught} of 16 seeds");
    assert_eq!(rules, BTreeSet::from([TWICE, LOST]));
}

// ---- remote memory and long messages -----------------------------------------------------------

fn search_long(mutant: Mutant, scripts: &[Script]) -> Option<Found> {
    let setup = Wrong(mutant, tiny_remote());
    let outcome = timeless::<Mutated>(setup, scripts, Bounds::default()).search(|_| true);
    assert!(outcome.complete || outcome.found.is_some());
    outcome.found
}

/// The mutant is caught by this rule where the sound module is not.
#[track_caller]
fn caught(mutant: Mutant, scripts: &[&[Ask]], rule: &str) {
    let scripts: Vec<Script> = scripts.iter().map(|asks| Script::at_once(asks)).collect();
    assert_eq!(search_long(Mutant::Sound, &scripts), None);
    let found = search_long(mutant, &scripts).expect("the mutant is caught");
    assert_eq!(found.rule, rule, "{mutant:?} {found:?}");
}

#[test]
fn one_signal_is_not_enough() {
    // The second signal meets nobody who waits for it.
    let rule = "an answer to what was not asked";
    caught(Mutant::TakesOneSignalForTwo, &[&[SendLong(1)], &[]], rule);
}

#[test]
fn a_short_message_that_passes_a_long_one_is_caught() {
    let order = "messages of one tag are delivered in the order of their commands";
    caught(Mutant::LetsShortMessagesPass, &[&[SendLong(1), Send(1)], &[]], order);
}

#[test]
fn what_is_parked_for_ever_is_a_lack_of_progress() {
    let rule = "a state at rest can be reached from everywhere";
    caught(Mutant::ForgetsWhatIsParked, &[&[SendLong(2)], &[SendLong(2)], &[]], rule);
}

/// What is counted at a peer, and what is known to be done, when errors come after the deed.
fn added(mutant: Mutant) -> (u64, u64) {
    let late = Rule {
        what: What::Nic(Fault::RdmaErrorLate),
        when: When::Rate { ppb: 500_000_000, from: Time::ZERO, until: Time::NEVER, most: None },
        procs: None,
    };
    let setup = Wrong(mutant, Setup::default());
    let fabric = shaken(crossbar(2, setup), 1, Strategy::Fifo, vec![late]);
    let scripts = [Script::in_turn(&[Add(1); 16]), Script::served()].map(Script::tallied);
    let mut world = timed::<Mutated>(fabric, &scripts);
    assert_eq!(world.run(Time::NEVER, 1_000_000, false), End::Rest);
    let counted = world.procs()[1].memory.read(word(), 8)[0];
    let tally = world.procs()[0].app.tally().expect("it was asked for");
    (u64::from(counted), (tally.done.len() + tally.maybe.len()) as u64)
}

#[test]
fn an_atomic_is_done_once() {
    assert_eq!(added(Mutant::Sound), (16, 16));
    let (counted, asked) = added(Mutant::RepeatsAtomics);
    assert!(counted > asked, "{counted} of {asked}");
}

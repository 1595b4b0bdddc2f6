//! The same fabric, scripts and seed give the same history: twice, beside another world, on
//! another thread, in debug and in release.

use selvedge_core::ugni::nic::{self, Fault};
use selvedge_core::ugni::{self, Module};
use selvedge_core::{Span, Time};
use selvedge_proptests::world::{
    Ask::{Close, Connect, Send},
    Script, crossbar, ring, shaken, timed,
};
use selvedge_sim::fabric::{Fabric, Strategy};
use selvedge_sim::fault::{Harm, Rule, What, When};
use selvedge_sim::ugni::Setup;
use selvedge_sim::world::{End, World};

type Small = World<Module, Script>;

/// What a history is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trace {
    digest: u64,
    events: u64,
    end: Time,
}

fn rate(what: What<Module>, parts_per_thousand: u32) -> Rule<Module> {
    let ppb = parts_per_thousand * 1_000_000;
    let when = When::Rate { ppb, from: Time::ZERO, until: Time::NEVER, most: Some(20) };
    Rule { what, when, procs: None }
}

fn faults() -> Vec<Rule<Module>> {
    let packets = |harm| What::Packets { harm, from: None, to: None, nodes: None, links: None };
    vec![
        rate(packets(Harm::Loss), 50),
        rate(packets(Harm::Reorder(Span::from_us(3))), 50),
        rate(What::Nic(Fault::RefusePostMemory), 300),
        rate(What::Nic(Fault::FailSend), 50),
        rate(What::Nic(Fault::RefuseSend), 100),
    ]
}

fn strategy(seed: u64) -> Strategy {
    let jitter = Span::from_ns(700);
    match seed % 3 {
        0 => Strategy::Fifo,
        1 => Strategy::Random { jitter },
        _ => Strategy::Pct { depth: 3, steps: 400, jitter },
    }
}

fn fabric(seed: u64, rules: Vec<Rule<Module>>) -> Fabric<Module> {
    let module = ugni::Config { smsg_credits: 4, slab_mailboxes: 2, ..ugni::Config::default() };
    let setup = Setup::new(module, nic::Config::default());
    let fabric = if seed.is_multiple_of(2) { crossbar(3, setup) } else { ring(3, setup) };
    shaken(fabric, seed, strategy(seed), rules)
}

fn world(seed: u64, rules: Vec<Rule<Module>>) -> Small {
    let scripts = [
        Script::at_once(&[Send(1), Send(2), Send(1), Close(1)]),
        Script::in_turn(&[Connect(0), Send(0), Send(2), Close(0), Send(0), Send(0)]),
        Script::at_once(&[Send(0); 9]),
    ];
    timed(fabric(seed, rules), &scripts)
}

fn trace(world: &Small) -> Trace {
    let (digest, events) = (world.watch.digest.value(), world.watch.events);
    Trace { digest, events, end: world.now() }
}

fn ran(mut world: Small) -> Trace {
    assert_eq!(world.run(Time::NEVER, u64::MAX, true), End::Rest);
    trace(&world)
}

fn run(seed: u64) -> Trace {
    ran(world(seed, faults()))
}

#[test]
fn the_same_seed_runs_the_same_way_twice() {
    let mut digests: Vec<u64> = (0..24)
        .map(|seed| {
            let first = run(seed);
            assert_eq!(run(seed), first, "seed {seed}");
            first.digest
        })
        .collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 24, "another seed runs another way");
}

#[test]
fn a_clone_goes_the_same_way() {
    for seed in 0..6 {
        let mut original = world(seed, faults());
        original.run(Time::NEVER, 60, true);
        let copy = original.clone();
        assert_eq!(ran(original), ran(copy), "seed {seed}");
    }
}

#[test]
fn two_worlds_in_one_thread_know_nothing_of_each_other() {
    let mut worlds = [world(1, faults()), world(2, faults())];
    let mut ends = [End::Events; 2];
    // A few events of the one, a few of the other, in steps of different lengths.
    for turn in 1.. {
        for (world, end) in worlds.iter_mut().zip(&mut ends) {
            if *end == End::Events {
                *end = world.run(Time::NEVER, world.watch.events + turn % 5 + 1, true);
            }
        }
        if ends == [End::Rest; 2] {
            break;
        }
    }
    assert_eq!(worlds.each_ref().map(trace), [run(1), run(2)]);
}

#[test]
fn a_rule_that_never_strikes_changes_nothing() {
    let strange = Rule { procs: Some(vec![99]), ..rate(What::Nic(Fault::EndError), 1_000) };
    let never = rate(What::Nic(Fault::RefuseSetup), 0);
    let unmet = When::Happens { event: "no-such-event".into(), proc: None, nth: 1, lasts: None };
    let unmet = Rule { what: What::Crash, when: unmet, procs: Some(vec![1]) };
    for seed in 0..6 {
        for rule in [&strange, &never, &unmet] {
            let mut rules = faults();
            rules.push(rule.clone());
            assert_eq!(ran(world(seed, rules)), run(seed), "seed {seed}, {}", rule.what.word());
        }
    }
}

/// Pinned, so that every machine, every profile and every version until the next change of a
/// machine agree. A change that moves them changes what worlds do, and has to say why.
#[test]
fn histories_stay_what_they_are() {
    let pinned = [
        (0xcec9_febe_7334_3cb2, 212),
        (0x4d0a_feba_b537_6681, 310),
        (0xaac3_2566_f60b_c974, 238),
        (0x4360_7c27_0887_37e3, 298),
        (0x4d8e_b0a8_1551_a9b0, 243),
        (0x4012_f4aa_8e90_6b16, 292),
    ];
    let ran = [0, 1, 2, 3, 4, 5].map(|seed| {
        let Trace { digest, events, .. } = run(seed);
        (digest, events)
    });
    assert_eq!(ran, pinned, "{ran:#018x?}");
}

#[test]
fn threads_make_no_difference() {
    const SEEDS: u64 = 24;
    let alone: Vec<Trace> = (0..SEEDS).map(run).collect();
    let halves: Vec<Vec<Trace>> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || (0..SEEDS).filter(|seed| seed % 2 == half).map(run).collect())
        });
        halves.map(|half| half.join().expect("no world panics")).into()
    });
    let beside: Vec<Trace> = (0..SEEDS as usize).map(|seed| halves[seed % 2][seed / 2]).collect();
    assert_eq!(beside, alone);
}

//! Which way packets take through a dragonfly, by what comes of it.

use selvedge_core::ugni::Module;
use selvedge_core::{Span, Time};
use selvedge_proptests::world::{Ask::Send, Script, dragonfly, shaken, timed};
use selvedge_sim::fabric::{Routing, Strategy};
use selvedge_sim::fault::{Rule, What, When};
use selvedge_sim::ugni::Setup;
use selvedge_sim::world::{End, World};

const ALL: [Routing; 3] = [Routing::Minimal, Routing::Valiant, Routing::Adaptive];

/// Runs to rest, with all messages delivered and nothing wrong.
fn run(routing: Routing, scripts: &[Script], rules: Vec<Rule<Module>>) -> World<Module, Script> {
    let fabric = dragonfly::<Module>(routing, Setup::default());
    let mut world = timed(shaken(fabric, 1, Strategy::Fifo, rules), scripts);
    assert_eq!(world.run(Time::NEVER, 1_000_000, false), End::Rest);
    assert_eq!((world.settle(), &world.watch.found), (None, &vec![]));
    assert_eq!(world.watch.delivered, world.watch.messages);
    world
}

/// The longest time from a send to its delivery.
fn slowest(world: &World<Module, Script>) -> Span {
    Span(world.watch.latency.as_ref().expect("it is measured").max())
}

fn idle_but(from: impl Fn(u32) -> Option<Script>) -> Vec<Script> {
    (0..24).map(|rank| from(rank).unwrap_or_else(Script::idle)).collect()
}

#[test]
fn on_a_quiet_network_adaptive_packets_take_a_shortest_way() {
    let alone = idle_but(|rank| (rank == 3).then(|| Script::in_turn(&[Send(20); 8])));
    let [minimal, valiant, adaptive] = ALL.map(|routing| run(routing, &alone, vec![]));
    assert_eq!(adaptive.watch.digest.value(), minimal.watch.digest.value());
    assert!(slowest(&valiant) > slowest(&minimal), "a detour takes longer");
}

#[test]
fn where_a_group_floods_another_detours_are_quicker() {
    let flood = idle_but(|rank| {
        let to = rank + 8;
        (rank < 8).then(|| Script::at_once(&vec![Send(to); 400]))
    });
    let [minimal, valiant, adaptive] = ALL.map(|routing| run(routing, &flood, vec![]));
    assert!(slowest(&adaptive) < slowest(&minimal));
    assert!(slowest(&valiant) < slowest(&minimal));
}

/// What the cable between the first two groups joins.
const CABLE: [[u32; 2]; 2] = [[0, 8], [1, 9]];

#[test]
fn packets_arrive_though_cables_fail_while_they_are_on_their_way() {
    let everybody = idle_but(|rank| {
        let sends: Vec<_> = (1..24).map(|step| Send((rank + step) % 24)).collect();
        Some(Script::in_turn(&sends))
    });
    let topology = dragonfly::<Module>(Routing::Minimal, Setup::default()).topology;
    assert!(CABLE.iter().all(|&[a, b]| topology.link_between(a, b).is_some()));
    for routing in ALL {
        let when = When::At { at: Time::ZERO + Span::from_us(3), lasts: Some(Span::from_us(30)) };
        let rule = Rule { what: What::LinksDown(CABLE.to_vec()), when, procs: None };
        let world = run(routing, &everybody, vec![rule]);
        assert_eq!((world.watch.delivered, world.strikes()), (24 * 23, vec![1]));
    }
}

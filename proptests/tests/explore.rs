//! Every history of two procs that connect, send and disconnect, with one fault at each of them
//! that may strike at any moment or never. The counts are pinned: a change of a machine, of the
//! NIC or of the search that moves one has to say why.

use std::fmt;
use std::hash::{Hash, Hasher};

use selvedge_core::ugni::Module;
use selvedge_core::ugni::nic::Fault::{self, *};
use selvedge_proptests::world::{
    Ask::{Close, Connect, Send},
    Script, timeless, tiny,
};
use selvedge_sim::explore::{Action, Bounds, Space, State};
use stateright::{Checker, Model, Property};

type Two = Space<Module, Script>;

/// One proc sends and closes; the other lives there.
fn one_side() -> Vec<Script> {
    vec![Script::at_once(&[Send(1), Close(1)]), Script::idle()]
}

/// Both start at the same moment; one closes.
fn both_sides() -> Vec<Script> {
    vec![Script::at_once(&[Send(1), Close(1)]), Script::at_once(&[Send(0)])]
}

/// Both want to be connected, and stay so.
fn connected() -> Vec<Script> {
    vec![Script::at_once(&[Connect(1)]), Script::at_once(&[Connect(0)])]
}

/// One proc sends and closes, and when that is done sends again.
fn once_more() -> Vec<Script> {
    vec![Script::in_turn(&[Send(1), Close(1), Send(1)]), Script::idle()]
}

/// Two messages with one slot for them.
fn out_of_credits() -> Vec<Script> {
    vec![Script::at_once(&[Send(1), Send(1), Close(1)]), Script::idle()]
}

fn one(fault: Fault) -> Bounds<Module> {
    Bounds { faults: vec![(fault, 1)], ..Bounds::default() }
}

/// Searches all of it, and finds nothing wrong.
#[track_caller]
fn count(scripts: &[Script], bounds: Bounds<Module>) -> (u64, u64) {
    let outcome = timeless::<Module>(tiny(), scripts, bounds).search(|_| true);
    if let Some(found) = &outcome.found {
        panic!("{}:\n{}", found.rule, found.around.join("\n"));
    }
    assert!(outcome.complete);
    (outcome.progress.states, outcome.settled)
}

/// A row: what goes wrong, the states, and those of them that are at rest.
type Row = (Fault, u64, u64);

#[track_caller]
fn table(scripts: &[Script], rows: &[Row]) {
    let counted: Vec<Row> = rows
        .iter()
        .map(|&(fault, ..)| {
            let (states, settled) = count(scripts, one(fault));
            (fault, states, settled)
        })
        .collect();
    assert_eq!(counted, rows);
}

#[test]
fn nothing_goes_wrong() {
    let counted = [one_side(), both_sides(), connected(), once_more(), out_of_credits()]
        .map(|scripts| count(&scripts, Bounds::default()));
    assert_eq!(counted, [(2_575, 1), (72_610, 2), (124, 3), (6_193, 1), (3_605, 1)]);
}

/// One proc sends and closes.
const ONE_SIDE: &[Row] = &[
    (RefusePostSession, 32_228, 9),
    (RefusePostMemory, 28_060, 15),
    (RefuseWildcard, 23_111, 9),
    (EndTimeout, 18_004, 17),
    (EndTerminated, 20_939, 12),
    (EndError, 20_939, 12),
    (HoldDatagram, 23_159, 9),
    (DeafWildcard, 23_190, 4),
    (RefuseSetup, 11_055, 11),
    (RefuseRegister, 30_003, 12),
    (RefuseSend, 14_300, 12),
    (FailSend, 12_742, 10),
    (EarlyEvent, 35_332, 9),
    (DuplicateEvent, 31_570, 9),
    (HoldCredits, 26_861, 9),
    (RemoteOverrun, 24_730, 9),
    (BusyUnbind, 13_872, 9),
    (LocalOverrun, 292_764, 15),
];

#[test]
fn one_side_sends_and_closes() {
    table(&one_side(), ONE_SIDE);
}

/// Both send and one closes. (A lost completion makes seven million states of it.)
const BOTH_SIDES: &[Row] = &[
    (RefusePostSession, 559_831, 21),
    (RefusePostMemory, 488_651, 39),
    (RefuseWildcard, 652_679, 18),
    (EndTimeout, 973_355, 87),
    (EndTerminated, 444_586, 23),
    (EndError, 445_576, 23),
    (HoldDatagram, 653_365, 18),
    (DeafWildcard, 655_392, 8),
    (RefuseSetup, 354_096, 32),
    (RefuseRegister, 490_051, 32),
    (RefuseSend, 434_053, 27),
    (FailSend, 410_200, 39),
    (EarlyEvent, 1_043_128, 21),
    (DuplicateEvent, 899_941, 18),
    (HoldCredits, 835_987, 18),
    (RemoteOverrun, 723_565, 18),
    (BusyUnbind, 355_977, 21),
];

#[test]
fn both_sides_send_and_one_closes() {
    table(&both_sides(), BOTH_SIDES);
}

/// Both connect, and nothing more.
const CONNECTED: &[Row] = &[
    (RefusePostSession, 868, 21),
    (RefusePostMemory, 1_507, 32),
    (RefuseWildcard, 767, 27),
    (EndTimeout, 9_307, 43),
    (EndTerminated, 1_449, 23),
    (EndError, 1_449, 23),
    (HoldDatagram, 1_054, 27),
    (DeafWildcard, 1_218, 12),
    (RefuseSetup, 3_588, 29),
    (RefuseRegister, 1_051, 30),
];

#[test]
fn both_sides_connect() {
    table(&connected(), CONNECTED);
}

/// A second connection after the first.
const ONCE_MORE: &[Row] = &[
    (RefusePostSession, 69_265, 12),
    (RefusePostMemory, 65_237, 29),
    (RefuseWildcard, 55_673, 9),
    (EndTimeout, 110_166, 39),
    (EndTerminated, 59_145, 19),
    (EndError, 59_145, 19),
    (HoldDatagram, 55_721, 9),
    (DeafWildcard, 57_156, 4),
    (RefuseSetup, 34_023, 19),
    (RefuseRegister, 67_339, 18),
    (RefuseSend, 35_680, 16),
    (FailSend, 32_649, 13),
    (EarlyEvent, 85_420, 9),
    (DuplicateEvent, 79_738, 9),
    (HoldCredits, 71_825, 9),
    (RemoteOverrun, 63_142, 9),
    (BusyUnbind, 29_620, 12),
    (LocalOverrun, 1_035_389, 37),
];

#[test]
fn a_connection_comes_up_once_more() {
    table(&once_more(), ONCE_MORE);
}

/// A message that waits for a slot.
const OUT_OF_CREDITS: &[Row] = &[
    (RefusePostSession, 45_546, 9),
    (RefusePostMemory, 39_435, 15),
    (RefuseWildcard, 32_381, 9),
    (EndTimeout, 29_528, 20),
    (EndTerminated, 50_371, 9),
    (EndError, 50_371, 9),
    (HoldDatagram, 32_429, 9),
    (DeafWildcard, 32_460, 4),
    (RefuseSetup, 14_817, 9),
    (RefuseRegister, 42_417, 12),
    (RefuseSend, 19_926, 12),
    (FailSend, 17_176, 12),
    (EarlyEvent, 48_158, 9),
    (DuplicateEvent, 43_202, 9),
    (HoldCredits, 39_708, 9),
    (RemoteOverrun, 30_872, 9),
    (BusyUnbind, 18_856, 9),
    (LocalOverrun, 340_008, 21),
];

#[test]
fn messages_wait_for_credits() {
    table(&out_of_credits(), OUT_OF_CREDITS);
}

/// The fabric and the clock misbehave: a packet is lost or comes twice, a deadline fires early.
#[test]
fn packets_and_deadlines_go_astray() {
    let none = Bounds::<Module>::default;
    let counted = [
        count(&one_side(), Bounds { losses: 1, ..none() }),
        count(&one_side(), Bounds { duplicates: 1, ..none() }),
        count(&one_side(), Bounds { early: 1, ..none() }),
        count(&once_more(), Bounds { losses: 1, ..none() }),
        count(&once_more(), Bounds { early: 1, ..none() }),
        count(&both_sides(), Bounds { losses: 1, ..none() }),
    ];
    assert_eq!(
        counted,
        [(7_337, 2), (27_479, 2), (75_043, 4), (20_534, 2), (205_998, 9), (219_226, 4)]
    );
}

/// What one run to rest looks like, with `fault` armed at each proc beforehand. `skew` chooses
/// among many runs.
fn history(scripts: &[Script], fault: Option<Fault>, skew: usize) -> Vec<String> {
    let bounds =
        Bounds { faults: fault.map(|fault| (fault, 1)).into_iter().collect(), ..Bounds::default() };
    let space = timeless::<Module>(tiny(), scripts, bounds);
    let mut bench = space.bench(4_096);
    let mut state = space.first(&mut bench);
    if fault.is_some() {
        space.apply(&mut state, Action::Fault(0, 0), &mut bench);
        space.apply(&mut state, Action::Fault(1, 0), &mut bench);
    }
    let mut choices = Vec::new();
    // Each in turn, so that nobody waits for ever.
    for turn in 0.. {
        assert!(turn < 1_000, "{fault:?} keeps it from coming to rest");
        if space.is_at_rest(&state) {
            break;
        }
        space.actions(&state, &mut choices);
        choices.retain(|choice| !choice.is_fault());
        space.apply(&mut state, choices[(turn + skew) % choices.len()], &mut bench);
    }
    let lines = bench.watch.recorder.as_ref().expect("it records").tail(4_096);
    lines.into_iter().filter(|line| !line.contains("FAULT")).collect()
}

/// No row is about a fault that never comes to bear.
#[test]
fn every_fault_makes_a_difference() {
    for (scripts, rows) in [
        (one_side(), ONE_SIDE),
        (both_sides(), BOTH_SIDES),
        (connected(), CONNECTED),
        (once_more(), ONCE_MORE),
        (out_of_credits(), OUT_OF_CREDITS),
    ] {
        let healthy: Vec<_> = (0..4).map(|skew| history(&scripts, None, skew)).collect();
        for &(fault, ..) in rows {
            let changed = (0..4).any(|skew| history(&scripts, Some(fault), skew) != healthy[skew]);
            // Where time stands still nothing is held, and whoever polls may come late anyway.
            assert_eq!(changed, fault != HoldDatagram, "{fault:?}");
        }
    }
}

// ---- a second opinion ------------------------------------------------------------------------

/// The same space for another checker, which walks it through the public interface.
struct Other(Two);

#[derive(Clone)]
struct Seen {
    state: State<Module, Script>,
    key: Vec<u8>,
    /// What was found wrong on the way here.
    wrong: Option<&'static str>,
    rests: bool,
}

impl Hash for Seen {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.key.hash(hasher);
    }
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.wrong)
    }
}

impl Other {
    fn see(&self, mut state: State<Module, Script>, action: Option<Action>) -> Seen {
        let mut bench = self.0.bench(0);
        if let Some(action) = action {
            self.0.apply(&mut state, action, &mut bench);
        }
        let rests = self.0.is_at_rest(&state);
        if rests {
            self.0.check_at_rest(&state, &mut bench);
        }
        let mut key = Vec::new();
        self.0.key(&state, &mut key);
        let wrong = self.0.found(&mut bench).map(|found| found.rule);
        Seen { state, key, wrong, rests }
    }
}

impl Model for Other {
    type State = Seen;
    type Action = Action;

    fn init_states(&self) -> Vec<Seen> {
        let first = self.0.first(&mut self.0.bench(0));
        vec![self.see(first, None)]
    }

    fn actions(&self, seen: &Seen, actions: &mut Vec<Action>) {
        self.0.actions(&seen.state, actions);
    }

    fn next_state(&self, seen: &Seen, action: Action) -> Option<Seen> {
        Some(self.see(seen.state.clone(), Some(action)))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no rule is broken", |_, seen: &Seen| seen.wrong.is_none()),
            Property::sometimes("it comes to rest", |_, seen: &Seen| seen.rests),
        ]
    }
}

#[test]
fn another_checker_counts_the_same() {
    let worlds = [
        (one_side(), Bounds::default()),
        (one_side(), one(RefuseSetup)),
        (one_side(), one(FailSend)),
        (connected(), one(EndTimeout)),
        (connected(), one(RefusePostSession)),
        (once_more(), Bounds::default()),
    ];
    for (scripts, bounds) in worlds {
        let space = timeless::<Module>(tiny(), &scripts, bounds);
        let outcome = space.search(|_| true);
        assert!(outcome.complete);
        let checked = Other(space).checker().spawn_bfs().join();
        checked.assert_properties();
        assert_eq!(checked.unique_state_count() as u64, outcome.progress.states);
    }
}

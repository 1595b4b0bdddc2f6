//! Every history of two procs that connect, send and disconnect, with one fault at each of them
//! that may strike at any moment or never. The counts are pinned: a change of a machine, of the
//! NIC or of the search that moves one has to say why.

use std::fmt;
use std::hash::{Hash, Hasher};

use selvedge_core::ugni::Module;
use selvedge_core::ugni::nic::Fault::{self, *};
use selvedge_proptests::search::{self, Row, one};
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

/// Searches all of it, and finds nothing wrong.
#[track_caller]
fn count(scripts: &[Script], bounds: Bounds<Module>) -> (u64, u64) {
    search::count(tiny(), scripts, bounds)
}

#[track_caller]
fn table(scripts: &[Script], rows: &[Row]) {
    assert_eq!(search::rows(&tiny(), scripts, rows), rows);
}

#[test]
fn nothing_goes_wrong() {
    let counted = [one_side(), both_sides(), connected(), once_more(), out_of_credits()]
        .map(|scripts| count(&scripts, Bounds::default()));
    assert_eq!(counted, [(3_385, 1), (105_736, 3), (124, 3), (8_498, 2), (4_685, 1)]);
}

/// One proc sends and closes.
const ONE_SIDE: &[Row] = &[
    (RefusePostSession, 42_380, 9),
    (RefusePostMemory, 36_748, 15),
    (RefuseWildcard, 30_401, 9),
    (EndTimeout, 23_190, 17),
    (EndTerminated, 27_545, 12),
    (EndError, 27_545, 12),
    (HoldDatagram, 30_599, 9),
    (DeafWildcard, 30_480, 4),
    (RefuseSetup, 14_078, 11),
    (RefuseRegister, 39_453, 12),
    (RefuseSend, 18_701, 12),
    (FailSend, 16_588, 10),
    (EarlyEvent, 46_696, 9),
    (DuplicateEvent, 41_782, 9),
    (HoldCredits, 33_767, 9),
    (RemoteOverrun, 32_674, 9),
    (BusyUnbind, 18_300, 9),
    (LocalOverrun, 538_241, 15),
];

#[test]
fn one_side_sends_and_closes() {
    table(&one_side(), ONE_SIDE);
}

/// Both send and one closes. (A lost completion makes seven million states of it.)
const BOTH_SIDES: &[Row] = &[
    (RefusePostSession, 827_531, 39),
    (RefusePostMemory, 769_648, 49),
    (RefuseWildcard, 950_813, 27),
    (EndTimeout, 643_508, 94),
    (EndTerminated, 677_942, 35),
    (EndError, 679_654, 35),
    (HoldDatagram, 965_578, 27),
    (DeafWildcard, 953_565, 12),
    (RefuseSetup, 434_018, 24),
    (RefuseRegister, 720_438, 36),
    (RefuseSend, 598_313, 39),
    (FailSend, 548_822, 45),
    (EarlyEvent, 1_477_620, 27),
    (DuplicateEvent, 1_313_081, 27),
    (HoldCredits, 1_160_506, 27),
    (RemoteOverrun, 1_045_162, 27),
    (BusyUnbind, 532_928, 30),
];

#[test]
fn both_sides_send_and_one_closes() {
    table(&both_sides(), BOTH_SIDES);
}

/// Both connect, and nothing more.
const CONNECTED: &[Row] = &[
    (RefusePostSession, 868, 21),
    (RefusePostMemory, 1_423, 32),
    (RefuseWildcard, 767, 27),
    (EndTimeout, 8_953, 52),
    (EndTerminated, 1_449, 23),
    (EndError, 1_449, 23),
    (HoldDatagram, 1_661, 27),
    (DeafWildcard, 1_218, 12),
    (RefuseSetup, 2_936, 26),
    (RefuseRegister, 1_051, 30),
];

#[test]
fn both_sides_connect() {
    table(&connected(), CONNECTED);
}

/// A second connection after the first.
const ONCE_MORE: &[Row] = &[
    (RefusePostSession, 94_809, 30),
    (RefusePostMemory, 89_299, 42),
    (RefuseWildcard, 76_418, 18),
    (EndTimeout, 137_438, 54),
    (EndTerminated, 82_054, 31),
    (EndError, 82_054, 31),
    (HoldDatagram, 88_830, 18),
    (DeafWildcard, 78_414, 8),
    (RefuseSetup, 42_529, 30),
    (RefuseRegister, 91_648, 24),
    (RefuseSend, 48_716, 28),
    (FailSend, 40_364, 21),
    (EarlyEvent, 117_017, 18),
    (DuplicateEvent, 109_543, 18),
    (HoldCredits, 90_611, 18),
    (RemoteOverrun, 86_707, 18),
    (BusyUnbind, 40_405, 21),
    (LocalOverrun, 749_311, 31),
];

#[test]
fn a_connection_comes_up_once_more() {
    table(&once_more(), ONCE_MORE);
}

/// A message that waits for a slot.
const OUT_OF_CREDITS: &[Row] = &[
    (RefusePostSession, 59_172, 9),
    (RefusePostMemory, 51_093, 15),
    (RefuseWildcard, 42_101, 9),
    (EndTimeout, 36_383, 20),
    (EndTerminated, 65_997, 9),
    (EndError, 65_997, 9),
    (HoldDatagram, 42_272, 9),
    (DeafWildcard, 42_180, 4),
    (RefuseSetup, 19_082, 9),
    (RefuseRegister, 55_107, 12),
    (RefuseSend, 25_815, 12),
    (FailSend, 22_114, 12),
    (EarlyEvent, 63_242, 9),
    (DuplicateEvent, 56_774, 9),
    (HoldCredits, 49_632, 9),
    (RemoteOverrun, 40_394, 9),
    (BusyUnbind, 24_652, 9),
    (LocalOverrun, 625_709, 19),
];

#[test]
fn messages_wait_for_credits() {
    table(&out_of_credits(), OUT_OF_CREDITS);
}

/// What two faults do together, or one that strikes twice, or an application in a hurry.
#[test]
fn faults_meet_each_other() {
    let both = |faults: &[(Fault, u8)]| Bounds { faults: faults.to_vec(), ..Bounds::default() };
    let alone = || vec![Script::at_once(&[Send(1)]), Script::idle()];
    let up_and_down = || vec![Script::at_once(&[Connect(1), Close(1)]), Script::idle()];
    let back_and_forth = || vec![Script::in_turn(&[Send(1), Close(1), Send(1)]), Script::idle()];
    let counted = [
        count(&alone(), both(&[(EndTerminated, 1), (EndTimeout, 1)])),
        count(&alone(), both(&[(RefuseSetup, 2)])),
        count(&alone(), both(&[(RefuseSetup, 1), (EndTimeout, 1)])),
        count(&up_and_down(), one(RefuseSetup)),
        count(&out_of_credits(), Bounds { duplicates: 1, ..Bounds::default() }),
        count(&back_and_forth(), both(&[(RefusePostSession, 1), (RefuseSetup, 1)])),
    ];
    assert_eq!(
        counted,
        [(30_234, 147), (1_607, 36), (23_324, 150), (3_070, 9), (47_925, 2), (480_332, 432)]
    );
}

/// A proc dies, and the other is left with what it knew.
#[test]
fn one_of_two_dies() {
    let crash = || Bounds::<Module> { crashes: 1, ..Bounds::default() };
    let counted = [connected(), one_side(), both_sides(), once_more(), out_of_credits()]
        .map(|scripts| count(&scripts, crash()));
    assert_eq!(counted, [(868, 39), (28_675, 33), (429_523, 119), (188_913, 70), (23_207, 32)]);
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
        [(10_502, 2), (31_353, 2), (111_281, 4), (30_686, 4), (199_293, 10), (356_929, 6)]
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
            assert!(changed, "{fault:?}");
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

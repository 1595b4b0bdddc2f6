//! The simulated machines are held to published figures, each within its tolerance.

use std::path::Path;

use selvedge_core::NodeId;
use selvedge_scenarios::calibration::parts;
use selvedge_scenarios::calibration::probe::{Lab, Question};
use selvedge_scenarios::calibration::rank::How;
use selvedge_scenarios::calibration::table::{Labs, rows};
use selvedge_scenarios::machine;
use selvedge_scenarios::schema::machine::{Machine, MachineRef};

fn named(name: &str) -> Machine {
    let reference = MachineRef::Named(name.to_owned());
    machine::resolve(&reference, Path::new(".")).expect("a machine that comes along")
}

fn question(how: How, from: u32, to: u32, bytes: u32) -> Question {
    Question { how, from: NodeId(from), to: NodeId(to), bytes }
}

#[test]
fn every_asserted_row_lies_within_its_tolerance() {
    let (mut labs, mut asserted, mut out) = (Labs::default(), 0, Vec::new());
    for row in rows() {
        let verdict = row.verdict(&mut labs).expect("every row can be measured");
        if row.only_shown.is_none() {
            asserted += 1;
            if !verdict.holds {
                out.push((row.id, row.published, verdict));
            }
        }
    }
    assert!(out.is_empty(), "{out:#?}");
    assert_eq!(asserted, 95);
}

#[test]
fn a_measurement_is_the_same_twice() {
    let lab = Lab::new(&named("piz-daint-xc50")).expect("it builds");
    for how in [How::Put, How::Get, How::Message, How::Mpi] {
        let question = question(how, 3, 500, 4_096);
        assert_eq!(lab.latency(question), lab.latency(question));
        assert_eq!(lab.gap(question), lab.gap(question));
    }
}

#[test]
fn more_bytes_never_arrive_sooner() {
    for name in ["hopper", "piz-daint-xc50"] {
        let lab = Lab::new(&named(name)).expect("it builds");
        for how in [How::Put, How::Get, How::Mpi] {
            let mut before = selvedge_core::Span::ZERO;
            for bytes in (2..=20).map(|power| 1 << power) {
                let latency = lab.latency(question(how, 0, 9, bytes)).expect("it is measured");
                assert!(latency >= before, "{name} {how:?} {bytes} B: {latency} after {before}");
                before = latency;
            }
        }
    }
}

#[test]
fn the_parts_add_up_and_are_those_of_the_machine() {
    let machine = named("edison");
    let lab = Lab::new(&machine).expect("it builds");
    // In another group.
    let question = question(How::Mpi, 0, 3_000, 8);
    let (whole, shares) = parts::shares(&machine, question).expect("it is measured");
    assert_eq!(whole.latency as u64, lab.latency(question).expect("it is measured").0);
    let sum: i64 = shares.iter().map(|share| share.latency).sum();
    assert!((sum - whole.latency).abs() < 5_000, "{sum} of {}: {shares:?}", whole.latency);
    let of = |part: &str| shares.iter().find(|share| share.part == part).map(|it| it.latency);
    assert_eq!(of("MPI: send"), Some(280_000));
    assert_eq!(of("optical cables"), Some(140_000));
    assert_eq!(of("NIC"), Some(2 * 155_000));
    assert_eq!(of("BTE: start"), None, "no block is moved");
}

#[test]
fn what_cannot_be_measured_says_why() {
    let lab = Lab::new(&named("titan")).expect("it builds");
    let why = |question| lab.latency(question).expect_err("no such thing").to_string();
    assert!(why(question(How::Put, 0, 18_688, 8)).contains("the last one, 18687"));
    assert!(why(question(How::Put, 7, 7, 8)).contains("within a node"));
    assert!(why(question(How::Message, 0, 1, 1 << 20)).contains("too-long"));
}

//! Searches whose counts are pinned: a change of a machine, of the NIC or of the search that moves
//! one has to say why.

use selvedge_core::ugni::Module;
use selvedge_core::ugni::nic::Fault;
use selvedge_sim::explore::Bounds;
use selvedge_sim::ugni::Setup;

use crate::world::{Script, timeless};

/// What goes wrong, the states, and those of them that are at rest.
pub type Row = (Fault, u64, u64);

/// Bounds with one fault of a kind at each proc.
#[must_use]
pub fn one(fault: Fault) -> Bounds<Module> {
    Bounds { faults: vec![(fault, 1)], ..Bounds::default() }
}

/// Searches all of it, and finds nothing wrong: the states, and those of them that are at rest.
///
/// # Panics
/// When something is wrong, with the events that lead there; or when a bound ends the search.
#[must_use]
#[track_caller]
pub fn count(setup: Setup, scripts: &[Script], bounds: Bounds<Module>) -> (u64, u64) {
    let outcome = timeless::<Module>(setup, scripts, bounds).search(|_| true);
    if let Some(found) = &outcome.found {
        panic!("{scripts:?} {}:\n{}", found.rule, found.around.join("\n"));
    }
    assert!(outcome.complete);
    (outcome.progress.states, outcome.settled)
}

/// The rows as they are counted now.
#[must_use]
#[track_caller]
pub fn rows(setup: &Setup, scripts: &[Script], rows: &[Row]) -> Vec<Row> {
    rows.iter()
        .map(|&(fault, ..)| {
            let (states, settled) = count(setup.clone(), scripts, one(fault));
            (fault, states, settled)
        })
        .collect()
}

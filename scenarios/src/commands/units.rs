//! What commands that run scenarios share: the files that are named, and the seeds for each.

use std::path::PathBuf;

use crate::cli::{RunArgs, Session};
use crate::discover;
use crate::exit::Exit;
use crate::input::LoadError;
use crate::load::{Loaded, load};
use crate::schema::schedule::Seeds;

/// Loads every scenario under `paths`. When there is none or one is wrong, says so and returns
/// how to end: nothing is run then.
pub(super) fn load_all(paths: &[PathBuf], session: &mut Session<'_>) -> Result<Vec<Loaded>, Exit> {
    let files = discover::find(paths).map_err(|errors| {
        errors.iter().for_each(|error| session.complain(error));
        Exit::NoInput
    })?;
    if files.is_empty() {
        session.complain("nothing to run: no .json file there");
        return Err(Exit::Nothing);
    }
    let mut scenarios = Vec::new();
    let mut exit = None;
    for file in &files {
        match load(file) {
            Ok(scenario) => scenarios.push(scenario),
            Err(error) => {
                error.diagnostics().iter().for_each(|it| session.complain(it));
                exit = worse(exit, exit_of(&error));
            }
        }
    }
    match exit {
        None => Ok(scenarios),
        Some(exit) => Err(exit),
    }
}

/// How to end after one more file that could not be used: wrong input says more than missing.
pub(super) fn worse(so_far: Option<Exit>, new: Exit) -> Option<Exit> {
    match new {
        Exit::NoInput => so_far.or(Some(new)),
        _ => Some(new),
    }
}

/// How to end when a file could not be used.
pub(super) fn exit_of(error: &LoadError) -> Exit {
    match error {
        LoadError::Unreadable(_) => Exit::NoInput,
        LoadError::Invalid(_) => Exit::BadInput,
    }
}

/// All pairs of scenario and seed, numbered through: scenarios as they were named, seeds within.
pub(super) struct Units {
    pub(super) scenarios: Vec<Loaded>,
    seeds: Vec<Seeds>,
    /// The number of the first unit of each scenario, and behind them the number of all.
    starts: Vec<u64>,
}

impl Units {
    pub(super) fn new(args: &RunArgs, scenarios: Vec<Loaded>) -> Self {
        let seeds: Vec<Seeds> = (scenarios.iter())
            .map(|it| args.seeds().unwrap_or_else(|| it.scenario.seeds.clone()))
            .collect();
        let mut starts = vec![0_u64];
        for seeds in &seeds {
            let start = starts.last().copied().unwrap_or(0);
            starts.push(start.saturating_add(seeds.count()));
        }
        Units { scenarios, seeds, starts }
    }

    pub(super) fn count(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether `unit` is the last of its scenario.
    pub(super) fn is_last(&self, unit: u64) -> bool {
        self.starts.binary_search(&(unit + 1)).is_ok()
    }

    /// Unit number `unit`, which is below `count`.
    pub(super) fn get(&self, unit: u64) -> Option<(&Loaded, u64)> {
        let index = self.starts.partition_point(|&start| start <= unit).checked_sub(1)?;
        let seed = self.seeds.get(index)?.get(unit - self.starts[index])?;
        Some((self.scenarios.get(index)?, seed))
    }
}

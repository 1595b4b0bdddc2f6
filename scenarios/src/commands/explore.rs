//! `selvedge explore`

use std::io;
use std::time::Instant;

use super::units::load_all;
use crate::cli::{ExploreArgs, Session};
use crate::engine::{Engine, EngineError, Searched};
use crate::exit::Exit;
use crate::report::{Format, human, json};
use crate::terminal::Progress;

/// Searches all histories of a scenario.
///
/// # Errors
/// When results cannot be written.
pub fn explore(
    args: &ExploreArgs,
    session: &mut Session<'_>,
    engine: &dyn Engine,
) -> io::Result<Exit> {
    let scenarios = match load_all(std::slice::from_ref(&args.scenario), session) {
        Ok(scenarios) => scenarios,
        Err(exit) => return Ok(exit),
    };
    let [scenario] = &scenarios[..] else {
        session.complain("one scenario is searched at a time: name a file");
        return Ok(Exit::Usage);
    };
    let progress = Progress::open_ended(session.progress);
    let start = Instant::now();
    let result = engine.explore(scenario, &session.stop, &mut |searched| {
        progress.say(line(searched, start.elapsed().as_millis()));
    });
    progress.clear();
    let (name, file) = (&scenario.scenario.name, scenario.path.display().to_string());
    let explored = match result {
        Ok(explored) => explored,
        Err(EngineError::Interrupted) => return Ok(Exit::Interrupted),
        Err(EngineError::Unable(why)) => {
            session.complain(format_args!("error: {name}: {why}"));
            return Ok(Exit::Internal);
        }
    };
    let result = json::ExploreResult::new(name, &file, &explored);
    match session.format {
        Format::Human => human::explored(session.out, session.palette, (name, &file), &explored)?,
        Format::Json => json::document(session.out, &result)?,
        Format::Ndjson => json::line(session.out, &result)?,
    }
    Ok(match (explored.violations.is_empty(), explored.limit) {
        (false, _) => Exit::Failed,
        (true, Some(_)) => Exit::Limit,
        (true, None) => Exit::Passed,
    })
}

/// How far a search is, and how fast.
fn line(searched: Searched, elapsed_ms: u128) -> String {
    let Searched { states, depth, waiting, .. } = searched;
    let a_second = u128::from(states) * 1_000 / elapsed_ms.max(1);
    format!("{states} states, depth {depth}, {waiting} waiting, {a_second} states/s")
}

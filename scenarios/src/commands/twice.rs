//! `selvedge check-determinism`

use std::io;

use super::units::{Units, load_all};
use crate::cli::{RunArgs, Session};
use crate::engine::{Engine, EngineError, Twice};
use crate::exit::Exit;
use crate::jobs::in_order;
use crate::report::{Format, human, json};
use crate::terminal::Progress;

/// Runs every scenario with every seed twice and compares.
///
/// # Errors
/// When results cannot be written.
pub fn check(args: &RunArgs, session: &mut Session<'_>, engine: &dyn Engine) -> io::Result<Exit> {
    let units = match load_all(&args.paths, session) {
        Ok(scenarios) => Units::new(args, scenarios),
        Err(exit) => return Ok(exit),
    };
    let progress = Progress::of(units.count(), session.progress);
    let (mut same, mut differ, mut broken, mut written) = (0, 0, 0, Ok(()));
    let mut records = Vec::new();
    let stop = session.stop.clone();
    let work = |unit| {
        let (scenario, seed) = units.get(unit)?;
        Some(engine.run_twice(scenario, seed, &stop))
    };
    in_order(units.count(), args.threads(), &stop, work, |unit, result| {
        let Some((scenario, seed)) = units.get(unit) else { return true };
        let (name, file) = (&scenario.scenario.name, scenario.path.display().to_string());
        progress.step(name);
        let failure = match result {
            Ok(None | Some(Err(EngineError::Interrupted))) => return true,
            Ok(Some(Ok(twice))) => {
                match twice {
                    Twice::Same { .. } => same += 1,
                    Twice::Differ { .. } => differ += 1,
                }
                let record = json::TwiceRecord::new(name, &file, seed, &twice);
                written = progress.aside(|| match session.format {
                    Format::Human => {
                        human::twice(session.out, session.palette, (name, &file, seed), &twice)
                    }
                    Format::Json => {
                        records.push(record);
                        Ok(())
                    }
                    Format::Ndjson => json::line(session.out, &record),
                });
                return written.is_ok();
            }
            Ok(Some(Err(EngineError::Unable(why)))) => why,
            Err(panicked) => format!("panicked: {}", panicked.0),
        };
        broken += 1;
        progress.aside(|| session.complain(format_args!("error: {name} seed {seed}: {failure}")));
        true
    });
    progress.clear();
    written?;
    match session.format {
        Format::Human => human::last_line(session.out, same, differ + broken)?,
        Format::Json => json::document(session.out, &records)?,
        Format::Ndjson => {}
    }
    Ok(match (broken, differ) {
        (1.., _) => Exit::Internal,
        (0, 1..) => Exit::NotDeterministic,
        (0, 0) if same < units.count() => Exit::Interrupted,
        (0, 0) => Exit::Passed,
    })
}

//! `selvedge run`

use std::io;

use super::units::{Units, load_all};
use crate::cli::{RunArgs, Session};
use crate::engine::{Detail, Engine, EngineError};
use crate::exit::Exit;
use crate::jobs::in_order;
use crate::judge::{Strikes, Verdict, judge, repeat};
use crate::report::{RunReport, Summary};
use crate::terminal::Progress;

/// Runs every scenario with every seed and reports what came of it.
///
/// # Errors
/// When results cannot be written.
pub fn run(args: &RunArgs, session: &mut Session<'_>, engine: &dyn Engine) -> io::Result<Exit> {
    let units = match load_all(&args.paths, session) {
        Ok(scenarios) => Units::new(args, scenarios),
        Err(exit) => return Ok(exit),
    };
    let names = units.scenarios.iter().map(|it| it.scenario.name.as_str());
    let mut report = RunReport::new(session.format, session.palette, names);
    let (mut summary, mut strikes) = (Summary::default(), Strikes::default());
    let (mut done, mut broken, mut written) = (0, false, Ok(()));
    let progress = Progress::of(units.count(), session.progress);
    let stop = session.stop.clone();
    let work = |unit| {
        let (scenario, seed) = units.get(unit)?;
        let run = |detail| {
            let history = engine.run(scenario, seed, detail, &stop)?;
            Ok(judge(scenario, seed, history))
        };
        Some(match run(Detail::Outcome) {
            // The same again, with the events kept: that is what determinism is for.
            Ok(plain) if plain.verdict != Verdict::Passed => run(Detail::Events).or(Ok(plain)),
            outcome => outcome,
        })
    };
    in_order(units.count(), args.threads(), &stop, work, |unit, result| {
        let Some((scenario, seed)) = units.get(unit) else { return true };
        progress.step(&scenario.scenario.name);
        let failure = match result {
            Ok(None | Some(Err(EngineError::Interrupted))) => return true,
            Ok(Some(Ok(mut outcome))) => {
                done += 1;
                strikes.count(&outcome);
                if units.is_last(unit) {
                    let strikes = std::mem::take(&mut strikes);
                    // One seed alone is looked at again, not judged for all.
                    if args.seed.is_none() {
                        strikes.judge(scenario, &mut outcome);
                    }
                }
                summary.count(outcome.verdict);
                written = progress.aside(|| report.outcome(session.out, &outcome));
                return written.is_ok();
            }
            Ok(Some(Err(EngineError::Unable(why)))) => why,
            Err(panicked) => format!("panicked: {}", panicked.0),
        };
        done += 1;
        broken = true;
        summary.failed += 1;
        let repeat = repeat("run", &scenario.path.display().to_string(), Some(seed));
        let name = &scenario.scenario.name;
        progress.aside(|| {
            session
                .complain(format_args!("error: {name} seed {seed}: {failure}\n  repeat: {repeat}"));
        });
        true
    });
    progress.clear();
    written?;
    summary.interrupted = done < units.count();
    report.finish(session.out, summary)?;
    Ok(match summary {
        _ if broken => Exit::Internal,
        Summary { interrupted: true, .. } => Exit::Interrupted,
        Summary { failed: 1.., .. } | Summary { vacuous: 1.., .. } => Exit::Failed,
        Summary { limit: 1.., .. } => Exit::Limit,
        Summary { .. } => Exit::Passed,
    })
}

//! The engine that simulates: scenarios in worlds of `selvedge-sim`.

use selvedge_core::machine::Reason;
use selvedge_core::ugni::Module;
use selvedge_core::{Named, Span, Time};
use selvedge_sim::explore::{Bounds, Space};
use selvedge_sim::simulated::{Fault as FaultOf, Simulated};
use selvedge_sim::watch::{Found as Seen, Kind as Wrong, Met, Pattern, Watch, Watching};
use selvedge_sim::world::{End, World};

use crate::engine::{
    Bench, Detail, Engine, EngineError, Explored, Found, History, Kind, Latency, Matched, Searched,
    Twice,
};
use crate::jobs::Interrupt;
use crate::load::Loaded;
use crate::schema::faults::Fault;
use crate::vocabulary::SEARCH_FAULTS;
use crate::workload::{Remote, Work};

mod bench;
pub mod lower;

use lower::{Lowered, lower};

/// Runs scenarios in simulated worlds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

/// Events between two looks at whether somebody wants to stop.
const SLICE: u64 = 200_000;
/// Events that a report of what is wrong can draw on.
const RECORD: usize = 256;
/// Events that the end of a history shows.
const TAIL: usize = 24;

type Run = World<Module, Work>;

/// Runs a world to its end, within the limits of its scenario.
fn run_on(world: &mut Run, loaded: &Loaded, stop: &Interrupt) -> Result<End, EngineError> {
    let limits = &loaded.scenario.limits;
    let until = Time(limits.time.0.0);
    loop {
        let slice = limits.events.min(world.watch.events.saturating_add(SLICE));
        match world.run(until, slice, false) {
            End::Events if slice < limits.events => {
                if stop.raised() {
                    return Err(EngineError::Interrupted);
                }
            }
            end => return Ok(end),
        }
    }
}

fn watching(loaded: &Loaded, record: usize) -> Watching {
    let expect = &loaded.scenario.expect;
    let asked = expect.must.iter().chain(&expect.must_not);
    let asked = asked.map(|it| Pattern { event: it.event.clone(), proc: it.proc });
    // Where sends went wrong is of interest only where events are kept to show it.
    let wrong = ["failed", "unknown"].map(|event| Pattern { event: event.to_owned(), proc: None });
    let wrong = wrong.into_iter().filter(|_| record > 0);
    Watching {
        check_every: loaded.scenario.watch.check_every.max(1),
        contents_every: loaded.scenario.watch.contents_every,
        record,
        patterns: asked.chain(wrong).collect(),
        ..Watching::default()
    }
}

fn once(
    loaded: &Loaded,
    seed: u64,
    record: usize,
    stop: &Interrupt,
) -> Result<History, EngineError> {
    let Lowered { fabric, apps } = lower(loaded, seed)?;
    let mut world = World::new(fabric, apps, watching(loaded, record));
    let end = run_on(&mut world, loaded, stop)?;
    let unsettled = match end {
        End::Rest | End::Found => world.settle(),
        End::Time | End::Events => None,
    };
    if end == End::Rest {
        count_again(loaded, &mut world);
    }
    let limit = match end {
        End::Rest | End::Found => None,
        End::Time => Some(format!("{} of simulated time", loaded.scenario.limits.time.0)),
        End::Events => Some(format!("{} events", loaded.scenario.limits.events)),
    };
    Ok(history(loaded, &world, unsettled, limit))
}

/// At rest: the word of every window counts the adds that were done there, and no more than were
/// asked for. Nobody knows what those who died have done.
fn count_again(loaded: &Loaded, world: &mut Run) {
    let deadly = |fault: &Fault| matches!(fault, Fault::Crash(_) | Fault::Restart(_));
    if loaded.scenario.faults.iter().any(deadly) {
        return;
    }
    let mut adds = vec![[0, 0]; world.procs().len()];
    for proc in world.procs() {
        let Work::Remote(remote) = &proc.app else { return };
        for (partner, [done, maybe]) in remote.adds() {
            let [least, most] = &mut adds[partner as usize];
            *least += done;
            *most += done + maybe;
        }
    }
    for (rank, [least, most]) in adds.into_iter().enumerate() {
        let mut word = [0; 8];
        world.procs()[rank].memory.read_into(Remote::word(), &mut word);
        let counted = Remote::counted(u64::from_le_bytes(word));
        if !(least..=most).contains(&counted) {
            let (at, proc, rule) = (world.now(), rank as u32, "every add is done once");
            let (kind, around) = (Wrong::Safety, Vec::new());
            world.watch.found.push(Seen { rule, kind, at, proc, around });
        }
    }
}

fn history(
    loaded: &Loaded,
    world: &Run,
    unsettled: Option<String>,
    limit: Option<String>,
) -> History {
    let watch = &world.watch;
    let tally = |map: &std::collections::BTreeMap<Reason, u64>| {
        map.iter().map(|(reason, &n)| (reason.word().to_owned(), n)).collect()
    };
    let met = |met: &Met| Matched { count: met.count, last: met.last, around: met.around.clone() };
    let expect = &loaded.scenario.expect;
    let (must, rest) = watch.met.split_at(expect.must.len());
    let (must_not, wrong) = rest.split_at(expect.must_not.len());
    let [failures, unknowns] = match wrong {
        [failed, unknown] => [met(failed), met(unknown)],
        _ => [Matched::default(), Matched::default()],
    };
    History {
        digest: watch.digest.value(),
        time: Span(world.now().0),
        events: watch.events,
        messages: watch.messages,
        delivered: watch.delivered,
        operations: watch.asked,
        done: watch.operations,
        failed: tally(&watch.failed),
        unknown: tally(&watch.unknown),
        errors: tally(&watch.errors),
        latency: latency(watch),
        // Each end tells of its own.
        connections: watch.connections.div_ceil(2),
        reconnects: watch.reconnects.div_ceil(2),
        overruns: watch.overruns,
        violations: watch.found.iter().map(found).collect(),
        must: must.iter().map(met).collect(),
        must_not: must_not.iter().map(met).collect(),
        failures,
        unknowns,
        strikes: world.strikes(),
        unsettled,
        limit,
        tail: watch.recorder.as_ref().map_or(Vec::new(), |recorder| recorder.tail(TAIL)),
    }
}

fn latency(watch: &Watch<Module>) -> Latency {
    let Some(seen) = &watch.latency else { return Latency::default() };
    let at = |quantile| seen.value_at_quantile(quantile);
    Latency {
        p50_ps: at(0.5),
        p90_ps: at(0.9),
        p99_ps: at(0.99),
        p999_ps: at(0.999),
        max_ps: seen.max(),
    }
}

fn found(seen: &Seen) -> Found {
    Found {
        rule: seen.rule.to_owned(),
        kind: match seen.kind {
            Wrong::Safety => Kind::Safety,
            Wrong::Progress => Kind::Progress,
        },
        at: seen.at,
        detail: format!("at proc {}", seen.proc),
        around: seen.around.clone(),
    }
}

impl Engine for Simulator {
    fn run(
        &self,
        loaded: &Loaded,
        seed: u64,
        detail: Detail,
        stop: &Interrupt,
    ) -> Result<History, EngineError> {
        let record = match detail {
            Detail::Outcome => 0,
            Detail::Events => RECORD,
        };
        once(loaded, seed, record, stop)
    }

    fn run_twice(
        &self,
        loaded: &Loaded,
        seed: u64,
        stop: &Interrupt,
    ) -> Result<Twice, EngineError> {
        twice(loaded, seed, stop)
    }

    fn explore(
        &self,
        loaded: &Loaded,
        stop: &Interrupt,
        progress: &mut dyn FnMut(Searched),
    ) -> Result<Explored, EngineError> {
        explore(loaded, stop, progress)
    }

    fn benches(&self) -> &[&'static str] {
        bench::NAMES
    }

    fn bench(&self, name: &str) -> Result<Bench, EngineError> {
        bench::run(name)
    }
}

/// Runs twice, comparing digests; where they part, runs both again to see the event.
fn twice(loaded: &Loaded, seed: u64, stop: &Interrupt) -> Result<Twice, EngineError> {
    let run = |checkpoints, record, events: Option<u64>| {
        let Lowered { fabric, apps } = lower(loaded, seed)?;
        let watching = Watching { checkpoints, ..watching(loaded, record) };
        let mut world = World::new(fabric, apps, watching);
        match events {
            None => {
                run_on(&mut world, loaded, stop)?;
            }
            Some(events) => {
                world.run(Time::NEVER, events, false);
            }
        }
        Ok(world)
    };
    let (first, second): (Run, Run) = (run(false, 0, None)?, run(false, 0, None)?);
    let (a, b) = (&first.watch, &second.watch);
    if a.digest == b.digest && a.events == b.events {
        return Ok(Twice::Same { digest: a.digest.value(), events: a.events });
    }
    let (first, second): (Run, Run) = (run(true, 0, None)?, run(true, 0, None)?);
    let (a, b) = (&first.watch.checkpoints, &second.watch.checkpoints);
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let show = || -> Result<Option<String>, EngineError> {
        let world: Run = run(false, 1, Some(same as u64 + 1))?;
        Ok(world.watch.recorder.as_ref().and_then(|recorder| recorder.tail(1).pop()))
    };
    Ok(Twice::Differ { event: same as u64, first: show()?, second: show()? })
}

/// Searches a scenario: its faults, times and schedule are replaced by the bounds.
fn explore(
    loaded: &Loaded,
    stop: &Interrupt,
    progress: &mut dyn FnMut(Searched),
) -> Result<Explored, EngineError> {
    const PROCS: u32 = 8;
    if loaded.procs > PROCS {
        let procs = loaded.procs;
        let why = format!("{procs} procs are too many to search: write at most {PROCS}");
        return Err(EngineError::Unable(why));
    }
    let Lowered { fabric, apps } = lower(loaded, 0)?;
    let mut fabric = (*fabric).clone();
    let limits = &loaded.scenario.explore;
    fabric.setup = fabric.setup.timeless(u64::from(limits.retries));
    let mut bounds = Bounds::<Module> {
        depth: limits.depth.unwrap_or(0),
        states: limits.max_states,
        ..Bounds::default()
    };
    for (word, &most) in &limits.faults {
        let most = u8::try_from(most).unwrap_or(u8::MAX);
        match word.as_str() {
            "loss" => bounds.losses = most,
            "duplicate" => bounds.duplicates = most,
            "crash" => bounds.crashes = most,
            "early-timeout" => bounds.early = most,
            word => match <Module as Simulated>::fault(word) {
                Some(fault) => bounds.faults.push((fault, most)),
                None => {
                    let mut known = SEARCH_FAULTS.to_vec();
                    known.extend(<FaultOf<Module> as Named>::WORDS);
                    let why = crate::diagnostic::unknown("fault of a search", word, &known);
                    return Err(EngineError::Unable(why));
                }
            },
        }
    }
    let space = Space::new(std::sync::Arc::new(fabric), apps, bounds);
    let mut interrupted = false;
    let outcome = space.search(|seen| {
        progress(searched(seen));
        interrupted = stop.raised();
        !interrupted
    });
    if interrupted {
        return Err(EngineError::Interrupted);
    }
    let states = outcome.progress.states;
    let limit = (!outcome.complete && outcome.found.is_none()).then(|| format!("{states} states"));
    Ok(Explored {
        searched: searched(outcome.progress),
        settled: outcome.settled,
        violations: outcome.found.iter().map(found).collect(),
        limit,
    })
}

fn searched(progress: selvedge_sim::explore::Progress) -> Searched {
    let selvedge_sim::explore::Progress { states, edges, depth, waiting } = progress;
    Searched { states, edges, depth, waiting }
}

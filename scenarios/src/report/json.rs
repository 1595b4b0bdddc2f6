//! Results for programs: versioned, integers only, digests as 16 hex digits.

use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Summary;
use crate::calibration::parts::Share;
use crate::calibration::probe::Question;
use crate::calibration::rank::How;
use crate::calibration::table::{Bound, Row, Unit, Verdict as Held};
use crate::engine::{Bench, Explored, Kind, Latency, Twice};
use crate::judge::{Outcome, Verdict, Violation};
use crate::schema::SCHEMA_VERSION;

/// The result of `selvedge run --format json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunResult {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The version of the program: digests are comparable within one version.
    pub version: String,
    /// Every run, in order: scenarios as they were named, seeds within them.
    pub outcomes: Vec<OutcomeRecord>,
    /// How many came out how.
    pub summary: Summary,
}

/// A line of `selvedge run --format ndjson`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunLine {
    /// One run.
    Outcome(Box<OutcomeRecord>),
    /// The last line: how many came out how.
    Summary(Summary),
}

/// One run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutcomeRecord {
    /// The scenario's name.
    pub scenario: String,
    /// Its file.
    pub file: String,
    /// The seed.
    pub seed: u64,
    /// How it came out.
    pub verdict: Verdict,
    /// Why it is `vacuous` or ended at a limit; else `null`.
    pub reason: Option<String>,
    /// The digest of everything that happened: 16 hex digits.
    #[schemars(regex(pattern = "^[0-9a-f]{16}$"))]
    pub digest: String,
    /// Simulated time, in picoseconds.
    pub time_ps: u64,
    /// Events.
    pub events: u64,
    /// Messages sent, whatever became of them.
    pub messages: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Operations on remote memory asked for, whatever became of them.
    pub operations: u64,
    /// Operations on remote memory done.
    pub done: u64,
    /// Sends and operations that ended `Failed`, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Sends and operations that ended `Unknown`, by reason.
    pub unknown: BTreeMap<String, u64>,
    /// Error notices, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Times from send to delivery.
    pub latency: Latency,
    /// Connections made.
    pub connections: u64,
    /// Connections made again after one was lost.
    pub reconnects: u64,
    /// Completion queues that overran.
    pub overruns: u64,
    /// For each fault of the scenario, in its order, how often it struck.
    pub strikes: Vec<u64>,
    /// Everything that was wrong.
    pub violations: Vec<Violation>,
    /// The last events of a run that did not pass, oldest first.
    pub tail: Vec<String>,
}

/// A digest as files and reports spell it.
#[must_use]
pub fn hex(digest: u64) -> String {
    format!("{digest:016x}")
}

impl OutcomeRecord {
    /// What `outcome` says.
    #[must_use]
    pub fn new(outcome: &Outcome) -> Self {
        let history = &outcome.history;
        OutcomeRecord {
            scenario: outcome.scenario.clone(),
            file: outcome.file.clone(),
            seed: outcome.seed,
            verdict: outcome.verdict,
            reason: outcome.reason.clone(),
            digest: hex(history.digest),
            time_ps: history.time.0,
            events: history.events,
            messages: history.messages,
            delivered: history.delivered,
            operations: history.operations,
            done: history.done,
            failed: history.failed.clone(),
            unknown: history.unknown.clone(),
            errors: history.errors.clone(),
            latency: history.latency,
            connections: history.connections,
            reconnects: history.reconnects,
            overruns: history.overruns,
            strikes: history.strikes.clone(),
            violations: outcome.violations.clone(),
            tail: history.tail.clone(),
        }
    }
}

impl RunResult {
    /// All outcomes with their summary.
    #[must_use]
    pub fn new(outcomes: Vec<OutcomeRecord>, summary: Summary) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        RunResult { schema_version: SCHEMA_VERSION, version, outcomes, summary }
    }
}

/// One comparison of `selvedge check-determinism`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TwiceRecord {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Its file.
    pub file: String,
    /// The seed.
    pub seed: u64,
    /// Whether both runs were the same, event by event.
    pub same: bool,
    /// The digest of both, if they were.
    pub digest: Option<String>,
    /// The number of the first event that differs, if one does.
    pub event: Option<u64>,
    /// That event in the first run.
    pub first: Option<String>,
    /// That event in the second run.
    pub second: Option<String>,
}

impl TwiceRecord {
    /// What two runs of `seed` showed.
    #[must_use]
    pub fn new(scenario: &str, file: &str, seed: u64, twice: &Twice) -> Self {
        let (digest, event, first, second) = match twice.clone() {
            Twice::Same { digest, .. } => (Some(hex(digest)), None, None, None),
            Twice::Differ { event, first, second } => (None, Some(event), first, second),
        };
        TwiceRecord {
            schema_version: SCHEMA_VERSION,
            scenario: scenario.to_owned(),
            file: file.to_owned(),
            seed,
            same: event.is_none(),
            digest,
            event,
            first,
            second,
        }
    }
}

/// The result of `selvedge explore`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExploreResult {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Its file.
    pub file: String,
    /// Distinct states.
    pub states: u64,
    /// Steps from state to state.
    pub edges: u64,
    /// The depth reached.
    pub depth: u32,
    /// How many states are settled.
    pub settled: u64,
    /// The bound that ended the search early, if one did.
    pub limit: Option<String>,
    /// What was found wrong.
    pub violations: Vec<ExploreViolation>,
}

/// Something wrong that a search found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExploreViolation {
    /// The rule that was broken.
    pub rule: String,
    /// Of which kind it is.
    pub kind: Kind,
    /// What exactly was the matter.
    pub detail: String,
    /// The steps that lead to it.
    pub path: Vec<String>,
}

impl ExploreResult {
    /// What a search of the scenario in `file` found.
    #[must_use]
    pub fn new(scenario: &str, file: &str, explored: &Explored) -> Self {
        let violations = (explored.violations.iter())
            .map(|found| ExploreViolation {
                rule: found.rule.clone(),
                kind: found.kind,
                detail: found.detail.clone(),
                path: found.around.clone(),
            })
            .collect();
        ExploreResult {
            schema_version: SCHEMA_VERSION,
            scenario: scenario.to_owned(),
            file: file.to_owned(),
            states: explored.searched.states,
            edges: explored.searched.edges,
            depth: explored.searched.depth,
            settled: explored.settled,
            limit: explored.limit.clone(),
            violations,
        }
    }
}

/// One bench of `selvedge bench`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BenchRecord {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// Its name.
    pub name: String,
    /// What is counted, such as `messages`.
    pub counted: String,
    /// How many of that.
    pub count: u64,
    /// How many of that one second of CPU time gave.
    pub per_cpu_second: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Wall time, in nanoseconds.
    pub wall_ns: u64,
    /// The most memory that was resident, in bytes.
    pub peak_bytes: u64,
    /// Messages delivered.
    pub messages: u64,
    /// Events.
    pub events: u64,
    /// Connections made.
    pub connections: u64,
    /// The digest of the history, where there is one.
    pub digest: Option<String>,
}

impl BenchRecord {
    /// What `bench` measured.
    #[must_use]
    pub fn new(bench: &Bench) -> Self {
        BenchRecord {
            schema_version: SCHEMA_VERSION,
            name: bench.name.clone(),
            counted: bench.counted.clone(),
            count: bench.count,
            per_cpu_second: bench.per_cpu_second(),
            cpu_ns: bench.cpu_ns,
            wall_ns: bench.wall_ns,
            peak_bytes: bench.peak_bytes,
            messages: bench.messages,
            events: bench.events,
            connections: bench.connections,
            digest: bench.digest.map(hex),
        }
    }
}

/// One row of `selvedge calibrate`. Figures are in the smallest unit of their kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RowRecord {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The row's name.
    pub id: String,
    /// What is measured, and of what.
    pub what: String,
    /// In which unit the figures are.
    pub unit: Unit,
    /// What was published; `null` where nothing was found.
    pub published: Option<u64>,
    /// What the simulation says; `null` where the model has no such thing.
    pub simulated: Option<u64>,
    /// How far that is from the published figure, in parts per million.
    pub deviation_ppm: Option<i64>,
    /// How far it may be.
    pub within_ppm: u32,
    /// On which side.
    pub bound: Bound,
    /// Whether it is so near.
    pub holds: bool,
    /// Why the row is only shown, if that is so; else it is asserted.
    pub only_shown: Option<String>,
    /// Who published it.
    pub source: String,
}

impl RowRecord {
    /// A row and how it came out.
    #[must_use]
    pub fn new(row: &Row, verdict: &Held) -> Self {
        RowRecord {
            schema_version: SCHEMA_VERSION,
            id: row.id.clone(),
            what: row.what.to_owned(),
            unit: row.unit,
            published: row.published,
            simulated: verdict.simulated,
            deviation_ppm: verdict.deviation,
            within_ppm: row.within * 1_000,
            bound: row.bound,
            holds: verdict.holds,
            only_shown: row.only_shown.map(str::to_owned),
            source: row.source.to_owned(),
        }
    }
}

/// The answer of `selvedge calibrate --machine`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnswerRecord {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The machine.
    pub machine: String,
    /// How bytes travel.
    pub how: How,
    /// The node that asks.
    pub from: u32,
    /// The node that answers.
    pub to: u32,
    /// Bytes.
    pub bytes: u32,
    /// The latency, in picoseconds.
    pub latency_ps: i64,
    /// The bandwidth with many at a time, in bytes a second.
    pub bytes_per_second: u64,
    /// From one of them to the next, in picoseconds.
    pub gap_ps: i64,
    /// What each part adds to those before it; they add up.
    pub parts: Vec<PartRecord>,
}

/// What a part of a machine adds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartRecord {
    /// The part.
    pub part: String,
    /// To the latency, in picoseconds; less than nothing if it helps.
    pub latency_ps: i64,
    /// To the time from one of a stream to the next, in picoseconds.
    pub gap_ps: i64,
}

impl AnswerRecord {
    /// What was measured.
    #[must_use]
    pub fn new(machine: &str, question: Question, whole: Share, shares: &[Share]) -> Self {
        let part = |share: &Share| PartRecord {
            part: share.part.to_owned(),
            latency_ps: share.latency,
            gap_ps: share.gap,
        };
        AnswerRecord {
            schema_version: SCHEMA_VERSION,
            machine: machine.to_owned(),
            how: question.how,
            from: question.from.0,
            to: question.to.0,
            bytes: question.bytes,
            latency_ps: whole.latency,
            bytes_per_second: question.rate(whole.gap.unsigned_abs()),
            gap_ps: whole.gap,
            parts: shares.iter().map(part).collect(),
        }
    }
}

/// Writes one document, indented, with a newline at its end.
///
/// # Errors
/// When `out` cannot be written.
pub fn document(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Writes one document as one line.
///
/// # Errors
/// When `out` cannot be written.
pub fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

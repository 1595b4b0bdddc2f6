//! The runner with a made-up engine: what it reports, and how it ends.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use selvedge_core::time::{Span, Time};
use selvedge_scenarios::cli::{RunArgs, Session};
use selvedge_scenarios::commands::{run, twice};
use selvedge_scenarios::engine::{
    Bench, Detail, Engine, EngineError, Explored, Found, History, Kind, Latency, Searched, Twice,
};
use selvedge_scenarios::exit::Exit;
use selvedge_scenarios::jobs::Interrupt;
use selvedge_scenarios::load::Loaded;
use selvedge_scenarios::report::Format;
use selvedge_scenarios::schema::schedule::SeedRange;
use selvedge_scenarios::terminal::Palette;
use serde_json::Value;

/// Tells for each seed a history of its own.
struct Storyteller(fn(u64) -> Result<History, EngineError>);

impl Engine for Storyteller {
    fn run(&self, _: &Loaded, seed: u64, _: Detail, _: &Interrupt) -> Result<History, EngineError> {
        (self.0)(seed)
    }

    fn run_twice(&self, _: &Loaded, seed: u64, _: &Interrupt) -> Result<Twice, EngineError> {
        let (first, second) = ((self.0)(seed)?, (self.0)(seed + 1)?);
        Ok(match first == second {
            true => Twice::Same { digest: first.digest, events: first.events },
            false => Twice::Differ {
                event: 7,
                first: Some("2us proc 0 connected".to_owned()),
                second: None,
            },
        })
    }

    fn explore(
        &self,
        _: &Loaded,
        _: &Interrupt,
        _: &mut dyn FnMut(Searched),
    ) -> Result<Explored, EngineError> {
        Ok(Explored::default())
    }

    fn benches(&self) -> &[&'static str] {
        &[]
    }

    fn bench(&self, name: &str) -> Result<Bench, EngineError> {
        Err(EngineError::Unable(format!("no bench {name}")))
    }
}

fn good() -> History {
    History {
        digest: 0xabc,
        time: Span::from_us(9),
        events: 100,
        messages: 16,
        delivered: 16,
        latency: Latency {
            p50_ps: 1_500_000,
            p90_ps: 2_000_000,
            p99_ps: 3_000_000,
            p999_ps: 3_000_000,
            max_ps: 3_141_592,
        },
        connections: 1,
        tail: vec!["8us proc 1 arrived".to_owned(), "9us proc 0 sent".to_owned()],
        ..History::default()
    }
}

fn suite(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/ugni").join(name).with_extension("json")
}

struct Told {
    exit: Exit,
    out: String,
    err: String,
}

fn told(
    story: fn(u64) -> Result<History, EngineError>,
    seeds: SeedRange,
    format: Format,
    jobs: usize,
    command: fn(&RunArgs, &mut Session<'_>, &dyn Engine) -> std::io::Result<Exit>,
) -> Told {
    told_of(&suite("both-sides-connect-at-once"), story, seeds, format, jobs, command)
}

fn told_of(
    path: &Path,
    story: fn(u64) -> Result<History, EngineError>,
    seeds: SeedRange,
    format: Format,
    jobs: usize,
    command: fn(&RunArgs, &mut Session<'_>, &dyn Engine) -> std::io::Result<Exit>,
) -> Told {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut session = Session {
        out: &mut out,
        err: &mut err,
        format,
        palette: Palette::default(),
        progress: false,
        stop: Interrupt::new(),
    };
    let args = RunArgs {
        paths: vec![path.to_owned()],
        seed: None,
        seeds: Some(seeds),
        jobs: NonZeroUsize::new(jobs),
    };
    let exit = command(&args, &mut session, &Storyteller(story)).expect("memory takes it all");
    let text = |bytes| String::from_utf8(bytes).expect("reports are text");
    Told { exit, out: text(out), err: text(err) }
}

fn run_told(
    story: fn(u64) -> Result<History, EngineError>,
    seeds: u64,
    format: Format,
    jobs: usize,
) -> Told {
    told(story, SeedRange { from: 0, to: seeds }, format, jobs, run::run)
}

/// Seed 1 breaks a rule, seed 2 stays unsettled, seed 3 hits a limit, seed 4 loses a message.
fn troubled(seed: u64) -> Result<History, EngineError> {
    let mut history = good();
    match seed {
        1 => history.violations.push(Found {
            rule: "credits are conserved".to_owned(),
            kind: Kind::Safety,
            at: Time(1_500_000),
            detail: "ep3: 4 + 1 + 0 + 0 is not 4".to_owned(),
            around: vec!["1.4us proc 0 send".to_owned()],
        }),
        2 => history.unsettled = Some("proc 0 still waits for proc 1".to_owned()),
        3 => history.limit = Some("1000 events".to_owned()),
        4 => {
            history.delivered = 15;
            history.failed = BTreeMap::from([("peer-died".to_owned(), 1)]);
        }
        _ => {}
    }
    Ok(history)
}

#[test]
fn a_good_run_is_a_row_and_a_last_line() {
    let told = run_told(|_| Ok(good()), 1, Format::Human, 1);
    assert_eq!((told.exit, &told.err[..]), (Exit::Passed, ""));
    let lines: Vec<&str> = told.out.lines().collect();
    for part in
        ["passed", "both-sides-connect-at-once", "16/16", "1.5us", "3us", "0000000000000abc"]
    {
        assert!(lines[1].contains(part), "{}\nlacks {part}", lines[1]);
    }
    assert_eq!(lines.last(), Some(&"1 passed, 0 failed"));
}

#[test]
fn a_failure_shows_the_rule_the_events_and_the_way_back() {
    let told = run_told(troubled, 5, Format::Human, 2);
    assert_eq!(told.exit, Exit::Failed);
    for part in [
        "failed both-sides-connect-at-once seed 1",
        "  safety: credits are conserved at 1.5us: ep3: 4 + 1 + 0 + 0 is not 4",
        "    | 1.4us proc 0 send",
        "  progress: expect.settle: proc 0 still waits for proc 1",
        "    | 9us proc 0 sent",
        "limit both-sides-connect-at-once seed 3",
        "  hit the limit of 1000 events",
        "  progress: expect.delivered: expected exactly 16, got 15",
        "  safety: expect.failed.peer-died: expected none, got 1",
        "  repeat: selvedge run --seed 4 ",
    ] {
        assert!(told.out.contains(part), "{}\nlacks {part}", told.out);
    }
    assert!(told.out.ends_with("\n1 passed, 4 failed\n"), "{}", told.out);
}

#[test]
fn reports_do_not_depend_on_the_number_of_jobs() {
    for format in [Format::Human, Format::Json, Format::Ndjson] {
        let one = run_told(troubled, 40, format, 1).out;
        assert_eq!(run_told(troubled, 40, format, 4).out, one);
    }
}

#[test]
fn programs_get_the_same_as_people() {
    let told = run_told(troubled, 5, Format::Json, 2);
    let result: Value = serde_json::from_str(&told.out).expect("one document");
    let schema = serde_json::to_value(selvedge_scenarios::commands::schema::of(
        selvedge_scenarios::cli::SchemaOf::Result,
    ));
    let validator = jsonschema::validator_for(&schema.expect("JSON")).expect("a sound schema");
    assert!(validator.is_valid(&result), "{:?}", validator.iter_errors(&result).next());
    assert_eq!(result["schema_version"], 1);
    assert_eq!(result["summary"]["passed"], 1);
    assert_eq!(result["summary"]["failed"], 3);
    assert_eq!(result["summary"]["limit"], 1);
    let outcome = &result["outcomes"][1];
    assert_eq!(outcome["seed"], 1);
    assert_eq!(outcome["digest"], "0000000000000abc");
    assert_eq!(outcome["latency"]["p99_ps"], 3_000_000);
    assert_eq!(outcome["violations"][0]["kind"], "safety");
    assert_eq!(outcome["violations"][0]["at_ps"], 1_500_000);

    let lines = run_told(troubled, 5, Format::Ndjson, 2).out;
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a document a line")).collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[1]["outcome"], *outcome);
    assert_eq!(lines[5]["summary"], result["summary"]);
}

#[test]
fn what_proves_nothing_fails_as_vacuous() {
    let told =
        run_told(|_| Ok(History { delivered: 0, messages: 0, ..good() }), 1, Format::Human, 1);
    assert_eq!(told.exit, Exit::Failed);
    assert!(told.out.contains("vacuous"), "{}", told.out);
    assert!(told.out.contains("nothing was delivered"), "{}", told.out);
}

/// Runs a scenario with three seeds and one fault; `story` says how often it strikes with each.
fn run_with_fault(fault: &str, story: fn(u64) -> Result<History, EngineError>) -> Told {
    let path =
        std::env::temp_dir().join(format!("selvedge-{}-{fault:.8}.json", std::process::id()));
    let sound = fs::read_to_string(suite("both-sides-connect-at-once")).expect("it is there");
    let faulty = sound.replace("\"schedule\"", &format!("\"faults\": [{fault}], \"schedule\""));
    fs::write(&path, faulty).expect("a file for the test");
    let told = told_of(&path, story, SeedRange { from: 0, to: 3 }, Format::Human, 1, run::run);
    fs::remove_file(&path).expect("it was written");
    told
}

#[test]
fn chance_has_to_strike_once_and_all_else_each_time() {
    let by_chance = r#"{"loss": {"rate": "1%"}}"#;
    let each_time = r#"{"crash": {"procs": [1], "at": "1us"}}"#;
    let once = |seed| Ok(History { strikes: vec![u64::from(seed == 1)], ..good() });
    let never = |_| Ok(History { strikes: vec![0], ..good() });
    assert_eq!(run_with_fault(by_chance, once).exit, Exit::Passed);
    let told = run_with_fault(by_chance, never);
    assert_eq!(told.exit, Exit::Failed);
    assert!(told.out.contains("fault 0, `loss`, never struck with any seed"), "{}", told.out);
    assert!(told.out.ends_with("2 passed, 1 failed\n"), "{}", told.out);
    let told = run_with_fault(each_time, once);
    assert!(told.out.contains("fault 0, `crash`, never struck\n"), "{}", told.out);
    assert!(told.out.ends_with("1 passed, 2 failed\n"), "{}", told.out);
}

#[test]
fn how_it_ends_depends_on_the_worst() {
    type Story = fn(u64) -> Result<History, EngineError>;
    let cases: [(Story, Exit); 4] = [
        (|_| Ok(History { limit: Some("1s".to_owned()), ..good() }), Exit::Limit),
        (|_| Err(EngineError::Interrupted), Exit::Interrupted),
        (|_| Err(EngineError::Unable("no".to_owned())), Exit::Internal),
        (|seed| if seed == 1 { panic!("boom {seed}") } else { Ok(good()) }, Exit::Internal),
    ];
    for (story, exit) in cases {
        assert_eq!(run_told(story, 2, Format::Human, 1).exit, exit);
    }
    let told = run_told(|_| panic!("boom"), 1, Format::Human, 1);
    assert!(told.err.contains("panicked: boom\n  repeat: selvedge run --seed 0 "), "{}", told.err);
    assert!(told.out.ends_with("0 passed, 1 failed\n"), "{}", told.out);
}

#[test]
fn failures_beyond_ten_are_counted_not_shown() {
    let story = |_| Ok(History { unsettled: Some("waits".to_owned()), ..good() });
    let told = run_told(story, 25, Format::Human, 2);
    assert_eq!(told.out.matches("  repeat: ").count(), 10);
    assert!(told.out.contains("+15 more that did not pass"), "{}", told.out);
}

#[test]
fn two_histories_of_one_seed_are_named() {
    let range = SeedRange { from: 0, to: 2 };
    let same = told(|_| Ok(good()), range, Format::Human, 1, twice::check);
    assert_eq!(same.exit, Exit::Passed);
    assert!(same.out.ends_with("2 passed, 0 failed\n"), "{}", same.out);
    let story = |seed| Ok(History { digest: seed, ..good() });
    let differ = told(story, range, Format::Human, 1, twice::check);
    assert_eq!(differ.exit, Exit::NotDeterministic);
    for part in ["from event 7 on", "first:  2us proc 0 connected", "second: (the run had ended)"] {
        assert!(differ.out.contains(part), "{}\nlacks {part}", differ.out);
    }
}

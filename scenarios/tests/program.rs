//! The program as its callers see it: exit codes, streams, help.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn selvedge(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).stdin(Stdio::null());
    for name in ["SEED", "SEEDS", "JOBS", "FORMAT", "COLOR", "NO_PROGRESS", "MACHINE", "HOW"] {
        command.env_remove(format!("SELVEDGE_{name}"));
    }
    command
}

fn output(arguments: &[&str]) -> Output {
    selvedge(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder that goes when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a scratch folder");
        Scratch(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a scratch file");
        path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn bad_input_ends_at_once_with_the_right_code() {
    let scratch = Scratch::new("codes");
    let empty = Path::new(&scratch.0).join("empty");
    fs::create_dir_all(&empty).expect("a scratch folder");
    let empty = empty.display().to_string();
    let broken = scratch.file("broken.json", "{\n  \"schema_version\": 1,\n}");
    for verb in ["run", "validate", "check-determinism", "explore"] {
        for (arguments, code, expected) in [
            (vec![verb, &broken], 65, "broken.json:3:1: not JSON: trailing comma"),
            (vec![verb, "no/such/file.json"], 66, "no/such/file.json: cannot be read"),
            (vec![verb, &empty], 4, "no .json file there"),
            (vec![verb], 2, "Usage"),
            (vec![verb, "--no-such-flag"], 2, "unexpected argument"),
        ] {
            let output = output(&arguments);
            let complaint = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {complaint}");
            assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
            // Only `validate` has something to count.
            let results = text(&output.stdout);
            let counted = verb == "validate" && results == "0 valid, 1 invalid\n";
            assert!(results.is_empty() || counted, "{arguments:?}: {results}");
        }
    }
}

#[test]
fn validation_tells_people_and_programs() {
    let scratch = Scratch::new("validate");
    let wrong = scratch.file("wrong.json", "{\"schema_version\": 7}");
    let sound = output(&["validate", "suite", "machines"]);
    assert_eq!(sound.status.code(), Some(0), "{}", text(&sound.stderr));
    assert!(text(&sound.stdout).ends_with(" valid, 0 invalid\n"));
    let json = output(&["validate", "--format", "json", &wrong]);
    assert_eq!(json.status.code(), Some(65));
    let records: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(records[0]["valid"], false);
    assert_eq!(records[0]["problems"][0]["line"], 1);
    assert_eq!(records[0]["problems"][0]["column"], 20);
}

#[test]
fn lists_and_schemas_are_printed() {
    let list = output(&["list", "suite"]);
    assert_eq!(list.status.code(), Some(0), "{}", text(&list.stderr));
    for part in ["both-sides-connect-at-once", "titan", "link-down", "NIC faults"] {
        assert!(text(&list.stdout).contains(part), "the list lacks {part}");
    }
    for of in ["scenario", "machine", "result"] {
        let schema = output(&["schema", of]);
        let value: serde_json::Value = serde_json::from_slice(&schema.stdout).expect("JSON");
        assert!(value["$schema"].is_string());
    }
}

#[test]
fn help_teaches_and_the_environment_is_heard() {
    let help = text(&output(&["--help"]).stdout);
    for part in ["Examples:", "Exit codes:", "selvedge run --seed 7", "SELVEDGE_FORMAT"] {
        assert!(help.contains(part), "the help lacks {part}");
    }
    let json = selvedge(&["list", "suite"]).env("SELVEDGE_FORMAT", "json").output();
    let json = json.expect("the program starts").stdout;
    assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
    let bad = selvedge(&["run", "suite"]).env("SELVEDGE_SEEDS", "9..1").output();
    assert_eq!(bad.expect("the program starts").status.code(), Some(2));
}

#[test]
fn calibration_is_printed_row_by_row_and_asked() {
    let table = output(&["calibrate", "gemini-link", "aries-put-8"]);
    assert_eq!(table.status.code(), Some(0), "{}", text(&table.stderr));
    for part in ["gemini-link-x-cable", "9.375GB/s", "0.0%", "6 held, 0 not held, 0 only shown"] {
        assert!(text(&table.stdout).contains(part), "the table lacks {part}");
    }
    // A whole name is that row, not those that begin so.
    let rows = output(&["calibrate", "--format", "json", "aries-daint-osu-lat-8"]);
    let rows: serde_json::Value = serde_json::from_slice(&rows.stdout).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    assert_eq!((&rows[0]["published"], &rows[0]["unit"]), (&1_090_000.into(), &"ps".into()));
    assert_eq!(rows[0]["holds"], true);
    let lines = output(&["calibrate", "--format", "ndjson", "aries-rank"]);
    assert_eq!(text(&lines.stdout).lines().count(), 5);

    let asked = ["calibrate", "--machine", "hopper", "--to", "99", "--bytes", "4KiB"];
    let answer = output(&[&asked[..], &["--how", "put"]].concat());
    assert_eq!(answer.status.code(), Some(0), "{}", text(&answer.stderr));
    for part in ["hopper, put of 4096 B from node 0 to node 99", "bandwidth", "FMA: rate", "NIC"] {
        assert!(text(&answer.stdout).contains(part), "the answer lacks {part}");
    }
    let json = output(&[&asked[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(json["latency_ps"].as_u64() > Some(1_000_000) && json["parts"].is_array());

    let help = text(&output(&["calibrate", "--help"]).stdout);
    for part in ["Examples:", "--machine titan", "SELVEDGE_MACHINE", "until its bytes are in"] {
        assert!(help.contains(part), "the help lacks {part}");
    }
    for (arguments, code, expected) in [
        (&["calibrate", "no-such-row"][..], 2, "no row's name begins with `no-such-row`"),
        (&["calibrate", "--machine", "titam"], 2, "did you mean `titan`?"),
        (&["calibrate", "--machine", "no/such.json"], 66, "cannot be read"),
        (&["calibrate", "--machine", "titan", "--to", "99999"], 2, "beyond the last one"),
        (&["calibrate", "--machine", "titan", "--bytes", "9"], 2, "write a unit"),
        (&["calibrate", "--machine", "titan", "--bytes", "8GiB"], 2, "at most 64MiB"),
        (&["calibrate", "aries", "--machine", "titan"], 2, "cannot be used with"),
    ] {
        let output = output(arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {complaint}");
        assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_reader_that_went_away_is_no_panic() {
    for arguments in [&["schema"][..], &["list", "suite"], &["--help"]] {
        let mut child = selvedge(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the program ends");
        let complaint = text(&output.stderr);
        assert!(!complaint.contains("panicked"), "{arguments:?}: {complaint}");
        // The pipe may take a short text before it is closed.
        assert!(matches!(output.status.code(), Some(0 | 74)), "{arguments:?}: {}", output.status);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
    let output = selvedge(&["schema"]).stdout(full).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(74));
    assert!(text(&output.stderr).contains("output cannot be written"));
}

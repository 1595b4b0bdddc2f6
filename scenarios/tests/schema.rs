//! The published JSON Schemas: made from the types, checked in, and true of every file here.

use std::fs;
use std::path::{Path, PathBuf};

use selvedge_scenarios::cli::SchemaOf;
use selvedge_scenarios::commands::schema;
use selvedge_scenarios::{discover, input, load, machine};
use serde_json::Value;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn the_schemas_checked_in_are_those_of_the_types() {
    for (name, format) in [
        ("scenario", SchemaOf::Scenario),
        ("machine", SchemaOf::Machine),
        ("result", SchemaOf::Result),
    ] {
        let path = here(&format!("schema/{name}.json"));
        let fresh = serde_json::to_value(schema::of(format)).expect("a schema is JSON");
        let remedy = format!("selvedge schema {name} > scenarios/schema/{name}.json");
        assert!(fs::exists(&path).unwrap_or(false), "write it: {remedy}");
        assert!(read(&path) == fresh, "{name}.json is out of date, write it anew: {remedy}");
    }
}

#[test]
fn every_file_here_is_sound_and_meets_its_schema() {
    for (folder, format) in [("suite", SchemaOf::Scenario), ("machines", SchemaOf::Machine)] {
        let files = discover::find(&[here(folder)]).expect("the folder is there");
        assert!(!files.is_empty(), "{folder} is empty");
        let schema = serde_json::to_value(schema::of(format)).expect("a schema is JSON");
        let validator = jsonschema::validator_for(&schema).expect("a sound schema");
        for file in files {
            let problems: Vec<String> =
                validator.iter_errors(&read(&file)).map(|e| format!("{e}")).collect();
            assert!(problems.is_empty(), "{}: {problems:?}", file.display());
            let loaded = match format {
                SchemaOf::Machine => {
                    let bytes = fs::read(&file).expect("it was read before");
                    machine::parse("m.json", bytes).map(drop).map_err(input::LoadError::Invalid)
                }
                _ => load::load(&file).map(drop),
            };
            assert!(loaded.is_ok(), "{}: {loaded:?}", file.display());
        }
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let schema = serde_json::to_value(schema::of(SchemaOf::Scenario)).expect("a schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a sound schema");
    let sound = read(&here("suite/ugni/both-sides-connect-at-once.json"));
    assert!(validator.is_valid(&sound));
    for (pointer, wrong) in [
        ("/schema_version", serde_json::json!(2)),
        ("/machine", serde_json::json!({"torus": {}})),
        ("/machine/gemini/hops", serde_json::json!(1)),
        ("/workload/script/0/steps/0/at", serde_json::json!("1 us")),
        ("/workload/script/0/steps/0/at", serde_json::json!(1)),
        ("/schedule", serde_json::json!("random")),
        ("/expect/delivered", serde_json::json!("most")),
        ("/colour", serde_json::json!("red")),
        ("/faults", serde_json::json!([{"crash": {"at": "1us"}}])),
        ("/faults", serde_json::json!([{"crash": {"at": "1us", "procs": [0], "links": []}}])),
    ] {
        let mut damaged = sound.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        damaged.pointer_mut(parent).expect("the parent is there")[key] = wrong.clone();
        assert!(!validator.is_valid(&damaged), "{pointer} = {wrong} must be refused");
        let read = load::parse(Path::new("x.json"), damaged.to_string().into());
        assert!(read.is_err(), "{pointer} = {wrong} must be refused by the reader too");
    }
}

//! The table of known defects, and what it points to.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The rows of the table: an id, and what it is shown by.
fn rows() -> Vec<(String, Vec<String>)> {
    let path = root().join("scenarios/suite/ugni/README.md");
    let text = fs::read_to_string(path).expect("the table is there");
    let rows = text.lines().filter(|line| line.starts_with('|') && !line.starts_with("| ---"));
    rows.filter(|line| !line.starts_with("| id |"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells.len(), 4, "{line}");
            let shown = cells[3].split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (cells[0].to_owned(), shown)
        })
        .collect()
}

#[test]
fn every_row_points_to_something_that_is_there() {
    let mut missing = Vec::new();
    for (id, shown) in rows() {
        assert!(!shown.is_empty(), "{id} is shown by nothing");
        for name in shown {
            let there = match name.split_once("::") {
                Some((path, function)) => fs::read_to_string(root().join(path))
                    .is_ok_and(|text| text.contains(&format!("fn {function}("))),
                None => root().join(format!("scenarios/suite/ugni/{name}.json")).exists(),
            };
            if !there {
                missing.push(format!("{id}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

#[test]
fn every_number_has_its_row_once() {
    let rows = rows();
    for (letter, last) in [('A', 25), ('C', 29)] {
        for number in 1..=last {
            let id = format!("U-{letter}{number}");
            assert_eq!(rows.iter().filter(|(other, _)| *other == id).count(), 1, "{id}");
        }
    }
    let mut ids: Vec<&str> = rows.iter().map(|(id, _)| id.as_str()).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "two rows have one id");
}

//! `selvedge validate`

use std::io;
use std::path::Path;

use serde::Serialize;

use super::units::{exit_of, worse};
use crate::cli::{PathArgs, Session};
use crate::diagnostic::Diagnostic;
use crate::exit::Exit;
use crate::input::{LoadError, read_file};
use crate::load;
use crate::report::{Format, json};
use crate::spanned::{Document, Value};
use crate::{discover, machine};

#[derive(Serialize)]
struct Record {
    file: String,
    valid: bool,
    problems: Vec<Diagnostic>,
}

/// Checks every file, scenario or machine, and says what is wrong.
///
/// # Errors
/// When results cannot be written.
pub fn validate(args: &PathArgs, session: &mut Session<'_>) -> io::Result<Exit> {
    let files = match discover::find(&args.paths) {
        Ok(files) => files,
        Err(errors) => {
            errors.iter().for_each(|error| session.complain(error));
            return Ok(Exit::NoInput);
        }
    };
    if files.is_empty() {
        session.complain("nothing to validate: no .json file there");
        return Ok(Exit::Nothing);
    }
    let (mut exit, mut valid, mut invalid) = (None, 0, 0);
    let mut records = Vec::new();
    for path in &files {
        let problems = match one(path) {
            Ok(()) => Vec::new(),
            Err(error) => {
                exit = worse(exit, exit_of(&error));
                error.diagnostics().to_vec()
            }
        };
        *if problems.is_empty() { &mut valid } else { &mut invalid } += 1;
        let file = path.display().to_string();
        let record = Record { file, valid: problems.is_empty(), problems };
        match session.format {
            Format::Human => record.problems.iter().for_each(|problem| session.complain(problem)),
            Format::Json => records.push(record),
            Format::Ndjson => json::line(session.out, &record)?,
        }
    }
    match session.format {
        Format::Human => writeln!(session.out, "{valid} valid, {invalid} invalid")?,
        Format::Json => json::document(session.out, &records)?,
        Format::Ndjson => {}
    }
    Ok(exit.unwrap_or(Exit::Passed))
}

/// Checks one file; what has a `fabric` is a machine.
fn one(path: &Path) -> Result<(), LoadError> {
    let bytes = read_file(path)?;
    let name = path.display().to_string();
    let is_machine = Document::parse(&name, bytes.clone()).is_ok_and(|document| {
        matches!(&document.root().value, Value::Object(members)
            if members.iter().any(|member| member.key == "fabric"))
    });
    if is_machine {
        machine::parse(&name, bytes).map(drop).map_err(LoadError::Invalid)
    } else {
        load::parse(path, bytes).map(drop)
    }
}

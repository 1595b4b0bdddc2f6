//! From a path to a scenario that makes sense: read, parse, resolve, check.

use std::path::{Path as FilePath, PathBuf};

use crate::check;
use crate::input::{LoadError, read_file};
use crate::machine::{self, MachineError};
use crate::schema::machine::{Machine, MachineRef};
use crate::schema::{SCHEMA_VERSION, Scenario};
use crate::spanned::{Document, Path};

/// A scenario that passed every check, with the machine that it runs on.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its file.
    pub path: PathBuf,
    /// What it says.
    pub scenario: Scenario,
    /// The machine it names.
    pub machine: Machine,
    /// How many procs there are.
    pub procs: u32,
}

/// Loads the scenario file at `path`.
///
/// # Errors
/// When it cannot be read, or with everything that is wrong with it.
pub fn load(path: &FilePath) -> Result<Loaded, LoadError> {
    parse(path, read_file(path)?)
}

/// Loads a scenario from the bytes of the file at `path`.
///
/// # Errors
/// With everything that is wrong with it.
pub fn parse(path: &FilePath, bytes: Vec<u8>) -> Result<Loaded, LoadError> {
    let invalid = |error| LoadError::Invalid(vec![error]);
    let document = Document::parse(&path.display().to_string(), bytes).map_err(invalid)?;
    document.require_version(SCHEMA_VERSION).map_err(invalid)?;
    let scenario: Scenario = document.read().map_err(invalid)?;
    let folder = path.parent().unwrap_or(FilePath::new("."));
    let machine_path = Path::root().key("machine");
    let machine = match machine::resolve(&scenario.machine, folder) {
        Ok(machine) => machine,
        Err(MachineError::Unknown(message)) => {
            return Err(invalid(document.mistake(&machine_path, message)));
        }
        Err(MachineError::File(error)) => return Err(error),
    };
    let mut problems = Vec::new();
    if let MachineRef::Inline(fabric) = &scenario.machine {
        let here = |(path, message)| (machine_path.join(&path), message);
        problems.extend(fabric.problems().into_iter().map(here));
    }
    // Nothing else can be judged on a machine that makes no sense.
    let mut procs = 0;
    if problems.is_empty() {
        procs = check::proc_count(&scenario, &machine);
        problems = check::problems(&scenario, &machine);
    }
    if problems.is_empty() {
        return Ok(Loaded { path: path.to_owned(), scenario, machine, procs });
    }
    Err(LoadError::Invalid(
        problems.into_iter().map(|(path, message)| document.mistake(&path, message)).collect(),
    ))
}

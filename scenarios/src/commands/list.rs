//! `selvedge list`

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use super::units::load_all;
use crate::cli::{ListArgs, Session};
use crate::engine::Engine;
use crate::exit::Exit;
use crate::machine::{self, BUILT_IN};
use crate::report::{Format, json};
use crate::schema::SCHEMA_VERSION;
use crate::schema::faults::Fault;
use crate::schema::machine::{MachineRef, TransportName};
use crate::schema::transport::shown;
use crate::vocabulary::Vocabulary;

const SUITE: &str = "scenarios/suite";

#[derive(Serialize)]
struct Listing {
    schema_version: u32,
    scenarios: Vec<ScenarioEntry>,
    machines: Vec<MachineEntry>,
    transports: BTreeMap<&'static str, TransportEntry>,
    faults: &'static [&'static str],
    benches: Vec<&'static str>,
}

#[derive(Serialize)]
struct ScenarioEntry {
    name: String,
    file: String,
    description: String,
}

#[derive(Serialize)]
struct MachineEntry {
    name: String,
    nodes: u32,
    description: String,
}

#[derive(Serialize)]
struct TransportEntry {
    tunables: Vec<TunableEntry>,
    nic: Vec<TunableEntry>,
    nic_faults: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
struct TunableEntry {
    name: &'static str,
    default: String,
    min: String,
    max: String,
    meaning: &'static str,
}

/// Lists what there is to name in scenarios and on the command line.
///
/// # Errors
/// When results cannot be written.
pub fn list(args: &ListArgs, session: &mut Session<'_>, engine: &dyn Engine) -> io::Result<Exit> {
    let suite = PathBuf::from(SUITE);
    let paths = match &args.paths[..] {
        [] if suite.is_dir() => vec![suite],
        paths => paths.to_vec(),
    };
    let scenarios = match paths.is_empty() {
        true => Vec::new(),
        false => match load_all(&paths, session) {
            Ok(scenarios) => scenarios,
            Err(exit) => return Ok(exit),
        },
    };
    let scenarios = scenarios.into_iter().map(|it| ScenarioEntry {
        name: it.scenario.name,
        file: it.path.display().to_string(),
        description: it.scenario.description,
    });
    let machines = BUILT_IN.iter().filter_map(|(name, _)| {
        let here = std::path::Path::new(".");
        let machine = machine::resolve(&MachineRef::Named((*name).to_owned()), here).ok()?;
        let nodes = machine.node_count();
        Some(MachineEntry { name: machine.name, nodes, description: machine.description })
    });
    let transports = TransportName::ALL.iter().filter_map(|&name| {
        let words = Vocabulary::of(name);
        let entry = TransportEntry {
            tunables: words.tunables.iter().map(entry).collect(),
            nic: words.nic.iter().map(entry).collect(),
            nic_faults: words.nic_faults.iter().map(|it| (it.word, it.meaning)).collect(),
        };
        let known = !(entry.tunables.is_empty() && entry.nic_faults.is_empty());
        known.then_some((name.word(), entry))
    });
    let listing = Listing {
        schema_version: SCHEMA_VERSION,
        scenarios: scenarios.collect(),
        machines: machines.collect(),
        transports: transports.collect(),
        faults: Fault::WORDS,
        benches: engine.benches().to_vec(),
    };
    match session.format {
        Format::Human => human(session, &listing)?,
        Format::Json => json::document(session.out, &listing)?,
        Format::Ndjson => json::line(session.out, &listing)?,
    }
    Ok(Exit::Passed)
}

fn entry(row: &selvedge_core::config::Tunable) -> TunableEntry {
    TunableEntry {
        name: row.name,
        default: shown(row.unit, row.default),
        min: shown(row.unit, row.min),
        max: shown(row.unit, row.max),
        meaning: row.meaning,
    }
}

fn human(session: &mut Session<'_>, listing: &Listing) -> io::Result<()> {
    let (strong, faint) = (session.palette.strong, session.palette.faint);
    let out = &mut *session.out;
    writeln!(out, "{strong}scenarios{strong:#}")?;
    for ScenarioEntry { name, file, description } in &listing.scenarios {
        writeln!(out, "  {name}  {faint}{file}{faint:#}")?;
        if !description.is_empty() {
            writeln!(out, "      {description}")?;
        }
    }
    writeln!(out, "{strong}machines{strong:#}")?;
    for MachineEntry { name, nodes, description } in &listing.machines {
        writeln!(out, "  {name}  {faint}{nodes} nodes{faint:#}\n      {description}")?;
    }
    for (transport, entry) in &listing.transports {
        for (title, rows) in [("tunables", &entry.tunables), ("NIC parameters", &entry.nic)] {
            if !rows.is_empty() {
                writeln!(out, "{strong}{transport}: {title}{strong:#}")?;
            }
            for TunableEntry { name, default, min, max, meaning } in rows {
                writeln!(
                    out,
                    "  {name}  {faint}{default} ({min} to {max}){faint:#}\n      {meaning}"
                )?;
            }
        }
        writeln!(out, "{strong}{transport}: NIC faults{strong:#}")?;
        for (word, meaning) in &entry.nic_faults {
            writeln!(out, "  {word}\n      {meaning}")?;
        }
    }
    writeln!(out, "{strong}faults{strong:#}\n  {}", listing.faults.join(", "))?;
    if !listing.benches.is_empty() {
        writeln!(out, "{strong}benches{strong:#}\n  {}", listing.benches.join(", "))?;
    }
    Ok(())
}

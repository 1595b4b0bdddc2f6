//! `selvedge bench`

use std::io;
use std::process::{Command, Stdio};

use crate::cli::{BenchArgs, Session};
use crate::diagnostic::unknown;
use crate::engine::Engine;
use crate::exit::Exit;
use crate::report::json::BenchRecord;
use crate::report::{Format, json};

/// Runs the named benches, or all. One is measured in this process; of several, each gets a
/// process of its own, so that none sees the memory of another.
///
/// # Errors
/// When results cannot be written.
pub fn bench(args: &BenchArgs, session: &mut Session<'_>, engine: &dyn Engine) -> io::Result<Exit> {
    let known = engine.benches();
    if let Some(name) = args.names.iter().find(|name| !known.contains(&name.as_str())) {
        session.complain(format_args!("error: {}", unknown("bench", name, known)));
        return Ok(Exit::Usage);
    }
    let names: Vec<&str> = match &args.names[..] {
        [] => known.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    if names.is_empty() {
        session.complain("nothing to measure: this build has no benches in it");
        return Ok(Exit::Nothing);
    }
    let mut records = Vec::new();
    for name in &names {
        if session.stop.raised() {
            return Ok(Exit::Interrupted);
        }
        let measured = match &names[..] {
            [_] => engine.bench(name).map(|it| BenchRecord::new(&it)).map_err(|e| e.to_string()),
            _ => apart(name),
        };
        let record = match measured {
            Ok(record) => record,
            Err(why) => {
                session.complain(format_args!("error: {name}: {why}"));
                return Ok(Exit::Internal);
            }
        };
        match session.format {
            Format::Human => human(session, &record)?,
            Format::Json => records.push(record),
            Format::Ndjson => json::line(session.out, &record)?,
        }
    }
    if session.format == Format::Json {
        json::document(session.out, &records)?;
    }
    Ok(Exit::Passed)
}

/// Measures one bench in a process of its own.
fn apart(name: &str) -> Result<BenchRecord, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["bench", "--format", "ndjson", name])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("its process ended with {}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn human(session: &mut Session<'_>, record: &BenchRecord) -> io::Result<()> {
    let BenchRecord { name, counted, count, per_cpu_second, cpu_ns, wall_ns, peak_bytes, .. } =
        record;
    let strong = session.palette.strong;
    writeln!(
        session.out,
        "{strong}{name:<14}{strong:#} {per_cpu_second:>12} {counted} per CPU second; {count} in \
         {} ms CPU, {} ms wall, {} KiB at most",
        cpu_ns / 1_000_000,
        wall_ns / 1_000_000,
        peak_bytes / 1024
    )?;
    session.out.flush()
}

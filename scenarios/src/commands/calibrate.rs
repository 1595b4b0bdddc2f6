//! `selvedge calibrate`

use std::io;
use std::path::Path;

use selvedge_core::NodeId;

use super::units::exit_of;
use crate::calibration::parts::{self, Share};
use crate::calibration::probe::{BYTES_MAX, Question};
use crate::calibration::table::{Bound, Labs, Row, Unit, Verdict, rows};
use crate::cli::{CalibrateArgs, Session};
use crate::engine::EngineError;
use crate::exit::Exit;
use crate::machine::{self, MachineError};
use crate::quantity::{Bytes, Duration, Rate};
use crate::report::json::{AnswerRecord, RowRecord};
use crate::report::{Format, json};
use crate::schema::machine::MachineRef;

/// Compares published figures with simulated ones, or answers a question about a machine.
///
/// # Errors
/// When results cannot be written.
pub fn calibrate(args: &CalibrateArgs, session: &mut Session<'_>) -> io::Result<Exit> {
    match &args.machine {
        Some(name) => answer(name, args, session),
        None => compare(args, session),
    }
}

fn compare(args: &CalibrateArgs, session: &mut Session<'_>) -> io::Result<Exit> {
    let all = rows();
    let mut chosen = Vec::new();
    for name in &args.rows {
        // A whole name means that row alone.
        let whole = all.iter().any(|row| row.id == *name);
        let named = |row: &&Row| if whole { row.id == *name } else { row.id.starts_with(name) };
        let before = chosen.len();
        chosen.extend(all.iter().filter(named));
        if chosen.len() == before {
            session.complain(format_args!("error: no row's name begins with `{name}`"));
            return Ok(Exit::Usage);
        }
    }
    if args.rows.is_empty() {
        chosen.extend(&all);
    }
    let (mut labs, mut records) = (Labs::default(), Vec::new());
    let (mut held, mut failed, mut shown) = (0, 0, 0);
    if session.format == Format::Human {
        heading(session)?;
    }
    for row in chosen {
        if session.stop.raised() {
            return Ok(Exit::Interrupted);
        }
        let verdict = match row.verdict(&mut labs) {
            Ok(verdict) => verdict,
            Err(why) => return Ok(internal(session, &row.id, &why)),
        };
        match (row.only_shown, verdict.holds) {
            (Some(_), _) => shown += 1,
            (None, true) => held += 1,
            (None, false) => failed += 1,
        }
        match session.format {
            Format::Human => human(session, row, &verdict)?,
            Format::Json => records.push(RowRecord::new(row, &verdict)),
            Format::Ndjson => json::line(session.out, &RowRecord::new(row, &verdict))?,
        }
    }
    match session.format {
        Format::Human => {
            writeln!(session.out, "{held} held, {failed} not held, {shown} only shown")?;
        }
        Format::Json => json::document(session.out, &records)?,
        Format::Ndjson => {}
    }
    Ok(if failed == 0 { Exit::Passed } else { Exit::Failed })
}

fn internal(session: &mut Session<'_>, what: &str, why: &EngineError) -> Exit {
    session.complain(format_args!("error: {what}: {why}"));
    Exit::Internal
}

fn heading(session: &mut Session<'_>) -> io::Result<()> {
    let strong = session.palette.strong;
    let titles = ["row", "published", "simulated", "deviation", "within"];
    let [row, published, simulated, deviation, within] = titles;
    writeln!(
        session.out,
        "{strong}{row:<30} {published:>12} {simulated:>14} {deviation:>9} {within:>8}        \
         what{strong:#}"
    )
}

fn human(session: &mut Session<'_>, row: &Row, verdict: &Verdict) -> io::Result<()> {
    let palette = session.palette;
    let simulated = verdict.simulated.map_or("-".to_owned(), |value| figure(value, row.unit));
    let deviation = verdict.deviation.map_or("-".to_owned(), percent);
    let sign = match row.bound {
        Bound::About => "",
        Bound::AtMost => "<",
        Bound::AtLeast => ">",
    };
    let within = match row.published {
        Some(_) => format!("{sign}{}.{}%", row.within / 10, row.within % 10),
        None => "-".to_owned(),
    };
    let (style, word) = match (row.only_shown, verdict.holds) {
        (Some(_), _) => (palette.unsure, "shown"),
        (None, true) => (palette.good, "ok"),
        (None, false) => (palette.bad, "OUT"),
    };
    let published = row.published.map_or("-".to_owned(), |value| figure(value, row.unit));
    let id = &row.id;
    let (what, faint) = (row.what, palette.faint);
    write!(
        session.out,
        "{id:<30} {published:>12} {simulated:>14} {deviation:>9} {within:>8} {style}{word:>5}\
         {style:#}  {what}"
    )?;
    match row.only_shown {
        Some(why) => writeln!(session.out, "{faint} ({why}){faint:#}"),
        None => writeln!(session.out),
    }
}

/// A figure as people read it: times to the nanosecond, rates to the megabyte.
fn figure(value: u64, unit: Unit) -> String {
    let round = |value: u64, to: u64| (value + to / 2) / to * to;
    match unit {
        Unit::Time => Duration(selvedge_core::Span(round(value, 1_000))).to_string(),
        Unit::Rate if value >= 10_000_000_000 => Rate(round(value, 10_000_000)).to_string(),
        Unit::Rate if value >= 1_000_000_000 => Rate(round(value, 1_000_000)).to_string(),
        Unit::Rate => Rate(round(value, 10_000)).to_string(),
        Unit::BitRate => {
            format!("{}.{}Gbps", value / 1_000_000_000, value % 1_000_000_000 / 100_000_000)
        }
        Unit::Bytes => format!("{value}B"),
        Unit::Count => value.to_string(),
        Unit::Fraction => format!("{}.{:02}%", value / 10_000, value % 10_000 / 100),
    }
}

/// Parts per million as a percentage with its sign.
fn percent(ppm: i64) -> String {
    let tenths = (ppm.unsigned_abs() + 500) / 1_000;
    let sign = if tenths == 0 {
        ""
    } else if ppm < 0 {
        "-"
    } else {
        "+"
    };
    format!("{sign}{}.{}%", tenths / 10, tenths % 10)
}

fn answer(name: &str, args: &CalibrateArgs, session: &mut Session<'_>) -> io::Result<Exit> {
    let reference = MachineRef::Named(name.to_owned());
    let machine = match machine::resolve(&reference, Path::new("")) {
        Ok(machine) => machine,
        Err(MachineError::Unknown(why)) => {
            session.complain(format_args!("error: {why}"));
            return Ok(Exit::Usage);
        }
        Err(MachineError::File(error)) => {
            for diagnostic in error.diagnostics() {
                session.complain(diagnostic);
            }
            return Ok(exit_of(&error));
        }
    };
    let bytes = u32::try_from(args.bytes.0).ok().filter(|&bytes| bytes <= BYTES_MAX);
    let Some(bytes) = bytes else {
        let most = Bytes(u64::from(BYTES_MAX));
        session.complain(format_args!("error: --bytes must be at most {most}"));
        return Ok(Exit::Usage);
    };
    let (from, to) = (NodeId(args.from), NodeId(args.to));
    let question = Question { how: args.how, from, to, bytes };
    let (whole, shares) = match parts::shares(&machine, question) {
        Ok(measured) => measured,
        Err(why) => {
            session.complain(format_args!("error: {name}: {why}"));
            return Ok(Exit::Usage);
        }
    };
    match session.format {
        Format::Human => told(session, &machine.name, question, whole, &shares)?,
        Format::Json => {
            json::document(
                session.out,
                &AnswerRecord::new(&machine.name, question, whole, &shares),
            )?;
        }
        Format::Ndjson => {
            json::line(session.out, &AnswerRecord::new(&machine.name, question, whole, &shares))?;
        }
    }
    Ok(Exit::Passed)
}

fn told(
    session: &mut Session<'_>,
    machine: &str,
    question: Question,
    whole: Share,
    shares: &[Share],
) -> io::Result<()> {
    let Question { how, from, to, bytes } = question;
    let how = clap::ValueEnum::to_possible_value(&how)
        .map_or(String::new(), |it| it.get_name().to_owned());
    let strong = session.palette.strong;
    let out = &mut *session.out;
    // To the nanosecond, with the sign that a part has which helps.
    let time = |ps: i64| {
        let sign = if ps <= -500 { "-" } else { "" };
        format!("{sign}{}", figure(ps.unsigned_abs(), Unit::Time))
    };
    writeln!(
        out,
        "{strong}{machine}, {how} of {bytes} B from node {} to node {}{strong:#}",
        from.0, to.0
    )?;
    writeln!(out, "latency    {}", time(whole.latency))?;
    writeln!(out, "bandwidth  {}", figure(question.rate(whole.gap.unsigned_abs()), Unit::Rate))?;
    writeln!(out, "\n{:<24} {:>12} {:>14}", "part", "of latency", "of a stream's")?;
    for Share { part, latency, gap } in shares.iter().chain([&whole]) {
        writeln!(out, "{part:<24} {:>12} {:>14}", time(*latency), time(*gap))?;
    }
    Ok(())
}

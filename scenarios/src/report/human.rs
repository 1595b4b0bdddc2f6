//! Results for people: a row for each scenario, a block for each failure, and a last line that
//! says it all.

use std::io::{self, Write};

use anstyle::Style;
use selvedge_core::time::Span;

use super::Summary;
use super::json::hex;
use crate::engine::{Explored, Found, Kind, Latency, Twice};
use crate::judge::{Outcome, Verdict, Violation, repeat};
use crate::terminal::Palette;

/// More blocks than this would only bury the last line.
const BLOCKS_MAX: usize = 10;
/// More violations than this in one block repeat one another.
const VIOLATIONS_MAX: usize = 5;

/// The table of `selvedge run`.
pub struct RunTable {
    palette: Palette,
    width: usize,
    row: Option<Row>,
    failures: Vec<Outcome>,
    more: u64,
    headed: bool,
}

/// What all seeds of one scenario came to: sums of what is counted, the worst of what is timed.
struct Row {
    file: String,
    scenario: String,
    verdict: Verdict,
    seeds: u64,
    messages: u64,
    delivered: u64,
    operations: u64,
    done: u64,
    latency: Latency,
    digest: u64,
}

impl Row {
    fn new(outcome: &Outcome) -> Self {
        let history = &outcome.history;
        Row {
            file: outcome.file.clone(),
            scenario: outcome.scenario.clone(),
            verdict: outcome.verdict,
            seeds: 1,
            messages: history.messages,
            delivered: history.delivered,
            operations: history.operations,
            done: history.done,
            latency: history.latency,
            digest: history.digest,
        }
    }

    fn add(&mut self, outcome: &Outcome) {
        let history = &outcome.history;
        self.verdict = worse(self.verdict, outcome.verdict);
        self.seeds += 1;
        self.messages = self.messages.saturating_add(history.messages);
        self.delivered = self.delivered.saturating_add(history.delivered);
        self.operations = self.operations.saturating_add(history.operations);
        self.done = self.done.saturating_add(history.done);
        let (mine, new) = (self.latency, history.latency);
        self.latency = Latency {
            p50_ps: mine.p50_ps.max(new.p50_ps),
            p90_ps: mine.p90_ps.max(new.p90_ps),
            p99_ps: mine.p99_ps.max(new.p99_ps),
            p999_ps: mine.p999_ps.max(new.p999_ps),
            max_ps: mine.max_ps.max(new.max_ps),
        };
        // One digest for all seeds, in their order: an FNV step over each.
        self.digest = (self.digest ^ history.digest).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

fn worse(a: Verdict, b: Verdict) -> Verdict {
    const FROM_WORST: [Verdict; 3] = [Verdict::Failed, Verdict::Vacuous, Verdict::Limit];
    FROM_WORST.into_iter().find(|&it| it == a || it == b).unwrap_or(Verdict::Passed)
}

impl RunTable {
    /// A table of scenarios with these names.
    pub fn new<'a>(palette: Palette, names: impl Iterator<Item = &'a str>) -> Self {
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(8, 60);
        RunTable { palette, width, row: None, failures: Vec::new(), more: 0, headed: false }
    }

    pub(super) fn outcome(&mut self, out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
        match &mut self.row {
            Some(row) if row.file == outcome.file => row.add(outcome),
            _ => {
                self.end_row(out)?;
                self.row = Some(Row::new(outcome));
            }
        }
        if outcome.verdict != Verdict::Passed {
            if self.failures.len() < BLOCKS_MAX {
                self.failures.push(outcome.clone());
            } else {
                self.more += 1;
            }
        }
        Ok(())
    }

    fn end_row(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(row) = self.row.take() else { return Ok(()) };
        let (faint, width) = (self.palette.faint, self.width);
        if !self.headed {
            self.headed = true;
            writeln!(
                out,
                "{faint}{:<8} {:<width$} {:>7} {:>21} {:>9} {:>9} {:>9}  {:<16}{faint:#}",
                "verdict", "scenario", "seeds", "done", "p50", "p99", "max", "digest"
            )?;
        }
        let style = style_of(self.palette, row.verdict);
        // Messages and operations on remote memory, one or the other or both.
        let share = |n: u64, all: u64| (all > 0).then(|| format!("{n}/{all}"));
        let delivered = [share(row.delivered, row.messages), share(row.done, row.operations)];
        let delivered = delivered.into_iter().flatten().collect::<Vec<_>>().join("+");
        let Latency { p50_ps, p99_ps, max_ps, .. } = row.latency;
        let [p50, p99, max] = [p50_ps, p99_ps, max_ps].map(|ps| match row.delivered {
            0 => "-".to_owned(),
            _ => Span(ps).to_string(),
        });
        writeln!(
            out,
            "{style}{:<8}{style:#} {:<width$} {:>7} {delivered:>21} {p50:>9} {p99:>9} {max:>9}  {}",
            row.verdict.word(),
            row.scenario,
            row.seeds,
            hex(row.digest)
        )?;
        out.flush()
    }

    pub(super) fn finish(mut self, out: &mut dyn Write, summary: Summary) -> io::Result<()> {
        self.end_row(out)?;
        for outcome in &self.failures {
            writeln!(out)?;
            block(out, self.palette, outcome)?;
        }
        if self.more > 0 {
            writeln!(out, "\n+{} more that did not pass", self.more)?;
        }
        if self.headed {
            writeln!(out)?;
        }
        if summary.interrupted {
            writeln!(out, "interrupted before all were run")?;
        }
        last_line(out, summary.passed, summary.not_passed())
    }
}

/// The last line of a report: `N passed, N failed` and nothing else.
///
/// # Errors
/// When `out` cannot be written.
pub fn last_line(out: &mut dyn Write, passed: u64, failed: u64) -> io::Result<()> {
    writeln!(out, "{passed} passed, {failed} failed")
}

fn style_of(palette: Palette, verdict: Verdict) -> Style {
    match verdict {
        Verdict::Passed => palette.good,
        Verdict::Failed => palette.bad,
        Verdict::Vacuous | Verdict::Limit => palette.unsure,
    }
}

/// One run that did not pass: what was wrong, what happened around it, and how to see it again.
fn block(out: &mut dyn Write, palette: Palette, outcome: &Outcome) -> io::Result<()> {
    let style = style_of(palette, outcome.verdict);
    let (verdict, name, seed) = (outcome.verdict.word(), &outcome.scenario, outcome.seed);
    writeln!(out, "{style}{verdict}{style:#} {name} seed {seed} ({})", outcome.file)?;
    if let Some(reason) = &outcome.reason {
        writeln!(out, "  {reason}")?;
    }
    if outcome.verdict == Verdict::Limit {
        events(out, palette, &outcome.history.tail)?;
    }
    let mut shown: &[String] = &[];
    for violation in outcome.violations.iter().take(VIOLATIONS_MAX) {
        let Violation { rule, kind, at_ps, detail, around, .. } = violation;
        wrong(out, palette, rule, *kind, *at_ps, detail)?;
        if around[..] != *shown {
            events(out, palette, around)?;
            shown = around;
        }
    }
    if let Some(more @ 1..) = outcome.violations.len().checked_sub(VIOLATIONS_MAX) {
        writeln!(out, "  +{more} more")?;
    }
    writeln!(out, "  repeat: {}", repeat("run", &outcome.file, Some(seed)))
}

fn wrong(
    out: &mut dyn Write,
    palette: Palette,
    rule: &str,
    kind: Kind,
    at_ps: Option<u64>,
    detail: &str,
) -> io::Result<()> {
    let strong = palette.strong;
    let at = at_ps.map(|ps| format!(" at {}", Span(ps))).unwrap_or_default();
    writeln!(out, "  {}: {strong}{rule}{strong:#}{at}: {detail}", kind.word())
}

fn events(out: &mut dyn Write, palette: Palette, events: &[String]) -> io::Result<()> {
    let faint = palette.faint;
    events.iter().try_for_each(|event| writeln!(out, "    {faint}| {event}{faint:#}"))
}

/// Two runs of one seed: a line if they are the same, and where they part if not.
///
/// # Errors
/// When `out` cannot be written.
pub fn twice(
    out: &mut dyn Write,
    palette: Palette,
    (scenario, file, seed): (&str, &str, u64),
    twice: &Twice,
) -> io::Result<()> {
    match twice {
        Twice::Same { digest, events } => {
            let good = palette.good;
            let digest = hex(*digest);
            writeln!(out, "{good}same{good:#}   {scenario} seed {seed} {digest} {events} events")
        }
        Twice::Differ { event, first, second } => {
            let bad = palette.bad;
            let ended = "(the run had ended)".to_owned();
            writeln!(out, "{bad}differs{bad:#} {scenario} seed {seed} from event {event} on")?;
            writeln!(out, "  first:  {}", first.as_ref().unwrap_or(&ended))?;
            writeln!(out, "  second: {}", second.as_ref().unwrap_or(&ended))?;
            writeln!(out, "  repeat: {}", repeat("check-determinism", file, Some(seed)))
        }
    }
}

/// What a search found.
///
/// # Errors
/// When `out` cannot be written.
pub fn explored(
    out: &mut dyn Write,
    palette: Palette,
    (scenario, file): (&str, &str),
    explored: &Explored,
) -> io::Result<()> {
    let searched = explored.searched;
    writeln!(
        out,
        "{scenario}: {} states, {} edges, depth {}, {} settled",
        searched.states, searched.edges, searched.depth, explored.settled
    )?;
    if let Some(limit) = &explored.limit {
        writeln!(out, "  ended early by the limit of {limit}")?;
    }
    for Found { rule, kind, detail, around, .. } in explored.violations.iter().take(BLOCKS_MAX) {
        wrong(out, palette, rule, *kind, None, detail)?;
        events(out, palette, around)?;
        writeln!(out, "  repeat: {}", repeat("explore", file, None))?;
    }
    if let Some(more @ 1..) = explored.violations.len().checked_sub(BLOCKS_MAX) {
        writeln!(out, "  +{more} more")?;
    }
    let failed = u64::from(!explored.violations.is_empty());
    let passed = u64::from(failed == 0 && explored.limit.is_none());
    last_line(out, passed, 1 - passed)
}

//! What the program says about what happened, for people and for programs.

pub mod human;
pub mod json;

use std::io::{self, Write};

use crate::judge::{Outcome, Verdict};
use crate::terminal::Palette;

/// How to write results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table, and a block for each failure.
    #[default]
    Human,
    /// One JSON document.
    Json,
    /// One JSON document a line, each as soon as it is known.
    Ndjson,
}

/// How many runs came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// As expected.
    pub passed: u64,
    /// With a broken rule or an unmet expectation, or with a mistake of this program's own.
    pub failed: u64,
    /// Without proving anything.
    pub vacuous: u64,
    /// At a limit, before there was a verdict.
    pub limit: u64,
    /// Whether the user interrupted the runs before all were done.
    pub interrupted: bool,
}

impl Summary {
    /// Counts one more run.
    pub fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed => self.failed += 1,
            Verdict::Vacuous => self.vacuous += 1,
            Verdict::Limit => self.limit += 1,
        }
    }

    /// All runs that did not pass.
    #[must_use]
    pub const fn not_passed(&self) -> u64 {
        self.failed + self.vacuous + self.limit
    }
}

/// The report of `selvedge run`, written while the runs go on.
pub enum RunReport {
    /// For people.
    Human(Box<human::RunTable>),
    /// One document at the end.
    Json(Vec<json::OutcomeRecord>),
    /// One line each.
    Ndjson,
}

impl RunReport {
    /// A report on scenarios with these names.
    #[must_use]
    pub fn new<'a>(
        format: Format,
        palette: Palette,
        names: impl Iterator<Item = &'a str>,
    ) -> RunReport {
        match format {
            Format::Human => RunReport::Human(Box::new(human::RunTable::new(palette, names))),
            Format::Json => RunReport::Json(Vec::new()),
            Format::Ndjson => RunReport::Ndjson,
        }
    }

    /// Takes the next outcome; all seeds of one scenario come together.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn outcome(&mut self, out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
        match self {
            RunReport::Human(table) => table.outcome(out, outcome),
            RunReport::Json(records) => {
                records.push(json::OutcomeRecord::new(outcome));
                Ok(())
            }
            RunReport::Ndjson => {
                let line = json::RunLine::Outcome(Box::new(json::OutcomeRecord::new(outcome)));
                json::line(out, &line)
            }
        }
    }

    /// Ends the report.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn finish(self, out: &mut dyn Write, summary: Summary) -> io::Result<()> {
        match self {
            RunReport::Human(table) => table.finish(out, summary),
            RunReport::Json(outcomes) => {
                json::document(out, &json::RunResult::new(outcomes, summary))
            }
            RunReport::Ndjson => json::line(out, &json::RunLine::Summary(summary)),
        }?;
        out.flush()
    }
}

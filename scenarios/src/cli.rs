//! The command line.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::calibration::rank::How;
use crate::jobs::Interrupt;
use crate::quantity::Bytes;
use crate::report::Format;
use crate::schema::schedule::{SeedRange, Seeds};
use crate::terminal::{Color, Palette};

const EXAMPLES: &str = "\
Examples:
  selvedge run scenarios/suite                  run every scenario of a folder
  selvedge run --seed 7 both-connect.json       repeat one run exactly
  selvedge run --seeds 0..10000 --jobs 8 DIR    look for a seed that fails
  selvedge check-determinism DIR                the same seed must give the same history
  selvedge explore both-connect.json            not some histories but all of them
  selvedge validate DIR                         find mistakes without running anything
  selvedge calibrate                            compare machines with published figures
  selvedge schema scenario > scenario.json      let an editor complete and check

Results go to standard output, progress and complaints to standard error. Each option can also
be given in the environment: SELVEDGE_SEED=7 is --seed 7.

Exit codes: 0 passed, 1 internal error, 2 usage, 4 nothing to run, 65 wrong input, 66 missing
input, 74 output not written, 100 failed, 102 limit hit, 103 not deterministic, 130 interrupted.";

const CALIBRATE: &str = "\
Examples:
  selvedge calibrate                            every published figure of Gemini and Aries
  selvedge calibrate aries-daint gemini-hop     those whose names begin so
  selvedge calibrate --machine titan --from 0 --to 1234 --bytes 4KiB --how mpi
                                                a figure that nobody has published

A row holds when the simulated figure lies within its tolerance; rows marked `shown` are not held
to theirs. If one does not hold, the exit code is 100. With --machine the latency and bandwidth
between two nodes are measured, and what each part of the machine adds: a part's share is what
goes away when that part takes no time.

A put counts until its bytes are in the memory of the other side, a get until the caller has
them, a message half of its round trip. Bandwidth is that of 64 at a time, or fewer of more than a
mebibyte.";

/// Deterministic simulation of fabrics: connections, credits and messages under faults.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How.
    #[command(flatten)]
    pub common: Common,
}

/// What every command takes.
#[derive(Clone, Copy, Debug, Args)]
pub struct Common {
    /// How to write results.
    #[arg(long, global = true, value_enum, default_value_t, env = "SELVEDGE_FORMAT")]
    pub format: Format,
    /// When to use colour; NO_COLOR and CLICOLOR_FORCE are heeded.
    #[arg(long, global = true, value_enum, default_value_t, env = "SELVEDGE_COLOR")]
    pub color: Color,
    /// Show no progress, even on a terminal.
    #[arg(long, global = true, env = "SELVEDGE_NO_PROGRESS", value_parser = FalseyValueParser::new())]
    pub no_progress: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run scenarios and check what they expect.
    Run(RunArgs),
    /// Check scenario and machine files without running anything.
    Validate(PathArgs),
    /// Run scenarios twice and name the first event that differs.
    CheckDeterminism(RunArgs),
    /// Search all histories of a scenario, within its bounds.
    Explore(ExploreArgs),
    /// List scenarios, machines, transports, tunables, faults and benches.
    List(ListArgs),
    /// Print the JSON Schema of a file format.
    Schema(SchemaArgs),
    /// Measure, each bench in a process of its own.
    Bench(BenchArgs),
    /// Compare simulated machines with published figures, or ask how fast they are.
    #[command(after_help = CALIBRATE)]
    Calibrate(CalibrateArgs),
}

/// Scenarios and the seeds to run them with.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Scenario files, or folders to search for them.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Run with this seed instead of those of the file.
    #[arg(long, value_name = "N", env = "SELVEDGE_SEED", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Run with the seeds from A up to, but without, B.
    #[arg(long, value_name = "A..B", env = "SELVEDGE_SEEDS")]
    pub seeds: Option<SeedRange>,
    /// How many runs go side by side; the results do not depend on it. Without it: one a core.
    #[arg(long, value_name = "N", env = "SELVEDGE_JOBS")]
    pub jobs: Option<NonZeroUsize>,
}

/// Files to look at.
#[derive(Clone, Debug, Args)]
pub struct PathArgs {
    /// Files, or folders to search for them.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// What to search.
#[derive(Clone, Debug, Args)]
pub struct ExploreArgs {
    /// The scenario file.
    pub scenario: PathBuf,
}

/// What to list.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Where to look for scenarios. Without it: scenarios/suite, if there is one.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// Which schema to print.
#[derive(Clone, Debug, Args)]
pub struct SchemaArgs {
    /// Of which format.
    #[arg(value_enum, default_value_t)]
    pub of: SchemaOf,
}

/// The formats that have a schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// Scenario files.
    #[default]
    Scenario,
    /// Machine files.
    Machine,
    /// Results of `selvedge run --format json`.
    Result,
}

/// What to measure.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// The benches, by name. Without it: all of them.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

/// What to compare, or what to ask.
#[derive(Clone, Debug, Args)]
pub struct CalibrateArgs {
    /// The rows, by name or by how their names begin. Without it: all of them.
    #[arg(value_name = "ROW", conflicts_with = "machine")]
    pub rows: Vec<String>,
    /// Ask about this machine: a name or the path of a machine file.
    #[arg(long, value_name = "NAME", env = "SELVEDGE_MACHINE")]
    pub machine: Option<String>,
    /// The node that asks.
    #[arg(long, value_name = "NODE", default_value_t = 0, env = "SELVEDGE_FROM")]
    pub from: u32,
    /// The node that answers.
    #[arg(long, value_name = "NODE", default_value_t = 1, env = "SELVEDGE_TO")]
    pub to: u32,
    /// How much goes from one to the other.
    #[arg(long, value_name = "SIZE", default_value = "8B", env = "SELVEDGE_BYTES")]
    pub bytes: Bytes,
    /// How it goes there.
    #[arg(long, value_enum, default_value_t = How::Mpi, env = "SELVEDGE_HOW")]
    pub how: How,
}

impl FromStr for SeedRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = text.split_once("..").and_then(|(from, to)| {
            Some(SeedRange { from: from.parse().ok()?, to: to.parse().ok()? })
        });
        match range {
            Some(range) if range.from < range.to => Ok(range),
            Some(_) => Err("no seed lies there: the second number must be greater".to_owned()),
            None => Err("write two numbers: 0..100".to_owned()),
        }
    }
}

impl RunArgs {
    /// The seeds that the command line asks for, if it does.
    #[must_use]
    pub fn seeds(&self) -> Option<Seeds> {
        let one = self.seed.map(|seed| Seeds::List(vec![seed]));
        one.or(self.seeds.map(Seeds::Range))
    }

    /// How many runs go side by side.
    #[must_use]
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.jobs.map_or_else(cores, NonZeroUsize::get)
    }
}

/// Where a command writes, and how.
pub struct Session<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Complaints. Nobody can be told when they cannot be written.
    pub err: &'a mut dyn Write,
    /// How to write results.
    pub format: Format,
    /// The styles of results.
    pub palette: Palette,
    /// Whether progress is wanted, should there be a terminal.
    pub progress: bool,
    /// Whether the user wants to stop.
    pub stop: Interrupt,
}

impl Session<'_> {
    /// Says something to the user that is no result.
    pub fn complain(&mut self, message: impl std::fmt::Display) {
        let _ = writeln!(self.err, "{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_long_option_has_its_environment_variable() {
        let mut cli = Cli::command();
        cli.build();
        let commands = std::iter::once(&cli).chain(cli.get_subcommands());
        for argument in commands.flat_map(clap::Command::get_arguments) {
            let Some(long) = argument.get_long() else { continue };
            if ["help", "version"].contains(&long) {
                continue;
            }
            let expected = format!("SELVEDGE_{}", long.replace('-', "_").to_uppercase());
            let found = argument.get_env().and_then(std::ffi::OsStr::to_str);
            assert_eq!(found, Some(&expected[..]), "--{long}");
        }
    }

    #[test]
    fn seed_ranges_are_half_open() {
        assert_eq!("0..3".parse(), Ok(SeedRange { from: 0, to: 3 }));
        for text in ["3..3", "4..3", "3", "..", "a..b", "0..-1", "0..99999999999999999999", ""] {
            assert!(text.parse::<SeedRange>().is_err(), "{text}");
        }
    }
}

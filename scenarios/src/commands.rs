//! What each command does.

pub mod bench;
pub mod calibrate;
pub mod explore;
pub mod list;
pub mod run;
pub mod schema;
pub mod twice;
mod units;
pub mod validate;

use std::io;

use clap::Parser;

use crate::cli::{Cli, Command, Session};
use crate::engine::Engine;
use crate::exit::Exit;
use crate::jobs::Interrupt;
use crate::terminal::{Palette, Surroundings};

/// Parses the command line of this process and does what it says.
pub fn main(engine: &dyn Engine) -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Passed };
            return if error.print().is_ok() { exit } else { Exit::NoOutput };
        }
    };
    let stop = Interrupt::new();
    stop.on_ctrl_c();
    let mut session = Session {
        out: &mut io::BufWriter::new(io::stdout()),
        err: &mut io::stderr(),
        format: cli.common.format,
        palette: Palette::new(cli.common.color.decide(Surroundings::of_stdout())),
        progress: !cli.common.no_progress,
        stop,
    };
    match dispatch(&cli.command, &mut session, engine) {
        Ok(exit) => exit,
        Err(error) => {
            if error.kind() != io::ErrorKind::BrokenPipe {
                session.complain(format_args!("error: output cannot be written: {error}"));
            }
            Exit::NoOutput
        }
    }
}

fn dispatch(command: &Command, session: &mut Session<'_>, engine: &dyn Engine) -> io::Result<Exit> {
    let exit = match command {
        Command::Run(args) => run::run(args, session, engine),
        Command::Validate(args) => validate::validate(args, session),
        Command::CheckDeterminism(args) => twice::check(args, session, engine),
        Command::Explore(args) => explore::explore(args, session, engine),
        Command::List(args) => list::list(args, session, engine),
        Command::Schema(args) => schema::schema(args, session),
        Command::Bench(args) => bench::bench(args, session, engine),
        Command::Calibrate(args) => calibrate::calibrate(args, session),
    }?;
    session.out.flush()?;
    Ok(exit)
}

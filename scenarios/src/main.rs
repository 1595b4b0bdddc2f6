//! The program `selvedge`.

use std::process::ExitCode;

use selvedge_scenarios::{cli, simulate::Simulator};

fn main() -> ExitCode {
    ExitCode::from(cli::main(&Simulator).code())
}

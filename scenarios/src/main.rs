//! The program `selvedge`.

use std::process::ExitCode;

use selvedge_scenarios::{commands, simulate::Simulator};

fn main() -> ExitCode {
    ExitCode::from(commands::main(&Simulator).code())
}

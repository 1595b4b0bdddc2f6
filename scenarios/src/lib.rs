#![forbid(unsafe_code)]
//! Scenario files, machine descriptions and the runner `selvedge`.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`schema`] | files as they are written: scenarios and machines |
//! | [`quantity`] | `1.5us`, `2KiB`, `100Gbps`, `0.1%` |
//! | [`spanned`], [`diagnostic`] | JSON that knows its lines, and mistakes that say theirs |
//! | [`vocabulary`] | the words that each transport adds: tunables, NIC faults, reasons |
//! | [`input`], [`machine`], [`check`], [`load`] | from a file to a scenario that makes sense |
//! | [`discover`] | from paths to files |
//! | [`engine`] | the seam: what the runner asks of whatever runs scenarios |
//! | [`simulate`], [`workload`] | the engine that simulates; what procs do |
//! | [`calibration`] | published figures beside simulated ones, and where the time goes |
//! | [`judge`] | whether what happened is what was expected |
//! | [`jobs`] | many runs side by side, results in order |
//! | [`report`], [`terminal`] | results for people and for programs |
//! | [`cli`], [`commands`], [`exit`] | the command line |
//!
//! Deliberately absent: protocol rules (core has them), simulated time and devices (sim has
//! them), and anything that would make a result depend on the clock or on the number of threads.

pub mod calibration;
pub mod check;
pub mod cli;
pub mod commands;
pub mod diagnostic;
pub mod discover;
pub mod engine;
pub mod exit;
pub mod input;
pub mod jobs;
pub mod judge;
pub mod load;
pub mod machine;
pub mod quantity;
pub mod report;
pub mod schema;
pub mod simulate;
pub mod spanned;
pub mod terminal;
pub mod vocabulary;
pub mod workload;

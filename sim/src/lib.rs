#![forbid(unsafe_code)]
//! The simulator: the machines of `selvedge-core` over simulated fabrics, with faults, time and
//! a search over the same world.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`simulated`], [`ugni`] | what a transport brings to be simulated; uGNI does |
//! | [`fabric`], [`topology`], [`link`] | what never changes: routers, links, times, placement |
//! | [`memory`] | the bytes of a proc |
//! | [`mod@proc`] | one proc: transport, NIC, application; the step that run and search share |
//! | [`world`] | the timed run: queue, packets on links, faults at work |
//! | [`explore`] | the search: every history of a small world |
//! | [`fault`] | faults as data |
//! | [`watch`], [`ledger`], [`trace`] | who looks on: counters, accounts, digest, records |
//! | [`queue`], [`draw`] | the event queue, keyed random draws |
//!
//! The promise: the same fabric, applications, seed and version give the same history, event for
//! event, in debug and release, on any machine, with any number of other worlds beside it. It is
//! kept by integer time, draws keyed by (seed, purpose, owner, counter), and no iteration over
//! anything whose order is not given.
//!
//! Deliberately absent: protocol rules (core has them), files and command lines (the scenarios
//! crate has them), threads (run many worlds side by side), floating point.

pub mod draw;
pub mod explore;
pub mod fabric;
pub mod fault;
pub mod ledger;
pub mod link;
pub mod memory;
pub mod proc;
pub mod queue;
pub mod simulated;
pub mod topology;
pub mod trace;
pub mod ugni;
pub mod watch;
pub mod world;

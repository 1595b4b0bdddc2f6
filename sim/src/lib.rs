//! sim
pub mod draw;
pub mod explore;
pub mod fabric;
pub mod fault;
pub mod ledger;
pub mod link;
pub mod proc;
pub mod queue;
pub mod simulated;
pub mod topology;
pub mod trace;
pub mod ugni;
pub mod watch;
pub mod world;

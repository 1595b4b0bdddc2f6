//! What has to hold, held to it: property tests over schedules, faults and tunables, exhaustive
//! search with pinned state counts, machines broken on purpose to prove that the checks bite,
//! and the house rules of the source tree.
//!
//! The tests are in `tests/`; this library has what several of them share. Nothing depends on
//! this crate, so it may look into every other.

pub mod search;
pub mod world;

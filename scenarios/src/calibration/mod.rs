//! Whether simulated machines are as fast as the real ones were.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`table`] | published figures, each with its source, its tolerance and how it is measured here |
//! | [`probe`] | measures latency and bandwidth between two nodes of a machine |
//! | [`rank`], [`profile`] | the application that is measured, and what its software costs |
//! | [`parts`] | what each part of a machine adds |

pub mod parts;
pub mod probe;
pub mod profile;
pub mod rank;
pub mod table;
mod wire;

#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]
//! Pure state machines of fabric transports.

extern crate alloc;

pub mod config;
pub mod id;
pub mod time;

#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]
//! Pure state machines of fabric transports.

extern crate alloc;

pub mod app;
pub mod config;
pub mod credit;
pub mod deadline;
pub mod drive;
pub mod encode;
pub mod id;
pub mod machine;
pub mod modex;
pub mod nic;
pub mod pending;
pub mod proc;
pub mod sink;
pub mod tie;
pub mod time;
pub mod ugni;
pub mod wire;

pub use app::{App, Fabric};
pub use drive::{Port, deliver};
pub use id::{EpId, FragId, Generation, NodeId, ProcName, RegionId, Tag};
pub use machine::{
    Command, Effect, Event, Fault, Hold, Machine, Named, Notice, Phase, Reason, Transport, Verdict,
    Violation,
};
pub use nic::{Address, Nic, NicEffect, NicEvent};
pub use sink::{Effects, Sink};
pub use time::{Span, Time};

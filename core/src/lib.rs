#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]
//! Pure state machines of fabric transports: connections, credits, messages.
//!
//! Everything here is data that changes only in `step`. Whoever drives it says what happened and
//! when; it says what to do. The simulator drives it over simulated fabrics, the search over
//! every history of small ones, the production driver over real ones: the same code.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`machine`] | what a machine and a transport are; commands, notices, reasons |
//! | [`drive`], [`app`], [`nic`] | the three sides of a transport: its driver, its application, its device |
//! | [`host`], [`lane`] | a transport on its NIC, as one; frames between two of them on a real fabric |
//! | [`sink`], [`time`], [`id`], [`tie`] | where effects go; integer time; names; who goes first |
//! | [`apart`] | what most values never use, and therefore do not carry |
//! | [`credit`], [`pending`], [`deadline`], [`proc`] | accounts, wait lists in a slab, indexed deadlines, who has which endpoint |
//! | [`rma`], [`registration`] | remote memory: places, atomics; what is registered, and kept for later |
//! | [`wire`], [`modex`], [`config`], [`encode`] | records, addresses, tunables, the canonical form of a state |
//! | [`ugni`] | Cray Gemini and Aries: the module, and the GNI NIC it runs on |
//!
//! Where to start: [`machine`], then [`ugni::connect`], which is one state machine on a few
//! screens, with its table of tests beside it.
//!
//! Deliberately absent: a clock, randomness, input and output, threads, logging, payload bytes,
//! and every dependency. `alloc` is used for the tables of a module and for the records of a
//! connection; a message allocates nothing.

extern crate alloc;

pub mod apart;
pub mod app;
pub mod config;
pub mod credit;
pub mod deadline;
pub mod drive;
pub mod encode;
pub mod host;
pub mod id;
pub mod lane;
pub mod machine;
pub mod modex;
pub mod nic;
pub mod pending;
pub mod proc;
pub mod registration;
pub mod rma;
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
pub use nic::{Address, Load, Mover, Nic, NicEffect, NicEvent};
pub use rma::{Amo, Place};
pub use sink::{Effects, Sink};
pub use time::{Span, Time};

//! The machines of `selvedge-core` on real fabrics.
//!
//! This crate takes no protocol decision: operations go down, completions come up, notices go
//! out. It polls, copies, registers memory and rings doorbells; whatever depends on the state of
//! a connection is decided in `selvedge-core`, by the code that the simulator runs too.
//!
//! # Map
//!
//! So far this page is all there is. The plan:
//!
//! | module | what will live there |
//! | --- | --- |
//! | `ffi` | declarations of the C libraries; their sentinels become `Result` or `Option` here and nowhere else |
//! | `clock` | the one call that asks the operating system for the time |
//! | `arena` | owns buffers and registrations, and hands out `FragId` and `RegionId` for them |
//! | `device` | the ports: libfabric, verbs, non-blocking sockets |
//! | `bootstrap` | how procs of a job find each other and exchange their addresses |
//! | `recorder` | the flight recorder: the last steps of every module, in a file that survives a crash and replays in the simulator |
//!
//! Emulated NICs, such as that of Gemini and Aries, are machines of the core as well: this crate
//! carries their packets over libfabric messages and remote memory, and knows none of their laws.
//!
//! # Features
//!
//! None yet: a feature is declared together with the code that it turns on. There will be two,
//! both off by default, so that the workspace builds on a machine without any fabric:
//!
//! - `libfabric`: uGNI and SCIF over any provider that offers reliable datagrams or messages;
//! - `verbs`: reliable connections, shared receive (XRC) and datagrams on InfiniBand hardware.
//!
//! TCP needs neither.
//!
//! # Safety
//!
//! Only this crate of the workspace may use `unsafe`, and only to call C and to share memory with
//! a device. Each module that does says in its header what makes it sound.

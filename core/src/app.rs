//! Applications: written once, run in a simulated world and on real hardware.

use crate::id::{FragId, ProcName, Tag};
use crate::machine::{Hold, Notice};
use crate::time::{Span, Time};

/// An application: one value a proc. It reacts; it never waits.
pub trait App {
    /// The proc is up.
    fn start(&mut self, fabric: &mut impl Fabric);
    /// The transport says something.
    fn notice(&mut self, fabric: &mut impl Fabric, notice: Notice);
    /// The time that it asked to be woken at has come.
    fn woken(&mut self, fabric: &mut impl Fabric) {
        let _ = fabric;
    }
}

/// What an application can ask for. Nothing blocks: answers come as notices.
pub trait Fabric {
    /// The time.
    fn now(&self) -> Time;
    /// Who is asking.
    fn me(&self) -> ProcName;
    /// How many procs the job has; their ranks count from zero.
    fn procs(&self) -> u32;
    /// Sends `len` bytes; the name it returns comes back in exactly one answer.
    fn send(&mut self, to: ProcName, tag: Tag, len: u32, hold: Hold) -> FragId;
    /// Brings a connection up.
    fn connect(&mut self, to: ProcName);
    /// Takes a connection down once all that was accepted is done.
    fn close(&mut self, to: ProcName);
    /// Asks for `woken` after `span`; a later call replaces an earlier one.
    fn wake_after(&mut self, span: Span);
}

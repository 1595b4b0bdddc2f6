//! Applications: written once, run in a simulated world and on real hardware.

use crate::id::{FragId, ProcName, RegionId, Tag};
use crate::machine::{Hold, Notice};
use crate::rma::{Amo, Place};
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
    /// Registers `len` bytes of `region`, here and for peers. The name is the caller's choice,
    /// below [`OWN_REGIONS`](crate::rma::OWN_REGIONS).
    fn register(&mut self, region: RegionId, len: u32);
    /// Takes that back.
    fn deregister(&mut self, region: RegionId);
    /// Writes `len` bytes from `local` to `remote`, a place of `to`; the name it returns comes
    /// back in exactly one answer. Until then the bytes stay as they are.
    fn put(&mut self, to: ProcName, local: Place, remote: Place, len: u32) -> FragId;
    /// Reads `len` bytes from `remote`, a place of `to`, to `local`; answered as a put is.
    fn get(&mut self, to: ProcName, local: Place, remote: Place, len: u32) -> FragId;
    /// Changes the word at `remote`, a place of `to`, in one piece; answered as a put is.
    fn atomic(
        &mut self,
        to: ProcName,
        amo: Amo,
        remote: Place,
        operand: u64,
        second: u64,
    ) -> FragId;
    /// Writes to this proc's own memory.
    fn write(&mut self, at: Place, bytes: &[u8]);
    /// Reads this proc's own memory.
    fn read(&mut self, at: Place, into: &mut [u8]);
    /// Says that something is wrong which the application alone can see.
    fn wrong(&mut self, rule: &'static str);
    /// Asks for `woken` after `span`; a later call replaces an earlier one.
    fn wake_after(&mut self, span: Span);
}

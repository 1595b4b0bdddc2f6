//! The one way to drive a transport, in a simulator as on real hardware.

use crate::machine::{Effect, Machine, Notice, Transport, Verdict};
use crate::sink::Effects;
use crate::time::Time;

/// Where effects go: a simulated NIC inside a world, or a real one.
pub trait Port<O> {
    /// The device is to do `op`.
    fn op(&mut self, now: Time, op: O);
    /// The application is to hear `notice`.
    fn notice(&mut self, now: Time, notice: Notice);
    /// The end of a turn: ring the doorbell for all that `op` collected.
    fn flush(&mut self);
}

/// Steps `transport` and hands its effects to `port` in order.
///
/// `fx` is the caller's to reuse; it is empty before and after. `flush` is not called: a driver
/// rings once a turn, however many events the turn had.
#[inline]
pub fn deliver<T: Transport>(
    transport: &mut T,
    now: Time,
    event: T::Event,
    fx: &mut Effects<<T as Machine>::Effect>,
    port: &mut impl Port<T::Op>,
) -> Verdict {
    let verdict = transport.step(now, event, fx);
    for effect in fx.drain() {
        match effect {
            Effect::Notice(notice) => port.notice(now, notice),
            Effect::Op(op) => port.op(now, op),
        }
    }
    verdict
}

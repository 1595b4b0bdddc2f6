//! After the remote queue overran: which mailboxes still have to be looked at.
//!
//! The queue says only that events were lost, so every mailbox is looked at, in slices; and
//! because an event can run ahead of its message, they are looked at once more after a while,
//! until a look finds nothing new.

use crate::id::EpId;
use crate::time::{Span, Time};

use super::Config;

/// The look at all mailboxes that an overrun calls for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Scan {
    /// No overrun.
    #[default]
    None,
    /// Looking.
    Pass {
        /// The next endpoint to look at.
        next: EpId,
        /// Passes after this one.
        left: u16,
        /// Messages read before this pass.
        read: u64,
    },
    /// Waiting for the next pass.
    Pause {
        /// When it starts.
        until: Time,
        /// Passes that may follow.
        left: u16,
    },
}

impl Scan {
    /// Events were lost: from the beginning, whatever was under way.
    pub fn start(&mut self, read: u64, config: &Config) {
        *self = Scan::Pass { next: EpId(0), left: config.rescan_passes as u16 - 1, read };
    }

    /// When it goes on.
    #[must_use]
    pub const fn deadline(&self) -> Option<Time> {
        match self {
            Scan::None => None,
            Scan::Pass { .. } => Some(Time::ZERO),
            Scan::Pause { until, .. } => Some(*until),
        }
    }

    /// The next endpoint to look at, of `endpoints`; `read` counts the messages read so far.
    pub fn next(&mut self, endpoints: u32, read: u64, now: Time, config: &Config) -> Option<EpId> {
        match *self {
            Scan::None => None,
            Scan::Pause { until, .. } if now < until => None,
            Scan::Pause { left, .. } => {
                *self = Scan::Pass { next: EpId(0), left: left - 1, read };
                self.next(endpoints, read, now, config)
            }
            Scan::Pass { next, left, read: before } if next.0 < endpoints => {
                *self = Scan::Pass { next: EpId(next.0 + 1), left, read: before };
                Some(next)
            }
            Scan::Pass { left, read: before, .. } => {
                // At least two passes: the first may have come before the message did.
                let first = u64::from(left) + 1 == config.rescan_passes;
                *self = if left > 0 && (first || read > before) {
                    Scan::Pause { until: now + Span(config.rescan_delay), left }
                } else {
                    Scan::None
                };
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The endpoints looked at until the scan pauses or ends; the last look finds `found`.
    fn pass(scan: &mut Scan, found: u64, now: Time, config: &Config) -> u32 {
        let before = 100;
        let mut looked = 0;
        while scan.next(3, before + found * u64::from(looked == 3), now, config).is_some() {
            looked += 1;
        }
        looked
    }

    #[test]
    fn passes_go_on_until_one_finds_nothing() {
        let config = Config { rescan_delay: 10, rescan_passes: 4, ..Config::default() };
        let mut scan = Scan::default();
        scan.start(100, &config);
        assert_eq!((pass(&mut scan, 0, Time(0), &config), scan.deadline()), (3, Some(Time(10))));
        assert_eq!(pass(&mut scan, 0, Time(9), &config), 0, "the pause is not over");
        assert_eq!(pass(&mut scan, 0, Time(10), &config), 3, "the second look is owed");
        assert_eq!(scan, Scan::None, "and found nothing");
        scan.start(100, &config);
        for nth in 0..4 {
            assert_eq!(pass(&mut scan, 1, Time(10 * nth), &config), 3);
        }
        assert_eq!(scan, Scan::None, "there is a bound");
    }
}

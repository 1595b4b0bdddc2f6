//! Time as data: whole picoseconds since the world opened.
//!
//! A machine never reads a clock. Whoever drives it says what time it is, so a test, a
//! simulator and a production driver can all place an event exactly where they want it.
//! `u64` picoseconds last 213 days; arithmetic saturates, so "for ever" is a time too.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};

/// An instant: picoseconds since open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(pub u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(pub u64);

impl Time {
    /// The moment the world opened; as a deadline: "at once".
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens; as a deadline: "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than any run.
    pub const FOREVER: Span = Span(u64::MAX);

    /// `n` nanoseconds.
    #[must_use]
    pub const fn from_ns(n: u64) -> Span {
        Span(n.saturating_mul(1_000))
    }

    /// `n` microseconds.
    #[must_use]
    pub const fn from_us(n: u64) -> Span {
        Span(n.saturating_mul(1_000_000))
    }

    /// `n` milliseconds.
    #[must_use]
    pub const fn from_ms(n: u64) -> Span {
        Span(n.saturating_mul(1_000_000_000))
    }

    /// Whole nanoseconds, rounded down.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }

    /// This span doubled `times` times: exponential back-off that cannot overflow.
    #[must_use]
    pub const fn doubled(self, times: u32) -> Span {
        if self.0 == 0 {
            Span::ZERO
        } else if times > self.0.leading_zeros() {
            Span::FOREVER
        } else {
            Span(self.0 << times)
        }
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, by: u64) -> Span {
        Span(self.0.saturating_mul(by))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// Prints with the largest unit that loses nothing a reader needs: `1.5us`, `640ps`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")];
        if *self == Span::FOREVER {
            return f.write_str("for ever");
        }
        for (unit, name) in UNITS {
            if self.0 >= unit {
                let (whole, thousandths) = (self.0 / unit, self.0 % unit / (unit / 1_000));
                return match thousandths {
                    0 => write!(f, "{whole}{name}"),
                    t if t % 100 == 0 => write!(f, "{whole}.{}{name}", t / 100),
                    t if t % 10 == 0 => write!(f, "{whole}.{:02}{name}", t / 10),
                    t => write!(f, "{whole}.{t:03}{name}"),
                };
            }
        }
        write!(f, "{}ps", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn spans_print_with_the_unit_that_fits() {
        for (span, text) in [
            (Span(640), "640ps"),
            (Span::from_ns(105), "105ns"),
            (Span(1_500_000), "1.5us"),
            (Span(1_270_000), "1.27us"),
            (Span(3_141_592), "3.141us"),
            (Span::from_ms(2_000), "2s"),
            (Span::FOREVER, "for ever"),
        ] {
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::NEVER + Span(1), Time::NEVER);
        assert_eq!(Time(3).since(Time(5)), Span::ZERO);
        assert_eq!(Span(1).doubled(63), Span(1 << 63));
        assert_eq!(Span(1).doubled(64), Span::FOREVER);
        assert_eq!(Span(3).doubled(63), Span::FOREVER);
        assert_eq!(Span::ZERO.doubled(200), Span::ZERO);
    }
}

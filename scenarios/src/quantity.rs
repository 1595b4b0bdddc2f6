//! Quantities as people write them: `1.5us`, `2KiB`, `100Gbps`, `0.1%`.
//!
//! Everything is integer arithmetic: a decimal fraction is exact or it is refused, so a file
//! means the same number on every machine.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_core::time::Span;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A length of time, such as `1.5us`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub Span);

/// An amount of data, such as `2KiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Bytes a second, such as `100Gbps` or `9.375GB/s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

/// A probability in parts per billion, such as `0.1%`, `250ppm` or `0.001`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(pub u32);

impl Probability {
    /// The value that means "always".
    pub const CERTAIN: Probability = Probability(1_000_000_000);
}

/// Why a text is not a quantity. Its message says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError(String);

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuantityError {}

/// What a unit is worth in the smallest one: `times / over`.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    times: u64,
    over: u64,
}

/// No decimal unit here has more digits below its point.
const FRACTION_DIGITS_MAX: usize = 18;

const fn unit(name: &'static str, times: u64) -> Unit {
    Unit { name, times, over: 1 }
}

const fn bits(name: &'static str, times: u64) -> Unit {
    Unit { name, times, over: 8 }
}

/// One kind of quantity: what to say about it, and its units, the one to print with first.
struct Kind {
    what: &'static str,
    example: &'static str,
    smallest: &'static str,
    units: &'static [Unit],
}

static DURATION: Kind = Kind {
    what: "a length of time",
    example: "1.5us",
    smallest: "a picosecond",
    units: &[
        unit("s", 1_000_000_000_000),
        unit("ms", 1_000_000_000),
        unit("us", 1_000_000),
        unit("µs", 1_000_000),
        unit("ns", 1_000),
        unit("ps", 1),
    ],
};

static BYTES: Kind = Kind {
    what: "an amount of data",
    example: "2KiB",
    smallest: "a byte",
    units: &[
        unit("TiB", 1 << 40),
        unit("GiB", 1 << 30),
        unit("MiB", 1 << 20),
        unit("KiB", 1 << 10),
        unit("TB", 1_000_000_000_000),
        unit("GB", 1_000_000_000),
        unit("MB", 1_000_000),
        unit("kB", 1_000),
        unit("B", 1),
    ],
};

static RATE: Kind = Kind {
    what: "a rate",
    example: "100Gbps",
    smallest: "a byte a second",
    units: &[
        unit("TB/s", 1_000_000_000_000),
        unit("GB/s", 1_000_000_000),
        unit("MB/s", 1_000_000),
        unit("kB/s", 1_000),
        unit("TiB/s", 1 << 40),
        unit("GiB/s", 1 << 30),
        unit("MiB/s", 1 << 20),
        unit("KiB/s", 1 << 10),
        bits("Tbps", 1_000_000_000_000),
        bits("Gbps", 1_000_000_000),
        bits("Mbps", 1_000_000),
        bits("kbps", 1_000),
        bits("bps", 1),
        unit("B/s", 1),
    ],
};

static PROBABILITY: Kind = Kind {
    what: "a probability",
    example: "0.1%",
    smallest: "one in a billion",
    units: &[
        unit("%", 10_000_000),
        unit("ppm", 1_000),
        unit("ppb", 1),
        // A bare number counts certainties: `0.001`.
        unit("", 1_000_000_000),
    ],
};

impl Kind {
    fn error(&self, text: &str, remedy: &str) -> QuantityError {
        let shown: Cow<'_, str> = if text.chars().count() > 40 {
            text.chars().take(40).chain("...".chars()).collect()
        } else {
            text.into()
        };
        QuantityError(format!("`{shown}` is not {}: {remedy}", self.what))
    }

    fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let example = self.example;
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, name) = text.split_at(split);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let well_formed = !whole.is_empty()
            && !fraction.contains('.')
            && (number.len() == whole.len() || !fraction.is_empty());
        if !well_formed {
            return Err(self.error(text, &format!("write a number and a unit: `{example}`")));
        }
        let Some(unit) = self.units.iter().find(|unit| unit.name == name) else {
            let remedy = match name {
                "" => format!("write a unit: `{example}`"),
                "KB" => "write `KiB` for 1024 bytes or `kB` for 1000".to_owned(),
                "KB/s" => "write `KiB/s` for 1024 bytes or `kB/s` for 1000".to_owned(),
                _ => {
                    let known: Vec<&str> = self.units.iter().map(|unit| unit.name).collect();
                    format!("no unit `{name}`, write one of {}", known.join(" ").trim_end())
                }
            };
            return Err(self.error(text, &remedy));
        };
        // Trailing zeros of a fraction say nothing and must not count as precision.
        let fraction = fraction.trim_end_matches('0');
        let too_big = || self.error(text, "it is too large, write a smaller one");
        let too_fine =
            || self.error(text, &format!("it is finer than {}, write fewer digits", self.smallest));
        if fraction.len() > FRACTION_DIGITS_MAX {
            return Err(too_fine());
        }
        let mantissa = (whole.bytes().chain(fraction.bytes()))
            .try_fold(0_u128, |sum, digit| {
                sum.checked_mul(10)?.checked_add(u128::from(digit - b'0'))
            })
            .ok_or_else(too_big)?;
        let times = mantissa.checked_mul(u128::from(unit.times)).ok_or_else(too_big)?;
        let over = u32::try_from(fraction.len())
            .ok()
            .and_then(|digits| 10_u128.checked_pow(digits))
            .and_then(|scale| scale.checked_mul(u128::from(unit.over)))
            .ok_or_else(too_big)?;
        if !times.is_multiple_of(over) {
            return Err(too_fine());
        }
        u64::try_from(times / over).map_err(|_| too_big())
    }

    /// Prints `value` exactly, in the first unit of the table that it fills.
    fn print(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(unit) = self.units.iter().find(|unit| {
            // A binary unit only when nothing is left over: its fractions are not decimal.
            let exact = value.is_multiple_of(unit.times) || !unit.times.is_power_of_two();
            unit.over == 1 && value >= unit.times && exact
        }) else {
            let one = self.units.iter().rfind(|unit| unit.times == 1 && unit.over == 1);
            return write!(f, "{value}{}", one.map_or("", |unit| unit.name));
        };
        let (whole, mut rest) = (value / unit.times, value % unit.times);
        write!(f, "{whole}")?;
        if rest > 0 {
            f.write_str(".")?;
            let mut digit = unit.times / 10;
            while rest > 0 && digit > 0 {
                write!(f, "{}", rest / digit)?;
                (rest, digit) = (rest % digit, digit / 10);
            }
        }
        f.write_str(unit.name)
    }

    fn pattern(&self) -> String {
        let names: Vec<&str> = self.units.iter().map(|unit| unit.name).collect();
        format!(r"^[0-9]+(\.[0-9]+)?({})$", names.join("|"))
    }
}

/// A quantity of `kind`, deserialized: only strings will do, and the error says so.
struct QuantityVisitor<T> {
    kind: &'static Kind,
    finish: fn(u64, &str) -> Result<T, QuantityError>,
}

impl<T> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as a string with its unit, such as \"{}\"", self.kind.what, self.kind.example)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        self.kind.parse(text).and_then(|n| (self.finish)(n, text)).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<T, E> {
        let Kind { what, example, .. } = self.kind;
        Err(E::custom(format_args!("{n} is not {what}: write a unit: \"{example}\"")))
    }
}

macro_rules! quantity {
    ($name:ident, $kind:ident, $value:expr, $finish:expr) => {
        impl FromStr for $name {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<Self, QuantityError> {
                let finish: fn(u64, &str) -> Result<Self, QuantityError> = $finish;
                $kind.parse(text).and_then(|n| finish(n, text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let value: fn(&Self) -> u64 = $value;
                $kind.print(value(self), f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor { kind: &$kind, finish: $finish })
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": format!("{}, such as `{}`", $kind.what, $kind.example),
                    "pattern": $kind.pattern(),
                })
            }
        }
    };
}

quantity!(Duration, DURATION, |it| it.0.0, |n, _| Ok(Duration(Span(n))));
quantity!(Bytes, BYTES, |it| it.0, |n, _| Ok(Bytes(n)));
quantity!(Rate, RATE, |it| it.0, |n, text| match n {
    0 => Err(RATE.error(text, "nothing would ever arrive, write more than zero")),
    n => Ok(Rate(n)),
});
quantity!(Probability, PROBABILITY, |it| u64::from(it.0), |n, text| {
    u32::try_from(n)
        .ok()
        .filter(|&n| n <= Probability::CERTAIN.0)
        .map(Probability)
        .ok_or_else(|| PROBABILITY.error(text, "write at most `100%`"))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused<T: FromStr<Err = QuantityError> + fmt::Debug>(text: &str, remedy: &str) {
        let error = text.parse::<T>().expect_err(text).to_string();
        assert!(error.contains(remedy), "`{text}`: {error}");
    }

    #[test]
    fn decimals_are_exact() {
        for (text, ps) in [
            ("0ns", 0),
            ("1ps", 1),
            ("1.5us", 1_500_000),
            ("1.50000000000us", 1_500_000),
            ("0.001ns", 1),
            ("105ns", 105_000),
            ("1.27µs", 1_270_000),
            ("18446744.073709551615s", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Duration(Span(ps))), "{text}");
        }
        assert_eq!("2KiB".parse(), Ok(Bytes(2048)));
        assert_eq!("0.5KiB".parse(), Ok(Bytes(512)));
        assert_eq!("100Gbps".parse(), Ok(Rate(12_500_000_000)));
        assert_eq!("9.375GB/s".parse(), Ok(Rate(9_375_000_000)));
        for text in ["0.1%", "1000ppm", "0.001", "1000000ppb"] {
            assert_eq!(text.parse(), Ok(Probability(1_000_000)), "{text}");
        }
    }

    #[test]
    fn refusals_name_the_remedy() {
        refused::<Duration>("15", "write a unit: `1.5us`");
        refused::<Duration>("", "write a number and a unit: `1.5us`");
        refused::<Duration>(".5us", "write a number and a unit");
        refused::<Duration>("5.us", "write a number and a unit");
        refused::<Duration>("1.2.3us", "write a number and a unit");
        refused::<Duration>("-1us", "write a number and a unit");
        refused::<Duration>("1 us", "no unit ` us`, write one of s ms us");
        refused::<Duration>("1.5ps", "finer than a picosecond");
        refused::<Duration>("18446744.073709551616s", "too large");
        refused::<Duration>(&format!("{}s", "9".repeat(5000)), "too large");
        refused::<Duration>(&format!("0.{}1s", "0".repeat(5000)), "finer than a picosecond");
        refused::<Bytes>("1KB", "write `KiB` for 1024 bytes or `kB` for 1000");
        refused::<Bytes>("16777216TiB", "too large");
        refused::<Rate>("1bps", "finer than a byte a second");
        refused::<Rate>("0Gbps", "more than zero");
        refused::<Probability>("101%", "at most `100%`");
        refused::<Probability>("1.5", "at most `100%`");
        refused::<Probability>("1e-3", "no unit `e-3`");
    }

    #[test]
    fn what_is_printed_reads_back_the_same() {
        for n in [0, 1, 8, 999, 1_000, 1_024, 1_500_000, 1_048_577, 9_375_000_000, u64::MAX] {
            let (time, bytes) = (Duration(Span(n)), Bytes(n));
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
            assert_eq!(bytes.to_string().parse(), Ok(bytes), "{bytes}");
            if n > 0 {
                assert_eq!(Rate(n).to_string().parse(), Ok(Rate(n)), "{}", Rate(n));
            }
        }
        for n in [0, 1, 999, 250_000, 1_000_000, 1_000_000_000] {
            let p = Probability(n);
            assert_eq!(p.to_string().parse(), Ok(p), "{p}");
        }
        assert_eq!(Duration(Span(1_500_000)).to_string(), "1.5us");
        assert_eq!(Bytes(2048).to_string(), "2KiB");
        assert_eq!(Rate(9_375_000_000).to_string(), "9.375GB/s");
        assert_eq!(Probability(1_000_000).to_string(), "1000ppm");
        assert_eq!(Probability(12_500_000).to_string(), "1.25%");
    }
}

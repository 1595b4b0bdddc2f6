//! Transports and their tunables, as written; what is legal comes from core's own tables.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use selvedge_core::config::{self, Unit};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::machine::TransportName;
use crate::diagnostic::unknown;
use crate::quantity::{Bytes, Duration};

/// The transport that the procs speak, with the tunables that differ from their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Cray Gemini and Aries. `selvedge list` shows the tunables.
    Ugni(BTreeMap<String, Tunable>),
}

impl Transport {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> TransportName {
        match self {
            Transport::Ugni(_) => TransportName::Ugni,
        }
    }

    /// The tunables that are set.
    #[must_use]
    pub const fn tunables(&self) -> &BTreeMap<String, Tunable> {
        match self {
            Transport::Ugni(tunables) => tunables,
        }
    }
}

/// The value of a tunable: a count, a quantity with its unit, or a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Tunable {
    /// A count, such as `16`.
    Count(u64),
    /// A quantity with its unit, such as `10us` or `4KiB`.
    Quantity(String),
    /// A flag.
    Flag(bool),
}

impl Tunable {
    /// The number that `row` of a table takes for this value.
    ///
    /// # Errors
    /// When it is written in another unit or lies outside the row's bounds; says what to write.
    pub fn value(&self, row: &config::Tunable) -> Result<u64, String> {
        let value = match (row.unit, self) {
            (Unit::Count, Tunable::Count(n)) => *n,
            (Unit::Flag, Tunable::Flag(flag)) => u64::from(*flag),
            (Unit::Bytes, Tunable::Quantity(text)) => {
                text.parse::<Bytes>().map_err(|error| error.to_string())?.0
            }
            (Unit::Time, Tunable::Quantity(text)) => {
                text.parse::<Duration>().map_err(|error| error.to_string())?.0.0
            }
            (Unit::Count, _) => return Err(format!("`{}` is a count: write `16`", row.name)),
            (Unit::Flag, _) => {
                return Err(format!("`{}` is a flag: write `true` or `false`", row.name));
            }
            (Unit::Bytes, _) => {
                let name = row.name;
                return Err(format!("`{name}` is an amount of data: write a unit: \"2KiB\""));
            }
            (Unit::Time, _) => {
                let name = row.name;
                return Err(format!("`{name}` is a length of time: write a unit: \"1.5us\""));
            }
        };
        if value < row.min || value > row.max {
            let (min, max) = (shown(row.unit, row.min), shown(row.unit, row.max));
            return Err(format!("`{}` must lie between {min} and {max}", row.name));
        }
        Ok(value)
    }
}

/// A tunable's value as files write it.
#[must_use]
pub fn shown(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Count => value.to_string(),
        Unit::Bytes => Bytes(value).to_string(),
        Unit::Time => Duration(selvedge_core::time::Span(value)).to_string(),
        Unit::Flag => (value != 0).to_string(),
    }
}

/// Looks a tunable up and reads its value; `kind` says what the table holds.
///
/// # Errors
/// When the table has no such row, or the value does not fit it.
pub fn resolve(
    kind: &str,
    table: &[config::Tunable],
    name: &str,
    value: &Tunable,
) -> Result<u64, String> {
    match table.iter().find(|row| row.name == name) {
        Some(row) => value.value(row),
        None => {
            let known: Vec<&str> = table.iter().map(|row| row.name).collect();
            Err(unknown(kind, name, &known))
        }
    }
}

// By hand, since serde's own untagged enums forget where a mistake was.
impl<'de> Deserialize<'de> for Tunable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl Visitor<'_> for Forms {
            type Value = Tunable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count, a quantity such as \"10us\", true or false")
            }

            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Tunable, E> {
                Ok(Tunable::Count(n))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Tunable, E> {
                Ok(Tunable::Quantity(text.to_owned()))
            }

            fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<Tunable, E> {
                Ok(Tunable::Flag(flag))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [config::Tunable; 3] = [
        row("depth", Unit::Count, 1, 8),
        row("patience", Unit::Time, 1_000, 1_000_000),
        row("loud", Unit::Flag, 0, 1),
    ];

    const fn row(name: &'static str, unit: Unit, min: u64, max: u64) -> config::Tunable {
        config::Tunable { name, unit, default: min, min, max, meaning: "For tests." }
    }

    #[test]
    fn each_unit_has_its_own_spelling() {
        let text = |text: &str| Tunable::Quantity(text.to_owned());
        let resolve = |name, value: Tunable| resolve("tunable", &TABLE, name, &value);
        assert_eq!(resolve("depth", Tunable::Count(8)), Ok(8));
        assert_eq!(resolve("patience", text("1us")), Ok(1_000_000));
        assert_eq!(resolve("loud", Tunable::Flag(true)), Ok(1));
        for (name, value, remedy) in [
            ("depth", Tunable::Count(9), "`depth` must lie between 1 and 8"),
            ("depth", text("8"), "`depth` is a count"),
            ("patience", text("2us"), "must lie between 1ns and 1us"),
            ("patience", text("2"), "write a unit: `1.5us`"),
            ("patience", Tunable::Count(2), "write a unit: \"1.5us\""),
            ("loud", Tunable::Count(1), "write `true` or `false`"),
            ("patiense", text("1us"), "unknown tunable `patiense`, did you mean `patience`?"),
        ] {
            let error = resolve(name, value).expect_err(name);
            assert!(error.contains(remedy), "{error}");
        }
    }
}

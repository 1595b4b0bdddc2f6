//! Every number that a user may turn: its name, unit, default, bounds and meaning, in one table.
//!
//! A transport declares its tunables with [`tunables!`](crate::tunables); files, flags and
//! documentation are made from the same table, so none of them can drift.

use core::fmt;

/// What a tunable counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Picoseconds; files write them with a unit, such as `10us`.
    Time,
    /// 0 or 1; files write `false` or `true`.
    Flag,
}

/// One row of a transport's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// As files and flags spell it.
    pub name: &'static str,
    /// What the value counts.
    pub unit: Unit,
    /// The value when nobody says anything.
    pub default: u64,
    /// The least legal value.
    pub min: u64,
    /// The greatest legal value.
    pub max: u64,
    /// What it does, in one sentence.
    pub meaning: &'static str,
}

/// Why a tunable was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetError {
    /// The table has no such row.
    Unknown,
    /// The value is outside the row's bounds.
    OutOfBounds(Tunable),
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::Unknown => f.write_str("no such tunable"),
            SetError::OutOfBounds(t) => {
                write!(f, "{} must lie between {} and {}", t.name, t.min, t.max)
            }
        }
    }
}

impl core::error::Error for SetError {}

/// A transport's configuration, readable and writable by name.
pub trait Tunables: Clone + Default {
    /// All rows, in the order of the documentation.
    const TABLE: &'static [Tunable];
    /// The value of the row called `name`.
    fn get(&self, name: &str) -> Option<u64>;
    /// Sets a row, if it exists and `value` is within its bounds.
    ///
    /// # Errors
    /// When there is no such row, or the value is out of bounds; nothing changes then.
    fn set(&mut self, name: &str, value: u64) -> Result<(), SetError>;
}

/// Declares a configuration struct of `u64` fields together with its table.
#[macro_export]
macro_rules! tunables {
    (
        $(#[$doc:meta])* $vis:vis struct $name:ident {
            $($field:ident: $unit:ident = $default:expr, $min:expr => $max:expr, $meaning:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        $vis struct $name { $(#[doc = $meaning] pub $field: u64,)* }

        impl $name {
            /// What it is when nobody says anything.
            $vis const DEFAULT: $name = $name { $($field: $default,)* };
        }

        impl Default for $name {
            fn default() -> Self {
                $name::DEFAULT
            }
        }

        impl $crate::config::Tunables for $name {
            const TABLE: &'static [$crate::config::Tunable] = &[$($crate::config::Tunable {
                name: stringify!($field),
                unit: $crate::config::Unit::$unit,
                default: $default,
                min: $min,
                max: $max,
                meaning: $meaning,
            },)*];

            fn get(&self, name: &str) -> Option<u64> {
                match name {
                    $(stringify!($field) => Some(self.$field),)*
                    _ => None,
                }
            }

            fn set(&mut self, name: &str, value: u64) -> Result<(), $crate::config::SetError> {
                let row = Self::TABLE
                    .iter()
                    .find(|row| row.name == name)
                    .ok_or($crate::config::SetError::Unknown)?;
                if value < row.min || value > row.max {
                    return Err($crate::config::SetError::OutOfBounds(*row));
                }
                match name {
                    $(stringify!($field) => self.$field = value,)*
                    _ => return Err($crate::config::SetError::Unknown),
                }
                Ok(())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    tunables! {
        /// Two rows.
        struct Two {
            depth: Count = 4, 1 => 8, "How deep.";
            patience: Time = 10_000, 0 => u64::MAX, "How long.";
        }
    }

    #[test]
    fn a_row_takes_its_bounds_and_nothing_beyond() {
        let mut two = Two::default();
        assert_eq!(
            (two.get("depth"), two.get("patience"), two.get("width")),
            (Some(4), Some(10_000), None)
        );
        assert_eq!(two.set("depth", 8), Ok(()));
        assert_eq!(two.depth, 8);
        assert_eq!(two.set("depth", 9), Err(SetError::OutOfBounds(Two::TABLE[0])));
        assert_eq!(two.set("depth", 0), Err(SetError::OutOfBounds(Two::TABLE[0])));
        assert_eq!(two.depth, 8, "a refused value leaves the old one");
        assert_eq!(two.set("width", 1), Err(SetError::Unknown));
    }
}

//! Remote memory: places, operations on them, and the rules that all NICs have for them.
//!
//! Bytes never come here. A [`Place`] names them; who holds the memory moves them.

use crate::id::RegionId;

/// A place in a region of registered memory: of this proc, or of a peer.
///
/// A region goes by the name that its owner gave it when it was registered, at its owner's and
/// at its peers' alike. Offsets count from the start of the region, which lies on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Place {
    /// Which region.
    pub region: RegionId,
    /// Bytes from its start.
    pub offset: u32,
}

impl Place {
    /// The place `bytes` further on.
    #[must_use]
    pub const fn after(self, bytes: u32) -> Place {
        Place { region: self.region, offset: self.offset.wrapping_add(bytes) }
    }
}

/// The first name of a region that is a transport's own: applications use those below.
pub const OWN_REGIONS: u32 = 1 << 31;

/// Whether `len` bytes from `offset` lie within a region of `size` bytes.
#[must_use]
pub const fn is_within(offset: u32, len: u32, size: u32) -> bool {
    len <= size && offset <= size - len
}

/// Whether a NIC that moves words of `unit` bytes (a power of two) can get these: both places
/// and the length are whole words.
#[must_use]
pub const fn is_aligned(local: Place, remote: Place, len: u32, unit: u32) -> bool {
    (local.offset | remote.offset | len) & (unit - 1) == 0
}

/// The last bytes of a message that a NIC which moves whole words cannot get: its length modulo
/// four. They travel with the announcement of the message, and are written when the rest is
/// there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tail {
    bytes: [u8; 3],
    len: u8,
}

impl Tail {
    /// The tail of `message`.
    #[must_use]
    pub fn of(message: &[u8]) -> Tail {
        let mut tail = Tail { bytes: [0; 3], len: (message.len() % 4) as u8 };
        let start = message.len() - usize::from(tail.len);
        tail.bytes[..usize::from(tail.len)].copy_from_slice(&message[start..]);
        tail
    }

    /// Three bytes, and how many of them count: as records carry it.
    #[must_use]
    pub const fn parts(self) -> ([u8; 3], u8) {
        (self.bytes, self.len)
    }

    /// What a record carries, if it means anything.
    #[must_use]
    pub const fn from_parts(bytes: [u8; 3], len: u8) -> Option<Tail> {
        if len <= 3 { Some(Tail { bytes, len }) } else { None }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len.min(3))]
    }
}

/// What an atomic operation does with the word that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Does {
    /// Adds the operand, around the end.
    Add,
    /// Keeps the bits that the operand has too.
    And,
    /// Sets the bits of the operand.
    Or,
    /// Flips the bits of the operand.
    Xor,
    /// Keeps the bits that the first operand has too, then flips those of the second.
    AndXor,
    /// Writes the operand.
    Swap,
    /// Writes the operand where it finds the second one.
    CompareSwap,
    /// Writes the operand where it is less, as signed integers.
    Min,
    /// Writes the operand where it is greater, as signed integers.
    Max,
    /// Adds the operand, as IEEE 754 numbers.
    FloatAdd,
    /// Writes the operand where it is less, as IEEE 754 numbers.
    FloatMin,
    /// Writes the operand where it is greater, as IEEE 754 numbers.
    FloatMax,
}

/// How many bytes a word has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Width {
    /// Four.
    Four,
    /// Eight.
    Eight,
}

/// An atomic operation, whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Amo(u8);

const DOES: [Does; 12] = [
    Does::Add,
    Does::And,
    Does::Or,
    Does::Xor,
    Does::AndXor,
    Does::Swap,
    Does::CompareSwap,
    Does::Min,
    Does::Max,
    Does::FloatAdd,
    Does::FloatMin,
    Does::FloatMax,
];
const FETCHES: u8 = 0x40;
const NARROW: u8 = 0x80;

impl Amo {
    /// Does `does` to a word of `width` bytes and, if `fetches`, brings what it found.
    #[must_use]
    pub const fn new(does: Does, width: Width, fetches: bool) -> Amo {
        let fetches = if fetches { FETCHES } else { 0 };
        let narrow = match width {
            Width::Four => NARROW,
            Width::Eight => 0,
        };
        Amo(does as u8 | fetches | narrow)
    }

    /// As records carry it.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// What a record carries, if it means anything.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Amo> {
        if ((bits & 0x3F) as usize) < DOES.len() { Some(Amo(bits)) } else { None }
    }

    /// What it does.
    #[must_use]
    pub const fn does(self) -> Does {
        DOES[(self.0 & 0x3F) as usize]
    }

    /// Bytes of the word.
    #[must_use]
    pub const fn width(self) -> u32 {
        if self.0 & NARROW == 0 { 8 } else { 4 }
    }

    /// Whether what it found comes back.
    #[must_use]
    pub const fn fetches(self) -> bool {
        self.0 & FETCHES != 0
    }

    /// The same, and what it found comes back.
    #[must_use]
    pub const fn fetching(self) -> Amo {
        Amo(self.0 | FETCHES)
    }

    /// Whether doing it twice is as good as once: then it may be repeated when nobody knows
    /// whether it was done. What it finds differs the second time, so none that fetches is.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        let same = match self.does() {
            Does::And | Does::Or | Does::Swap => true,
            Does::Min | Does::Max | Does::FloatMin | Does::FloatMax => true,
            Does::Add | Does::Xor | Does::AndXor | Does::CompareSwap | Does::FloatAdd => false,
        };
        same && !self.fetches()
    }

    /// What is in the word after it, which held `found` before.
    #[must_use]
    pub fn apply(self, found: u64, operand: u64, second: u64) -> u64 {
        let (found, operand, second) = (self.cut(found), self.cut(operand), self.cut(second));
        let pick = |ours: bool| if ours { operand } else { found };
        self.cut(match self.does() {
            Does::Add => found.wrapping_add(operand),
            Does::And => found & operand,
            Does::Or => found | operand,
            Does::Xor => found ^ operand,
            Does::AndXor => (found & operand) ^ second,
            Does::Swap => operand,
            Does::CompareSwap => pick(found == second),
            Does::Min => pick(self.signed(operand) < self.signed(found)),
            Does::Max => pick(self.signed(operand) > self.signed(found)),
            Does::FloatAdd => self.float_sum(found, operand),
            Does::FloatMin => pick(self.float(operand) < self.float(found)),
            Does::FloatMax => pick(self.float(operand) > self.float(found)),
        })
    }

    const fn cut(self, word: u64) -> u64 {
        if self.0 & NARROW == 0 { word } else { word & 0xFFFF_FFFF }
    }

    const fn signed(self, word: u64) -> i64 {
        if self.0 & NARROW == 0 { word as i64 } else { word as u32 as i32 as i64 }
    }

    fn float(self, word: u64) -> f64 {
        if self.0 & NARROW == 0 {
            f64::from_bits(word)
        } else {
            f64::from(f32::from_bits(word as u32))
        }
    }

    /// The sum; of all that is not a number the one form, since machines differ in it.
    fn float_sum(self, a: u64, b: u64) -> u64 {
        if self.0 & NARROW == 0 {
            let sum = f64::from_bits(a) + f64::from_bits(b);
            if sum.is_nan() { 0x7FF8_0000_0000_0000 } else { sum.to_bits() }
        } else {
            let sum = f32::from_bits(a as u32) + f32::from_bits(b as u32);
            u64::from(if sum.is_nan() { 0x7FC0_0000 } else { sum.to_bits() })
        }
    }
}

impl core::fmt::Debug for Amo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let fetches = if self.fetches() { "Fetch" } else { "" };
        write!(f, "{fetches}{:?}{}", self.does(), self.width() * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn wide(does: Does) -> Amo {
        Amo::new(does, Width::Eight, false)
    }

    const fn narrow(does: Does) -> Amo {
        Amo::new(does, Width::Four, false)
    }

    #[test]
    fn each_does_what_it_says() {
        let minus = |n: i64| -n as u64;
        for (does, found, operand, second, after) in [
            (Does::Add, u64::MAX, 2, 0, 1),
            (Does::And, 0b1100, 0b1010, 0, 0b1000),
            (Does::Or, 0b1100, 0b1010, 0, 0b1110),
            (Does::Xor, 0b1100, 0b1010, 0, 0b0110),
            (Does::AndXor, 0b1100, 0b1010, 0b0011, 0b1011),
            (Does::Swap, 5, 7, 0, 7),
            (Does::CompareSwap, 5, 7, 5, 7),
            (Does::CompareSwap, 5, 7, 6, 5),
            (Does::Min, 5, minus(7), 0, minus(7)),
            (Does::Max, 5, minus(7), 0, 5),
        ] {
            assert_eq!(wide(does).apply(found, operand, second), after, "{does:?}");
        }
        let bits = f64::to_bits;
        assert_eq!(wide(Does::FloatAdd).apply(bits(1.5), bits(2.0), 0), bits(3.5));
        assert_eq!(wide(Does::FloatMin).apply(bits(1.5), bits(-2.0), 0), bits(-2.0));
        assert_eq!(wide(Does::FloatMax).apply(bits(1.5), bits(-2.0), 0), bits(1.5));
        let nan = wide(Does::FloatAdd).apply(bits(f64::INFINITY), bits(f64::NEG_INFINITY), 0);
        assert_eq!(nan, 0x7FF8_0000_0000_0000);
    }

    #[test]
    fn four_bytes_are_four_bytes() {
        assert_eq!(narrow(Does::Add).apply(0xFFFF_FFFF, 1, 0), 0);
        assert_eq!(narrow(Does::Min).apply(1, 0xFFFF_FFFE, 0), 0xFFFF_FFFE, "that is minus two");
        assert_eq!(narrow(Does::CompareSwap).apply(9 << 32 | 5, 7, 5), 7);
        let bits = |n: f32| u64::from(n.to_bits());
        assert_eq!(narrow(Does::FloatAdd).apply(bits(0.25), bits(0.5), 0), bits(0.75));
    }

    #[test]
    fn twice_is_as_good_as_once_exactly_where_it_says_so() {
        for does in DOES {
            for width in [Width::Four, Width::Eight] {
                let amo = Amo::new(does, width, false);
                let words = [0, 1, 0b1100, 0x7F80_0000, u64::MAX, f64::to_bits(1.5)];
                let mut same = true;
                for found in words {
                    for operand in words {
                        for second in words {
                            let once = amo.apply(found, operand, second);
                            same &= amo.apply(once, operand, second) == once;
                        }
                    }
                }
                // A compare and swap repeats itself harmlessly only while nobody else writes.
                let alone = does == Does::CompareSwap;
                assert_eq!(same && !alone, amo.is_idempotent(), "{amo:?}");
                assert!(!amo.fetching().is_idempotent());
                assert_eq!((amo.fetching().does(), amo.fetching().width()), (does, amo.width()));
            }
        }
    }

    #[test]
    fn bounds_and_words() {
        assert!(is_within(0, 0, 0) && is_within(4, 4, 8) && is_within(8, 0, 8));
        assert!(!is_within(5, 4, 8) && !is_within(u32::MAX, 2, 8) && !is_within(0, 9, 8));
        let at = |offset| Place { region: RegionId(1), offset };
        assert!(is_aligned(at(4), at(8), 12, 4));
        assert!(!is_aligned(at(4), at(8), 13, 4) && !is_aligned(at(2), at(8), 12, 4));
        assert!(!is_aligned(at(4), at(7), 12, 4) && is_aligned(at(3), at(7), 13, 1));
        assert_eq!(Tail::of(b"abcdefg").bytes(), b"efg");
        assert_eq!(Tail::of(b"abcd").bytes(), b"");
    }
}

//! The canonical form of a value: its fields in order, in fixed-width little-endian integers.
//!
//! A derived `Hash` already walks a value field by field; fed with a hasher that writes down
//! what it is given, it becomes an encoder that cannot forget a field.

use core::hash::{Hash, Hasher};

use crate::sink::Sink;

/// Writes the canonical form of `value` to `out`. Variants take one byte, lengths four.
pub fn encode(value: &impl Hash, out: &mut impl Sink<u8>) {
    value.hash(&mut Bytes(out));
}

struct Bytes<'a, S>(&'a mut S);

impl<S: Sink<u8>> Hasher for Bytes<'_, S> {
    fn finish(&self) -> u64 {
        0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0.push(byte));
    }
    fn write_u8(&mut self, n: u8) {
        self.0.push(n);
    }
    fn write_u16(&mut self, n: u16) {
        self.write(&n.to_le_bytes());
    }
    fn write_u32(&mut self, n: u32) {
        self.write(&n.to_le_bytes());
    }
    fn write_u64(&mut self, n: u64) {
        self.write(&n.to_le_bytes());
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u32(n as u32);
    }
    /// What a derived `Hash` writes for the variant of an enum.
    fn write_isize(&mut self, n: isize) {
        self.0.push(n as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[derive(Hash)]
    enum Shape {
        Dot,
        Line { len: u16, label: Option<u8> },
    }

    #[test]
    fn fields_come_in_order_and_in_fixed_width() {
        let mut out = Vec::new();
        encode(
            &(Shape::Dot, Shape::Line { len: 258, label: Some(7) }, [1_u32].as_slice()),
            &mut out,
        );
        assert_eq!(out, [0, 1, 2, 1, 1, 7, 1, 0, 0, 0, 1, 0, 0, 0]);
    }
}

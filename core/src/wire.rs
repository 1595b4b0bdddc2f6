//! Records as bytes: little-endian, fixed layout, a version and a job in every one, checked on
//! the way in. Each record type has its exact size in its own module.

use core::fmt;

/// Why bytes are not the record that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireError {
    /// Not as many bytes as the record has.
    Size {
        /// Bytes of the record.
        want: usize,
        /// Bytes that came.
        got: usize,
    },
    /// Does not start like one of our records.
    Magic(u32),
    /// A version that this build does not speak.
    Version(u8),
    /// The bytes do not add up.
    Checksum,
    /// Meant for another job.
    Job(u32),
    /// A field has a value that it cannot have.
    Field(&'static str),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Size { want, got } => write!(f, "record of {got} bytes, expected {want}"),
            WireError::Magic(magic) => write!(f, "not a record of ours (starts {magic:08x})"),
            WireError::Version(version) => write!(f, "record of unknown version {version}"),
            WireError::Checksum => f.write_str("checksum does not match"),
            WireError::Job(job) => write!(f, "record of job {job}"),
            WireError::Field(field) => write!(f, "impossible value of {field}"),
        }
    }
}

impl core::error::Error for WireError {}

/// Writes fields into a record of `N` bytes.
#[derive(Debug)]
pub struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Default for Writer<N> {
    fn default() -> Self {
        Writer { bytes: [0; N], at: 0 }
    }
}

impl<const N: usize> Writer<N> {
    /// The next `u8`.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }
    /// The next `u16`.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_le_bytes())
    }
    /// The next `u32`.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }
    /// The next `u64`.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }
    /// Closes the record with the checksum of all before it.
    #[must_use]
    pub fn sealed(&mut self) -> [u8; N] {
        debug_assert_eq!(self.at + 4, N, "the fields do not fill the record");
        let sum = checksum(&self.bytes[..N - 4]);
        self.u32(sum);
        self.bytes
    }
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }
}

/// Reads fields of a record whose size and checksum are known to be right.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Opens a record of `N` bytes that starts with `magic` and `version`.
    ///
    /// # Errors
    /// When size, magic, version or checksum are not right; nothing is read then.
    pub fn open<const N: usize>(
        bytes: &'a [u8],
        magic: u32,
        version: u8,
    ) -> Result<Reader<'a>, WireError> {
        if bytes.len() != N {
            return Err(WireError::Size { want: N, got: bytes.len() });
        }
        let (body, sum) = bytes.split_at(N - 4);
        let mut reader = Reader { rest: body };
        let found = reader.u32();
        if found != magic {
            return Err(WireError::Magic(found));
        }
        let found = reader.u8();
        if found != version {
            return Err(WireError::Version(found));
        }
        if checksum(body).to_le_bytes() != sum {
            return Err(WireError::Checksum);
        }
        Ok(reader)
    }

    /// The next `u8`; zero past the end.
    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }
    /// The next `u16`; zero past the end.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }
    /// The next `u32`; zero past the end.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
    /// The next `u64`; zero past the end.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                *head
            }
            None => [0; N],
        }
    }
}

/// Reads fields of whatever a peer sent, whose length only its fields tell.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields in `bytes`.
    #[must_use]
    pub const fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    /// Whether all was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `u8`.
    ///
    /// # Errors
    /// When the bytes end before; so with all that follow.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    /// The next `u16`.
    ///
    /// # Errors
    /// See [`u8`](Self::u8).
    #[inline]
    pub fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    /// The next `u32`.
    ///
    /// # Errors
    /// See [`u8`](Self::u8).
    #[inline]
    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    /// The next `u64`.
    ///
    /// # Errors
    /// See [`u8`](Self::u8).
    #[inline]
    pub fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    /// The next `N` bytes.
    ///
    /// # Errors
    /// See [`u8`](Self::u8).
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let short = WireError::Size { want: N, got: self.rest.len() };
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(short)?;
        self.rest = rest;
        Ok(*head)
    }
    /// The next `len` bytes, where they are.
    ///
    /// # Errors
    /// See [`u8`](Self::u8).
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let short = WireError::Size { want: len, got: self.rest.len() };
        let (head, rest) = self.rest.split_at_checked(len).ok_or(short)?;
        self.rest = rest;
        Ok(head)
    }
}

/// CRC-32C (Castagnoli, reflected 0x82F63B78, as in RFC 3720), eight bits a round.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = !0;
    for &byte in bytes {
        crc = (crc >> 8) ^ CRC_TABLE[(crc as u8 ^ byte) as usize];
    }
    !crc
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(checksum(b"123456789"), 0xE306_9283, "check value of RFC 3720");
    }

    #[test]
    fn a_record_opens_only_whole_and_unchanged() {
        let bytes = Writer::<15>::default().u32(7).u8(1).u16(300).u32(9).sealed();
        let mut reader = Reader::open::<15>(&bytes, 7, 1).expect("sealed a line above");
        assert_eq!((reader.u16(), reader.u32(), reader.u8()), (300, 9, 0));
        assert_eq!(
            Reader::open::<15>(&bytes[..14], 7, 1).err(),
            Some(WireError::Size { want: 15, got: 14 })
        );
        assert_eq!(Reader::open::<15>(&bytes, 8, 1).err(), Some(WireError::Magic(7)));
        assert_eq!(Reader::open::<15>(&bytes, 7, 2).err(), Some(WireError::Version(1)));
        for bit in 40..15 * 8 {
            let mut bent = bytes;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Reader::open::<15>(&bent, 7, 1).err(), Some(WireError::Checksum));
        }
    }
}

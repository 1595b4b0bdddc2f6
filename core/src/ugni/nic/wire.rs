//! Packets as bytes, for fabrics that carry messages: one after the other in a frame, each
//! followed by its payload.
//!
//! | packet | kind | fields after the kind |
//! | --- | --- | --- |
//! | message | 0 | `mbox` 4, `index` 4, `ep` 4, `seq` 4, `len` 4, `tries` 1, `tag` 1 |
//! | goodbye | 1 | `mbox` 4, `index` 4, `ep` 4, `seq` 4, `tries` 1 |
//! | credit | 2 | `ep` 4, `mbox` 4, `freed` 2, `tries` 1 |
//! | control | 3 | `mbox` 4, `index` 4, `ep` 4, `seq` 4, `tries` 1, then by its own kind |
//! | datagram | 4 | `seq` 4, `floor` 4, `tries` 1, `serial` 4, step 1, a record of 56 for steps 0 and 1 |
//! | put | 5 | `serial` 4, `behind` 2, `engine` 1, remote 8, `len` 4, local 8 |
//! | get | 6 | `serial` 4, `engine` 1, remote 8, `len` 4 |
//! | atomic | 7 | `serial` 4, `behind` 2, operation 1, remote 8, operands 16 |
//! | wake | 8 | `serial` 4 |
//! | reply | 9 | `serial` 4, `end` 1, `tries` 1, `found` 8, from 8, `len` 4 |
//!
//! A place is its region and its offset, four bytes each. All is little-endian. The kinds of a
//! control are 0 fetch (`tag` 1, `data` 4, `len` 4, place 8, tail 4), 1 fetched (`data` 4, `ok` 1),
//! 2 give (`frag` 4, from 8, into 8, `len` 4) and 3 given (`frag` 4, `ok` 1).

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::id::{EpId, FragId, RegionId, Tag};
use crate::lane::{Carried, Source};
use crate::rma::{Amo, Place, Tail};
use crate::ugni::access::{End, Engine};
use crate::ugni::record::Record;
use crate::ugni::{Content, Control, MboxId, RecordBytes};
use crate::wire::{Fields, WireError};

use super::{ControlPacket, Exchange, Packet};

const ENDS: [End; 5] = [End::Done, End::Denied, End::Recoverable, End::Fatal, End::Gone];

struct Out<'a>(&'a mut Vec<u8>);

impl Out<'_> {
    fn u8(self, value: u8) -> Self {
        self.0.push(value);
        self
    }
    fn u16(self, value: u16) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn u32(self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn u64(self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn place(self, at: Place) -> Self {
        self.u32(at.region.0).u32(at.offset)
    }
}

fn place(fields: &mut Fields<'_>) -> Result<Place, WireError> {
    Ok(Place { region: RegionId(fields.u32()?), offset: fields.u32()? })
}

fn engine(fields: &mut Fields<'_>) -> Result<Engine, WireError> {
    match fields.u8()? {
        0 => Ok(Engine::Fma),
        1 => Ok(Engine::Bte),
        _ => Err(WireError::Field("engine")),
    }
}

fn flag(fields: &mut Fields<'_>) -> Result<bool, WireError> {
    match fields.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WireError::Field("flag")),
    }
}

fn write_control(out: Out<'_>, control: &Control) {
    match *control {
        Control::Fetch { tag, data, len, at, tail } => {
            let (bytes, count) = tail.parts();
            let out = out.u8(0).u8(tag.0).u32(data.0).u32(len).place(at);
            bytes.into_iter().fold(out, Out::u8).u8(count);
        }
        Control::Fetched { data, ok } => {
            out.u8(1).u32(data.0).u8(u8::from(ok));
        }
        Control::Give { frag, from, into, len } => {
            out.u8(2).u32(frag.0).place(from).place(into).u32(len);
        }
        Control::Given { frag, ok } => {
            out.u8(3).u32(frag.0).u8(u8::from(ok));
        }
    }
}

fn read_control(fields: &mut Fields<'_>) -> Result<Control, WireError> {
    Ok(match fields.u8()? {
        0 => Control::Fetch {
            tag: Tag(fields.u8()?),
            data: FragId(fields.u32()?),
            len: fields.u32()?,
            at: place(fields)?,
            tail: Tail::from_parts(fields.array()?, fields.u8()?)
                .ok_or(WireError::Field("tail"))?,
        },
        1 => Control::Fetched { data: FragId(fields.u32()?), ok: flag(fields)? },
        2 => Control::Give {
            frag: FragId(fields.u32()?),
            from: place(fields)?,
            into: place(fields)?,
            len: fields.u32()?,
        },
        3 => Control::Given { frag: FragId(fields.u32()?), ok: flag(fields)? },
        _ => return Err(WireError::Field("control")),
    })
}

impl Carried for Packet {
    const BYTES_MAX: usize = 80;

    fn write(&self, out: &mut Vec<u8>) {
        let out = Out(out);
        match self {
            &Packet::Smsg { mbox, index, ep, seq, content, len, tries } => {
                let kind = match content {
                    Content::User { .. } => 0,
                    Content::Goodbye => 1,
                };
                let out = out.u8(kind).u32(mbox.0).u32(index).u32(ep.0).u32(seq);
                match content {
                    Content::User { tag, .. } => out.u32(len).u8(tries).u8(tag.0),
                    Content::Goodbye => out.u8(tries),
                };
            }
            &Packet::Credit { ep, mbox, freed, tries } => {
                out.u8(2).u32(ep.0).u32(mbox.0).u16(freed).u8(tries);
            }
            Packet::Control(packet) => {
                let &ControlPacket { mbox, index, ep, seq, control, tries } = &**packet;
                let out = out.u8(3).u32(mbox.0).u32(index).u32(ep.0).u32(seq).u8(tries);
                write_control(out, &control);
            }
            Packet::Datagram { seq, floor, tries, serial, body } => {
                let out = out.u8(4).u32(*seq).u32(*floor).u8(*tries).u32(*serial);
                match body {
                    Exchange::Directed(record) => out.u8(0).0.extend_from_slice(&record.0),
                    Exchange::Matched(record) => out.u8(1).0.extend_from_slice(&record.0),
                    Exchange::Cancel => out.0.push(2),
                    Exchange::Cancelled => out.0.push(3),
                }
            }
            &Packet::Put { serial, behind, engine, remote, len, local } => {
                let out = out.u8(5).u32(serial).u16(behind).u8(engine as u8);
                out.place(remote).u32(len).place(local);
            }
            &Packet::Get { serial, engine, remote, len } => {
                out.u8(6).u32(serial).u8(engine as u8).place(remote).u32(len);
            }
            &Packet::Atomic { serial, behind, amo, remote, operand, second } => {
                let out = out.u8(7).u32(serial).u16(behind).u8(amo.bits());
                out.place(remote).u64(operand).u64(second);
            }
            &Packet::Wake { serial } => {
                out.u8(8).u32(serial);
            }
            &Packet::Reply { serial, end, tries, found, from, len } => {
                let out = out.u8(9).u32(serial).u8(end as u8).u8(tries).u64(found);
                out.place(from).u32(len);
            }
        }
    }

    fn read(fields: &mut Fields<'_>) -> Result<Packet, WireError> {
        Ok(match fields.u8()? {
            kind @ (0 | 1) => {
                let (mbox, index) = (MboxId(fields.u32()?), fields.u32()?);
                let (ep, seq) = (EpId(fields.u32()?), fields.u32()?);
                let len = if kind == 0 { fields.u32()? } else { 0 };
                let tries = fields.u8()?;
                let content = match kind {
                    0 => Content::User { tag: Tag(fields.u8()?), data: FragId(0) },
                    _ => Content::Goodbye,
                };
                Packet::Smsg { mbox, index, ep, seq, content, len, tries }
            }
            2 => Packet::Credit {
                ep: EpId(fields.u32()?),
                mbox: MboxId(fields.u32()?),
                freed: fields.u16()?,
                tries: fields.u8()?,
            },
            3 => Packet::Control(Box::new(ControlPacket {
                mbox: MboxId(fields.u32()?),
                index: fields.u32()?,
                ep: EpId(fields.u32()?),
                seq: fields.u32()?,
                tries: fields.u8()?,
                control: read_control(fields)?,
            })),
            4 => {
                let (seq, floor, tries) = (fields.u32()?, fields.u32()?, fields.u8()?);
                let serial = fields.u32()?;
                let body = match fields.u8()? {
                    0 => Exchange::Directed(record(fields)?),
                    1 => Exchange::Matched(record(fields)?),
                    2 => Exchange::Cancel,
                    3 => Exchange::Cancelled,
                    _ => return Err(WireError::Field("step of a datagram")),
                };
                Packet::Datagram { seq, floor, tries, serial, body }
            }
            5 => Packet::Put {
                serial: fields.u32()?,
                behind: fields.u16()?,
                engine: engine(fields)?,
                remote: place(fields)?,
                len: fields.u32()?,
                local: place(fields)?,
            },
            6 => Packet::Get {
                serial: fields.u32()?,
                engine: engine(fields)?,
                remote: place(fields)?,
                len: fields.u32()?,
            },
            7 => Packet::Atomic {
                serial: fields.u32()?,
                behind: fields.u16()?,
                amo: Amo::from_bits(fields.u8()?).ok_or(WireError::Field("atomic"))?,
                remote: place(fields)?,
                operand: fields.u64()?,
                second: fields.u64()?,
            },
            8 => Packet::Wake { serial: fields.u32()? },
            9 => Packet::Reply {
                serial: fields.u32()?,
                end: *ENDS.get(usize::from(fields.u8()?)).ok_or(WireError::Field("end"))?,
                tries: fields.u8()?,
                found: fields.u64()?,
                from: place(fields)?,
                len: fields.u32()?,
            },
            _ => return Err(WireError::Field("kind of a packet")),
        })
    }

    fn source(&self) -> Source {
        if let Packet::Smsg { content: Content::User { data, .. }, len, .. } = *self {
            return Source::Message(data, len);
        }
        match self.payload() {
            Some((at, len)) => Source::Memory(at, len),
            None => Source::None,
        }
    }

    /// A mailbox of so many slots keeps a message in the slot that its number says.
    fn land(&mut self, slots: u16) -> Option<FragId> {
        let Packet::Smsg { content: Content::User { data, .. }, mbox, seq, .. } = self else {
            return None;
        };
        let slots = u32::from(slots.max(1));
        *data = FragId(mbox.0.wrapping_mul(slots).wrapping_add(*seq % slots));
        Some(*data)
    }
}

fn record(fields: &mut Fields<'_>) -> Result<Box<RecordBytes>, WireError> {
    Ok(Box::new(RecordBytes(fields.array::<{ Record::BYTES }>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rma::{Does, Width};

    /// One of each, with a value of its own in each field.
    fn packets() -> Vec<Packet> {
        let at = |n| Place { region: RegionId(n), offset: n + 1 };
        let (mbox, ep, tail) = (MboxId(1), EpId(3), Tail::of(b"abcdefg"));
        let smsg =
            |content, len| Packet::Smsg { mbox, index: 2, ep, seq: 4, content, len, tries: 6 };
        let control = |control| {
            Packet::Control(Box::new(ControlPacket {
                mbox,
                index: 2,
                ep,
                seq: 4,
                control,
                tries: 5,
            }))
        };
        let datagram = |body| Packet::Datagram { seq: 1, floor: 2, tries: 3, serial: 4, body };
        let record = Box::new(RecordBytes([7; Record::BYTES]));
        let amo = Amo::new(Does::CompareSwap, Width::Four, true);
        let (frag, data) = (FragId(9), FragId(8));
        alloc::vec![
            smsg(Content::User { tag: Tag(7), data: FragId(0) }, 5),
            smsg(Content::Goodbye, 0),
            Packet::Credit { ep, mbox, freed: 513, tries: 1 },
            control(Control::Fetch { tag: Tag(1), data, len: 7, at: at(20), tail }),
            control(Control::Fetched { data, ok: true }),
            control(Control::Give { frag, from: at(5), into: at(6), len: 1 << 20 }),
            control(Control::Given { frag, ok: false }),
            datagram(Exchange::Directed(record.clone())),
            datagram(Exchange::Matched(record)),
            datagram(Exchange::Cancel),
            datagram(Exchange::Cancelled),
            Packet::Put {
                serial: 1,
                behind: 2,
                engine: Engine::Bte,
                remote: at(3),
                len: 4,
                local: at(5),
            },
            Packet::Get { serial: 1, engine: Engine::Fma, remote: at(3), len: 4 },
            Packet::Atomic { serial: 1, behind: 2, amo, remote: at(3), operand: 4, second: 5 },
            Packet::Wake { serial: u32::MAX },
            Packet::Reply { serial: 1, end: End::Gone, tries: 2, found: 3, from: at(4), len: 5 },
        ]
    }

    #[test]
    fn every_packet_reads_back_and_none_reads_short() {
        for packet in packets() {
            let mut bytes = Vec::new();
            packet.write(&mut bytes);
            assert!(bytes.len() <= Packet::BYTES_MAX, "{packet:?} takes {}", bytes.len());
            let mut fields = Fields::of(&bytes);
            assert_eq!(Packet::read(&mut fields), Ok(packet));
            assert!(fields.is_empty());
            for len in 0..bytes.len() {
                let cut = Packet::read(&mut Fields::of(&bytes[..len]));
                assert!(matches!(cut, Err(WireError::Size { .. })), "{cut:?} of {len} bytes");
            }
        }
    }

    #[test]
    fn no_bytes_are_read_as_what_nobody_writes() {
        // Whatever a peer sends reads as a packet that would be written just so, or not at all.
        for packet in packets() {
            let mut bytes = Vec::new();
            packet.write(&mut bytes);
            for at in 0..bytes.len() {
                for value in 0..=255 {
                    let mut bent = bytes.clone();
                    bent[at] = value;
                    let mut fields = Fields::of(&bent);
                    if let Ok(packet) = Packet::read(&mut fields) {
                        let mut again = Vec::new();
                        packet.write(&mut again);
                        let read = bent.len() - fields.bytes(0).map_or(0, |_| remaining(fields));
                        assert_eq!(again, bent[..read]);
                    }
                }
            }
        }
    }

    fn remaining(mut fields: Fields<'_>) -> usize {
        let mut left = 0;
        while fields.u8().is_ok() {
            left += 1;
        }
        left
    }

    #[test]
    fn a_message_lands_in_the_slot_that_its_number_says() {
        let mut packet = packets().swap_remove(0);
        assert_eq!(packet.land(3), Some(FragId(3 + 4 % 3)));
        assert_eq!(packet.source(), Source::Message(FragId(4), 5));
    }
}

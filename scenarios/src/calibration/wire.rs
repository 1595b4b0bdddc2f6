//! What packets take on the wire, as the device reckons them.

use selvedge_core::ugni::access::{End, Engine};
use selvedge_core::ugni::nic::{Config, Nic, Packet};
use selvedge_core::{Load, Place};

/// Bytes of data of one transaction.
const WHOLE: u32 = 64;

fn load(aries: bool, packet: &Packet) -> Load {
    Nic::load(&Config { aries: u64::from(aries), ..Config::default() }, packet)
}

fn put_of(aries: bool, len: u32) -> Load {
    let (place, engine) = (Place::default(), Engine::Fma);
    load(aries, &Packet::Put { serial: 0, behind: 0, engine, remote: place, len, local: place })
}

/// Request of and response to a put of 64 bytes.
pub(super) fn put(aries: bool) -> [u32; 2] {
    let Load { wire, back, .. } = put_of(aries, WHOLE);
    [wire, back]
}

/// Request of and response to a get of 64 bytes.
pub(super) fn get(aries: bool) -> [u32; 2] {
    let (place, engine, len) = (Place::default(), Engine::Fma, WHOLE);
    let request = load(aries, &Packet::Get { serial: 0, engine, remote: place, len });
    let reply = Packet::Reply { serial: 0, end: End::Done, tries: 0, found: 0, from: place, len };
    [request.wire, load(aries, &reply).wire]
}

/// The most data that take no more than the least.
pub(super) fn longest(aries: bool) -> u64 {
    let least = put_of(aries, 1).wire;
    (1..4_096).take_while(|&data| put_of(aries, data).wire == least).last().map_or(0, u64::from)
}

//! Every history of two procs that use each other's memory, fetch long messages, and part with
//! such things outstanding, with one fault that may strike at any moment or never. The counts are
//! pinned: a change of a machine, of the NIC or of the search that moves one has to say why.

use selvedge_core::ugni::Module;
use selvedge_core::ugni::nic::Fault::*;
use selvedge_proptests::search::{self, Row, one};
use selvedge_proptests::world::{
    Ask::{self, Add, Close, Get, GetOdd, Put, Send, SendLong, SendPlaced, Set},
    Script, tiny_remote,
};
use selvedge_sim::explore::Bounds;

/// Searches all of it, and finds nothing wrong.
#[track_caller]
fn count(scripts: &[Script], bounds: Bounds<Module>) -> (u64, u64) {
    search::count(tiny_remote(), scripts, bounds)
}

/// One proc asks for something, and the other has memory for it.
fn user(asks: &[Ask]) -> Vec<Script> {
    vec![Script::at_once(asks), Script::served()]
}

/// Both do.
fn both(asks: &[Ask], others: &[Ask]) -> Vec<Script> {
    vec![Script::at_once(asks), Script::at_once(others)]
}

#[track_caller]
fn table(scripts: &[Script], rows: &[Row]) {
    assert_eq!(search::rows(&tiny_remote(), scripts, rows), rows);
}

#[test]
fn nothing_goes_wrong() {
    let counted = [
        user(&[Put(1), Get(1)]),
        user(&[Add(1), Set(1)]),
        user(&[GetOdd(1)]),
        user(&[SendLong(1), Close(1)]),
        user(&[SendPlaced(1), Close(1)]),
        user(&[SendLong(1), Send(1), Close(1)]),
        user(&[GetOdd(1), Close(1)]),
        both(&[SendLong(1)], &[Close(0)]),
        both(&[GetOdd(1), Close(1)], &[Close(0)]),
        both(&[SendLong(1), SendLong(1)], &[Close(0)]),
    ]
    .map(|scripts| count(&scripts, Bounds::default()));
    assert_eq!(
        counted,
        [
            (28, 2),
            (27, 1),
            (907, 1),
            (10_097, 1),
            (10_097, 1),
            (77_967, 1),
            (10_061, 1),
            (21_615, 3),
            (45_699, 2),
            (21_615, 3)
        ]
    );
}

/// Of operations on remote memory.
const MEMORY: &[Row] = &[
    (RefuseMemory, 384, 24),
    (RefuseRdma, 444, 28),
    (RdmaError, 468, 30),
    (RdmaErrorLate, 692, 40),
    (RdmaFatal, 494, 32),
    (RdmaFatalLate, 722, 36),
];

#[test]
fn memory_is_written_and_read() {
    table(&user(&[Put(1), Get(1), Add(1)]), MEMORY);
}

/// Of a long message and the end of its connection.
const LONG: &[Row] = &[
    (RefuseRegister, 118_923, 12),
    (RefuseSetup, 40_654, 9),
    (RefuseSend, 70_511, 12),
    (FailSend, 48_794, 12),
    (EarlyEvent, 150_952, 9),
    (DuplicateEvent, 139_413, 9),
    (HoldCredits, 138_138, 9),
    (RemoteOverrun, 94_195, 9),
    (BusyUnbind, 48_300, 9),
    (RefuseMemory, 59_815, 9),
    (RefuseRdma, 46_614, 6),
    (RdmaError, 46_686, 6),
    (RdmaErrorLate, 46_830, 6),
    (RdmaFatal, 60_352, 6),
];

#[test]
fn a_long_message_is_fetched_before_the_goodbye() {
    table(&user(&[SendLong(1), Close(1)]), LONG);
}

/// Of a get that the peer has to do.
const GIVEN: &[Row] = &[
    (RefuseSend, 70_331, 12),
    (FailSend, 48_650, 12),
    (EarlyEvent, 150_700, 9),
    (RemoteOverrun, 93_979, 9),
    (BusyUnbind, 48_156, 9),
    (RefuseMemory, 40_244, 4),
    (RefuseRdma, 46_466, 6),
    (RdmaErrorLate, 46_682, 6),
    (RdmaFatal, 60_136, 6),
    (RdmaFatalLate, 60_280, 6),
];

#[test]
fn the_peer_puts_what_cannot_be_got() {
    table(&user(&[GetOdd(1), Close(1)]), GIVEN);
}

/// Of a short message behind a long one.
const BEHIND: &[Row] = &[
    (RefuseSend, 140_155, 12),
    (FailSend, 115_856, 8),
    (EarlyEvent, 378_280, 9),
    (DuplicateEvent, 332_163, 9),
    (RemoteOverrun, 251_976, 9),
    (RefuseMemory, 139_654, 12),
    (RdmaFatal, 156_348, 6),
];

#[test]
fn a_short_message_does_not_overtake_a_long_one() {
    table(&user(&[SendLong(1), Send(1)]), BEHIND);
}

#[test]
fn packets_are_lost_and_doubled_and_procs_die() {
    let losses = Bounds { losses: 2, ..Bounds::default() };
    let twice = Bounds { duplicates: 2, ..Bounds::default() };
    let crash = Bounds { crashes: 1, ..Bounds::default() };
    let worst = Bounds { losses: 1, duplicates: 1, crashes: 1, ..one(RdmaErrorLate) };
    let memory = user(&[Put(1), Add(1)]);
    let counted = [&losses, &twice, &crash, &worst].map(|bounds| count(&memory, bounds.clone()));
    assert_eq!(counted, [(127, 5), (185, 3), (114, 5), (9206, 128)]);
    let long = user(&[SendLong(1), Close(1)]);
    let counted = [&losses, &twice, &crash].map(|bounds| count(&long, bounds.clone()));
    assert_eq!(counted, [(80_773, 4), (662_514, 3), (43_754, 30)]);
    let given = user(&[GetOdd(1)]);
    let counted = [&losses, &twice, &crash].map(|bounds| count(&given, bounds.clone()));
    assert_eq!(counted, [(4_953, 5), (48_298, 3), (6_704, 26)]);
}

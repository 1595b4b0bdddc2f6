//! The rows of Gemini.

use selvedge_sim::topology::Medium;

use super::{
    Bound, Labs, Measure, Measured, Row, Unit, at, bandwidth, beside, bytes, count, figure,
    latency, unpublished,
};
use crate::calibration::rank::How::{Get, Message, Mpi, Put};
use crate::calibration::wire;

const INTERCONNECTS: &str = "The Gemini System Interconnect, IEEE Hot Interconnects 18, 2010 (as \
    quoted in the LANL Performance Prediction Toolkit)";
const EUROBEN: &str = "EuroBen report on supercomputers, Cray XE6 page, 2010";
const HOPPER: &str =
    "NERSC Hopper system page (as quoted in the LANL Performance Prediction Toolkit)";
const TITAN: &str = "Titan: Early experience with the XK6 at Oak Ridge National Laboratory, Cray \
    User Group, 2012 (as quoted in the LANL Performance Prediction Toolkit)";
const LDMS: &str = "LDMS cray_system_sampler, gemini.h";
const COUNTERS: &str = "Using the Cray Gemini Performance Counters, Sandia report SAND2013-0216C, \
    2013 (as quoted in the LANL Performance Prediction Toolkit)";
const SST: &str = "SST/macro, configurations/hopper_amm.ini";
const CHARM: &str = "Charm++ uGNI machine layer";

const NEAR_X: [[u32; 3]; 2] = [[0, 0, 0], [1, 0, 0]];
const NEAR_Y: [[u32; 3]; 2] = [[0, 0, 0], [0, 1, 0]];
const NEAR_Z: [[u32; 3]; 2] = [[0, 0, 0], [0, 0, 1]];
const MIB: u32 = 1 << 20;
/// From blade to blade along y, and from cage to cage along z.
const CABLE_Y: [[u32; 3]; 2] = [[0, 1, 0], [0, 2, 0]];
const CABLE_Z: [[u32; 3]; 2] = [[0, 0, 7], [0, 0, 8]];

/// Bytes a second.
const fn raw(rate: u64) -> (u64, Unit) {
    (rate, Unit::Rate)
}

fn medium(medium: Medium) -> Measured {
    Ok(Some(medium.tiles(1).0))
}

/// What the links of a router inside the torus are made of, added up.
fn tiles(labs: &mut Labs) -> Result<u64, crate::engine::EngineError> {
    let links = labs.links_of("titan", 0)?;
    let topology = labs.topology("titan")?;
    let axis = |link| {
        let ends = [topology.leaves(link), topology.enters(link)];
        let places = ends.map(|end| match end {
            selvedge_sim::topology::At::Router(router) => topology.coordinates(router),
            selvedge_sim::topology::At::Node(_) => [0; 3],
        });
        (0..3).find(|&axis| places[0][axis] != places[1][axis]).unwrap_or(0)
    };
    Ok(links.into_iter().map(|link| Medium::TILES[axis(link)]).sum())
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        figure(
            "gemini-hop-latency",
            "what one more hop along x adds to a put of 8 bytes",
            (105_000, Unit::Time),
            100,
            INTERCONNECTS,
            |labs| labs.hop("gemini", [[0, 0, 0], [1, 0, 0], [2, 0, 0]]),
        ),
        latency(
            "gemini-put-latency",
            "put of 8 bytes to a neighbour, until they are in its memory",
            700,
            150,
            INTERCONNECTS,
            at("gemini", Put, NEAR_X, 8),
        ),
        latency(
            "gemini-hopper-mpi-nearest",
            "Hopper, MPI to the nearest node, 0 bytes",
            1_270,
            150,
            HOPPER,
            at("hopper", Mpi, NEAR_Z, 0),
        ),
        latency(
            "gemini-hopper-mpi-farthest",
            "Hopper, MPI to the farthest node, 24 hops, 0 bytes",
            3_880,
            150,
            HOPPER,
            at("hopper", Mpi, [[0, 0, 0], [8, 4, 12]], 0),
        ),
        latency(
            "gemini-titan-mpi-nearest-y",
            "Titan, MPI to the neighbour in Y, 0 bytes",
            1_700,
            150,
            TITAN,
            at("titan", Mpi, NEAR_Y, 0),
        ),
        latency(
            "gemini-titan-mpi-nearest-z",
            "Titan, MPI to the neighbour in Z, 0 bytes",
            1_550,
            150,
            TITAN,
            at("titan", Mpi, NEAR_Z, 0),
        ),
        latency(
            "gemini-titan-mpi-farthest",
            "Titan, MPI to the opposite corner, 32 hops, 0 bytes",
            3_960,
            150,
            TITAN,
            at("titan", Mpi, [[0, 0, 0], [12, 8, 12]], 0),
        ),
        figure(
            "gemini-latency-slowest-type",
            "the slowest way to move 8 bytes to or from a neighbour: a get by the BTE",
            (1_400_000, Unit::Time),
            200,
            EUROBEN,
            |labs| labs.slowest("gemini", NEAR_X),
        ),
        bandwidth(
            "gemini-titan-mpi-bw-x",
            "Titan, MPI to the neighbour in X, 1 MiB",
            5_870,
            120,
            TITAN,
            at("titan", Mpi, NEAR_X, MIB),
        ),
        bandwidth(
            "gemini-titan-mpi-bw-z",
            "Titan, MPI to the neighbour in Z, 1 MiB",
            6_090,
            120,
            TITAN,
            at("titan", Mpi, NEAR_Z, MIB),
        ),
        bandwidth(
            "gemini-connection-mpi-bw-low",
            "Hopper, MPI over one connection of cable, 1 MiB",
            2_900,
            120,
            HOPPER,
            at("hopper", Mpi, CABLE_Y, MIB),
        ),
        bandwidth(
            "gemini-injection-sustained",
            "puts of 1 MiB out of a node",
            6_000,
            100,
            INTERCONNECTS,
            beside("gemini", Put, MIB),
        )
        .bound(Bound::AtLeast),
        bandwidth(
            "gemini-injection-brochure",
            "puts of 1 MiB out of a node",
            20_000,
            0,
            "Cray vendor brochure",
            beside("gemini", Put, MIB),
        )
        .only_shown("a figure of marketing, not of data one way"),
        figure(
            "gemini-nic-peak",
            "data that a node injects at most: the link to its router, full of puts",
            raw(8_300_000_000),
            20,
            EUROBEN,
            |labs| labs.injection("gemini", u64::from(wire::put(false)[0])),
        ),
        figure(
            "gemini-tile-rate-mezzanine",
            "raw rate of a tile within a blade",
            raw(2_343_750_000),
            5,
            LDMS,
            |_| medium(Medium::Mezzanine),
        ),
        figure(
            "gemini-tile-rate-backplane",
            "raw rate of a tile on a backplane",
            raw(1_875_000_000),
            5,
            LDMS,
            |_| medium(Medium::Backplane),
        ),
        figure(
            "gemini-tile-rate-cable",
            "raw rate of a tile on a cable",
            raw(1_171_875_000),
            5,
            LDMS,
            |_| medium(Medium::Cable),
        ),
        figure(
            "gemini-tile-rate-nic",
            "raw rate of a tile towards a node",
            raw(1_300_125_000),
            5,
            LDMS,
            |_| medium(Medium::Node),
        ),
        figure(
            "gemini-link-x-cable",
            "raw rate along X, over cable",
            raw(9_375_000_000),
            10,
            LDMS,
            |labs| labs.link("hopper", NEAR_X),
        ),
        figure(
            "gemini-link-y-mezzanine",
            "raw rate along Y, inside a blade",
            raw(9_375_000_000),
            10,
            LDMS,
            |labs| labs.link("hopper", NEAR_Y),
        ),
        figure(
            "gemini-link-y-cable",
            "raw rate along Y, over cable",
            raw(4_687_500_000),
            10,
            LDMS,
            |labs| labs.link("hopper", CABLE_Y),
        ),
        figure(
            "gemini-link-z-backplane",
            "raw rate along Z, inside a cage",
            raw(15_000_000_000),
            10,
            LDMS,
            |labs| labs.link("hopper", NEAR_Z),
        ),
        figure(
            "gemini-link-z-cable",
            "raw rate along Z, from cage to cage",
            raw(9_375_000_000),
            10,
            LDMS,
            |labs| labs.link("hopper", CABLE_Z),
        ),
        figure(
            "gemini-packet-put-request",
            "request of a put of 64 bytes, on the wire",
            bytes(96),
            0,
            COUNTERS,
            |_| Ok(Some(u64::from(wire::put(false)[0]))),
        ),
        figure(
            "gemini-packet-put-response",
            "response to a put of 64 bytes, on the wire",
            bytes(9),
            0,
            COUNTERS,
            |_| Ok(Some(u64::from(wire::put(false)[1]))),
        ),
        figure(
            "gemini-packet-get-request",
            "request of a get of 64 bytes, on the wire",
            bytes(24),
            0,
            COUNTERS,
            |_| Ok(Some(u64::from(wire::get(false)[0]))),
        ),
        figure(
            "gemini-packet-get-response",
            "response to a get of 64 bytes, on the wire",
            bytes(81),
            0,
            COUNTERS,
            |_| Ok(Some(u64::from(wire::get(false)[1]))),
        ),
        figure(
            "gemini-max-payload",
            "data that one request takes at most",
            bytes(64),
            0,
            COUNTERS,
            |_| Ok(Some(wire::longest(false))),
        ),
        figure(
            "gemini-put-link-efficiency",
            "data per byte on the wire, in the direction of a put",
            (666_700, Unit::Fraction),
            10,
            COUNTERS,
            |_| Ok(Some(wire::longest(false) * 1_000_000 / u64::from(wire::put(false)[0]))),
        ),
        figure(
            "gemini-torus-connections",
            "connections of a router to its neighbours",
            count(10),
            0,
            HOPPER,
            |labs| Ok(Some(tiles(labs)? / Medium::CONNECTION)),
        ),
        figure("gemini-nodes-per-router", "nodes of a router", count(2), 0, SST, |labs| {
            labs.nodes_per_router("titan")
        }),
        figure(
            "gemini-network-tiles",
            "tiles of a router that face its neighbours",
            count(40),
            0,
            LDMS,
            |labs| tiles(labs).map(Some),
        ),
        figure(
            "gemini-smsg-max",
            "longest MPI message that goes whole",
            bytes(1_024),
            0,
            CHARM,
            |labs| labs.longest_whole("gemini", NEAR_X),
        ),
        figure(
            "gemini-fma-bte-crossover",
            "where moving a block overtakes storing it",
            bytes(1_024),
            1_000,
            CHARM,
            |labs| labs.crossover("gemini"),
        )
        .only_shown("a choice of a runtime: its versions have 1 to 16 KiB"),
        unpublished(
            "gemini-mpi-smsg-latency",
            "message of the transport to a neighbour, 8 bytes",
            Unit::Time,
            Measure::Latency(at("gemini", Message, NEAR_X, 8)),
        ),
        unpublished(
            "gemini-get-latency",
            "get of 8 bytes from a neighbour, until its caller knows",
            Unit::Time,
            Measure::Latency(at("gemini", Get, NEAR_X, 8)),
        ),
        unpublished(
            "gemini-fma-put-bandwidth",
            "puts of 4 KiB by FMA to a neighbour",
            Unit::Rate,
            Measure::Bandwidth(at("gemini", Put, NEAR_X, 4 << 10)),
        ),
        unpublished(
            "gemini-datagram-setup",
            "from asking for a connection to a neighbour until there is one",
            Unit::Time,
            Measure::Other(|labs| labs.connecting("gemini", NEAR_X)),
        ),
    ]
}

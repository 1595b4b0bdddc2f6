//! The rows of Aries.

use selvedge_core::ugni::nic::{Config, Framing};
use selvedge_sim::fabric::Routing;
use selvedge_sim::topology::{Aries, DragonflySpec};

use super::{
    Ask, Bound, Ends, Labs, Measure, Measured, Row, Unit, at, bandwidth, beside, bytes, count,
    figure, latency, row, unpublished,
};
use crate::calibration::rank::How::{Get, Mpi, Put};
use crate::calibration::wire;

const WHITE_PAPER: &str = "Cray XC Series Network, Cray white paper WP-Aries01-1112, 2012 (as quoted \
    in the LANL Performance Prediction Toolkit)";
const CHARACTERIZATION: &str = "Characterization of the Cray Aries Network, NERSC slides (as quoted \
    in the LANL Performance Prediction Toolkit)";
const OVERVIEW: &str = "Cray XC30 System: Overview, NERSC slides (as quoted in the LANL Performance \
    Prediction Toolkit)";
const SARUS: &str =
    "Sarus container documentation, OSU micro-benchmark page (Piz Daint, OSU 5.3.2), 2018-2020";
const TRINITITE: &str = "Public gist, osu_latency 5.3.2 with Open MPI on the Trinitite Cray XC40 \
    test bed, November 2016";
const MBW: &str =
    "Public gist, osu_mbw_mr 5.0 with Open MPI master on two Cray XC nodes, November 2016";
const REFRAME: &str = "ReFrame, cscs-checks/microbenchmarks/osu/osu_tests.py, 2020";
const NESI: &str = "NeSI support documentation, XC50 Aries Network Architecture";
const CORI: &str = "NERSC documentation, Cori Interconnect page";
const FABRIC_NOTE: &str = "Public note on the dragonfly fabric of Cray XC, 2026";
const CHAPEL: &str = "chapel-lang/chapel issue 9615, 2018";

/// In a chassis; in a group; and the farthest, five hops through the least lucky cable.
const RANK1: [[u32; 3]; 2] = [[0, 0, 0], [0, 0, 1]];
const RANK2: [[u32; 3]; 2] = [[0, 0, 0], [0, 1, 0]];

const LATENCIES_OF_DAINT: [(u32, u64); 12] = [
    (0, 1_110),
    (8, 1_090),
    (512, 1_150),
    (1_024, 1_390),
    (2_048, 1_670),
    (4_096, 2_270),
    (8_192, 4_210),
    (32_768, 6_730),
    (65_536, 10_070),
    (524_288, 56_450),
    (2_097_152, 216_290),
    (4_194_304, 431_850),
];

const LATENCIES_OF_TRINITITE: [(u32, u64); 9] = [
    (0, 1_180),
    (8, 1_200),
    (64, 1_200),
    (4_096, 2_420),
    (16_384, 5_760),
    (32_768, 11_600),
    (65_536, 15_030),
    (262_144, 35_140),
    (4_194_304, 435_600),
];

/// In tens of kilobytes a second.
const BANDWIDTHS: [(u32, u64); 6] = [
    (8, 1_140),
    (256, 29_803),
    (16_384, 491_661),
    (65_536, 893_857),
    (262_144, 971_812),
    (1_048_576, 991_639),
];

/// What the five hops of the longest shortest way add.
fn network(labs: &mut Labs) -> Measured {
    let far = labs.farthest("aries", Put)?;
    let near = labs.latency(beside("aries", Put, 8))?;
    Ok(far.zip(near).map(|(far, near)| far.saturating_sub(near)))
}

/// Phits of so many bytes.
fn phits(bytes: u32) -> Measured {
    let framing = Framing::of(&Config { aries: 1, ..Config::default() });
    Ok(Some(u64::from(bytes) * 8 / u64::from(framing.phit_bits)))
}

/// The rate of one optical port: the links of a group to others are of several.
fn optical(labs: &mut Labs) -> Measured {
    let topology = labs.topology("aries")?;
    let group = |router: u32| topology.coordinates(router)[0];
    let mut routers = (0..topology.routers()).filter(|&router| group(router) == 1);
    let link = routers.find_map(|router| topology.link_between(0, router));
    Ok(link.map(|link| topology.wire(link).rate.0 / u64::from(Aries::RANK3_PORTS)))
}

/// Ports of a router by rank, where every socket is plugged.
fn ports(labs: &mut Labs) -> Result<[u64; 3], crate::engine::EngineError> {
    let links = labs.links_of("aries-full", 0)?;
    let topology = labs.topology("aries-full")?;
    let mut ports = [0; 3];
    for link in links {
        let selvedge_sim::topology::At::Router(router) = topology.enters(link) else { continue };
        match topology.coordinates(router) {
            [0, 0, _] => ports[0] += 1,
            [0, ..] => ports[1] += u64::from(Aries::RANK2_PORTS),
            _ => ports[2] += u64::from(Aries::RANK3_PORTS),
        }
    }
    Ok(ports)
}

fn group(labs: &mut Labs) -> Measured {
    let topology = labs.topology("cori")?;
    let here = |&router: &u32| topology.coordinates(router)[0] == 0;
    Ok(Some((0..topology.routers()).filter(here).count() as u64))
}

/// How many groups one cable between each two leaves possible.
fn groups() -> u64 {
    let can_be = |&groups: &u32| DragonflySpec::aries(groups, 1).validate().is_ok();
    (1..1_000).take_while(can_be).last().map_or(0, u64::from)
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        figure(
            "aries-hop-latency",
            "what one more hop in a group adds to a put of 8 bytes",
            (100_000, Unit::Time),
            100,
            WHITE_PAPER,
            |labs| labs.hop("aries", [[0, 0, 0], [0, 0, 1], [0, 1, 1]]),
        ),
        figure(
            "aries-minimal-network-max",
            "what the five hops to the farthest node add to a put of 8 bytes",
            (500_000, Unit::Time),
            100,
            WHITE_PAPER,
            network,
        )
        .bound(Bound::AtMost),
        latency(
            "aries-put-8",
            "put of 8 bytes one hop away, until they are in its memory",
            800,
            120,
            WHITE_PAPER,
            at("aries", Put, RANK1, 8),
        ),
        latency(
            "aries-mpi-8",
            "MPI one hop away, 8 bytes",
            1_300,
            120,
            WHITE_PAPER,
            at("aries", Mpi, RANK1, 8),
        ),
        figure(
            "aries-any-pair-quiet-max",
            "Edison, MPI to the farthest node, 8 bytes",
            (2_000_000, Unit::Time),
            50,
            WHITE_PAPER,
            |labs| labs.farthest("edison", Mpi),
        )
        .bound(Bound::AtMost),
        latency(
            "aries-mpi-blade",
            "Edison, MPI on the same blade, 8 bytes",
            1_300,
            120,
            CHARACTERIZATION,
            beside("edison", Mpi, 8),
        ),
        latency(
            "aries-mpi-rank2",
            "Edison, MPI to another chassis of the group, 8 bytes",
            1_500,
            120,
            CHARACTERIZATION,
            at("edison", Mpi, RANK2, 8),
        ),
        figure(
            "aries-mpi-rank3",
            "Edison, MPI to another group, five hops, 8 bytes",
            (2_200_000, Unit::Time),
            120,
            CHARACTERIZATION,
            |labs| labs.farthest("edison", Mpi),
        ),
        latency(
            "aries-xc30-internode-min",
            "Edison, MPI to the nearest node, 8 bytes",
            1_498,
            120,
            OVERVIEW,
            beside("edison", Mpi, 8),
        ),
        latency(
            "aries-xc30-intranode-max",
            "Edison, MPI within a node, 8 bytes",
            545,
            200,
            OVERVIEW,
            Ask { ends: Ends::Same, ..beside("edison", Mpi, 8) },
        ),
        bandwidth(
            "aries-daint-mc-bw",
            "Piz Daint of 2017, MPI in a group, 4 MiB",
            9_649,
            100,
            REFRAME,
            at("piz-daint-xc50", Mpi, RANK2, 4 << 20),
        ),
        latency(
            "aries-dom-mc-lat",
            "Piz Daint of 2017, MPI in a group, 8 bytes",
            1_210,
            100,
            REFRAME,
            at("piz-daint-xc50", Mpi, RANK2, 8),
        ),
        figure(
            "aries-link-electrical",
            "raw rate of a port of rank 1",
            (5_250_000_000, Unit::Rate),
            10,
            WHITE_PAPER,
            |labs| labs.link("edison", RANK1),
        ),
        figure(
            "aries-link-optical",
            "raw rate of a port of rank 3",
            (4_687_500_000, Unit::Rate),
            15,
            WHITE_PAPER,
            optical,
        ),
        figure(
            "aries-lane-electrical",
            "raw rate of a lane of copper",
            (14_000_000_000, Unit::BitRate),
            0,
            NESI,
            |labs| Ok(labs.link("edison", RANK1)?.map(|rate| rate * 8 / Aries::LANES)),
        ),
        figure(
            "aries-lane-optical",
            "raw rate of an optical lane",
            (12_500_000_000, Unit::BitRate),
            0,
            NESI,
            |labs| Ok(optical(labs)?.map(|rate| rate * 8 / Aries::LANES)),
        ),
        figure(
            "aries-nic-peak",
            "data that a node injects at most: the link to its router, full of puts",
            (10_200_000_000, Unit::Rate),
            20,
            WHITE_PAPER,
            |labs| labs.injection("aries", u64::from(wire::put(true)[0])),
        ),
        figure(
            "aries-packet-put-request",
            "request of a put of 64 bytes, in phits",
            count(14),
            0,
            WHITE_PAPER,
            |_| phits(wire::put(true)[0]),
        ),
        figure(
            "aries-packet-put-response",
            "response to a put of 64 bytes, in phits",
            count(1),
            0,
            WHITE_PAPER,
            |_| phits(wire::put(true)[1]),
        ),
        figure(
            "aries-max-payload",
            "data that one request takes at most",
            bytes(64),
            0,
            WHITE_PAPER,
            |_| Ok(Some(wire::longest(true))),
        ),
        figure("aries-nodes-per-router", "nodes of a router", count(4), 0, WHITE_PAPER, |labs| {
            labs.nodes_per_router("edison")
        }),
        figure(
            "aries-router-ports",
            "ports of a router, towards nodes and others",
            count(48),
            0,
            WHITE_PAPER,
            |labs| {
                let nodes = labs.nodes_per_router("edison")?.unwrap_or(0);
                Ok(Some(nodes * u64::from(Aries::NODE_PORTS) + ports(labs)?.iter().sum::<u64>()))
            },
        ),
        figure("aries-routers-per-chassis", "routers of a chassis", count(16), 0, CORI, |labs| {
            Ok(Some(u64::from(labs.topology("cori")?.dims()[2])))
        }),
        figure("aries-chassis-per-group", "chassis of a group", count(6), 0, CORI, |labs| {
            Ok(Some(u64::from(labs.topology("cori")?.dims()[1])))
        }),
        figure("aries-routers-per-group", "routers of a group", count(96), 0, WHITE_PAPER, group),
        figure(
            "aries-rank1-links-per-router",
            "ports to the other routers of the chassis",
            count(15),
            0,
            NESI,
            |labs| Ok(Some(ports(labs)?[0])),
        ),
        figure(
            "aries-rank2-links-per-router",
            "ports to the same slot of the other chassis",
            count(15),
            0,
            NESI,
            |labs| Ok(Some(ports(labs)?[1])),
        ),
        figure("aries-rank3-links-per-router", "optical ports", count(10), 0, NESI, |labs| {
            Ok(Some(ports(labs)?[2]))
        }),
        figure(
            "aries-max-groups",
            "groups of the largest machine that can be cabled",
            count(241),
            0,
            WHITE_PAPER,
            |_| Ok(Some(groups())),
        ),
        figure(
            "aries-rank2-cables-per-group",
            "cables of rank 2 in a group",
            count(240),
            0,
            CORI,
            |labs| {
                Ok(Some(
                    group(labs)?.unwrap_or(0) * ports(labs)?[1] / u64::from(Aries::RANK2_PORTS) / 2,
                ))
            },
        ),
        figure(
            "aries-rank3-cables-per-group-max",
            "optical cables of a group at most",
            count(240),
            0,
            CORI,
            |_| Ok(Some(groups() - 1)),
        ),
        figure(
            "aries-route-candidates",
            "ways that an adaptive choice weighs",
            count(4),
            0,
            FABRIC_NOTE,
            |_| Ok(Some(Routing::CANDIDATES as u64)),
        ),
        figure(
            "aries-load-update-cycles",
            "router cycles from one report of loads to the next",
            count(10),
            0,
            FABRIC_NOTE,
            |_| Ok(None),
        )
        .only_shown("not modelled: every load is known when it is asked for"),
        figure(
            "aries-mpich-rdma-threshold",
            "where moving a block overtakes storing it",
            bytes(1_024),
            500,
            CHAPEL,
            |labs| labs.crossover("aries"),
        ),
    ];
    rows.extend([
        figure(
            "aries-packet-get-request",
            "request of a get of 64 bytes, in phits",
            count(3),
            0,
            WHITE_PAPER,
            |_| phits(wire::get(true)[0]),
        ),
        figure(
            "aries-packet-get-response",
            "response to a get of 64 bytes, in phits",
            count(12),
            0,
            WHITE_PAPER,
            |_| phits(wire::get(true)[1]),
        ),
        figure(
            "aries-host-interface",
            "puts of 1 MiB with nothing in the way but the interface of the host",
            (16_000_000_000, Unit::Rate),
            10,
            WHITE_PAPER,
            |labs| labs.interface("aries", RANK1),
        ),
        figure(
            "aries-gasnet-rdma-threshold",
            "where moving a block overtakes storing it",
            bytes(4_096),
            500,
            CHAPEL,
            |labs| labs.crossover("aries"),
        )
        .only_shown("a choice of a runtime"),
        unpublished(
            "aries-phit-bits",
            "bits of a phit",
            Unit::Count,
            Measure::Other(|_| Ok(Some(u64::from(Framing::ARIES.phit_bits)))),
        ),
        unpublished(
            "aries-fma-bte-curves",
            "gets of 4 KiB within a group",
            Unit::Rate,
            Measure::Bandwidth(at("aries", Get, RANK2, 4 << 10)),
        ),
        unpublished(
            "aries-datagram-setup",
            "from asking for a connection within a chassis until there is one",
            Unit::Time,
            Measure::Other(|labs| labs.connecting("aries", RANK1)),
        ),
    ]);
    rows.extend(LATENCIES_OF_DAINT.map(|(bytes, ns)| {
        let what = "Piz Daint of 2017, MPI half round trip";
        let ask = at("piz-daint-xc50", Mpi, RANK2, bytes);
        latency(&format!("aries-daint-osu-lat-{bytes}"), what, ns, 120, SARUS, ask)
    }));
    rows.extend(LATENCIES_OF_TRINITITE.map(|(bytes, ns)| {
        let what = "Trinitite, MPI half round trip";
        let ask = at("trinitite", Mpi, RANK2, bytes);
        latency(&format!("aries-trinitite-osu-lat-{bytes}"), what, ns, 120, TRINITITE, ask)
    }));
    rows.extend(BANDWIDTHS.map(|(bytes, rate)| {
        let id = format!("aries-xc-osu-mbw-{bytes}");
        let what = "Trinitite, MPI stream of 64 messages at a time";
        let ask = Measure::Bandwidth(at("trinitite", Mpi, RANK2, bytes));
        row(&id, what, (rate * 10_000, Unit::Rate), 120, MBW, ask)
    }));
    rows
}

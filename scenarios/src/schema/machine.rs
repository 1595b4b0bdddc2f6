//! Machines: a fabric, what hangs on it and how fast it is.

use std::fmt;

use schemars::JsonSchema;
use selvedge_sim::fabric::Timing;
use selvedge_sim::topology::{self, DragonflySpec};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::mpi::Mpi;
use crate::quantity::{Duration, Rate};

/// A machine file: a real system, described by facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The version of this format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub schema_version: u32,
    /// What scenarios call it.
    #[schemars(regex(pattern = "^[a-z0-9]+(-[a-z0-9]+)*$"))]
    pub name: String,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where the facts come from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// What joins its nodes.
    pub fabric: Fabric,
    /// How many node slots hold a compute node: the first ones in the fabric's numbering.
    /// Without it every slot does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// The transports that its nodes can speak. Without it, those that its fabric carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transports: Option<Vec<TransportName>>,
}

/// The machine of a scenario: a name, a path or a fabric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum MachineRef {
    /// The name of a machine that comes with the program, such as `titan`, or the path of a
    /// machine file, seen from the scenario file, such as `./mine.json`.
    Named(String),
    /// A machine that is just a fabric with every slot filled.
    Inline(Box<Fabric>),
}

/// What joins the nodes of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fabric {
    /// A three-dimensional torus of Gemini routers, routed in dimension order.
    Gemini(Gemini),
    /// A dragonfly of Aries routers.
    Aries(Aries),
    /// One switch that joins every node to every other without contention inside.
    Crossbar(Crossbar),
}

/// A torus of Gemini routers. Routers are numbered with z running fastest, then y, then x; the
/// nodes of router `r` are `r * nodes_per_router` and up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gemini {
    /// Routers along x, y and z.
    pub dims: [u32; 3],
    /// Nodes that share a router.
    #[serde(default = "two")]
    pub nodes_per_router: u32,
    /// The rate of the links along each dimension, one way.
    #[serde(default)]
    pub link_rates: LinkRates,
    /// What one hop from router to router adds on a quiet network.
    #[serde(default = "Gemini::hop_latency")]
    pub hop_latency: Duration,
    /// The rate at which a node's data reach its router at most, one way.
    #[serde(default = "Gemini::injection_rate")]
    pub injection_rate: Rate,
    /// Between a host and its NIC, each way: HyperTransport.
    #[serde(default = "Gemini::host_latency")]
    pub host_latency: Duration,
    /// The rate of that, one way.
    #[serde(default = "Gemini::host_rate")]
    pub host_rate: Rate,
    /// What the NIC adds at each end of a message.
    #[serde(default = "Gemini::nic_latency")]
    pub nic_latency: Duration,
    /// The rate at which a processor stores data into its NIC: fast memory access.
    #[serde(default = "Gemini::fma_rate")]
    pub fma_rate: Rate,
    /// What it takes to start the engine of the NIC that moves blocks.
    #[serde(default = "Gemini::bte_start")]
    pub bte_start: Duration,
    /// The rate at which that engine reads the memory of its host.
    #[serde(default = "Gemini::bte_rate")]
    pub bte_rate: Rate,
    /// From a completion until a host that polls has seen it.
    #[serde(default = "Gemini::poll_latency")]
    pub poll_latency: Duration,
    /// What each completion and each step of the transport costs its host.
    #[serde(default = "Gemini::event_cost")]
    pub event_cost: Duration,
    /// Message passing on top of the transport, where it differs from what is usual on such
    /// machines.
    #[serde(default, skip_serializing_if = "Mpi::is_usual")]
    pub mpi: Mpi,
}

/// A dragonfly of Aries routers: in a chassis all are joined, in a group those of one slot are
/// joined over all chassis, and all groups are joined by optical cables. Routers are numbered
/// with the slot running fastest, then the chassis, then the group; the nodes of router `r` are
/// `r * nodes_per_router` and up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aries {
    /// How many groups there are.
    pub groups: u32,
    /// Chassis of a group.
    #[serde(default = "six")]
    pub chassis_per_group: u32,
    /// Routers of a chassis.
    #[serde(default = "sixteen")]
    pub routers_per_chassis: u32,
    /// Nodes that share a router.
    #[serde(default = "four")]
    pub nodes_per_router: u32,
    /// Optical cables between each two groups; each brings two links to two routers of both.
    pub cables: u32,
    /// Which way packets take.
    #[serde(default)]
    pub routing: Routing,
    /// The rate of a link within a chassis, one way.
    #[serde(default = "Aries::rank1_rate")]
    pub rank1_rate: Rate,
    /// The rate of the three links together that join routers of two chassis, one way.
    #[serde(default = "Aries::rank2_rate")]
    pub rank2_rate: Rate,
    /// The rate of the two links together that a cable brings to one router, one way.
    #[serde(default = "Aries::rank3_rate")]
    pub rank3_rate: Rate,
    /// What one hop from router to router adds on a quiet network.
    #[serde(default = "Aries::hop_latency")]
    pub hop_latency: Duration,
    /// The same over an optical cable between groups.
    #[serde(default = "Aries::optical_latency")]
    pub optical_latency: Duration,
    /// The rate at which a node's data reach its router at most, one way.
    #[serde(default = "Aries::injection_rate")]
    pub injection_rate: Rate,
    /// Between a host and its NIC, each way: PCIe.
    #[serde(default = "Aries::host_latency")]
    pub host_latency: Duration,
    /// The rate of that, one way.
    #[serde(default = "Aries::host_rate")]
    pub host_rate: Rate,
    /// What the NIC adds at each end of a message.
    #[serde(default = "Aries::nic_latency")]
    pub nic_latency: Duration,
    /// The rate at which a processor stores data into its NIC: fast memory access.
    #[serde(default = "Aries::fma_rate")]
    pub fma_rate: Rate,
    /// What it takes to start the engine of the NIC that moves blocks.
    #[serde(default = "Aries::bte_start")]
    pub bte_start: Duration,
    /// The rate at which that engine reads the memory of its host.
    #[serde(default = "Aries::bte_rate")]
    pub bte_rate: Rate,
    /// From a completion until a host that polls has seen it.
    #[serde(default = "Aries::poll_latency")]
    pub poll_latency: Duration,
    /// What each completion and each step of the transport costs its host.
    #[serde(default = "Aries::event_cost")]
    pub event_cost: Duration,
    /// Message passing on top of the transport, where it differs from what is usual on such
    /// machines.
    #[serde(default, skip_serializing_if = "Mpi::is_usual")]
    pub mpi: Mpi,
}

/// Which way packets take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// A shortest one.
    Minimal,
    /// By way of a router that is drawn for each packet.
    Valiant,
    /// A shortest one, or one of two that are drawn, whichever is quicker with what waits there.
    #[default]
    Adaptive,
}

/// Link rates of a torus. Entry `i` of a dimension is the rate of the link between positions
/// `i` and `i + 1`; a list that is shorter than the dimension starts again from its front.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRates {
    /// Along x: cables throughout.
    pub x: Vec<Rate>,
    /// Along y: a link inside the blade, then a cable, in turn.
    pub y: Vec<Rate>,
    /// Along z: backplane links inside the cage, then a cable to the next cage.
    pub z: Vec<Rate>,
}

/// One switch with a port for each node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Crossbar {
    /// How many nodes it joins.
    pub nodes: u32,
    /// The rate of each port, one way.
    #[serde(default = "port_rate")]
    pub rate: Rate,
    /// From any node to any other on a quiet network.
    #[serde(default = "port_latency")]
    pub latency: Duration,
    /// What the NIC adds at each end of a message.
    #[serde(default)]
    pub nic_latency: Duration,
    /// What the software adds at each end of a message.
    #[serde(default)]
    pub software_latency: Duration,
}

/// A transport by name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TransportName {
    /// Cray Gemini and Aries.
    Ugni,
    /// Intel MIC over PCIe.
    Scif,
    /// InfiniBand reliable connections.
    Verbs,
    /// InfiniBand datagrams.
    Ud,
    /// Sockets.
    Tcp,
}

impl TransportName {
    /// Every transport a machine may name.
    pub const ALL: [TransportName; 5] = [
        TransportName::Ugni,
        TransportName::Scif,
        TransportName::Verbs,
        TransportName::Ud,
        TransportName::Tcp,
    ];

    /// As files spell it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            TransportName::Ugni => "ugni",
            TransportName::Scif => "scif",
            TransportName::Verbs => "verbs",
            TransportName::Ud => "ud",
            TransportName::Tcp => "tcp",
        }
    }
}

impl Fabric {
    /// The transports that this fabric carries.
    #[must_use]
    pub fn transports(&self) -> &'static [TransportName] {
        match self {
            Fabric::Gemini(_) | Fabric::Aries(_) => &[TransportName::Ugni],
            Fabric::Crossbar(_) => &TransportName::ALL,
        }
    }
}

const fn two() -> u32 {
    2
}

const fn four() -> u32 {
    4
}

const fn six() -> u32 {
    6
}

const fn sixteen() -> u32 {
    16
}

/// Bytes a second, as files have them.
const fn rate(rate: topology::Rate) -> Rate {
    Rate(rate.0)
}

macro_rules! defaults {
    ($class:ident: $($name:ident: $kind:ident = $value:expr,)*) => {
        impl $class {
            $(fn $name() -> $kind { $value })*
        }
    };
}

// The simulator's own figures, so that each stands in one place.
defaults! { Gemini:
    injection_rate: Rate = rate(topology::Medium::INJECTION),
    hop_latency: Duration = Duration(Timing::GEMINI.hop),
    host_latency: Duration = Duration(Timing::GEMINI.host),
    host_rate: Rate = rate(Timing::GEMINI.interface),
    nic_latency: Duration = Duration(Timing::GEMINI.nic),
    fma_rate: Rate = rate(Timing::GEMINI.stores),
    bte_start: Duration = Duration(Timing::GEMINI.dma_start),
    bte_rate: Rate = rate(Timing::GEMINI.dma),
    poll_latency: Duration = Duration(Timing::GEMINI.poll),
    event_cost: Duration = Duration(Timing::GEMINI.work),
}

defaults! { Aries:
    rank1_rate: Rate = rate(DragonflySpec::aries(1, 0).rank1.rate),
    rank2_rate: Rate = rate(DragonflySpec::aries(1, 0).rank2.rate),
    rank3_rate: Rate = rate(DragonflySpec::aries(1, 0).rank3.rate),
    injection_rate: Rate = rate(topology::Aries::INJECTION),
    hop_latency: Duration = Duration(Timing::ARIES.hop),
    optical_latency: Duration = Duration(DragonflySpec::aries(1, 0).rank3.latency),
    host_latency: Duration = Duration(Timing::ARIES.host),
    host_rate: Rate = rate(Timing::ARIES.interface),
    nic_latency: Duration = Duration(Timing::ARIES.nic),
    fma_rate: Rate = rate(Timing::ARIES.stores),
    bte_start: Duration = Duration(Timing::ARIES.dma_start),
    bte_rate: Rate = rate(Timing::ARIES.dma),
    poll_latency: Duration = Duration(Timing::ARIES.poll),
    event_cost: Duration = Duration(Timing::ARIES.work),
}

fn port_rate() -> Rate {
    Rate(10_000_000_000)
}

fn port_latency() -> Duration {
    Duration(selvedge_core::time::Span::from_us(1))
}

impl Default for LinkRates {
    fn default() -> Self {
        let rates = |dimension: topology::Dimension| dimension.0.into_iter().map(rate).collect();
        let [x, y, z] = topology::Medium::gemini().map(rates);
        LinkRates { x, y, z }
    }
}

// By hand, since serde's own untagged enums forget where a mistake was.
impl<'de> Deserialize<'de> for MachineRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrFabric;
        impl<'de> Visitor<'de> for NameOrFabric {
            type Value = MachineRef;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a machine or a fabric such as {\"gemini\": {...}}")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<MachineRef, E> {
                Ok(MachineRef::Named(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MachineRef, A::Error> {
                let fabric = Fabric::deserialize(MapAccessDeserializer::new(map))?;
                Ok(MachineRef::Inline(Box::new(fabric)))
            }
        }
        deserializer.deserialize_any(NameOrFabric)
    }
}

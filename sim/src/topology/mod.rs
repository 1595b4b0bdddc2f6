//! Where the links go: routers, nodes, wires, and the way from one to another.
//!
//! A topology is immutable and shared by all worlds of a run. Its routers and the links between
//! them are a `petgraph` graph; around it stand flat tables for what is asked at every hop.
//! Routes are computed from coordinates, not stored per pair. What has failed is no part of the
//! topology but of the state of a world: see [`Down`].
//!
//! Every link has one direction. A message from node to node crosses the sender's injection
//! link, links between routers, and the receiver's ejection link.

mod direct;
mod down;
mod dragonfly;
mod torus;

use std::fmt;

use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use selvedge_core::id::NodeId;
use selvedge_core::time::Span;

pub use direct::DirectSpec;
pub use down::Down;
pub use dragonfly::{Aries, DragonflySpec};
pub use torus::{Dimension, Medium, TorusSpec};

use dragonfly::Dragonfly;
use torus::Torus;

/// More routers than this are refused: 2^22, over 400 times the largest torus built.
pub const ROUTERS_MAX: u32 = 1 << 22;
/// More nodes than this are refused: 2^24.
pub const NODES_MAX: u32 = 1 << 24;

/// Picoseconds of a second.
const SECOND: u64 = 1_000_000_000_000;

/// How fast bytes go down a wire: bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Rate {
    /// How long `bytes` take at this rate, rounded up to whole picoseconds: a wire is taken
    /// until the last byte is through, and two trains never leave it at one instant.
    /// For ever, at no rate at all.
    #[must_use]
    pub fn time_of(self, bytes: u64) -> Span {
        if let Some(parts) = bytes.checked_mul(SECOND)
            && self.0 > 0
        {
            return Span(parts.div_ceil(self.0));
        }
        if self.0 == 0 {
            return Span::FOREVER;
        }
        let parts = u128::from(bytes) * u128::from(SECOND);
        u64::try_from(parts.div_ceil(u128::from(self.0))).map_or(Span::FOREVER, Span)
    }
}

/// What a link is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wire {
    /// Raw bytes per second in the link's direction.
    pub rate: Rate,
    /// From the head of a message leaving the queue to its being at the far end.
    pub latency: Span,
}

/// One link in one direction. Links between routers come first and are numbered as the edges of
/// the graph; then come two for each node: injection (node to router) and ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// As an index into a table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link{}", self.0)
    }
}

/// A router, as the graph holds it; its number is its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Router {
    /// Where it stands along x, y, z, or in which group, chassis and slot; all zero in shapes
    /// without coordinates.
    pub coordinates: [u32; 3],
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// The router of this number.
    Router(u32),
    /// A node.
    Node(NodeId),
}

/// Why a topology cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// A dimension has no length, or no nodes sit on a router.
    ZeroDimension,
    /// There is no node.
    ZeroNodes,
    /// A wire carries nothing.
    ZeroRate,
    /// A dimension has no link rates.
    NoRates,
    /// Groups that no cable joins.
    NoCables,
    /// More cables than the routers of a group have sockets for.
    TooManyCables,
    /// More nodes than the routers have places for.
    MoreNodesThanSlots {
        /// Nodes asked for.
        nodes: u32,
        /// Places there are.
        slots: u64,
    },
    /// More than [`ROUTERS_MAX`] routers.
    TooManyRouters,
    /// More than [`NODES_MAX`] nodes.
    TooManyNodes,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroDimension => f.write_str("a dimension of the topology is zero"),
            Self::ZeroNodes => f.write_str("the topology has no nodes"),
            Self::ZeroRate => f.write_str("a link of the topology has rate zero"),
            Self::NoRates => f.write_str("a dimension has no link rates"),
            Self::NoCables => f.write_str("no cable joins the groups"),
            Self::TooManyCables => f.write_str("more cables than a group has sockets for"),
            Self::MoreNodesThanSlots { nodes, slots } => {
                write!(f, "{nodes} nodes, but the routers have places for {slots}")
            }
            Self::TooManyRouters => write!(f, "more than {ROUTERS_MAX} routers"),
            Self::TooManyNodes => write!(f, "more than {NODES_MAX} nodes"),
        }
    }
}

impl std::error::Error for TopologyError {}

/// The number of routers, if there may be so many and the nodes have places on them. Checks
/// everything before anything is allocated.
fn size(counts: [u32; 3], nodes_per_router: u32, nodes: u32) -> Result<u32, TopologyError> {
    if counts.contains(&0) || nodes_per_router == 0 {
        return Err(TopologyError::ZeroDimension);
    }
    let routers = counts
        .iter()
        .try_fold(1_u32, |product, &count| product.checked_mul(count))
        .filter(|&routers| routers <= ROUTERS_MAX)
        .ok_or(TopologyError::TooManyRouters)?;
    if nodes == 0 {
        return Err(TopologyError::ZeroNodes);
    }
    if nodes > NODES_MAX {
        return Err(TopologyError::TooManyNodes);
    }
    let slots = u64::from(routers) * u64::from(nodes_per_router);
    if u64::from(nodes) > slots {
        return Err(TopologyError::MoreNodesThanSlots { nodes, slots });
    }
    Ok(routers)
}

/// How routes are found.
#[derive(Clone, Debug)]
enum Shape {
    /// One router: there is nothing to find.
    Direct,
    Torus(Torus),
    Dragonfly(Dragonfly),
}

/// Routers, nodes and the links between them. Built by [`TorusSpec`], [`DragonflySpec`] and
/// [`DirectSpec`].
#[derive(Clone, Debug)]
pub struct Topology {
    graph: DiGraph<Router, Wire>,
    shape: Shape,
    /// Wires that differ: few, so that every hop finds them in the nearest cache.
    wires: Vec<Wire>,
    /// Which of them each link between routers is, and then that of injection and of ejection.
    kinds: Vec<u32>,
    /// Where the links between routers end.
    targets: Vec<u32>,
    /// The same links in the other direction.
    backs: Vec<u32>,
    /// The router of each node.
    homes: Vec<u32>,
}

impl Topology {
    /// Adds the nodes to the routers of `graph`: `homes` says for each where it sits.
    fn assemble(
        graph: DiGraph<Router, Wire>,
        shape: Shape,
        homes: Vec<u32>,
        inject: Wire,
        eject: Wire,
    ) -> Self {
        let mut wires = Vec::new();
        let mut kind = |wire: Wire| {
            let known = wires.iter().position(|&other| other == wire);
            known.unwrap_or_else(|| {
                wires.push(wire);
                wires.len() - 1
            }) as u32
        };
        let edges = graph.raw_edges();
        let mut kinds: Vec<u32> = edges.iter().map(|edge| kind(edge.weight)).collect();
        kinds.extend([kind(inject), kind(eject)]);
        let targets = edges.iter().map(|edge| edge.target().index() as u32).collect();
        let back = |edge: &petgraph::graph::Edge<Wire>| {
            // Links between routers go both ways.
            graph.find_edge(edge.target(), edge.source()).map_or(0, |back| back.index() as u32)
        };
        let backs = edges.iter().map(back).collect();
        Topology { graph, shape, wires, kinds, targets, backs, homes }
    }

    /// How many nodes there are: they are numbered from zero.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.homes.len() as u32
    }

    /// How many routers there are: they are numbered from zero.
    #[must_use]
    pub fn routers(&self) -> u32 {
        self.graph.node_count() as u32
    }

    /// How many links there are, of all kinds.
    #[must_use]
    pub fn links(&self) -> usize {
        self.between() as usize + 2 * self.homes.len()
    }

    /// The injection link of the first node: how many links join routers.
    #[inline]
    fn between(&self) -> u32 {
        self.targets.len() as u32
    }

    /// The link from a node to its router.
    #[must_use]
    pub fn inject(&self, node: NodeId) -> LinkId {
        LinkId(self.between() + 2 * node.0)
    }

    /// The link from its router to a node.
    #[must_use]
    pub fn eject(&self, node: NodeId) -> LinkId {
        LinkId(self.between() + 2 * node.0 + 1)
    }

    /// What a link is made of.
    #[must_use]
    pub fn wire(&self, link: LinkId) -> &Wire {
        let between = self.between();
        let place = if link.0 < between { link.0 } else { between + (link.0 - between) % 2 };
        &self.wires[self.kinds[place as usize] as usize]
    }

    /// Where a link begins.
    #[must_use]
    pub fn leaves(&self, link: LinkId) -> At {
        match link.0.checked_sub(self.between()) {
            None => At::Router(self.graph.raw_edges()[link.index()].source().index() as u32),
            Some(end) if end % 2 == 0 => At::Node(NodeId(end / 2)),
            Some(end) => At::Router(self.homes[end as usize / 2]),
        }
    }

    /// Where a link ends.
    #[must_use]
    pub fn enters(&self, link: LinkId) -> At {
        match link.0.checked_sub(self.between()) {
            None => At::Router(self.targets[link.index()]),
            Some(end) if end % 2 == 0 => At::Router(self.homes[end as usize / 2]),
            Some(end) => At::Node(NodeId(end / 2)),
        }
    }

    /// The link between the same ends in the other direction.
    #[must_use]
    pub fn back(&self, link: LinkId) -> LinkId {
        let between = self.between();
        match link.0.checked_sub(between) {
            None => LinkId(self.backs[link.index()]),
            Some(end) => LinkId(between + (end ^ 1)),
        }
    }

    /// The router a node sits on.
    #[must_use]
    pub fn router_of(&self, node: NodeId) -> u32 {
        self.homes[node.index()]
    }

    /// The router at these coordinates, if there is one.
    #[must_use]
    pub fn router_at(&self, x: u32, y: u32, z: u32) -> Option<u32> {
        let inside = [x, y, z].iter().zip(self.dims()).all(|(&at, dim)| at < dim);
        inside.then(|| match &self.shape {
            Shape::Direct => 0,
            Shape::Torus(torus) => torus.number([x, y, z]),
            Shape::Dragonfly(dragonfly) => dragonfly.number([x, y, z]),
        })
    }

    /// Where a router stands along x, y, z, or in which group, chassis and slot.
    #[must_use]
    pub fn coordinates(&self, router: u32) -> [u32; 3] {
        self.graph[NodeIndex::new(router as usize)].coordinates
    }

    /// How many routers stand along x, y, z; or how many groups there are, chassis in each and
    /// routers in each of those.
    #[must_use]
    pub fn dims(&self) -> [u32; 3] {
        match &self.shape {
            Shape::Direct => [1; 3],
            Shape::Torus(torus) => torus.dims,
            Shape::Dragonfly(Dragonfly { groups, chassis, slots, .. }) => {
                [*groups, *chassis, *slots]
            }
        }
    }

    /// The first of the nodes that sit on a router, whether or not it is present.
    #[must_use]
    pub fn first_node(&self, router: u32) -> u32 {
        match &self.shape {
            Shape::Direct => 0,
            Shape::Torus(torus) => router * torus.nodes_per_router,
            Shape::Dragonfly(dragonfly) => router * dragonfly.nodes_per_router,
        }
    }

    /// The link from one router to another, if they are neighbours.
    #[must_use]
    pub fn link_between(&self, from: u32, to: u32) -> Option<LinkId> {
        let edge = self.graph.find_edge(NodeIndex::from(from), NodeIndex::from(to))?;
        Some(LinkId(edge.index() as u32))
    }

    /// Routers and the links between them, for drawing and for algorithms.
    #[must_use]
    pub fn graph(&self) -> &DiGraph<Router, Wire> {
        &self.graph
    }

    /// How many links between routers a message from `a` to `b` crosses when nothing is down.
    #[must_use]
    pub fn hops(&self, a: NodeId, b: NodeId) -> u32 {
        self.distance(self.router_of(a), self.router_of(b))
    }

    /// The same from router to router.
    #[must_use]
    pub fn distance(&self, a: u32, b: u32) -> u32 {
        match &self.shape {
            Shape::Direct => 0,
            Shape::Torus(torus) => torus.distance(self.coordinates(a), self.coordinates(b)),
            Shape::Dragonfly(dragonfly) => dragonfly.distance(a, b),
        }
    }

    /// The link by which a message for `to` leaves `router`; `None` if no way is left.
    ///
    /// While nothing is down this is the shape's own route: dimension order in a torus, a
    /// shortest way in a dragonfly. Else it is that route as long as no link of its rest has
    /// failed, and a shortest way through the surviving links where one has. A message cannot
    /// circle: the rest of such a route is itself the route from there, so whoever is on an
    /// unbroken one stays on it to the end, and every hop before brings the message one nearer
    /// in the surviving graph.
    #[must_use]
    pub fn next(&self, router: u32, to: NodeId, down: &mut Down) -> Option<LinkId> {
        let home = self.router_of(to);
        if router == home {
            let eject = self.eject(to);
            return down.is_up(eject).then_some(eject);
        }
        self.towards(router, home, down)
    }

    /// The same towards a router, which must be another one.
    #[must_use]
    #[inline]
    pub fn towards(&self, router: u32, to: u32, down: &mut Down) -> Option<LinkId> {
        if down.is_clear() {
            return self.towards_whole(router, to);
        }
        down.towards(self, router, to)
    }

    /// A router to go by on a way that is not the shortest, if the shape has such ways; `draw`
    /// gives a number below the one it gets.
    #[must_use]
    pub fn detour(&self, from: u32, to: u32, mut draw: impl FnMut(u64) -> u64) -> Option<u32> {
        let by = match &self.shape {
            Shape::Direct => None,
            Shape::Torus(_) => Some(draw(u64::from(self.routers())) as u32),
            Shape::Dragonfly(dragonfly) => dragonfly.detour(from, to, draw),
        };
        by.filter(|&by| from != to && by != from && by != to)
    }

    /// A router to go by on a shortest way that need not be the usual one, if the shape lets
    /// packets choose; `draw` gives a number below the one it gets.
    #[must_use]
    pub fn another(&self, from: u32, to: u32, draw: impl FnMut(u64) -> u64) -> Option<u32> {
        let by = match &self.shape {
            Shape::Direct | Shape::Torus(_) => None,
            Shape::Dragonfly(dragonfly) => dragonfly.another(from, to, draw),
        };
        by.filter(|&by| by != from && by != to)
    }

    /// The next link of the route to another router when nothing is down.
    fn towards_whole(&self, router: u32, to: u32) -> Option<LinkId> {
        match &self.shape {
            Shape::Direct => None,
            Shape::Torus(torus) => {
                Some(torus.next(router, self.coordinates(router), self.coordinates(to)))
            }
            Shape::Dragonfly(dragonfly) => dragonfly.next(router, to),
        }
    }

    /// The links into (or, the other way, out of) a router from other routers, by number.
    fn edges(&self, router: u32, way: petgraph::Direction) -> impl Iterator<Item = (LinkId, u32)> {
        let mut walk = self.graph.neighbors_directed(NodeIndex::from(router), way).detach();
        std::iter::from_fn(move || {
            let (edge, other): (EdgeIndex, NodeIndex) = walk.next(&self.graph)?;
            Some((LinkId(edge.index() as u32), other.index() as u32))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The routers a message passes, or `None` where it is stuck.
    pub(super) fn walk(
        topology: &Topology,
        from: NodeId,
        to: NodeId,
        down: &mut Down,
    ) -> Option<Vec<u32>> {
        let mut at = topology.enters(topology.inject(from));
        let mut seen = Vec::new();
        while let At::Router(router) = at {
            assert!(!seen.contains(&router), "a loop from {from} to {to}: {seen:?} {router}");
            seen.push(router);
            let link = topology.next(router, to, down)?;
            assert!(down.is_up(link) && topology.leaves(link) == At::Router(router));
            at = topology.enters(link);
        }
        assert_eq!(at, At::Node(to));
        Some(seen)
    }

    pub(super) fn pairs(topology: &Topology) -> impl Iterator<Item = (NodeId, NodeId)> + use<> {
        let nodes = topology.nodes();
        (0..nodes * nodes).map(move |n| (NodeId(n / nodes), NodeId(n % nodes)))
    }

    #[test]
    fn rates_give_exact_times_and_round_up() {
        for (rate, bytes, picoseconds) in [
            (1_000_000_000, 1, 1_000),
            (9_375_000_000, 96, 10_240),
            (9_375_000_000, 64, 6_827),
            (15_000_000_000, 96, 6_400),
            (3_000_000_000_000, 1, 1),
            (8_300_000_000, 0, 0),
            // The last that 64 bits hold on the way, and the first that they do not.
            (1_000_000, 18_446_744, 18_446_744_000_000),
            (1_000_000, 18_446_745, 18_446_745_000_000),
            (7, 18_446_745, 2_635_249_285_714_285_715),
        ] {
            assert_eq!(Rate(rate).time_of(bytes), Span(picoseconds), "{bytes} at {rate}");
        }
        assert_eq!(Rate(0).time_of(0), Span::FOREVER);
        assert_eq!(Rate(1).time_of(u64::MAX), Span::FOREVER);
        assert_eq!(Rate(u64::MAX).time_of(u64::MAX), Span(1_000_000_000_000));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = TopologyError::MoreNodesThanSlots { nodes: 9, slots: 8 };
        assert_eq!(error.to_string(), "9 nodes, but the routers have places for 8");
        assert_eq!(TopologyError::TooManyRouters.to_string(), "more than 4194304 routers");
    }
}

//! The 3-D torus of Cray Gemini: dimension-order routes, and link rates that differ by dimension
//! and by position.
//!
//! Router (x, y, z) has the number (x * Y + y) * Z + z: x is the most significant, so
//! neighbours in z have neighbouring numbers. Node n sits on router n / nodes_per_router.

use petgraph::graph::{DiGraph, NodeIndex};
use selvedge_core::time::Span;

use super::{LinkId, Rate, Router, Shape, Topology, TopologyError, Wire};

/// The links along one dimension: the one from position `p` to the next, round the ring from
/// the last to the first, has the `p`-th rate, beginning again when the rates are used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension(pub Vec<Rate>);

/// What a tile of a Gemini router drives: the clock of its lanes depends on it (gemini.h of the
/// LDMS cray_system_sampler).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Inside a blade.
    Mezzanine,
    /// Between the blades of a cage.
    Backplane,
    /// From cage to cage and from cabinet to cabinet.
    Cable,
    /// Towards a node.
    Node,
}

impl Medium {
    /// Data that a node injects at most: 64 bytes every five cycles of 650 MHz.
    pub const INJECTION: Rate = Rate(64 * 650_000_000 / 5);
    /// Lanes of a tile, each way.
    pub const LANES: u64 = 3;
    /// Tiles of a router that face a neighbour along x, y and z, for each of the two ways.
    pub const TILES: [u64; 3] = [8, 4, 8];
    /// Tiles of one of the connections that those are grouped into.
    pub const CONNECTION: u64 = 4;

    /// Bits a second of one lane.
    #[must_use]
    pub const fn lane(self) -> u64 {
        match self {
            Medium::Mezzanine => 6_250_000_000,
            Medium::Backplane => 5_000_000_000,
            Medium::Cable => 3_125_000_000,
            Medium::Node => 3_467_000_000,
        }
    }

    /// What so many tiles carry.
    #[must_use]
    pub const fn tiles(self, count: u64) -> Rate {
        Rate(self.lane() * Medium::LANES / 8 * count)
    }

    /// The links of a Gemini torus along each dimension.
    #[must_use]
    pub fn gemini() -> [Dimension; 3] {
        let [x, y, z] = Medium::TILES;
        let cable = Medium::Cable.tiles(z);
        [
            Dimension(vec![Medium::Cable.tiles(x)]),
            Dimension(vec![Medium::Mezzanine.tiles(y), Medium::Cable.tiles(y)]),
            Dimension([vec![Medium::Backplane.tiles(z); 7], vec![cable]].concat()),
        ]
    }
}

/// What a torus is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorusSpec {
    /// Routers along x, y, z. A dimension of two has one link each way, not two; one of a
    /// single router has none.
    pub dims: [u32; 3],
    /// Nodes a router has places for.
    pub nodes_per_router: u32,
    /// Nodes that are present: the first ones; at most the places there are.
    pub nodes: u32,
    /// The links along x, y, z.
    pub dimensions: [Dimension; 3],
    /// From router to neighbouring router.
    pub hop_latency: Span,
    /// From a node to its router.
    pub inject: Wire,
    /// From a router to its node.
    pub eject: Wire,
}

impl TorusSpec {
    /// A Gemini torus with all nodes present, two on each router.
    ///
    /// Rates are raw bytes per second in one direction: tiles times the rate of a tile, by
    /// [`Medium`]. x is cable throughout. y goes over a blade's mezzanine between its two routers
    /// and over cable from blade to blade. z goes over the backplane between the eight blades of
    /// a cage and over cable from cage to cage. A hop adds 105 ns (`gemini-hop-latency`). A node
    /// injects at [`Medium::INJECTION`], and 64 bytes of data take 96 on the wire; ejection is
    /// taken alike. The time from host to router is the NIC's, so these two links add no latency
    /// of their own.
    #[must_use]
    pub fn gemini(dims: [u32; 3]) -> Self {
        let host = Wire { rate: Rate(Medium::INJECTION.0 / 64 * 96), latency: Span::ZERO };
        let slots = dims.iter().fold(2u32, |slots, &dim| slots.saturating_mul(dim));
        TorusSpec {
            dims,
            nodes_per_router: 2,
            nodes: slots,
            dimensions: Medium::gemini(),
            hop_latency: Span::from_ns(105),
            inject: host,
            eject: host,
        }
    }

    /// Builds it, or says why that cannot be.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let routers = self.validate()?;
        let torus = Torus::new(self.dims, self.nodes_per_router);
        let mut graph =
            DiGraph::with_capacity(routers as usize, routers as usize * torus.degree as usize);
        for router in 0..routers {
            graph.add_node(Router { coordinates: torus.coordinates(router) });
        }
        // In the order that `Torus::link` reckons with.
        for router in 0..routers {
            for (axis, step) in torus.ways() {
                let from = torus.coordinates(router);
                let mut to = from;
                to[axis] = (from[axis] + step) % self.dims[axis];
                let wire = Wire {
                    rate: self.dimensions[axis].rate(from[axis], to[axis], self.dims[axis]),
                    latency: self.hop_latency,
                };
                graph.add_edge(NodeIndex::from(router), NodeIndex::from(torus.number(to)), wire);
            }
        }
        let homes = (0..self.nodes).map(|node| node / self.nodes_per_router).collect();
        Ok(Topology::assemble(graph, Shape::Torus(torus), homes, self.inject, self.eject))
    }

    /// Checks everything before anything is allocated; gives the number of routers.
    fn validate(&self) -> Result<u32, TopologyError> {
        let routers = super::size(self.dims, self.nodes_per_router, self.nodes)?;
        if self.dimensions.iter().any(|dimension| dimension.0.is_empty()) {
            return Err(TopologyError::NoRates);
        }
        let between = self.dimensions.iter().flat_map(|along| along.0.iter().copied());
        if between.chain([self.inject.rate, self.eject.rate]).any(|rate| rate == Rate(0)) {
            return Err(TopologyError::ZeroRate);
        }
        Ok(routers)
    }
}

impl Default for TorusSpec {
    /// The smallest Gemini torus in which every dimension is a ring: 3 x 3 x 3.
    fn default() -> Self {
        TorusSpec::gemini([3, 3, 3])
    }
}

impl Dimension {
    /// The rate of the link between two neighbours in a dimension of `length`.
    fn rate(&self, from: u32, to: u32, length: u32) -> Rate {
        // The link belongs to the one of the two that comes before the other.
        let first = if (from + 1) % length == to { from } else { to };
        self.0[first as usize % self.0.len()]
    }
}

/// The arithmetic of a torus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Torus {
    pub(super) dims: [u32; 3],
    pub(super) nodes_per_router: u32,
    /// Links from each router to others.
    degree: u32,
    /// Per dimension, the place of its positive link among a router's links; the negative one,
    /// if there is one, follows.
    place: [u32; 3],
}

impl Torus {
    fn new(dims: [u32; 3], nodes_per_router: u32) -> Self {
        let mut torus = Torus { dims, nodes_per_router, degree: 0, place: [0; 3] };
        for (place, dim) in torus.place.iter_mut().zip(dims) {
            *place = torus.degree;
            torus.degree += (dim - 1).min(2);
        }
        torus
    }

    /// The links of a router, in order: dimension and the step along it, positive first.
    fn ways(self) -> impl Iterator<Item = (usize, u32)> {
        (0..3).flat_map(move |axis| {
            let dim = self.dims[axis];
            [(axis, 1), (axis, dim - 1)].into_iter().take((dim as usize - 1).min(2))
        })
    }

    pub(super) fn number(self, [x, y, z]: [u32; 3]) -> u32 {
        (x * self.dims[1] + y) * self.dims[2] + z
    }

    fn coordinates(self, router: u32) -> [u32; 3] {
        let [_, y, z] = self.dims;
        [router / z / y, router / z % y, router % z]
    }

    pub(super) fn distance(self, from: [u32; 3], to: [u32; 3]) -> u32 {
        (0..3)
            .map(|axis| {
                let apart = from[axis].abs_diff(to[axis]);
                apart.min(self.dims[axis] - apart)
            })
            .sum()
    }

    /// The link from `router`, which is at `from`, towards `to`, which is elsewhere: along the
    /// first dimension in which they differ, the shorter way round, and the positive way if
    /// both are as long.
    pub(super) fn next(self, router: u32, from: [u32; 3], to: [u32; 3]) -> LinkId {
        let axis = (0..2).find(|&axis| from[axis] != to[axis]).unwrap_or(2);
        let (from, to, dim) = (from[axis], to[axis], self.dims[axis]);
        let ahead = if to >= from { to - from } else { to + dim - from };
        let negative = u32::from(ahead > dim - ahead);
        LinkId(router * self.degree + self.place[axis] + negative)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{pairs, walk};
    use super::super::{Down, NODES_MAX};
    use super::*;
    use selvedge_core::id::NodeId;

    fn small() -> Topology {
        TorusSpec::gemini([4, 3, 2]).build().unwrap()
    }

    #[test]
    fn every_pair_is_joined_by_a_shortest_way() {
        for dims in [[4, 3, 2], [1, 1, 1], [2, 2, 2], [5, 1, 2], [1, 6, 3]] {
            let topology = TorusSpec::gemini(dims).build().unwrap();
            let mut down = Down::default();
            for (from, to) in pairs(&topology) {
                let way = walk(&topology, from, to, &mut down).unwrap();
                let [a, b] = [from, to].map(|n| topology.coordinates(topology.router_of(n)));
                let least: u32 = (0..3)
                    .map(|i| (a[i] + dims[i] - b[i]) % dims[i])
                    .zip(dims)
                    .map(|(ahead, dim)| ahead.min(dim - ahead))
                    .sum();
                assert_eq!(way.len() as u32 - 1, least, "{dims:?} {from} {to}");
                assert_eq!(topology.hops(from, to), least);
            }
        }
    }

    #[test]
    fn routes_take_x_then_y_then_z_and_positive_on_a_tie() {
        let topology = TorusSpec::gemini([4, 5, 3]).build().unwrap();
        let at = |x, y, z| topology.router_at(x, y, z).unwrap();
        let (from, to) = (NodeId(2 * at(1, 0, 0)), NodeId(2 * at(3, 4, 1)));
        let way = walk(&topology, from, to, &mut Down::default()).unwrap();
        assert_eq!(way, [at(1, 0, 0), at(2, 0, 0), at(3, 0, 0), at(3, 4, 0), at(3, 4, 1)]);
        assert_eq!(at(3, 4, 1), (3 * 5 + 4) * 3 + 1);
        assert_eq!(topology.coordinates(at(3, 4, 1)), [3, 4, 1]);
        assert_eq!((topology.router_at(4, 0, 0), topology.router_at(0, 0, 3)), (None, None));
    }

    #[test]
    fn small_dimensions_have_no_double_and_no_self_links() {
        for (dims, links) in [([1, 1, 1], 0), ([2, 1, 1], 2), ([3, 1, 1], 6), ([2, 2, 2], 24)] {
            let topology = TorusSpec::gemini(dims).build().unwrap();
            assert_eq!(topology.graph().edge_count(), links);
            assert_eq!(topology.links(), links + 2 * topology.nodes() as usize);
            let mut ends: Vec<_> =
                topology.graph().raw_edges().iter().map(|e| (e.source(), e.target())).collect();
            ends.sort_unstable();
            ends.dedup();
            assert!(ends.len() == links && ends.iter().all(|(from, to)| from != to));
        }
    }

    #[test]
    fn rates_follow_dimension_and_position() {
        let topology = TorusSpec::gemini([3, 4, 24]).build().unwrap();
        let rate = |from: [u32; 3], to: [u32; 3]| {
            let [from, to] = [from, to].map(|[x, y, z]| topology.router_at(x, y, z).unwrap());
            let (there, back) = (topology.link_between(from, to), topology.link_between(to, from));
            let [there, back] = [there, back].map(|link| *topology.wire(link.unwrap()));
            assert!(there == back && there.latency == Span::from_ns(105));
            there.rate.0
        };
        assert_eq!(rate([0, 0, 0], [1, 0, 0]), 9_375_000_000);
        assert_eq!(rate([0, 0, 0], [2, 0, 0]), 9_375_000_000);
        assert_eq!(rate([0, 0, 0], [0, 1, 0]), 9_375_000_000);
        assert_eq!(rate([0, 1, 0], [0, 2, 0]), 4_687_500_000);
        assert_eq!(rate([0, 3, 0], [0, 0, 0]), 4_687_500_000);
        assert_eq!(rate([0, 0, 6], [0, 0, 7]), 15_000_000_000);
        assert_eq!(rate([0, 0, 7], [0, 0, 8]), 9_375_000_000);
        assert_eq!(rate([0, 0, 23], [0, 0, 0]), 9_375_000_000);
        assert_eq!(topology.wire(topology.inject(NodeId(5))).rate, Rate(12_480_000_000));
    }

    #[test]
    fn every_pair_survives_every_single_link() {
        let topology = small();
        let links = topology.graph().edge_count() as u32;
        for failed in (0..links).map(LinkId) {
            let mut down = Down::default();
            down.fail_link(&topology, failed);
            let mut longer = 0;
            for (from, to) in pairs(&topology).filter(|(a, b)| (a.0 | b.0) % 2 == 0) {
                let way = walk(&topology, from, to, &mut down).unwrap();
                let extra = way.len() as u32 - 1 - topology.hops(from, to);
                assert!(extra <= 2, "{failed}: {from} {to} {way:?}");
                longer += u32::from(extra > 0);
            }
            assert!(longer > 0, "somebody needs every link: {failed}");
            down.restore_link(&topology, failed);
            assert!(down.is_clear());
        }
    }

    #[test]
    fn an_isolated_router_is_out_of_reach_and_others_go_round_it() {
        let topology = small();
        let mut down = Down::default();
        let gone = topology.router_at(1, 1, 1).unwrap();
        down.fail_router(&topology, gone);
        for (from, to) in pairs(&topology) {
            let touches = [from, to].iter().any(|&node| topology.router_of(node) == gone);
            match walk(&topology, from, to, &mut down) {
                Some(way) => assert!(!touches && !way.contains(&gone)),
                None => assert!(touches, "{from} {to}"),
            }
        }
    }

    #[test]
    fn many_failures_never_make_a_loop() {
        let topology = small();
        let links = topology.graph().edge_count() as u64;
        for seed in 0..60u64 {
            let mut down = Down::default();
            for n in 0..1 + seed {
                let link = ((seed + 1) * 7_919 + n * n * 104_729 + n * 31) % links;
                down.fail_link(&topology, LinkId(link as u32));
            }
            for (from, to) in pairs(&topology) {
                // `walk` asserts that no router is met twice and that it ends at `to`.
                let found = walk(&topology, from, to, &mut down).is_some();
                let [a, b] = [from, to].map(|n| NodeIndex::from(topology.router_of(n)));
                let alive = topology.graph().filter_map(
                    |_, _| Some(()),
                    |edge, _| down.is_up(LinkId(edge.index() as u32)).then_some(()),
                );
                assert_eq!(found, petgraph::algo::has_path_connecting(&alive, a, b, None));
            }
        }
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let gemini = TorusSpec::gemini([4, 3, 2]);
        let refused = |change: fn(&mut TorusSpec)| {
            let mut spec = gemini.clone();
            change(&mut spec);
            spec.build().map(|_| ()).unwrap_err()
        };
        assert_eq!(refused(|s| s.dims[1] = 0), TopologyError::ZeroDimension);
        assert_eq!(refused(|s| s.nodes_per_router = 0), TopologyError::ZeroDimension);
        assert_eq!(refused(|s| s.nodes = 0), TopologyError::ZeroNodes);
        assert_eq!(refused(|s| s.eject.rate = Rate(0)), TopologyError::ZeroRate);
        assert_eq!(refused(|s| s.dimensions[2].0.clear()), TopologyError::NoRates);
        let error = TopologyError::MoreNodesThanSlots { nodes: 49, slots: 48 };
        assert_eq!(refused(|s| s.nodes = 49), error);
        assert_eq!(refused(|s| s.dims = [u32::MAX; 3]), TopologyError::TooManyRouters);
        assert_eq!(refused(|s| s.dims = [1 << 12, 1 << 10, 2]), TopologyError::TooManyRouters);
        let error = refused(|s| (s.nodes, s.nodes_per_router) = (NODES_MAX + 1, u32::MAX));
        assert_eq!(error, TopologyError::TooManyNodes);
        assert_eq!(TorusSpec::default().build().unwrap().routers(), 27);
    }

    #[test]
    fn titan_has_its_size() {
        let titan = TorusSpec { nodes: 18_688, ..TorusSpec::gemini([25, 16, 24]) };
        let titan = titan.build().unwrap();
        assert_eq!(
            (titan.routers(), titan.nodes(), titan.links()),
            (9_600, 18_688, 57_600 + 37_376)
        );
        // Opposite corners: 12 + 8 + 12 hops.
        let far = NodeId(2 * titan.router_at(12, 8, 12).unwrap());
        assert_eq!(titan.hops(NodeId(0), far), 32);
        assert_eq!(titan.hops(far, NodeId(0)), 32);
    }
}

//! The dragonfly of Cray Aries: routers joined all to all in a chassis (rank 1), the routers of
//! one slot joined all to all over the chassis of a group (rank 2), and groups joined all to all
//! by optical cables (rank 3).
//!
//! Router (group, chassis, slot) has the number (group * chassis + chassis) * slots + slot. Node
//! n sits on router n / nodes_per_router.
//!
//! Parallel links between two routers are one link here with their joint rate: three in rank 2,
//! two of a cable in rank 3. A cable has four links, two from each of two neighbouring routers,
//! and a group has five sockets for each such pair (calibration figures `aries-rank*`). Which
//! socket leads where differs from machine to machine; here the cables of a group are plugged in
//! the order of the groups they go to, one pair of routers after another.

use petgraph::graph::{DiGraph, NodeIndex};
use selvedge_core::time::Span;

use super::{LinkId, Rate, Router, Shape, Topology, TopologyError, Wire};

/// What an Aries router is made of (Cray XC white paper, NERSC and NeSI documentation).
#[derive(Clone, Copy, Debug)]
pub struct Aries;

impl Aries {
    /// Data that a node injects at most: 64 bytes every five cycles of 800 MHz.
    pub const INJECTION: Rate = Rate(64 * 800_000_000 / 5);
    /// Lanes of a port, each way.
    pub const LANES: u64 = 3;
    /// Bits a second of a lane of copper: ranks 1 and 2.
    pub const COPPER_LANE: u64 = 14_000_000_000;
    /// Bits a second of a lane of light: rank 3.
    pub const OPTICAL_LANE: u64 = 12_500_000_000;
    /// Ports that join two routers of one slot: one cable of rank 2.
    pub const RANK2_PORTS: u32 = 3;
    /// Ports of each of two neighbouring routers that one optical cable takes.
    pub const RANK3_PORTS: u32 = 2;
    /// Sockets for optical cables that a pair of routers has.
    pub const SOCKETS: u32 = 5;
    /// Ports towards each node.
    pub const NODE_PORTS: u32 = 2;

    /// What so many ports with such lanes carry.
    #[must_use]
    pub const fn ports(lane: u64, count: u32) -> Rate {
        Rate(lane * Aries::LANES / 8 * count as u64)
    }
}

/// What a dragonfly is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DragonflySpec {
    /// Groups.
    pub groups: u32,
    /// Chassis of a group.
    pub chassis: u32,
    /// Routers of a chassis.
    pub slots: u32,
    /// Nodes a router has places for.
    pub nodes_per_router: u32,
    /// Nodes that are present: the first ones; at most the places there are.
    pub nodes: u32,
    /// Optical cables between each two groups.
    pub cables: u32,
    /// Within a chassis.
    pub rank1: Wire,
    /// Between chassis of a group.
    pub rank2: Wire,
    /// Between groups: what one cable brings to one router.
    pub rank3: Wire,
    /// From a node to its router.
    pub inject: Wire,
    /// From a router to its node.
    pub eject: Wire,
}

impl DragonflySpec {
    /// Aries groups with all nodes present: six chassis of sixteen routers of four nodes.
    ///
    /// Rates are raw bytes per second in one direction: 5.25 GB/s a port of copper
    /// (`aries-link-electrical`), 4.6875 GB/s an optical one (`aries-link-optical`). A hop adds
    /// 100 ns (`aries-hop-latency`), and 40 ns more where it goes through eight metres of fibre:
    /// as much as five hops may take together, which are at most half a microsecond and a tenth
    /// (`aries-minimal-network-max`). A node injects at [`Aries::INJECTION`], and 64 bytes of data
    /// take 84 on the wire; ejection is taken alike. The time from host to router is the NIC's, so
    /// these two links add no latency of their own.
    #[must_use]
    pub fn aries(groups: u32, cables: u32) -> Self {
        const HOP: Span = Span::from_ns(100);
        let wire = |rate, latency| Wire { rate, latency };
        let host = wire(Rate(Aries::INJECTION.0 / 64 * 84), Span::ZERO);
        let copper = |ports| wire(Aries::ports(Aries::COPPER_LANE, ports), HOP);
        let optical = Aries::ports(Aries::OPTICAL_LANE, Aries::RANK3_PORTS);
        DragonflySpec {
            groups,
            chassis: 6,
            slots: 16,
            nodes_per_router: 4,
            nodes: groups.saturating_mul(384),
            cables,
            rank1: copper(1),
            rank2: copper(Aries::RANK2_PORTS),
            rank3: wire(optical, Span::from_ns(140)),
            inject: host,
            eject: host,
        }
    }

    /// Builds it, or says why that cannot be.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let routers = self.validate()?;
        let mut graph = DiGraph::with_capacity(routers as usize, 0);
        let mut dragonfly = Dragonfly {
            chassis: self.chassis,
            slots: self.slots,
            groups: self.groups,
            nodes_per_router: self.nodes_per_router,
            first: Vec::with_capacity(routers as usize),
            gates: vec![Vec::new(); (self.groups * self.groups) as usize],
        };
        for router in 0..routers {
            graph.add_node(Router { coordinates: dragonfly.coordinates(router) });
        }
        // In the order that `Dragonfly::local` reckons with: rank 1, rank 2, and then rank 3.
        for router in 0..routers {
            dragonfly.first.push(graph.edge_count() as u32);
            let [group, chassis, slot] = dragonfly.coordinates(router);
            for other in (0..self.slots).filter(|&other| other != slot) {
                let to = dragonfly.number([group, chassis, other]);
                graph.add_edge(NodeIndex::from(router), NodeIndex::from(to), self.rank1);
            }
            for other in (0..self.chassis).filter(|&other| other != chassis) {
                let to = dragonfly.number([group, other, slot]);
                graph.add_edge(NodeIndex::from(router), NodeIndex::from(to), self.rank2);
            }
        }
        for a in 0..self.groups {
            for b in a + 1..self.groups {
                for (here, there) in self.cabled(a, b) {
                    for (from, to) in [(here, there), (there, here)] {
                        let link =
                            graph.add_edge(NodeIndex::from(from), NodeIndex::from(to), self.rank3);
                        dragonfly.gate(from, to, LinkId(link.index() as u32));
                    }
                }
            }
        }
        let homes = (0..self.nodes).map(|node| node / self.nodes_per_router).collect();
        let shape = Shape::Dragonfly(dragonfly);
        Ok(Topology::assemble(graph, shape, homes, self.inject, self.eject))
    }

    /// The routers that the cables between groups `a` and `b` join.
    fn cabled(&self, a: u32, b: u32) -> Vec<(u32, u32)> {
        let routers = self.chassis * self.slots;
        let pairs = (routers / 2).max(1);
        // The first socket in `group` of the cables to `other`.
        let socket =
            |group: u32, other: u32| (if other < group { other } else { other - 1 }) * self.cables;
        let router = |group: u32, other: u32, cable: u32, half: u32| {
            group * routers + (socket(group, other) + cable) % pairs * 2 + half
        };
        let ends = 0..routers.min(2);
        (0..self.cables)
            .flat_map(|cable| ends.clone().map(move |half| (cable, half)))
            .map(|(cable, half)| (router(a, b, cable, half), router(b, a, cable, half)))
            .collect()
    }

    /// Whether a link joins routers `a` and `b`.
    #[must_use]
    pub fn joins(&self, a: u32, b: u32) -> bool {
        let Ok(routers) = self.validate() else { return false };
        if a.max(b) >= routers {
            return false;
        }
        let [[group, chassis, slot], [other, its_chassis, its_slot]] =
            [a, b].map(|router| coordinates(router, self.chassis, self.slots));
        if group == other {
            return (chassis == its_chassis) != (slot == its_slot);
        }
        let (low, high) = (a.min(b), a.max(b));
        self.cabled(group.min(other), group.max(other)).contains(&(low, high))
    }

    /// Checks everything before anything is allocated; gives the number of routers.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate(&self) -> Result<u32, TopologyError> {
        let counts = [self.groups, self.chassis, self.slots];
        let routers = super::size(counts, self.nodes_per_router, self.nodes)?;
        let pairs = u64::from(self.chassis * self.slots / 2).max(1);
        let plugged = u64::from(self.groups - 1) * u64::from(self.cables);
        // Two cables between the same two pairs would be parallel links.
        if plugged > pairs * u64::from(Aries::SOCKETS) || u64::from(self.cables) > pairs {
            return Err(TopologyError::TooManyCables);
        }
        if self.groups > 1 && self.cables == 0 {
            return Err(TopologyError::NoCables);
        }
        let wires = [self.rank1, self.rank2, self.rank3, self.inject, self.eject];
        if wires.iter().any(|wire| wire.rate == Rate(0)) {
            return Err(TopologyError::ZeroRate);
        }
        Ok(routers)
    }
}

/// The group, chassis and slot of a router, by how many chassis a group has and slots a chassis.
const fn coordinates(router: u32, chassis: u32, slots: u32) -> [u32; 3] {
    let row = router / slots;
    [row / chassis, row % chassis, router % slots]
}

/// The arithmetic of a dragonfly.
#[derive(Clone, Debug)]
pub(super) struct Dragonfly {
    pub(super) groups: u32,
    pub(super) chassis: u32,
    pub(super) slots: u32,
    pub(super) nodes_per_router: u32,
    /// Per router, its first link; those of rank 1 and 2 follow each other from there.
    first: Vec<u32>,
    /// For each two groups, the ways from the first to the second.
    gates: Vec<Vec<Gate>>,
}

/// A way out of a group.
#[derive(Clone, Copy, Debug)]
struct Gate {
    from: u32,
    to: u32,
    link: LinkId,
}

impl Dragonfly {
    pub(super) fn number(&self, [group, chassis, slot]: [u32; 3]) -> u32 {
        (group * self.chassis + chassis) * self.slots + slot
    }

    pub(super) fn coordinates(&self, router: u32) -> [u32; 3] {
        coordinates(router, self.chassis, self.slots)
    }

    fn gate(&mut self, from: u32, to: u32, link: LinkId) {
        let [group, other] = [from, to].map(|router| self.coordinates(router)[0]);
        self.gates[(group * self.groups + other) as usize].push(Gate { from, to, link });
    }

    fn gates(&self, group: u32, other: u32) -> &[Gate] {
        &self.gates[(group * self.groups + other) as usize]
    }

    /// How many links a shortest way has.
    pub(super) fn distance(&self, from: u32, to: u32) -> u32 {
        let [here, there] = [from, to].map(|router| self.coordinates(router)[0]);
        if here == there {
            return self.steps(from, to);
        }
        let ways = self.gates(here, there).iter().map(|gate| self.through(gate, from, to));
        ways.min().unwrap_or(u32::MAX)
    }

    /// The first link of a shortest way from `router` to `to`, which is elsewhere. Of several
    /// ways out of a group, which one depends on both ends, so that they share the traffic.
    /// `None` only between groups that no cable joins, which are never built.
    pub(super) fn next(&self, router: u32, to: u32) -> Option<LinkId> {
        let [here, there] = [router, to].map(|router| self.coordinates(router)[0]);
        if here == there {
            return Some(self.local(router, to));
        }
        let gates = self.gates(here, there);
        let turn = (router.wrapping_mul(31).wrapping_add(to)) as usize % gates.len().max(1);
        let (later, first) = gates.split_at(turn);
        let best = first.iter().chain(later).min_by_key(|gate| self.through(gate, router, to))?;
        Some(if best.from == router { best.link } else { self.local(router, best.from) })
    }

    /// A router to go by that is not on the way: in the same group if both ends are there, else
    /// in a third group if there is one.
    pub(super) fn detour(
        &self,
        from: u32,
        to: u32,
        mut draw: impl FnMut(u64) -> u64,
    ) -> Option<u32> {
        let routers = self.chassis * self.slots;
        let [here, there] = [from, to].map(|router| self.coordinates(router)[0]);
        if here == there {
            return (routers > 2).then(|| here * routers + draw(u64::from(routers)) as u32);
        }
        let (low, high) = (here.min(there), here.max(there));
        let group = match self.groups.checked_sub(2)? {
            0 => return None,
            others => draw(u64::from(others)) as u32,
        };
        let group = group + u32::from(group >= low);
        let group = group + u32::from(group >= high);
        Some(group * routers + draw(u64::from(routers)) as u32)
    }

    /// A router on a shortest way, perhaps another one than `next` takes: by the other corner of
    /// a group, or by any of the cables that are as near.
    pub(super) fn another(
        &self,
        from: u32,
        to: u32,
        mut draw: impl FnMut(u64) -> u64,
    ) -> Option<u32> {
        let [[here, _, slot], [there, chassis, _]] =
            [from, to].map(|router| self.coordinates(router));
        if here == there {
            return (self.steps(from, to) == 2).then(|| self.number([here, chassis, slot]));
        }
        let least = self.distance(from, to);
        let near = || {
            let gates = self.gates(here, there).iter();
            gates.filter(|gate| self.through(gate, from, to) == least)
        };
        let gate = near().nth(draw(near().count() as u64) as usize)?;
        Some(if gate.from == from { gate.to } else { gate.from })
    }

    fn through(&self, gate: &Gate, from: u32, to: u32) -> u32 {
        self.steps(from, gate.from) + 1 + self.steps(gate.to, to)
    }

    /// Links between two routers of a group.
    fn steps(&self, from: u32, to: u32) -> u32 {
        let [[_, c, s], [_, tc, ts]] = [from, to].map(|router| self.coordinates(router));
        u32::from(c != tc) + u32::from(s != ts)
    }

    /// The next link within a group: along the chassis first.
    fn local(&self, router: u32, to: u32) -> LinkId {
        let [[_, chassis, slot], [_, to_chassis, to_slot]] =
            [router, to].map(|router| self.coordinates(router));
        // Its own place is left out of the row of the others.
        let place = |own: u32, other: u32| other - u32::from(other > own);
        let place = if slot != to_slot {
            place(slot, to_slot)
        } else {
            self.slots - 1 + place(chassis, to_chassis)
        };
        LinkId(self.first[router as usize] + place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Down;
    use super::super::tests::{pairs, walk};
    use super::*;
    use selvedge_core::id::NodeId;

    /// Three groups of two chassis of four routers, one node each.
    fn small() -> DragonflySpec {
        let spec = DragonflySpec::aries(3, 2);
        DragonflySpec { chassis: 2, slots: 4, nodes_per_router: 1, nodes: 24, ..spec }
    }

    #[test]
    fn every_pair_is_joined_by_a_shortest_way_of_five_links_at_most() {
        for (cables, most) in [(2, 4), (1, 5)] {
            is_joined(&DragonflySpec { cables, ..small() }.build().unwrap(), most);
        }
    }

    #[test]
    fn another_shortest_way_is_as_short() {
        let topology = small().build().unwrap();
        let mut others = 0;
        for (from, to) in (0..24).flat_map(|from| (0..24).map(move |to| (from, to))) {
            for drawn in 0..4 {
                let by = topology.another(from, to, |below| drawn % below);
                let Some(by) = by else { continue };
                let length = topology.distance(from, by) + topology.distance(by, to);
                assert_eq!(length, topology.distance(from, to), "{from} {by} {to}");
                others += 1;
            }
        }
        assert!(others > 0);
    }

    fn is_joined(topology: &Topology, most: u32) {
        let mut down = Down::default();
        let mut longest = 0;
        for (from, to) in pairs(topology) {
            let way = walk(topology, from, to, &mut down).unwrap();
            let links = way.len() as u32 - 1;
            assert_eq!(links, topology.hops(from, to), "{from} {to}");
            let groups = way.windows(2).filter(|pair| {
                topology.coordinates(pair[0])[0] != topology.coordinates(pair[1])[0]
            });
            let [a, b] = [from, to].map(|node| topology.coordinates(topology.router_of(node))[0]);
            assert_eq!(groups.count(), usize::from(a != b), "one optical link, if any");
            longest = longest.max(links);
        }
        assert_eq!(longest, most);
    }

    #[test]
    fn no_way_is_shorter_than_those_taken() {
        let topology = small().build().unwrap();
        let graph = topology.graph();
        for from in 0..topology.routers() {
            let from_here = petgraph::algo::dijkstra(graph, NodeIndex::from(from), None, |_| 1);
            for to in 0..topology.routers() {
                assert_eq!(topology.distance(from, to), from_here[&NodeIndex::from(to)]);
            }
        }
    }

    #[test]
    fn an_aries_router_has_the_links_that_the_papers_count() {
        // Cori: 34 groups, six cables between each two.
        let spec = DragonflySpec { nodes: 12_076, ..DragonflySpec::aries(34, 6) };
        let topology = spec.build().unwrap();
        assert_eq!((topology.routers(), topology.nodes()), (3_264, 12_076));
        let links = |router: u32| topology.graph().edges(NodeIndex::from(router)).count();
        // 15 in the chassis, 5 bundles to other chassis; of 198 cables the optical ends.
        let optical: usize = (0..96).map(|router| links(router) - 20).sum();
        assert_eq!(optical, 33 * 6 * 2);
        // A pair of routers has five sockets: no router has more than five bundles.
        assert!((0..96).all(|router| (4..=5).contains(&(links(router) - 20))));
        let backbone = topology.link_between(0, 1).unwrap();
        assert_eq!(topology.wire(backbone).rate, Rate(5_250_000_000));
        let column = topology.link_between(0, 16).unwrap();
        assert_eq!(topology.wire(column).rate, Rate(15_750_000_000));
    }

    #[test]
    fn links_join_what_the_description_says() {
        let topology = small().build().unwrap();
        for (a, b) in pairs(&topology).map(|(a, b)| (a.0, b.0)) {
            assert_eq!(small().joins(a, b), topology.link_between(a, b).is_some(), "{a} {b}");
        }
        assert!(!small().joins(0, 24));
    }

    #[test]
    fn ways_out_of_a_group_share_the_traffic() {
        let topology = small().build().unwrap();
        let mut taken = std::collections::BTreeSet::new();
        for from in (0..8).map(NodeId) {
            for to in (8..16).map(NodeId) {
                let way = walk(&topology, from, to, &mut Down::default()).unwrap();
                taken.extend(way.windows(2).find(|w| w[0] < 8 && w[1] >= 8).map(|w| w[0]));
            }
        }
        assert_eq!(taken.len(), 4, "two cables end at two routers each");
    }

    #[test]
    fn failed_cables_are_gone_around() {
        let topology = small().build().unwrap();
        let mut down = Down::default();
        let ends = small().cabled(0, 1);
        assert_eq!(ends.len(), 4);
        for &(here, there) in &ends {
            for (from, to) in [(here, there), (there, here)] {
                let link = topology.link_between(from, to).unwrap();
                down.fail_link(&topology, link);
            }
        }
        // From group 0 to group 1 only by way of group 2.
        for (from, to) in pairs(&topology).filter(|(from, to)| from.0 < 8 && to.0 / 8 == 1) {
            let way = walk(&topology, from, to, &mut down).expect("there is a way round");
            assert!(way.iter().any(|&router| topology.coordinates(router)[0] == 2));
        }
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let error = |spec: DragonflySpec| {
            assert!(!spec.joins(0, 1));
            spec.build().map(drop).unwrap_err()
        };
        assert_eq!(error(DragonflySpec { slots: 0, ..small() }), TopologyError::ZeroDimension);
        assert_eq!(
            error(DragonflySpec { nodes: 25, ..small() }),
            TopologyError::MoreNodesThanSlots { nodes: 25, slots: 24 }
        );
        assert_eq!(error(DragonflySpec { cables: 0, ..small() }), TopologyError::NoCables);
        assert_eq!(error(DragonflySpec { cables: 5, ..small() }), TopologyError::TooManyCables);
        assert_eq!(error(DragonflySpec::aries(34, 8)), TopologyError::TooManyCables);
        assert_eq!(error(DragonflySpec::aries(u32::MAX, 1)), TopologyError::TooManyRouters);
        assert!(DragonflySpec::aries(241, 1).build().is_ok(), "the largest there can be");
        assert!(DragonflySpec { groups: 1, cables: 0, nodes: 8, ..small() }.build().is_ok());
    }
}

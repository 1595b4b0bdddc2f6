//! Small worlds: all nodes on one router, like cards on a PCIe switch or hosts on one crossbar.

use petgraph::graph::DiGraph;
use selvedge_core::time::Span;

use super::{NODES_MAX, Rate, Router, Shape, Topology, TopologyError, Wire};

/// What a star is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectSpec {
    /// Nodes around the router.
    pub nodes: u32,
    /// From a node to the router.
    pub inject: Wire,
    /// From the router to a node.
    pub eject: Wire,
}

impl DirectSpec {
    /// Two nodes.
    #[must_use]
    pub fn pair() -> Self {
        DirectSpec::crossbar(2)
    }

    /// Any number of nodes. Each way between node and router carries 1 GB/s and takes 500 ns:
    /// round figures of no machine, so that times in tests can be read at sight.
    #[must_use]
    pub fn crossbar(nodes: u32) -> Self {
        let wire = Wire { rate: Rate(1_000_000_000), latency: Span::from_ns(500) };
        DirectSpec { nodes, inject: wire, eject: wire }
    }

    /// Builds it, or says why that cannot be.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        if self.nodes == 0 {
            return Err(TopologyError::ZeroNodes);
        }
        if self.nodes > NODES_MAX {
            return Err(TopologyError::TooManyNodes);
        }
        if self.inject.rate == Rate(0) || self.eject.rate == Rate(0) {
            return Err(TopologyError::ZeroRate);
        }
        let mut graph = DiGraph::with_capacity(1, 0);
        graph.add_node(Router { coordinates: [0; 3] });
        let homes = vec![0; self.nodes as usize];
        Ok(Topology::assemble(graph, Shape::Direct, homes, self.inject, self.eject))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{At, Down};
    use super::*;
    use crate::topology::LinkId;
    use selvedge_core::id::NodeId;

    #[test]
    fn a_pair_has_two_links_a_node() {
        let pair = DirectSpec::pair().build().unwrap();
        assert_eq!((pair.nodes(), pair.routers(), pair.links()), (2, 1, 4));
        assert_eq!((pair.inject(NodeId(1)), pair.eject(NodeId(1))), (LinkId(2), LinkId(3)));
        assert_eq!(pair.leaves(LinkId(2)), At::Node(NodeId(1)));
        assert_eq!(pair.enters(LinkId(2)), At::Router(0));
        assert_eq!(pair.leaves(LinkId(3)), At::Router(0));
        assert_eq!(pair.enters(LinkId(3)), At::Node(NodeId(1)));
        assert_eq!((pair.router_at(0, 0, 0), pair.router_at(1, 0, 0)), (Some(0), None));
        assert_eq!(pair.wire(LinkId(0)).rate.time_of(64), Span::from_ns(64));
    }

    #[test]
    fn a_crossbar_leads_straight_to_every_node() {
        let star = DirectSpec::crossbar(61).build().unwrap();
        let mut down = Down::default();
        for node in (0..61).map(NodeId) {
            assert_eq!(star.next(0, node, &mut down), Some(star.eject(node)));
            assert_eq!(star.hops(NodeId(0), node), 0);
        }
        down.fail_link(&star, star.eject(NodeId(3)));
        assert_eq!(star.next(0, NodeId(3), &mut down), None);
        assert_eq!(star.next(0, NodeId(4), &mut down), Some(star.eject(NodeId(4))));
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let error = |spec: DirectSpec| spec.build().map(|_| ()).unwrap_err();
        assert_eq!(error(DirectSpec::crossbar(0)), TopologyError::ZeroNodes);
        assert_eq!(error(DirectSpec::crossbar(NODES_MAX + 1)), TopologyError::TooManyNodes);
        let mut dead = DirectSpec::pair();
        dead.inject.rate = Rate(0);
        assert_eq!(error(dead), TopologyError::ZeroRate);
    }
}

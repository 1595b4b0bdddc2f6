//! What has failed: links and routers that are down, and the ways round them.

use std::collections::VecDeque;

use petgraph::Direction;
use selvedge_core::id::NodeId;

use super::{At, LinkId, Topology};

/// Distances kept at most, over all destinations; reaching it empties the cache.
const CACHE_MAX: usize = 4 << 20;
/// The distance of a router from which the destination cannot be reached.
const FAR: u32 = u32::MAX;

/// The failed links and routers of a world.
///
/// Failures are counted: what has failed twice comes back with the second restoration, and a
/// link is up if neither it nor a router at its end is down. A router that is down takes the
/// links of its nodes along. Restoring what has not failed does nothing.
///
/// Before anything has failed this holds no memory. It also caches distances through the
/// surviving links; the cache changes no answer and is emptied at every change.
#[derive(Clone, Debug, Default)]
pub struct Down {
    /// Failures of each link by itself; shorter than the links if the rest never failed.
    links: Vec<u32>,
    /// Failures of each router, likewise.
    routers: Vec<u32>,
    /// One bit a link: it is down, for whatever cause.
    bits: Vec<u64>,
    /// How many bits are set.
    count: usize,
    /// Per destination router, the distance of every router from it; empty if not known.
    distances: Vec<Vec<u32>>,
    /// Distances held.
    held: usize,
}

impl Down {
    /// Whether every link is up.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.count == 0
    }

    /// Whether a link and the routers at its ends are up.
    #[must_use]
    pub fn is_up(&self, link: LinkId) -> bool {
        self.bits.get(link.index() / 64).is_none_or(|word| word >> (link.0 % 64) & 1 == 0)
    }

    /// Whether a router is up.
    #[must_use]
    pub fn is_router_up(&self, router: u32) -> bool {
        self.routers.get(router as usize).is_none_or(|&failures| failures == 0)
    }

    /// Takes a link down, once more if it is down already.
    pub fn fail_link(&mut self, topology: &Topology, link: LinkId) {
        *entry(&mut self.links, link.index()) += 1;
        self.refresh(topology, link);
    }

    /// Takes one failure of a link back.
    pub fn restore_link(&mut self, topology: &Topology, link: LinkId) {
        let failures = entry(&mut self.links, link.index());
        *failures = failures.saturating_sub(1);
        self.refresh(topology, link);
    }

    /// Takes a router down with all its links, once more if it is down already.
    pub fn fail_router(&mut self, topology: &Topology, router: u32) {
        *entry(&mut self.routers, router as usize) += 1;
        self.refresh_around(topology, router);
    }

    /// Takes one failure of a router back.
    pub fn restore_router(&mut self, topology: &Topology, router: u32) {
        let failures = entry(&mut self.routers, router as usize);
        *failures = failures.saturating_sub(1);
        self.refresh_around(topology, router);
    }

    fn refresh_around(&mut self, topology: &Topology, router: u32) {
        for way in [Direction::Outgoing, Direction::Incoming] {
            for (link, _) in topology.edges(router, way) {
                self.refresh(topology, link);
            }
        }
        for node in (0..topology.nodes()).map(NodeId) {
            if topology.router_of(node) == router {
                self.refresh(topology, topology.inject(node));
                self.refresh(topology, topology.eject(node));
            }
        }
    }

    /// Brings the bit of a link in line with the failures.
    fn refresh(&mut self, topology: &Topology, link: LinkId) {
        let end_up = |end| match end {
            At::Router(router) => self.is_router_up(router),
            At::Node(_) => true,
        };
        let failures = self.links.get(link.index()).copied().unwrap_or(0);
        let up = failures == 0 && end_up(topology.leaves(link)) && end_up(topology.enters(link));
        if up != self.is_up(link) {
            *entry(&mut self.bits, link.index() / 64) ^= 1 << (link.0 % 64);
            if up {
                self.count -= 1;
            } else {
                self.count += 1;
            }
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.distances.clear();
        self.held = 0;
    }

    /// The next link of a message at `router` for another one: see [`Topology::next`].
    pub(super) fn towards(&mut self, topology: &Topology, router: u32, to: u32) -> Option<LinkId> {
        let usual = topology.towards_whole(router, to);
        if self.whole_to(topology, usual, to) {
            return usual;
        }
        self.prepare(topology, to);
        let distances = &self.distances[to as usize];
        topology
            .edges(router, Direction::Outgoing)
            .filter(|&(link, _)| self.is_up(link))
            .map(|(link, other)| (distances[other as usize], link))
            .min()
            .filter(|&(distance, _)| distance != FAR)
            .map(|(_, link)| link)
    }

    /// Whether the usual route that goes on with `next` is up as far as router `to`.
    fn whole_to(&self, topology: &Topology, mut next: Option<LinkId>, to: u32) -> bool {
        while let Some(link) = next.filter(|&link| self.is_up(link)) {
            match topology.enters(link) {
                At::Router(router) if router != to => next = topology.towards_whole(router, to),
                At::Router(_) | At::Node(_) => return true,
            }
        }
        false
    }

    /// Sees to it that the distances from router `to` are known: breadth first from there,
    /// against the direction of the links that are up.
    fn prepare(&mut self, topology: &Topology, to: u32) {
        let routers = topology.routers() as usize;
        if self.distances.get(to as usize).is_some_and(|known| !known.is_empty()) {
            return;
        }
        if self.held + routers > CACHE_MAX {
            self.forget();
        }
        let mut distances = vec![FAR; routers];
        distances[to as usize] = 0;
        let mut reached = VecDeque::from([to]);
        while let Some(router) = reached.pop_front() {
            for (link, other) in topology.edges(router, Direction::Incoming) {
                if self.is_up(link) && distances[other as usize] == FAR {
                    distances[other as usize] = distances[router as usize] + 1;
                    reached.push_back(other);
                }
            }
        }
        self.held += routers;
        *entry(&mut self.distances, to as usize) = distances;
    }
}

/// The entry of a table that grows as far as it is used.
fn entry<T: Clone + Default>(table: &mut Vec<T>, at: usize) -> &mut T {
    if table.len() <= at {
        table.resize(at + 1, T::default());
    }
    &mut table[at]
}

#[cfg(test)]
mod tests {
    use super::super::TorusSpec;
    use super::*;

    #[test]
    fn overlapping_failures_are_counted() {
        let topology = TorusSpec::gemini([3, 3, 3]).build().unwrap();
        let mut down = Down::default();
        let link = topology.link_between(0, 1).unwrap();
        down.restore_link(&topology, link);
        down.restore_router(&topology, 0);
        down.fail_link(&topology, link);
        down.fail_link(&topology, link);
        down.restore_link(&topology, link);
        assert!(!down.is_up(link));
        down.fail_router(&topology, 1);
        down.restore_link(&topology, link);
        assert!(!down.is_up(link), "its router is still down");
        down.fail_router(&topology, 0);
        down.restore_router(&topology, 1);
        assert!(!down.is_up(link) && down.is_router_up(1) && !down.is_router_up(0));
        assert!(!down.is_up(topology.inject(NodeId(0))) && !down.is_up(topology.eject(NodeId(1))));
        assert!(down.is_up(topology.inject(NodeId(2))));
        // Six links each way, two each way for the two nodes.
        assert_eq!(down.count, 16);
        down.restore_router(&topology, 0);
        assert!(down.is_up(link) && down.is_clear());
    }

    #[test]
    fn routes_change_with_every_failure_and_come_back() {
        let topology = TorusSpec::gemini([5, 1, 1]).build().unwrap();
        let mut down = Down::default();
        let link = |from, to| topology.link_between(from, to);
        let to = NodeId(4);
        assert_eq!(topology.next(0, to, &mut down), link(0, 1));
        down.fail_link(&topology, link(1, 2).unwrap());
        assert_eq!(topology.next(0, to, &mut down), link(0, 4));
        assert_eq!(topology.next(1, to, &mut down), link(1, 0));
        // The other direction is a link of its own.
        assert_eq!(topology.next(2, NodeId(2), &mut down), link(2, 1));
        down.fail_link(&topology, link(3, 2).unwrap());
        assert_eq!(topology.next(0, to, &mut down), None);
        assert_eq!(topology.next(2, to, &mut down), Some(topology.eject(to)));
        down.restore_link(&topology, link(1, 2).unwrap());
        assert_eq!(topology.next(0, to, &mut down), link(0, 1));
        assert_eq!(topology.next(3, to, &mut down), link(3, 4));
        down.restore_link(&topology, link(3, 2).unwrap());
        assert_eq!(topology.next(3, to, &mut down), link(3, 2));
    }
}

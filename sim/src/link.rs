//! Links in use: who waits for whom, and when a message is across.
//!
//! A message crosses a link as one train of its wire bytes, and its head does not wait for its
//! tail (cut-through). The head enters as soon as the trains before it have left, the link is
//! busy for the train's serialisation time, and the head is at the far end one latency after it
//! entered. The message as a whole is there later by the greatest serialisation time of its way.
//!
//! Links serve in the order of arrival. A train's moment is therefore settled when its head
//! arrives, and is told at once: no event says "try again", nothing can be starved, and trains
//! that follow one another on one link never change places on the next. Queues are bounded all
//! the same: a train that finds more than the bound waiting before it stays where it is, on the
//! link it came by, and that link is held until there is room.

use selvedge_core::time::{Span, Time};

use crate::topology::{LinkId, Topology, Wire};

/// What became of a train at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// When its head is at the far end.
    pub arrives: Time,
    /// How long the train is on this link: its bytes at the link's rate.
    pub serialisation: Span,
    /// How long it could not enter the full queue, and held the link before; usually nothing.
    pub blocked: Span,
}

/// The state of all links of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Per link, when what is queued so far has left it.
    free_at: Vec<Time>,
    /// The bound of each queue in bytes.
    queue_bytes: u64,
}

impl Links {
    /// All links idle. A queue takes trains until `queue_bytes` wait in it; a train is never
    /// divided, so the last one may stand over.
    #[must_use]
    pub fn new(topology: &Topology, queue_bytes: u64) -> Self {
        Links { free_at: vec![Time::ZERO; topology.links()], queue_bytes }
    }

    /// A train whose head is before `link` at `now` goes across; `previous` is the link it came
    /// by, if it is on its way already.
    #[inline]
    pub fn cross(
        &mut self,
        topology: &Topology,
        link: LinkId,
        previous: Option<LinkId>,
        now: Time,
        wire_bytes: u32,
    ) -> Crossing {
        let wire = topology.wire(link);
        let free_at = self.free_at[link.index()];
        let start = free_at.max(now);
        let serialisation = wire.rate.time_of(u64::from(wire_bytes));
        self.free_at[link.index()] = start + serialisation;
        let blocked = self.excess(wire, start.since(now));
        if blocked > Span::ZERO
            && let Some(previous) = previous
        {
            let held = &mut self.free_at[previous.index()];
            *held = (*held).max(now + blocked);
        }
        Crossing { arrives: start + wire.latency, serialisation, blocked }
    }

    /// The responses to a train that crosses `link` at `now` take so many bytes the other way,
    /// where a link is as fast. They are reckoned at once, and hold only what comes later.
    #[inline]
    pub fn respond(&mut self, topology: &Topology, link: LinkId, now: Time, wire_bytes: u32) {
        let lasts = topology.wire(link).rate.time_of(u64::from(wire_bytes));
        let free_at = &mut self.free_at[topology.back(link).index()];
        *free_at = (*free_at).max(now) + lasts;
    }

    /// When a link has nothing left to send.
    #[must_use]
    pub fn free_at(&self, link: LinkId) -> Time {
        self.free_at[link.index()]
    }

    /// By how much a backlog, in time, is longer than the queue. Compares by multiplication and
    /// divides only when it is.
    fn excess(&self, wire: &Wire, backlog: Span) -> Span {
        if backlog == Span::ZERO {
            return Span::ZERO;
        }
        let bytes = u128::from(backlog.0) * u128::from(wire.rate.0);
        if bytes <= u128::from(self.queue_bytes) * 1_000_000_000_000 {
            return Span::ZERO;
        }
        Span(backlog.0.saturating_sub(wire.rate.time_of(self.queue_bytes).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{At, DirectSpec, Down, TorusSpec};
    use selvedge_core::id::NodeId;

    /// 1 GB/s and 500 ns a link: a byte is a nanosecond.
    fn star(queue_bytes: u64) -> (Topology, Links) {
        let topology = DirectSpec::crossbar(4).build().unwrap();
        let links = Links::new(&topology, queue_bytes);
        (topology, links)
    }

    const fn ns(n: u64) -> Time {
        Time(n * 1_000)
    }

    #[test]
    fn the_second_train_waits_as_long_as_the_first_is_long() {
        let (topology, mut links) = star(1 << 20);
        let link = topology.inject(NodeId(0));
        let first = links.cross(&topology, link, None, ns(10), 100);
        let second = links.cross(&topology, link, None, ns(10), 30);
        assert_eq!(first.arrives, ns(10 + 500));
        assert_eq!(first.serialisation, Span::from_ns(100));
        assert_eq!(second.arrives, ns(10 + 100 + 500));
        assert_eq!(second.serialisation, Span::from_ns(30));
        assert_eq!(links.free_at(link), ns(140));
        // A third one after a pause does not wait, and other links are not touched.
        assert_eq!(links.cross(&topology, link, None, ns(200), 1).arrives, ns(700));
        assert_eq!(links.free_at(topology.eject(NodeId(0))), Time::ZERO);
    }

    #[test]
    fn responses_take_the_other_direction_of_the_same_link() {
        let (topology, mut links) = star(1 << 20);
        let [out, home] = [topology.inject(NodeId(0)), topology.eject(NodeId(0))];
        links.cross(&topology, out, None, ns(10), 100);
        links.respond(&topology, out, ns(10), 9);
        assert_eq!((links.free_at(out), links.free_at(home)), (ns(110), ns(19)));
        links.respond(&topology, home, ns(10), 7);
        assert_eq!(links.free_at(out), ns(117));
    }

    #[test]
    fn a_way_of_many_hops_costs_its_latencies_and_one_train() {
        let topology = TorusSpec::gemini([6, 4, 9]).build().unwrap();
        let (mut links, mut down) = (Links::new(&topology, 1 << 16), Down::default());
        let to = NodeId(2 * topology.router_at(3, 2, 4).unwrap());
        let (mut now, mut slowest, mut link, mut hops) =
            (Time::ZERO, Span::ZERO, topology.inject(NodeId(0)), 0);
        let mut previous = None;
        loop {
            let crossing = links.cross(&topology, link, previous, now, 9_600);
            assert_eq!(crossing.blocked, Span::ZERO);
            (now, slowest) = (crossing.arrives, slowest.max(crossing.serialisation));
            previous = Some(link);
            match topology.enters(link) {
                At::Node(node) => break assert_eq!(node, to),
                At::Router(router) => link = topology.next(router, to, &mut down).unwrap(),
            }
            hops += 1;
        }
        // Inject, 3 + 2 + 4 links between routers, eject.
        assert_eq!(hops, 10);
        assert_eq!(topology.hops(NodeId(0), to), 9);
        assert_eq!(now, Time(9 * 105_000));
        // The slowest link of the way is the cable along y: 9,600 bytes at 4.6875 GB/s.
        assert_eq!(now + slowest, Time(9 * 105_000 + 2_048_000));
    }

    #[test]
    fn a_full_queue_holds_the_link_before_it() {
        let (topology, mut links) = star(100);
        let out = topology.eject(NodeId(3));
        let [a, b, c] = [0, 1, 2].map(|n| topology.inject(NodeId(n)));
        let crossing = links.cross(&topology, out, Some(a), ns(0), 150);
        assert_eq!((crossing.arrives, crossing.blocked), (ns(500), Span::ZERO));
        // 150 wait and 100 may: this one is in the queue from 50 on.
        let crossing = links.cross(&topology, out, Some(b), ns(0), 60);
        assert_eq!((crossing.arrives, crossing.blocked), (ns(650), Span::from_ns(50)));
        assert_eq!((links.free_at(a), links.free_at(b)), (Time::ZERO, ns(50)));
        // What is held longer already stays so.
        links.cross(&topology, c, None, ns(0), 400);
        let crossing = links.cross(&topology, out, Some(c), ns(0), 1);
        assert_eq!((crossing.arrives, crossing.blocked), (ns(710), Span::from_ns(110)));
        assert_eq!(links.free_at(c), ns(400));
        // The next train of the held link leaves when it is let go.
        assert_eq!(links.cross(&topology, b, None, ns(1), 10).arrives, ns(550));
        // With exactly the bound before it, a train is not blocked.
        let crossing = links.cross(&topology, out, Some(a), ns(111), 1);
        assert_eq!((crossing.arrives, crossing.blocked), (ns(711), Span::ZERO));
    }

    #[test]
    fn blocked_trains_leave_in_the_order_they_came_and_keep_the_link_busy() {
        let (topology, mut links) = star(0);
        let out = topology.eject(NodeId(3));
        let mut last = Time::ZERO;
        for n in 0..300u32 {
            let from = topology.inject(NodeId(n % 3));
            let crossing = links.cross(&topology, out, Some(from), ns(u64::from(n) / 3), 1 + n % 7);
            assert!(crossing.arrives > last, "trains {} and {n} change places", n - 1);
            last = crossing.arrives;
        }
        let bytes: u64 = (0..300).map(|n| 1 + n % 7).sum();
        assert_eq!(links.free_at(out), ns(bytes));
        let held = links.free_at(topology.inject(NodeId(2)));
        assert!(held > ns(100) && held < links.free_at(out), "{held}");
    }
}

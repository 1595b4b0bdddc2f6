//! The smallest complete program: two procs on two nodes play ping-pong over uGNI.

use std::sync::Arc;

use selvedge_core::{App, Fabric as Asking, Hold, NodeId, Notice, ProcName, Tag, Time};
use selvedge_core::ugni::Module;
use selvedge_sim::draw::Draws;
use selvedge_sim::fabric::{Fabric, Strategy, Timing};
use selvedge_sim::fault::Plan;
use selvedge_sim::topology::TorusSpec;
use selvedge_sim::ugni::Setup;
use selvedge_sim::watch::Watching;
use selvedge_sim::world::World;

/// Sends the ball back until it has been there often enough.
#[derive(Clone, Debug)]
struct Player {
    rounds: u32,
}

impl App for Player {
    fn start(&mut self, fabric: &mut impl Asking) {
        if fabric.me().rank == 0 {
            fabric.send(ProcName { job: 1, rank: 1 }, Tag(0), 8, Hold::Copied);
        }
    }

    fn notice(&mut self, fabric: &mut impl Asking, notice: Notice) {
        if let Notice::Arrived { from, tag, len, .. } = notice
            && self.rounds > 0
        {
            self.rounds -= 1;
            fabric.send(from, tag, len, Hold::Copied);
        }
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10);
    let fabric = Arc::new(Fabric::<Module> {
        topology: TorusSpec::gemini([2, 1, 1]).build().expect("a small torus"),
        timing: Timing::default(),
        setup: Setup::default(),
        job: 1,
        placement: vec![NodeId(0), NodeId(2)],
        plan: Plan::default(),
        strategy: Strategy::Fifo,
        draws: Draws::new(1),
    });
    let mut world = World::new(fabric, vec![Player { rounds }; 2], Watching { record: if rounds < 100 {1000} else {0}, ..Watching::default() });
    let end = world.run(Time::NEVER, u64::MAX, true);
    let unsettled = world.settle();
    if let Some(r) = &world.watch.recorder { for l in r.tail(1000) { println!("{l}"); } }
    println!("{end:?} at {} after {} events: {} delivered, {unsettled:?}, digest {:016x}", world.now(), world.watch.events, world.watch.delivered, world.watch.digest.value());
    println!("{:?}", world.watch.found);
    let lat = world.watch.latency.as_ref().unwrap();
    println!("p50 {} ps", lat.value_at_quantile(0.5));
}

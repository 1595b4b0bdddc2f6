//! The smallest complete program: two procs on two nodes play ping-pong over uGNI.

use std::sync::Arc;

use selvedge_core::ugni::Module;
use selvedge_core::{App, Fabric as Asking, Hold, NodeId, Notice, ProcName, Tag, Time};
use selvedge_sim::draw::Draws;
use selvedge_sim::fabric::{Fabric, Routing, Strategy, Timing};
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fabric = Arc::new(Fabric::<Module> {
        topology: TorusSpec::gemini([2, 1, 1]).build()?,
        routing: Routing::default(),
        timing: Timing::default(),
        setup: Setup::default(),
        job: 1,
        placement: vec![NodeId(0), NodeId(2)],
        plan: Plan::default(),
        strategy: Strategy::Fifo,
        draws: Draws::new(1),
    });
    let watching = Watching { record: 1_000, ..Watching::default() };
    let mut world = World::new(fabric, vec![Player { rounds: 2 }; 2], watching);
    world.run(Time::NEVER, u64::MAX, true);
    let unsettled = world.settle();
    for line in world.watch.recorder.iter().flat_map(|recorder| recorder.tail(1_000)) {
        println!("{line}");
    }
    let (delivered, digest) = (world.watch.delivered, world.watch.digest.value());
    println!("{delivered} messages, digest {digest:016x}, still under way: {unsettled:?}");
    Ok(())
}

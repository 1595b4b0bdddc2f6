use std::sync::Arc;
use selvedge_core::{App, Fabric as Asking, Hold, NodeId, Notice, ProcName, Tag};
use selvedge_core::ugni::{self, Module};
use selvedge_core::ugni::nic::Fault;
use selvedge_sim::draw::Draws;
use selvedge_sim::explore::{Bounds, Space};
use selvedge_sim::fabric::{Fabric, Strategy, Timing};
use selvedge_sim::fault::Plan;
use selvedge_sim::topology::DirectSpec;
use selvedge_sim::ugni::Setup;

#[derive(Clone, Debug, Hash)]
struct Twin { sends: u8, closes: bool, left: u8 }
impl App for Twin {
    fn start(&mut self, f: &mut impl Asking) {
        let peer = ProcName { job: 1, rank: 1 - f.me().rank };
        for _ in 0..self.sends { f.send(peer, Tag(0), 8, Hold::Copied); }
        if self.closes && self.sends > 0 { f.close(peer); }
    }
    fn notice(&mut self, _f: &mut impl Asking, n: Notice) {
        if let Notice::Arrived { .. } = n { self.left = self.left.saturating_sub(1); }
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let sends: Vec<u8> = args[1].split(',').map(|x| x.parse().unwrap()).collect();
    let closes: Vec<bool> = args[2].split(',').map(|x| x == "1").collect();
    let tries: u64 = args[3].parse().unwrap();
    let early: u8 = args[4].parse().unwrap();
    let faults: Vec<(Fault, u8)> = args[5..].iter().map(|w| (<Module as selvedge_sim::simulated::Simulated>::fault(w).unwrap(), 1)).collect();
    let mut module = ugni::Config { smsg_credits: 4, slab_mailboxes: 2, slabs_max: 4, connect_tries: tries, ..ugni::Config::default() };
    for t in [&mut module.resolve_timeout, &mut module.mailbox_retry, &mut module.session_retry, &mut module.post_retry, &mut module.answer_timeout, &mut module.close_timeout, &mut module.unbind_retry, &mut module.send_retry, &mut module.stall_timeout, &mut module.mailbox_rest, &mut module.rescan_delay] { *t = 0; }
    let nic = ugni::nic::Config { early_by: 0, hold_for: 0, ..Default::default() };
    let fabric = Arc::new(Fabric::<Module> { topology: DirectSpec::pair().build().unwrap(), timing: Timing::default(), setup: Setup { module, nic }, job: 1,
        placement: vec![NodeId(0), NodeId(1)], plan: Plan::default(), strategy: Strategy::Fifo, draws: Draws::new(1) });
    let apps = vec![Twin { sends: sends[0], closes: closes[0], left: 0 }, Twin { sends: sends[1], closes: closes[1], left: 0 }];
    let space = Space::new(fabric, apps, Bounds { faults, early, states: 8_000_000, ..Bounds::default() });
    let t = std::time::Instant::now();
    let o = space.search(|p| { if p.states % (1<<18) < (1<<14) { eprintln!("{p:?}"); } true });
    println!("{:?} settled {} complete {} in {:?} = {:.0} states/s", o.progress, o.settled, o.complete, t.elapsed(), o.progress.states as f64 / t.elapsed().as_secs_f64());
    if let Some(f) = o.found { for l in f.around.iter() { println!("{}", l.chars().take(230).collect::<String>()); } println!("{:?}\n{:?} {}", o.path, f.kind, f.rule);}
}

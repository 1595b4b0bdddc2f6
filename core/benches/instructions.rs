//! Instructions per step of a connected uGNI module, counted by callgrind: the same number on
//! every run, whatever else the machine does.
//!
//! `cargo bench -p selvedge-core --bench instructions` runs itself under valgrind once for each
//! kind of step and prints a line each.

use std::process::{Command as Process, ExitCode, Stdio};

use selvedge_core::ugni::record::{Body, Peer, Record};
use selvedge_core::ugni::{
    self, Completion, Config, Content, Identity, MboxId, Module, Op, PostState,
};
use selvedge_core::{
    Address, Command, Effect, Effects, EpId, Event, FragId, Generation, Hold, Machine, ProcName,
    Tag, Time,
};

/// The steps of one message out and one message in, in their order.
const STEPS: [&str; 6] = ["send", "send-done", "credits", "arrival", "message", "empty"];
const ROUNDS: u32 = 1_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--counted") => {
            let counted = arguments.get(1).map_or("", String::as_str);
            run(STEPS.iter().position(|&step| step == counted));
            ExitCode::SUCCESS
        }
        _ => count_all(),
    }
}

/// Runs every kind under valgrind.
fn count_all() -> ExitCode {
    let Ok(me) = std::env::current_exe() else { return ExitCode::FAILURE };
    for step in STEPS {
        let output = Process::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
            .arg("--toggle-collect=*counted_step*")
            .arg(&me)
            .args(["--counted", step])
            .stdout(Stdio::null())
            .output();
        let Ok(output) = output else {
            eprintln!("valgrind is missing. Install it, for instance: apt-get install valgrind");
            return ExitCode::FAILURE;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        let collected = said.lines().find_map(|line| line.split_once("Collected : "));
        match collected.and_then(|(_, number)| number.trim().parse::<u64>().ok()) {
            Some(all) => println!("{step:<10} {:>5} instructions", all / u64::from(ROUNDS)),
            None => {
                eprintln!("valgrind did not count:\n{said}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

type Fx = Effects<Effect<Op>>;

#[inline(never)]
fn counted_step(module: &mut Module, event: Event<Completion>, fx: &mut Fx) {
    let _ = module.step(Time(1), event, fx);
}

fn run(counted: Option<usize>) {
    const PEER: ProcName = ProcName { job: 1, rank: 1 };
    const EP: EpId = EpId(0);
    let (name, address) = (ProcName { job: 1, rank: 0 }, Address { nic: 0, instance: 0 });
    let mut module = Module::new(Identity { name, address, incarnation: 1 }, Config::default());
    let mut fx = ugni::effects();
    let from = Address { nic: 1, instance: 1 };
    let offer = Record {
        who: PEER,
        generation: Generation::born(1).next(),
        sees: Generation::NONE,
        over: Generation::NONE,
        body: Body::Offer(Peer { mbox: MboxId(7), index: 3, credits: 32, size: 1_024 }),
    };
    let (state, record) = (PostState::Completed, Some(offer.encode().into()));
    for event in [
        Event::Expired,
        Event::Command(Command::Connect { to: PEER }),
        Event::Completion(Completion::Resolved { ep: EP, card: Ok(from) }),
        Event::Completion(Completion::Registered { ok: true }),
        Event::Completion(Completion::Datagram { ep: Some(EP), state, from, record }),
        Event::Completion(Completion::Empty { ep: EP }),
    ] {
        let _ = module.step(Time(1), event, &mut fx);
        drop(fx.drain());
    }
    for n in 0..ROUNDS {
        let content = Content::User { tag: Tag(1), data: FragId(n) };
        let (tag, frag, len, hold) = (Tag(1), FragId(n), 64, Hold::Copied);
        let events = [
            Event::Command(Command::Send { to: PEER, tag, frag, len, hold }),
            Event::Completion(Completion::SendDone { ep: EP, seq: n, delivered: true }),
            Event::Completion(Completion::Credits { ep: EP, n: 1 }),
            Event::Completion(Completion::Arrival { index: EP.0 }),
            Event::Completion(Completion::Message { ep: EP, content, len: 64 }),
            Event::Completion(Completion::Empty { ep: EP }),
        ];
        for (at, event) in events.into_iter().enumerate() {
            if counted == Some(at) {
                counted_step(&mut module, event, &mut fx);
            } else {
                let _ = module.step(Time(1), event, &mut fx);
            }
            assert!(at == 2 || at == 5 || !fx.as_slice().is_empty(), "step {at} does something");
            drop(fx.drain());
        }
    }
}

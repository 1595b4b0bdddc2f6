//! Where the time goes: what each part of a machine adds.
//!
//! The machine is built up from one in which nothing takes time, part by part in the order of
//! `PARTS`, and measured each time. So the shares are those of the simulation itself, no formula
//! stands beside it, and they add up. Where parts work at the same time, as cut-through makes them
//! do, the first of them has the time, and a slower one behind it what it adds.

use crate::engine::EngineError;
use crate::quantity::{Duration, Rate};
use crate::schema::machine::{Fabric, Machine};

use super::probe::{Lab, Question};

/// What one part adds to a message, in picoseconds; less than nothing, if it helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The part.
    pub part: &'static str,
    /// What it adds to one message that waits for the one before.
    pub latency: i64,
    /// What it adds to the time from one message of a stream to the next.
    pub gap: i64,
}

/// A part: what it is called, and how to make it free.
type Part = (&'static str, fn(&mut Machine));

const NONE: Duration = Duration(selvedge_core::Span::ZERO);
/// So fast that nothing here takes a nanosecond.
const ENDLESS: Rate = Rate(1 << 60);

/// Changes what Gemini and Aries machines both have.
macro_rules! change {
    ($machine:ident, $parts:ident => $change:expr) => {
        match &mut $machine.fabric {
            Fabric::Gemini($parts) => $change,
            Fabric::Aries($parts) => $change,
            Fabric::Crossbar(_) => {}
        }
    };
}

/// The parts.
const PARTS: [Part; 18] = [
    ("routers and copper", |m| change!(m, parts => parts.hop_latency = NONE)),
    ("optical cables", |m| {
        if let Fabric::Aries(aries) = &mut m.fabric {
            aries.optical_latency = NONE;
        }
    }),
    ("NIC", |m| change!(m, parts => parts.nic_latency = NONE)),
    ("host interface", |m| change!(m, parts => parts.host_latency = NONE)),
    (INTERFACE, |m| change!(m, parts => parts.host_rate = ENDLESS)),
    ("FMA: rate of stores", |m| change!(m, parts => parts.fma_rate = ENDLESS)),
    ("BTE: start", |m| change!(m, parts => parts.bte_start = NONE)),
    ("BTE: rate", |m| change!(m, parts => parts.bte_rate = ENDLESS)),
    ("node link: rate", |m| change!(m, parts => parts.injection_rate = ENDLESS)),
    ("links: rate", |m| match &mut m.fabric {
        Fabric::Gemini(gemini) => {
            let rates = &mut gemini.link_rates;
            for rate in rates.x.iter_mut().chain(&mut rates.y).chain(&mut rates.z) {
                *rate = ENDLESS;
            }
        }
        Fabric::Aries(aries) => {
            (aries.rank1_rate, aries.rank2_rate, aries.rank3_rate) = (ENDLESS, ENDLESS, ENDLESS);
        }
        Fabric::Crossbar(_) => {}
    }),
    ("host: poll", |m| change!(m, parts => parts.poll_latency = NONE)),
    ("host: steps", |m| change!(m, parts => parts.event_cost = NONE)),
    ("MPI: opening memory", |m| change!(m, parts => parts.mpi.setup = Some(NONE))),
    ("MPI: copies", |m| change!(m, parts => parts.mpi.copy_rate = Some(ENDLESS))),
    ("MPI: send", |m| change!(m, parts => parts.mpi.send = Some(NONE))),
    ("MPI: receive", |m| change!(m, parts => parts.mpi.receive = Some(NONE))),
    ("MPI: later work", |m| change!(m, parts => parts.mpi.finish = Some(NONE))),
    ("MPI: shared memory", |m| change!(m, parts => parts.mpi.shared_memory = Some(NONE))),
];

const INTERFACE: &str = "host interface: rate";

/// The same machine with nothing in the way but the rate of its host interface.
pub(super) fn interface_alone(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    let others = PARTS.iter().filter(|(part, _)| *part != INTERFACE);
    others.for_each(|(_, free)| free(&mut machine));
    machine
}

/// The latency and the gap of a question, and what each part adds to them, as far as it does.
///
/// # Errors
/// When it cannot be measured.
pub fn shares(machine: &Machine, question: Question) -> Result<(Share, Vec<Share>), EngineError> {
    let mut shares = Vec::new();
    let mut before = Share { part: "nothing", latency: 0, gap: 0 };
    for at in 0..PARTS.len() {
        let mut some = machine.clone();
        PARTS[at + 1..].iter().for_each(|(_, free)| free(&mut some));
        let (part, _) = PARTS[at];
        let so_far = measure(&some, question, part)?;
        let (latency, gap) = (so_far.latency - before.latency, so_far.gap - before.gap);
        // What rounds to nothing is nothing to look at.
        if latency.abs().max(gap.abs()) >= 500 {
            shares.push(Share { part, latency, gap });
        }
        before = so_far;
    }
    Ok((Share { part: "total", ..before }, shares))
}

fn measure(
    machine: &Machine,
    question: Question,
    part: &'static str,
) -> Result<Share, EngineError> {
    let lab = Lab::new(machine)?;
    let latency = lab.latency(question)?;
    let gap = if question.from == question.to { latency } else { lab.gap(question)? };
    let [latency, gap] = [latency, gap].map(|span| i64::try_from(span.0).unwrap_or(i64::MAX));
    Ok(Share { part, latency, gap })
}

//! Measurements between two nodes of a machine, simulated.

use std::sync::Arc;

use selvedge_core::ugni::{self, Module};
use selvedge_core::{NodeId, Span, Time};
use selvedge_sim::fabric::{Fabric, Timing};
use selvedge_sim::topology::Topology;
use selvedge_sim::ugni::Setup;
use selvedge_sim::watch::{Pattern, Watching};
use selvedge_sim::world::World;

use super::profile::Profile;
use super::rank::{How, ROUNDS, Rank, Shape, Test};
use crate::engine::EngineError;
use crate::schema::machine::Machine;
use crate::simulate::lower;

/// Messages under way at a time where bandwidth is measured, as the OSU tests have it.
const WINDOW: u32 = 64;
/// Bytes under way at a time: of messages that are longer than a mebibyte there are fewer.
const WINDOW_BYTES: u32 = 64 << 20;
/// Longest message to ask about.
pub const BYTES_MAX: u32 = 64 << 20;
/// No measurement takes so many events.
const EVENTS_MAX: u64 = 100_000_000;

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// How bytes travel.
    pub how: How,
    /// From here,
    pub from: NodeId,
    /// and to there.
    pub to: NodeId,
    /// So many.
    pub bytes: u32,
}

impl Question {
    /// Bytes a second, with so many picoseconds from one to the next.
    #[must_use]
    pub fn rate(&self, gap: u64) -> u64 {
        let rate = u128::from(self.bytes) * 1_000_000_000_000 / u128::from(gap.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// A machine on which nothing else runs.
#[derive(Clone, Debug)]
pub struct Lab {
    fabric: Fabric<Module>,
    profile: Option<Profile>,
}

impl Lab {
    /// Builds a machine.
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn new(machine: &Machine) -> Result<Lab, EngineError> {
        Ok(Lab { fabric: lower::quiet(machine)?, profile: Profile::of(machine) })
    }

    /// Where its links go.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.fabric.topology
    }

    /// How long its parts take.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.fabric.timing
    }

    /// The same machine with a transport that leaves everything to the engine for blocks.
    #[must_use]
    pub fn without_stores(&self) -> Lab {
        let mut lab = self.clone();
        let module = ugni::Config { fma_put_max: 0, fma_get_max: 0, ..*lab.fabric.setup.module };
        lab.fabric.setup = Setup::new(module, *lab.fabric.setup.nic);
        lab
    }

    /// What MPI costs on it.
    #[must_use]
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }

    /// How long one takes that waits for the one before. For a put, until its bytes are in the
    /// memory of the other side; for a get, until the caller knows that they are in its own; for
    /// a message, half of a round trip, the host's part in it included.
    ///
    /// # Errors
    /// When that cannot be measured.
    pub fn latency(&self, question: Question) -> Result<Span, EngineError> {
        if question.from == question.to {
            return self.within(question);
        }
        let world = self.run(question, Shape::Latency)?;
        let rank = &world.procs()[0].app;
        let ended = ended(rank)?;
        Ok(match question.how {
            How::Put => {
                let arrived = world.watch.met.first().and_then(|met| met.last);
                arrived.unwrap_or(ended).since(rank.last)
            }
            How::Get => ended.since(rank.last),
            How::Message | How::Mpi => Span(ended.since(rank.began).0 / u64::from(2 * ROUNDS)),
        })
    }

    /// Bytes a second with 64 under way at a time; fewer of more than a mebibyte.
    ///
    /// # Errors
    /// When that cannot be measured.
    pub fn bandwidth(&self, question: Question) -> Result<u64, EngineError> {
        Ok(question.rate(self.gap(question)?.0))
    }

    /// From one message of a stream to the next, on average.
    ///
    /// # Errors
    /// When that cannot be measured.
    pub fn gap(&self, question: Question) -> Result<Span, EngineError> {
        if question.from == question.to {
            return Err(unable("there is no stream within a node".to_owned()));
        }
        let window = (WINDOW_BYTES / question.bytes.max(1)).clamp(4, WINDOW);
        let world = self.run(question, Shape::Window(window))?;
        let rank = &world.procs()[0].app;
        let all = ended(rank)?.since(rank.began);
        Ok(Span(all.0 / u64::from(window * ROUNDS)))
    }

    /// How long it takes until two procs that know nothing of each other are connected.
    ///
    /// # Errors
    /// When that cannot be measured.
    pub fn connecting(&self, from: NodeId, to: NodeId) -> Result<Span, EngineError> {
        let world = self.run(Question { how: How::Message, from, to, bytes: 0 }, Shape::Latency)?;
        Ok(world.procs()[0].app.ready.since(Time::ZERO))
    }

    /// Two procs of one node do not use the fabric.
    fn within(&self, question: Question) -> Result<Span, EngineError> {
        let (How::Mpi, Some(profile)) = (question.how, &self.profile) else {
            return Err(unable("within a node only `mpi` is known".to_owned()));
        };
        let Profile { send, receive, shared_memory, .. } = *profile;
        // Copied into the shared memory and out of it again.
        Ok(send + shared_memory + receive + profile.copying(question.bytes) * 2)
    }

    fn run(&self, question: Question, shape: Shape) -> Result<World<Module, Rank>, EngineError> {
        let Question { how, from, to, bytes } = question;
        let nodes = self.fabric.topology.nodes();
        if let Some(node) = [from, to].into_iter().find(|node| node.0 >= nodes) {
            return Err(unable(format!("{node} is beyond the last one, {}", nodes - 1)));
        }
        let profile = match how {
            How::Mpi => self.profile.clone().ok_or_else(|| {
                unable("what MPI costs is known of Gemini and Aries only".to_owned())
            })?,
            How::Put | How::Get | How::Message => Profile::none(),
        };
        let test = Arc::new(Test { how, shape, bytes, profile });
        let fabric = Fabric { placement: vec![from, to], ..self.fabric.clone() };
        let arrival = Pattern { event: "put-request".to_owned(), proc: Some(1) };
        let patterns = if how == How::Put { vec![arrival] } else { Vec::new() };
        let watching = Watching { digest: false, patterns, ..Watching::default() };
        let ranks = vec![Rank::new(test); 2];
        let mut world = World::new(Arc::new(fabric), ranks, watching);
        world.run(Time::NEVER, EVENTS_MAX, true);
        let rule = world.watch.found.first().map(|found| found.rule);
        let failed = world.procs().iter().find_map(|proc| proc.app.failed);
        match rule.or_else(|| failed.map(|reason| reason.word())) {
            Some(why) => Err(unable(format!("the transport does not carry that: {why}"))),
            None => Ok(world),
        }
    }
}

fn ended(rank: &Rank) -> Result<Time, EngineError> {
    rank.ended.ok_or_else(|| unable("the measurement did not come to an end".to_owned()))
}

fn unable(why: String) -> EngineError {
    EngineError::Unable(why)
}

//! Published figures of Gemini and Aries, and what the simulated machines say to each.
//!
//! A figure that describes the device is read from the device's laws or from a built topology; a
//! time or a bandwidth is measured in a world. None is compared with a copy of itself.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use selvedge_core::NodeId;
use selvedge_sim::topology::{LinkId, Topology};
use serde::Serialize;

use super::parts;
use super::probe::{Lab, Question};
use super::rank::How;
use crate::engine::EngineError;
use crate::machine;
use crate::schema::machine::{Machine, MachineRef};

mod aries;
mod gemini;

/// A published figure and how it is measured here.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub id: String,
    /// What is measured, and of what.
    pub what: &'static str,
    /// What was published, in the smallest unit; `None` where nothing was found.
    pub published: Option<u64>,
    /// Of which kind it is.
    pub unit: Unit,
    /// On which side of it the simulated figure may lie.
    pub bound: Bound,
    /// How far from it, in parts per thousand.
    pub within: u32,
    /// Who published it.
    pub source: &'static str,
    /// Why nothing is asserted of it, if that is so.
    pub only_shown: Option<&'static str>,
    measure: Measure,
}

/// How the same figure is had from the model.
#[derive(Clone, Copy, Debug)]
enum Measure {
    /// A latency.
    Latency(Ask),
    /// A bandwidth.
    Bandwidth(Ask),
    /// Something else; `None` where the model has no such thing.
    Other(fn(&mut Labs) -> Measured),
}

/// Between which nodes of which machine something is measured.
#[derive(Clone, Copy, Debug)]
struct Ask {
    machine: &'static str,
    how: How,
    ends: Ends,
    bytes: u32,
}

/// Two nodes.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// The first ones of the routers at two places.
    Places([[u32; 3]; 2]),
    /// Two of the first router.
    Beside,
    /// One and the same.
    Same,
}

/// What a measurement gives.
type Measured = Result<Option<u64>, EngineError>;

/// What a figure counts, in the unit in which it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Unit {
    /// Picoseconds.
    #[serde(rename = "ps")]
    Time,
    /// Bytes a second.
    #[serde(rename = "B/s")]
    Rate,
    /// Bits a second.
    #[serde(rename = "bit/s")]
    BitRate,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Things.
    #[serde(rename = "count")]
    Count,
    /// Parts per million.
    #[serde(rename = "ppm")]
    Fraction,
}

/// On which side of a published figure the simulated one may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// On both.
    About,
    /// Below, or above it by the tolerance.
    AtMost,
    /// Above, or below it by the tolerance.
    AtLeast,
}

/// How the simulated figure compares with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The simulated figure, if the model has it.
    pub simulated: Option<u64>,
    /// How far it is from the published one, in parts per million of that.
    pub deviation: Option<i64>,
    /// Whether it lies within the tolerance.
    pub holds: bool,
}

impl Row {
    /// Measures, and compares.
    ///
    /// # Errors
    /// When it cannot be measured.
    pub fn verdict(&self, labs: &mut Labs) -> Result<Verdict, EngineError> {
        let simulated = match self.measure {
            Measure::Latency(ask) => labs.latency(ask),
            Measure::Bandwidth(ask) => labs.bandwidth(ask),
            Measure::Other(measure) => measure(labs),
        }?;
        let deviation = simulated.zip(self.published).map(|(simulated, published)| {
            let apart = i128::from(simulated) - i128::from(published);
            let deviation = apart * 1_000_000 / i128::from(published.max(1));
            i64::try_from(deviation).unwrap_or(i64::MAX)
        });
        let holds = deviation.is_some_and(|deviation| {
            let within = i64::from(self.within) * 1_000;
            (self.bound == Bound::AtMost || deviation >= -within)
                && (self.bound == Bound::AtLeast || deviation <= within)
        });
        Ok(Verdict { simulated, deviation, holds })
    }
}

/// Every row: Gemini's, then Aries'.
#[must_use]
pub fn rows() -> Vec<Row> {
    [gemini::rows(), aries::rows()].concat()
}

const fn at(machine: &'static str, how: How, places: [[u32; 3]; 2], bytes: u32) -> Ask {
    Ask { machine, how, ends: Ends::Places(places), bytes }
}

const fn beside(machine: &'static str, how: How, bytes: u32) -> Ask {
    Ask { machine, how, ends: Ends::Beside, bytes }
}

/// A latency that a simulated one has to be near, by so many parts per thousand.
fn latency(
    id: &str,
    what: &'static str,
    ns: u64,
    within: u32,
    source: &'static str,
    ask: Ask,
) -> Row {
    let published = (ns * 1_000, Unit::Time);
    row(id, what, published, within, source, Measure::Latency(ask))
}

/// A bandwidth, in megabytes a second.
fn bandwidth(
    id: &str,
    what: &'static str,
    mbps: u64,
    within: u32,
    source: &'static str,
    ask: Ask,
) -> Row {
    let published = (mbps * 1_000_000, Unit::Rate);
    row(id, what, published, within, source, Measure::Bandwidth(ask))
}

/// Something else.
fn figure(
    id: &str,
    what: &'static str,
    published: (u64, Unit),
    within: u32,
    source: &'static str,
    measure: fn(&mut Labs) -> Measured,
) -> Row {
    row(id, what, published, within, source, Measure::Other(measure))
}

fn row(
    id: &str,
    what: &'static str,
    (published, unit): (u64, Unit),
    within: u32,
    source: &'static str,
    measure: Measure,
) -> Row {
    let (id, published) = (id.to_owned(), Some(published));
    let (bound, only_shown) = (Bound::About, None);
    Row { id, what, published, unit, bound, within, source, only_shown, measure }
}

/// Something that nobody was found to have published.
fn unpublished(id: &str, what: &'static str, unit: Unit, measure: Measure) -> Row {
    let row = row(id, what, (0, unit), 0, "none found", measure);
    Row { published: None, only_shown: Some("nothing published was found"), ..row }
}

impl Row {
    fn bound(self, bound: Bound) -> Row {
        Row { bound, ..self }
    }

    fn only_shown(self, why: &'static str) -> Row {
        Row { only_shown: Some(why), ..self }
    }
}

const fn bytes(bytes: u64) -> (u64, Unit) {
    (bytes, Unit::Bytes)
}

const fn count(count: u64) -> (u64, Unit) {
    (count, Unit::Count)
}

/// Machines, each built when it is first asked for. Beside those that have a file there are two
/// small ones as their class is in general, `gemini` and `aries`, and one with all the cables that
/// there can be, `aries-full`.
#[derive(Debug, Default)]
pub struct Labs(BTreeMap<&'static str, Lab>);

impl Labs {
    fn lab(&mut self, name: &'static str) -> Result<&Lab, EngineError> {
        if !self.0.contains_key(name) {
            let lab = Lab::new(&machine(name)?)?;
            self.0.insert(name, lab);
        }
        self.0.get(name).ok_or_else(|| EngineError::Unable(format!("no machine `{name}`")))
    }

    fn topology(&mut self, name: &'static str) -> Result<&Topology, EngineError> {
        Ok(self.lab(name)?.topology())
    }

    fn latency(&mut self, ask: Ask) -> Measured {
        let question = self.question(ask)?;
        self.lab(ask.machine)?.latency(question).map(|span| Some(span.0))
    }

    fn bandwidth(&mut self, ask: Ask) -> Measured {
        let question = self.question(ask)?;
        self.lab(ask.machine)?.bandwidth(question).map(Some)
    }

    fn question(&mut self, ask: Ask) -> Result<Question, EngineError> {
        let Ask { machine, how, ends, bytes } = ask;
        let topology = self.topology(machine)?;
        let node = |[x, y, z]: [u32; 3]| {
            let none = || EngineError::Unable(format!("{machine} has no router {x}, {y}, {z}"));
            let router = topology.router_at(x, y, z);
            router.map(|router| NodeId(topology.first_node(router))).ok_or_else(none)
        };
        let (from, to) = match ends {
            Ends::Places([from, to]) => (node(from)?, node(to)?),
            Ends::Beside => (NodeId(0), NodeId(1)),
            Ends::Same => (NodeId(0), NodeId(0)),
        };
        Ok(Question { how, from, to, bytes })
    }

    /// What the last of several hops adds to a put of eight bytes along the places.
    fn hop(&mut self, name: &'static str, [a, b, c]: [[u32; 3]; 3]) -> Measured {
        let near = self.latency(at(name, How::Put, [a, b], 8))?;
        let far = self.latency(at(name, How::Put, [a, c], 8))?;
        Ok(far.zip(near).map(|(far, near)| far.saturating_sub(near)))
    }

    /// Of two nodes of two groups that are as many hops apart as there are, 8 bytes.
    fn farthest(&mut self, machine: &'static str, how: How) -> Measured {
        let topology = self.topology(machine)?;
        let [_, chassis, slots] = topology.dims();
        let group = chassis * slots;
        let pairs = (0..group).flat_map(|a| (group..2 * group).map(move |b| [a, b]));
        let farthest = pairs.max_by_key(|&[a, b]| topology.distance(a, b)).unwrap_or([0, 0]);
        let [from, to] = farthest.map(|router| NodeId(topology.first_node(router)));
        let question = Question { how, from, to, bytes: 8 };
        self.lab(machine)?.latency(question).map(|span| Some(span.0))
    }

    /// The latency of 8 bytes, whichever is slower of puts and gets by the engine for blocks.
    fn slowest(&mut self, machine: &'static str, places: [[u32; 3]; 2]) -> Measured {
        let put = self.question(at(machine, How::Put, places, 8))?;
        let get = Question { how: How::Get, ..put };
        let lab = self.lab(machine)?.without_stores();
        Ok(Some(lab.latency(put)?.max(lab.latency(get)?).0))
    }

    /// How long two procs take to connect.
    fn connecting(&mut self, machine: &'static str, places: [[u32; 3]; 2]) -> Measured {
        let Question { from, to, .. } = self.question(at(machine, How::Message, places, 0))?;
        self.lab(machine)?.connecting(from, to).map(|span| Some(span.0))
    }

    /// What the interface between host and NIC lets through, with nothing else in the way.
    fn interface(&mut self, name: &'static str, places: [[u32; 3]; 2]) -> Measured {
        let question = self.question(at(name, How::Put, places, 1 << 20))?;
        let alone = Lab::new(&parts::interface_alone(&machine(name)?))?;
        alone.bandwidth(question).map(Some)
    }

    /// The raw rate of the link between two routers.
    fn link(&mut self, name: &'static str, places: [[u32; 3]; 2]) -> Measured {
        let topology = self.topology(name)?;
        let [from, to] = places.map(|[x, y, z]| topology.router_at(x, y, z));
        let link = from.zip(to).and_then(|(from, to)| topology.link_between(from, to));
        Ok(link.map(|link| topology.wire(link).rate.0))
    }

    /// The links that leave a router for others.
    fn links_of(&mut self, name: &'static str, router: u32) -> Result<Vec<LinkId>, EngineError> {
        let topology = self.topology(name)?;
        let others = (0..topology.routers()).filter_map(|to| topology.link_between(router, to));
        Ok(others.collect())
    }

    /// How many nodes the first router has.
    fn nodes_per_router(&mut self, name: &'static str) -> Measured {
        let topology = self.topology(name)?;
        let here = |&node: &u32| topology.router_of(NodeId(node)) == 0;
        Ok(Some((0..topology.nodes()).filter(here).count() as u64))
    }

    /// The data rate of the link between a node and its router, which carries puts of 64 bytes
    /// that take `wire` bytes each.
    fn injection(&mut self, name: &'static str, wire: u64) -> Measured {
        let topology = self.topology(name)?;
        let rate = topology.wire(topology.inject(NodeId(0))).rate.0;
        Ok(Some(rate * 64 / wire))
    }

    /// The longest MPI message that does without a second one, found where latency jumps.
    fn longest_whole(&mut self, name: &'static str, places: [[u32; 3]; 2]) -> Measured {
        let mut lengths = (6..=16).map(|power| 1 << power);
        let mut jump = |len: u32| -> Result<bool, EngineError> {
            let short = self.latency(at(name, How::Mpi, places, len))?;
            let long = self.latency(at(name, How::Mpi, places, len + 1))?;
            Ok(short.zip(long).is_some_and(|(short, long)| long > short + 500_000))
        };
        lengths.try_fold(None, |found, len| match found {
            None => Ok(jump(len)?.then_some(u64::from(len))),
            found => Ok(found),
        })
    }

    /// The length from which on an engine that has to be started moves data sooner than stores
    /// do, to a multiple of 64 bytes.
    fn crossover(&mut self, name: &'static str) -> Measured {
        let timing = self.lab(name)?.timing();
        let time = |mover, data| {
            let (start, lasts) =
                timing.moving(&selvedge_core::Load { mover, data, wire: 0, back: 0 });
            start + lasts
        };
        let mut lengths = (1..1_024).map(|n| n * 64);
        let sooner = |&data: &u32| {
            time(selvedge_core::Mover::Dma, data) < time(selvedge_core::Mover::Processor, data)
        };
        Ok(lengths.find(sooner).map(u64::from))
    }
}

fn machine(name: &'static str) -> Result<Machine, EngineError> {
    let class = match name {
        "gemini" => Some(r#"{"gemini": {"dims": [4, 4, 16]}}"#),
        "aries" => Some(r#"{"aries": {"groups": 2, "cables": 6}}"#),
        // So many groups, with so many cables, leave no socket empty.
        "aries-full" => Some(r#"{"aries": {"groups": 6, "cables": 48}}"#),
        _ => None,
    };
    let reference = match class {
        Some(text) => serde_json::from_str(text).map_err(|e| EngineError::Unable(e.to_string()))?,
        None => MachineRef::Named(name.to_owned()),
    };
    machine::resolve(&reference, Path::new("."))
        .map_err(|error| EngineError::Unable(format!("machine {name}: {error:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_one_sided_where_they_say_so() {
        let verdict = |bound, simulated: fn(&mut Labs) -> Measured| {
            let row = figure("r", "", (1_000, Unit::Count), 100, "", simulated);
            row.bound(bound).verdict(&mut Labs::default()).expect("it is measured")
        };
        for (bound, low, high) in [
            (Bound::About, false, false),
            (Bound::AtMost, true, false),
            (Bound::AtLeast, false, true),
        ] {
            assert!(verdict(bound, |_| Ok(Some(900))).holds);
            assert!(verdict(bound, |_| Ok(Some(1_100))).holds);
            assert_eq!(verdict(bound, |_| Ok(Some(899))).holds, low);
            assert_eq!(verdict(bound, |_| Ok(Some(1_101))).holds, high);
            assert!(!verdict(bound, |_| Ok(None)).holds, "what is not there holds nothing");
        }
        assert_eq!(verdict(Bound::About, |_| Ok(Some(899))).deviation, Some(-101_000));
    }

    #[test]
    fn every_row_has_a_name_of_its_own_and_a_source() {
        let rows = rows();
        let mut ids: Vec<_> = rows.iter().map(|row| row.id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rows.len());
        assert!(rows.iter().all(|row| !row.source.is_empty() && !row.what.is_empty()));
    }
}

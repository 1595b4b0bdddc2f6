//! Whether the parts of a scenario make sense together: indices that exist, numbers that fit,
//! words that the transport knows. Arithmetic is checked, so absurd sizes are refused at once.

mod expect;
mod faults;
mod workload;

use std::collections::BTreeMap;

use crate::diagnostic::unknown;
use crate::machine::{NODES_MAX, Problem};
use crate::schema::Scenario;
use crate::schema::machine::Machine;
use crate::schema::procs::Placement;
use crate::schema::schedule::{Schedule, Seeds};
use crate::schema::transport::resolve;
use crate::spanned::Path;
use crate::vocabulary::Vocabulary;

/// How many procs `scenario` has on `machine`.
#[must_use]
pub fn proc_count(scenario: &Scenario, machine: &Machine) -> u32 {
    let procs = &scenario.procs;
    procs.count.unwrap_or_else(|| match &procs.placement {
        Placement::By(_) => machine.node_count().saturating_mul(procs.per_node),
        Placement::On(nodes) => u32::try_from(nodes.len()).unwrap_or(u32::MAX),
    })
}

/// Everything that is wrong with `scenario` on `machine`.
#[must_use]
pub fn problems(scenario: &Scenario, machine: &Machine) -> Vec<Problem> {
    let mut check = Check {
        machine,
        words: Vocabulary::of(scenario.transport.name()),
        procs: proc_count(scenario, machine),
        problems: Vec::new(),
    };
    check.names(scenario);
    check.transport(scenario);
    check.placement(scenario);
    workload::check(&mut check, &scenario.workload);
    faults::check(&mut check, &scenario.faults);
    check.schedule(scenario);
    expect::check(&mut check, scenario);
    check.limits(scenario);
    check.problems
}

struct Check<'a> {
    machine: &'a Machine,
    words: &'static Vocabulary,
    procs: u32,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn problem(&mut self, path: &Path, message: impl Into<String>) {
        self.problems.push((path.clone(), message.into()));
    }

    /// Each of `list` must be below `end`; `what` names one of them.
    fn indices(&mut self, path: &Path, what: &str, list: &[u32], end: u32) {
        for (index, &n) in list.iter().enumerate() {
            self.index(&path.item(index), what, n, end);
        }
    }

    fn index(&mut self, path: &Path, what: &str, n: u32, end: u32) {
        if n >= end {
            let last = end.saturating_sub(1);
            self.problem(path, format!("there is no {what} {n}: they are numbered 0 to {last}"));
        }
    }

    fn proc(&mut self, path: &Path, proc: u32) {
        self.index(path, "proc", proc, self.procs);
    }

    /// `word` must be one of `known`, unless that list is open.
    fn word(&mut self, path: &Path, kind: &str, word: &str, known: &[&str]) {
        if !known.is_empty() && !known.contains(&word) {
            self.problem(path, unknown(kind, word, known));
        }
    }

    fn names(&mut self, scenario: &Scenario) {
        let sound = !scenario.name.is_empty()
            && scenario.name.split('-').all(|part| {
                !part.is_empty()
                    && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            });
        if !sound {
            let message = "a name is words of a-z and 0-9 joined by `-`: `both-sides-connect`";
            self.problem(&Path::root().key("name"), message);
        }
    }

    fn transport(&mut self, scenario: &Scenario) {
        let path = Path::root().key("transport");
        let name = scenario.transport.name();
        if !self.machine.transports().contains(&name) {
            let has: Vec<&str> = self.machine.transports().iter().map(|it| it.word()).collect();
            let (machine, name, has) = (&self.machine.name, name.word(), has.join(", "));
            let message = format!("machine `{machine}` does not speak `{name}`, it speaks: {has}");
            self.problem(&path, message);
        }
        let tables = [
            ("tunable", path.key(name.word()), scenario.transport.tunables(), self.words.tunables),
            ("NIC parameter", Path::root().key("nic"), &scenario.nic, self.words.nic),
        ];
        for (kind, path, values, table) in tables {
            for (name, value) in values {
                if let Err(message) = resolve(kind, table, name, value) {
                    self.problem(&path.key(name), message);
                }
            }
        }
    }

    fn placement(&mut self, scenario: &Scenario) {
        let path = Path::root().key("procs");
        let procs = &scenario.procs;
        let nodes = self.machine.node_count();
        let room = u64::from(nodes) * u64::from(procs.per_node);
        if procs.per_node == 0 {
            self.problem(&path.key("per_node"), "must be at least 1");
        } else if self.procs == 0 {
            self.problem(&path.key("count"), "must be at least 1");
        } else if u64::from(self.procs) > room {
            let (count, per_node) = (self.procs, procs.per_node);
            let message = format!(
                "{count} procs do not fit: {nodes} nodes with {per_node} each hold {room}, \
                 raise `per_node`"
            );
            self.problem(&path.key("count"), message);
        } else if self.procs > NODES_MAX {
            let message = format!("{} procs are too many, the most is {NODES_MAX}", self.procs);
            self.problem(&path.key("count"), message);
        }
        let Placement::On(list) = &procs.placement else { return };
        let path = path.key("placement");
        self.indices(&path, "node", list, nodes);
        if list.len() as u64 != u64::from(self.procs) {
            let message = format!("places {} procs, but there are {}", list.len(), self.procs);
            self.problem(&path, message);
        }
        let mut on: BTreeMap<u32, u32> = BTreeMap::new();
        for (index, node) in list.iter().enumerate() {
            let here = on.entry(*node).or_default();
            *here += 1;
            if *here == procs.per_node.saturating_add(1) {
                let message =
                    format!("node {node} holds more than {}: raise `per_node`", procs.per_node);
                self.problem(&path.item(index), message);
            }
        }
    }

    fn schedule(&mut self, scenario: &Scenario) {
        if let Schedule::Pct(pct) = scenario.schedule {
            let path = Path::root().key("schedule").key("pct");
            if !(1..=64).contains(&pct.depth) {
                self.problem(&path.key("depth"), "must lie between 1 and 64");
            }
            if pct.steps == 0 {
                self.problem(&path.key("steps"), "must be at least 1");
            }
        }
        if scenario.seeds.count() == 0 {
            let message = match scenario.seeds {
                Seeds::List(_) => "name at least one seed, or leave the key out",
                Seeds::Range(_) => "no seed lies there: `to` must be greater than `from`",
            };
            self.problem(&Path::root().key("seeds"), message);
        }
    }

    fn limits(&mut self, scenario: &Scenario) {
        let root = Path::root();
        let (limits, explore) = (&scenario.limits, &scenario.explore);
        for (path, zero) in [
            (root.key("limits").key("time"), limits.time.0.0 == 0),
            (root.key("limits").key("events"), limits.events == 0),
            (root.key("explore").key("max_states"), explore.max_states == 0),
            (root.key("explore").key("generations"), explore.generations == 0),
            (root.key("watch").key("check_every"), scenario.watch.check_every == 0),
        ] {
            if zero {
                self.problem(&path, "must be more than zero");
            }
        }
        let path = root.key("explore").key("faults");
        let nic = self.words.nic_faults.iter().map(|fault| fault.word);
        let known: Vec<&str> =
            crate::vocabulary::SEARCH_FAULTS.iter().copied().chain(nic).collect();
        for word in explore.faults.keys() {
            self.word(&path.key(word), "fault", word, &known);
        }
    }
}

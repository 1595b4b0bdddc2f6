//! Whether what happened is what was expected.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::diagnostic::unknown;
use crate::engine::{Found, History, Kind, Latency, Matched};
use crate::load::Loaded;
use crate::quantity::Duration;
use crate::schema::expect::{Count, Pattern, SpanBounds, Tally};
use selvedge_core::time::{Span, Time};

/// How a run came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As expected.
    Passed,
    /// A rule was broken or an expectation not met.
    Failed,
    /// It proved nothing: an armed fault never struck, or nothing was sent.
    Vacuous,
    /// A limit was hit before there was a verdict.
    Limit,
}

impl Verdict {
    /// As reports spell it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Vacuous => "vacuous",
            Verdict::Limit => "limit",
        }
    }
}

/// One run, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The scenario's name.
    pub scenario: String,
    /// Its file, as the user named it.
    pub file: String,
    /// The seed.
    pub seed: u64,
    /// How it came out.
    pub verdict: Verdict,
    /// Why it is `vacuous` or ended at a limit, if it did.
    pub reason: Option<String>,
    /// Everything that was wrong.
    pub violations: Vec<Violation>,
    /// What happened.
    pub history: History,
}

impl Outcome {
    /// Times from send to delivery.
    #[must_use]
    pub const fn latency(&self) -> &Latency {
        &self.history.latency
    }
}

/// Something that was wrong in a run, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Violation {
    /// The rule that was broken, or the expectation that was not met.
    pub rule: String,
    /// Whether something happened that must not, or something that must did not.
    pub kind: Kind,
    /// When, in picoseconds since the start; `null` when it is about the run as a whole.
    pub at_ps: Option<u64>,
    /// What exactly was the matter.
    pub detail: String,
    /// The events around it, oldest first.
    pub around: Vec<String>,
    /// The command that repeats it.
    pub repeat: String,
}

/// Judges what happened in one run of `scenario`.
#[must_use]
pub fn judge(scenario: &Loaded, seed: u64, history: History) -> Outcome {
    let file = scenario.path.display().to_string();
    let mut judge = Judge {
        repeat: repeat("run", &file, Some(seed)),
        tail: &history.tail,
        violations: Vec::new(),
    };
    for found in &history.violations {
        judge.found(found);
    }
    // A run that was cut short has met its limit, not its expectations; what it did wrong counts.
    if history.limit.is_none() {
        judge.expectations(scenario, &history);
    }
    judge.forbidden(scenario, &history);
    let violations = judge.violations;
    let reason = history.limit.as_ref().map(|limit| format!("hit the limit of {limit}"));
    let (verdict, reason) = match (violations.is_empty(), reason, vacuous(scenario, &history)) {
        (false, reason, _) => (Verdict::Failed, reason),
        (true, Some(reason), _) => (Verdict::Limit, Some(reason)),
        (true, None, Some(reason)) => (Verdict::Vacuous, Some(reason)),
        (true, None, None) => (Verdict::Passed, None),
    };
    let scenario = scenario.scenario.name.clone();
    Outcome { scenario, file, seed, verdict, reason, violations, history }
}

/// The command that repeats something, quoted for a shell where that is needed.
#[must_use]
pub fn repeat(verb: &str, file: &str, seed: Option<u64>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    let file = if !file.is_empty() && !file.starts_with('-') && file.chars().all(plain) {
        file.to_owned()
    } else {
        format!("-- '{}'", file.replace('\'', r"'\''"))
    };
    match seed {
        Some(seed) => format!("selvedge {verb} --seed {seed} {file}"),
        None => format!("selvedge {verb} {file}"),
    }
}

/// How often each fault of a scenario has struck, over all the seeds that were run.
#[derive(Clone, Debug, Default)]
pub struct Strikes(Vec<u64>);

impl Strikes {
    /// Counts one more run.
    pub fn count(&mut self, outcome: &Outcome) {
        let strikes = &outcome.history.strikes;
        self.0.resize(strikes.len().max(self.0.len()), 0);
        self.0.iter_mut().zip(strikes).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
    }

    /// Judges the scenario as a whole, after the last of its runs: a fault that strikes by
    /// chance has to strike with one of the seeds.
    pub fn judge(&self, scenario: &Loaded, last: &mut Outcome) {
        if last.verdict == Verdict::Passed
            && let Some(reason) = idle(scenario, &self.0, true)
        {
            last.verdict = Verdict::Vacuous;
            last.reason = Some(format!("{reason} with any seed"));
        }
    }
}

/// The first fault that never struck, among those by chance or the others.
fn idle(scenario: &Loaded, strikes: &[u64], by_chance: bool) -> Option<String> {
    let faults = scenario.scenario.faults.iter().zip(strikes).enumerate();
    faults
        .filter(|(_, (fault, _))| fault.timing().rate.is_some() == by_chance)
        .find(|(_, (_, strikes))| **strikes == 0)
        .map(|(index, (fault, _))| format!("fault {index}, `{}`, never struck", fault.word()))
}

/// Why a run that broke no rule still proves nothing. (Chance need not strike in every run.)
fn vacuous(scenario: &Loaded, history: &History) -> Option<String> {
    if let Some(reason) = idle(scenario, &history.strikes, false) {
        return Some(reason);
    }
    let answers: u64 = (history.failed.values()).chain(history.unknown.values()).sum();
    let came = history.delivered + history.done;
    let idle = came == 0 && answers == 0 && history.connections == 0;
    // Whoever expects that nothing is delivered gets that by what failed or by who connected.
    let none = |count| matches!(count, Count::Between(bounds) if bounds.hold(0));
    let expect = &scenario.scenario.expect;
    let expected = none(expect.delivered) || history.operations > 0 && none(expect.done);
    if idle || (came == 0 && !expected) {
        return Some("nothing was delivered".to_owned());
    }
    None
}

struct Judge<'a> {
    repeat: String,
    tail: &'a [String],
    violations: Vec<Violation>,
}

impl Judge<'_> {
    fn found(&mut self, found: &Found) {
        self.violations.push(Violation {
            rule: found.rule.clone(),
            kind: found.kind,
            at_ps: Some(found.at.0),
            detail: found.detail.clone(),
            around: found.around.clone(),
            repeat: self.repeat.clone(),
        });
    }

    /// An expectation about the run as a whole was not met.
    fn missed(&mut self, rule: String, kind: Kind, detail: String) {
        self.violations.push(Violation {
            rule,
            kind,
            at_ps: None,
            detail,
            around: self.tail.to_vec(),
            repeat: self.repeat.clone(),
        });
    }

    /// What was missed since `from` has to do with what happened at `place`.
    fn place(&mut self, from: usize, place: &Matched) {
        for violation in self.violations.iter_mut().skip(from).filter(|_| place.count > 0) {
            violation.at_ps = place.last.map(|at| at.0);
            violation.around.clone_from(&place.around);
        }
    }

    fn expectations(&mut self, scenario: &Loaded, history: &History) {
        let expect = &scenario.scenario.expect;
        self.count("expect.delivered", expect.delivered, history.delivered, history.messages);
        self.count("expect.done", expect.done, history.done, history.operations);
        let before = self.violations.len();
        self.tally("expect.failed", &expect.failed, &history.failed);
        self.place(before, &history.failures);
        let before = self.violations.len();
        self.tally("expect.unknown", &expect.unknown, &history.unknown);
        self.place(before, &history.unknowns);
        self.tally("expect.errors", &expect.errors, &history.errors);
        let latency = &history.latency;
        let spans = [
            latency.p50_ps,
            latency.p90_ps,
            latency.p99_ps,
            latency.p999_ps,
            latency.max_ps,
            history.time.0,
        ];
        for ((key, bounds), ps) in expect.metrics.spans().into_iter().zip(spans) {
            self.span(key, bounds, ps);
        }
        let counts = [history.events, history.connections, history.reconnects, history.overruns];
        for ((key, count), n) in expect.metrics.counts().into_iter().zip(counts) {
            if let Some(count) = count {
                self.count(&format!("expect.metrics.{key}"), count, n, n);
            }
        }
        let digest = format!("{:016x}", history.digest);
        if let Some(expected) = &expect.metrics.digest
            && *expected != digest
        {
            let detail = format!("expected {expected}, got {digest}");
            self.missed("expect.metrics.digest".to_owned(), Kind::Safety, detail);
        }
        for (index, pattern) in expect.must.iter().enumerate() {
            let n = history.must.get(index).map_or(0, |matched| matched.count);
            let at_least_once =
                Count::Between(crate::schema::expect::Bounds { min: 1, ..Default::default() });
            let count = pattern.count.unwrap_or(at_least_once);
            self.count(&format!("expect.must: {}", described(pattern)), count, n, n);
        }
        if let (true, Some(unsettled)) = (expect.settle, &history.unsettled) {
            self.missed("expect.settle".to_owned(), Kind::Progress, unsettled.clone());
        }
    }

    /// What must not happen must not happen before a limit either.
    fn forbidden(&mut self, scenario: &Loaded, history: &History) {
        for (pattern, matched) in scenario.scenario.expect.must_not.iter().zip(&history.must_not) {
            if matched.count > 0 {
                self.violations.push(Violation {
                    rule: format!("expect.must_not: {}", described(pattern)),
                    kind: Kind::Safety,
                    at_ps: matched.last.map(|at: Time| at.0),
                    detail: format!("it happened {} times", matched.count),
                    around: matched.around.clone(),
                    repeat: self.repeat.clone(),
                });
            }
        }
    }

    fn count(&mut self, rule: &str, expected: Count, n: u64, all: u64) {
        let (min, max) = match expected {
            Count::Between(bounds) => (bounds.min, bounds.max),
            Count::All => (all, all),
            Count::Any => return,
        };
        if n < min || n > max {
            let wanted = match (min, max) {
                (min, max) if min == max => format!("exactly {min}"),
                (min, u64::MAX) => format!("at least {min}"),
                (0, max) => format!("at most {max}"),
                (min, max) => format!("{min} to {max}"),
            };
            // Too little of something means that it never came; too much, that it should not have.
            let kind = if n < min { Kind::Progress } else { Kind::Safety };
            self.missed(rule.to_owned(), kind, format!("expected {wanted}, got {n}"));
        }
    }

    fn tally(&mut self, rule: &str, expected: &Tally, got: &BTreeMap<String, u64>) {
        let Tally::Named(named) = expected else { return };
        for (name, count) in named {
            let n = got.get(name).copied().unwrap_or(0);
            self.count(&format!("{rule}.{name}"), *count, n, n);
        }
        for (name, n) in got.iter().filter(|(name, n)| **n > 0 && !named.contains_key(*name)) {
            let known: Vec<&str> = named.keys().map(String::as_str).collect();
            let detail = match known.is_empty() {
                true => format!("expected none, got {n}"),
                false => format!("got {n}, {}", unknown("name", name, &known)),
            };
            self.missed(format!("{rule}.{name}"), Kind::Safety, detail);
        }
    }

    fn span(&mut self, key: &str, bounds: Option<SpanBounds>, ps: u64) {
        let Some(bounds) = bounds else { return };
        let got = Duration(Span(ps));
        let rule = || format!("expect.metrics.{key}");
        if let Some(min) = bounds.min.filter(|min| got < *min) {
            self.missed(rule(), Kind::Safety, format!("expected at least {min}, got {got}"));
        }
        if let Some(max) = bounds.max.filter(|max| got > *max) {
            self.missed(rule(), Kind::Safety, format!("expected at most {max}, got {got}"));
        }
    }
}

fn described(pattern: &Pattern) -> String {
    match pattern.proc {
        Some(proc) => format!("`{}` at proc {proc}", pattern.event),
        None => format!("`{}`", pattern.event),
    }
}

//! Checks of expectations.

use super::Check;
use crate::schema::Scenario;
use crate::schema::expect::{Count, Metrics, Pattern, SpanBounds, Tally};
use crate::spanned::Path;

pub(super) fn check(check: &mut Check<'_>, scenario: &Scenario) {
    let path = Path::root().key("expect");
    let expect = &scenario.expect;
    if let Count::Between(_) = expect.delivered {
        count(check, &path.key("delivered"), expect.delivered);
    }
    let words = check.words;
    tally(check, &path.key("failed"), "reason", &expect.failed, words.reasons);
    tally(check, &path.key("unknown"), "reason", &expect.unknown, words.reasons);
    tally(check, &path.key("errors"), "kind of error", &expect.errors, words.errors);
    metrics(check, &path.key("metrics"), &expect.metrics, scenario.seeds.count());
    for (key, patterns) in [("must", &expect.must), ("must_not", &expect.must_not)] {
        for (index, pattern) in patterns.iter().enumerate() {
            self::pattern(check, &path.key(key).item(index), key, pattern);
        }
    }
}

fn tally(check: &mut Check<'_>, path: &Path, kind: &str, tally: &Tally, known: &[&str]) {
    let Tally::Named(named) = tally else { return };
    for (name, expected) in named {
        check.word(&path.key(name), kind, name, known);
        count(check, &path.key(name), *expected);
    }
}

fn count(check: &mut Check<'_>, path: &Path, count: Count) {
    match count {
        Count::Between(bounds) if bounds.min > bounds.max => {
            check.problem(path, "nothing can be expected: `min` is greater than `max`");
        }
        Count::All => check.problem(path, "`all` goes only with `delivered`: write a number"),
        Count::Between(_) | Count::Any => {}
    }
}

fn metrics(check: &mut Check<'_>, path: &Path, metrics: &Metrics, seeds: u64) {
    for (key, bounds) in metrics.spans() {
        if let Some(SpanBounds { min: Some(min), max: Some(max) }) = bounds
            && min > max
        {
            let message = "nothing can be expected: `min` is greater than `max`";
            check.problem(&path.key(key), message);
        }
    }
    for (key, expected) in metrics.counts() {
        if let Some(expected) = expected {
            count(check, &path.key(key), expected);
        }
    }
    if let Some(digest) = &metrics.digest {
        let path = path.key("digest");
        let hex = digest.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        if digest.len() != 16 || !hex {
            check.problem(&path, "a digest is 16 hex digits, as reports print it");
        } else if seeds != 1 {
            check.problem(&path, "each seed has its own digest: name exactly one seed");
        }
    }
}

fn pattern(check: &mut Check<'_>, path: &Path, key: &str, pattern: &Pattern) {
    check.word(&path.key("event"), "event", &pattern.event, check.words.events);
    if let Some(proc) = pattern.proc {
        check.proc(&path.key("proc"), proc);
    }
    match pattern.count {
        Some(_) if key == "must_not" => {
            let message = "what must not happen has no count: move it to `must`";
            check.problem(&path.key("count"), message);
        }
        Some(expected) => count(check, &path.key("count"), expected),
        None => {}
    }
}

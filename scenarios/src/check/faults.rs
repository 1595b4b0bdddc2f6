//! Checks of faults.

use super::Check;
use crate::schema::faults::{Fault, Selectors};
use crate::spanned::Path;

pub(super) fn check(check: &mut Check<'_>, faults: &[Fault]) {
    for (index, fault) in faults.iter().enumerate() {
        let path = Path::root().key("faults").item(index).key(fault.word());
        let timing = fault.timing();
        if let Err(message) = timing.trigger() {
            check.problem(&path, message);
        }
        if timing.rate.is_some() && !fault.strikes_by_chance() {
            let word = fault.word();
            let message = format!("`{word}` does not strike by chance: write `at` or `when`");
            check.problem(&path.key("rate"), message);
        }
        if let Some(when) = timing.when {
            let path = path.key("when");
            check.word(&path.key("event"), "event", &when.event, check.words.events);
            if let Some(proc) = when.proc {
                check.proc(&path.key("proc"), proc);
            }
        }
        selectors(check, &path, &fault.selectors());
        if let Fault::Nic(nic) = fault {
            let known: Vec<&str> = check.words.nic_faults.iter().map(|it| it.word).collect();
            check.word(&path.key("fault"), "NIC fault", &nic.fault, &known);
        }
    }
}

fn selectors(check: &mut Check<'_>, path: &Path, chosen: &Selectors<'_>) {
    let nodes = check.machine.node_count();
    let routers = check.machine.fabric.size().map_or(0, |size| size.routers);
    let procs = check.procs;
    for (key, what, list, end) in [
        ("procs", "proc", chosen.procs, procs),
        ("from", "proc", chosen.from, procs),
        ("to", "proc", chosen.to, procs),
        ("nodes", "node", chosen.nodes, nodes),
        ("routers", "router", chosen.routers, routers),
    ] {
        let Some(list) = list else { continue };
        some(check, &path.key(key), list.len());
        check.indices(&path.key(key), what, list, end);
    }
    if let Some(links) = chosen.links {
        let path = path.key("links");
        some(check, &path, links.len());
        for (index, [a, b]) in links.iter().enumerate() {
            let path = path.item(index);
            check.indices(&path, "router", &[*a, *b], routers);
            if !check.machine.fabric.joined(*a, *b) {
                check.problem(&path, format!("no link joins routers {a} and {b}"));
            }
        }
    }
    if let Some(groups) = chosen.groups {
        let path = path.key("groups");
        if groups.len() < 2 {
            check.problem(&path, "a partition needs at least two groups");
        }
        let mut seen = std::collections::BTreeSet::new();
        for (index, group) in groups.iter().enumerate() {
            let path = path.item(index);
            some(check, &path, group.len());
            check.indices(&path, "proc", group, procs);
            for (index, proc) in group.iter().enumerate() {
                if !seen.insert(*proc) {
                    check.problem(&path.item(index), format!("proc {proc} is in a group already"));
                }
            }
        }
    }
}

fn some(check: &mut Check<'_>, path: &Path, count: usize) {
    if count == 0 {
        check.problem(path, "an empty list strikes nobody: name some, or leave the key out");
    }
}

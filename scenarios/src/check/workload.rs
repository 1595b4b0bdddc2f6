//! Checks of workloads.

use super::Check;
use crate::quantity::Bytes;
use crate::schema::machine::Fabric;
use crate::schema::workload::{Action, Mix, Neighbours, ProcScript, Remote, Workload};
use crate::spanned::Path;

/// More messages than any run could deliver.
const MESSAGES_MAX: u64 = 1_000_000_000_000;

pub(super) fn check(check: &mut Check<'_>, workload: &Workload) {
    let path = Path::root().key("workload").key(workload.word());
    let procs = u64::from(check.procs);
    if let Some(bytes) = workload.size() {
        size(check, &path, bytes);
    }
    match workload {
        Workload::PingPong(it) => {
            company(check, &path);
            messages(check, &path, "rounds", &[procs, it.rounds]);
        }
        Workload::Uniform(it) => {
            partners(check, &path.key("partners"), it.partners);
            messages(check, &path, "messages", &[procs, it.messages]);
        }
        Workload::AllToAll(it) => {
            company(check, &path);
            messages(check, &path, "rounds", &[procs, procs, it.rounds]);
        }
        Workload::ConnectStorm(it) => match it.neighbours {
            Neighbours::Drawn(count) => {
                partners(check, &path.key("neighbours"), count);
                messages(check, &path, "neighbours", &[procs, u64::from(count)]);
            }
            Neighbours::Shape(_) => {
                if !matches!(check.machine.fabric, Fabric::Gemini(_)) {
                    let message = "this shape needs a torus: the machine's fabric is none";
                    check.problem(&path.key("neighbours"), message);
                }
            }
        },
        Workload::Incast(it) => {
            company(check, &path);
            check.proc(&path.key("target"), it.target);
            messages(check, &path, "messages", &[procs, it.messages]);
        }
        Workload::Bursts(it) => {
            partners(check, &path.key("partners"), it.partners);
            messages(check, &path, "bursts", &[procs, it.bursts, it.length]);
        }
        Workload::Remote(it) => remote(check, &path, it),
        Workload::Script(scripts) => script(check, &path, scripts),
    }
}

fn remote(check: &mut Check<'_>, path: &Path, it: &Remote) {
    partners(check, &path.key("partners"), it.partners);
    messages(check, path, "operations", &[u64::from(check.procs), it.operations]);
    let Mix { put, get, add, set } = it.mix;
    if put == 0 && get == 0 && add == 0 && set == 0 {
        check.problem(&path.key("mix"), "nothing is chosen: give one kind a weight");
    }
    if it.size.0 == 0 {
        check.problem(&path.key("size"), "must be at least one byte");
    }
    // A slot for each proc in each window, and two for each partner.
    let slots = u64::from(check.procs) * (u64::from(check.procs) + 2 * u64::from(it.partners));
    if it.size.0.saturating_add(9).saturating_mul(slots) > MEMORY_MAX {
        let message =
            "the windows of all procs take more than 4 GiB: lower it, or take fewer procs";
        check.problem(&path.key("size"), message);
    }
}

/// Memory of all procs together, at most.
const MEMORY_MAX: u64 = 1 << 32;

/// Names of regions from the middle on are the transport's own.
fn region(check: &mut Check<'_>, path: &Path, region: u32) {
    if region >= selvedge_core::rma::OWN_REGIONS {
        let message = format!("must be less than {}", selvedge_core::rma::OWN_REGIONS);
        check.problem(&path.key("region"), message);
    }
}

fn company(check: &mut Check<'_>, path: &Path) {
    if check.procs < 2 {
        check.problem(path, "needs at least 2 procs: raise `procs`.`count`");
    }
}

/// A message must be no longer than any transport can count.
fn size(check: &mut Check<'_>, path: &Path, size: Bytes) {
    if u32::try_from(size.0).is_err() {
        check.problem(&path.key("size"), "too long for one message: send several shorter ones");
    }
}

fn partners(check: &mut Check<'_>, path: &Path, count: u32) {
    let most = check.procs.saturating_sub(1);
    if count == 0 || count > most {
        check.problem(path, format!("must lie between 1 and {most}, the other procs"));
    }
}

/// The number of all messages, as the product of `factors`, must make sense.
fn messages(check: &mut Check<'_>, path: &Path, key: &str, factors: &[u64]) {
    let all = factors.iter().try_fold(1_u64, |all, &n| all.checked_mul(n));
    match all {
        Some(0) => check.problem(&path.key(key), "no message would be sent: raise it"),
        Some(n) if n <= MESSAGES_MAX => {}
        _ => {
            let message = format!("too many messages in all, the most is {MESSAGES_MAX}: lower it");
            check.problem(&path.key(key), message);
        }
    }
}

fn script(check: &mut Check<'_>, path: &Path, scripts: &[ProcScript]) {
    if scripts.iter().all(|script| script.steps.is_empty()) {
        check.problem(path, "nobody does anything: write at least one step");
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, script) in scripts.iter().enumerate() {
        let path = path.item(index);
        check.proc(&path.key("proc"), script.proc);
        if !seen.insert(script.proc) {
            let message = format!("proc {} has a script already: join the two", script.proc);
            check.problem(&path.key("proc"), message);
        }
        for (index, step) in script.steps.iter().enumerate() {
            let path = path.key("steps").item(index);
            if step.at.is_some() && step.after.is_some() {
                check.problem(&path.key("after"), "write only one of `at` and `after`");
            }
            let (word, peer) = match step.action {
                Action::Send(send) => {
                    let path = path.key("do").key("send");
                    messages(check, &path, "count", &[send.count]);
                    size(check, &path, send.size);
                    ("send", send.to)
                }
                Action::Connect(peer) => ("connect", peer.to),
                Action::Close(peer) => ("close", peer.to),
                Action::Put(transfer) => {
                    let path = path.key("do").key("put");
                    messages(check, &path, "count", &[transfer.count]);
                    size(check, &path, transfer.size);
                    ("put", transfer.to)
                }
                Action::Get(transfer) => {
                    let path = path.key("do").key("get");
                    messages(check, &path, "count", &[transfer.count]);
                    size(check, &path, transfer.size);
                    ("get", transfer.to)
                }
                Action::Atomic(atomic) => {
                    let path = path.key("do").key("atomic");
                    messages(check, &path, "count", &[atomic.count]);
                    if atomic.width != 4 && atomic.width != 8 {
                        check.problem(&path.key("width"), "a word has 4 or 8 bytes");
                    }
                    ("atomic", atomic.to)
                }
                Action::Register(register) => {
                    let path = path.key("do").key("register");
                    region(check, &path, register.region);
                    if register.size.0 == 0 || register.size.0 > MEMORY_MAX / 4 {
                        check.problem(&path.key("size"), "must lie between 1 B and 1 GiB");
                    }
                    continue;
                }
                Action::Deregister(it) => {
                    region(check, &path.key("do").key("deregister"), it.region);
                    continue;
                }
                Action::Stop => continue,
            };
            let path = path.key("do").key(word).key("to");
            check.proc(&path, peer);
            let own = matches!(word, "put" | "get" | "atomic");
            if peer == script.proc && !own {
                check.problem(&path, "a proc does not connect to itself: name another one");
            }
        }
    }
}

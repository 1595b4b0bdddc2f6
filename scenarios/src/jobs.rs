//! Many runs side by side, with their results in order.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

/// Whether the user wants to stop. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Not interrupted.
    #[must_use]
    pub fn new() -> Self {
        Interrupt::default()
    }

    /// Asks everybody to stop when they next look.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    #[must_use]
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Listens to Ctrl-C: the first lets what runs come to its end, the second ends the process.
    /// Where signals cannot be had, Ctrl-C just ends the process, as ever.
    pub fn on_ctrl_c(&self) {
        let interrupt = self.clone();
        let _ = ctrlc::set_handler(move || {
            if interrupt.raised() {
                std::process::exit(crate::exit::Exit::Interrupted.code().into());
            }
            interrupt.raise();
        });
    }
}

/// A unit of work that panicked, with what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked(pub String);

/// Runs `work` for every number below `units` on `threads` threads, and hands the results to
/// `each` on this thread, in order. After an interrupt, or once `each` says `false`, no further
/// unit starts; those that run are finished, and an unbroken row of results from 0 is handed on.
pub fn in_order<R: Send>(
    units: u64,
    threads: usize,
    stop: &Interrupt,
    work: impl Fn(u64) -> R + Sync,
    mut each: impl FnMut(u64, Result<R, Panicked>) -> bool,
) {
    let next = AtomicU64::new(0);
    let enough = AtomicBool::new(false);
    let threads = threads.clamp(1, 1024).min(usize::try_from(units).unwrap_or(usize::MAX)).max(1);
    thread::scope(|scope| {
        let (done, results) = sync_channel(threads);
        for _ in 0..threads {
            let done = done.clone();
            scope.spawn(|| {
                let done = done;
                while !stop.raised() && !enough.load(Ordering::Relaxed) {
                    let unit = next.fetch_add(1, Ordering::Relaxed);
                    if unit >= units {
                        return;
                    }
                    let result = catch_unwind(AssertUnwindSafe(|| work(unit)))
                        .map_err(|cause| Panicked(what_it_said(&*cause)));
                    if done.send((unit, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (unit, result) in results {
            early.insert(unit, result);
            while let Some(result) = early.remove(&due) {
                if !enough.load(Ordering::Relaxed) && !each(due, result) {
                    enough.store(true, Ordering::Relaxed);
                }
                due += 1;
            }
        }
    });
}

fn what_it_said(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| cause.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whoever_is_first() {
        for threads in [1, 2, 7, 100] {
            let mut seen = Vec::new();
            in_order(
                50,
                threads,
                &Interrupt::new(),
                |n| n * n,
                |n, square| {
                    seen.push((n, square));
                    true
                },
            );
            let expected: Vec<_> = (0..50).map(|n| (n, Ok(n * n))).collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn an_interrupt_finishes_what_runs_and_starts_nothing_more() {
        let (stop, started) = (Interrupt::new(), AtomicU64::new(0));
        let mut handed_on = 0;
        let work = |n| {
            started.fetch_add(1, Ordering::Relaxed);
            if n == 3 {
                stop.raise();
            }
        };
        in_order(u64::MAX, 2, &stop, work, |_, _| {
            handed_on += 1;
            true
        });
        let started = started.load(Ordering::Relaxed);
        assert!(started >= 4, "unit 3 ran");
        assert_eq!(handed_on, started, "what ran is reported");
    }

    #[test]
    fn enough_is_enough() {
        let mut handed_on = 0;
        in_order(
            u64::MAX,
            2,
            &Interrupt::new(),
            |n| n,
            |_, _| {
                handed_on += 1;
                handed_on < 5
            },
        );
        assert_eq!(handed_on, 5);
    }

    #[test]
    fn a_panic_is_a_result_of_its_own_unit() {
        let mut results = Vec::new();
        let work = |n| if n == 1 { std::panic::panic_any("boom") } else { n };
        in_order(3, 1, &Interrupt::new(), work, |_, result| {
            results.push(result);
            true
        });
        assert_eq!(results, [Ok(0), Err(Panicked("boom".to_owned())), Ok(2)]);
    }
}

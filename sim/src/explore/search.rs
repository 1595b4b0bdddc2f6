//! Breadth-first search, and the backward pass that finds livelock.

use std::hash::Hash;

use selvedge_core::App;

use crate::simulated::Simulated;
use crate::watch::{Found, Kind};

use super::seen::{Seen, fingerprint};
use super::{Action, Space, State};

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Distinct states.
    pub states: u64,
    /// Steps from state to state.
    pub edges: u64,
    /// The depth reached.
    pub depth: u32,
    /// States that wait to be visited.
    pub waiting: u64,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How far it went.
    pub progress: Progress,
    /// States at rest.
    pub settled: u64,
    /// The first thing wrong, with the shortest path to it.
    pub found: Option<Found>,
    /// The choices that lead to it.
    pub path: Vec<Action>,
    /// Whether every state within the bounds was seen.
    pub complete: bool,
}

/// States between two calls of `report`.
const REPORT_EVERY: u64 = 1 << 14;

impl<T: Simulated, A: App + Clone + Hash> Space<T, A> {
    /// Searches until everything is seen, something is wrong, or `report` says stop.
    pub fn search(&self, mut report: impl FnMut(Progress) -> bool) -> Outcome {
        let mut bench = self.bench(0);
        let mut outcome = Outcome::default();
        let mut seen = Seen::new();
        // By state: the state it was first reached from, and by which choice.
        let mut origin: Vec<(u32, Action)> = Vec::new();
        // Steps that are no faults, for the backward pass.
        let mut steps: Vec<(u32, u32)> = Vec::new();
        let mut resting: Vec<u32> = Vec::new();
        let mut key = Vec::new();
        let mut actions = Vec::new();

        let first = self.first(&mut bench);
        self.key(&first, &mut key);
        seen.number(fingerprint(&key));
        origin.push((u32::MAX, Action::Deliver(0)));
        let mut level: Vec<(u32, State<T, A>)> = vec![(0, first)];
        let mut cut = false;
        let mut wrong = self.found(&mut bench).map(|found| (0, None, found));
        let mut next = Vec::new();

        while wrong.is_none() && !level.is_empty() {
            if self.bounds().depth > 0 && outcome.progress.depth >= self.bounds().depth {
                cut = true;
                break;
            }
            let mut left = level.len() as u64;
            for (number, state) in level.drain(..) {
                left -= 1;
                if self.is_at_rest(&state) {
                    resting.push(number);
                    self.check_at_rest(&state, &mut bench);
                    if let Some(found) = self.found(&mut bench) {
                        wrong = Some((number, None, found));
                        break;
                    }
                }
                self.actions(&state, &mut actions);
                for &action in &actions {
                    let mut after = state.clone();
                    self.apply(&mut after, action, &mut bench);
                    outcome.progress.edges += 1;
                    if let Some(found) = self.found(&mut bench) {
                        wrong = Some((number, Some(action), found));
                        break;
                    }
                    self.key(&after, &mut key);
                    let (reached, new) = seen.number(fingerprint(&key));
                    if !action.is_fault() && reached != number {
                        steps.push((reached, number));
                    }
                    if new {
                        origin.push((number, action));
                        next.push((reached, after));
                    }
                }
                if wrong.is_some() {
                    break;
                }
                let states = origin.len() as u64;
                outcome.progress.states = states;
                outcome.progress.waiting = left + next.len() as u64;
                cut |= states >= self.bounds().states;
                if cut || (states.is_multiple_of(REPORT_EVERY) && !report(outcome.progress)) {
                    cut = true;
                    break;
                }
            }
            if cut {
                break;
            }
            std::mem::swap(&mut level, &mut next);
            outcome.progress.depth += u32::from(!level.is_empty());
        }
        outcome.progress.states = origin.len() as u64;
        outcome.settled = resting.len() as u64;
        outcome.complete = !cut && wrong.is_none();
        if outcome.complete
            && let Some(stuck) = first_stuck(origin.len(), &mut steps, &resting)
        {
            let rule = "a state at rest can be reached from everywhere";
            let at = selvedge_core::Time::ZERO;
            let found = Found { rule, kind: Kind::Progress, at, proc: 0, around: Vec::new() };
            wrong = Some((stuck, None, found));
        }
        if let Some((number, last, mut found)) = wrong {
            let mut path: Vec<Action> = last.into_iter().collect();
            let mut at = number;
            while let Some(&(before, action)) = origin.get(at as usize)
                && before != u32::MAX
            {
                path.push(action);
                at = before;
            }
            path.reverse();
            found.around = self.tell(&path);
            outcome.path = path;
            outcome.found = Some(found);
        }
        outcome
    }

    /// A path as lines for people.
    #[must_use]
    pub fn tell(&self, path: &[Action]) -> Vec<String> {
        let mut bench = self.bench(4_096);
        let mut state = self.first(&mut bench);
        for &action in path {
            self.apply(&mut state, action, &mut bench);
        }
        bench.watch.recorder.as_ref().map_or(Vec::new(), |recorder| recorder.tail(4_096))
    }
}

/// The state with the smallest number, so one of the shortest paths, from which no state at rest
/// can be reached. `steps` are (to, from).
fn first_stuck(states: usize, steps: &mut [(u32, u32)], resting: &[u32]) -> Option<u32> {
    steps.sort_unstable();
    let mut starts = vec![0_u32; states + 1];
    for &(to, _) in steps.iter() {
        starts[to as usize + 1] += 1;
    }
    for at in 0..states {
        starts[at + 1] += starts[at];
    }
    let mut good = vec![false; states];
    let mut stack = Vec::from(resting);
    resting.iter().for_each(|&state| good[state as usize] = true);
    while let Some(to) = stack.pop() {
        let range = starts[to as usize] as usize..starts[to as usize + 1] as usize;
        for &(_, from) in &steps[range] {
            if !std::mem::replace(&mut good[from as usize], true) {
                stack.push(from);
            }
        }
    }
    good.iter().position(|&good| !good).map(|state| state as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backward_pass_finds_what_cannot_come_to_rest() {
        // 0 -> 1 -> 2 (rests); 1 -> 3 <-> 4 is a livelock.
        let mut steps = [(1, 0), (2, 1), (3, 1), (4, 3), (3, 4)];
        assert_eq!(first_stuck(5, &mut steps, &[2]), Some(3));
        assert_eq!(first_stuck(3, &mut [(1, 0), (2, 1)], &[2]), None);
    }
}

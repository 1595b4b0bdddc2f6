//! Breadth-first search, and the backward pass that finds livelock.

use std::hash::Hash;

use selvedge_core::App;

use crate::simulated::Simulated;
use crate::watch::{Found, Kind};

use super::packed::{Choice, Memory};
use super::seen::{Map, fingerprint};
use super::{Action, Space, State, write_thing};

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
        let mut memory = Memory::new(self);
        let mut outcome = Outcome::default();
        let mut seen = Map::new();
        // Every state as bytes, one after the other, and where each begins.
        let (mut states, mut begins) = (Vec::new(), vec![0_usize]);
        // By state: the state it was first reached from, and by which choice.
        let mut origin: Vec<(u32, Choice)> = Vec::new();
        // Steps that are no faults, for the backward pass.
        let mut steps: Vec<(u32, u32)> = Vec::new();
        let mut resting: Vec<u32> = Vec::new();
        let (mut bytes, mut choices) = (Vec::new(), Vec::new());

        let (first, found) = memory.first();
        let mut wrong = found.map(|found| (0, None, found));
        first.write(&mut bytes);
        seen.number(fingerprint(&bytes));
        states.extend(&bytes);
        begins.push(states.len());
        origin.push((u32::MAX, Choice::Go(0)));
        let (mut state, mut after) = (first.clone(), first);
        let (mut cut, mut level_end) = (false, 1);

        let mut number = 0_u32;
        while wrong.is_none() && !cut && (number as usize) < origin.len() {
            if number as usize == level_end {
                level_end = origin.len();
                outcome.progress.depth += 1;
                if self.bounds().depth > 0 && outcome.progress.depth >= self.bounds().depth {
                    cut = true;
                    break;
                }
            }
            let range = begins[number as usize]..begins[number as usize + 1];
            state.read(&states[range]);
            if memory.is_at_rest(&state) {
                resting.push(number);
                wrong = memory.check_at_rest(&state).map(|found| (number, None, found));
            }
            memory.choices(&state, &mut choices);
            for &choice in &choices {
                after.copy(&state);
                let found = memory.apply(&mut after, choice);
                outcome.progress.edges += 1;
                if let Some(found) = found {
                    wrong = wrong.or(Some((number, Some(choice), found)));
                    break;
                }
                after.write(&mut bytes);
                let (reached, new) = seen.number(fingerprint(&bytes));
                if !choice.is_fault() && reached != number {
                    steps.push((reached, number));
                }
                if new {
                    origin.push((number, choice));
                    states.extend(&bytes);
                    begins.push(states.len());
                }
            }
            number += 1;
            if u64::from(number).is_multiple_of(REPORT_EVERY) {
                outcome.progress.states = origin.len() as u64;
                outcome.progress.waiting = origin.len() as u64 - u64::from(number);
                cut |= !report(outcome.progress);
            }
            cut |= origin.len() as u64 >= self.bounds().states;
        }
        outcome.progress.states = origin.len() as u64;
        outcome.progress.waiting = origin.len() as u64 - u64::from(number);
        outcome.settled = resting.len() as u64;
        outcome.complete = !cut && wrong.is_none();
        if outcome.complete
            && let Some(stuck) = first_stuck(origin.len(), &steps, &resting)
        {
            let rule = "a state at rest can be reached from everywhere";
            let at = selvedge_core::Time::ZERO;
            let found = Found { rule, kind: Kind::Progress, at, proc: 0, around: Vec::new() };
            wrong = Some((stuck, None, found));
        }
        if let Some((number, last, mut found)) = wrong {
            let mut path: Vec<Choice> = last.into_iter().collect();
            let mut at = number;
            while let Some(&(before, choice)) = origin.get(at as usize)
                && before != u32::MAX
            {
                path.push(choice);
                at = before;
            }
            path.reverse();
            (outcome.path, found.around) = self.tell(&memory, &path);
            outcome.found = Some(found);
        }
        outcome
    }

    /// Follows a path once more, unpacked and recorded: its choices, and lines for people.
    fn tell(&self, memory: &Memory<'_, T, A>, path: &[Choice]) -> (Vec<Action>, Vec<String>) {
        let mut bench = self.bench(4_096);
        let mut state = self.first(&mut bench);
        let actions: Vec<Action> = path
            .iter()
            .map(|&choice| {
                let action = state.action(memory, choice);
                self.apply(&mut state, action, &mut bench);
                action
            })
            .collect();
        let recorder = bench.watch.recorder.as_ref();
        (actions, recorder.map_or(Vec::new(), |recorder| recorder.tail(4_096)))
    }
}

impl<T: Simulated, A: App + Clone + Hash> State<T, A> {
    /// A choice as an action on this state.
    fn action(&self, memory: &Memory<'_, T, A>, choice: Choice) -> Action {
        let place = |number: u32| {
            let bytes = |thing| {
                let mut bytes = Vec::new();
                write_thing(thing, &mut bytes);
                bytes
            };
            let wanted = bytes(memory.thing(number));
            self.wire.iter().position(|thing| bytes(thing) == wanted).unwrap_or(0) as u8
        };
        match choice {
            Choice::Deliver(number) => Action::Deliver(place(number)),
            Choice::Lose(number) => Action::Lose(place(number)),
            Choice::Repeat(number) => Action::Repeat(place(number)),
            Choice::Poll(rank, queue) => Action::Poll(rank, queue),
            Choice::Go(rank) => Action::Go(rank),
            Choice::Expire(rank) => Action::Expire(rank),
            Choice::ExpireEarly(rank) => Action::ExpireEarly(rank),
            Choice::ExpireNic(rank) => Action::ExpireNic(rank),
            Choice::Wake(rank) => Action::Wake(rank),
            Choice::Fault(rank, kind) => Action::Fault(rank, kind),
            Choice::Crash(rank) => Action::Crash(rank),
        }
    }
}

/// The state with the smallest number, so one of the shortest paths, from which no state at rest
/// can be reached. `steps` are (to, from).
fn first_stuck(states: usize, steps: &[(u32, u32)], resting: &[u32]) -> Option<u32> {
    // Who leads to each state, one after the other: counted, then filled in.
    let mut starts = vec![0_u32; states + 1];
    steps.iter().for_each(|&(to, _)| starts[to as usize + 1] += 1);
    for at in 0..states {
        starts[at + 1] += starts[at];
    }
    let (mut next, mut leads) = (starts.clone(), vec![0_u32; steps.len()]);
    for &(to, from) in steps {
        leads[next[to as usize] as usize] = from;
        next[to as usize] += 1;
    }
    let mut good = vec![false; states];
    let mut stack = Vec::from(resting);
    resting.iter().for_each(|&state| good[state as usize] = true);
    while let Some(to) = stack.pop() {
        let range = starts[to as usize] as usize..starts[to as usize + 1] as usize;
        for &from in &leads[range] {
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
        let steps = [(1, 0), (2, 1), (3, 1), (4, 3), (3, 4)];
        assert_eq!(first_stuck(5, &steps, &[2]), Some(3));
        assert_eq!(first_stuck(3, &[(1, 0), (2, 1)], &[2]), None);
    }
}

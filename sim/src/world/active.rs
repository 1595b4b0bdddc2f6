//! The rules of a plan as they are now: what holds, what has struck, what chance has said.

use selvedge_core::Time;
use selvedge_core::wire::checksum;

use crate::draw::{Draws, Purpose, Row};
use crate::fault::{Plan, When};
use crate::simulated::Simulated;

/// One rule of the plan, as it is now.
#[derive(Clone, Debug, Default)]
pub(super) struct Active {
    /// Whether it holds, if it holds for a while.
    pub(super) on: bool,
    /// How often it has struck.
    pub(super) strikes: u64,
    /// Whose chance it is: its kind and how many of that kind come before, so that another rule
    /// in the plan shifts nothing.
    pub(super) owner: u32,
    /// How often chance was asked.
    pub(super) draws: u64,
    /// What it answers.
    row: Row,
    /// How often what it waits for has happened.
    pub(super) happened: u64,
}

impl Active {
    /// The rules of a plan, before anything has happened.
    pub(super) fn all<T: Simulated>(plan: &Plan<T>) -> Vec<Active> {
        let kind = |at: usize| plan.0[at].what.word();
        let owner = |at: usize| {
            let alike = (0..at).filter(|&other| kind(other) == kind(at)).count() as u32;
            checksum(kind(at).as_bytes()).wrapping_add(alike)
        };
        (0..plan.0.len()).map(|at| Active { owner: owner(at), ..Active::default() }).collect()
    }

    /// Whether it strikes something that it bears on, now.
    pub(super) fn strikes_now(
        &mut self,
        when: &When,
        now: Time,
        draws: &Draws,
        purpose: Purpose,
    ) -> bool {
        let strikes = match when {
            When::At { .. } | When::Happens { .. } => self.on,
            When::Rate { ppb, from, until, most } => {
                let open = *from <= now && now < *until && most.is_none_or(|m| self.strikes < m);
                self.draws += u64::from(open);
                let (row, owner, counter) = (&mut self.row, self.owner, self.draws);
                open && Draws::is_in(*ppb, || draws.next(row, purpose, owner, counter))
            }
        };
        self.strikes += u64::from(strikes);
        strikes
    }
}

//! The fault plan at work.

use selvedge_core::{App, NicEvent, Span, Time};

use crate::fault::{What as Wrong, When};
use crate::simulated::Simulated;
use crate::topology::LinkId;

use super::World;
use super::air::{Item, Surroundings};

impl<T: Simulated, A: App + Clone> World<T, A> {
    /// Sees to it that rules begin when they should: those of the first moment before anybody
    /// does anything. (Nobody is born again before he was born.)
    pub(super) fn schedule_rules(&mut self) {
        let fabric = self.fabric.clone();
        for (at, rule) in (0..).zip(&fabric.plan.0) {
            match &rule.when {
                When::At { at: Time::ZERO, .. } if !matches!(rule.what, Wrong::Restart) => {
                    self.rule(at, true);
                }
                When::At { at: time, .. } => {
                    self.air.schedule(*time, Item::Rule { rule: at, on: true });
                }
                When::Happens { event, proc, .. } => {
                    self.watch.wait_for(at, event.clone(), *proc);
                }
                When::Rate { .. } => {}
            }
        }
    }

    /// After an event: tells of what struck, and sees whether a rule waited for what happened.
    #[inline]
    pub(super) fn happen(&mut self) {
        if !self.air.struck.is_empty() || self.watch.has_happened() {
            self.tell();
        }
    }

    #[cold]
    fn tell(&mut self) {
        if !self.air.struck.is_empty() {
            for at in 0..self.air.struck.len() {
                let (rule, proc) = self.air.struck[at];
                let word = self.fabric.plan.0[rule as usize].what.word();
                self.watch.struck(self.now, proc, word);
            }
            self.air.struck.clear();
        }
        while let Some(rule) = self.watch.happened() {
            let active = &mut self.air.rules[rule as usize];
            active.happened += 1;
            if let When::Happens { nth, .. } = self.fabric.plan.0[rule as usize].when
                && active.happened == nth
            {
                self.rule(rule, true);
            }
        }
    }

    /// A rule begins, or ends.
    pub(super) fn rule(&mut self, at: u32, on: bool) {
        let fabric = self.fabric.clone();
        let rule = &fabric.plan.0[at as usize];
        self.air.rules[at as usize].on = on;
        let procs = || {
            let all = 0..self.procs.len() as u32;
            all.filter(|&proc| rule.concerns(proc)).collect::<Vec<_>>()
        };
        // What bears on packets and the modex strikes with them; all else strikes here.
        let mut strikes = on;
        match &rule.what {
            Wrong::Packets { .. }
            | Wrong::Partition(_)
            | Wrong::ModexMissing
            | Wrong::ModexLate(_)
            | Wrong::ModexStale => strikes = false,
            Wrong::LinksDown(links) => {
                for &[a, b] in links {
                    for (from, to) in [(a, b), (b, a)] {
                        if let Some(link) = fabric.topology.link_between(from, to) {
                            self.set_link(link, on);
                        }
                    }
                }
            }
            Wrong::RoutersDown(routers) => {
                for &router in routers {
                    if on {
                        self.air.down.fail_router(&fabric.topology, router);
                    } else {
                        self.air.down.restore_router(&fabric.topology, router);
                    }
                }
            }
            Wrong::PortsDown(nodes) => {
                for &node in nodes {
                    self.set_link(fabric.topology.inject(node), on);
                    self.set_link(fabric.topology.eject(node), on);
                }
            }
            Wrong::Pause => {
                for proc in procs() {
                    self.hosts[proc as usize].paused = on;
                    self.hosts[proc as usize].turn = Time::NEVER;
                    self.call(proc, self.now);
                }
            }
            Wrong::Crash if on => procs().into_iter().for_each(|proc| self.crash(proc)),
            // A crash that lasts only a while ends in a new life.
            Wrong::Crash => procs().into_iter().for_each(|proc| self.restart(proc)),
            Wrong::Restart if on => procs().into_iter().for_each(|proc| self.restart(proc)),
            Wrong::Restart => {}
            Wrong::Slow(by) => {
                for proc in procs() {
                    self.hosts[proc as usize].slow = if on { *by } else { Span::ZERO };
                }
            }
            Wrong::Nic(fault) if on => {
                for proc in procs() {
                    self.hear(proc);
                    let World { fabric, procs, air, watch, scratch, now, .. } = self;
                    let mut around = Surroundings { fabric, air, watch };
                    let event = NicEvent::Fault(*fault);
                    let _ = procs[proc as usize].nic_event(*now, event, &[], scratch, &mut around);
                    self.look(proc);
                }
            }
            Wrong::Nic(_) => {}
        }
        if strikes {
            self.air.rules[at as usize].strikes += 1;
            let proc = rule.procs.as_ref().and_then(|procs| procs.first()).copied().unwrap_or(0);
            self.air.struck.push((at, proc));
        }
        let lasts = match rule.when {
            When::At { lasts, .. } | When::Happens { lasts, .. } => lasts,
            When::Rate { .. } => None,
        };
        if let (true, Some(lasts)) = (on, lasts) {
            self.air.schedule(self.now + lasts, Item::Rule { rule: at, on: false });
        }
    }

    fn set_link(&mut self, link: LinkId, down: bool) {
        if down {
            self.air.down.fail_link(&self.fabric.topology, link);
        } else {
            self.air.down.restore_link(&self.fabric.topology, link);
        }
    }
}

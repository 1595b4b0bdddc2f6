//! Worlds drawn at random: schedules, faults, tunables, scripts. Whatever is drawn, the world
//! comes to rest, every command has its one answer, no rule is broken, and every credit is where
//! it belongs.

use std::collections::BTreeMap;
use std::fmt;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use selvedge_core::config::Tunables;
use selvedge_core::ugni::nic::{self, Fault};
use selvedge_core::ugni::{self, Module};
use selvedge_core::{Nic, Reason, Span, Time};
use selvedge_proptests::world::{
    Ask::{Add, Close, Connect, Get, GetOdd, Put, Send, SendLong, SendPlaced, Set},
    BYTES, SET, Script, crossbar, mark, ring, shaken, slot, timed, word,
};
use selvedge_sim::fabric::Strategy as Schedule;
use selvedge_sim::fault::{Harm, Rule, What, When};
use selvedge_sim::ugni::Setup;
use selvedge_sim::watch::Kind;
use selvedge_sim::world::{End, World};

/// A world as drawn. Its numbers mean little alone, so that it shrinks to a small one.
#[derive(Clone)]
struct Drawn {
    seed: u64,
    torus: bool,
    batch: u32,
    schedule: Schedule,
    module: ugni::Config,
    nic: nic::Config,
    scripts: Vec<Script>,
    faults: Vec<Wrong>,
    death: Option<Death>,
}

/// A proc dies, and perhaps is born again.
#[derive(Clone, Copy, Debug)]
struct Death {
    proc: u32,
    at: Span,
    again: Option<Span>,
}

impl Death {
    fn rules(self) -> impl Iterator<Item = Rule<Module>> {
        let rule = move |what, after| Rule {
            what,
            when: When::At { at: Time::ZERO + after, lasts: None },
            procs: Some(vec![self.proc]),
        };
        let again = self.again.map(|after| rule(What::Restart, self.at + after));
        [rule(What::Crash, self.at)].into_iter().chain(again)
    }
}

/// On few lines, with what differs from the default.
impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Drawn { seed, torus, batch, schedule, module, nic, .. } = self;
        write!(f, "seed {seed}, torus {torus}, batch {batch}, {schedule:?}")?;
        unusual(module, f)?;
        unusual(nic, f)?;
        for part in self.scripts.iter().map(|script| format!("{script:?}")) {
            write!(f, "\n{part}")?;
        }
        self.faults.iter().try_for_each(|wrong| write!(f, "\n{wrong:?}"))?;
        self.death.iter().try_for_each(|death| write!(f, "\n{death:?}"))
    }
}

fn unusual<C: Tunables>(config: &C, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let rows = C::TABLE.iter().map(|row| (row, config.get(row.name)));
    rows.filter(|(row, value)| *value != Some(row.default))
        .try_for_each(|(row, value)| write!(f, ", {} {}", row.name, value.unwrap_or_default()))
}

/// Something that goes wrong now and then.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    what: Which,
    parts_per_thousand: u32,
    most: u64,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Nic(Fault),
    Loss,
    Twice,
    Late(Span),
}

impl Wrong {
    fn rule(self) -> Rule<Module> {
        let packets = |harm| What::Packets { harm, from: None, to: None, nodes: None, links: None };
        let what = match self.what {
            Which::Nic(fault) => What::Nic(fault),
            Which::Loss => packets(Harm::Loss),
            Which::Twice => packets(Harm::Duplicate),
            Which::Late(by) => packets(Harm::Reorder(by)),
        };
        let (ppb, most) = (self.parts_per_thousand * 1_000_000, Some(self.most));
        let when = When::Rate { ppb, from: Time::ZERO, until: Time::NEVER, most };
        Rule { what, when, procs: None }
    }
}

// ---- how they are drawn ------------------------------------------------------------------------

fn schedules() -> impl Strategy<Value = Schedule> {
    let jitter = || (0_u64..3_000).prop_map(Span::from_ns);
    prop_oneof![
        Just(Schedule::Fifo),
        jitter().prop_map(|jitter| Schedule::Random { jitter }),
        (1_u32..5, 10_u64..600, jitter()).prop_map(|(depth, steps, jitter)| Schedule::Pct {
            depth,
            steps,
            jitter
        }),
    ]
}

fn faults(kinds: &'static [Fault]) -> impl Strategy<Value = Vec<Wrong>> {
    let which = prop_oneof![
        6 => prop::sample::select(kinds).prop_map(Which::Nic),
        1 => Just(Which::Loss),
        1 => Just(Which::Twice),
        1 => (1_u64..20).prop_map(|us| Which::Late(Span::from_us(us))),
    ];
    let wrong = (which, 1_u32..400, 1_u64..6).prop_map(|(what, parts_per_thousand, most)| Wrong {
        what,
        parts_per_thousand,
        most,
    });
    prop::collection::vec(wrong, 0..4).prop_map(once)
}

/// Two faults strike once at most, since whom they strike again gives up, and does not read what
/// the peer has called sent: a second false `TIMEOUT` says that the peer is dead, and a set-up
/// refused as often as there are tries leaves a mailbox that nobody can read.
fn once(mut faults: Vec<Wrong>) -> Vec<Wrong> {
    for rare in [Fault::RefuseSetup, Fault::EndTimeout] {
        let is_rare = |wrong: &Wrong| matches!(wrong.what, Which::Nic(fault) if fault == rare);
        let first = faults.iter().position(is_rare);
        let mut at = 0..;
        faults.retain(|wrong| at.next() == first || !is_rare(wrong));
        faults.iter_mut().filter(|wrong| is_rare(wrong)).for_each(|wrong| wrong.most = 1);
    }
    faults
}

/// Tunables near their least values, where things run out.
fn modules() -> impl Strategy<Value = ugni::Config> {
    let counts = (2_u64..=8, 1_u64..=3, 1_u64..=4, 1_u64..=40, 1_u64..=40);
    let queues = ((1_u64..=8, 1_u64..=8), 1_u64..=20, 1_u64..=8, 0_u64..=20, 1_u64..=10, 0_u64..=1);
    (counts, queues, memory()).prop_map(|(counts, queues, memory)| {
        let (smsg_credits, slab_mailboxes, slabs_max, waiting_max, copies_max) = counts;
        let (
            (sends, local_cq_reserve),
            close_ms,
            remote_cq,
            smsg_retries,
            connect_tries,
            reconnect,
        ) = queues;
        let local_cq = (sends + local_cq_reserve).max(4);
        let config = ugni::Config {
            smsg_credits,
            slab_mailboxes,
            slabs_max,
            waiting_max,
            copies_max,
            local_cq,
            local_cq_reserve,
            remote_cq,
            smsg_retries,
            connect_tries,
            reconnect,
            close_timeout: Span::from_ms(close_ms).0,
            ..memory
        };
        assert!(is_legal(&config));
        config
    })
}

/// Those of remote memory and long messages.
fn memory() -> impl Strategy<Value = ugni::Config> {
    let pick = prop::sample::select::<u64>;
    let sizes = (pick(vec![8, 8_192]), 1_u64..=3, pick(vec![0, 4_096]), pick(vec![0, 2_048]));
    let counts = (pick(vec![4, 1 << 20]), 2_u64..=4, 1_u64..=2, 1_u64..=9, 0_u64..=3);
    (sizes, counts, 2_u64..=6, 0_u64..=2, 0_u64..=1).prop_map(
        |(sizes, counts, regions_max, regions_reserve, wake_peers)| {
            let (smsg_max, eager_buffers, fma_put_max, fma_get_max) = sizes;
            let (get_max, rdma_cq, bte_max, rdma_waiting_max, rdma_retries) = counts;
            ugni::Config {
                smsg_max,
                eager_max: 20,
                eager_buffers,
                fma_put_max,
                fma_get_max,
                get_max,
                rdma_cq,
                bte_max,
                rdma_waiting_max,
                rdma_retries,
                regions_max,
                regions_reserve,
                wake_peers,
                ..ugni::Config::default()
            }
        },
    )
}

fn nics() -> impl Strategy<Value = nic::Config> {
    let choices = (1_u64..=8, 0_u64..=1, 0_u64..=3, 0_u64..=1, 0_u64..=10, 0_u64..=3_000);
    let memory = (1_u64..=8, 0_u64..=2, 0_u64..=1);
    (choices, memory).prop_map(|(choices, (mdds, transaction_retries, aries))| {
        let (credit_batch, credit_event, delay_us, announce_again, datagram_retries, early_ns) =
            choices;
        let config = nic::Config {
            credit_batch,
            credit_event,
            datagram_delay: Span::from_us(delay_us).0,
            announce_again,
            datagram_retries,
            early_by: Span::from_ns(early_ns).0,
            mdds,
            transaction_retries,
            aries,
            ..nic::Config::default()
        };
        assert!(is_legal(&config));
        config
    })
}

/// Whether every value lies within the bounds of its row.
fn is_legal<C: Tunables>(config: &C) -> bool {
    C::TABLE
        .iter()
        .all(|row| config.get(row.name).is_some_and(|value| (row.min..=row.max).contains(&value)))
}

fn scripts(procs: u32, asks: usize) -> impl Strategy<Value = Vec<Script>> {
    let script = move |rank: u32| {
        let peer = move || (1..procs).prop_map(move |step| (rank + step) % procs);
        let ask = prop_oneof![
            6 => peer().prop_map(Send),
            1 => peer().prop_map(Connect),
            1 => peer().prop_map(Close),
        ];
        (prop::collection::vec(ask, 0..=asks), any::<bool>()).prop_map(|(asks, at_once)| {
            if at_once { Script::at_once(&asks) } else { Script::in_turn(&asks) }
        })
    };
    (0..procs).map(script).collect::<Vec<_>>()
}

/// Scripts that also use each other's memory and send long messages.
fn busy_scripts(procs: u32, asks: usize) -> impl Strategy<Value = Vec<Script>> {
    let script = move |rank: u32| {
        let peer = move || (1..procs).prop_map(move |step| (rank + step) % procs);
        let ask = prop_oneof![
            2 => peer().prop_map(Send),
            1 => peer().prop_map(Close),
            3 => peer().prop_map(SendLong),
            1 => peer().prop_map(SendPlaced),
            2 => peer().prop_map(Put),
            2 => peer().prop_map(Get),
            1 => peer().prop_map(GetOdd),
            2 => peer().prop_map(Add),
            1 => peer().prop_map(Set),
        ];
        (prop::collection::vec(ask, 0..=asks), any::<bool>()).prop_map(|(asks, at_once)| {
            let script = if at_once { Script::at_once(&asks) } else { Script::in_turn(&asks) };
            script.tallied()
        })
    };
    (0..procs).map(script).collect::<Vec<_>>()
}

fn worlds(
    scripts: impl Strategy<Value = Vec<Script>>,
    kinds: &'static [Fault],
) -> impl Strategy<Value = Drawn> {
    let place = (any::<u64>(), any::<bool>(), 1_u32..=16);
    let parts = (place, schedules(), modules(), nics(), scripts, faults(kinds));
    parts.prop_map(|((seed, torus, batch), schedule, module, nic, scripts, faults)| {
        // Where no later event is sure to come, the module has to look again.
        let relook_delay = (1 - nic.announce_again) * 2 * nic.early_by;
        let module = ugni::Config { relook_delay, ..module };
        Drawn { seed, torus, batch, schedule, module, nic, scripts, faults, death: None }
    })
}

// ---- what has to hold --------------------------------------------------------------------------

/// Runs a world to rest. What is wrong, with the last events.
fn run(drawn: &Drawn) -> Result<World<Module, Script>, TestCaseError> {
    let procs = drawn.scripts.len() as u32;
    let setup = Setup::new(drawn.module, drawn.nic);
    let mut fabric = if drawn.torus { ring(procs, setup) } else { crossbar(procs, setup) };
    fabric.timing.batch = drawn.batch;
    let deaths = drawn.death.into_iter().flat_map(Death::rules);
    let rules = drawn.faults.iter().map(|wrong| wrong.rule()).chain(deaths).collect();
    let fabric = shaken::<Module>(fabric, drawn.seed, drawn.schedule, rules);
    let mut world = timed(fabric, &drawn.scripts);
    let end = world.run(Time::NEVER, 200_000, true);
    let busy = if end == End::Rest { world.settle() } else { None };
    let all = || (0..procs).flat_map(|a| (0..procs).map(move |b| (a, b)));
    world.check_pairs(all().filter(|(a, b)| a != b));
    let last = || {
        let recorder = world.watch.recorder.as_ref();
        recorder.map_or(String::new(), |recorder| recorder.tail(64).join("\n"))
    };
    if let Some(found) = world.watch.found.first() {
        let kind = match found.kind {
            Kind::Safety => "safety",
            Kind::Progress => "progress",
        };
        return Err(TestCaseError::fail(format!(
            "{kind}: {} (proc {}, {})\n{busy:?}\n{}",
            found.rule,
            found.proc,
            found.at,
            last()
        )));
    }
    prop_assert_eq!(end, End::Rest, "it never comes to rest\n{}", last());
    let lives = |rank| drawn.death.is_none_or(|death| death.proc != rank);
    let mut survivors = world.procs().iter().filter(|proc| lives(proc.name.rank));
    prop_assert!(survivors.all(|proc| proc.app.is_through()), "an answer is missing\n{}", last());
    if drawn.death.is_some() {
        // What the dead had asked for died with them.
        return Ok(world);
    }
    // What is not called failed or unknown is called sent, and all that came.
    let watch = &world.watch;
    let (failed, unknown) = (total(&watch.failed), total(&watch.unknown));
    let done = watch.delivered + watch.operations;
    let operations: u64 = drawn.scripts.iter().map(Script::operations).sum();
    prop_assert!(done + failed <= watch.messages + operations);
    prop_assert!(done + failed + unknown >= watch.messages + operations);
    let asked: u64 = drawn.scripts.iter().map(Script::messages).sum();
    prop_assert_eq!(watch.messages, asked);
    Ok(world)
}

fn total(counts: &BTreeMap<Reason, u64>) -> u64 {
    counts.values().sum()
}

/// Memory holds what was put there, and nothing else: of what was done all, of what is of unknown
/// fate all or nothing, of the rest nothing. Whoever has died knows nothing of its own.
fn remembered(drawn: &Drawn, world: &World<Module, Script>) -> Result<(), TestCaseError> {
    let mortal = drawn.death.map(|death| death.proc);
    for target in world.procs().iter().filter(|proc| Some(proc.name.rank) != mortal) {
        let rank = target.name.rank;
        let read = |at| target.memory.read(at, BYTES);
        let mut found = Vec::new();
        let (mut least, mut most, mut set) = (0, 0, [false; 2]);
        for proc in world.procs() {
            let me = proc.name.rank;
            let Some(tally) = proc.app.tally() else { continue };
            let done = |ask| tally.done.iter().filter(|(other, _)| *other == ask).count() as u64;
            let maybe = |ask| tally.maybe.iter().filter(|&&other| other == ask).count() as u64;
            let dead = Some(me) == mortal;
            let (put, blank) = (mark(me), [0; BYTES as usize]);
            let there = read(slot(me));
            let holds = |bytes: [u8; BYTES as usize]| *there == bytes;
            let whole = holds(put) || holds(blank);
            prop_assert!(whole, "{there:?} in the slot of {me} at {rank}");
            if !dead {
                let (sure, perhaps) = (done(Put(rank)), maybe(Put(rank)));
                prop_assert!(!(sure > 0 && holds(blank)), "a put of {me} to {rank} is done");
                prop_assert!(sure + perhaps > 0 || holds(blank), "{me} put nothing to {rank}");
            }
            // Two lives may have asked for all of it.
            let lost = if dead { 2 * proc.app.count(Add(rank)) } else { maybe(Add(rank)) };
            least += done(Add(rank));
            most += done(Add(rank)) + lost;
            set[0] |= done(Set(rank)) > 0;
            set[1] |= done(Set(rank)) + maybe(Set(rank)) > 0 || dead;
            let adds = tally.done.iter().filter(|(ask, _)| *ask == Add(rank));
            found.extend(adds.map(|(_, value)| value & (SET - 1)));
        }
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&read(word()));
        let count = u64::from_le_bytes(bytes) & (SET - 1);
        prop_assert!((least..=most).contains(&count), "{least} <= {count} <= {most} at {rank}");
        let is_set = u64::from_le_bytes(bytes) & SET != 0;
        prop_assert!((is_set || !set[0]) && (!is_set || set[1]), "{set:?} {is_set} at {rank}");
        found.sort_unstable();
        prop_assert!(found.windows(2).all(|two| two[0] != two[1]), "two found the same: {found:?}");
    }
    Ok(())
}

/// Every slot of every mailbox is accounted for: the sender holds a credit for it, or the
/// receiver has freed it and not yet told.
fn conserved(drawn: &Drawn, world: &World<Module, Script>) -> Result<(), TestCaseError> {
    let batch = drawn.nic.credit_batch.min(drawn.module.smsg_credits / 2).max(1);
    for [here, there] in [[0, 1], [1, 0]].map(|pair| pair.map(|rank| &world.procs()[rank])) {
        let credits = here.transport.credits(there.name);
        prop_assert_eq!(credits.is_some(), there.transport.credits(here.name).is_some());
        if let Some(credits) = credits {
            prop_assert_eq!(u64::from(credits.held() + credits.owed()), drawn.module.smsg_credits);
            prop_assert_eq!(credits.owed(), there.nic.unreturned(here.address));
            prop_assert!(u64::from(credits.owed()) < batch, "a whole batch goes back");
        }
    }
    Ok(())
}

const DATAGRAMS: &[Fault] = &[
    Fault::RefusePostSession,
    Fault::RefusePostMemory,
    Fault::RefuseWildcard,
    Fault::EndTimeout,
    Fault::EndTerminated,
    Fault::EndError,
    Fault::HoldDatagram,
    Fault::DeafWildcard,
    Fault::RefuseSetup,
    Fault::RefuseRegister,
    Fault::BusyUnbind,
];

const MESSAGES: &[Fault] = &[
    Fault::RefuseSend,
    Fault::FailSend,
    Fault::EarlyEvent,
    Fault::DuplicateEvent,
    Fault::HoldCredits,
    Fault::RemoteOverrun,
];

/// The same worlds in every run: a failure is there for everybody, or for nobody.
fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(0x5E1F);
    ProptestConfig { cases: 4_096, max_shrink_iters: 4_096, rng_seed, ..ProptestConfig::default() }
}

/// So many messages there, and so many back.
fn streams() -> impl Strategy<Value = Vec<Script>> {
    (0_usize..40, 0_usize..40).prop_map(|(there, back)| {
        vec![Script::at_once(&vec![Send(1); there]), Script::in_turn(&vec![Send(0); back])]
    })
}

proptest! {
    #![proptest_config(config())]

    /// Two procs that call each other while datagrams fail.
    #[test]
    fn the_connect_race_ends(drawn in worlds(scripts(2, 4), DATAGRAMS)) {
        let world = run(&drawn)?;
        conserved(&drawn, &world)?;
    }

    /// Three procs, every kind of fault.
    #[test]
    fn any_fault_is_survived(drawn in worlds(scripts(3, 5), <nic::Nic as Nic>::FAULTS)) {
        run(&drawn)?;
    }

    /// A proc dies in the middle of anything, and perhaps comes back.
    #[test]
    fn a_death_is_survived(
        drawn in worlds(scripts(3, 5), <nic::Nic as Nic>::FAULTS),
        (proc, at) in (0_u32..3, 0_u64..60_000),
        again in prop::option::of(1_u64..3_000),
    ) {
        let again = again.map(Span::from_us);
        run(&Drawn { death: Some(Death { proc, at: Span::from_ns(at), again }), ..drawn })?;
    }

    /// Memory of each other, long messages and short ones, and every kind of fault.
    #[test]
    fn memory_is_what_was_put(
        drawn in worlds(busy_scripts(3, 6), <nic::Nic as Nic>::FAULTS),
    ) {
        let world = run(&drawn)?;
        remembered(&drawn, &world)?;
    }

    /// The same, and a proc dies, and perhaps comes back.
    #[test]
    fn memory_survives_the_death_of_a_peer(
        drawn in worlds(busy_scripts(3, 6), <nic::Nic as Nic>::FAULTS),
        (proc, at) in (0_u32..3, 0_u64..60_000),
        again in prop::option::of(1_u64..3_000),
    ) {
        let again = again.map(Span::from_us);
        let drawn = Drawn { death: Some(Death { proc, at: Span::from_ns(at), again }), ..drawn };
        let world = run(&drawn)?;
        remembered(&drawn, &world)?;
    }

    /// Many messages through few slots.
    #[test]
    fn credits_are_conserved(drawn in worlds(streams(), MESSAGES)) {
        let world = run(&drawn)?;
        conserved(&drawn, &world)?;
    }

    /// Where nothing goes wrong every message is sent, and the connections stay up.
    #[test]
    fn nothing_fails_by_itself(drawn in worlds(streams(), MESSAGES)) {
        let mut drawn = drawn;
        drawn.faults.clear();
        (drawn.module.waiting_max, drawn.module.copies_max) = (40, 40);
        let world = run(&drawn)?;
        conserved(&drawn, &world)?;
        let up = u64::from(world.watch.messages > 0) * 2;
        prop_assert_eq!(world.watch.delivered, world.watch.messages);
        prop_assert_eq!((world.watch.connections, world.watch.reconnects), (up, 0));
    }
}

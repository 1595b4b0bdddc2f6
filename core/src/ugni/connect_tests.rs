//! The table of the connection machine: one block a state, one row a cell that matters. A row is
//! the state before, the event, the effects and the state after. Over 800 lines, as its table is.

use super::{
    Break, Call, EFFECTS_MAX, Effect, Event, Link, MboxId, Post, PostError, PostState, Reason,
    Said, Says, State,
};
use crate::id::Generation;
use crate::machine::Verdict;
use crate::tie::Tie;
use crate::time::{Span, Time};
use crate::ugni::Config;
use crate::ugni::record::Peer;
use crate::ugni::smsg::Window;

use alloc::vec::Vec;

const NOW: Time = Time(10_000);
/// A deadline that has come, and one that has not.
const DUE: Time = NOW;
const LATER: Time = Time(20_000);

/// The attempt that the table is about, and those of the peer.
const OURS: Generation = Generation::born(1).next();
const FIRST: Generation = Generation::born(1).next();
const SECOND: Generation = FIRST.next();
/// The first attempt of its next life.
const REBORN: Generation = Generation::born(2).next();
/// An attempt of ours that is long over.
const BURNT: Generation = Generation::born(1);

const MINE: MboxId = MboxId(1);
const THEIRS: Peer = Peer { mbox: MboxId(9), index: 3, credits: 8, size: 64 };
const ANOTHER: Peer = Peer { mbox: MboxId(10), index: 3, credits: 8, size: 64 };

/// Every span has a number of its own, so that a row shows which one was used.
fn config() -> Config {
    Config {
        connect_tries: 2,
        backoff_doublings: 6,
        resolve_timeout: 100,
        mailbox_retry: 200,
        session_retry: 300,
        post_retry: 400,
        answer_timeout: 500,
        close_timeout: 600,
        unbind_retry: 700,
        rescan_delay: 900,
        ..Config::default()
    }
}

const fn after(span: u64) -> Time {
    Time(NOW.0 + span)
}

// ---- states --------------------------------------------------------------------------------

const fn link(state: State) -> Link {
    Link {
        generation: OURS,
        heard: Generation::NONE,
        tie: Tie::Mine,
        tries: 0,
        post: Post::None,
        state,
        window: Window::NONE,
    }
}

impl Link {
    const fn post(self, post: Post) -> Link {
        Link { post, ..self }
    }
    const fn tries(self, tries: u8) -> Link {
        Link { tries, ..self }
    }
    const fn knows(self, heard: Generation) -> Link {
        Link { heard, ..self }
    }
    const fn second(self) -> Link {
        Link { tie: Tie::Theirs, ..self }
    }
    const fn open(self) -> Link {
        Link { window: Window::open(THEIRS.credits), ..self }
    }
}

const OUT: Post = Post::Out { bye: false, again: false };
const OUT_AGAIN: Post = Post::Out { bye: false, again: true };
const BYE: Post = Post::Out { bye: true, again: false };
const BYE_AGAIN: Post = Post::Out { bye: true, again: true };
const fn backoff(retry: Time) -> Post {
    Post::Backoff { retry }
}
const fn session(retry: Time) -> Post {
    Post::Session { retry }
}

const fn resolving(until: Time) -> Link {
    link(State::Resolving { until })
}
const fn starved(peer: Option<Peer>, retry: Time) -> Link {
    link(State::Starved { peer, retry })
}
/// Our record is out.
const fn asking(peer: Option<Peer>, until: Time) -> Link {
    link(State::Exchanging { mbox: MINE, peer, told: false, until }).post(OUT)
}
/// Our record is there; the peer's is not here.
const fn told(until: Time) -> Link {
    link(State::Exchanging { mbox: MINE, peer: None, told: true, until })
}
const fn ready() -> Link {
    link(State::Ready { mbox: MINE }).knows(FIRST).open()
}
const fn parting(said: Said, heard: bool, until: Time) -> Link {
    link(State::Parting { mbox: MINE, said, heard, until }).knows(FIRST).open()
}
/// A break of what was up; nothing is said yet.
const fn breaking(why: Reason, step: Break, until: Time) -> Link {
    link(State::Breaking { mbox: Some(MINE), why, step, next: None, until }).knows(FIRST).open()
}
/// The same of an attempt that never was up.
const fn failing(why: Reason, step: Break, until: Time) -> Link {
    Link { window: Window::NONE, ..breaking(why, step, until) }.knows(Generation::NONE)
}
/// An answer to a goodbye, without a mailbox of our own.
const fn answering(until: Time) -> Link {
    let (why, step) = (Reason::PeerRestarted, telling(false, true));
    link(State::Breaking { mbox: None, why, step, next: None, until }).post(BYE)
}
const fn unbinding(next: Option<Peer>, retry: Time) -> Link {
    leaving(Reason::Closed, next, retry)
}
/// The same of a break with this reason.
const fn leaving(why: Reason, next: Option<Peer>, retry: Time) -> Link {
    link(State::Unbinding { mbox: Some(MINE), why, next, retry }).knows(FIRST).open()
}
const fn settling(told: bool, silent: bool) -> Break {
    Break::Settling { told, silent }
}
const fn telling(told: bool, silent: bool) -> Break {
    Break::Telling { told, silent }
}
impl Link {
    /// A break that has heard of the peer's next attempt.
    const fn with_next(self, peer: Peer) -> Link {
        match self.state {
            State::Breaking { mbox, why, step, until, .. } => {
                let next = Some(peer);
                Link { state: State::Breaking { mbox, why, step, next, until }, ..self }
            }
            State::Resolving { .. }
            | State::Starved { .. }
            | State::Exchanging { .. }
            | State::Ready { .. }
            | State::Parting { .. }
            | State::Unbinding { .. } => self,
        }
    }
}

// ---- events and effects ---------------------------------------------------------------------

/// An offer of an attempt that has accepted none of ours, or the one that it names.
const fn offer(generation: Generation, sees: Generation) -> Event {
    let says = Says::Offer(THEIRS);
    Event::Heard(Call { generation, sees, over: Generation::NONE, says, elsewhere: false })
}
/// The same of another life than the one that our datagrams go to.
const fn elsewhere(generation: Generation) -> Event {
    let says = Says::Offer(THEIRS);
    Event::Heard(Call { generation, sees: NONE, over: NONE, says, elsewhere: true })
}
/// A goodbye of an attempt that is done with all of ours up to `over`.
const fn bye(generation: Generation, over: Generation) -> Event {
    let says = Says::Bye { answered: false, from: None };
    Event::Heard(Call { generation, sees: Generation::NONE, over, says, elsewhere: false })
}
/// The same, which wants no answer.
const fn last_bye(generation: Generation, over: Generation) -> Event {
    let says = Says::Bye { answered: true, from: None };
    Event::Heard(Call { generation, sees: Generation::NONE, over, says, elsewhere: false })
}
/// The same of an attempt that was up at the peer's side.
const fn bye_from(peer: Peer, generation: Generation, over: Generation) -> Event {
    let says = Says::Bye { answered: false, from: Some(peer) };
    Event::Heard(Call { generation, sees: Generation::NONE, over, says, elsewhere: false })
}
const NONE: Generation = Generation::NONE;
const COMPLETED: Event = Event::Posted(PostState::Completed);
const TIMEOUT: Event = Event::Posted(PostState::Timeout);
const TERMINATED: Event = Event::Posted(PostState::Terminated);
const ERROR: Event = Event::Posted(PostState::Error);
const NO_SESSION: Event = Event::PostRefused(PostError::Session);
const NO_MEMORY: Event = Event::PostRefused(PostError::Memory);
const INVALID: Event = Event::PostRefused(PostError::Invalid);
const EXPIRED: Event = Event::Expired;

const PUBLISH: Effect = Effect::Publish;
const RAISE: Effect = Effect::Raise { mbox: MINE, peer: THEIRS };
const fn down(why: Reason) -> Effect {
    Effect::Down(why)
}
const fn end(mbox: Option<MboxId>, why: Reason, next: Option<Peer>) -> Effect {
    Effect::End { mbox, why, next }
}

// ---- the table -------------------------------------------------------------------------------

type Row<'a> = (Link, Event, &'a [Effect], Link);

/// Each row is taken, with these effects, and ends in this state.
#[track_caller]
fn taken(rows: &[Row<'_>]) {
    for (at, &(before, event, effects, after)) in rows.iter().enumerate() {
        let (mut link, mut fx) = (before, Vec::new());
        let verdict = link.step(NOW, event, &config(), &mut fx);
        let (got, wanted) = ((verdict, &fx[..], link), (Verdict::Taken, effects, after));
        assert_eq!(got, wanted, "row {at}: {before:?} {event:?}");
        assert_eq!(after.check(), Ok(()), "row {at}");
    }
}

/// Each of these events comes too late, or too early, and nothing comes of it.
#[track_caller]
fn stale(before: Link, events: &[Event]) {
    for &event in events {
        let (mut link, mut fx) = (before, Vec::new());
        let verdict = link.step(NOW, event, &config(), &mut fx);
        let got = (verdict, &fx[..], link);
        assert_eq!(got, (Verdict::Stale, &[][..], before), "{before:?} {event:?}");
    }
}

#[test]
fn resolving_asks_until_there_is_an_address() {
    let no_address = [end(None, Reason::NoAddress, None)];
    let (at, asked) = (resolving(DUE), resolving(after(200)).tries(1));
    taken(&[
        (at, Event::Resolved, &[Effect::TakeMailbox], starved(None, after(200))),
        (at.tries(2), Event::Resolved, &[Effect::TakeMailbox], starved(None, after(200))),
        (at, Event::Unresolved(Reason::NoAddress), &no_address, at),
        // The peer calls first: its address comes with the call.
        (
            at,
            offer(FIRST, NONE),
            &[Effect::TakeMailbox],
            starved(Some(THEIRS), after(200)).knows(FIRST),
        ),
        // It is bound to an attempt of ours that is burnt, or says that one is over: it is told
        // so, and this attempt is burnt too, before it was published.
        (at, offer(FIRST, BURNT), &[PUBLISH], answering(after(500)).knows(FIRST)),
        (at, bye(FIRST, BURNT), &[PUBLISH], answering(after(500)).knows(FIRST)),
        (at.second(), bye(FIRST, BURNT), &[PUBLISH], answering(after(1_000)).knows(FIRST).second()),
        // Each wait is twice the one before, and at the side that goes second twice that.
        (at, EXPIRED, &[Effect::Resolve], asked),
        (at.tries(1), EXPIRED, &[Effect::Resolve], resolving(after(400)).tries(2)),
        (at.second(), EXPIRED, &[Effect::Resolve], resolving(after(400)).tries(1).second()),
        (at.tries(2), EXPIRED, &no_address, at.tries(3)),
    ]);
    stale(resolving(LATER), &[EXPIRED]);
    stale(at.knows(SECOND), &[offer(FIRST, NONE), offer(SECOND, NONE), bye(FIRST, NONE)]);
    stale(at, &[Event::Granted(MINE), COMPLETED, NO_MEMORY, Event::CloseAsked, Event::Unbound]);
}

#[test]
fn starved_waits_for_a_mailbox() {
    let (at, known) = (starved(None, DUE), starved(Some(THEIRS), LATER).knows(FIRST));
    let refused = [end(None, Reason::SetupRefused, None)];
    taken(&[
        (at.tries(2), Event::Granted(MINE), &[PUBLISH], asking(None, after(500))),
        (known, Event::Granted(MINE), &[PUBLISH], asking(Some(THEIRS), after(500)).knows(FIRST)),
        // What the peer offers meanwhile is kept: the newest.
        (at, offer(FIRST, NONE), &[], starved(Some(THEIRS), DUE).knows(FIRST)),
        (starved(Some(ANOTHER), DUE).knows(FIRST), offer(SECOND, NONE), &[], {
            starved(Some(THEIRS), DUE).knows(SECOND)
        }),
        (at, offer(FIRST, BURNT), &[PUBLISH], answering(after(500)).knows(FIRST)),
        (known, bye(FIRST, NONE), &[PUBLISH], answering(after(500)).knows(FIRST)),
        (at, EXPIRED, &[Effect::TakeMailbox], starved(None, after(400)).tries(1)),
        (at.tries(1), EXPIRED, &[Effect::TakeMailbox], starved(None, after(800)).tries(2)),
        (at.second(), EXPIRED, &[Effect::TakeMailbox], {
            starved(None, after(800)).tries(1).second()
        }),
        (at.tries(2), EXPIRED, &refused, at.tries(3)),
    ]);
    stale(known, &[EXPIRED, offer(FIRST, NONE), Event::Resolved, Event::CloseAsked, COMPLETED]);
}

#[test]
fn one_record_each_way_is_enough() {
    let met = asking(Some(THEIRS), LATER).knows(FIRST);
    taken(&[
        (asking(None, LATER), COMPLETED, &[], told(after(500))),
        (told(LATER), offer(FIRST, NONE), &[RAISE], ready()),
        (told(LATER).tries(1), offer(FIRST, OURS), &[RAISE], ready()),
        // Offers that cross: ours is out while theirs comes in.
        (
            asking(None, LATER),
            offer(FIRST, NONE),
            &[],
            asking(Some(THEIRS), after(500)).knows(FIRST),
        ),
        (met, COMPLETED, &[RAISE], ready()),
        // The peer calls anew before we have told it anything.
        (met, offer(SECOND, NONE), &[], asking(Some(THEIRS), after(500)).knows(SECOND)),
        // It asks again, since it has not got what we said; also while ours is out.
        (
            met,
            offer(FIRST, NONE),
            &[],
            asking(Some(THEIRS), after(500)).knows(FIRST).post(OUT_AGAIN),
        ),
        (told(LATER).knows(FIRST), offer(FIRST, NONE), &[PUBLISH], {
            let told = State::Exchanging { mbox: MINE, peer: None, told: false, until: after(500) };
            link(told).knows(FIRST).post(OUT)
        }),
        (met.post(OUT_AGAIN), COMPLETED, &[PUBLISH], asking(Some(THEIRS), after(500)).knows(FIRST)),
    ]);
    // An attempt of ours that is burnt is not this one; what is repeated or old says nothing new.
    stale(asking(None, LATER), &[offer(FIRST, BURNT), EXPIRED, Event::Granted(MINE)]);
    stale(asking(Some(THEIRS), LATER).knows(SECOND), &[offer(SECOND, OURS), offer(FIRST, NONE)]);
    stale(told(LATER), &[Event::Lost, Event::CloseAsked, Event::GoodbyeHeard, Event::Drained]);
}

#[test]
fn a_refused_post_is_posted_again() {
    let at = asking(None, LATER);
    let met = asking(Some(THEIRS), LATER).knows(FIRST);
    let heard = asking(Some(THEIRS), after(500)).knows(FIRST);
    let unreachable = [down(Reason::Unreachable)];
    let failed = failing(Reason::Unreachable, settling(false, false), Time::NEVER).tries(0);
    taken(&[
        // The session rule: the next completion that is read ends it, or in the worst case time.
        (at, NO_SESSION, &[], at.post(session(after(300)))),
        (at.tries(2), NO_SESSION, &[], at.tries(2).post(session(after(300)))),
        (at.post(session(LATER)), offer(FIRST, NONE), &[PUBLISH], heard),
        (at.post(session(DUE)), EXPIRED, &[PUBLISH], at),
        // Memory: each wait is twice the one before, twice that at the side that goes second.
        (at, NO_MEMORY, &[], at.tries(1).post(backoff(after(800)))),
        (at, INVALID, &[], at.tries(1).post(backoff(after(800)))),
        (at.tries(1), NO_MEMORY, &[], at.tries(2).post(backoff(after(1_600)))),
        (at.second(), NO_MEMORY, &[], at.second().tries(1).post(backoff(after(1_600)))),
        (at.second().tries(1), NO_MEMORY, &[], at.second().tries(2).post(backoff(after(3_200)))),
        (at.post(backoff(DUE)), EXPIRED, &[PUBLISH], at),
        // A wait for memory is waited out, whatever is heard.
        (at.post(backoff(LATER)), offer(FIRST, NONE), &[], heard.post(backoff(LATER))),
        (at.tries(2), NO_MEMORY, &unreachable, failed),
        // What the peer may have sent meanwhile is read before we part.
        (met.tries(2), NO_MEMORY, &[RAISE, unreachable[0]], failed.knows(FIRST).open()),
    ]);
    stale(at.post(session(LATER)), &[EXPIRED]);
    stale(at.post(backoff(LATER)), &[EXPIRED]);
}

#[test]
fn a_datagram_that_ends_badly_is_posted_again() {
    let (at, met) = (asking(None, LATER), asking(Some(THEIRS), LATER).knows(FIRST));
    let mute = |why| failing(why, settling(false, false), Time::NEVER);
    let due = asking(None, DUE);
    taken(&[
        (at, TERMINATED, &[], at.tries(1).post(backoff(after(800)))),
        (at, ERROR, &[], at.tries(1).post(backoff(after(800)))),
        (at.second(), ERROR, &[], at.second().tries(1).post(backoff(after(1_600)))),
        (at.tries(2), ERROR, &[down(Reason::Unreachable)], mute(Reason::Unreachable)),
        // The node is called dead: no second try, but a goodbye, in case it is not.
        (at, TIMEOUT, &[down(Reason::PeerDied)], mute(Reason::PeerDied)),
        (met, TIMEOUT, &[RAISE, down(Reason::PeerDied)], {
            mute(Reason::PeerDied).knows(FIRST).open()
        }),
        // No answer: asks again, unless the question is still out.
        (told(DUE), EXPIRED, &[PUBLISH], { told(after(1_000)).tries(1).post(OUT) }),
        (due, EXPIRED, &[], asking(None, after(1_000)).tries(1)),
        (due.second(), EXPIRED, &[], asking(None, after(2_000)).tries(1).second()),
        (due.tries(2), EXPIRED, &[down(Reason::Unreachable)], {
            mute(Reason::Unreachable).post(OUT)
        }),
    ]);
}

#[test]
fn an_attempt_may_be_called_over_before_it_is_up() {
    let (at, gone) = (asking(None, LATER), Reason::PeerRestarted);
    let over = failing(gone, settling(false, true), Time::NEVER).post(OUT).knows(FIRST);
    let free = |until| asking(None, until).knows(FIRST);
    taken(&[
        // It had accepted this attempt, and will not write to it again.
        (at, bye(FIRST, OURS), &[down(gone)], over),
        (at, last_bye(FIRST, OURS), &[down(gone)], over),
        (at, bye_from(THEIRS, FIRST, OURS), &[RAISE, down(gone)], over.open()),
        // Another life calls than we do: ours ends first, and then it is that one's turn.
        (at, elsewhere(REBORN), &[], {
            let next = failing(gone, settling(false, false), Time::NEVER).with_next(THEIRS);
            next.post(OUT).knows(REBORN)
        }),
        // Another attempt of its own is over: this one may still be taken.
        (at, bye(FIRST, BURNT), &[], free(after(500)).post(OUT_AGAIN)),
        (asking(Some(THEIRS), LATER).knows(FIRST), bye(FIRST, NONE), &[], {
            free(after(500)).post(OUT_AGAIN)
        }),
        (told(LATER), bye(FIRST, NONE), &[PUBLISH], free(after(500))),
    ]);
    stale(asking(None, LATER).knows(SECOND), &[bye(FIRST, OURS)]);
}

#[test]
fn ready_until_somebody_wants_an_end() {
    let at = ready();
    let broken = |why, silent| breaking(why, settling(false, silent), Time::NEVER);
    let gone = Reason::PeerRestarted;
    taken(&[
        (at, Event::CloseAsked, &[Effect::SayGoodbye], parting(Said::Out, false, after(600))),
        (at, Event::GoodbyeHeard, &[], parting(Said::Not, true, after(600))),
        (at, Event::Lost, &[down(Reason::TransactionError)], {
            broken(Reason::TransactionError, false)
        }),
        (at, Event::SetupRefused, &[down(Reason::SetupRefused)], {
            broken(Reason::SetupRefused, false)
        }),
        (at, bye(FIRST, OURS), &[down(gone)], broken(gone, true)),
        (at, bye(FIRST, BURNT), &[down(gone)], broken(gone, false)),
        // A new process, or one that has forgotten: nobody to tell, nobody who writes.
        (
            at,
            offer(REBORN, NONE),
            &[down(gone)],
            breaking(gone, settling(true, true), Time::NEVER).with_next(THEIRS).knows(REBORN),
        ),
        // It has not got what we said.
        (at, offer(FIRST, NONE), &[PUBLISH], at.post(OUT)),
        (at.post(OUT), offer(FIRST, NONE), &[], at.post(OUT_AGAIN)),
        (at.post(OUT_AGAIN).tries(1), COMPLETED, &[PUBLISH], at.post(OUT)),
        (at.post(OUT).tries(1), COMPLETED, &[], at),
        // Nobody has freed a slot for long.
        (at, Event::Stalled, &[PUBLISH], at.post(OUT)),
        (at.post(OUT), Event::Stalled, &[], at.post(OUT)),
        (at.post(OUT), TIMEOUT, &[down(Reason::PeerDied)], broken(Reason::PeerDied, false)),
        (at.post(OUT), ERROR, &[], at.tries(1).post(backoff(after(800)))),
        (at.post(OUT).tries(2), TERMINATED, &[down(Reason::Unreachable)], {
            broken(Reason::Unreachable, false)
        }),
        (at.post(OUT), NO_SESSION, &[], at.post(session(after(300)))),
        (at.post(OUT), NO_MEMORY, &[], at.post(backoff(after(400)))),
        (at.post(session(DUE)), EXPIRED, &[PUBLISH], at.post(OUT)),
        (at.post(backoff(DUE)), EXPIRED, &[PUBLISH], at.post(OUT)),
    ]);
    stale(at, &[offer(FIRST, OURS), offer(SECOND, BURNT), bye(BURNT, OURS), EXPIRED]);
    stale(at, &[Event::Resolved, Event::GoodbyeDone, Event::Unbound, Event::Settled]);
}

#[test]
fn a_goodbye_goes_each_way() {
    // Nothing can come after a goodbye: there is nothing to look for any more.
    let gone = |why| leaving(why, None, Time::NEVER);
    let at = parting(Said::Out, false, LATER);
    taken(&[
        // Ours first.
        (at, Event::GoodbyeDone, &[], parting(Said::Done, false, LATER)),
        (parting(Said::Done, false, LATER), Event::GoodbyeHeard, &[Effect::Unbind], {
            gone(Reason::Closed)
        }),
        // Theirs first: ours goes when what is in flight is settled.
        (parting(Said::Not, true, LATER), Event::Settled, &[Effect::SayGoodbye], {
            parting(Said::Out, true, LATER)
        }),
        (parting(Said::Out, true, LATER), Event::GoodbyeDone, &[Effect::Unbind], {
            gone(Reason::PeerClosed)
        }),
        // Both at once.
        (at, Event::GoodbyeHeard, &[], parting(Said::Out, true, LATER)),
        // A record of ours that is still out is withdrawn first.
        (parting(Said::Out, true, LATER).post(OUT), Event::GoodbyeDone, &[Effect::Cancel], {
            breaking(Reason::PeerClosed, telling(true, true), after(500)).post(Post::Cancelling)
        }),
    ]);
    stale(at, &[Event::Settled, Event::CloseAsked, EXPIRED, offer(FIRST, OURS), Event::Stalled]);
}

#[test]
fn a_goodbye_that_fails_becomes_a_record() {
    let (at, heard) = (parting(Said::Out, false, DUE), parting(Said::Not, true, DUE));
    let broken = |why, silent| breaking(why, settling(false, silent), Time::NEVER);
    taken(&[
        (at, EXPIRED, &[], broken(Reason::Closed, false)),
        (heard, EXPIRED, &[], broken(Reason::PeerClosed, true)),
        (at, Event::Lost, &[], broken(Reason::TransactionError, false)),
        (heard, Event::Lost, &[], broken(Reason::TransactionError, true)),
        (at, bye(FIRST, BURNT), &[], broken(Reason::Closed, false)),
        (at, bye(FIRST, OURS), &[], broken(Reason::Closed, true)),
        (at, offer(SECOND, NONE), &[], {
            let gone = breaking(Reason::Closed, settling(true, true), Time::NEVER);
            gone.with_next(THEIRS).knows(SECOND)
        }),
        (at.post(OUT), TIMEOUT, &[], broken(Reason::PeerDied, false)),
        (at.post(OUT).tries(2), ERROR, &[], broken(Reason::Closed, false)),
        (at.post(OUT), ERROR, &[], at.tries(1).post(backoff(after(800)))),
        (at.post(OUT), NO_MEMORY, &[], at.post(backoff(after(400)))),
        // It cannot read a goodbye before it has the offer.
        (at, offer(FIRST, NONE), &[PUBLISH], at.post(OUT)),
        (parting(Said::Out, false, LATER).post(backoff(DUE)), EXPIRED, &[PUBLISH], {
            parting(Said::Out, false, LATER).post(OUT)
        }),
    ]);
}

#[test]
fn a_break_tells_the_peer_and_waits_for_its_silence() {
    let why = Reason::TransactionError;
    let at = |step, until| breaking(why, step, until);
    let out = at(telling(false, false), LATER).post(BYE);
    let waits = at(telling(true, false), LATER);
    // An event may run ahead of its message: the last look waits.
    let drains = at(Break::Draining, after(900));
    taken(&[
        (at(settling(false, false), Time::NEVER), Event::Settled, &[PUBLISH], {
            at(telling(false, false), after(500)).post(BYE)
        }),
        (at(settling(false, false), Time::NEVER).second(), Event::Settled, &[PUBLISH], {
            at(telling(false, false), after(1_000)).post(BYE).second()
        }),
        // An offer of ours must not be taken any more.
        (at(settling(false, false), Time::NEVER).post(OUT), Event::Settled, &[Effect::Cancel], {
            at(telling(false, false), after(500)).post(Post::Cancelling)
        }),
        // The cancellation may have been lost.
        (at(telling(false, false), DUE).post(Post::Cancelling), EXPIRED, &[Effect::Cancel], {
            at(telling(false, false), after(500)).post(Post::Cancelling)
        }),
        (at(telling(false, false), Time::NEVER).post(Post::Cancelling), TERMINATED, &[PUBLISH], {
            at(telling(false, false), after(500)).post(BYE)
        }),
        // Told; then it answers.
        (out, COMPLETED, &[], waits),
        (waits, last_bye(FIRST, OURS), &[], drains),
        (waits, Event::GoodbyeHeard, &[], drains),
        // It had said so before.
        (at(telling(false, true), LATER).post(BYE), COMPLETED, &[], drains),
        // The two goodbyes cross: each is the other's answer.
        (out, bye(FIRST, OURS), &[], at(telling(false, true), LATER).post(BYE)),
        // It asks about an attempt that we had not heard of when ours went.
        (out, bye(SECOND, OURS), &[], {
            at(telling(false, true), LATER).post(BYE_AGAIN).knows(SECOND)
        }),
        (at(telling(false, true), LATER).post(BYE_AGAIN), COMPLETED, &[PUBLISH], {
            at(telling(false, true), after(500)).post(BYE)
        }),
        // It asks after it has been told: it is told again.
        (waits, bye(FIRST, OURS), &[PUBLISH], at(telling(false, true), after(500)).post(BYE)),
        // No answer: it may not have heard. Each wait is twice the one before.
        (at(telling(true, false), DUE), EXPIRED, &[PUBLISH], {
            at(telling(false, false), after(1_000)).post(BYE).tries(1)
        }),
        (at(telling(true, false), DUE).tries(1), EXPIRED, &[PUBLISH], {
            at(telling(false, false), after(2_000)).post(BYE).tries(2)
        }),
        // Never given up; but what waits is.
        (
            at(telling(true, false), DUE).tries(2),
            EXPIRED,
            &[Effect::GiveUp(Reason::Unreachable), PUBLISH],
            at(telling(false, false), after(4_000)).post(BYE).tries(3),
        ),
        // Nothing to say any more, and nothing was ever up: straight out.
        (failing(why, settling(true, true), Time::NEVER), Event::Settled, &[Effect::Unbind], {
            Link { window: Window::NONE, ..leaving(why, None, Time::NEVER).knows(NONE) }
        }),
    ]);
    stale(out, &[Event::Settled, Event::Drained, Event::CloseAsked, Event::Lost, EXPIRED]);
    stale(drains, &[Event::Settled, Event::Unbound, Event::Stalled, EXPIRED]);
}

#[test]
fn a_goodbye_record_that_fails_is_posted_again() {
    let why = Reason::TransactionError;
    let out = breaking(why, telling(false, false), LATER).post(BYE);
    let died = breaking(Reason::PeerDied, telling(false, false), LATER);
    taken(&[
        (out, ERROR, &[], out.tries(1).post(backoff(after(800)))),
        (out, TERMINATED, &[], out.tries(1).post(backoff(after(800)))),
        (out.tries(2), ERROR, &[Effect::GiveUp(Reason::Unreachable)], {
            out.tries(3).post(backoff(after(3_200)))
        }),
        (out, NO_MEMORY, &[], out.tries(1).post(backoff(after(800)))),
        (out, NO_SESSION, &[], out.post(session(after(300)))),
        (out.post(backoff(DUE)), EXPIRED, &[PUBLISH], {
            breaking(why, telling(false, false), after(500)).post(BYE)
        }),
        // A completion of the peer was read: the session is over.
        (out.post(session(LATER)), last_bye(FIRST, BURNT), &[PUBLISH], {
            breaking(why, telling(false, false), after(500)).post(BYE)
        }),
        // Called dead once: asked again. Twice in a row: it is.
        (out, TIMEOUT, &[PUBLISH], {
            breaking(Reason::PeerDied, telling(false, false), after(500)).post(BYE)
        }),
        (died.post(BYE), TIMEOUT, &[], { breaking(Reason::PeerDied, Break::Draining, after(900)) }),
        // A waiting post is dropped when nothing has to be said any more.
        (
            breaking(why, telling(true, false), LATER).post(backoff(LATER)),
            Event::GoodbyeHeard,
            &[],
            breaking(why, Break::Draining, after(900)),
        ),
        // What is out when the peer falls silent is withdrawn.
        (
            breaking(why, telling(true, false), LATER).post(BYE),
            Event::GoodbyeHeard,
            &[Effect::Cancel],
            breaking(why, telling(true, true), after(500)).post(Post::Cancelling),
        ),
    ]);
}

#[test]
fn a_break_remembers_who_calls_next() {
    let why = Reason::TransactionError;
    let waits = breaking(why, telling(true, false), LATER);
    let drains = |until| breaking(why, Break::Draining, until);
    let looks = drains(Time::NEVER);
    let busy = breaking(why, settling(false, false), Time::NEVER);
    taken(&[
        (waits, offer(SECOND, NONE), &[], waits.with_next(THEIRS).knows(SECOND)),
        // Bound to this attempt, which is over: no use.
        (waits, offer(SECOND, OURS), &[], waits.knows(SECOND)),
        // That one is over too.
        (busy.with_next(THEIRS).knows(SECOND), last_bye(SECOND, BURNT), &[], busy.knows(SECOND)),
        // A new life writes to nothing that the one before it was told.
        (waits, elsewhere(REBORN), &[], { drains(after(900)).with_next(THEIRS).knows(REBORN) }),
        (busy, elsewhere(REBORN), &[], {
            let gone = breaking(why, settling(true, true), Time::NEVER);
            gone.with_next(THEIRS).knows(REBORN)
        }),
        // But it was this one that was told.
        (waits, offer(REBORN, NONE), &[], waits.with_next(THEIRS).knows(REBORN)),
        // It was up at the other side only: what was sent to it has to be read.
        (
            failing(why, settling(false, false), Time::NEVER),
            bye_from(THEIRS, FIRST, OURS),
            &[RAISE],
            breaking(why, settling(false, true), Time::NEVER),
        ),
        (drains(DUE), EXPIRED, &[Effect::Drain], looks),
        (looks, Event::Drained, &[Effect::Unbind], leaving(why, None, Time::NEVER)),
        // It cannot be read before it is set up; but not for ever.
        (looks, Event::SetupRefused, &[], drains(after(1_400)).tries(1)),
        (looks.tries(2), Event::SetupRefused, &[Effect::Unbind], leaving(why, None, Time::NEVER)),
    ]);
    // A look for another reason comes too early to be the last.
    stale(drains(LATER), &[Event::Drained]);
}

#[test]
fn unbinding_asks_until_the_device_lets_go() {
    let at = unbinding(None, Time::NEVER);
    let next = unbinding(Some(THEIRS), Time::NEVER).knows(SECOND);
    taken(&[
        (at, Event::Unbound, &[end(Some(MINE), Reason::Closed, None)], at),
        (next, Event::Unbound, &[end(Some(MINE), Reason::Closed, Some(THEIRS))], next),
        (at, Event::UnbindBusy, &[], unbinding(None, after(1_400)).tries(1)),
        (at.second(), Event::UnbindBusy, &[], unbinding(None, after(2_800)).second().tries(1)),
        (unbinding(None, DUE), EXPIRED, &[Effect::Unbind], at),
        (at, offer(SECOND, NONE), &[], next),
    ]);
    stale(at, &[EXPIRED, COMPLETED, Event::Drained, Event::CloseAsked, offer(FIRST, NONE)]);
    stale(unbinding(None, LATER), &[EXPIRED, bye(FIRST, OURS), offer(FIRST, OURS)]);
}

// ---- all of it -------------------------------------------------------------------------------

fn states() -> Vec<State> {
    let (mbox, why) = (MINE, Reason::TransactionError);
    let peers = [None, Some(THEIRS)];
    let sides = [false, true];
    let mut states = alloc::vec![State::Resolving { until: DUE }, State::Ready { mbox }];
    for peer in peers {
        states.push(State::Starved { peer, retry: DUE });
        for told in sides {
            states.push(State::Exchanging { mbox, peer, told, until: DUE });
            for silent in sides {
                for step in [settling(told, silent), telling(told, silent), Break::Draining] {
                    for mbox in [None, Some(MINE)] {
                        let until = DUE;
                        states.push(State::Breaking { mbox, why, step, next: peer, until });
                    }
                }
            }
        }
        for retry in [DUE, Time::NEVER] {
            states.push(State::Unbinding { mbox: Some(mbox), why, next: peer, retry });
        }
    }
    for said in [Said::Not, Said::Out, Said::Done] {
        for heard in sides {
            states.push(State::Parting { mbox, said, heard, until: DUE });
        }
    }
    states
}

fn posts() -> [Post; 8] {
    [
        Post::None,
        OUT,
        OUT_AGAIN,
        BYE,
        BYE_AGAIN,
        Post::Cancelling,
        Post::Session { retry: DUE },
        Post::Backoff { retry: DUE },
    ]
}

fn events() -> Vec<Event> {
    let mut events = alloc::vec![
        Event::Resolved,
        Event::Unresolved(Reason::NoAddress),
        Event::Granted(MINE),
        NO_SESSION,
        NO_MEMORY,
        INVALID,
        COMPLETED,
        TIMEOUT,
        TERMINATED,
        ERROR,
        Event::SetupRefused,
        Event::Lost,
        Event::Settled,
        Event::Drained,
        Event::CloseAsked,
        Event::GoodbyeHeard,
        Event::GoodbyeDone,
        Event::Unbound,
        Event::UnbindBusy,
        Event::Stalled,
        Event::Expired,
    ];
    for generation in [BURNT, FIRST, SECOND, REBORN] {
        for ours in [NONE, BURNT, OURS] {
            events.extend([
                offer(generation, ours),
                bye(generation, ours),
                last_bye(generation, ours),
                bye_from(THEIRS, generation, ours),
            ]);
        }
    }
    events
}

/// Whatever happens in whatever state, also where it never does: no panic, no state that breaks
/// an invariant, no more effects than promised; and what is stale leaves the state alone.
#[test]
fn every_event_has_an_answer_in_every_state() {
    let mut cells = 0;
    for state in states() {
        for post in posts() {
            for tries in [0, 2] {
                for before in [
                    link(state).post(post).tries(tries).knows(FIRST),
                    link(state).post(post).tries(tries).knows(FIRST).open().second(),
                ] {
                    let drains = matches!(state, State::Breaking { step: Break::Draining, .. });
                    if before.check().is_err() || drains && post != Post::None {
                        continue;
                    }
                    for event in events() {
                        let (mut after, mut fx) = (before, Vec::new());
                        let verdict = after.step(NOW, event, &config(), &mut fx);
                        let cell = (before, event, verdict, after);
                        assert_eq!(after.check(), Ok(()), "{cell:?}");
                        assert!(fx.len() <= EFFECTS_MAX, "{cell:?} {fx:?}");
                        match verdict {
                            Verdict::Taken => {}
                            Verdict::Stale => assert_eq!(after.state, before.state, "{cell:?}"),
                            Verdict::Broken(_) => panic!("a connection blames nobody: {cell:?}"),
                        }
                        cells += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cells, 96_324, "the size of the table");
}

/// What is never up for ever: a state that waits names the moment when it stops waiting.
#[test]
fn whoever_waits_has_a_deadline() {
    for (link, deadline) in [
        (resolving(LATER), Some(LATER)),
        (starved(None, LATER), Some(LATER)),
        (asking(None, LATER), Some(LATER)),
        (asking(None, LATER).post(backoff(DUE)), Some(DUE)),
        (ready(), None),
        (ready().post(session(LATER)), Some(LATER)),
        (parting(Said::Not, false, LATER), Some(LATER)),
        (breaking(Reason::Closed, settling(false, false), Time::NEVER), None),
        (breaking(Reason::Closed, telling(false, false), LATER).post(BYE), Some(LATER)),
        (unbinding(None, Time::NEVER), None),
        (unbinding(None, LATER), Some(LATER)),
    ] {
        assert_eq!(link.next_deadline(), deadline, "{link:?}");
    }
    // The doubling stops, and never overflows.
    let tired = Link { tries: u8::MAX, ..resolving(DUE) };
    assert_eq!(tired.backoff(100, &config()), Span(100 << 6));
    assert_eq!(tired.second().backoff(100, &config()), Span(100 << 7));
}

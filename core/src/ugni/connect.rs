//! One connection with one peer, from the first want to the last unbind.
//!
//! Over 800 lines because it is one table: seven states, one after the other, and in each every
//! event has its cell. Cut in two it could not be read as one.
//!
//! Takes the place of the connect start, progress and finish routines and of the disconnect
//! routine of the old transport, and changes four things on purpose:
//!
//! - All of any record is used, so one datagram each way is enough whatever matched it, and two
//!   sides that call each other for ever in step cannot happen.
//! - An attempt of the peer is accepted in at most one attempt of ours, and a record says which
//!   attempt it answers. So both ends of a connection always mean the same pair of attempts.
//! - Every state that waits has a deadline or an outstanding datagram, whatever was refused.
//! - A mailbox that a peer may know leaves only after the peer has said, by a goodbye message
//!   in the mailbox, by a record, or by dying, that it will not write to it again.

use crate::id::Generation;
use crate::machine::{Phase, Reason, Verdict, Violation, ensure};
use crate::sink::Sink;
use crate::tie::Tie;
use crate::time::{Span, Time};

use super::record::{Body, Peer, Record};
use super::smsg::Window;
use super::{Config, MboxId, PostError, PostState};

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum State {
    /// The peer's address has been asked for.
    Resolving {
        /// When to ask again.
        until: Time,
    },
    /// Bound, but there was no mailbox to be had.
    Starved {
        /// What the peer offered meanwhile.
        peer: Option<Peer>,
        /// When to try again.
        retry: Time,
    },
    /// Records are on their way.
    Exchanging {
        /// Ours, published by this attempt.
        mbox: MboxId,
        /// Theirs, once it is known.
        peer: Option<Peer>,
        /// Whether a datagram with our record has completed.
        told: bool,
        /// When to stop waiting for the answer.
        until: Time,
    },
    /// Messages flow.
    Ready {
        /// Ours.
        mbox: MboxId,
    },
    /// Goodbyes are on their way, in the mailboxes, after the last message.
    Parting {
        /// Ours.
        mbox: MboxId,
        /// How far our goodbye is.
        said: Said,
        /// Whether the peer's has been read.
        heard: bool,
        /// When to stop waiting for it.
        until: Time,
    },
    /// The mailboxes cannot say goodbye any more; records do.
    Breaking {
        /// Ours, in quarantine: still read, not to be given away. `None`: none was published.
        mbox: Option<MboxId>,
        /// Why.
        why: Reason,
        /// What comes next.
        step: Break,
        /// The peer's next attempt, if it has called meanwhile.
        next: Option<Peer>,
        /// When to say it again.
        until: Time,
    },
    /// Nobody writes any more; the endpoint is given back when the device lets go.
    Unbinding {
        /// Ours.
        mbox: Option<MboxId>,
        /// Why.
        why: Reason,
        /// The peer's next attempt, if it has called meanwhile.
        next: Option<Peer>,
        /// When to ask again; `NEVER` while the answer is due.
        retry: Time,
    },
}

/// How far our goodbye message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Said {
    /// Messages in flight go first.
    Not,
    /// Sent.
    Out,
    /// In the peer's mailbox.
    Done,
}

/// How far a break is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Break {
    /// Messages in flight are being settled. Then: has the peer been told, will it be silent?
    Settling {
        /// Nothing needs to be said: the peer is gone, or has moved on.
        told: bool,
        /// The peer will not write again.
        silent: bool,
    },
    /// The peer is being told.
    Telling {
        /// It has been.
        told: bool,
        /// It will not write again.
        silent: bool,
    },
    /// The mailbox is read empty one last time.
    Draining,
}

impl Break {
    fn told(self) -> Break {
        match self {
            Break::Settling { silent, .. } => Break::Settling { told: true, silent },
            Break::Telling { silent, .. } => Break::Telling { told: true, silent },
            Break::Draining => self,
        }
    }

    fn untold(self) -> Break {
        match self {
            Break::Settling { silent, .. } => Break::Settling { told: false, silent },
            Break::Telling { silent, .. } => Break::Telling { told: false, silent },
            Break::Draining => self,
        }
    }

    /// The peer is silent now, if `news` says so; what was silent stays so.
    fn hush(self, news: bool) -> Break {
        match self {
            Break::Settling { told, silent } => Break::Settling { told, silent: silent || news },
            Break::Telling { told, silent } => Break::Telling { told, silent: silent || news },
            Break::Draining => self,
        }
    }
}

/// Our own datagram to this peer: at most one is outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Post {
    /// Nothing to say.
    None,
    /// Posted. `again`: what it says is out of date; say it anew when it is done.
    Out {
        /// Whether it carries a goodbye, or our offer.
        bye: bool,
        /// Whether to post once more.
        again: bool,
    },
    /// Being cancelled; it still ends by a completion.
    Cancelling,
    /// Refused because a completion has to be read first. Read, or in the worst case wait.
    Session {
        /// When to try anyway.
        retry: Time,
    },
    /// Refused for lack of memory, or ended badly.
    Backoff {
        /// When to try again.
        retry: Time,
    },
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Event {
    /// The address is known and bound.
    Resolved,
    /// There is no address.
    Unresolved(Reason),
    /// Here is a mailbox, zeroed and registered.
    Granted(MboxId),
    /// The post was refused.
    PostRefused(PostError),
    /// Our datagram ended.
    Posted(PostState),
    /// The peer's record came, by whichever datagram.
    Heard(Call),
    /// The device would not set the mailboxes up.
    SetupRefused,
    /// The device gave a message of ours up.
    Lost,
    /// No message of ours is in flight.
    Settled,
    /// Our mailbox has been read empty.
    Drained,
    /// The application wants it closed, and nothing waits any more.
    CloseAsked,
    /// The peer's goodbye message was read.
    GoodbyeHeard,
    /// Our goodbye message is in the peer's mailbox.
    GoodbyeDone,
    /// The device let the endpoint go.
    Unbound,
    /// It did not yet.
    UnbindBusy,
    /// Messages have waited for credits for long; is anybody there?
    Stalled,
    /// A deadline has come.
    Expired,
}

/// A record as its receiver takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Call {
    /// The peer's attempt.
    pub generation: Generation,
    /// Our attempt that it has accepted.
    pub sees: Generation,
    /// Our attempts that it has done with.
    pub over: Generation,
    /// Its mailbox; or a goodbye, and whether that wants no answer.
    pub says: Says,
    /// It comes from another life of the peer than our datagrams go to.
    pub elsewhere: bool,
}

/// What a call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Says {
    /// Here is my mailbox.
    Offer(Peer),
    /// This attempt is over.
    Bye {
        /// No answer wanted.
        answered: bool,
        /// Its mailbox, if the attempt was ever up.
        from: Option<Peer>,
    },
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Effect {
    /// Ask for the peer's address.
    Resolve,
    /// Find a mailbox; `Granted` follows if there is one.
    TakeMailbox,
    /// Post our record: the offer, or the goodbye.
    Publish,
    /// Cancel the post.
    Cancel,
    /// Set the two mailboxes up, read ours, send what waits. The connection is up.
    Raise {
        /// Ours.
        mbox: MboxId,
        /// Theirs.
        peer: Peer,
    },
    /// Stop sending; tell the application that this is over, and why.
    Down(Reason),
    /// What waits has waited for too long: fail it, and go on trying to say goodbye.
    GiveUp(Reason),
    /// Send the goodbye message, for which a credit was kept.
    SayGoodbye,
    /// Read our mailbox until it is empty.
    Drain,
    /// Let the endpoint go.
    Unbind,
    /// It is over: the mailbox may be reused, the link is gone, and the peer may have called.
    End {
        /// Ours, if there was one.
        mbox: Option<MboxId>,
        /// Why.
        why: Reason,
        /// The peer's next attempt.
        next: Option<Peer>,
    },
}

/// A connection. Laid out by hand: what every message touches comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Link {
    /// The messages in flight and the credits for more. Empty before `Ready`.
    pub window: Window,
    /// Where it stands.
    pub state: State,
    /// Our datagram.
    pub post: Post,
    /// This attempt.
    pub generation: Generation,
    /// The newest attempt of the peer that was accepted, or ended before it was.
    pub heard: Generation,
    /// Whether this side goes first when a tie has to be broken.
    pub tie: Tie,
    /// How often something had to be repeated in this attempt.
    pub tries: u8,
}

/// The most effects of one step.
pub const EFFECTS_MAX: usize = 3;

impl Link {
    /// The next attempt after `last`, with a peer heard of up to `heard`. The address has been
    /// asked for.
    #[must_use]
    pub fn new(last: Generation, heard: Generation, tie: Tie, now: Time, config: &Config) -> Link {
        Link {
            generation: last.next(),
            heard,
            tie,
            tries: 0,
            post: Post::None,
            state: State::Resolving { until: now + Span(config.resolve_timeout) },
            window: Window::NONE,
        }
    }

    /// Applies one event.
    pub fn step(
        &mut self,
        now: Time,
        event: Event,
        config: &Config,
        fx: &mut impl Sink<Effect>,
    ) -> Verdict {
        match self.state {
            State::Resolving { until } => self.resolving(now, event, config, fx, until),
            State::Starved { peer, retry } => self.starved(now, event, config, fx, peer, retry),
            State::Exchanging { mbox, peer, told, until } => {
                self.exchanging(now, event, config, fx, (mbox, peer, told, until))
            }
            State::Ready { mbox } => self.ready(now, event, config, fx, mbox),
            State::Parting { mbox, said, heard, until } => {
                self.parting(now, event, config, fx, (mbox, said, heard, until))
            }
            State::Breaking { mbox, why, step, next, until } => {
                self.breaking(now, event, config, fx, (mbox, why, step, next, until))
            }
            State::Unbinding { mbox, why, next, retry } => {
                self.unbinding(now, event, config, fx, (mbox, why, next, retry))
            }
        }
    }

    fn resolving(
        &mut self,
        now: Time,
        event: Event,
        config: &Config,
        fx: &mut impl Sink<Effect>,
        until: Time,
    ) -> Verdict {
        match event {
            Event::Resolved => self.starve(None, now, config, fx),
            Event::Unresolved(why) => self.end(None, why, None, fx),
            Event::Heard(call) => match self.hear(call) {
                Hearing::Fresh(peer) => self.starve(Some(peer), now, config, fx),
                Hearing::Bye { .. } | Hearing::Bound => self.answer_bye(now, config, fx),
                Hearing::Repeat { .. } | Hearing::Old => Verdict::Stale,
            },
            Event::Expired if now >= until => {
                if self.tired(config) {
                    return self.end(None, Reason::NoAddress, None, fx);
                }
                fx.push(Effect::Resolve);
                self.state =
                    State::Resolving { until: now + self.backoff(config.resolve_timeout, config) };
                Verdict::Taken
            }
            Event::Granted(_)
            | Event::PostRefused(_)
            | Event::Posted(_)
            | Event::SetupRefused
            | Event::Lost
            | Event::Settled
            | Event::Drained
            | Event::CloseAsked
            | Event::GoodbyeHeard
            | Event::GoodbyeDone
            | Event::Unbound
            | Event::UnbindBusy
            | Event::Stalled
            | Event::Expired => Verdict::Stale,
        }
    }

    fn starved(
        &mut self,
        now: Time,
        event: Event,
        config: &Config,
        fx: &mut impl Sink<Effect>,
        peer: Option<Peer>,
        retry: Time,
    ) -> Verdict {
        match event {
            Event::Granted(mbox) => {
                self.tries = 0;
                self.publish(fx);
                let until = now + Span(config.answer_timeout);
                self.state = State::Exchanging { mbox, peer, told: false, until };
                Verdict::Taken
            }
            Event::Heard(call) => match self.hear(call) {
                Hearing::Fresh(peer) => {
                    self.state = State::Starved { peer: Some(peer), retry };
                    Verdict::Taken
                }
                Hearing::Bye { .. } | Hearing::Bound => self.answer_bye(now, config, fx),
                Hearing::Repeat { .. } | Hearing::Old => Verdict::Stale,
            },
            Event::Expired if now >= retry => {
                if self.tired(config) {
                    return self.end(None, Reason::SetupRefused, None, fx);
                }
                fx.push(Effect::TakeMailbox);
                let retry = now + self.backoff(config.mailbox_retry, config);
                self.state = State::Starved { peer, retry };
                Verdict::Taken
            }
            Event::Resolved
            | Event::Unresolved(_)
            | Event::PostRefused(_)
            | Event::Posted(_)
            | Event::SetupRefused
            | Event::Lost
            | Event::Settled
            | Event::Drained
            | Event::CloseAsked
            | Event::GoodbyeHeard
            | Event::GoodbyeDone
            | Event::Unbound
            | Event::UnbindBusy
            | Event::Stalled
            | Event::Expired => Verdict::Stale,
        }
    }

    fn exchanging(
        &mut self,
        now: Time,
        event: Event,
        config: &Config,
        fx: &mut impl Sink<Effect>,
        (mbox, peer, told, until): (MboxId, Option<Peer>, bool, Time),
    ) -> Verdict {
        let waiting = |peer, told| State::Exchanging {
            mbox,
            peer,
            told,
            until: now + Span(config.answer_timeout),
        };
        match event {
            Event::Posted(PostState::Completed) => {
                let again = self.post == (Post::Out { bye: false, again: true });
                self.post = Post::None;
                if again {
                    self.publish(fx);
                    self.state = waiting(peer, false);
                } else if let Some(peer) = peer {
                    self.raise(mbox, peer, fx);
                } else {
                    self.state = waiting(None, true);
                }
                Verdict::Taken
            }
            Event::Posted(PostState::Timeout) => {
                self.post = Post::None;
                self.fail(mbox, peer, Reason::PeerDied, false, fx)
            }
            Event::Posted(PostState::Terminated | PostState::Error) => {
                if self.tired(config) {
                    self.post = Post::None;
                    return self.fail(mbox, peer, Reason::Unreachable, false, fx);
                }
                self.post = Post::Backoff { retry: now + self.backoff(config.post_retry, config) };
                Verdict::Taken
            }
            Event::PostRefused(why) => {
                if why != PostError::Session && self.tired(config) {
                    self.post = Post::None;
                    return self.fail(mbox, peer, Reason::Unreachable, false, fx);
                }
                self.refused(why, now, config);
                Verdict::Taken
            }
            Event::Heard(call) => match self.hear(call) {
                // Another life calls than the one that we call. Which is the later nobody can
                // say, so ours is told that it is over before the other has its turn.
                Hearing::Fresh(peer) if call.elsewhere => {
                    self.settle_then_tell(Some(mbox), Reason::PeerRestarted, false, Some(peer))
                }
                Hearing::Fresh(peer) if told => {
                    self.raise(mbox, peer, fx);
                    Verdict::Taken
                }
                Hearing::Fresh(peer) => {
                    self.session_over(fx);
                    self.state = waiting(Some(peer), false);
                    Verdict::Taken
                }
                // It had accepted our attempt.
                Hearing::Bye { silent: true, from } => {
                    self.fail(mbox, from, Reason::PeerRestarted, true, fx)
                }
                Hearing::Bye { silent: false, .. } => {
                    self.say_again(fx);
                    self.state = waiting(None, false);
                    Verdict::Taken
                }
                // It asks again because it has not got what we said.
                Hearing::Repeat { knows_us: false } => {
                    self.say_again(fx);
                    self.state = waiting(peer, false);
                    Verdict::Taken
                }
                Hearing::Repeat { knows_us: true } | Hearing::Bound | Hearing::Old => {
                    self.session_over(fx);
                    Verdict::Stale
                }
            },
            Event::Expired => {
                if self.retry_due(now) {
                    self.publish(fx);
                    return Verdict::Taken;
                }
                if now < until {
                    return Verdict::Stale;
                }
                if self.tired(config) {
                    return self.fail(mbox, peer, Reason::Unreachable, false, fx);
                }
                self.say_now(fx);
                let until = now + self.backoff(config.answer_timeout, config);
                self.state = State::Exchanging { mbox, peer, told, until };
                Verdict::Taken
            }
            Event::Resolved
            | Event::Unresolved(_)
            | Event::Granted(_)
            | Event::SetupRefused
            | Event::Lost
            | Event::Settled
            | Event::Drained
            | Event::CloseAsked
            | Event::GoodbyeHeard
            | Event::GoodbyeDone
            | Event::Unbound
            | Event::UnbindBusy
            | Event::Stalled => Verdict::Stale,
        }
    }

    fn ready(
        &mut self,
        now: Time,
        event: Event,
        config: &Config,
        fx: &mut impl Sink<Effect>,
        mbox: MboxId,
    ) -> Verdict {
        let until = now + Span(config.close_timeout);
        match event {
            Event::Heard(call) => match self.hear(call) {
                // The peer is a new process, or has forgotten what we still have.
                Hearing::Fresh(peer) => {
                    fx.push(Effect::Down(Reason::PeerRestarted));
                    self.gone(mbox, Reason::PeerRestarted, peer)
                }
                Hearing::Bye { silent, .. } => {
                    self.break_up(Some(mbox), Reason::PeerRestarted, silent, fx)
                }
                Hearing::Repeat { knows_us: false } => {
                    self.say_again(fx);
                    Verdict::Taken
                }
                Hearing::Repeat { knows_us: true } | Hearing::Bound | Hearing::Old => {
                    self.session_over(fx);
                    Verdict::Stale
                }
            },
            Event::Posted(PostState::Timeout) => {
                self.post = Post::None;
                self.break_up(Some(mbox), Reason::PeerDied, false, fx)
            }
            Event::Posted(how) => {
                if self.answered(how, now, config, fx) {
                    return self.break_up(Some(mbox), Reason::Unreachable, false, fx);
                }
                Verdict::Taken
            }
            Event::PostRefused(why) => {
                self.refused(why, now, config);
                Verdict::Taken
            }
            Event::SetupRefused => self.break_up(Some(mbox), Reason::SetupRefused, false, fx),
            Event::Lost => self.break_up(Some(mbox), Reason::TransactionError, false, fx),
            Event::CloseAsked => {
                fx.push(Effect::SayGoodbye);
                self.state = State::Parting { mbox, said: Said::Out, heard: false, until };
                Verdict::Taken
            }
            Event::GoodbyeHeard => {
                self.state = State::Parting { mbox, said: Said::Not, heard: true, until };
                Verdict::Taken
            }
            Event::Stalled => {
                self.say_now(fx);
                Verdict::Taken
            }
            Event::Expired if self.retry_due(now) => {
                self.publish(fx);
                Verdict::Taken
            }
            Event::Resolved
            | Event::Unresolved(_)
            | Event::Granted(_)
            | Event::Settled
            | Event::Drained
            | Event::GoodbyeDone
            | Event::Unbound
            | Event::UnbindBusy
            | Event::Expired => Verdict::Stale,
        }
    }

    fn parting(
        &mut self,
        now: Time,
        event: Event,
        config: &Config,
        fx: &mut impl Sink<Effect>,
        (mbox, said, heard, until): (MboxId, Said, bool, Time),
    ) -> Verdict {
        let why = if heard { Reason::PeerClosed } else { Reason::Closed };
        match event {
            Event::Settled if said == Said::Not => {
                fx.push(Effect::SayGoodbye);
                self.state = State::Parting { mbox, said: Said::Out, heard, until };
                Verdict::Taken
            }
            Event::GoodbyeDone if heard => self.part(mbox, why, now, config, fx),
            Event::GoodbyeDone => {
                self.state = State::Parting { mbox, said: Said::Done, heard, until };
                Verdict::Taken
            }
            Event::GoodbyeHeard if said == Said::Done => self.part(mbox, why, now, config, fx),
            Event::GoodbyeHeard => {
                self.state = State::Parting { mbox, said, heard: true, until };
                Verdict::Taken
            }
            Event::Heard(call) => match self.hear(call) {
                // Its goodbye is read before it calls again; or it is a new process.
                Hearing::Fresh(peer) => self.gone(mbox, why, peer),
                Hearing::Bye { silent, .. } => self.settle_then_tell(Some(mbox), why, silent, None),
                // It cannot read our goodbye before it has our offer.
                Hearing::Repeat { knows_us: false } => {
                    self.say_again(fx);
                    Verdict::Taken
                }
                Hearing::Repeat { knows_us: true } | Hearing::Bound | Hearing::Old => {
                    self.session_over(fx);
                    Verdict::Stale
                }
            },
            Event::Posted(PostState::Timeout) => {
                self.post = Post::None;
                self.settle_then_tell(Some(mbox), Reason::PeerDied, false, None)
            }
            Event::Posted(how) => {
                if self.answered(how, now, config, fx) {
                    return self.settle_then_tell(Some(mbox), why, heard, None);
                }
                Verdict::Taken
            }
            Event::PostRefused(why) => {
                self.refused(why, now, config);
                Verdict::Taken
            }
            Event::SetupRefused => {
                self.settle_then_tell(Some(mbox), Reason::SetupRefused, heard, None)
            }
            Event::Lost => self.settle_then_tell(Some(mbox), Reason::TransactionError, heard, None),
            Event::Expired if now >= until => self.settle_then_tell(Some(mbox), why, heard, None),
            Event::Expired if self.retry_due(now) => {
                self.publish(fx);
                Verdict::Taken
            }
            Event::Resolved
            | Event::Unresolved(_)
            | Event::Granted(_)
            | Event::Settled
            | Event::Drained
            | Event::CloseAsked
            | Event::Unbound
            | Event::UnbindBusy
            | Event::Stalled
            | Event::Expired => Verdict::Stale,
        }
    }

    fn breaking(
        &mut self,
        now: Time,
        event: Event,
        config: &Config,
        fx: &mut impl Sink<Effect>,
        (mbox, why, step, next, until): (Option<MboxId>, Reason, Break, Option<Peer>, Time),
    ) -> Verdict {
        let go = |step, next| State::Breaking { mbox, why, step, next, until };
        match event {
            Event::Settled => match step {
                Break::Settling { told, silent } => {
                    self.state = go(Break::Telling { told, silent }, next);
                    self.tell(now, config, fx)
                }
                Break::Telling { .. } | Break::Draining => Verdict::Stale,
            },
            Event::Drained => match step {
                // Not by a look before the last message could be there.
                Break::Draining if until == Time::NEVER => self.leave(mbox, why, next, fx),
                Break::Draining | Break::Settling { .. } | Break::Telling { .. } => Verdict::Stale,
            },
            Event::GoodbyeHeard => {
                self.state = go(step.hush(true), next);
                self.tell(now, config, fx)
            }
            Event::Posted(how) => {
                let bye = matches!(self.post, Post::Out { bye: true, again: false });
                self.post = Post::None;
                match how {
                    PostState::Completed if bye => self.state = go(step.told(), next),
                    // Twice in a row, the node is called dead: so it is.
                    PostState::Timeout if bye && why == Reason::PeerDied => {
                        self.state = go(step.told().hush(true), next);
                    }
                    PostState::Timeout if bye => {
                        let why = Reason::PeerDied;
                        self.state = State::Breaking { mbox, why, step, next, until };
                    }
                    PostState::Terminated | PostState::Error if bye => {
                        self.tire(config, fx);
                        let retry = now + self.backoff(config.post_retry, config);
                        self.post = Post::Backoff { retry };
                    }
                    PostState::Completed
                    | PostState::Timeout
                    | PostState::Terminated
                    | PostState::Error => {}
                }
                self.tell(now, config, fx)
            }
            Event::PostRefused(why) => {
                match why {
                    PostError::Session => {}
                    PostError::Memory | PostError::Invalid => self.tire(config, fx),
                }
                self.refused(why, now, config);
                Verdict::Taken
            }
            Event::Heard(call) => {
                let before = self.heard;
                // The life that had our attempt is over, unless it is this one that had it.
                let reborn = call.elsewhere
                    && before != Generation::NONE
                    && call.generation.incarnation() > before.incarnation();
                let heard = self.hear(call);
                // A goodbye of ours that is out tells the peer all it asks for, unless it asks
                // about an attempt that we had not heard of when it went.
                let out = matches!(self.post, Post::Out { bye: true, .. });
                let asks = matches!(heard, Hearing::Bye { .. })
                    && !matches!(call.says, Says::Bye { answered: true, .. })
                    && !(out && call.generation == before);
                if asks && out {
                    self.post = Post::Out { bye: true, again: true };
                }
                if let (Hearing::Bye { silent: true, from: Some(peer) }, Some(mbox)) =
                    (&heard, mbox)
                    && !self.window.is_open()
                {
                    // It was up at the other side.
                    self.attach(mbox, *peer, fx);
                }
                let next = match heard {
                    Hearing::Fresh(peer) if call.sees == Generation::NONE => Some(peer),
                    Hearing::Bye { .. } => None,
                    Hearing::Fresh(_) | Hearing::Repeat { .. } | Hearing::Bound | Hearing::Old => {
                        next
                    }
                };
                let step = if reborn { step.told() } else { step };
                let step = step.hush(reborn || call.over >= self.generation);
                self.state = go(if asks { step.untold() } else { step }, next);
                self.session_over_bye();
                self.tell(now, config, fx)
            }
            Event::Expired if self.retry_due(now) => {
                self.post = Post::None;
                self.tell(now, config, fx)
            }
            Event::SetupRefused => {
                match step {
                    // Whoever reads it sets it up first.
                    Break::Settling { .. } | Break::Telling { .. } => {}
                    Break::Draining if self.tired(config) => {
                        return self.leave(mbox, why, next, fx);
                    }
                    Break::Draining => {
                        let until = now + self.backoff(config.unbind_retry, config);
                        self.state = State::Breaking { mbox, why, step, next, until };
                    }
                }
                Verdict::Taken
            }
            Event::Expired if now >= until && step == Break::Draining => {
                let until = Time::NEVER;
                self.state = State::Breaking { mbox, why, step, next, until };
                fx.push(Effect::Drain);
                Verdict::Taken
            }
            Event::Expired if now >= until && self.post == Post::Cancelling => {
                let until = now + self.backoff(config.answer_timeout, config);
                self.state = State::Breaking { mbox, why, step, next, until };
                fx.push(Effect::Cancel);
                Verdict::Taken
            }
            Event::Expired if now >= until => {
                self.tire(config, fx);
                let until = now + self.backoff(config.answer_timeout, config);
                // Told, and no answer: it may not have heard.
                let step = if self.post == Post::None { step.untold() } else { step };
                self.state = State::Breaking { mbox, why, step, next, until };
                self.tell(now, config, fx)
            }
            Event::Resolved
            | Event::Unresolved(_)
            | Event::Granted(_)
            | Event::Lost
            | Event::CloseAsked
            | Event::GoodbyeDone
            | Event::Unbound
            | Event::UnbindBusy
            | Event::Stalled
            | Event::Expired => Verdict::Stale,
        }
    }

    fn unbinding(
        &mut self,
        now: Time,
        event: Event,
        config: &Config,
        fx: &mut impl Sink<Effect>,
        (mbox, why, next, retry): (Option<MboxId>, Reason, Option<Peer>, Time),
    ) -> Verdict {
        match event {
            Event::Unbound => self.end(mbox, why, next, fx),
            Event::UnbindBusy => {
                let _ = self.tired(config);
                let retry = now + self.backoff(config.unbind_retry, config);
                self.state = State::Unbinding { mbox, why, next, retry };
                Verdict::Taken
            }
            Event::Expired if now >= retry => {
                fx.push(Effect::Unbind);
                self.state = State::Unbinding { mbox, why, next, retry: Time::NEVER };
                Verdict::Taken
            }
            Event::Heard(call) => match self.hear(call) {
                Hearing::Fresh(peer) if call.sees == Generation::NONE => {
                    self.state = State::Unbinding { mbox, why, next: Some(peer), retry };
                    Verdict::Taken
                }
                Hearing::Fresh(_)
                | Hearing::Bye { .. }
                | Hearing::Repeat { .. }
                | Hearing::Bound
                | Hearing::Old => Verdict::Stale,
            },
            Event::Resolved
            | Event::Unresolved(_)
            | Event::Granted(_)
            | Event::PostRefused(_)
            | Event::Posted(_)
            | Event::SetupRefused
            | Event::Lost
            | Event::Settled
            | Event::Drained
            | Event::CloseAsked
            | Event::GoodbyeHeard
            | Event::GoodbyeDone
            | Event::Stalled
            | Event::Expired => Verdict::Stale,
        }
    }

    /// When this link wants `Expired`.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let post = match self.post {
            Post::Session { retry } | Post::Backoff { retry } => retry,
            Post::None | Post::Out { .. } | Post::Cancelling => Time::NEVER,
        };
        let state = match self.state {
            State::Resolving { until }
            | State::Exchanging { until, .. }
            | State::Parting { until, .. }
            | State::Breaking { until, .. } => until,
            State::Starved { retry, .. } | State::Unbinding { retry, .. } => retry,
            State::Ready { .. } => Time::NEVER,
        };
        let first = post.min(state).min(self.window.wake());
        (first != Time::NEVER).then_some(first)
    }

    /// How far it has come.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Resolving { .. } => Phase::Resolving,
            State::Starved { .. } | State::Exchanging { .. } => Phase::Connecting,
            State::Ready { .. } => Phase::Ready,
            State::Parting { .. } | State::Breaking { .. } | State::Unbinding { .. } => {
                Phase::Closing
            }
        }
    }

    /// Whether user messages may go out.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }

    /// Whether our mailbox is to be read: the peer may have put messages in.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        match self.state {
            State::Ready { .. } | State::Parting { .. } => true,
            State::Breaking { .. } => self.window.is_open(),
            State::Resolving { .. }
            | State::Starved { .. }
            | State::Exchanging { .. }
            | State::Unbinding { .. } => false,
        }
    }

    /// Whether it waits for the messages in flight.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        matches!(
            self.state,
            State::Parting { said: Said::Not, .. }
                | State::Breaking { step: Break::Settling { .. }, .. }
        )
    }

    /// The record to publish now.
    #[must_use]
    pub fn record(&self, who: crate::ProcName, mine: impl Fn(MboxId) -> Peer) -> Record {
        let accepted = match self.state {
            State::Exchanging { peer, .. } => peer.is_some(),
            State::Ready { .. } | State::Parting { .. } => true,
            State::Resolving { .. }
            | State::Starved { .. }
            | State::Breaking { .. }
            | State::Unbinding { .. } => false,
        };
        let body = match self.state {
            State::Exchanging { mbox, .. } | State::Ready { mbox } => Body::Offer(mine(mbox)),
            State::Parting { mbox, .. } => Body::Offer(mine(mbox)),
            State::Breaking { step: Break::Telling { silent, .. }, mbox, .. } => Body::Bye {
                answered: silent,
                from: mbox.filter(|_| self.window.is_open()).map(mine),
            },
            State::Breaking { .. }
            | State::Resolving { .. }
            | State::Starved { .. }
            | State::Unbinding { .. } => Body::Bye { answered: false, from: None },
        };
        // An attempt of the peer that waits for its turn is not over.
        let pending = matches!(self.state, State::Breaking { next: Some(_), .. });
        let (sees, over) = if accepted {
            (self.heard, Generation(self.heard.0 - 1))
        } else if pending {
            (Generation::NONE, Generation(self.heard.0 - 1))
        } else {
            (Generation::NONE, self.heard)
        };
        Record { who, generation: self.generation, sees, over, body }
    }

    /// The invariants between events.
    ///
    /// # Errors
    /// The rule that does not hold.
    pub fn check(&self) -> Result<(), Violation> {
        let mute = matches!(self.post, Post::None);
        match self.state {
            State::Resolving { .. } | State::Starved { .. } => {
                ensure(mute, "nothing is posted before there is a mailbox to publish")
            }
            State::Exchanging { peer, told, .. } => {
                ensure(
                    !(told && peer.is_some()),
                    "an attempt that has told and been told is ready at once",
                )?;
                ensure(!mute || told, "who has not told yet is about to")
            }
            State::Ready { .. } | State::Parting { .. } => {
                ensure(self.heard != Generation::NONE, "nobody is connected to nobody")
            }
            State::Breaking { step, .. } => ensure(
                !(mute && matches!(step, Break::Telling { told: false, .. })),
                "who breaks up says so",
            ),
            State::Unbinding { .. } => {
                ensure(mute, "no datagram is outstanding when the endpoint goes")
            }
        }
    }

    // ---- moves that several states share -------------------------------------------------

    fn starve(
        &mut self,
        peer: Option<Peer>,
        now: Time,
        config: &Config,
        fx: &mut impl Sink<Effect>,
    ) -> Verdict {
        self.tries = 0;
        self.state = State::Starved { peer, retry: now + Span(config.mailbox_retry) };
        fx.push(Effect::TakeMailbox);
        Verdict::Taken
    }

    fn raise(&mut self, mbox: MboxId, peer: Peer, fx: &mut impl Sink<Effect>) {
        self.tries = 0;
        self.state = State::Ready { mbox };
        self.attach(mbox, peer, fx);
    }

    /// Makes our mailbox readable, and the peer's writable.
    fn attach(&mut self, mbox: MboxId, peer: Peer, fx: &mut impl Sink<Effect>) {
        self.window = Window::open(peer.credits);
        fx.push(Effect::Raise { mbox, peer });
    }

    /// An attempt fails. The peer may have come further: what it has sent meanwhile is in our
    /// mailbox, and has to be read before we part.
    fn fail(
        &mut self,
        mbox: MboxId,
        peer: Option<Peer>,
        why: Reason,
        silent: bool,
        fx: &mut impl Sink<Effect>,
    ) -> Verdict {
        if let Some(peer) = peer {
            self.attach(mbox, peer, fx);
        }
        self.break_up(Some(mbox), why, silent, fx)
    }

    /// The connection is of no use any more; the application hears of it now.
    fn break_up(
        &mut self,
        mbox: Option<MboxId>,
        why: Reason,
        silent: bool,
        fx: &mut impl Sink<Effect>,
    ) -> Verdict {
        fx.push(Effect::Down(why));
        self.settle_then_tell(mbox, why, silent, None)
    }

    /// The attempt ends; after it comes one that answers `next`, if there is one to answer.
    fn settle_then_tell(
        &mut self,
        mbox: Option<MboxId>,
        why: Reason,
        silent: bool,
        next: Option<Peer>,
    ) -> Verdict {
        self.tries = 0;
        let step = Break::Settling { told: false, silent };
        self.state = State::Breaking { mbox, why, step, next, until: Time::NEVER };
        Verdict::Taken
    }

    /// The peer has moved on: nobody to tell, nobody who writes.
    fn gone(&mut self, mbox: MboxId, why: Reason, next: Peer) -> Verdict {
        let step = Break::Settling { told: true, silent: true };
        let (mbox, next) = (Some(mbox), Some(next));
        self.state = State::Breaking { mbox, why, step, next, until: Time::NEVER };
        Verdict::Taken
    }

    /// The peer asks to be told that an attempt is over, or holds on to one that is, and we have
    /// published none since.
    fn answer_bye(&mut self, now: Time, config: &Config, fx: &mut impl Sink<Effect>) -> Verdict {
        let step = Break::Telling { told: false, silent: true };
        let why = Reason::PeerRestarted;
        self.state = State::Breaking { mbox: None, why, step, next: None, until: Time::NEVER };
        self.tell(now, config, fx)
    }

    /// Both goodbyes are through: nothing can be in the mailbox any more. Only a datagram that is
    /// still out keeps the endpoint.
    fn part(
        &mut self,
        mbox: MboxId,
        why: Reason,
        now: Time,
        config: &Config,
        fx: &mut impl Sink<Effect>,
    ) -> Verdict {
        let mbox = Some(mbox);
        match self.post {
            Post::None | Post::Session { .. } | Post::Backoff { .. } => {
                self.post = Post::None;
                self.leave(mbox, why, None, fx)
            }
            Post::Out { .. } | Post::Cancelling => {
                let step = Break::Telling { told: true, silent: true };
                self.state = State::Breaking { mbox, why, step, next: None, until: Time::NEVER };
                self.tell(now, config, fx)
            }
        }
    }

    /// Goes on with a break: says goodbye; and when all is said, withdraws what is still out
    /// and reads the mailbox a last time.
    fn tell(&mut self, now: Time, config: &Config, fx: &mut impl Sink<Effect>) -> Verdict {
        let State::Breaking { mbox, why, step, next, .. } = self.state else {
            return Verdict::Stale;
        };
        let Break::Telling { told, silent } = step else {
            return Verdict::Taken;
        };
        match self.post {
            Post::None if !told => {
                self.post = Post::Out { bye: true, again: false };
                fx.push(Effect::Publish);
                let until = now + self.backoff(config.answer_timeout, config);
                self.state = State::Breaking { mbox, why, step, next, until };
            }
            Post::None | Post::Session { .. } | Post::Backoff { .. } if told && silent => {
                self.post = Post::None;
                if !self.window.is_open() {
                    return self.leave(mbox, why, next, fx);
                }
                // The last message may be announced and not be there yet.
                let (step, until) = (Break::Draining, now + Span(config.rescan_delay));
                self.state = State::Breaking { mbox, why, step, next, until };
            }
            // An offer must not be taken any more; nor may anything be out at the end.
            Post::Out { bye, .. } if !bye || told && silent => {
                self.post = Post::Cancelling;
                fx.push(Effect::Cancel);
                let until = now + self.backoff(config.answer_timeout, config);
                self.state = State::Breaking { mbox, why, step, next, until };
            }
            Post::None
            | Post::Out { .. }
            | Post::Cancelling
            | Post::Session { .. }
            | Post::Backoff { .. } => {}
        }
        Verdict::Taken
    }

    fn leave(
        &mut self,
        mbox: Option<MboxId>,
        why: Reason,
        next: Option<Peer>,
        fx: &mut impl Sink<Effect>,
    ) -> Verdict {
        fx.push(Effect::Unbind);
        self.tries = 0;
        self.state = State::Unbinding { mbox, why, next, retry: Time::NEVER };
        Verdict::Taken
    }

    fn end(
        &mut self,
        mbox: Option<MboxId>,
        why: Reason,
        next: Option<Peer>,
        fx: &mut impl Sink<Effect>,
    ) -> Verdict {
        fx.push(Effect::End { mbox, why, next });
        Verdict::Taken
    }

    fn publish(&mut self, fx: &mut impl Sink<Effect>) {
        self.post = Post::Out { bye: false, again: false };
        fx.push(Effect::Publish);
    }

    /// Says it as soon as it can be said: at once, unless it is out already.
    fn say_now(&mut self, fx: &mut impl Sink<Effect>) {
        match self.post {
            Post::None | Post::Session { .. } => self.publish(fx),
            Post::Backoff { .. } | Post::Out { .. } | Post::Cancelling => {}
        }
    }

    /// What is out is out of date: says it anew.
    fn say_again(&mut self, fx: &mut impl Sink<Effect>) {
        match self.post {
            Post::None | Post::Session { .. } => self.publish(fx),
            Post::Out { bye, .. } => self.post = Post::Out { bye, again: true },
            Post::Backoff { .. } | Post::Cancelling => {}
        }
    }

    /// A completion of the peer was read: the session that refused our post is over.
    fn session_over(&mut self, fx: &mut impl Sink<Effect>) {
        match self.post {
            Post::Session { .. } => self.publish(fx),
            Post::None | Post::Backoff { .. } | Post::Out { .. } | Post::Cancelling => {}
        }
    }

    /// The same for a goodbye, which `tell` posts.
    fn session_over_bye(&mut self) {
        match self.post {
            Post::Session { .. } => self.post = Post::None,
            Post::None | Post::Backoff { .. } | Post::Out { .. } | Post::Cancelling => {}
        }
    }

    /// A datagram that answered or asked ended, while messages flow; whether to give up.
    fn answered(
        &mut self,
        how: PostState,
        now: Time,
        config: &Config,
        fx: &mut impl Sink<Effect>,
    ) -> bool {
        match how {
            PostState::Completed => {
                let again = matches!(self.post, Post::Out { again: true, .. });
                self.post = Post::None;
                self.tries = 0;
                if again {
                    self.publish(fx);
                }
                false
            }
            PostState::Timeout | PostState::Terminated | PostState::Error => {
                self.post = Post::None;
                if self.tired(config) {
                    return true;
                }
                let retry = now + self.backoff(config.post_retry, config);
                self.post = Post::Backoff { retry };
                false
            }
        }
    }

    /// Counts one more repetition of what is never given up; says so when it gets long.
    fn tire(&mut self, config: &Config, fx: &mut impl Sink<Effect>) {
        if self.tired(config) {
            fx.push(Effect::GiveUp(Reason::Unreachable));
        }
    }

    fn refused(&mut self, why: PostError, now: Time, config: &Config) {
        self.post = match why {
            PostError::Session => Post::Session { retry: now + Span(config.session_retry) },
            PostError::Memory | PostError::Invalid => {
                Post::Backoff { retry: now + self.backoff(config.post_retry, config) }
            }
        };
    }

    fn retry_due(&self, now: Time) -> bool {
        match self.post {
            Post::Session { retry } | Post::Backoff { retry } => now >= retry,
            Post::None | Post::Out { .. } | Post::Cancelling => false,
        }
    }

    /// Counts one more repetition; whether that was one too many.
    fn tired(&mut self, config: &Config) -> bool {
        let limit = config.connect_tries.min(u64::from(u8::MAX)) as u8;
        self.tries = self.tries.saturating_add(1).min(limit.saturating_add(1));
        self.tries > limit
    }

    /// Doubles with every repetition, up to a bound; the side that goes second waits twice as
    /// long, so that two sides in step fall out of step.
    fn backoff(&self, base: u64, config: &Config) -> Span {
        let second = u32::from(self.tie == Tie::Theirs);
        let times = u32::from(self.tries).min(config.backoff_doublings as u32) + second;
        Span(base).doubled(times)
    }

    /// Takes note of a record and says what it means for this attempt.
    fn hear(&mut self, call: Call) -> Hearing {
        match call.says {
            Says::Offer(peer) => {
                let ours = call.sees == self.generation;
                if call.generation < self.heard {
                    Hearing::Old
                } else if call.generation == self.heard {
                    Hearing::Repeat { knows_us: ours }
                } else if ours || call.sees == Generation::NONE {
                    self.heard = call.generation;
                    Hearing::Fresh(peer)
                } else {
                    if matches!(self.state, State::Resolving { .. } | State::Starved { .. }) {
                        self.heard = call.generation;
                    }
                    Hearing::Bound
                }
            }
            Says::Bye { from, .. } => {
                if call.generation < self.heard {
                    return Hearing::Old;
                }
                self.heard = call.generation;
                Hearing::Bye { silent: call.over >= self.generation, from }
            }
        }
    }
}

/// What a record means for an attempt.
enum Hearing {
    /// An attempt of the peer that is new and free for this one.
    Fresh(Peer),
    /// The attempt that we know already.
    Repeat {
        /// Whether the peer has accepted this attempt of ours.
        knows_us: bool,
    },
    /// New, but tied to an attempt of ours that is gone: the peer will find out.
    Bound,
    /// Long gone.
    Old,
    /// The peer's attempt is over.
    Bye {
        /// It knows ours, and will not write to its mailbox again.
        silent: bool,
        /// Its own mailbox, if the attempt was up at its side.
        from: Option<Peer>,
    },
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;

//! Workloads at work: what each proc does, as an application of core. The same application runs
//! in a simulated world and on real hardware.

use std::sync::Arc;

use selvedge_core::rma::{Amo, Place, Tail};
use selvedge_core::{App, Fabric, Hold, Notice, ProcName, RegionId, Span, Tag, Time};

mod remote;

pub use remote::{Plan, Remote};

/// What one proc does.
#[derive(Clone, Debug, Hash)]
pub enum Work {
    /// Nothing but answer.
    Idle,
    /// Ping-pong.
    Player(Player),
    /// Messages to partners.
    Sender(Sender),
    /// Operations on the memory of partners.
    Remote(Remote),
    /// A script.
    Script(Script),
}

/// One side of a ping-pong.
#[derive(Clone, Debug, Hash)]
pub struct Player {
    /// The other side.
    pub peer: u32,
    /// Whether this side serves.
    pub serves: bool,
    /// Balls that this side still has to send.
    pub left: u64,
    /// Bytes of a ball.
    pub size: u32,
}

/// Sends to its partners in turn.
#[derive(Clone, Debug, Hash)]
pub struct Sender {
    /// Whom to send to.
    pub partners: Arc<[u32]>,
    /// Bytes of a message.
    pub size: u32,
    /// Messages still to send.
    pub left: u64,
    /// When to send them.
    pub pace: Pace,
    /// Whether all connections are to be up first.
    pub connect_first: bool,
    /// When to start.
    pub delay: Span,
    /// The partner whose turn it is.
    pub turn: u32,
    /// Partners whose connection is not up yet.
    pub missing: u32,
}

/// When a sender sends.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Pace {
    /// One message a partner is under way; each answer brings the next.
    Answers,
    /// So many at a time, so often.
    Clock {
        /// How many.
        length: u64,
        /// How often.
        every: Span,
    },
}

/// Does one thing after another.
#[derive(Clone, Debug, Hash)]
pub struct Script {
    /// The steps, in order.
    pub steps: Arc<[Step]>,
    /// The next.
    pub next: u32,
    /// Whom this proc has dealt with, for `stop`.
    pub peers: Vec<u32>,
}

/// One step of a script.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub when: When,
    /// What.
    pub action: Action,
}

/// When a step is done.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum When {
    /// Not before this time.
    At(Time),
    /// So long after the step before.
    After(Span),
}

/// What is done.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// Send messages.
    Send {
        /// To whom.
        to: u32,
        /// Bytes of each.
        size: u32,
        /// How many.
        count: u64,
        /// Their tag.
        tag: u8,
        /// Where in registered memory they lie, if they do, one after the other.
        from: Option<Place>,
    },
    /// Register memory.
    Register(RegionId, u32),
    /// Take that back.
    Deregister(RegionId),
    /// Operations on remote memory, all alike.
    Access {
        /// Of whom.
        to: u32,
        /// What.
        access: Access,
        /// How many.
        count: u64,
    },
    /// Connect.
    Connect(u32),
    /// Close a connection.
    Close(u32),
    /// Close all of them.
    Stop,
}

/// An operation on remote memory.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Access {
    /// A put.
    Put {
        /// From where.
        local: Place,
        /// Where to.
        remote: Place,
        /// Bytes.
        size: u32,
    },
    /// A get.
    Get {
        /// Where to.
        local: Place,
        /// From where.
        remote: Place,
        /// Bytes.
        size: u32,
    },
    /// An atomic.
    Atomic {
        /// What it does.
        amo: Amo,
        /// To which word.
        remote: Place,
        /// Its operands.
        operands: [u64; 2],
    },
}

fn name(fabric: &impl Fabric, rank: u32) -> ProcName {
    ProcName { job: fabric.me().job, rank }
}

impl App for Work {
    fn start(&mut self, fabric: &mut impl Fabric) {
        match self {
            Work::Idle => {}
            Work::Player(player) => {
                if player.serves {
                    player.send(fabric);
                }
            }
            Work::Sender(sender) => {
                if sender.delay > Span::ZERO {
                    fabric.wake_after(sender.delay);
                } else {
                    sender.begin(fabric);
                }
            }
            Work::Remote(remote) => remote.start(fabric),
            Work::Script(script) => script.go_on(fabric, false),
        }
    }

    fn notice(&mut self, fabric: &mut impl Fabric, notice: Notice) {
        match self {
            Work::Idle => {}
            Work::Player(player) => {
                if let Notice::Arrived { .. } = notice {
                    player.send(fabric);
                }
            }
            Work::Sender(sender) => match notice {
                Notice::Sent { .. } | Notice::Failed { .. } | Notice::Unknown { .. } => {
                    if sender.pace == Pace::Answers {
                        sender.send(fabric, 1);
                    }
                }
                Notice::Connected { .. } | Notice::Closed { .. } if sender.missing > 0 => {
                    sender.joined(fabric, notice);
                }
                Notice::Arrived { .. }
                | Notice::Connected { .. }
                | Notice::Closed { .. }
                | Notice::Trouble { .. }
                | Notice::Registered { .. }
                | Notice::Unregistered { .. }
                | Notice::Done { .. } => {}
            },
            Work::Remote(remote) => remote.notice(fabric, notice),
            Work::Script(script) => {
                if let Notice::Connected { peer, .. } = notice {
                    script.meet(peer.rank);
                }
            }
        }
    }

    fn woken(&mut self, fabric: &mut impl Fabric) {
        match self {
            Work::Idle | Work::Player(_) | Work::Remote(_) => {}
            Work::Sender(sender) => {
                if sender.delay > Span::ZERO {
                    sender.delay = Span::ZERO;
                    sender.begin(fabric);
                } else {
                    sender.tick(fabric);
                }
            }
            Work::Script(script) => script.go_on(fabric, true),
        }
    }
}

impl Player {
    fn send(&mut self, fabric: &mut impl Fabric) {
        if self.left > 0 {
            self.left -= 1;
            fabric.send(name(fabric, self.peer), Tag(0), self.size, Hold::Copied);
        }
    }
}

impl Sender {
    fn begin(&mut self, fabric: &mut impl Fabric) {
        if self.connect_first {
            self.missing = self.partners.len() as u32;
            for at in 0..self.partners.len() {
                fabric.connect(name(fabric, self.partners[at]));
            }
        } else {
            self.flow(fabric);
        }
    }

    /// A connection is up, or cannot be had: either way nobody waits for it any longer.
    fn joined(&mut self, fabric: &mut impl Fabric, notice: Notice) {
        let (Notice::Connected { peer, .. } | Notice::Closed { peer, .. }) = notice else { return };
        if self.partners.contains(&peer.rank) {
            self.missing -= 1;
            if self.missing == 0 {
                self.flow(fabric);
            }
        }
    }

    fn flow(&mut self, fabric: &mut impl Fabric) {
        match self.pace {
            Pace::Answers => self.send(fabric, self.partners.len() as u64),
            Pace::Clock { .. } => self.tick(fabric),
        }
    }

    fn tick(&mut self, fabric: &mut impl Fabric) {
        if let Pace::Clock { length, every } = self.pace {
            self.send(fabric, length);
            if self.left > 0 {
                fabric.wake_after(every);
            }
        }
    }

    fn send(&mut self, fabric: &mut impl Fabric, count: u64) {
        if self.partners.is_empty() {
            return;
        }
        for _ in 0..count.min(self.left) {
            let to = self.partners[self.turn as usize];
            self.turn = (self.turn + 1) % self.partners.len() as u32;
            self.left -= 1;
            fabric.send(name(fabric, to), Tag(0), self.size, Hold::Copied);
        }
    }
}

impl Script {
    /// A script of these steps.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Script {
        Script { steps: steps.into(), next: 0, peers: Vec::new() }
    }

    /// Does what is due; `waited` says that the time of the next step has come.
    fn go_on(&mut self, fabric: &mut impl Fabric, mut waited: bool) {
        while let Some(&Step { when, action }) = self.steps.get(self.next as usize) {
            let wait = match when {
                When::At(at) => at.since(fabric.now()),
                When::After(span) => span,
            };
            if wait > Span::ZERO && !waited {
                return fabric.wake_after(wait);
            }
            waited = false;
            self.next += 1;
            self.act(fabric, action);
        }
    }

    fn act(&mut self, fabric: &mut impl Fabric, action: Action) {
        match action {
            Action::Send { to, size, count, tag, from } => {
                self.meet(to);
                let placed = |at| Hold::Registered { at, tail: Tail::default() };
                // One after the other: what a peer may be fetching is not written over.
                let stride = size.next_multiple_of(4);
                for n in 0..count as u32 {
                    let at = from.map(|at| at.after(n.wrapping_mul(stride)));
                    let hold = at.map_or(Hold::Copied, placed);
                    fabric.send(name(fabric, to), Tag(tag), size, hold);
                }
            }
            Action::Register(region, size) => fabric.register(region, size),
            Action::Deregister(region) => fabric.deregister(region),
            Action::Access { to, access, count } => {
                let to = name(fabric, to);
                for _ in 0..count {
                    match access {
                        Access::Put { local, remote, size } => fabric.put(to, local, remote, size),
                        Access::Get { local, remote, size } => fabric.get(to, local, remote, size),
                        Access::Atomic { amo, remote, operands: [operand, second] } => {
                            fabric.atomic(to, amo, remote, operand, second)
                        }
                    };
                }
            }
            Action::Connect(to) => {
                self.meet(to);
                fabric.connect(name(fabric, to));
            }
            Action::Close(to) => fabric.close(name(fabric, to)),
            Action::Stop => {
                for at in 0..self.peers.len() {
                    fabric.close(name(fabric, self.peers[at]));
                }
            }
        }
    }

    fn meet(&mut self, peer: u32) {
        if let Err(at) = self.peers.binary_search(&peer) {
            self.peers.insert(at, peer);
        }
    }
}

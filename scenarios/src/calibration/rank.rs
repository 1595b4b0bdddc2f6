//! The two ends of a measurement, as an application: ping-pong or windows of many messages, by
//! MPI as a library does it, by messages of the transport, or by puts and gets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use selvedge_core::rma::Place;
use selvedge_core::{
    App, Fabric, FragId, Hold, Notice, ProcName, Reason, RegionId, Span, Tag, Time,
};
use serde::Serialize;

use super::profile::Profile;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Test {
    /// How bytes travel.
    pub how: How,
    /// One after another, or many at once.
    pub shape: Shape,
    /// How many.
    pub bytes: u32,
    /// What the software above the transport costs.
    pub profile: Profile,
}

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A put into memory of the other side.
    Put,
    /// A get from memory of the other side.
    Get,
    /// A message of the transport.
    Message,
    /// A message of MPI.
    Mpi,
}

/// One after another, or many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Ping-pong; a put or a get waits for the one before.
    Latency,
    /// So many at a time.
    Window(u32),
}

/// Rounds that count; one before them does not, so that whatever is done once has been done.
pub const ROUNDS: u32 = 2;

/// One end. Rank 0 measures, and rank 1 answers.
#[derive(Clone, Debug)]
pub struct Rank {
    test: Arc<Test>,
    /// What the host is to do, and what it costs.
    jobs: VecDeque<(Span, Job)>,
    /// What it does now.
    busy: Option<Job>,
    /// What has to be ready before the first round.
    missing: u32,
    /// Rounds begun.
    round: u32,
    /// Of this round, messages that have arrived or ended here.
    count: u32,
    /// Transfers under way, and the message that each is a piece of.
    pieces: BTreeMap<FragId, u32>,
    /// Pieces that each message still waits for.
    left: BTreeMap<u32, u32>,
    /// Messages whose transfer has begun.
    transfers: u32,
    /// Messages that wait until another one has been got.
    waiting: u32,
    /// Why the transport could not do it, if it could not.
    pub failed: Option<Reason>,
    /// When the first round began.
    pub ready: Time,
    /// When the rounds that count began.
    pub began: Time,
    /// When they ended.
    pub ended: Option<Time>,
    /// When the last round began.
    pub last: Time,
}

/// What the host does once it has paid for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Hand a message to the transport.
    Send(Kind),
    /// Move the data of a message.
    Transfer,
    /// A message is there.
    Deliver,
    /// A message of ours has been taken.
    Sent,
    /// All of a window were there.
    Acknowledged,
    /// What is done later.
    Finish,
}

/// What a message of the transport says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// All of a message.
    Data,
    /// There is a message.
    Ready,
    /// Put it.
    Clear,
    /// It has been got.
    Got,
    /// It has been put.
    Put,
    /// All of a window were there.
    Window,
}

impl Kind {
    const ALL: [Kind; 6] =
        [Kind::Data, Kind::Ready, Kind::Clear, Kind::Got, Kind::Put, Kind::Window];
    /// Bytes of one that only says something.
    const HEADER: u32 = 64;

    fn tag(self) -> Tag {
        Tag(self as u8)
    }
}

const REGION: RegionId = RegionId(0);

impl Rank {
    /// One end of a test.
    #[must_use]
    pub fn new(test: Arc<Test>) -> Rank {
        Rank {
            test,
            jobs: VecDeque::new(),
            busy: None,
            missing: 0,
            round: 0,
            count: 0,
            pieces: BTreeMap::new(),
            left: BTreeMap::new(),
            transfers: 0,
            waiting: 0,
            failed: None,
            ready: Time::ZERO,
            began: Time::ZERO,
            ended: None,
            last: Time::ZERO,
        }
    }

    /// Whether messages of this test are moved by puts or gets.
    fn is_remote(&self) -> bool {
        match self.test.how {
            How::Put | How::Get => true,
            How::Message | How::Mpi => self.test.bytes > self.test.profile.eager_max,
        }
    }

    /// Whether they are put.
    fn is_put(&self) -> bool {
        match self.test.how {
            How::Put => true,
            How::Get | How::Message => false,
            How::Mpi => self.test.profile.put_from.is_some_and(|from| self.test.bytes >= from),
        }
    }

    fn peer(fabric: &impl Fabric) -> ProcName {
        ProcName { job: fabric.me().job, rank: 1 - fabric.me().rank }
    }

    // ---- the test ------------------------------------------------------------------------

    fn round(&mut self, fabric: &mut impl Fabric) {
        if self.round == 1 {
            self.began = fabric.now();
        }
        if self.round == 1 + ROUNDS {
            self.ended = Some(fabric.now());
            return;
        }
        self.round += 1;
        self.count = 0;
        self.last = fabric.now();
        let many = match self.test.shape {
            Shape::Latency => 1,
            Shape::Window(many) => many,
        };
        for _ in 0..many {
            match self.test.how {
                How::Put | How::Get => self.transfer(fabric),
                How::Message | How::Mpi => self.begin(),
            }
        }
    }

    /// A message, or a put or a get, is done with at this end.
    fn one_done(&mut self, fabric: &mut impl Fabric, delivered: bool) {
        self.count += 1;
        let one_sided = matches!(self.test.how, How::Put | How::Get);
        match self.test.shape {
            Shape::Latency if one_sided => self.round(fabric),
            Shape::Latency if !delivered => {}
            Shape::Latency if fabric.me().rank == 0 => self.round(fabric),
            Shape::Latency => self.begin(),
            Shape::Window(many) if self.count < many => {}
            Shape::Window(_) if one_sided => self.round(fabric),
            Shape::Window(_) if delivered => {
                self.count = 0;
                self.jobs.push_front((self.test.profile.send, Job::Send(Kind::Window)));
            }
            Shape::Window(_) => {}
        }
    }

    // ---- the library ---------------------------------------------------------------------

    /// The caller sends: before anything that can be done later.
    fn begin(&mut self) {
        let Profile { send, setup, .. } = self.test.profile;
        let job = match self.is_remote() {
            true => (send + setup, Job::Send(Kind::Ready)),
            false => (send, Job::Send(Kind::Data)),
        };
        let later = self.jobs.iter().position(|(_, job)| *job == Job::Finish);
        self.jobs.insert(later.unwrap_or(self.jobs.len()), job);
    }

    fn arrived(&mut self, kind: Kind, len: u32) {
        let profile = &self.test.profile;
        let (receive, send, setup) = (profile.receive, profile.send, profile.setup);
        let job = match kind {
            Kind::Data => (receive + profile.copying(len), Job::Deliver),
            Kind::Ready if self.is_put() => (receive + setup + send, Job::Send(Kind::Clear)),
            Kind::Ready => (receive + setup, Job::Transfer),
            Kind::Clear => (receive, Job::Transfer),
            Kind::Got => (receive, Job::Sent),
            Kind::Put => (receive, Job::Deliver),
            Kind::Window => (receive, Job::Acknowledged),
        };
        self.jobs.push_back(job);
    }

    fn act(&mut self, fabric: &mut impl Fabric, job: Job) {
        let finish = (self.test.profile.finish, Job::Finish);
        match job {
            Job::Send(kind) => {
                let len = if kind == Kind::Data { self.test.bytes } else { Kind::HEADER };
                fabric.send(Rank::peer(fabric), kind.tag(), len, Hold::Copied);
                if kind == Kind::Data {
                    self.jobs.push_back(finish);
                }
            }
            Job::Transfer if !self.is_put() && self.left.len() as u32 >= self.test.profile.gets => {
                self.waiting += 1;
            }
            Job::Transfer => self.transfer(fabric),
            Job::Deliver => {
                self.jobs.push_back(finish);
                self.one_done(fabric, true);
            }
            Job::Sent => {
                self.jobs.push_back(finish);
                self.one_done(fabric, false);
            }
            Job::Acknowledged => self.round(fabric),
            Job::Finish => {}
        }
    }

    /// Moves the data of a message, in pieces.
    fn transfer(&mut self, fabric: &mut impl Fabric) {
        let message = self.transfers;
        self.transfers += 1;
        let (bytes, piece) = (self.test.bytes, self.test.profile.piece);
        self.left.insert(message, bytes.div_ceil(piece).max(1));
        let mut offset = 0;
        loop {
            let len = piece.min(bytes - offset);
            let place = Place { region: REGION, offset };
            let to = Rank::peer(fabric);
            let frag = match self.is_put() {
                true => fabric.put(to, place, place, len),
                false => fabric.get(to, place, place, len),
            };
            self.pieces.insert(frag, message);
            offset += len;
            if offset == bytes {
                return;
            }
        }
    }

    /// A piece is where it was to go.
    fn moved(&mut self, fabric: &mut impl Fabric, frag: FragId) {
        let Some(message) = self.pieces.remove(&frag) else { return };
        let Some(left) = self.left.get_mut(&message) else { return };
        *left -= 1;
        if *left > 0 {
            return;
        }
        self.left.remove(&message);
        let send = self.test.profile.send;
        match self.test.how {
            How::Put | How::Get => self.one_done(fabric, true),
            How::Message | How::Mpi if self.is_put() => {
                self.jobs.push_back((send, Job::Send(Kind::Put)));
                self.jobs.push_back((Span::ZERO, Job::Sent));
            }
            How::Message | How::Mpi => {
                if self.waiting > 0 {
                    self.waiting -= 1;
                    self.transfer(fabric);
                }
                self.jobs.push_back((send, Job::Send(Kind::Got)));
                self.jobs.push_back((Span::ZERO, Job::Deliver));
            }
        }
    }

    // ---- the host ------------------------------------------------------------------------

    /// Does what costs nothing, and begins with the first thing that does.
    fn go_on(&mut self, fabric: &mut impl Fabric) {
        while self.busy.is_none()
            && let Some((cost, job)) = self.jobs.pop_front()
        {
            if cost == Span::ZERO {
                self.act(fabric, job);
            } else {
                self.busy = Some(job);
                fabric.wake_after(cost);
            }
        }
    }

    fn prepared(&mut self, fabric: &mut impl Fabric) {
        self.missing -= 1;
        if self.missing == 0 && fabric.me().rank == 0 {
            self.ready = fabric.now();
            self.round(fabric);
        }
    }
}

impl App for Rank {
    fn start(&mut self, fabric: &mut impl Fabric) {
        if self.is_remote() {
            self.missing += 1;
            fabric.register(REGION, self.test.bytes.max(8));
        }
        if fabric.me().rank == 0 {
            self.missing += 1;
            fabric.connect(Rank::peer(fabric));
        }
    }

    fn notice(&mut self, fabric: &mut impl Fabric, notice: Notice) {
        match notice {
            Notice::Arrived { tag, len, .. } => {
                if let Some(&kind) = Kind::ALL.iter().find(|kind| kind.tag() == tag) {
                    self.arrived(kind, len);
                }
            }
            Notice::Done { frag, .. } => self.moved(fabric, frag),
            Notice::Connected { .. } if fabric.me().rank == 0 => self.prepared(fabric),
            Notice::Registered { .. } => self.prepared(fabric),
            Notice::Failed { reason, .. } | Notice::Unknown { reason, .. } => {
                self.failed = Some(reason);
            }
            Notice::Sent { .. }
            | Notice::Connected { .. }
            | Notice::Closed { .. }
            | Notice::Unregistered { .. }
            | Notice::Trouble { .. } => {}
        }
        self.go_on(fabric);
    }

    fn woken(&mut self, fabric: &mut impl Fabric) {
        if let Some(job) = self.busy.take() {
            self.act(fabric, job);
        }
        self.go_on(fabric);
    }
}

//! Workloads: what the procs do.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::quantity::{Bytes, Duration};

/// What the procs do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Procs 0 and 1, 2 and 3, and so on send one message back and forth.
    PingPong(PingPong),
    /// Each proc sends to partners that are drawn once from the seed.
    Uniform(Uniform),
    /// Each proc sends to every other.
    AllToAll(AllToAll),
    /// Each proc connects to its neighbours, all at once, with one message each.
    ConnectStorm(ConnectStorm),
    /// Every proc sends to the same one.
    Incast(Incast),
    /// Each proc sends to partners that are drawn once from the seed, in bursts with pauses.
    Bursts(Bursts),
    /// Each proc uses the memory of partners that are drawn once from the seed, and checks what
    /// it finds there.
    Remote(Remote),
    /// Each proc does what is written.
    Script(Vec<ProcScript>),
}

/// Settings of `ping-pong`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PingPong {
    /// How many round trips each pair makes.
    pub rounds: u64,
    /// The size of each message.
    pub size: Bytes,
}

/// Settings of `uniform`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// How many partners each proc sends to.
    pub partners: u32,
    /// How many messages each proc sends in all, to its partners in turn.
    pub messages: u64,
    /// The size of each message.
    pub size: Bytes,
    /// The time from one message of a proc to its next.
    #[serde(default)]
    pub gap: Duration,
    /// Whether every connection is up before the first message is sent and counted.
    #[serde(default)]
    pub connect_first: bool,
}

/// Settings of `all-to-all`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllToAll {
    /// How often each proc sends to each other.
    #[serde(default = "once")]
    pub rounds: u64,
    /// The size of each message.
    pub size: Bytes,
    /// The time from one message of a proc to its next.
    #[serde(default)]
    pub gap: Duration,
}

/// Settings of `connect-storm`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectStorm {
    /// Whom each proc connects to.
    pub neighbours: Neighbours,
    /// The size of the message that asks for each connection.
    #[serde(default = "eight_bytes")]
    pub size: Bytes,
    /// The time over which the procs start, each at a moment drawn from the seed.
    #[serde(default)]
    pub spread: Duration,
}

/// Whom a proc of a storm connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Neighbours {
    /// So many others, drawn once from the seed.
    Drawn(u32),
    /// Those around it in a shape.
    Shape(NeighbourShape),
}

/// A shape of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NeighbourShape {
    /// The procs of the same number on the 26 routers that touch this one, corners included.
    #[serde(rename = "torus-26")]
    Torus26,
}

/// Settings of `incast`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    /// The proc that all others send to.
    #[serde(default)]
    pub target: u32,
    /// How many messages each of the others sends.
    pub messages: u64,
    /// The size of each message.
    pub size: Bytes,
    /// The time from one message of a proc to its next.
    #[serde(default)]
    pub gap: Duration,
}

/// Settings of `bursts`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// How many partners each proc sends to.
    #[serde(default = "one")]
    pub partners: u32,
    /// How many bursts each proc sends.
    pub bursts: u64,
    /// How many messages a burst has, sent without a gap to the partners in turn.
    pub length: u64,
    /// The time from the start of one burst to the start of the next.
    pub every: Duration,
    /// The size of each message.
    pub size: Bytes,
}

/// Settings of `remote`. Each proc has a window: a word that all count in, and a slot for each
/// proc in which that one alone writes, so that it knows what a get must bring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// Whose memory each proc uses: so many others, one operation each at a time.
    #[serde(default = "one")]
    pub partners: u32,
    /// How many operations each proc asks for in all.
    pub operations: u64,
    /// The size of each put and get.
    #[serde(default = "eight_bytes")]
    pub size: Bytes,
    /// How often each kind of operation is chosen.
    #[serde(default)]
    pub mix: Mix,
    /// Whether gets go to places where no NIC can get them, so that the peer has to put.
    #[serde(default)]
    pub odd: bool,
    /// Compare what one in so many gets brings with what was put; 0: none.
    #[serde(default = "once")]
    pub check_every: u64,
}

/// Weights of the kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Of puts into the own slot.
    #[serde(default)]
    pub put: u32,
    /// Of gets of the own slot.
    #[serde(default)]
    pub get: u32,
    /// Of fetch-and-adds to the word.
    #[serde(default)]
    pub add: u32,
    /// Of bits set in the word, which may be done twice.
    #[serde(default)]
    pub set: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Mix { put: 4, get: 4, add: 1, set: 1 }
    }
}

/// What one proc does, step by step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcScript {
    /// The proc.
    pub proc: u32,
    /// Its steps, in their order.
    pub steps: Vec<Step>,
}

/// One step of a script. With neither `at` nor `after` it follows the step before at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The time since the start of the run at which to do it. Not together with `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Duration>,
    /// The time since the step before at which to do it. Not together with `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
    /// What to do.
    #[serde(rename = "do")]
    pub action: Action,
}

/// What a proc does in one step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Send messages; this connects to the peer, if need be.
    Send(Send),
    /// Connect to a peer without sending anything.
    Connect(Peer),
    /// Close the connection to a peer.
    Close(Peer),
    /// Register memory under a name.
    Register(Register),
    /// Take a registration back.
    Deregister(Deregister),
    /// Write to a peer's memory.
    Put(Transfer),
    /// Read a peer's memory.
    Get(Transfer),
    /// Change a word of a peer's memory.
    Atomic(Atomic),
    /// Close everything and stop.
    Stop,
}

/// Settings of `send`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The proc to send to.
    pub to: u32,
    /// The size of each message.
    pub size: Bytes,
    /// How many messages.
    #[serde(default = "once")]
    pub count: u64,
    /// The matching tag: order is promised per peer and tag.
    #[serde(default)]
    pub tag: u8,
    /// Where in registered memory the message lies: one that is too long for the mailbox is
    /// fetched from there. Several lie one after the other, each from a whole word on. Left out:
    /// they are copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Place>,
}

/// A place in registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The name of the region, as its owner registered it.
    pub region: u32,
    /// Bytes from its start.
    #[serde(default)]
    pub offset: u32,
}

/// Settings of `register`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The name that the region shall have.
    pub region: u32,
    /// Its size.
    pub size: Bytes,
}

/// Settings of `deregister`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deregister {
    /// The name of the region.
    pub region: u32,
}

/// Settings of `put` and `get`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The proc whose memory it is about.
    pub to: u32,
    /// The place here.
    pub local: Place,
    /// The place there.
    pub remote: Place,
    /// How many bytes.
    pub size: Bytes,
    /// How often, all at once.
    #[serde(default = "once")]
    pub count: u64,
}

/// Settings of `atomic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Atomic {
    /// The proc whose memory it is about.
    pub to: u32,
    /// What is done to the word.
    pub op: AtomicOp,
    /// Whether what it held comes back.
    #[serde(default)]
    pub fetch: bool,
    /// Bytes of the word: 4 or 8.
    #[serde(default = "eight")]
    #[schemars(range(min = 4, max = 8))]
    pub width: u32,
    /// The word.
    pub remote: Place,
    /// With what.
    #[serde(default)]
    pub operand: u64,
    /// The second operand: what `compare-swap` compares with, and what `and-xor` flips.
    #[serde(default)]
    pub second: u64,
    /// How often, all at once.
    #[serde(default = "once")]
    pub count: u64,
}

/// What an atomic operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtomicOp {
    /// Adds the operand.
    Add,
    /// Keeps the bits that the operand has too.
    And,
    /// Sets the bits of the operand.
    Or,
    /// Flips the bits of the operand.
    Xor,
    /// Keeps the bits of the first operand, then flips those of the second.
    AndXor,
    /// Writes the operand.
    Swap,
    /// Writes the operand where it finds the second one.
    CompareSwap,
    /// Writes the operand where it is less.
    Min,
    /// Writes the operand where it is greater.
    Max,
    /// Adds as floating-point numbers.
    FloatAdd,
    /// The lesser of two floating-point numbers.
    FloatMin,
    /// The greater of two floating-point numbers.
    FloatMax,
}

/// The peer of `connect` and `close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The other proc.
    pub to: u32,
}

const fn one() -> u32 {
    1
}

const fn once() -> u64 {
    1
}

const fn eight() -> u32 {
    8
}

const fn eight_bytes() -> Bytes {
    Bytes(8)
}

impl Workload {
    /// As files spell it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Workload::PingPong(_) => "ping-pong",
            Workload::Uniform(_) => "uniform",
            Workload::AllToAll(_) => "all-to-all",
            Workload::ConnectStorm(_) => "connect-storm",
            Workload::Incast(_) => "incast",
            Workload::Bursts(_) => "bursts",
            Workload::Remote(_) => "remote",
            Workload::Script(_) => "script",
        }
    }

    /// The size of its messages, where all have the same.
    #[must_use]
    pub const fn size(&self) -> Option<Bytes> {
        match self {
            Workload::PingPong(it) => Some(it.size),
            Workload::Uniform(it) => Some(it.size),
            Workload::AllToAll(it) => Some(it.size),
            Workload::ConnectStorm(it) => Some(it.size),
            Workload::Incast(it) => Some(it.size),
            Workload::Bursts(it) => Some(it.size),
            Workload::Remote(it) => Some(it.size),
            Workload::Script(_) => None,
        }
    }
}

// By hand, since serde's own untagged enums forget where a mistake was.
impl<'de> Deserialize<'de> for Neighbours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountOrShape;
        impl Visitor<'_> for CountOrShape {
            type Value = Neighbours;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of neighbours or `torus-26`")
            }

            fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Neighbours, E> {
                u32::try_from(count)
                    .map(Neighbours::Drawn)
                    .map_err(|_| E::custom(format_args!("{count} neighbours are too many")))
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Neighbours, E> {
                let word = serde::de::value::StrDeserializer::new(word);
                NeighbourShape::deserialize(word).map(Neighbours::Shape)
            }
        }
        deserializer.deserialize_any(CountOrShape)
    }
}

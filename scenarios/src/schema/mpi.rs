//! Message passing as a library does it over the transport: what it costs, and which way it
//! takes for which size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Bytes, Duration, Rate};

/// How MPI behaves on a machine. What is left out is as usual on machines with such a fabric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mpi {
    /// The library, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// What the host does from the call until the transport has the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<Duration>,
    /// What the host does from a completion until the caller has the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive: Option<Duration>,
    /// What it does later for each message, at each end: this message does not wait for it, but
    /// the next one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<Duration>,
    /// The rate of a copy from one place in memory to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_rate: Option<Rate>,
    /// Longest message that goes whole, and is copied by its receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eager_max: Option<Bytes>,
    /// What each end does to lay memory open to the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Duration>,
    /// Messages of this length and more are put by their sender, which asks first; those between
    /// are got by their receiver. Without it all are got, unless such machines usually put.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_from: Option<Bytes>,
    /// Messages that one host gets at a time; others wait until one is there. Without it there is
    /// no such bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gets: Option<u32>,
    /// Longest piece of a message that is put or got at once. Each takes its own way, as each
    /// packet does on a real machine: shorter is nearer to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub piece: Option<Bytes>,
    /// From one proc to another through the memory that they share, in one node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<Duration>,
}

impl Mpi {
    /// Whether nothing of it differs.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Mpi::default()
    }
}

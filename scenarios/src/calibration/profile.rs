//! What MPI costs on a machine, with everything filled in.

use selvedge_core::Span;
use selvedge_sim::topology::Rate;

use crate::schema::machine::{Fabric, Machine};
use crate::schema::mpi::Mpi;

/// How a library passes messages over the transport; see [`Mpi`] for the meanings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name, for people.
    pub library: String,
    /// From the call until the transport has the message.
    pub send: Span,
    /// From a completion until the caller has the message.
    pub receive: Span,
    /// Later, for each message.
    pub finish: Span,
    /// Of a copy in memory.
    pub copy: Rate,
    /// Longest message that goes whole.
    pub eager_max: u32,
    /// What each end does to lay memory open.
    pub setup: Span,
    /// From which length on messages are put.
    pub put_from: Option<u32>,
    /// Messages that are got at a time.
    pub gets: u32,
    /// Longest piece of what is put or got.
    pub piece: u32,
    /// Through shared memory.
    pub shared_memory: Span,
}

impl Profile {
    /// The transport alone: messages as long as it takes them, and no cost on top.
    #[must_use]
    pub fn none() -> Profile {
        Profile {
            library: "none".to_owned(),
            send: Span::ZERO,
            receive: Span::ZERO,
            finish: Span::ZERO,
            copy: Rate(u64::MAX),
            eager_max: u32::MAX,
            setup: Span::ZERO,
            put_from: None,
            gets: u32::MAX,
            piece: PIECE,
            shared_memory: Span::ZERO,
        }
    }

    /// Cray MPICH on an XE6, as nearest nodes of Hopper have it: 1.27 us, of which the fabric
    /// takes 0.8. Messages over a kilobyte are not sent whole. That long ones are put follows
    /// from their bandwidth: over one and over two connections of cable it is the same part of
    /// the raw rate, and no more than a put leaves of it, where a get would leave four fifths.
    fn gemini() -> Profile {
        Profile {
            library: "Cray MPICH".to_owned(),
            send: Span::from_ns(220),
            receive: Span::from_ns(250),
            finish: Span::from_ns(300),
            copy: COPY,
            eager_max: 1_024,
            setup: Span::from_ns(300),
            put_from: Some(512 * 1_024),
            gets: u32::MAX,
            piece: PIECE,
            shared_memory: Span::from_ns(40),
        }
    }

    /// Cray MPICH on an XC, as the white paper of 2012 has it: 1.3 us, of which the fabric takes
    /// 0.9. Where it changes from sending whole to getting is seen in the curve of Piz Daint
    /// between 4 and 8 KiB.
    fn aries() -> Profile {
        Profile {
            send: Span::from_ns(200),
            receive: Span::from_ns(230),
            eager_max: 8_000,
            setup: Span::from_ns(165),
            put_from: None,
            ..Profile::gemini()
        }
    }

    /// That of a machine: what its file says, and for the rest what is usual with its fabric.
    /// `None` where nothing is.
    #[must_use]
    pub fn of(machine: &Machine) -> Option<Profile> {
        match &machine.fabric {
            Fabric::Gemini(gemini) => Some(Profile::gemini().but(&gemini.mpi)),
            Fabric::Aries(aries) => Some(Profile::aries().but(&aries.mpi)),
            Fabric::Crossbar(_) => None,
        }
    }

    fn but(self, mpi: &Mpi) -> Profile {
        let bytes = |ours: Option<crate::quantity::Bytes>| {
            ours.map(|bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX))
        };
        Profile {
            library: mpi.library.clone().unwrap_or(self.library),
            send: mpi.send.map_or(self.send, |it| it.0),
            receive: mpi.receive.map_or(self.receive, |it| it.0),
            finish: mpi.finish.map_or(self.finish, |it| it.0),
            copy: mpi.copy_rate.map_or(self.copy, |it| Rate(it.0)),
            eager_max: bytes(mpi.eager_max).unwrap_or(self.eager_max),
            setup: mpi.setup.map_or(self.setup, |it| it.0),
            put_from: bytes(mpi.put_from).or(self.put_from),
            gets: mpi.gets.unwrap_or(self.gets).max(1),
            piece: bytes(mpi.piece).unwrap_or(self.piece).max(1),
            shared_memory: mpi.shared_memory.map_or(self.shared_memory, |it| it.0),
        }
    }

    /// What it takes to copy so many bytes.
    #[must_use]
    pub fn copying(&self, bytes: u32) -> Span {
        self.copy.time_of(u64::from(bytes))
    }
}

/// A usual rate of `memcpy` within a node of those years.
const COPY: Rate = Rate(10_000_000_000);
/// The library cuts transfers into pieces of at most a mebibyte. The real NIC sends packets of
/// 64 bytes, each its own way; pieces of this length are as even, and still few.
const PIECE: u32 = 64 * 1_024;

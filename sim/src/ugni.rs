//! uGNI in the simulator: the module of core on the GNI NIC of core.

use std::sync::Arc;

use selvedge_core::ugni::nic::{self, Nic};
use selvedge_core::ugni::{self, Completion, Identity, Module};
use selvedge_core::{Address, Load, ProcName, Violation};

use crate::simulated::Simulated;

/// How modules and their NICs are configured.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The module: one configuration for all.
    pub module: Arc<ugni::Config>,
    /// The device.
    pub nic: Arc<nic::Config>,
}

impl Setup {
    /// With these configurations.
    #[must_use]
    pub fn new(module: ugni::Config, nic: nic::Config) -> Setup {
        Setup { module: Arc::new(module), nic: Arc::new(nic) }
    }
}

impl Setup {
    /// The same without time, for a search: every span is zero, and one step is repeated at most
    /// `retries` times.
    #[must_use]
    pub fn timeless(self, retries: u64) -> Setup {
        use selvedge_core::config::{Tunables, Unit};
        fn still<C: Tunables>(mut config: C) -> C {
            for row in C::TABLE.iter().filter(|row| row.unit == Unit::Time && row.min == 0) {
                let set = config.set(row.name, 0);
                debug_assert!(set.is_ok(), "zero is within the bounds of {}", row.name);
            }
            config
        }
        // A mailbox rests for ever: while time stands still, no packet is too old to come.
        let module =
            ugni::Config { connect_tries: retries, mailbox_rest: 1, ..still(*self.module) };
        // Enough for the few losses of a search, and not more: a dead peer swallows them all.
        let nic = nic::Config { stubborn_retries: 3, ..still(*self.nic) };
        Setup::new(module, nic)
    }
}

impl Simulated for Module {
    type Nic = Nic;
    type Setup = Setup;
    const NUMBER: u16 = ugni::TRANSPORT;

    fn open(setup: &Setup, name: ProcName, address: Address, life: u32) -> (Module, Nic) {
        let me = Identity { name, address, incarnation: life };
        let nic = Nic::new(address, setup.nic.clone(), setup.module.clone());
        (Module::new(me, setup.module.clone()), nic)
    }

    #[inline]
    fn load(setup: &Setup, packet: &nic::Packet) -> Load {
        Nic::load(&setup.nic, packet)
    }

    fn is_overrun(completion: &Completion) -> bool {
        matches!(completion, Completion::LocalOverrun | Completion::RemoteOverrun)
    }

    /// Credits are conserved: what the sender holds and what the receiver has not given back
    /// are never more than the mailbox has slots. (What is on the wire makes up the rest.)
    fn check_pair(here: (&Module, &Nic), there: (&Module, &Nic)) -> Result<(), Violation> {
        let peer = there.0.identity().name;
        let Some(credits) = here.0.credits(peer) else { return Ok(()) };
        let kept = there.1.unreturned(here.0.identity().address);
        selvedge_core::machine::ensure(
            credits.owed() >= kept,
            "slots that are not free have taken a credit",
        )
    }
}

//! Machines as meant: found by name or path, sized with checked arithmetic, judged.

use std::path::Path as FilePath;

use selvedge_core::ugni::nic::{self, Framing};
use selvedge_sim::topology::{self, Dimension, DragonflySpec, TopologyError, TorusSpec, Wire};

use crate::diagnostic::{Diagnostic, unknown};
use crate::input::{LoadError, read_file};
use crate::schema::SCHEMA_VERSION;
use crate::schema::machine::{
    Aries, Fabric, Gemini, LinkRates, Machine, MachineRef, TransportName,
};
use crate::spanned::{Document, Path};

/// The machines that come with the program, as their files say.
pub const BUILT_IN: [(&str, &str); 8] = [
    ("titan", include_str!("../machines/titan.json")),
    ("hopper", include_str!("../machines/hopper.json")),
    ("blue-waters", include_str!("../machines/blue-waters.json")),
    ("edison", include_str!("../machines/edison.json")),
    ("cori", include_str!("../machines/cori.json")),
    ("piz-daint", include_str!("../machines/piz-daint.json")),
    ("piz-daint-xc50", include_str!("../machines/piz-daint-xc50.json")),
    ("trinitite", include_str!("../machines/trinitite.json")),
];

/// No world of ours has more nodes, routers or procs: every table index fits with room to spare.
pub const NODES_MAX: u32 = 1 << 22;

/// A mistake in a document: where, and what to do about it.
pub type Problem = (Path, String);

/// How large a fabric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its routers or switches.
    pub routers: u32,
    /// The slots that can hold a node.
    pub slots: u32,
}

impl Fabric {
    /// How large it is.
    ///
    /// # Errors
    /// When there is nothing, or more than a world can hold; the path starts at the fabric.
    pub fn size(&self) -> Result<Size, Problem> {
        match self {
            Fabric::Gemini(gemini) => gemini_size(gemini),
            Fabric::Aries(aries) => aries_size(aries),
            Fabric::Crossbar(crossbar) => {
                let path = Path::root().key("crossbar").key("nodes");
                let slots = within(path, "nodes", &[crossbar.nodes])?;
                Ok(Size { routers: 1, slots })
            }
        }
    }

    /// Whether a link joins routers `a` and `b`.
    #[must_use]
    pub fn joined(&self, a: u32, b: u32) -> bool {
        let gemini = match self {
            Fabric::Gemini(gemini) => gemini,
            Fabric::Aries(aries) => return aries.spec(1).joins(a, b),
            Fabric::Crossbar(_) => return false,
        };
        let [x, y, z] = gemini.dims;
        let place = |router: u32| {
            let column = router.checked_div(z)?;
            let place = [column.checked_div(y)?, column.checked_rem(y)?, router % z];
            (place[0] < x).then_some(place)
        };
        let (Some(a), Some(b)) = (place(a), place(b)) else { return false };
        // Neighbours differ in one dimension, by one step, perhaps around the end.
        let steps = a.iter().zip(b).zip(gemini.dims).map(|((&a, b), length)| {
            let apart = a.abs_diff(b);
            apart.min(length.saturating_sub(apart))
        });
        steps.fold(0_u32, u32::saturating_add) == 1
    }

    /// Everything else that is wrong with it; paths start at the fabric.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        problems.extend(self.size().err());
        if let Fabric::Gemini(gemini) = self {
            let rates = &gemini.link_rates;
            for (name, list) in [("x", &rates.x), ("y", &rates.y), ("z", &rates.z)] {
                if list.is_empty() {
                    let path = Path::root().key("gemini").key("link_rates").key(name);
                    problems.push((path, "write at least one rate: [\"9.375GB/s\"]".to_owned()));
                }
            }
        }
        problems
    }
}

fn gemini_size(gemini: &Gemini) -> Result<Size, Problem> {
    let path = Path::root().key("gemini");
    let [x, y, z] = gemini.dims;
    let routers = within(path.key("dims"), "routers", &[x, y, z])?;
    let slots = within(path.key("nodes_per_router"), "nodes", &[routers, gemini.nodes_per_router])?;
    Ok(Size { routers, slots })
}

fn aries_size(aries: &Aries) -> Result<Size, Problem> {
    let path = Path::root().key("aries");
    let Aries { groups, chassis_per_group, routers_per_chassis, .. } = *aries;
    let counts = [groups, chassis_per_group, routers_per_chassis];
    let routers = within(path.key("groups"), "routers", &counts)?;
    let slots = within(path.key("nodes_per_router"), "nodes", &[routers, aries.nodes_per_router])?;
    if let Err(error @ (TopologyError::NoCables | TopologyError::TooManyCables)) =
        aries.spec(slots).validate()
    {
        let sockets = chassis_per_group * routers_per_chassis / 2 * topology::Aries::SOCKETS;
        let message = format!("{error}: each of {groups} groups has {sockets} for all others");
        return Err((path.key("cables"), message));
    }
    Ok(Size { routers, slots })
}

impl Aries {
    /// As the simulator builds it, with so many nodes.
    #[must_use]
    pub fn spec(&self, nodes: u32) -> DragonflySpec {
        let wire =
            |rate: crate::quantity::Rate, latency| Wire { rate: topology::Rate(rate.0), latency };
        let hop = self.hop_latency.0;
        let host = node_wire(self.injection_rate, Framing::ARIES);
        DragonflySpec {
            groups: self.groups,
            chassis: self.chassis_per_group,
            slots: self.routers_per_chassis,
            nodes_per_router: self.nodes_per_router,
            nodes,
            cables: self.cables,
            rank1: wire(self.rank1_rate, hop),
            rank2: wire(self.rank2_rate, hop),
            rank3: wire(self.rank3_rate, self.optical_latency.0),
            inject: host,
            eject: host,
        }
    }
}

impl Gemini {
    /// As the simulator builds it, with so many nodes.
    #[must_use]
    pub fn spec(&self, nodes: u32) -> TorusSpec {
        let rates = |list: &[crate::quantity::Rate]| {
            Dimension(list.iter().map(|rate| topology::Rate(rate.0)).collect())
        };
        let LinkRates { x, y, z } = &self.link_rates;
        let host = node_wire(self.injection_rate, Framing::GEMINI);
        TorusSpec {
            dims: self.dims,
            nodes_per_router: self.nodes_per_router,
            nodes,
            dimensions: [rates(x), rates(y), rates(z)],
            hop_latency: self.hop_latency.0,
            inject: host,
            eject: host,
        }
    }
}

/// The link between a node and its router, by the rate of the data in the puts that it carries;
/// how far away the router is belongs to host and NIC.
fn node_wire(rate: crate::quantity::Rate, framing: Framing) -> Wire {
    let wire = u128::from(framing.bytes(framing.put[0]));
    let rate = u128::from(rate.0) * wire / u128::from(nic::TRANSACTION);
    let rate = u64::try_from(rate).unwrap_or(u64::MAX);
    Wire { rate: topology::Rate(rate), latency: selvedge_core::Span::ZERO }
}

/// The product of `factors`, if it is a number of `what` that a world can hold.
fn within(path: Path, what: &str, factors: &[u32]) -> Result<u32, Problem> {
    let product = factors.iter().try_fold(1_u64, |all, &n| all.checked_mul(u64::from(n)));
    let spelled = || factors.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ");
    match product.map(u32::try_from) {
        Some(Ok(0)) => {
            Err((path, format!("{} makes no {what}: each must be at least 1", spelled())))
        }
        Some(Ok(n)) if n <= NODES_MAX => Ok(n),
        _ => Err((path, format!("{} {what} are too many, the most is {NODES_MAX}", spelled()))),
    }
}

impl Machine {
    /// How many nodes it has.
    #[must_use]
    pub fn node_count(&self) -> u32 {
        let slots = self.fabric.size().map_or(0, |size| size.slots);
        self.nodes.map_or(slots, |nodes| nodes.min(slots))
    }

    /// The transports that its nodes speak.
    #[must_use]
    pub fn transports(&self) -> &[TransportName] {
        self.transports.as_deref().unwrap_or(self.fabric.transports())
    }

    /// Everything that is wrong with it; paths start at the machine.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let root = Path::root();
        let mut problems: Vec<Problem> = (self.fabric.problems().into_iter())
            .map(|(path, message)| (root.key("fabric").join(&path), message))
            .collect();
        if self.name.is_empty() {
            problems.push((root.key("name"), "a machine needs a name".to_owned()));
        }
        if let (Some(nodes), Ok(size)) = (self.nodes, self.fabric.size())
            && (nodes == 0 || nodes > size.slots)
        {
            let message = format!("must lie between 1 and the fabric's {} slots", size.slots);
            problems.push((root.key("nodes"), message));
        }
        if self.transports.as_ref().is_some_and(Vec::is_empty) {
            let message = "name at least one transport, or leave the key out".to_owned();
            problems.push((root.key("transports"), message));
        }
        problems
    }
}

/// Reads a machine file.
///
/// # Errors
/// With everything that is wrong with it.
pub fn parse(file: &str, bytes: Vec<u8>) -> Result<Machine, Vec<Diagnostic>> {
    let document = Document::parse(file, bytes).map_err(|error| vec![error])?;
    document.require_version(SCHEMA_VERSION).map_err(|error| vec![error])?;
    let machine: Machine = document.read().map_err(|error| vec![error])?;
    let problems = machine.problems();
    if problems.is_empty() {
        return Ok(machine);
    }
    Err(problems.into_iter().map(|(path, message)| document.mistake(&path, message)).collect())
}

/// Why a scenario's machine could not be had.
#[derive(Clone, Debug)]
pub enum MachineError {
    /// No machine goes by this name; the message belongs to the scenario's `machine`.
    Unknown(String),
    /// Its file is missing or wrong.
    File(LoadError),
}

/// Finds the machine that a scenario in `folder` names. A fabric written in place is checked
/// with the scenario, where its lines are.
///
/// # Errors
/// When there is no such machine, or its file is wrong.
pub fn resolve(reference: &MachineRef, folder: &FilePath) -> Result<Machine, MachineError> {
    let name = match reference {
        MachineRef::Inline(fabric) => return Ok(of_fabric((**fabric).clone())),
        MachineRef::Named(name) => name,
    };
    if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| known == name) {
        return parse(name, (*text).into()).map_err(|e| MachineError::File(LoadError::Invalid(e)));
    }
    if name.contains('/') || name.to_ascii_lowercase().ends_with(".json") {
        let path = folder.join(name);
        let bytes = read_file(&path).map_err(MachineError::File)?;
        let file = path.display().to_string();
        return parse(&file, bytes).map_err(|e| MachineError::File(LoadError::Invalid(e)));
    }
    let known: Vec<&str> = BUILT_IN.iter().map(|(known, _)| *known).collect();
    Err(MachineError::Unknown(unknown("machine", name, &known)))
}

fn of_fabric(fabric: Fabric) -> Machine {
    Machine {
        schema_version: SCHEMA_VERSION,
        name: "inline".to_owned(),
        description: String::new(),
        source: String::new(),
        fabric,
        nodes: None,
        transports: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_that_come_along_are_sound_and_as_large_as_the_real_ones() {
        for (name, routers, slots, nodes) in [
            ("titan", 9_600, 19_200, 18_688),
            ("hopper", 3_264, 6_528, 6_528),
            ("blue-waters", 13_824, 27_648, 26_864),
            ("edison", 1_440, 5_760, 5_760),
            ("cori", 3_264, 13_056, 12_076),
            ("piz-daint", 1_344, 5_376, 5_272),
            ("piz-daint-xc50", 1_728, 6_912, 6_751),
            ("trinitite", 96, 384, 384),
        ] {
            let reference = MachineRef::Named(name.to_owned());
            let machine = resolve(&reference, FilePath::new(".")).expect(name);
            assert_eq!(machine.name, name);
            assert_eq!(machine.fabric.size(), Ok(Size { routers, slots }));
            assert_eq!(machine.node_count(), nodes);
            assert_eq!(machine.transports(), [TransportName::Ugni]);
        }
    }

    #[test]
    fn links_join_neighbours_around_the_ends_too() {
        let text =
            r#"{"schema_version": 1, "name": "m", "fabric": {"gemini": {"dims": [1, 3, 4]}}}"#;
        let fabric = parse("m.json", text.into()).expect("sound").fabric;
        assert!(fabric.joined(0, 1) && fabric.joined(3, 0) && fabric.joined(0, 4));
        assert!(fabric.joined(0, 8), "y goes around");
        assert!(!fabric.joined(0, 0) && !fabric.joined(0, 2) && !fabric.joined(0, 5));
        assert!(!fabric.joined(u32::MAX, 0));
        let text = r#"{"schema_version": 1, "name": "m", "fabric": {"aries": {"groups": 2, "cables": 1}}}"#;
        let fabric = parse("m.json", text.into()).expect("sound").fabric;
        assert!(fabric.joined(0, 15) && fabric.joined(0, 80) && fabric.joined(1, 97));
        assert!(!fabric.joined(0, 17) && !fabric.joined(0, 97) && !fabric.joined(0, u32::MAX));
    }

    #[test]
    fn absurd_machines_are_refused_at_once() {
        let machine = |fabric: &str| {
            let text = format!(r#"{{"schema_version": 1, "name": "m", "fabric": {fabric}}}"#);
            let errors = parse("m.json", text.into()).expect_err(fabric);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        for (fabric, expected) in [
            (r#"{"gemini": {"dims": [0, 1, 1]}}"#, "0 x 1 x 1 makes no routers"),
            (
                r#"{"gemini": {"dims": [1000, 1000, 1000]}}"#,
                "1000 x 1000 x 1000 routers are too many",
            ),
            (r#"{"gemini": {"dims": [4294967295, 4294967295, 4294967295]}}"#, "too many"),
            (r#"{"gemini": {"dims": [4294967296, 1, 1]}}"#, "m.json:1:67: invalid value"),
            (r#"{"gemini": {"dims": [1, 1]}}"#, "invalid length 2"),
            (
                r#"{"gemini": {"dims": [100, 100, 100], "nodes_per_router": 5}}"#,
                "nodes are too many",
            ),
            (
                r#"{"gemini": {"dims": [1, 1, 1], "link_rates": {"x": [], "y": ["1GB/s"], "z": ["1GB/s"]}}}"#,
                "at least one rate",
            ),
            (r#"{"aries": {"groups": 0, "cables": 1}}"#, "0 x 6 x 16 makes no routers"),
            (r#"{"aries": {"groups": 4000000000, "cables": 1}}"#, "routers are too many"),
            (
                r#"{"aries": {"groups": 34, "cables": 8}}"#,
                "each of 34 groups has 240 for all others",
            ),
            (r#"{"aries": {"groups": 2, "cables": 0}}"#, "no cable joins the groups"),
            (r#"{"aries": {"groups": 2}}"#, "key `cables` is missing"),
            (r#"{"crossbar": {"nodes": 0}}"#, "0 makes no nodes"),
            (r#"{"torus": {}}"#, "unknown word `torus`, known: gemini, aries, crossbar"),
        ] {
            let errors = machine(fabric);
            assert!(errors.contains(expected), "{errors}\nshould say\n{expected}");
        }
        let text = r#"{"schema_version": 1, "name": "m", "fabric": {"crossbar": {"nodes": 4}}, "nodes": 5}"#;
        let errors = parse("m.json", text.into()).expect_err("five nodes in four slots");
        assert_eq!(
            errors[0].to_string(),
            "m.json:1:83: must lie between 1 and the fabric's 4 slots"
        );
    }
}

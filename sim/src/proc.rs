//! One proc: a transport on its NIC, with an application on top. The same for a timed run and
//! for a search; they differ in what surrounds it.

use std::collections::VecDeque;

use selvedge_core::machine::Fault as Guilt;
use selvedge_core::nic::Errand;
use selvedge_core::rma::{Amo, Place, Tail};
use selvedge_core::{
    Address, App, Command, Effects, Event, Fabric, FragId, Hold, Machine, Nic, NicEffect, NicEvent,
    NodeId, Notice, Port, ProcName, Reason, RegionId, Span, Tag, Time, Verdict, deliver,
};

use crate::ledger::Ledger;
use crate::memory::{Memory, Payload, contents};
use crate::simulated::{ByNic, Completion, Effect, Fault, OfNic, Op, Packet, Simulated};
use crate::trace::What;
use crate::watch::{Kind, Watch};

/// A proc.
#[derive(Clone, Debug)]
pub struct Proc<T: Simulated, A> {
    /// Who it is.
    pub name: ProcName,
    /// Where it runs.
    pub node: NodeId,
    /// Which life this is; 1 is the first.
    pub life: u32,
    /// Where its NIC is.
    pub address: Address,
    /// Its transport.
    pub transport: T,
    /// Its NIC.
    pub nic: T::Nic,
    /// Its memory.
    pub memory: Memory,
    /// Its application.
    pub app: A,
    /// When the application wants to be woken.
    pub wake: Time,
    /// Answers of the modex that are still to come.
    late: Vec<(Time, Completion<T>)>,
}

/// What the modex says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When; not before now.
    pub at: Time,
    /// The address, or why there is none.
    pub card: Result<Address, Reason>,
}

/// Buffers that one world reuses for all its steps. Empty between them.
#[derive(Clone, Debug)]
pub struct Scratch<T: Simulated> {
    /// Answers of the NIC to calls.
    answers: VecDeque<Completion<T>>,
    /// What the application has asked.
    commands: VecDeque<Command>,
    fx: Effects<Effect<T>>,
    nic: Effects<ByNic<T>>,
    notices: Vec<Notice>,
}

impl<T: Simulated> Default for Scratch<T> {
    fn default() -> Self {
        Scratch {
            answers: VecDeque::new(),
            commands: VecDeque::new(),
            fx: Effects::new(T::EFFECTS_MAX),
            nic: Effects::new(<T::Nic as Machine>::EFFECTS_MAX),
            notices: Vec::with_capacity(T::EFFECTS_MAX),
        }
    }
}

/// What surrounds a proc.
pub trait Around<T: Simulated> {
    /// How many procs the job has.
    fn procs(&self) -> u32;
    /// A packet of `from` goes on its way.
    fn carry(&mut self, now: Time, from: Address, to: Address, packet: Packet<T>, payload: Payload);
    /// What the modex says of `peer`.
    fn card(&mut self, now: Time, peer: ProcName) -> Answer;
    /// The fault that strikes this op of `proc`, if one does.
    fn strike(&mut self, now: Time, proc: u32, op: &Op<T>) -> Option<Fault<T>>;
    /// Who looks on.
    fn watch(&mut self) -> &mut Watch<T>;
}

impl<T: Simulated, A: App> Proc<T, A> {
    /// A proc at the beginning of a life.
    pub fn new(
        setup: &T::Setup,
        name: ProcName,
        node: NodeId,
        address: Address,
        life: u32,
        app: A,
    ) -> Self {
        let (transport, nic) = T::open(setup, name, address, life);
        let (memory, wake, late) = (Memory::default(), Time::NEVER, Vec::new());
        Proc { name, node, life, address, transport, nic, memory, app, wake, late }
    }

    /// When something is due here that no packet brings.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        let transport = self.transport.next_deadline().unwrap_or(Time::NEVER);
        let nic = self.nic.next_deadline().unwrap_or(Time::NEVER);
        let late = self.late.iter().map(|&(at, _)| at).min().unwrap_or(Time::NEVER);
        transport.min(nic).min(late).min(self.wake)
    }

    /// Does the first thing that is due, if there is one.
    pub fn turn(
        &mut self,
        now: Time,
        scratch: &mut Scratch<T>,
        around: &mut impl Around<T>,
    ) -> bool {
        if self.nic.next_deadline().is_some_and(|at| at <= now) {
            let _ = self.nic_event(now, NicEvent::Expired, &[], scratch, around);
        } else if self.transport.next_deadline().is_some_and(|at| at <= now) {
            self.expired(now, scratch, around);
        } else if let Some(at) = self.late.iter().position(|&(at, _)| at <= now) {
            scratch.answers.push_back(self.late.remove(at).1);
            self.settle(now, scratch, around);
        } else if let Some(queue) = (0..T::Nic::QUEUES).find(|&queue| self.nic.ready(queue)) {
            self.poll(now, queue, scratch, around);
        } else if self.wake <= now {
            self.woken(now, scratch, around);
        } else {
            return false;
        }
        true
    }

    fn index(&self) -> u32 {
        self.name.rank
    }

    /// Starts the application.
    pub fn start(&mut self, now: Time, scratch: &mut Scratch<T>, around: &mut impl Around<T>) {
        self.ask_app(now, scratch, around, |app, handle| app.start(handle));
        self.settle(now, scratch, around);
    }

    /// Wakes the application.
    pub fn woken(&mut self, now: Time, scratch: &mut Scratch<T>, around: &mut impl Around<T>) {
        self.wake = Time::NEVER;
        self.ask_app(now, scratch, around, |app, handle| app.woken(handle));
        self.settle(now, scratch, around);
    }

    /// The deadline that the transport named has come.
    pub fn expired(&mut self, now: Time, scratch: &mut Scratch<T>, around: &mut impl Around<T>) {
        self.step(now, Event::Expired, scratch, around);
        self.settle(now, scratch, around);
    }

    /// The host looks into a queue of its NIC.
    pub fn poll(
        &mut self,
        now: Time,
        queue: u8,
        scratch: &mut Scratch<T>,
        around: &mut impl Around<T>,
    ) {
        let _ = self.nic_event(now, NicEvent::Poll { queue }, &[], scratch, around);
        self.settle(now, scratch, around);
    }

    /// Something happens to the NIC; whatever its host may see of that, it has not seen yet. A
    /// packet brings its payload.
    pub fn nic_event(
        &mut self,
        now: Time,
        event: OfNic<T>,
        payload: &[u8],
        scratch: &mut Scratch<T>,
        around: &mut impl Around<T>,
    ) -> Verdict {
        let Scratch { nic: fx, answers, .. } = scratch;
        let mut device = Device { me: self.address, nic: &mut self.nic, memory: &mut self.memory };
        device.step(now, event, payload, fx, answers, around)
    }

    /// Answers first, then what the application asks, until nothing is left of either.
    fn settle(&mut self, now: Time, scratch: &mut Scratch<T>, around: &mut impl Around<T>) {
        loop {
            let event = if let Some(answer) = scratch.answers.pop_front() {
                Event::Completion(answer)
            } else if let Some(command) = scratch.commands.pop_front() {
                match command {
                    Command::Send { .. } => around.watch().messages += 1,
                    Command::Put { .. } | Command::Get { .. } | Command::Atomic { .. } => {
                        around.watch().asked += 1;
                    }
                    Command::Connect { .. }
                    | Command::Close { .. }
                    | Command::Register { .. }
                    | Command::Deregister { .. } => {}
                }
                Event::Command(command)
            } else {
                return;
            };
            self.step(now, event, scratch, around);
        }
    }

    /// One step of the transport, and its application's reaction.
    fn step(
        &mut self,
        now: Time,
        event: Event<Completion<T>>,
        scratch: &mut Scratch<T>,
        around: &mut impl Around<T>,
    ) {
        let me = self.index();
        around.watch().step(now, me, &event);
        let address = self.address;
        let mut port = HostPort {
            me,
            device: Device { me: address, nic: &mut self.nic, memory: &mut self.memory },
            answers: &mut scratch.answers,
            late: &mut self.late,
            nic_fx: &mut scratch.nic,
            notices: &mut scratch.notices,
            around,
        };
        let verdict = deliver(&mut self.transport, now, event, &mut scratch.fx, &mut port);
        let watch = around.watch();
        match verdict {
            Verdict::Taken | Verdict::Stale => {}
            Verdict::Broken(Guilt::Owner(rule)) => watch.find(now, me, Kind::Safety, rule),
            Verdict::Broken(Guilt::Peer(rule) | Guilt::Device(rule)) => watch.odd(now, me, rule),
        }
        if watch.is_due()
            && let Err(violation) = self.transport.check_touched()
        {
            watch.find(now, me, Kind::Safety, violation.0);
        }
        if watch.is_whole_due() {
            self.check(now, watch);
        }
        for at in 0..scratch.notices.len() {
            let notice = scratch.notices[at];
            around.watch().notice(now, me, &notice, &self.memory);
            self.ask_app(now, scratch, around, |app, handle| app.notice(handle, notice));
        }
        scratch.notices.clear();
    }

    /// Checks the whole proc.
    pub fn check(&self, now: Time, watch: &mut Watch<T>) {
        for checked in [self.transport.check(), self.nic.check()] {
            if let Err(violation) = checked {
                watch.find(now, self.index(), Kind::Safety, violation.0);
            }
        }
    }

    #[inline]
    fn ask_app(
        &mut self,
        now: Time,
        scratch: &mut Scratch<T>,
        around: &mut impl Around<T>,
        ask: impl FnOnce(&mut A, &mut Handle<'_>),
    ) {
        let me = self.index();
        let procs = around.procs();
        let ledger = &mut around.watch().ledgers[me as usize];
        let (name, wake, commands) = (self.name, &mut self.wake, &mut scratch.commands);
        let (memory, wrong) = (&mut self.memory, None);
        let mut handle = Handle { now, me: name, procs, wake, commands, ledger, memory, wrong };
        ask(&mut self.app, &mut handle);
        if let Some(rule) = handle.wrong {
            around.watch().find(now, me, Kind::Safety, rule);
        }
    }
}

/// A NIC and the memory that it moves bytes of.
struct Device<'a, T: Simulated> {
    me: Address,
    nic: &'a mut T::Nic,
    memory: &'a mut Memory,
}

impl<T: Simulated> Device<'_, T> {
    /// Steps the NIC and hands its effects over: completions to the host, packets to the fabric,
    /// bytes to the memory.
    #[inline]
    fn step(
        &mut self,
        now: Time,
        event: OfNic<T>,
        payload: &[u8],
        fx: &mut Effects<ByNic<T>>,
        answers: &mut VecDeque<Completion<T>>,
        around: &mut impl Around<T>,
    ) -> Verdict {
        let verdict = self.nic.step(now, event, fx);
        if let Some(found) = self.hand_over(now, payload, fx, answers, around) {
            self.modified(now, found, fx, answers, around);
        }
        verdict
    }

    /// What a word held, if the NIC wanted one changed.
    #[inline]
    fn hand_over(
        &mut self,
        now: Time,
        payload: &[u8],
        fx: &mut Effects<ByNic<T>>,
        answers: &mut VecDeque<Completion<T>>,
        around: &mut impl Around<T>,
    ) -> Option<u64> {
        let mut modified = None;
        for effect in fx.drain() {
            match effect {
                NicEffect::Completion(completion) => answers.push_back(completion),
                NicEffect::Packet { to, packet } => {
                    let payload = self.payload(&packet);
                    around.carry(now, self.me, to, packet, payload);
                }
                NicEffect::Store { at, len } => {
                    let len = payload.len().min(len as usize);
                    self.memory.write(at, &payload[..len]);
                }
                NicEffect::Modify { at, amo, operand, second } => {
                    modified = Some(self.memory.modify(at, amo, operand, second));
                }
            }
        }
        modified
    }

    /// The bytes that go with a packet.
    #[inline]
    fn payload(&self, packet: &Packet<T>) -> Payload {
        match T::Nic::payload(packet) {
            Some((at, len)) => self.memory.read(at, len),
            None => Payload::default(),
        }
    }

    /// Tells the NIC what a word held; out of line, since most steps change none.
    #[inline(never)]
    fn modified(
        &mut self,
        now: Time,
        found: u64,
        fx: &mut Effects<ByNic<T>>,
        answers: &mut VecDeque<Completion<T>>,
        around: &mut impl Around<T>,
    ) {
        let _ = self.nic.step(now, NicEvent::Modified { found }, fx);
        let again = self.hand_over(now, &[], fx, answers, around);
        debug_assert!(again.is_none(), "an answer asks for nothing");
    }
}

/// Where the effects of a transport go: to its NIC, and to its application a moment later.
struct HostPort<'a, T: Simulated, R> {
    me: u32,
    device: Device<'a, T>,
    answers: &'a mut VecDeque<Completion<T>>,
    late: &'a mut Vec<(Time, Completion<T>)>,
    nic_fx: &'a mut Effects<ByNic<T>>,
    notices: &'a mut Vec<Notice>,
    around: &'a mut R,
}

impl<T: Simulated, R: Around<T>> HostPort<'_, T, R> {
    #[inline]
    fn nic(&mut self, now: Time, event: OfNic<T>) -> Verdict {
        self.device.step(now, event, &[], self.nic_fx, self.answers, self.around)
    }

    /// Does what is for the driver; out of line, since few ops are.
    #[inline(never)]
    fn run(&mut self, now: Time, op: &Op<T>, errand: Errand) {
        match errand {
            Errand::Resolve(peer) => {
                let Answer { at, card } = self.around.card(now, peer);
                match T::Nic::found(op, card) {
                    Some(found) if at <= now => self.answers.push_back(found),
                    Some(found) => self.late.push((at, found)),
                    None => {}
                }
            }
            Errand::Stage { data, into, len } => {
                let message: Vec<u8> = contents(self.me, data, len).collect();
                self.device.memory.write(into, &message);
            }
            Errand::Write { at, tail } => self.device.memory.write(at, tail.bytes()),
        }
    }
}

impl<T: Simulated, R: Around<T>> Port<Op<T>> for HostPort<'_, T, R> {
    #[inline]
    fn op(&mut self, now: Time, op: Op<T>) {
        let me = self.me;
        if self.around.watch().is_curious() {
            self.around.watch().note(now, me, What::Op(op.clone()));
        }
        if let Some(errand) = T::Nic::errand(&op) {
            return self.run(now, &op, errand);
        }
        if let Some(fault) = self.around.strike(now, me, &op) {
            let _ = self.nic(now, NicEvent::Fault(fault));
        }
        let verdict = self.nic(now, NicEvent::Op(op));
        if let Verdict::Broken(Guilt::Owner(rule) | Guilt::Device(rule)) = verdict {
            self.around.watch().find(now, me, Kind::Safety, rule);
        }
    }

    #[inline]
    fn notice(&mut self, _: Time, notice: Notice) {
        self.notices.push(notice);
    }

    fn flush(&mut self) {}
}

/// What an application holds while it is asked.
struct Handle<'a> {
    now: Time,
    me: ProcName,
    procs: u32,
    wake: &'a mut Time,
    commands: &'a mut VecDeque<Command>,
    ledger: &'a mut Ledger,
    memory: &'a mut Memory,
    wrong: Option<&'static str>,
}

impl Fabric for Handle<'_> {
    fn now(&self) -> Time {
        self.now
    }
    fn me(&self) -> ProcName {
        self.me
    }
    fn procs(&self) -> u32 {
        self.procs
    }
    fn send(&mut self, to: ProcName, tag: Tag, len: u32, mut hold: Hold) -> FragId {
        let frag = self.ledger.ask(to, tag, len, self.now);
        if let Hold::Registered { at, tail } = &mut hold {
            // What a message says is settled by its name, which is known only now.
            let message: Vec<u8> = contents(self.me.rank, frag, len).collect();
            self.memory.write(*at, &message);
            *tail = Tail::of(&message);
        }
        self.commands.push_back(Command::Send { to, tag, frag, len, hold });
        frag
    }
    fn connect(&mut self, to: ProcName) {
        self.commands.push_back(Command::Connect { to });
    }
    fn close(&mut self, to: ProcName) {
        self.commands.push_back(Command::Close { to });
    }
    fn register(&mut self, region: RegionId, len: u32) {
        self.memory.provide(region, len);
        self.commands.push_back(Command::Register { region, len });
    }
    fn deregister(&mut self, region: RegionId) {
        self.commands.push_back(Command::Deregister { region });
    }
    fn put(&mut self, to: ProcName, local: Place, remote: Place, len: u32) -> FragId {
        let frag = self.ledger.operate(to, self.now);
        self.commands.push_back(Command::Put { to, frag, local, remote, len });
        frag
    }
    fn get(&mut self, to: ProcName, local: Place, remote: Place, len: u32) -> FragId {
        let frag = self.ledger.operate(to, self.now);
        self.commands.push_back(Command::Get { to, frag, local, remote, len });
        frag
    }
    fn atomic(
        &mut self,
        to: ProcName,
        amo: Amo,
        remote: Place,
        operand: u64,
        second: u64,
    ) -> FragId {
        let frag = self.ledger.operate(to, self.now);
        self.commands.push_back(Command::Atomic { to, frag, amo, remote, operand, second });
        frag
    }
    fn write(&mut self, at: Place, bytes: &[u8]) {
        self.memory.write(at, bytes);
    }
    fn read(&mut self, at: Place, into: &mut [u8]) {
        self.memory.read_into(at, into);
    }
    fn wrong(&mut self, rule: &'static str) {
        self.wrong = self.wrong.or(Some(rule));
    }
    fn wake_after(&mut self, span: Span) {
        *self.wake = self.now + span;
    }
}

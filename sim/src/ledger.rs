//! The ledger: every message that was asked for, what was answered, and whether it came.
//!
//! It looks on. What it holds against a transport: a command answered twice or never, a message
//! delivered twice, out of order, to somebody else, or after it was called failed; and one that
//! was called sent and never came, unless its receiver died.

use std::collections::VecDeque;

use selvedge_core::proc::ProcTable;
use selvedge_core::{FragId, ProcName, Span, Tag, Time};

/// The messages of one sender.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// From `first` on; older ones are closed.
    open: VecDeque<Entry>,
    first: u32,
    /// Streams by peer and tag.
    streams: ProcTable,
    flows: Vec<Flow>,
}

/// How many messages are kept after one of unknown fate, in case it comes after all.
const CROWD: usize = 16_384;

#[derive(Clone, Copy, Debug)]
struct Entry {
    stream: u32,
    seq: u32,
    to: u32,
    len: u32,
    tag: Tag,
    asked: Time,
    answer: Option<Answer>,
    /// It was delivered; an operation on remote memory has nothing to deliver.
    came: bool,
    operation: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    sent: u32,
    /// One more than the number of the last that came.
    came: u32,
}

/// How a command was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Delivered once.
    Sent,
    /// Never delivered.
    Failed,
    /// Delivered at most once.
    Unknown,
}

impl Entry {
    fn is_closed(&self) -> bool {
        match self.answer {
            None => false,
            Some(Answer::Sent | Answer::Unknown) => self.came,
            Some(Answer::Failed) => true,
        }
    }
}

impl Ledger {
    /// A message is asked for: its name.
    pub fn ask(&mut self, to: ProcName, tag: Tag, len: u32, now: Time) -> FragId {
        let key = ProcName { job: u32::from(tag.0), rank: to.rank };
        let stream = self.streams.add(key);
        if self.flows.len() <= stream as usize {
            self.flows.push(Flow::default());
        }
        let flow = &mut self.flows[stream as usize];
        let seq = flow.sent;
        flow.sent += 1;
        let name = self.first.wrapping_add(self.open.len() as u32);
        let (to, asked) = (to.rank, now);
        let (answer, came, operation) = (None, false, false);
        let entry = Entry { stream, seq, to, len, tag, asked, answer, came, operation };
        self.open.push_back(entry);
        FragId(name)
    }

    /// An operation on remote memory is asked for: its name.
    pub fn operate(&mut self, to: ProcName, now: Time) -> FragId {
        let name = self.first.wrapping_add(self.open.len() as u32);
        let (to, asked) = (to.rank, now);
        let (stream, seq, len, tag) = (u32::MAX, 0, 0, Tag(0));
        let (answer, came, operation) = (None, true, true);
        let entry = Entry { stream, seq, to, len, tag, asked, answer, came, operation };
        self.open.push_back(entry);
        FragId(name)
    }

    /// A message came: how long it took.
    ///
    /// # Errors
    /// The rule that this breaks.
    pub fn came(
        &mut self,
        data: FragId,
        at: u32,
        tag: Tag,
        len: u32,
        now: Time,
    ) -> Result<Span, &'static str> {
        // What is closed may be gone, unless it can still come; the last is a second delivery.
        let Some(entry) = self.open.get_mut(data.0.wrapping_sub(self.first) as usize) else {
            return Err("a message is delivered once");
        };
        if entry.to != at || entry.len != len {
            return Err("a message is delivered whole, and to whom it was sent");
        }
        if entry.tag != tag {
            return Err("a message keeps its tag");
        }
        if entry.came {
            return Err("a message is delivered once");
        }
        if entry.answer == Some(Answer::Failed) {
            return Err("what is called failed is never delivered");
        }
        entry.came = true;
        let flow = &mut self.flows[entry.stream as usize];
        let (seq, took) = (entry.seq, now.since(entry.asked));
        if seq < flow.came {
            return Err("messages of one tag are delivered in the order of their commands");
        }
        flow.came = seq + 1;
        self.close();
        Ok(took)
    }

    /// A message is answered.
    ///
    /// # Errors
    /// The rule that this breaks.
    pub fn answer(&mut self, frag: FragId, answer: Answer) -> Result<(), &'static str> {
        let entry = self.open.get_mut(frag.0.wrapping_sub(self.first) as usize);
        let Some(entry) = entry.filter(|entry| entry.answer.is_none()) else {
            return Err("every command is answered once");
        };
        entry.answer = Some(answer);
        if answer == Answer::Failed && entry.came && !entry.operation {
            return Err("what is called failed is never delivered");
        }
        self.close();
        Ok(())
    }

    /// Whoever asked has died, and hears no answer any more. What is on its way may still come,
    /// once, and what was called sent need not: nobody owes anything to the dead. A next life
    /// goes on with other names.
    pub fn abandon(&mut self) {
        let open = self.open.iter_mut().filter(|entry| entry.answer != Some(Answer::Failed));
        open.for_each(|entry| entry.answer = Some(Answer::Unknown));
        self.close();
    }

    /// Commands that are not answered.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.open.iter().filter(|entry| entry.answer.is_none()).count()
    }

    /// At rest: what was called sent has come, unless `died` says that its receiver has died
    /// since it was asked for.
    ///
    /// # Errors
    /// The rule that does not hold.
    pub fn check(&self, died: impl Fn(u32, Time) -> bool) -> Result<(), &'static str> {
        let lost = self.open.iter().any(|entry| {
            entry.answer == Some(Answer::Sent) && !entry.came && !died(entry.to, entry.asked)
        });
        if lost { Err("what is called sent is delivered") } else { Ok(()) }
    }

    /// A canonical form for the search.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for entry in &self.open {
            let answer = entry.answer.map_or(0, |answer| 1 + answer as u8);
            out.extend([entry.to as u8, entry.seq as u8, answer << 1 | u8::from(entry.came)]);
        }
        out.extend(self.flows.iter().flat_map(|flow| [flow.sent as u8, flow.came as u8]));
    }

    /// Forgets what is closed, and what has been of unknown fate for very long.
    fn close(&mut self) {
        let crowded = self.open.len() > CROWD;
        let old = |entry: &Entry| crowded && entry.answer == Some(Answer::Unknown);
        while self.open.front().is_some_and(|entry| entry.is_closed() || old(entry)) {
            self.open.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: ProcName = ProcName { job: 0, rank: 7 };

    fn three() -> (Ledger, [FragId; 3]) {
        let mut ledger = Ledger::default();
        let names = core::array::from_fn(|n| ledger.ask(TO, Tag(1), n as u32, Time(n as u64)));
        (ledger, names)
    }

    #[test]
    fn a_good_history_leaves_nothing() {
        let (mut ledger, names) = three();
        for (n, name) in names.into_iter().enumerate() {
            let n = n as u64;
            assert_eq!(ledger.came(name, 7, Tag(1), n as u32, Time(10 + n)), Ok(Span(10)));
            assert_eq!(ledger.answer(name, Answer::Sent), Ok(()));
        }
        assert_eq!((ledger.unanswered(), ledger.open.len()), (0, 0));
    }

    #[test]
    fn each_way_to_be_wrong_has_its_rule() {
        let came = |ledger: &mut Ledger, name: FragId| {
            ledger.came(name, 7, Tag(1), name.0, Time(9)).map(|_| ())
        };
        let (mut ledger, [a, b, _]) = three();
        assert_eq!(came(&mut ledger, b), Ok(()));
        let order = "messages of one tag are delivered in the order of their commands";
        assert_eq!(came(&mut ledger, a), Err(order));
        assert_eq!(came(&mut ledger, b), Err("a message is delivered once"));

        let (mut ledger, [a, b, c]) = three();
        assert_eq!(ledger.answer(a, Answer::Failed), Ok(()));
        assert_eq!(ledger.answer(a, Answer::Sent), Err("every command is answered once"));
        assert_eq!(came(&mut ledger, b), Ok(()));
        let failed = "what is called failed is never delivered";
        assert_eq!(ledger.answer(b, Answer::Failed), Err(failed));
        assert_eq!(ledger.answer(c, Answer::Sent), Ok(()));
        assert_eq!(ledger.check(|_, _| false), Err("what is called sent is delivered"));
        assert_eq!(ledger.check(|proc, _| proc == 7), Ok(()), "its receiver is dead");
        assert_eq!(ledger.unanswered(), 0);
        let tag = "a message keeps its tag";
        assert_eq!(ledger.came(c, 7, Tag(2), 2, Time(9)), Err(tag));
        let whom = "a message is delivered whole, and to whom it was sent";
        assert_eq!(ledger.came(c, 6, Tag(1), 2, Time(9)), Err(whom));
    }

    #[test]
    fn what_the_dead_have_sent_comes_at_most_once() {
        let (mut ledger, [first, second, third]) = three();
        assert_eq!(ledger.came(first, 7, Tag(1), 0, Time(10)), Ok(Span(10)));
        ledger.abandon();
        let next = ledger.ask(TO, Tag(1), 9, Time(20));
        assert!(![first, second, third].contains(&next), "a life takes no name of the one before");
        assert_eq!(ledger.came(second, 7, Tag(1), 1, Time(21)), Ok(Span(20)));
        assert!(ledger.came(second, 7, Tag(1), 1, Time(22)).is_err());
        assert_eq!(ledger.answer(next, Answer::Failed), Ok(()));
        assert_eq!((ledger.unanswered(), ledger.check(|_, _| false)), (0, Ok(())));
    }

    #[test]
    fn what_came_before_its_answer_stays_open() {
        let (mut ledger, [a, b, c]) = three();
        for name in [a, b, c] {
            assert!(ledger.came(name, 7, Tag(1), name.0, Time(9)).is_ok());
        }
        assert_eq!(ledger.unanswered(), 3);
        for name in [c, a, b] {
            assert_eq!(ledger.answer(name, Answer::Unknown), Ok(()));
        }
        assert_eq!((ledger.unanswered(), ledger.open.len()), (0, 0));
    }
}

//! Random draws that depend on nothing but their names.
//!
//! A draw is a pure function of the seed, what it is for, whose it is, and how many of its kind
//! came before. So one more fault, or one more proc, shifts no other draw; and a world may be
//! cloned, rewound or explored without carrying a generator along, only counters.
//!
//! The function is ChaCha with eight rounds: the key holds seed, purpose and owner, the counter
//! chooses the place in the key stream. Streams of different keys are independent.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use selvedge_core::time::Span;

/// What a draw is for. The numbers are part of every recorded digest: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Variation of a latency or of a device's service time.
    Jitter = 1,
    /// Order among events of one instant.
    Tie = 2,
    /// Whether a message is lost.
    Loss = 3,
    /// Whether a message arrives twice.
    Duplicate = 4,
    /// Whether, and how far, a message is overtaken.
    Reorder = 5,
    /// Whether a message is damaged, and where.
    Corrupt = 6,
    /// Whether a device reports a failure.
    NicFault = 7,
    /// Which proc runs on which node.
    Placement = 8,
    /// Sizes and moments of what an application sends.
    Workload = 9,
    /// Whom an application talks to.
    Partner = 10,
    /// When a proc dies.
    Crash = 11,
    /// Priorities of probabilistic concurrency testing.
    Pct = 12,
    /// Which features and faults a seed of a swarm switches on.
    Swarm = 13,
    /// Which way a packet takes.
    Route = 14,
}

/// The source of all draws of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    /// The seed of the world.
    pub seed: u64,
}

/// Draws of a [`Row`].
const ROW: usize = 32;

/// Draws of one owner that lie side by side; the key stream gives them at the price of one.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The number of the first, once there is one.
    first: Option<u64>,
    values: [u64; ROW],
}

impl Draws {
    /// The draws of the world with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Draws { seed }
    }

    /// Draw number `counter` of `owner` for `purpose`: 64 even bits.
    #[must_use]
    pub fn draw(&self, purpose: Purpose, owner: u32, counter: u64) -> u64 {
        let mut stream = self.stream(purpose, owner);
        // Places in the key stream are counted in words of 32 bits.
        stream.set_word_pos(u128::from(counter) * 2);
        stream.next_u64()
    }

    /// Draw number `counter`, as [`draw`](Draws::draw) gives it, for somebody who takes one after
    /// another: `row` keeps those around it.
    pub fn next(&self, row: &mut Row, purpose: Purpose, owner: u32, counter: u64) -> u64 {
        let first = counter - counter % ROW as u64;
        if row.first != Some(first) {
            let mut stream = self.stream(purpose, owner);
            stream.set_word_pos(u128::from(first) * 2);
            row.values.fill_with(|| stream.next_u64());
            row.first = Some(first);
        }
        row.values[(counter - first) as usize]
    }

    /// A number less than `n` (zero if `n` is): the high half of draw times `n`.
    ///
    /// No number is likelier than another by more than `n` in 2^64, which a run would need 2^64
    /// draws to notice; so nothing is drawn twice, and one counter is one draw.
    #[must_use]
    pub fn below(&self, purpose: Purpose, owner: u32, counter: u64, n: u64) -> u64 {
        scale(self.draw(purpose, owner, counter), n)
    }

    /// Whether a draw falls into the first `parts_per_billion` of a billion: never at 0, always
    /// from 1,000,000,000 on. The two ends cost no draw, and since draws are named, that shifts
    /// nothing.
    #[inline]
    pub fn is_in(parts_per_billion: u32, draw: impl FnOnce() -> u64) -> bool {
        match parts_per_billion {
            0 => false,
            1_000_000_000.. => true,
            parts => scale(draw(), 1_000_000_000) < u64::from(parts),
        }
    }

    /// Puts `items` in an order that is drawn, every order being equally likely. Uses the draws
    /// 0 to `items.len()` of the owner: whoever shuffles twice shuffles as two owners.
    pub fn shuffle<T>(&self, purpose: Purpose, owner: u32, items: &mut [T]) {
        let mut stream = self.stream(purpose, owner);
        for last in (1..items.len()).rev() {
            items.swap(last, scale(stream.next_u64(), last as u64 + 1) as usize);
        }
    }

    fn stream(&self, purpose: Purpose, owner: u32) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..12].copy_from_slice(&(purpose as u32).to_le_bytes());
        key[12..16].copy_from_slice(&owner.to_le_bytes());
        ChaCha8Rng::from_seed(key)
    }
}

/// `draw`, which is even over 2^64, brought down to less than `n`.
const fn scale(draw: u64, n: u64) -> u64 {
    ((draw as u128 * n as u128) >> 64) as u64
}

/// `span` times `by` / `parts`, at most for ever.
fn times(span: Span, by: u32, parts: u32) -> u64 {
    u64::try_from(u128::from(span.0) * u128::from(by) / u128::from(parts)).unwrap_or(u64::MAX)
}

/// A distribution of spans, made of steps that are each even in themselves.
///
/// Integers throughout, so a sample is the same on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    steps: Vec<Step>,
}

/// The draws from the step before up to `last` give a span from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    last: u64,
    low: u64,
    high: u64,
}

/// Chances in a million of the quarters of a deviation that follow one side of the mean of a
/// normal distribution, out to four deviations: differences of the error function.
const NORMAL: [u32; 16] = [
    98_706, 92_756, 81_910, 67_972, 53_005, 38_843, 26_748, 17_309, 10_526, 6_015, 3_230, 1_630,
    773, 344, 144, 57,
];

/// A Pareto distribution of shape 3 by its edges in hundredths of the least value and the
/// chances in a million from each to the next (differences of 1 - x^-3), cut off at ten times
/// the least value.
const PARETO: [(u32, u32); 13] = [
    (100, 136_162),
    (105, 112_523),
    (110, 172_611),
    (120, 172_262),
    (135, 110_146),
    (150, 109_707),
    (175, 61_589),
    (200, 61_000),
    (250, 26_963),
    (300, 21_412),
    (400, 10_995),
    (600, 3_630),
    (1_000, 0),
];

impl Table {
    /// Always `span`.
    #[must_use]
    pub fn fixed(span: Span) -> Self {
        Table::uniform(span, span)
    }

    /// Every picosecond from the one bound to the other, both included, alike.
    #[must_use]
    pub fn uniform(low: Span, high: Span) -> Self {
        let (low, high) = (low.min(high).0, low.max(high).0);
        Table { steps: vec![Step { last: u64::MAX, low, high }] }
    }

    /// Each span as often as its weight says; `None` if all weights are zero.
    #[must_use]
    pub fn weighted(values: &[(Span, u32)]) -> Option<Self> {
        Table::from_steps(values.iter().map(|&(span, weight)| (span.0, span.0, weight)))
    }

    /// Nearly normal around `mean`, cut off at four deviations and at zero; in steps of a
    /// quarter of `deviation`.
    #[must_use]
    pub fn normal_like(mean: Span, deviation: Span) -> Self {
        let edge = |quarters: u32| times(deviation, quarters, 4);
        let steps = NORMAL.iter().zip(0..).flat_map(|(&weight, at)| {
            let (near, far) = (edge(at), edge(at + 1));
            let below = (mean.0.saturating_sub(far), mean.0.saturating_sub(near));
            let above = (mean.0.saturating_add(near), mean.0.saturating_add(far));
            [(below.0, below.1, weight), (above.0, above.1, weight)]
        });
        Table::from_steps(steps).unwrap_or_else(|| Table::fixed(mean))
    }

    /// Never less than `least`, seldom much more: a Pareto distribution of shape 3, whose mean
    /// is one and a half times `least`, cut off at ten times `least`.
    #[must_use]
    pub fn pareto_like(least: Span) -> Self {
        let edge = |hundredths: u32| times(least, hundredths, 100);
        let steps = PARETO.windows(2).map(|pair| (edge(pair[0].0), edge(pair[1].0), pair[0].1));
        Table::from_steps(steps).unwrap_or_else(|| Table::fixed(least))
    }

    /// From (low, high, weight).
    fn from_steps(parts: impl Iterator<Item = (u64, u64, u32)> + Clone) -> Option<Self> {
        let total: u64 = parts.clone().map(|(_, _, weight)| u64::from(weight)).sum();
        let mut sum = 0;
        let mut steps = Vec::new();
        for (low, high, weight) in parts.filter(|&(_, _, weight)| weight > 0) {
            sum += u64::from(weight);
            // Not zero, for `sum` is not; the last is 2^64 - 1, for then `sum` is `total`.
            let end = (u128::from(sum) << 64) / u128::from(total);
            steps.push(Step { last: (end - 1) as u64, low, high });
        }
        (total > 0).then_some(Table { steps })
    }

    /// The span that belongs to a draw of 64 even bits.
    #[must_use]
    pub fn sample(&self, draw: u64) -> Span {
        let at = self.steps.partition_point(|step| step.last < draw);
        let Step { last, low, high } = self.steps[at];
        if low == high {
            return Span(low);
        }
        let first = if at == 0 { 0 } else { self.steps[at - 1].last + 1 };
        let spread = u128::from(draw - first) * (u128::from(high - low) + 1);
        let offset = match u128::from(last - first) + 1 {
            // The whole range, as of a uniform table.
            0x1_0000_0000_0000_0000 => spread >> 64,
            width => spread / width,
        };
        Span(low + offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: Draws = Draws::new(42);

    /// Draws spread evenly over 64 bits.
    fn even(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |n| n * (u64::MAX / count) + u64::MAX / count / 2)
    }

    fn mean(table: &Table) -> u64 {
        (even(10_000).map(|draw| u128::from(table.sample(draw).0)).sum::<u128>() / 10_000) as u64
    }

    #[test]
    fn golden_draws_never_change() {
        let golden = [
            (0, Purpose::Jitter, 0, 0, 0x3feb_e7d0_52d7_6565),
            (42, Purpose::Loss, 7, 0, 0x5088_4695_8389_20fb),
            (42, Purpose::Loss, 7, 1, 0xa6c9_692d_f34d_6e3e),
            (42, Purpose::Swarm, u32::MAX, 1 << 40, 0x3095_01d1_2bdd_a5d6),
        ];
        for (seed, purpose, owner, counter, value) in golden {
            assert_eq!(Draws::new(seed).draw(purpose, owner, counter), value, "{purpose:?}");
        }
    }

    #[test]
    fn the_key_is_the_published_cipher() {
        // First bytes of the ChaCha8 key stream for an all-zero key and nonce, as published
        // with the test vectors of the cipher: 3e 00 ef 2f 89 5f 40 d6.
        let mut stream = ChaCha8Rng::from_seed([0; 32]);
        assert_eq!(stream.next_u64().to_le_bytes(), [0x3e, 0, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6]);
    }

    #[test]
    fn every_part_of_the_name_matters() {
        let base = DRAWS.draw(Purpose::Loss, 1, 1);
        assert_eq!(DRAWS.draw(Purpose::Loss, 1, 1), base);
        for other in [
            Draws::new(43).draw(Purpose::Loss, 1, 1),
            DRAWS.draw(Purpose::Corrupt, 1, 1),
            DRAWS.draw(Purpose::Loss, 2, 1),
            DRAWS.draw(Purpose::Loss, 1, 2),
        ] {
            assert_ne!(other, base);
        }
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut seen = [0u32; 5];
        for counter in 0..10_000 {
            seen[DRAWS.below(Purpose::Partner, 3, counter, 5) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (1_850..2_150).contains(&n)), "{seen:?}");
        assert_eq!(DRAWS.below(Purpose::Partner, 3, 0, 0), 0);
        assert_eq!(DRAWS.below(Purpose::Partner, 3, 0, 1), 0);
    }

    #[test]
    fn chance_keeps_its_rate() {
        let strikes = |n, rate| Draws::is_in(rate, || DRAWS.draw(Purpose::Loss, 0, n));
        let hits = |rate| (0..20_000).filter(|&n| strikes(n, rate)).count();
        assert_eq!((hits(0), hits(1_000_000_000), hits(u32::MAX)), (0, 20_000, 20_000));
        assert!((1_850..2_150).contains(&hits(100_000_000)), "{}", hits(100_000_000));
        assert!((8..40).contains(&hits(1_000_000)), "{}", hits(1_000_000));
    }

    #[test]
    fn shuffle_is_a_permutation_that_follows_its_draws() {
        let shuffled = |owner| {
            let mut items: Vec<u64> = (0..100).collect();
            DRAWS.shuffle(Purpose::Placement, owner, &mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_eq!(shuffled(1)[99], DRAWS.below(Purpose::Placement, 1, 0, 100));
        DRAWS.shuffle::<u8>(Purpose::Placement, 1, &mut []);
    }

    #[test]
    fn fixed_and_uniform_tables_hold_their_bounds() {
        let (low, high) = (Span(100), Span(103));
        let table = Table::uniform(high, low);
        assert_eq!((table.sample(0), table.sample(u64::MAX)), (low, high));
        for (quarter, span) in [(0u64, 100), (1, 101), (2, 102), (3, 103)] {
            assert_eq!(table.sample(quarter << 62), Span(span));
            assert_eq!(table.sample((quarter << 62) | (u64::MAX >> 2)), Span(span));
        }
        assert_eq!(Table::fixed(high).sample(1 << 63), high);
        assert_eq!(Table::uniform(Span::ZERO, Span::FOREVER).sample(u64::MAX), Span::FOREVER);
        assert_eq!(Table::uniform(Span::ZERO, Span::FOREVER).sample(77), Span(77));
    }

    #[test]
    fn weights_are_shares() {
        let table = Table::weighted(&[(Span(5), 1), (Span(9), 0), (Span(1), 3)]);
        let count = |span| {
            even(1_000)
                .filter(|&draw| table.as_ref().is_some_and(|t| t.sample(draw) == span))
                .count()
        };
        assert_eq!((count(Span(5)), count(Span(9)), count(Span(1))), (250, 0, 750));
        assert_eq!(Table::weighted(&[(Span(5), 0)]), None);
        assert_eq!(Table::weighted(&[]), None);
    }

    #[test]
    fn normal_like_has_its_mean_and_its_deviation() {
        let table = Table::normal_like(Span(1_000_000), Span(100_000));
        assert!(mean(&table).abs_diff(1_000_000) < 200, "{}", mean(&table));
        let within = |deviations: u64| {
            even(10_000)
                .filter(|&draw| table.sample(draw).0.abs_diff(1_000_000) <= deviations * 100_000)
                .count()
        };
        assert!(within(1).abs_diff(6_827) < 20 && within(2).abs_diff(9_545) < 20);
        assert_eq!(within(4), 10_000);
        assert_eq!(Table::normal_like(Span(10), Span(1_000)).sample(0).0, 0);
        assert_eq!(Table::normal_like(Span(10), Span::ZERO).sample(1 << 60), Span(10));
    }

    #[test]
    fn pareto_like_has_a_floor_a_mean_and_a_tail() {
        let table = Table::pareto_like(Span(1_000));
        assert_eq!((table.sample(0), table.sample(u64::MAX)), (Span(1_000), Span(10_000)));
        assert!(mean(&table).abs_diff(1_500) < 10, "{}", mean(&table));
        let above = even(10_000).filter(|&draw| table.sample(draw).0 > 3_000).count();
        assert!(above.abs_diff(370) < 15, "{above}");
        assert_eq!(Table::pareto_like(Span::FOREVER).sample(u64::MAX), Span::FOREVER);
    }
}

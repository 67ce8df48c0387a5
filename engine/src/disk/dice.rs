//! Seeded chance for simulated faults: the same seed gives the same faults. Not for secrets.

/// A small pseudo-random generator (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall the same way for the same seed.
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll().checked_rem(bound).unwrap_or(0)
    }

    /// True `n` times in a thousand.
    pub fn per_mille(&mut self, n: u32) -> bool {
        self.below(1000) < u64::from(n)
    }

    /// True or false.
    pub fn coin(&mut self) -> bool {
        self.roll() & 1 == 1
    }
}

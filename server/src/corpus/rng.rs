//! A small generator of random numbers and the distributions made from it.
//!
//! What holds: the same numbers on every machine. So nothing here calls the platform's mathematics library, whose last
//! digit varies; logarithm and exponential are built from additions and multiplications.

/// xoshiro256++, seeded through splitmix64.
#[derive(Debug, Clone)]
pub(super) struct Rng([u64; 4]);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        let mut x = seed;
        Rng(std::array::from_fn(|_| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A number below `n`; 0 when `n` is 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True with a probability of `parts` in 1,000.
    pub(super) fn per_mille(&mut self, parts: u64) -> bool {
        self.below(1000) < parts
    }

    /// One of `items`, all alike.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// A number in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// An exponentially distributed number.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -ln(self.unit()) * mean
    }

    /// A number whose logarithm is (nearly) normally distributed.
    pub(super) fn lognormal(&mut self, mu: f64, sigma: f64) -> f64 {
        // The sum of eight uniform 16-bit numbers is close to normal, with variance 8/12.
        let (a, b) = (self.bits(), self.bits());
        let sum: u64 = (0..4).map(|i| ((a >> (16 * i)) & 0xffff) + ((b >> (16 * i)) & 0xffff)).sum();
        let normal = (sum as f64 / 65536.0 - 4.0) * 1.224_744_871_391_589;
        exp(mu + sigma * normal)
    }
}

/// Numbers below `n`, i drawn with weight 1 / (i + 1)^s; by the alias method, so in constant time.
#[derive(Debug)]
pub(super) struct Zipf {
    /// Share of column i, of 2^32, that is i itself; the rest is `alias`.
    columns: Vec<(u32, u32)>,
}

impl Zipf {
    pub(super) fn new(n: usize, s: f64) -> Self {
        let weights: Vec<f64> = (0..n).map(|i| exp(-s * ln(i as f64 + 1.0))).collect();
        let total: f64 = weights.iter().sum();
        let mut share: Vec<f64> = weights.iter().map(|w| w * n as f64 / total).collect();
        let mut columns: Vec<(u32, u32)> = (0..n).map(|i| (u32::MAX, i as u32)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| share[i] < 1.0);
        while let (Some(&few), Some(&many)) = (small.last(), large.last()) {
            small.pop();
            columns[few] = ((share[few] * 4_294_967_295.0) as u32, many as u32);
            share[many] -= 1.0 - share[few];
            if share[many] < 1.0 {
                large.pop();
                small.push(many);
            }
        }
        Zipf { columns }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let bits = rng.bits();
        let column = ((bits >> 32) * self.columns.len() as u64) >> 32;
        let (own, alias) = self.columns[column as usize];
        if bits as u32 <= own { column as usize } else { alias as usize }
    }
}

/// Texts, drawn by rank.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) items: Vec<Vec<u8>>,
    ranks: Zipf,
}

impl Pool {
    pub(super) fn new(items: impl IntoIterator<Item = impl Into<Vec<u8>>>, s: f64) -> Self {
        let items: Vec<Vec<u8>> = items.into_iter().map(Into::into).collect();
        let ranks = Zipf::new(items.len(), s);
        Pool { items, ranks }
    }

    pub(super) fn draw_index(&self, rng: &mut Rng) -> usize {
        self.ranks.draw(rng)
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> &[u8] {
        &self.items[self.ranks.draw(rng)]
    }
}

/// The natural logarithm of a positive, normal number; good to about 14 digits.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let s2 = s * s;
    let mut series = 0.0;
    for k in (0..9u32).rev() {
        series = series * s2 + 1.0 / f64::from(2 * k + 1);
    }
    2.0 * s * series + exponent as f64 * std::f64::consts::LN_2
}

/// e to the power of `x`, for `x` of moderate size.
fn exp(x: f64) -> f64 {
    let power = (x * std::f64::consts::LOG2_E).round().clamp(-1000.0, 1000.0);
    let rest = x - power * std::f64::consts::LN_2;
    let mut series = 1.0;
    for k in (1..13u32).rev() {
        series = 1.0 + series * rest / f64::from(k);
    }
    series * f64::from_bits(((power as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_are_right() {
        for x in [1e-16, 0.001, 0.5, 1.0, 1.5, 2.0, 10.0, 60_000.0, 1e18] {
            assert!((ln(x) - x.ln()).abs() <= 1e-13 * x.ln().abs().max(1.0), "ln {x}");
        }
        for x in [-30.0, -1.0, -0.1, 0.0, 0.3, 1.0, 8.0, 20.0] {
            assert!((exp(x) / f64::exp(x) - 1.0).abs() < 1e-13, "exp {x}");
        }
    }

    #[test]
    fn distributions_have_their_means() {
        let mut rng = Rng::new(5);
        let mean = (0..100_000).map(|_| rng.exponential(900.0)).sum::<f64>() / 1e5;
        assert!((880.0..920.0).contains(&mean), "{mean}");
        let zipf = Zipf::new(100, 1.0);
        let mut counts = [0u32; 100];
        (0..100_000).for_each(|_| counts[zipf.draw(&mut rng)] += 1);
        // The weight of the first is 1 / H(100) = 0.1928, of the tenth a tenth of it.
        assert!((18_700..19_900).contains(&counts[0]), "{}", counts[0]);
        assert!((1_750..2_110).contains(&counts[9]), "{}", counts[9]);
        assert!((0..1000).all(|_| (3..=5).contains(&rng.between(3, 5))));
    }
}

//! Which bytes of a line are of which class, 64 of them a word: finding the next token or its end is then a few operations on bits.

use wide::u8x16;

/// The classes of 64 bytes; byte `i` is bit `i`.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Letters, digits, `.`, `-`, `_` and bytes from 128.
    words: u64,
    digits: u64,
    quotes: u64,
}

/// The classes of a line's bytes.
#[derive(Debug, Default)]
pub struct Classes {
    blocks: Vec<Block>,
}

#[inline]
fn block(bytes: &[u8; 64]) -> Block {
    let all = u8x16::splat;
    let between = |b: u8x16, from: u8, to: u8| b.max(all(from)).min(all(to)).simd_eq(b);
    let mut block = Block::default();
    for (i, chunk) in bytes.as_chunks::<16>().0.iter().enumerate() {
        let b = u8x16::new(*chunk);
        let digits = between(b, b'0', b'9');
        let letters = between(b | all(0x20), b'a', b'z');
        let marks = between(b, b'-', b'.') | b.simd_eq(all(b'_'));
        // A mask takes the high bits, which bytes from 128 have already.
        block.words |= u64::from((digits | letters | marks | b).to_bitmask()) << (16 * i);
        block.digits |= u64::from(digits.to_bitmask()) << (16 * i);
        block.quotes |= u64::from(b.simd_eq(all(b'"')).to_bitmask()) << (16 * i);
    }
    block
}

impl Classes {
    /// The classes of `line`, in place of the last line's.
    pub fn fill(&mut self, line: &[u8]) {
        self.blocks.clear();
        let (whole, rest) = line.as_chunks::<64>();
        self.blocks.extend(whole.iter().map(block));
        // The byte behind the line is of no class, so that every run ends.
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        self.blocks.push(block(&last));
    }

    /// The first digit or quote from `at` on.
    #[inline]
    pub fn next_digit_or_quote(&self, at: usize) -> Option<usize> {
        self.next(at, |b| b.digits | b.quotes)
    }

    /// The first quote from `at` on.
    #[inline]
    pub fn next_quote(&self, at: usize) -> Option<usize> {
        self.next(at, |b| b.quotes)
    }

    /// The end of the run of word bytes that `at` is in, or `at`.
    #[inline]
    pub fn word_end(&self, at: usize) -> usize {
        self.next(at, |b| !b.words).unwrap_or(at)
    }

    /// The start of the run of word bytes that ends before `at`, not before `least`.
    #[inline]
    pub fn word_start(&self, at: usize, least: usize) -> usize {
        let mut index = at / 64;
        let mut others = !self.blocks[index].words & ((1 << (at % 64)) - 1);
        loop {
            if others != 0 {
                return (index * 64 + 64 - others.leading_zeros() as usize).max(least);
            }
            if index * 64 <= least {
                return least;
            }
            index -= 1;
            others = !self.blocks[index].words;
        }
    }

    #[inline]
    fn next(&self, at: usize, of: impl Fn(&Block) -> u64) -> Option<usize> {
        let mut index = at / 64;
        let mut found = of(self.blocks.get(index)?) & (u64::MAX << (at % 64));
        while found == 0 {
            index += 1;
            found = of(self.blocks.get(index)?);
        }
        Some(index * 64 + found.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_word(b: u8) -> bool {
        b.is_ascii_alphanumeric() || b >= 128 || matches!(b, b'.' | b'-' | b'_')
    }

    #[test]
    fn every_byte_has_its_class() {
        let all: Vec<u8> = (0..=255).collect();
        let mut classes = Classes::default();
        classes.fill(&all);
        for (i, &b) in all.iter().enumerate() {
            let block = classes.blocks[i / 64];
            let has = |mask: u64| mask >> (i % 64) & 1 == 1;
            assert_eq!((has(block.words), has(block.digits), has(block.quotes)), (is_word(b), b.is_ascii_digit(), b == b'"'), "{b}");
        }
    }

    proptest! {
        #[test]
        fn runs_are_found(line in prop_oneof![any::<Vec<u8>>(), "[a-c0-9 \".]{0,300}".prop_map(String::into_bytes)], at in any::<prop::sample::Index>(), least in any::<prop::sample::Index>()) {
            let mut classes = Classes::default();
            classes.fill(&line);
            let at = at.index(line.len() + 1);
            let first = |is: &dyn Fn(u8) -> bool| line[at..].iter().position(|&b| is(b)).map(|i| at + i);
            prop_assert_eq!(classes.next_digit_or_quote(at), first(&|b| b == b'"' || b.is_ascii_digit()));
            prop_assert_eq!(classes.next_quote(at), first(&|b| b == b'"'));
            prop_assert_eq!(classes.word_end(at), first(&|b| !is_word(b)).unwrap_or(line.len()));
            let least = least.index(at + 1);
            let start = line[least..at].iter().rposition(|&b| !is_word(b)).map_or(least, |i| least + i + 1);
            prop_assert_eq!(classes.word_start(at, least), start);
        }
    }
}

//! Printing the numbers of a column: fixed amounts of bytes are written and the length is moved on, so that most numbers take
//! no loop and no call.

use super::out::{Out, STEP};
use super::typed::Type;
use crate::shape::time::{self, Layout};

/// Prints numbers of one type; remembers the last second.
#[derive(Debug)]
pub struct Printer {
    type_: Type,
    second: Second,
}

/// The text of a second, for the values inside it and the other seconds of its day.
#[derive(Debug)]
struct Second {
    /// The first value in the second, and how many there are; 0 before the first text.
    first: i64,
    values: u64,
    /// Its day, and the length of the date's text.
    day: Option<i64>,
    date_len: usize,
    text: [u8; STEP],
    /// Length without fraction digits.
    len: usize,
}

impl Printer {
    /// A printer of numbers of `type_`.
    pub fn new(type_: Type) -> Printer {
        Printer { type_, second: Second { first: 0, values: 0, day: None, date_len: 0, text: [0; STEP], len: 0 } }
    }

    /// Appends the text of `number`.
    #[inline]
    pub fn print(&mut self, number: i64, out: &mut Out) {
        let to = out.tail();
        let len = match self.type_ {
            Type::Time(layout) => self.second.print(number, layout, to),
            Type::ShortTime(layout) => {
                let len = self.second.print(number, layout, to);
                shortened(to, len, usize::from(layout.digits), false)
            }
            Type::ShortDecimal { scale, point } => {
                let len = decimal(number, usize::from(scale), to);
                shortened(to, len, usize::from(scale), point)
            }
            Type::Decimal(scale) => decimal(number, usize::from(scale), to),
            Type::Padded(width) => signed(number, usize::from(width), to),
            _ => signed(number, 1, to),
        };
        out.advance(len);
    }
}

impl Second {
    fn print(&mut self, value: i64, layout: Layout, to: &mut [u8; STEP]) -> usize {
        let mut offset = value.wrapping_sub(self.first) as u64;
        if offset >= self.values {
            let per_second = layout.per_second();
            offset = value.rem_euclid(per_second) as u64;
            (self.first, self.values) = (value.wrapping_sub(offset as i64), per_second as u64);
            self.begin(value.div_euclid(per_second), layout);
        }
        *to = self.text;
        if layout.digits == 0 { self.len } else { self.len + unsigned(offset, usize::from(layout.digits), &mut to[self.len..]) }
    }

    fn begin(&mut self, second: i64, layout: Layout) {
        let (day, clock) = (second.div_euclid(86_400), second.rem_euclid(86_400));
        if self.day != Some(day) {
            self.day = Some(day);
            self.date_len = time::put_day(day, layout, &mut self.text);
        }
        self.len = time::put_clock(clock as u32, layout, self.date_len, &mut self.text);
    }
}

/// The length of `text[..len]` without the zeros at the end of its fraction of `digits`; `point`: one is kept, else the point goes with the last.
fn shortened(text: &[u8], len: usize, digits: usize, point: bool) -> usize {
    let whole = len - digits - 1;
    let kept = text[whole + 1..len].iter().rposition(|&b| b != b'0').map_or(0, |at| at + 1);
    if kept > 0 || point { whole + 1 + kept.max(1) } else { whole }
}

/// The 8 decimal digits of `value`, below 10^8, the first of them in the lowest byte.
#[inline]
fn eight(value: u32) -> u64 {
    // Two fields of 4 digits, then four of 2, then eight of 1; each step divides all fields at once by a reciprocal.
    let fours = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

#[inline]
fn put_eight(to: &mut [u8], digits: u64) {
    to[..8].copy_from_slice(&digits.to_le_bytes());
}

/// Writes `value` with at least `width` digits, at most 20; returns how many.
#[inline]
fn unsigned(value: u64, width: usize, to: &mut [u8]) -> usize {
    if value < 100_000_000 && width <= 8 {
        let digits = eight(value as u32);
        let count = (8 - (digits.trailing_zeros() as usize / 8).min(7)).max(width);
        put_eight(to, (digits | ZEROS) >> (8 * (8 - count)));
        return count;
    }
    let head = unsigned(value / 100_000_000, width.clamp(9, 20) - 8, to);
    put_eight(&mut to[head..], eight((value % 100_000_000) as u32) | ZEROS);
    head + 8
}

#[inline]
fn signed(value: i64, width: usize, to: &mut [u8]) -> usize {
    if value >= 0 {
        return unsigned(value as u64, width, to);
    }
    to[0] = b'-';
    1 + unsigned(value.unsigned_abs(), width, &mut to[1..])
}

#[inline]
fn decimal(value: i64, scale: usize, to: &mut [u8; STEP]) -> usize {
    if (0..100_000_000).contains(&value) && (1..8).contains(&scale) {
        let digits = eight(value as u32);
        let count = (8 - (digits.trailing_zeros() as usize / 8).min(7)).max(scale + 1);
        let digits = digits | ZEROS;
        put_eight(to, digits >> (8 * (8 - count)));
        to[count - scale] = b'.';
        put_eight(&mut to[count - scale + 1..], digits >> (8 * (8 - scale)));
        return count + 1;
    }
    let unit = 10u64.pow(scale.min(18) as u32);
    let minus = usize::from(value < 0);
    to[0] = b'-';
    let whole = minus + unsigned(value.unsigned_abs() / unit, 1, &mut to[minus..]);
    to[whole] = b'.';
    whole + 1 + unsigned(value.unsigned_abs() % unit, scale.min(18), &mut to[whole + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(type_: Type, numbers: &[i64]) -> Vec<String> {
        let mut printer = Printer::new(type_);
        numbers
            .iter()
            .map(|&n| {
                let mut out = Out::default();
                printer.print(n, &mut out);
                String::from_utf8(out.into_vec()).unwrap()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn numbers_print_as_the_standard_library_prints_them(
            numbers in prop::collection::vec(prop_oneof![any::<i64>(), -1000..1000i64, 0..1_000_000_000_000i64, (0u32..64).prop_map(|s| 1i64 << s), (0u32..19).prop_map(|s| 10i64.pow(s) - 1)], 1..20),
            width in 1u8..=18,
            scale in 1u8..=17,
        ) {
            for (&number, text) in numbers.iter().zip(printed(Type::Int, &numbers)) {
                prop_assert_eq!(text, number.to_string());
            }
            for (&number, text) in numbers.iter().zip(printed(Type::Padded(width), &numbers)) {
                let minus = if number < 0 { "-" } else { "" };
                prop_assert_eq!(text, format!("{minus}{:0width$}", number.unsigned_abs(), width = usize::from(width)));
            }
            for (&number, text) in numbers.iter().zip(printed(Type::Decimal(scale), &numbers)) {
                let (minus, unit) = (if number < 0 { "-" } else { "" }, 10u64.pow(u32::from(scale)));
                let (whole, rest) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
                prop_assert_eq!(text, format!("{minus}{whole}.{rest:0width$}", width = usize::from(scale)));
            }
        }

        #[test]
        fn times_print_as_alone(numbers in prop::collection::vec(prop_oneof![any::<i64>(), 1_431_475_201_000..1_431_475_204_000i64], 1..40), family in 0u8..6, digits in 0u8..10) {
            let layout = Layout { family, separator: if digits == 0 { 0 } else { b'.' }, digits };
            for (&number, text) in numbers.iter().zip(printed(Type::Time(layout), &numbers)) {
                prop_assert_eq!(printed(Type::Time(layout), &[number]), [text]);
            }
        }
    }
}

//! Timestamps inside text as one integer, when the text is exactly what the integer prints as.
//!
//! A layout is a family, a fraction separator and a number of fraction digits (0 to 9). The value counts units of
//! 10^-digits seconds from the family's origin, in the clock time that the text shows: zones are not looked at.
//!
//! | family | text | origin |
//! |---|---|---|
//! | 0 | `2015-05-13T00:00:01` | 1970-01-01 |
//! | 1 | `2015-05-13 00:00:01` | 1970-01-01 |
//! | 2 | `2015/05/13 00:00:01` | 1970-01-01 |
//! | 3 | `13/May/2015:00:00:01` | 1970-01-01 |
//! | 4 | `May  3 00:00:01` (day padded with a space) | 1 January of a leap year |
//! | 5 | `00:00:01` | midnight |

/// How a timestamp is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    /// 0 to 5, see the table above.
    pub family: u8,
    /// `.`, `,` or 0 when there is no fraction.
    pub separator: u8,
    /// Fraction digits, 0 to 9.
    pub digits: u8,
}

pub const FAMILIES: u8 = haystore_format::constants::TIME_FAMILIES;
const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
const LEAP_YEAR: i64 = 2000;
/// Days from 1970-01-01 to 1 January of [`LEAP_YEAR`].
const LEAP_YEAR_DAY: i64 = 10_957;

impl Layout {
    /// Length of the text without its fraction.
    const fn base_len(family: u8) -> usize {
        match family {
            0..=2 => 19,
            3 => 20,
            4 => 15,
            _ => 8,
        }
    }

    /// Length of the text in bytes.
    pub fn text_len(self) -> usize {
        Self::base_len(self.family) + if self.digits == 0 { 0 } else { 1 + usize::from(self.digits) }
    }

    /// Whether the three parts go together.
    pub fn is_valid(self) -> bool {
        self.family < FAMILIES
            && self.digits <= 9
            && if self.digits == 0 { self.separator == 0 } else { matches!(self.separator, b'.' | b',') }
    }

    /// Units in a second.
    pub fn per_second(self) -> i64 {
        10i64.pow(u32::from(self.digits))
    }
}

/// Reads timestamps; remembers the last date, since the next one is often the same.
#[derive(Debug, Default)]
pub struct Times {
    /// Family, text and value of the last date.
    last: Option<(u8, u128, i64)>,
}

impl Times {
    /// The layout of the timestamp that begins at `at`, when one does.
    pub fn find(&mut self, text: &[u8], at: usize) -> Option<Layout> {
        let rest = &text[at..];
        let family = family_of(rest)?;
        let base = Layout::base_len(family);
        let mut layout = Layout { family, separator: 0, digits: 0 };
        if let Some(&separator @ (b'.' | b',')) = rest.get(base) {
            let digits = rest[base + 1..].iter().take(10).take_while(|b| b.is_ascii_digit()).count();
            let after = rest.get(base + 1 + digits);
            let fits = if separator == b',' { digits == 3 && after != Some(&b',') } else { (1..=9).contains(&digits) };
            if fits {
                layout.separator = separator;
                layout.digits = digits as u8;
            }
        }
        if layout.digits == 0 && rest.get(base).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        self.value(&rest[..layout.text_len()], layout).map(|_| layout)
    }

    /// Reads text of exactly `layout`; `None` when it is no such text, names no moment, or passes 64 bits.
    pub fn parse(&mut self, text: &[u8], layout: Layout) -> Option<i64> {
        if text.len() != layout.text_len() || family_of(text) != Some(layout.family) {
            return None;
        }
        self.value(text, layout)
    }

    /// Reads text of `layout` whose fraction has no zeros at the end, and no separator when there is none.
    pub fn parse_short(&mut self, text: &[u8], layout: Layout) -> Option<i64> {
        let base = Layout::base_len(layout.family);
        let digits = u8::try_from(text.len().checked_sub(base)?.saturating_sub(1)).ok().filter(|&digits| digits <= layout.digits)?;
        if text.len() == base + 1 || (digits > 0 && text.last() == Some(&b'0')) {
            return None;
        }
        let own = Layout { digits, separator: if digits == 0 { 0 } else { layout.separator }, ..layout };
        self.parse(text, own)?.checked_mul(10i64.pow(u32::from(layout.digits - digits)))
    }

    fn value(&mut self, text: &[u8], layout: Layout) -> Option<i64> {
        let days = self.days(text, layout.family)?;
        let clock = &text[CLOCK_AT[usize::from(layout.family)]..];
        let (hour, minute, second) = (number(&clock[..2])?, number(&clock[3..5])?, number(&clock[6..8])?);
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
        if layout.digits == 0 {
            return Some(seconds);
        }
        if clock[8] != layout.separator {
            return None;
        }
        seconds.checked_mul(layout.per_second())?.checked_add(number(&clock[9..])?)
    }

    /// Days from the family's origin to the date of `text`.
    fn days(&mut self, text: &[u8], family: u8) -> Option<i64> {
        let key = match family {
            0..=3 => u128::from_le_bytes(*text.first_chunk()?) & ((1 << (8 * (CLOCK_AT[usize::from(family)] - 1))) - 1),
            4 => u128::from(u64::from_le_bytes(*text.first_chunk()?)) & ((1 << 48) - 1),
            _ => return Some(0),
        };
        if let Some((last_family, last_key, days)) = self.last
            && (last_family, last_key) == (family, key)
        {
            return Some(days);
        }
        let days = days_of_text(text, family)?;
        self.last = Some((family, key, days));
        Some(days)
    }
}

/// The layout whose short form may have texts of both layouts.
pub fn common(a: Layout, b: Layout) -> Option<Layout> {
    let separator = a.separator.max(b.separator);
    let fits = |l: Layout| l.digits == 0 || l.separator == separator;
    (a.family == b.family && separator != 0 && fits(a) && fits(b)).then_some(Layout {
        separator,
        digits: a.digits.max(b.digits),
        family: a.family,
    })
}

/// Where the clock begins in the text of each family.
const CLOCK_AT: [usize; 6] = [11, 11, 11, 12, 7, 0];

/// [`Times::find`], alone.
pub fn find(text: &[u8], at: usize) -> Option<Layout> {
    Times::default().find(text, at)
}

/// [`Times::parse`], alone.
pub fn parse(text: &[u8], layout: Layout) -> Option<i64> {
    Times::default().parse(text, layout)
}

fn family_of(rest: &[u8]) -> Option<u8> {
    match rest {
        [b'0'..=b'9', _, b':', _, _, b':', _, _, ..] => Some(5),
        [b'0'..=b'9', _, _, _, b'-', _, _, b'-', _, _, b'T', _, _, b':', _, _, b':', _, _, ..] => Some(0),
        [b'0'..=b'9', _, _, _, b'-', _, _, b'-', _, _, b' ', _, _, b':', _, _, b':', _, _, ..] => Some(1),
        [b'0'..=b'9', _, _, _, b'/', _, _, b'/', _, _, b' ', _, _, b':', _, _, b':', _, _, ..] => Some(2),
        [b'0'..=b'9', _, b'/', _, _, _, b'/', _, _, _, _, b':', _, _, b':', _, _, b':', _, _, ..] => Some(3),
        [b'A'..=b'S', _, _, b' ', _, _, b' ', _, _, b':', _, _, b':', _, _, ..] => Some(4),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |n, &b| if b.is_ascii_digit() { Some(n * 10 + i64::from(b - b'0')) } else { None })
}

fn month_number(name: &[u8]) -> Option<i64> {
    MONTHS.chunks(3).position(|m| m == name).map(|i| i as i64 + 1)
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month > 2 { year } else { year - 1 };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days_of`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from the family's origin to the date that `text` begins with; `None` when there is no such day.
fn days_of_text(text: &[u8], family: u8) -> Option<i64> {
    let (year, month, day) = match family {
        0..=2 => (number(&text[..4])?, number(&text[5..7])?, number(&text[8..10])?),
        3 => (number(&text[7..11])?, month_number(&text[3..6])?, number(&text[..2])?),
        _ => {
            let day = if text[4] == b' ' { number(&text[5..6])? } else { number(&text[4..6])? };
            if text[4] == b'0' {
                return None;
            }
            (LEAP_YEAR, month_number(&text[..3])?, day)
        }
    };
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    Some(days_of(year, month, day) - if family == 4 { LEAP_YEAR_DAY } else { 0 })
}

/// Room for the longest text, 30 bytes.
const TEXT_ROOM: usize = 32;

/// A text being written.
struct Text<'a> {
    bytes: &'a mut [u8; TEXT_ROOM],
    len: usize,
}

impl Text<'_> {
    fn put(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// The last two digits of `value`.
    fn put_two(&mut self, value: i64) {
        let value = value.rem_euclid(100) as u8;
        self.put(b'0' + value / 10);
        self.put(b'0' + value % 10);
    }
}

/// Writes the date of a day since the family's origin; returns its length. Years wrap into four digits; [`parse`] never gives such a value.
pub fn put_day(days: i64, layout: Layout, to: &mut [u8; TEXT_ROOM]) -> usize {
    let mut text = Text { bytes: to, len: 0 };
    let days = if layout.family == 4 { days.wrapping_add(LEAP_YEAR_DAY) } else { days };
    if layout.family < 5 {
        put_date(&mut text, layout.family, days);
    }
    text.len
}

/// Writes the clock of a second of a day behind the first `len` bytes, up to and with the separator of a fraction; returns the length of all.
pub fn put_clock(second: u32, layout: Layout, len: usize, to: &mut [u8; TEXT_ROOM]) -> usize {
    let mut text = Text { bytes: to, len };
    let second = i64::from(second);
    text.put_two(second / 3_600);
    text.put(b':');
    text.put_two(second / 60 % 60);
    text.put(b':');
    text.put_two(second % 60);
    if layout.digits > 0 {
        text.put(layout.separator);
    }
    text.len
}

fn put_date(text: &mut Text<'_>, family: u8, days: i64) {
    let (year, month, day) = date_of(days);
    let name = &MONTHS[(month as usize - 1) * 3..][..3];
    let put_year = |text: &mut Text<'_>| {
        text.put_two(year.div_euclid(100));
        text.put_two(year);
    };
    match family {
        3 => {
            text.put_two(day);
            text.put(b'/');
            name.iter().for_each(|&b| text.put(b));
            text.put(b'/');
            put_year(text);
            text.put(b':');
        }
        4 => {
            name.iter().for_each(|&b| text.put(b));
            text.put(b' ');
            text.put(if day < 10 { b' ' } else { b'0' + (day / 10) as u8 });
            text.put(b'0' + (day % 10) as u8);
            text.put(b' ');
        }
        _ => {
            let (between, before_clock) = [(b'-', b'T'), (b'-', b' '), (b'/', b' ')][usize::from(family)];
            put_year(text);
            text.put(between);
            text.put_two(month);
            text.put(between);
            text.put_two(day);
            text.put(before_clock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::out::Out;
    use crate::encoding::print::Printer;
    use crate::encoding::typed::Type;
    use proptest::prelude::*;

    fn format(value: i64, layout: Layout, out: &mut Out) {
        Printer::new(Type::Time(layout)).print(value, out);
    }

    fn round_trip(text: &str) -> Option<i64> {
        let layout = find(text.as_bytes(), 0)?;
        let text = &text[..layout.text_len()];
        let value = parse(text.as_bytes(), layout)?;
        let mut out = Out::default();
        format(value, layout, &mut out);
        assert_eq!(String::from_utf8_lossy(out.as_slice()), text);
        Some(value)
    }

    #[test]
    fn known_moments() {
        assert_eq!(round_trip("2015-05-13T00:00:01.123456Z"), Some(1_431_475_201_123_456));
        assert_eq!(round_trip("1969-12-31 23:59:59,999 x"), Some(-1));
        assert_eq!(round_trip("2024/02/29 12:00:00"), Some(1_709_208_000));
        assert_eq!(round_trip("10/Oct/2000:13:55:36 -0700"), Some(971_186_136));
        assert_eq!(round_trip("Jan  1 00:00:00 host"), Some(0));
        assert_eq!(round_trip("Dec 31 23:59:59"), Some(366 * 86_400 - 1));
        assert_eq!(round_trip("23:59:59.5"), Some(863_995));
    }

    #[test]
    fn what_is_no_moment_or_prints_otherwise() {
        for text in [
            "2023-02-29T00:00:00",
            "2015-05-13T24:00:00",
            "2015-05-13T00:00:60",
            "Oct 01 00:00:00",
            "Foo  1 00:00:00",
            "2515-02-28T00:00:00.123456789",
            "12:00:001",
        ] {
            assert_eq!(round_trip(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_value_of_a_parse_prints_back(seconds in -62_167_219_200i64..253_402_300_800, family in 0u8..4) {
            let layout = Layout { family, separator: b'.', digits: 3 };
            let mut out = Out::default();
            format(seconds * 1000 + 7, layout, &mut out);
            prop_assert_eq!(parse(out.as_slice(), layout), Some(seconds * 1000 + 7));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), text in "[0-9A-Za-z:/ ,.T-]{0,40}") {
            for at in 0..bytes.len() {
                find(&bytes, at);
            }
            for at in 0..text.len() {
                if let Some(layout) = find(text.as_bytes(), at) {
                    round_trip(&text[at..]);
                    assert!(layout.is_valid());
                }
            }
        }

        #[test]
        fn any_value_prints_without_a_panic(value in any::<i64>(), family in 0u8..6, digits in 0u8..10) {
            let separator = if digits == 0 { 0 } else { b'.' };
            format(value, Layout { family, separator, digits }, &mut Out::default());
        }
    }
}

//! Values that are exactly what a number prints as: integers, zero-padded integers, decimals; and fixed-width
//! classes of ids: hex, UUID, IPv4. A value belongs to a type only if printing the number gives its bytes back.

use crate::shape::time::{self, Layout};

/// The type that all values of a column share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// `-?[1-9][0-9]*` or `0`, fits i64.
    Int,
    /// Digits only, all of this length (at most 18), some with leading zeros.
    Padded(u8),
    /// Integer part as [`Type::Int`], then `.` and this many digits; never a negative zero.
    Decimal(u8),
    /// As [`Type::Decimal`] without the zeros at the end; of a whole number one is kept, or the point goes too.
    ShortDecimal {
        /// Most digits behind the point.
        scale: u8,
        /// Whether whole numbers end in `.0`.
        point: bool,
    },
    /// A timestamp.
    Time(Layout),
    /// A timestamp whose fraction has no zeros at the end; without a fraction there is no separator. The layout says the most digits.
    ShortTime(Layout),
    /// An even number of hex digits (8 to 128), lower- or upper-case.
    Hex {
        /// Bytes of the value, half the digits.
        width: u8,
        /// Upper-case letters.
        upper: bool,
    },
    /// 8-4-4-4-12 lower-case hex digits.
    Uuid,
    /// Four numbers 0 to 255 without leading zeros.
    Ipv4,
}

impl Type {
    /// A name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Type::Int => "integers",
            Type::Padded(_) => "padded integers",
            Type::Decimal(_) | Type::ShortDecimal { .. } => "decimals",
            Type::Time(_) | Type::ShortTime(_) => "times",
            Type::Hex { .. } => "hex",
            Type::Uuid => "uuids",
            Type::Ipv4 => "IPv4 addresses",
        }
    }

    /// The type of one value; the narrowest in the order Time, Int, Padded, Decimal, IPv4, UUID, Hex.
    pub fn of(value: &[u8]) -> Option<Type> {
        let first = *value.first()?;
        if let Some(layout) = time::find(value, 0).filter(|l| l.text_len() == value.len()) {
            return Some(Type::Time(layout));
        }
        let digits = value.iter().all(u8::is_ascii_digit);
        if parse_int(value).is_some() {
            Some(Type::Int)
        } else if digits && value.len() <= 18 {
            Some(Type::Padded(value.len() as u8))
        } else if let Some(dot) = value.iter().position(|&b| b == b'.').filter(|_| first == b'-' || first.is_ascii_digit()) {
            let decimal = Type::Decimal((value.len() - dot - 1).min(200) as u8);
            [decimal, Type::Ipv4].into_iter().find(|t| t.holds(value))
        } else {
            let upper = value.iter().any(u8::is_ascii_uppercase);
            let hex = Type::Hex { width: (value.len() / 2).min(200) as u8, upper };
            [Type::Uuid, hex].into_iter().find(|t| t.holds(value))
        }
    }

    /// Whether `value` is of this type.
    pub fn holds(self, value: &[u8]) -> bool {
        match self {
            Type::Int | Type::Padded(_) | Type::Decimal(_) | Type::ShortDecimal { .. } | Type::Time(_) | Type::ShortTime(_) => {
                self.number(value).is_some()
            }
            Type::Hex { width, upper } => {
                (4..=64).contains(&width)
                    && value.len() == usize::from(width) * 2
                    && value
                        .iter()
                        .all(|&b| b.is_ascii_digit() || if upper { (b'A'..=b'F').contains(&b) } else { (b'a'..=b'f').contains(&b) })
            }
            Type::Uuid => {
                value.len() == 36
                    && value.iter().enumerate().all(|(i, &b)| match i {
                        8 | 13 | 18 | 23 => b == b'-',
                        _ => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
                    })
            }
            Type::Ipv4 => parse_ipv4(value).is_some(),
        }
    }

    /// The wider of two types that also holds all values of the other, if there is one: hex ids without a letter look like
    /// integers, the first of them decides nothing.
    pub fn join(self, other: Type, value: &[u8]) -> Option<Type> {
        let digits_only = |t: Type| matches!(t, Type::Int | Type::Padded(_));
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Type::Int, Type::Padded(n)) | (Type::Padded(n), Type::Int) => Some(Type::Padded(n)),
            (Type::Hex { .. }, b) if digits_only(b) && self.holds(value) => Some(self),
            (a, Type::Hex { .. }) if digits_only(a) => Some(other),
            (Type::Time(a) | Type::ShortTime(a), Type::Time(b)) => time::common(a, b).map(Type::ShortTime),
            (a, b) => {
                let ((scale, point), (other, also)) = (a.fraction()?, b.fraction()?);
                Some(Type::ShortDecimal { scale: scale.max(other), point: point && also })
            }
        }
    }

    /// Digits behind the point, and whether whole numbers have one, of types of decimals and integers.
    fn fraction(self) -> Option<(u8, bool)> {
        match self {
            Type::Int => Some((1, false)),
            Type::Decimal(scale) => Some((scale, true)),
            Type::ShortDecimal { scale, point } => Some((scale, point)),
            _ => None,
        }
    }

    /// The number of a value of a numeric type; `None` when the value is not of the type.
    pub fn number(self, value: &[u8]) -> Option<i64> {
        self.number_with(value, &mut time::Times::default())
    }

    /// The same for value after value of a column.
    pub fn number_with(self, value: &[u8], times: &mut time::Times) -> Option<i64> {
        match self {
            Type::Int => parse_int(value),
            Type::Padded(width) if value.len() == usize::from(width) && width <= 18 => parse_digits(value),
            Type::Decimal(scale) => parse_decimal(value, usize::from(scale)),
            Type::ShortDecimal { scale, point } => parse_short_decimal(value, scale, point),
            Type::Time(layout) => times.parse(value, layout),
            Type::ShortTime(layout) => times.parse_short(value, layout),
            _ => None,
        }
    }
}

fn parse_short_decimal(value: &[u8], scale: u8, point: bool) -> Option<i64> {
    let Some(dot) = value.iter().rposition(|&b| b == b'.') else {
        // The text of a whole number; a negative zero is none.
        let number = if point { None } else { parse_int(value) }?;
        return number.checked_mul(10i64.checked_pow(u32::from(scale))?).filter(|n| n.unsigned_abs() < 10u64.pow(18));
    };
    let digits = u8::try_from(value.len() - dot - 1).ok().filter(|&digits| digits <= scale)?;
    let zero = point && digits == 1;
    if value.last() == Some(&b'0') && !zero {
        return None;
    }
    let number = parse_decimal(value, usize::from(digits))?.checked_mul(10i64.checked_pow(u32::from(scale - digits))?)?;
    (number.unsigned_abs() < 10u64.pow(18)).then_some(number)
}

fn parse_digits(value: &[u8]) -> Option<i64> {
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0i64, |n, &b| if b.is_ascii_digit() { Some(n * 10 + i64::from(b - b'0')) } else { None })
}

fn parse_int(value: &[u8]) -> Option<i64> {
    let (negative, digits) = match value {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, value),
    };
    if digits.first() == Some(&b'0') && (digits.len() > 1 || negative) {
        return None;
    }
    if digits.len() <= 18 {
        return parse_digits(digits).map(|n| if negative { -n } else { n });
    }
    if digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn parse_decimal(value: &[u8], scale: usize) -> Option<i64> {
    if scale == 0 || scale > 17 {
        return None;
    }
    let dot = value.len().checked_sub(scale + 1)?;
    if value[dot] != b'.' {
        return None;
    }
    let (negative, whole) = match &value[..dot] {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if whole.len() + scale > 18 || (whole.len() > 1 && whole[0] == b'0') {
        return None;
    }
    let number = parse_digits(whole)? * 10i64.pow(scale as u32) + parse_digits(&value[dot + 1..])?;
    if negative && number == 0 { None } else { Some(if negative { -number } else { number }) }
}

fn parse_ipv4(value: &[u8]) -> Option<[u8; 4]> {
    if !(7..=15).contains(&value.len()) {
        return None;
    }
    let mut out = [0; 4];
    let (mut part, mut number, mut digits) = (0, 0u32, 0);
    for &b in value {
        let digit = b.wrapping_sub(b'0');
        if digit < 10 {
            // No leading zero, at most 255.
            if digits > 0 && number == 0 {
                return None;
            }
            number = number * 10 + u32::from(digit);
            digits += 1;
            if number > 255 {
                return None;
            }
        } else if b == b'.' && digits > 0 && part < 3 {
            out[part] = number as u8;
            part += 1;
            (number, digits) = (0, 0);
        } else {
            return None;
        }
    }
    out[3] = number as u8;
    (part == 3 && digits > 0).then_some(out)
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10) & 15,
    }
}

/// The class of fixed-width ids that a class dictionary holds as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FixedClass {
    /// Hex digits, two a byte.
    Hex {
        /// Bytes a value.
        width: u8,
        /// Upper-case letters.
        upper: bool,
    },
    /// 16 bytes.
    Uuid,
    /// 4 bytes.
    Ipv4,
}

impl FixedClass {
    /// The class of values of `type_`, when it has one.
    pub fn of(type_: Type) -> Option<FixedClass> {
        match type_ {
            Type::Hex { width, upper } => Some(FixedClass::Hex { width, upper }),
            Type::Uuid => Some(FixedClass::Uuid),
            Type::Ipv4 => Some(FixedClass::Ipv4),
            _ => None,
        }
    }

    /// A name for reports.
    pub fn name(self) -> &'static str {
        match self {
            FixedClass::Hex { .. } => "hex",
            FixedClass::Uuid => "uuid",
            FixedClass::Ipv4 => "IPv4",
        }
    }

    /// Bytes a value.
    pub fn width(self) -> usize {
        match self {
            FixedClass::Hex { width, .. } => usize::from(width),
            FixedClass::Uuid => 16,
            FixedClass::Ipv4 => 4,
        }
    }

    /// Appends the bytes of `value`, which must be of the class.
    pub fn pack(self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            FixedClass::Ipv4 => out.extend_from_slice(&parse_ipv4(value).unwrap_or_default()),
            FixedClass::Hex { .. } => out.extend(value.chunks(2).map(|p| hex_value(p[0]) << 4 | hex_value(p[p.len() - 1]))),
            FixedClass::Uuid => {
                let digits = |range: std::ops::Range<usize>| value[range].chunks(2).map(|p| hex_value(p[0]) << 4 | hex_value(p[1]));
                for range in [0..8, 9..13, 14..18, 19..23, 24..36] {
                    out.extend(digits(range));
                }
            }
        }
    }

    /// Appends the text of `bytes`, [`FixedClass::width`] of them.
    pub fn print(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            FixedClass::Ipv4 => {
                for (i, &byte) in bytes.iter().enumerate() {
                    if i > 0 {
                        out.push(b'.');
                    }
                    if byte >= 100 {
                        out.push(b'0' + byte / 100);
                    }
                    if byte >= 10 {
                        out.push(b'0' + byte / 10 % 10);
                    }
                    out.push(b'0' + byte % 10);
                }
            }
            FixedClass::Hex { upper, .. } => put_hex(out, bytes, if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" }),
            FixedClass::Uuid => {
                for (i, range) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
                    if i > 0 {
                        out.push(b'-');
                    }
                    put_hex(out, bytes.get(range).unwrap_or_default(), b"0123456789abcdef");
                }
            }
        }
    }
}

fn put_hex(out: &mut Vec<u8>, bytes: &[u8], digits: &[u8; 16]) {
    out.extend(bytes.iter().flat_map(|b| [digits[usize::from(b >> 4)], digits[usize::from(b & 15)]]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(value: &[u8]) {
        let Some(type_) = Type::of(value) else { return };
        assert!(type_.holds(value), "{type_:?} {value:?}");
        let mut out = Vec::new();
        match FixedClass::of(type_) {
            Some(class) => {
                let mut packed = Vec::new();
                class.pack(value, &mut packed);
                assert_eq!(packed.len(), class.width());
                class.print(&packed, &mut out);
            }
            None => {
                let mut text = crate::encoding::out::Out::default();
                crate::encoding::print::Printer::new(type_).print(type_.number(value).unwrap(), &mut text);
                out = text.into_vec();
            }
        }
        assert_eq!(out, value, "{type_:?}");
    }

    #[test]
    fn known_values() {
        let of = |s: &str| {
            check(s.as_bytes());
            Type::of(s.as_bytes())
        };
        assert_eq!(of("0"), Some(Type::Int));
        assert_eq!(of("-9223372036854775808"), Some(Type::Int));
        assert_eq!(of("9223372036854775808"), None);
        assert_eq!(of("007"), Some(Type::Padded(3)));
        assert_eq!(of("-0"), None);
        assert_eq!(of("0.10"), Some(Type::Decimal(2)));
        assert_eq!(of("-0.5"), Some(Type::Decimal(1)));
        assert_eq!(of("-0.0"), None);
        assert_eq!(of("00.5"), None);
        let short = |point| Type::ShortDecimal { scale: 3, point };
        let read = |value: &str, point| short(point).number(value.as_bytes());
        assert_eq!((read("1.5", true), read("1.5", false), read("-0.125", false)), (Some(1500), Some(1500), Some(-125)));
        assert_eq!((read("7.0", true), read("7.0", false), read("7", true), read("7", false)), (Some(7000), None, None, Some(7000)));
        assert_eq!((read("1.50", true), read("-0", false), read("-0.0", true), read("1.2345", true)), (None, None, None, None));
        assert_eq!(of("1.2.3.4"), Some(Type::Ipv4));
        assert_eq!(of("1.2.3.256"), None);
        assert_eq!(of("deadbeef"), Some(Type::Hex { width: 4, upper: false }));
        assert_eq!(of("DEADBEEF01"), Some(Type::Hex { width: 5, upper: true }));
        assert_eq!(of("deadBEEF"), None);
        assert_eq!(of("123e4567-e89b-12d3-a456-426614174000"), Some(Type::Uuid));
        assert_eq!(of(""), None);
    }

    proptest! {
        #[test]
        fn what_has_a_joined_type_prints_back(
            values in prop::collection::vec("-?[0-9]{1,3}(\\.[0-9]{1,4})?|12:00:0[0-9](\\.[0-9]{1,3})?|0|10|1\\.0", 2..4)
        ) {
            let mut type_ = Type::of(values[0].as_bytes());
            for value in &values {
                type_ = type_.zip(Type::of(value.as_bytes())).and_then(|(a, b)| a.join(b, value.as_bytes()));
            }
            for (value, type_) in values.iter().flat_map(|v| type_.map(|t| (v, t))) {
                let Some(number) = type_.number(value.as_bytes()) else { continue };
                let mut text = crate::encoding::out::Out::default();
                crate::encoding::print::Printer::new(type_).print(number, &mut text);
                prop_assert_eq!(String::from_utf8_lossy(text.as_slice()), value.as_str(), "{:?}", type_);
            }
        }

        #[test]
        fn what_has_a_type_prints_back(text in "[0-9]{1,20}|-?[0-9]{1,4}\\.[0-9]{1,20}|[0-9a-f]{8,20}|[0-9.]{7,15}|[0-9a-fA-F-]{36}", bytes in any::<Vec<u8>>()) {
            check(text.as_bytes());
            check(&bytes);
        }
    }
}

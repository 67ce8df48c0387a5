//! `records.md`: the stored forms of labels and formats.

/// Labels out of their stored form; `None` when the bytes are no such form.
pub fn labels(stored: &[u8]) -> Option<Vec<(String, String)>> {
    if stored.is_empty() {
        return Some(Vec::new());
    }
    let mut rest = stored.strip_prefix(b"{")?;
    let mut labels: Vec<(String, String)> = Vec::new();
    loop {
        let name = string(&mut rest)?;
        rest = rest.strip_prefix(b":")?;
        let value = string(&mut rest)?;
        if labels.last().is_some_and(|last| last.0.as_bytes() >= name.as_bytes()) {
            return None;
        }
        labels.push((name, value));
        match rest {
            b"}" => return Some(labels),
            _ => rest = rest.strip_prefix(b",")?,
        }
    }
}

fn string(rest: &mut &[u8]) -> Option<String> {
    let mut left = rest.strip_prefix(b"\"")?;
    let mut out = Vec::new();
    loop {
        match left {
            [b'"', after @ ..] => {
                *rest = after;
                return String::from_utf8(out).ok();
            }
            [b'\\', byte @ (b'"' | b'\\'), after @ ..] => {
                out.push(*byte);
                left = after;
            }
            [b'\\', b'u', b'0', b'0', high @ (b'0' | b'1'), low, after @ ..] => {
                let low = b"0123456789abcdef".iter().position(|digit| digit == low)?;
                out.push((high - b'0') * 16 + low as u8);
                left = after;
            }
            [byte, after @ ..] if *byte >= b' ' && *byte != b'\\' => {
                out.push(*byte);
                left = after;
            }
            _ => return None,
        }
    }
}

/// Whether the bytes are the stored form of a format.
pub fn is_format(stored: &[u8]) -> bool {
    match stored {
        b"text" | b"json" | b"logfmt" => true,
        [b'c', b's', b'v', _, names @ ..] => match names.split_last() {
            None => true,
            Some((0, names)) => names.split(|&b| b == 0).all(is_csv_name),
            Some(_) => false,
        },
        _ => false,
    }
}

fn is_csv_name(mut stored: &[u8]) -> bool {
    let mut name = Vec::new();
    loop {
        match stored {
            [] => return String::from_utf8(name).is_ok(),
            [1, byte @ (b'0' | b'1'), after @ ..] => {
                name.push(byte - b'0');
                stored = after;
            }
            [1, ..] => return false,
            [byte, after @ ..] => {
                name.push(*byte);
                stored = after;
            }
        }
    }
}

//! What a row group looks like inside, for people: its templates, readable, with how often each occurs.

use super::RowGroup;
use crate::column::plan::{Escape, Kind, Mapping, Plan};
use crate::encoding::typed::{FixedClass, Type};
use crate::error::Result;
use crate::shape::Part;

/// Templates are unfolded at most so deep into their slots.
const DEPTH_MAX: usize = 4;

/// A template of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Lines made of it.
    pub rows: u64,
    /// Its text, slots as `<what they hold>`; bytes that are no printable ASCII as `\xHH`.
    pub text: String,
}

/// The templates of a row group's lines, most frequent first.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`].
pub fn templates(group: &mut RowGroup) -> Result<Vec<Template>> {
    let lines = group.line_column();
    let plan = group.decoder().plan().clone();
    let Kind::Shapes(shapes) = &plan.columns[lines as usize].kind else {
        let rows = (0..group.ranges()).map(|range| group.rows(range).len() as u64).sum();
        return Ok(vec![Template { rows, text: slot_text(&plan, lines, 0) }]);
    };
    let mut counts = vec![0u64; shapes.len()];
    for range in 0..group.ranges() {
        for &shape in group.decoder().numbers(lines, range)?.raw() {
            if let Some(count) = usize::try_from(shape).ok().and_then(|shape| counts.get_mut(shape)) {
                *count += 1;
            }
        }
    }
    let mut found: Vec<Template> =
        shapes.iter().zip(counts).map(|(shape, rows)| Template { rows, text: shape_text(&plan, shape, 0) }).collect();
    found.sort_by_key(|template| std::cmp::Reverse(template.rows));
    Ok(found)
}

fn shape_text(plan: &Plan, shape: &[Part<u32>], depth: usize) -> String {
    let part = |part: &Part<u32>| match part {
        Part::Literal(bytes) => bytes.escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'").replace("\\\\", "\\"),
        Part::Slot(column) => slot_text(plan, *column, depth),
        Part::Aligned(column) => format!("<as {}>", slot_text(plan, *column, depth).trim_matches(['<', '>'])),
    };
    shape.iter().map(part).collect()
}

/// What a slot of this column holds. One template is unfolded in its place, of several their number is said.
fn slot_text(plan: &Plan, column: u32, depth: usize) -> String {
    let name = match &plan.columns[column as usize].kind {
        Kind::Constant(value) => return shape_text(plan, &[Part::Literal(value.clone())], depth),
        Kind::Same(other) => return slot_text(plan, *other, depth),
        Kind::Shapes(shapes) => match &shapes[..] {
            [shape] if depth < DEPTH_MAX => return shape_text(plan, shape, depth + 1),
            shapes => format!("{} templates", shapes.len()),
        },
        Kind::Escaped(child, Escape::Json) => return format!("<escaped: {}>", slot_text(plan, *child, depth)),
        Kind::Escaped(child, Escape::Doubled) => return format!("<quoted: {}>", slot_text(plan, *child, depth)),
        Kind::List(list) => format!("list of {}", slot_text(plan, list.elements, depth)),
        Kind::Text => "text".into(),
        Kind::Number(type_) => type_name(*type_),
        Kind::Computed(computed) => format!("{}, computed", type_name(computed.type_)),
        Kind::Dictionary(dictionary) | Kind::Mapped(Mapping { dictionary, .. }) => {
            let layout = &plan.dictionaries[*dictionary as usize];
            match layout.class {
                Some(FixedClass::Hex { width, upper }) => format!("{}{}", if upper { "HEX" } else { "hex" }, usize::from(width) * 2),
                Some(class) => class.name().into(),
                None => format!("one of {}", layout.entries),
            }
        }
    };
    format!("<{name}>")
}

fn type_name(type_: Type) -> String {
    match type_ {
        Type::Int => "int".into(),
        Type::Padded(width) => format!("{width} digits"),
        Type::Decimal(_) | Type::ShortDecimal { .. } => "decimal".into(),
        Type::Time(_) | Type::ShortTime(_) => "time".into(),
        other => other.name().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::decode::Source;
    use crate::column::encode::Effort;
    use crate::record::{Batch, Format, Labels};
    use crate::segment::{Cut, encode_row_group};
    use std::sync::Arc;

    fn group_of(lines: impl Iterator<Item = String>) -> RowGroup {
        let mut batch = Batch::new();
        let (stream, format) = (batch.stream(&Labels::default()), batch.format(&Format::Text).unwrap());
        for (row, line) in lines.enumerate() {
            batch.push(row as i64, stream, format, line.as_bytes(), b"").unwrap();
        }
        let mut bytes = Vec::new();
        let effort = Effort { zstd: 1, pco: 4, same: true, archive: false };
        let meta = encode_row_group(&Cut::new(vec![Arc::new(batch)], usize::MAX).rows(0), effort, &mut bytes).unwrap();
        RowGroup::open(&meta, Source { bytes: bytes.into(), name: "x".into(), offset: 0 }).unwrap()
    }

    #[test]
    fn columns_come_back_where_values_nest_and_where_json_holds_raw_control_bytes() {
        // Each field holds the one before it: the references must end before the plan's depth does.
        let nested = |row: u64| {
            let mut value = format!("{:06x}", row * 0x1234_5671 % 0xff_ffff);
            let mut line = String::from("{");
            for field in 0..90 {
                line += &format!("\"f{field}\":\"{value}\",");
                value.push(['p', 'q', 'r'][(row % 3) as usize]);
            }
            line + "\"end\":0}"
        };
        let raw = |row: u64| format!("{{\"n\":{row},\"s\":\"a\\\"b\\\" \t raw {}\"}}", row * 7);
        let groups = [group_of((0..400).map(nested)), group_of((0..400).map(raw))];
        assert!(groups.iter().all(|group| !group.is_verbatim()));
    }

    #[test]
    fn templates_are_readable_and_counted() {
        let lines = (0..300u64).map(|row| match row % 3 {
            0 => format!("{{\"tags\":[{}],\"d\":{}}}", format!("{row},").repeat(row as usize % 4) + "2", row as f64 / 4.0),
            _ => format!("12:00:{:02} user {} \\ {:016x}", row % 60, row * 7, row * 0x1234_5678_9abc),
        });
        let mut group = group_of(lines);
        let found = templates(&mut group).unwrap();
        let of = |rows, text: &str| Template { rows, text: text.into() };
        assert_eq!(found, [of(200, "<time> user <int> \\ <hex16>"), of(100, "{\"tags\":[<list of <int>>],\"d\":<decimal>}")]);
    }
}

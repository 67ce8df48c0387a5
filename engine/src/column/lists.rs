//! Encoding arrays: values of varying number become one column of elements, whatever the number.

use super::encode::{Encoder, Hint};
use super::plan::{Kind, List};
use crate::error::Result;
use crate::shape::{Part, SlotKind, Span, json};

/// Arrays of always the same number of elements, at most so many, have a column for each place.
const PLACES_MAX: usize = 8;

impl Encoder {
    /// What stands between the brackets of JSON arrays, as elements; `None` when it cannot be cut or has nothing to cut.
    pub(super) fn list(&mut self, arena: &[u8], spans: &[Span], domain: u32, hint: Hint) -> Result<Option<u32>> {
        let Some(blanks) = spans.iter().find_map(|s| json::blanks(s.of(arena))) else { return Ok(None) };
        let (mut elements, mut ends) = (Vec::new(), Vec::with_capacity(spans.len()));
        for &span in spans {
            if !json::cut_array(arena, span, blanks, &mut elements) {
                return Ok(None);
            }
            ends.push(elements.len());
        }
        let separator = [b",", &b" ".repeat(blanks)[..]].concat();
        let hint = Hint { depth: hint.depth + 1, lines: false, json: true, slot: SlotKind::Verbatim, ..hint };
        let places = ends[0];
        if (2..=PLACES_MAX).contains(&places) && ends.iter().enumerate().all(|(i, &end)| end == (i + 1) * places) {
            return self.places(arena, &elements, (places, &separator), domain, hint).map(Some);
        }
        let of_range = |&end: &u32| if end == 0 { 0 } else { ends[end as usize - 1] as u32 };
        let elements_domain = self.domain(self.domains[domain as usize].ends.iter().map(of_range).collect());
        let counts: Vec<i64> = ends.iter().enumerate().map(|(i, &end)| (end - if i == 0 { 0 } else { ends[i - 1] }) as i64).collect();
        let counts = self.number_column(&counts, domain)?;
        let elements = self.column(arena, &elements, elements_domain, hint)?;
        Ok(Some(self.add(domain, Kind::List(List { counts, elements, separator }))))
    }

    /// Arrays of `places` elements: a shape with a column for each.
    fn places(&mut self, arena: &[u8], elements: &[Span], (places, separator): (usize, &[u8]), domain: u32, hint: Hint) -> Result<u32> {
        let mut shape = Vec::new();
        for place in 0..places {
            let values: Vec<Span> = elements.iter().copied().skip(place).step_by(places).collect();
            if place > 0 {
                shape.push(Part::Literal(separator.to_vec()));
            }
            shape.push(Part::Slot(self.column(arena, &values, domain, hint)?));
        }
        let column = self.add(domain, Kind::Shapes(vec![shape]));
        self.integer_pages(column, &vec![0; elements.len() / places], domain)?;
        Ok(column)
    }
}

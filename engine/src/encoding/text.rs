//! A page of byte strings as one soft piece: lengths as an integer page (its length first, as varint), then the bytes.

use super::Piece;
use super::integers::{self, IntCoding};
use crate::wire::{Reader, WireResult, put_bytes};

/// Encodes values given as slices.
pub fn encode<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> Piece {
    let lengths: Vec<u64> = values.clone().map(|v| v.len() as u64).collect();
    let lengths = integers::encode(&lengths, IntCoding { delta: false, pco: false, level: 0 });
    let mut bytes = Vec::with_capacity(lengths.bytes.len() + 4 + values.clone().map(<[u8]>::len).sum::<usize>());
    put_bytes(&mut bytes, &lengths.bytes);
    values.for_each(|v| bytes.extend_from_slice(v));
    Piece { bytes, hard: false }
}

/// Decodes `count` values: the bytes go behind `data`, the ends of the values (offsets in `data`) behind `ends`.
///
/// # Errors
/// When `bytes` is no piece of `count` values, or `data` would pass 4 GiB.
pub fn decode(bytes: &[u8], count: usize, data: &mut Vec<u8>, ends: &mut Vec<u32>) -> WireResult<()> {
    let mut reader = Reader::new(bytes);
    let lengths_piece = reader.bytes()?;
    let mut lengths = Vec::with_capacity(count.min(bytes.len()));
    integers::decode(lengths_piece, count, &mut lengths)?;
    let mut end = data.len() as u64;
    let limit = end + reader.left() as u64;
    for length in lengths {
        end = end.checked_add(length).filter(|&e| e <= limit && e <= u64::from(u32::MAX)).ok_or(reader.error("lengths pass the bytes"))?;
        ends.push(end as u32);
    }
    if end != limit {
        return Err(reader.error("bytes left over"));
    }
    data.extend_from_slice(reader.rest());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_survive(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..100)) {
            let piece = encode(values.iter().map(Vec::as_slice));
            let (mut data, mut ends) = (b"x".to_vec(), vec![1]);
            decode(&piece.bytes, values.len(), &mut data, &mut ends).unwrap();
            let back: Vec<&[u8]> = ends.windows(2).map(|w| &data[w[0] as usize..w[1] as usize]).collect();
            prop_assert_eq!(back, values);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), count in 0usize..300) {
            let _ = decode(&bytes, count, &mut Vec::new(), &mut Vec::new());
        }
    }
}

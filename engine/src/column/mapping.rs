//! Columns that are functions of others: a pod's name decides its host, so the host needs no page, only a table.

use super::plan::{Column, DictionaryPlan, Mapping};
use hashbrown::HashMap;

/// A key has at most so many entries, since its tables are read with the plan.
const KEY_ENTRIES_MAX: u32 = 4096;
/// A key has at least so many rows for each of its entries.
const ROWS_PER_ENTRY_MIN: usize = 8;
/// Keys of one domain that a column is tried with.
const KEYS_MAX: usize = 16;

const UNKNOWN: u32 = u32::MAX;

/// The columns among `uses` (columns of entry numbers, ascending, with their entry numbers) that are functions of an earlier one.
pub(super) fn find(uses: &[(u32, Vec<u64>)], columns: &[Column], dictionaries: &[DictionaryPlan]) -> Vec<(u32, Mapping)> {
    let dictionary_of = |column: u32| columns[column as usize].kind.dictionary();
    let mut keys: HashMap<u32, Vec<&(u32, Vec<u64>)>> = HashMap::new();
    let mut found = Vec::new();
    for (column, ids) in uses {
        let Some(dictionary) = dictionary_of(*column) else { continue };
        let known = keys.entry(columns[*column as usize].domain).or_default();
        let mapped = known.iter().find_map(|(key, key_ids)| {
            let entries = dictionaries[dictionary_of(*key)? as usize].entries;
            Some((*key, table(key_ids, ids, entries)?))
        });
        if let Some((key, table)) = mapped {
            found.push((*column, Mapping { key, dictionary, table }));
            continue;
        }
        let entries = dictionaries[dictionary as usize].entries;
        if known.len() < KEYS_MAX && entries <= KEY_ENTRIES_MAX && ids.len() >= entries as usize * ROWS_PER_ENTRY_MIN {
            known.push(&uses[uses.partition_point(|u| u.0 < *column)]);
        }
    }
    found
}

/// For each of `entries` keys its value, when each has only one; a key that does not occur gets 0.
fn table(keys: &[u64], values: &[u64], entries: u32) -> Option<Vec<u32>> {
    let mut table = vec![UNKNOWN; entries as usize];
    for (&key, &value) in keys.iter().zip(values) {
        let known = &mut table[key as usize];
        if *known == UNKNOWN {
            *known = value as u32;
        } else if u64::from(*known) != value {
            return None;
        }
    }
    table.iter_mut().filter(|value| **value == UNKNOWN).for_each(|value| *value = 0);
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_table_gives_the_values_or_there_is_none(rows in prop::collection::vec((0u64..6, 0u64..4), 0..40), of_key in prop::collection::vec(0u64..9, 6)) {
            let keys: Vec<u64> = rows.iter().map(|r| r.0).collect();
            let chosen: Vec<u64> = keys.iter().map(|&k| of_key[k as usize]).collect();
            let found = table(&keys, &chosen, 6).unwrap();
            prop_assert!(keys.iter().zip(&chosen).all(|(&k, &v)| u64::from(found[k as usize]) == v));
            let values: Vec<u64> = rows.iter().map(|r| r.1).collect();
            let is_function = rows.iter().all(|a| rows.iter().all(|b| a.0 != b.0 || a.1 == b.1));
            prop_assert_eq!(table(&keys, &values, 6).is_some(), is_function);
        }
    }
}

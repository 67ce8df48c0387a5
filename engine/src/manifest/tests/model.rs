//! Random deltas against a plain model; replay, and checkpoint + replay, against the states themselves.

use super::super::codec::{decode_checkpoint, decode_delta, encode_checkpoint, encode_delta};
use super::super::delta::{Record, apply};
use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The manifest as a beginner would write it.
#[derive(Debug, Clone, Default)]
struct Model {
    version: u64,
    segments: BTreeMap<u128, BTreeMap<String, (i64, i64)>>,
    orders: BTreeMap<u128, (u64, u64)>,
    writers: BTreeMap<u128, (u64, u64)>,
    jobs: BTreeMap<(String, String), (u64, Vec<u8>)>,
    garbage: BTreeSet<String>,
}

#[derive(Debug, Clone)]
enum Step {
    Add { id: u128, tenants: BTreeSet<u8>, from: i64, span: i64 },
    Merge { inputs: Vec<(u8, u8)>, id: u128 },
    Register { id: u8 },
    Advance { id: u8, stale: bool, by: i8 },
    Forget { id: u8, stale: bool },
    Begin { tenant: u8, key: u8 },
    Update { tenant: u8, key: u8, stale: bool, state: Vec<u8> },
    Finish { tenant: u8, key: u8, stale: bool },
    Drop { pick: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (tenants, small, stale) = (|| 0u8..5, || 0u8..3, || prop::bool::weighted(0.2));
    let id = || 1u128..60;
    let step = prop_oneof![
        4 => (id(), prop::collection::btree_set(tenants(), 0..4), any::<i64>(), any::<i32>())
            .prop_map(|(id, tenants, from, span)| Step::Add { id, tenants, from, span: i64::from(span) }),
        3 => (prop::collection::vec((any::<u8>(), tenants()), 1..4), id()).prop_map(|(inputs, id)| Step::Merge { inputs, id }),
        1 => small().prop_map(|id| Step::Register { id }),
        2 => (small(), stale(), any::<i8>()).prop_map(|(id, stale, by)| Step::Advance { id, stale, by }),
        1 => (small(), stale()).prop_map(|(id, stale)| Step::Forget { id, stale }),
        1 => (tenants(), small()).prop_map(|(tenant, key)| Step::Begin { tenant, key }),
        2 => (tenants(), small(), stale(), prop::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(tenant, key, stale, state)| Step::Update { tenant, key, stale, state }),
        1 => (tenants(), small(), stale()).prop_map(|(tenant, key, stale)| Step::Finish { tenant, key, stale }),
        2 => any::<u8>().prop_map(|pick| Step::Drop { pick }),
    ];
    prop::collection::vec(step, 0..120)
}

fn name(tenant: u8) -> String {
    format!("tenant-{tenant}")
}

/// The delta of `step`, and what the model makes of it: the model after it, or the kind of the refusal.
fn judge(model: &Model, step: &Step) -> (Delta, Result<Model, ErrorKind>) {
    let mut after = model.clone();
    after.version += 1;
    let version = after.version;
    let mut delta = Delta::default();
    let mut verdict = Ok(());
    match step {
        Step::Add { id, tenants, from, span } => {
            let end = from.saturating_add(*span);
            delta = adding(vec![fresh(*id, tenants.iter().rev().map(|t| part(&name(*t), *from, end)).collect())]);
            let known = model.segments.contains_key(id) || model.garbage.contains(&delta.added[0].key);
            if known {
                verdict = Err(ErrorKind::Busy);
            } else if tenants.is_empty() || end < *from {
                verdict = Err(ErrorKind::Invalid);
            }
            after.segments.insert(*id, tenants.iter().map(|t| (name(*t), (*from, end))).collect());
            after.orders.insert(*id, (version << 16, version << 16));
        }
        Step::Merge { inputs, id } => return judge_merge(model, after, inputs, *id),
        Step::Register { id } => {
            let position = model.writers.get(&u128::from(*id)).map_or(0, |w| w.1);
            after.writers.insert(u128::from(*id), (version, position));
            delta.writers.push(WriterChange::Register { id: u128::from(*id) });
        }
        Step::Advance { id, stale, by } => {
            let id = u128::from(*id);
            let (epoch, position) = model.writers.get(&id).copied().unwrap_or_default();
            let (said, wal_position) = (epoch.wrapping_sub(u64::from(*stale)), position.saturating_add_signed(i64::from(*by)));
            verdict = if *stale || epoch == 0 {
                Err(ErrorKind::Fenced)
            } else if wal_position < position {
                Err(ErrorKind::Invalid)
            } else {
                Ok(())
            };
            after.writers.insert(id, (epoch, wal_position));
            delta.writers.push(WriterChange::Advance { id, epoch: said, wal_position });
        }
        Step::Forget { id, stale } => {
            let id = u128::from(*id);
            let epoch = model.writers.get(&id).map_or(0, |w| w.0);
            verdict = if *stale || epoch == 0 { Err(ErrorKind::Fenced) } else { Ok(()) };
            after.writers.remove(&id);
            delta.writers.push(WriterChange::Forget { id, epoch: epoch.wrapping_sub(u64::from(*stale)) });
        }
        Step::Begin { tenant: t, key } => {
            let entry = after.jobs.entry((name(*t), key.to_string())).or_default();
            entry.0 = version;
            delta.jobs.push(JobChange::Begin { tenant: tenant(&name(*t)), key: key.to_string() });
        }
        Step::Update { tenant: t, key, stale, state } => {
            let place = (name(*t), key.to_string());
            let epoch = model.jobs.get(&place).map_or(0, |j| j.0);
            verdict = if *stale || epoch == 0 { Err(ErrorKind::Fenced) } else { Ok(()) };
            after.jobs.insert(place, (epoch, state.clone()));
            let epoch = epoch.wrapping_sub(u64::from(*stale));
            delta.jobs.push(JobChange::Update { tenant: tenant(&name(*t)), key: key.to_string(), epoch, state: state.clone() });
        }
        Step::Finish { tenant: t, key, stale } => {
            let place = (name(*t), key.to_string());
            let epoch = model.jobs.get(&place).map_or(0, |j| j.0);
            verdict = if *stale || epoch == 0 { Err(ErrorKind::Fenced) } else { Ok(()) };
            after.jobs.remove(&place);
            let epoch = epoch.wrapping_sub(u64::from(*stale));
            delta.jobs.push(JobChange::Finish { tenant: tenant(&name(*t)), key: key.to_string(), epoch });
        }
        Step::Drop { pick } => {
            let known = model.garbage.iter().nth(usize::from(*pick) % 16).cloned();
            verdict = known.as_ref().map(|_| ()).ok_or(ErrorKind::Busy);
            let key = known.unwrap_or_else(|| "no such key".to_string());
            after.garbage.remove(&key);
            delta.garbage_dropped.push(key);
        }
    }
    (delta, verdict.map(|()| after))
}

/// A compaction of one tenant's parts of several segments into one new segment.
fn judge_merge(model: &Model, mut after: Model, inputs: &[(u8, u8)], id: u128) -> (Delta, Result<Model, ErrorKind>) {
    let mut delta = Delta::default();
    let mut orders: Vec<(u64, u64)> = Vec::new();
    let mut verdict = Ok(());
    for (pick, t) in inputs {
        let input = model.segments.keys().nth(usize::from(*pick) % 16).copied().unwrap_or(999);
        delta.removed.push((input, tenant(&name(*t))));
        orders.extend(model.orders.get(&input));
        let Some(parts) = after.segments.get_mut(&input) else {
            verdict = Err(ErrorKind::Busy);
            continue;
        };
        if parts.remove(&name(*t)).is_none() {
            verdict = Err(ErrorKind::Busy);
        }
        if parts.is_empty() {
            after.segments.remove(&input);
            after.garbage.insert(format!("segments/{input:032x}"));
        }
    }
    let order_min = orders.iter().map(|o| o.0).min().unwrap_or(1 << 16);
    let order = orders.iter().map(|o| o.1).max().unwrap_or(1 << 16);
    let out = SegmentMeta { level: 1, order_min, order, ..fresh(id, vec![part("tenant-0", -5, 5)]) };
    if after.segments.contains_key(&id) || after.garbage.contains(&out.key) {
        verdict = verdict.and(Err(ErrorKind::Busy));
    }
    after.segments.insert(id, BTreeMap::from([("tenant-0".to_string(), (-5, 5))]));
    after.orders.insert(id, (order_min, order));
    delta.added.push(out);
    (delta, verdict.map(|()| after))
}

fn same(state: &State, model: &Model) {
    assert_eq!(state.version(), model.version);
    assert_eq!(state.segment_count(), model.segments.len());
    for (segment, (id, parts)) in state.segments().zip(&model.segments) {
        let found: BTreeMap<_, _> = segment.parts.iter().map(|p| (p.tenant.to_string(), (p.timestamp_min, p.timestamp_max))).collect();
        assert_eq!((segment.id, &found, &(segment.order_min, segment.order)), (*id, parts, &model.orders[id]));
    }
    for t in 0..5 {
        for (from, to) in [(i64::MIN, i64::MAX), (0, 0), (-1 << 40, 1 << 62), (1, i64::MAX)] {
            let found: BTreeSet<u128> = state.parts(&tenant(&name(t)), &(from..=to)).iter().map(|p| p.segment.id).collect();
            let fits = |parts: &BTreeMap<String, (i64, i64)>| parts.get(&name(t)).is_some_and(|p| p.0 <= to && p.1 >= from);
            let wanted: BTreeSet<u128> = model.segments.iter().filter(|(_, parts)| fits(parts)).map(|(id, _)| *id).collect();
            assert_eq!(found, wanted);
        }
    }
    let tenants: BTreeSet<String> = model.segments.values().flat_map(|parts| parts.keys().cloned()).collect();
    assert!(state.tenants().map(ToString::to_string).eq(tenants));
    assert!(state.writers().map(|(id, w)| (id, (w.epoch, w.wal_position))).eq(model.writers.iter().map(|(id, w)| (*id, *w))));
    assert!(state.jobs().map(|(t, k, j)| ((t.to_string(), k.to_string()), (j.epoch, j.state.to_vec()))).eq(model.jobs.clone()));
    assert!(state.garbage().map(|(key, _)| key.to_string()).eq(model.garbage.iter().cloned()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn replay_and_checkpoints_equal_the_model(steps in steps(), cut in any::<prop::sample::Index>()) {
        let (mut state, mut model) = (State::default(), Model::default());
        let (mut log, mut states) = (Vec::new(), vec![State::default()]);
        for (i, step) in steps.iter().enumerate() {
            let (delta, verdict) = judge(&model, step);
            let record = Record::new(&state, delta, 77 + i as u128, i as i64 - 3).unwrap();
            match (apply(&state, &record), verdict) {
                (Ok(after), Ok(wanted)) => {
                    same(&after, &wanted);
                    (state, model) = (after, wanted);
                    log.push(encode_delta(&record).unwrap());
                    let again = decode_delta("d", log.last().unwrap(), state.version()).unwrap();
                    prop_assert_eq!(again, record);
                    states.push(state.clone());
                }
                (Err(e), Err(kind)) => prop_assert_eq!(e.kind(), kind, "{} for {:?}", e, step),
                (got, wanted) => prop_assert!(false, "{:?}: {:?}, model says {:?}", step, got.err(), wanted.err()),
            }
        }
        let cut = cut.index(states.len());
        let mut from_start = State::default();
        let mut from_checkpoint = decode_checkpoint("c", &encode_checkpoint(&states[cut]).unwrap(), cut as u64).unwrap();
        prop_assert!(from_checkpoint == states[cut]);
        for (i, bytes) in log.iter().enumerate() {
            let record = decode_delta("d", bytes, i as u64 + 1).unwrap();
            from_start = apply(&from_start, &record).unwrap();
            if i >= cut {
                from_checkpoint = apply(&from_checkpoint, &record).unwrap();
            }
        }
        prop_assert!(from_start == state);
        prop_assert!(from_checkpoint == state);
    }
}

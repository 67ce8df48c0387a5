//! Damage at rest. Every object and every WAL file of a small store, each byte flipped, and cut short: the store then says what is wrong and
//! where, or gives exactly what was put in.

use haystore::disk::{Disk, SimDisk};
use haystore::objects::{MemoryObjects, Objects};
use haystore::query::Query;
use haystore::wal::{WalFolder, WalOptions};
use haystore::{Error, ErrorKind, Labels, Tenant};
use haystore_tests::check::{everything, search_all};
use haystore_tests::random::{DAY_NS, Random, START_NS};
use haystore_tests::record::{Rec, batch_of, records_of};
use haystore_tests::rounds::{factor, run};
use haystore_tests::world::{World, copy_of, quiet_options};
use std::path::Path;
use std::sync::Arc;

/// Damages of one object tried, unless the environment asks for more.
const DAMAGES: usize = 250;

/// A store with level-0 and compacted segments of two tenants, a job, garbage, and records only in the WAL.
async fn small_store() -> (World, Vec<(String, bytes::Bytes)>) {
    let objects = Arc::new(MemoryObjects::new());
    let world = World { disk: SimDisk::new(), ..World::with_objects(1, objects.clone(), quiet_options()) };
    let store = world.open().await;
    let mut random = Random::new(11);
    for part in 0..4 {
        for name in ["a", "b"] {
            store.append(&Tenant::new(name).unwrap(), batch_of(&few(&mut random))).await.unwrap();
        }
        store.flush().await.unwrap();
        if part == 2 {
            store.compact().await.unwrap();
        }
    }
    let mut job = store.job(&Tenant::new("a").unwrap(), "left half-way").await.unwrap();
    job.write(batch_of(&few(&mut random)), b"position".to_vec()).await.unwrap();
    job.checkpoint().await.unwrap();
    let mut all = Vec::new();
    for object in objects.list("").await.unwrap() {
        all.push((object.key.clone(), objects.get(&object.key).await.unwrap()));
    }
    (world, all)
}

fn few(random: &mut Random) -> Vec<Rec> {
    let mut records = random.records(30);
    records.iter_mut().for_each(|r| r.timestamp = START_NS + random.below(3) as i64 * DAY_NS);
    records
}

/// How an object is damaged: a bit flipped, or the end cut off.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip { at: usize, bits: u8 },
    Cut { len: usize },
}

impl Damage {
    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Damage::Flip { at, bits } => bytes[at] ^= bits,
            Damage::Cut { len } => bytes.truncate(len),
        }
    }
}

/// All flips and cuts of `len` bytes, or a random choice of them.
fn damages(len: usize, most: usize, random: &mut Random) -> Vec<Damage> {
    let most = most * factor() as usize;
    let mut all = Vec::new();
    for at in 0..len {
        if len <= most || random.below(len) < most {
            all.push(Damage::Flip { at, bits: 1 << random.below(8) });
        }
    }
    all.extend((0..20.min(len)).map(|_| Damage::Cut { len: random.below(len) }));
    all.push(Damage::Cut { len: 0 });
    all
}

/// Everything a reader can ask of the store, by tenant.
async fn read(world: &World) -> Result<Vec<Vec<Rec>>, Error> {
    let store = world.open_reader().await?;
    let mut out = Vec::new();
    for name in ["a", "b"] {
        let tenant = Tenant::new(name).unwrap();
        let scanned = everything(&store, &tenant).await;
        let searched = store.search(&tenant, search_all(Query::default())).await.map(|r| records_of(&r.records));
        if scanned.is_ok() {
            assert_eq!(scanned, searched, "scan and search agree");
        }
        let series: Vec<Labels> = store.series(&tenant, &[], i64::MIN..=i64::MAX).await?;
        let records = scanned?;
        assert!(records.iter().all(|r| series.contains(&r.labels)), "series knows every stream");
        out.push(records);
    }
    Ok(out)
}

#[test]
fn damaged_objects_are_named_or_harmless() {
    run(async {
        let (world, objects) = small_store().await;
        let expected = read(&world).await.unwrap();
        let mut random = Random::new(3);
        let memory_before = address_space();
        let (mut told, mut harmless) = (0, 0);
        for (key, bytes) in &objects {
            for damage in damages(bytes.len(), DAMAGES, &mut random) {
                let damaged = Arc::new(MemoryObjects::new());
                for (other, bytes) in &objects {
                    let mut bytes = bytes.to_vec();
                    if other == key {
                        damage.apply(&mut bytes);
                    }
                    damaged.put(other, bytes.into()).await.unwrap();
                }
                let world = World { objects: damaged, ..world.clone() };
                match read(&world).await {
                    Ok(found) => {
                        assert_eq!(found, expected, "{key}: {damage:?}");
                        harmless += 1;
                    }
                    Err(e) => {
                        assert!(e.kind() == ErrorKind::Corrupt && names(&e, key), "{key}: {damage:?}: {:?}: {e}", e.kind());
                        told += 1;
                    }
                }
                verify_finds(&world, key, damage).await;
            }
        }
        println!("{} objects, {told} damages were told, {harmless} did no harm", objects.len());
        assert!(told > 1000);
        assert!(address_space() < memory_before + (2 << 30), "damage makes the store ask for much memory");
    });
}

fn names(error: &Error, key: &str) -> bool {
    error.message().contains(key) && error.message().contains("byte ")
}

/// A check of everything finds damage in any live segment, also where queries never look.
async fn verify_finds(world: &World, key: &str, damage: Damage) {
    let Ok(store) = world.open_reader().await else { return };
    let live = store.usage().await.map_or(true, |u| u.segments.iter().any(|s| s.key == key));
    let found = store.verify(|_, _| {}).await.unwrap().damage;
    if live {
        assert!(found.iter().any(|d| d.contains(key) && d.contains("byte ")), "{key}: {damage:?}: {found:?}");
    } else {
        assert_eq!(found, Vec::<String>::new(), "{key}: {damage:?}");
    }
}

/// The most address space this process has had, in bytes; 0 where the system does not say.
fn address_space() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|l| l.strip_prefix("VmPeak:")).and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// A WAL of several files and batches, with what each batch holds.
async fn small_wal() -> (SimDisk, Vec<Vec<Rec>>) {
    let mut world = World { disk: SimDisk::new(), ..World::in_memory(1, quiet_options()) };
    let (mut random, mut batches) = (Random::new(12), Vec::new());
    for _ in 0..3 {
        let store = world.open().await;
        for _ in 0..3 {
            let records = few(&mut random);
            store.append(&Tenant::default(), batch_of(&records)).await.unwrap();
            batches.push(records);
        }
        world.crash();
        drop(store);
    }
    (world.disk, batches)
}

#[test]
fn a_damaged_wal_gives_whole_batches_and_says_what_it_lost() {
    run(async {
        let (disk, batches) = small_wal().await;
        let dir = Path::new("/wal");
        let names: Vec<String> = disk.list(dir).unwrap().into_iter().map(|e| e.name).collect();
        let files: Vec<(String, Vec<u8>)> = names.into_iter().map(|n| (n.clone(), disk.read(&dir.join(n)).unwrap())).collect();
        let newest = files.iter().map(|(name, _)| name).filter(|n| n.ends_with(".wal")).max();
        let (mut random, mut lost_some) = (Random::new(4), 0);
        for (name, bytes) in &files {
            for damage in damages(bytes.len(), 8 * DAMAGES, &mut random) {
                let damaged = SimDisk::new();
                damaged.create_dir_all(dir).unwrap();
                for (other, bytes) in &files {
                    let mut bytes = bytes.clone();
                    if other == name {
                        damage.apply(&mut bytes);
                    }
                    damaged.write_new(&dir.join(other), &bytes).unwrap();
                }
                damaged.sync_dir(dir).unwrap();
                let (found, reports) = recovered(damaged.clone(), dir).unwrap_or_else(|e| panic!("{name}: {damage:?}: {e}"));
                let lost = lost(&found, &batches).unwrap_or_else(|| panic!("{name}: {damage:?}: {} batches, not these", found.len()));
                let told = reports.iter().any(|r| r.contains(name) && r.contains("byte"));
                // The newest file cut at a frame's end is as one to which nothing more was written.
                let cut_newest = matches!(damage, Damage::Cut { .. }) && Some(name) == newest;
                assert!(lost == 0 || told || cut_newest, "{name}: {damage:?}: {lost} batches lost, told: {reports:?}");
                lost_some += usize::from(lost > 0);
            }
        }
        println!("{} files, {lost_some} damages lost batches", files.len());
        assert!(lost_some > 100);
    });
}

type Recovered = (Vec<Vec<Rec>>, Vec<String>);

fn recovered(disk: SimDisk, dir: &Path) -> Result<Recovered, Error> {
    let mut found = Vec::new();
    let folder = WalFolder::open(Arc::new(disk), dir, WalOptions::default())?;
    let mut deliver = |_, _, batch: haystore::Batch| {
        found.push(records_of(&batch));
        Ok(())
    };
    let (_, recovery) = folder.recover(0, &mut deliver, None)?;
    Ok((found, recovery.torn.iter().chain(&recovery.damaged).map(ToString::to_string).collect()))
}

/// How many of `batches` are missing in `found`; `None` when there is anything else in it, or another order.
fn lost(found: &[Vec<Rec>], batches: &[Vec<Rec>]) -> Option<usize> {
    let mut expected = batches.iter();
    found.iter().all(|batch| expected.any(|b| b == batch)).then(|| batches.len() - found.len())
}

/// Through the whole store: it opens, gives what is left, and takes records again, which the next process finds.
#[test]
fn a_store_with_a_damaged_wal_starts_and_goes_on() {
    run(async {
        let (disk, batches) = small_wal().await;
        let files: Vec<String> =
            disk.list(Path::new("/wal")).unwrap().into_iter().map(|e| e.name).filter(|n| n.ends_with(".wal")).collect();
        let mut random = Random::new(6);
        for round in 0..60 * factor() {
            let disk = copy_of(&disk);
            let path = Path::new("/wal").join(random.pick(&files));
            disk.damage(&path, |bytes| {
                let at = 56 + random.below(bytes.len().saturating_sub(56).max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            })
            .unwrap();
            let mut world = World { disk, ..World::in_memory(round, quiet_options()) };
            let (store, tenant) = (world.open().await, Tenant::default());
            let left = everything(&store, &tenant).await.unwrap();
            assert!(left.iter().all(|r| batches.iter().any(|b| b.contains(r))), "round {round}: a record nobody sent");
            let more = vec![Rec::plain(1, &Labels::new([("new", "1")]), "after the damage")];
            store.append(&tenant, batch_of(&more)).await.unwrap();
            world.crash();
            drop(store);
            let store = world.open().await;
            let again = everything(&store, &tenant).await.unwrap();
            assert_eq!(again.len(), left.len() + 1, "round {round}");
            assert!(again.contains(&more[0]), "round {round}");
            store.flush().await.unwrap();
            assert_eq!(everything(&store, &tenant).await.unwrap(), again, "round {round}");
        }
    });
}

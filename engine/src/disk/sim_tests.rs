//! The simulated disk forgets what was not synced: the canary of every crash test.

use super::*;
use std::collections::HashSet;

/// What every disk does.
pub(in crate::disk) fn check_disk(disk: &dyn Disk, root: &Path) {
    let dir = root.join("a/b");
    disk.create_dir_all(&dir).unwrap();
    disk.create_dir_all(&dir).unwrap();
    let file = dir.join("x");
    let mut handle = disk.create_new(&file).unwrap();
    handle.append(b"hello ").unwrap();
    handle.append(b"world").unwrap();
    handle.sync().unwrap();
    assert_eq!(handle.len(), 11);
    assert_eq!(disk.create_new(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(disk.read(&file).unwrap(), b"hello world");
    assert_eq!(disk.read_range(&file, 6, 5).unwrap(), b"world");
    assert_eq!(disk.read_range(&file, 6, 6).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    disk.truncate(&file, 5).unwrap();
    disk.truncate(&file, 50).unwrap();
    assert_eq!(disk.len(&file).unwrap(), 5);
    let mut handle = disk.open_append(&file).unwrap();
    assert_eq!(handle.len(), 5);
    handle.append(b"!").unwrap();
    let second = dir.join("y");
    disk.hard_link(&file, &second).unwrap();
    assert_eq!(disk.hard_link(&file, &second).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    disk.remove(&file).unwrap();
    assert_eq!(disk.remove(&file).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(disk.read(&second).unwrap(), b"hello!");
    disk.write_new(&dir.join("z"), b"old").unwrap();
    disk.rename(&second, &dir.join("z")).unwrap();
    disk.sync_dir(&dir).unwrap();
    let names: Vec<(String, u64)> = disk.list(&dir).unwrap().into_iter().map(|e| (e.name, e.len)).collect();
    assert_eq!(names, [("z".to_string(), 6)]);
    assert!(disk.list(&root.join("a")).unwrap()[0].is_dir);
    assert_eq!(disk.list(&root.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(disk.len(&root.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(disk.create_new(&root.join("none/x")).unwrap_err().kind(), io::ErrorKind::NotFound);
    let guard = disk.lock(&dir.join("LOCK")).unwrap();
    assert_eq!(disk.lock(&dir.join("LOCK")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(guard);
    drop(disk.lock(&dir.join("LOCK")).unwrap());
}

fn dir_with_x(disk: &SimDisk) -> (PathBuf, PathBuf) {
    let dir = PathBuf::from("/d");
    disk.create_dir_all(&dir).unwrap();
    let path = dir.join("x");
    disk.write_new(&path, b"durable").unwrap();
    disk.sync_dir(&dir).unwrap();
    (dir, path)
}

#[test]
fn the_simulated_disk_does_what_the_trait_says() {
    check_disk(&SimDisk::new(), Path::new("/root"));
    check_disk(&SimDisk::seeded(1), Path::new("relative"));
}

#[test]
fn canary_unsynced_bytes_are_lost() {
    let disk = SimDisk::new();
    let (_, path) = dir_with_x(&disk);
    disk.open_append(&path).unwrap().append(b" and more").unwrap();
    assert_eq!(disk.read(&path).unwrap(), b"durable and more");
    assert_eq!(disk.crash().read(&path).unwrap(), b"durable");
}

#[test]
fn canary_unsynced_names_are_lost() {
    let disk = SimDisk::new();
    let (dir, path) = dir_with_x(&disk);
    disk.write_new(&dir.join("new"), b"1").unwrap();
    disk.rename(&path, &dir.join("moved")).unwrap();
    let disk = disk.crash();
    assert_eq!(disk.list(&dir).unwrap().len(), 1);
    assert_eq!(disk.read(&path).unwrap(), b"durable");
    disk.remove(&path).unwrap();
    let disk = disk.crash();
    assert_eq!(disk.read(&path).unwrap(), b"durable");
    disk.hard_link(&path, &dir.join("second")).unwrap();
    disk.sync_dir(&dir).unwrap();
    assert_eq!(disk.crash().list(&dir).unwrap().len(), 2);
}

#[test]
fn canary_a_failed_sync_loses_bytes_though_a_later_one_succeeds() {
    let disk = SimDisk::new();
    let (_, path) = dir_with_x(&disk);
    let mut file = disk.open_append(&path).unwrap();
    file.append(b"bad").unwrap();
    disk.fail_at(1);
    file.sync().unwrap_err();
    file.append(b"good").unwrap();
    file.sync().unwrap();
    assert_eq!(disk.crash().read(&path).unwrap(), b"durable\0\0\0good");
}

#[test]
fn canary_a_seeded_crash_tears_at_every_byte() {
    let mut lengths = HashSet::new();
    let mut names = HashSet::new();
    for seed in 0..200 {
        let disk = SimDisk::seeded(seed);
        let (dir, path) = dir_with_x(&disk);
        disk.open_append(&path).unwrap().append(b"12345").unwrap();
        disk.rename(&path, &dir.join("y")).unwrap();
        let disk = disk.crash();
        let left = disk.list(&dir).unwrap();
        assert_eq!(left.len(), 1, "a rename is done whole or not at all");
        names.insert(left[0].name.clone());
        lengths.insert(left[0].len);
        assert!(disk.read(&dir.join(&left[0].name)).unwrap().starts_with(b"durable"));
    }
    assert_eq!(lengths, (7..=12).collect());
    assert_eq!(names.len(), 2);
}

#[test]
fn dead_handles_fail_and_locks_are_freed() {
    let disk = SimDisk::new();
    let (dir, path) = dir_with_x(&disk);
    let _lock = disk.lock(&dir.join("LOCK")).unwrap();
    let mut file = disk.open_append(&path).unwrap();
    let next = disk.crash();
    file.append(b"x").unwrap_err();
    disk.read(&path).unwrap_err();
    let _again = next.lock(&dir.join("LOCK")).unwrap();
    drop(_lock);
    assert_eq!(next.lock(&dir.join("LOCK")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn the_nth_call_fails() {
    let disk = SimDisk::new();
    let (_, path) = dir_with_x(&disk);
    disk.fail_at(2);
    disk.read(&path).unwrap();
    disk.read(&path).unwrap_err();
    disk.read(&path).unwrap();
    disk.fail_from(1);
    disk.read(&path).unwrap_err();
    disk.read(&path).unwrap_err();
    disk.heal();
    disk.read(&path).unwrap();
}

//! The golden folders: their files, and `INDEX`, which names each with its length and CRC-32.
//!
//! A segment's expected output lies beside it as `.expected`, compressed to `.expected.zst` where it would be larger than a golden file may be.

use super::{EFFORT, damage, segment_of, sets};
use haystore_format::decoder::{decode, dump::dump};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest golden file.
pub const FILE_BYTES_MAX: usize = 64 << 10;

/// File name and contents.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The folder `format-spec/golden/<name>`.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/golden").join(name)
}

/// The files of a folder, `INDEX` too.
pub fn read(name: &str) -> Files {
    let entries = std::fs::read_dir(folder(name)).unwrap().map(|e| e.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

/// The text of `INDEX` for `files`.
pub fn index(files: &Files) -> String {
    files.iter().map(|(name, bytes)| format!("{name} {} {:08x}\n", bytes.len(), crc32fast::hash(bytes))).collect()
}

/// The segments of a folder and the expected text of each, as far as the files give one.
pub fn pairs(files: &Files) -> Vec<(String, Vec<u8>, String)> {
    let text = |stem: &str| match (files.get(&format!("{stem}.expected")), files.get(&format!("{stem}.expected.zst"))) {
        (Some(text), None) => text.clone(),
        (None, Some(packed)) => zstd::stream::decode_all(&packed[..]).unwrap(),
        _ => panic!("{stem} has not exactly one expected output"),
    };
    let segments = files.iter().filter_map(|(name, bytes)| Some((name.strip_suffix(".segment")?, bytes)));
    segments.map(|(stem, bytes)| (stem.to_string(), bytes.clone(), String::from_utf8(text(stem)).unwrap())).collect()
}

/// Makes the files of `v1` and `bad`; nothing is written.
pub fn make() -> (Files, Files) {
    let mut good = Files::new();
    for (name, tenants) in sets::all() {
        let bytes = segment_of(&tenants, usize::MAX, EFFORT);
        let records = decode(&bytes).unwrap();
        assert_eq!(records, super::stored_order(&tenants), "{name}");
        put(&mut good, name, bytes, dump(&records));
    }
    let mut bad = Files::new();
    for (name, bytes) in damage::all() {
        let error = decode(&bytes).expect_err(name);
        put(&mut bad, name, bytes, format!("{error}\n"));
    }
    (good, bad)
}

fn put(files: &mut Files, name: &str, segment: Vec<u8>, expected: String) {
    println!("{name}: {} bytes, {} expected", segment.len(), expected.len());
    assert!(segment.len() <= FILE_BYTES_MAX, "{name} is too large");
    files.insert(format!("{name}.segment"), segment);
    if expected.len() <= FILE_BYTES_MAX {
        files.insert(format!("{name}.expected"), expected.into_bytes());
    } else {
        let packed = zstd::stream::encode_all(expected.as_bytes(), 19).unwrap();
        assert!(packed.len() <= FILE_BYTES_MAX, "{name}.expected is too large");
        files.insert(format!("{name}.expected.zst"), packed);
    }
}

/// Writes `files` and their index into the folder; what it held before is gone.
pub fn write(name: &str, files: &Files) {
    let folder = folder(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    for (file, bytes) in files {
        std::fs::write(folder.join(file), bytes).unwrap();
    }
    std::fs::write(folder.join("INDEX"), index(files)).unwrap();
}

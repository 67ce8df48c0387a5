//! A file, packed or not: every question is a `grep -F` through all of it.

use super::packing::Packing;
use super::tree_bytes;
use crate::logs::{each_line, matching_lines, whole_lines};
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Take, Task, Way};
use anyhow::Result;
use std::fs::{self, File};
use std::path::PathBuf;

/// All logs in one file.
#[derive(Debug)]
pub struct Packed {
    task: Task,
    packing: Packing,
    path: PathBuf,
}

impl Packed {
    /// Not written yet.
    pub fn new(task: &Task, packing: Packing) -> Self {
        let mut packed = Packed { task: task.clone(), packing, path: PathBuf::new() };
        packed.path = task.folder.join(packed.name()).join("logs");
        packed
    }
}

impl Peer for Packed {
    fn name(&self) -> &'static str {
        match self.packing {
            Packing::None => "plain",
            Packing::Gzip => "gzip-6",
            Packing::Zstd3 => "zstd-3",
            Packing::Zstd19Long => super::SLOWEST,
        }
    }

    fn keeps(&self) -> Keeps {
        let how = match self.packing {
            Packing::None => "one file of all lines; searched as grep -F would",
            Packing::Gzip => "one stream, level 6; unpacked and searched whole",
            Packing::Zstd3 => "one stream, level 3; unpacked and searched whole",
            Packing::Zstd19Long => "one stream, level 19, window 128 MiB; unpacked and searched whole",
        };
        Keeps { bytes: Bytes::Exact, order: Order::Files, substring: Way::Scan, token: Way::Scan, fields: "no", how }
    }

    fn ingest(&mut self) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        self.packing.write(File::create(&self.path)?, |out| self.task.logs.text(&mut |text| Ok(out.write_all(text)?)))
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        tree_bytes(&self.path).map(Some)
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        let finder = memchr::memmem::Finder::new(&needle.text);
        whole_lines(self.packing.reader(&self.path)?, &mut |text| matching_lines(text, &finder, take))
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        whole_lines(self.packing.reader(&self.path)?, &mut |text| each_line(text, take))
    }
}

//! Parquet: a file of two columns, the time (when lines hold one) and the line, both under zstd.

use super::tree_bytes;
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Take, Task, Way};
use anyhow::{Context, Result, bail};
use haystore::{Batch, Labels};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of lines at which a row group ends; they are held in memory until then.
const GROUP_BYTES: usize = 64 << 20;
/// Values read at a time.
const READ_ROWS: usize = 4096;

/// One Parquet file.
#[derive(Debug)]
pub struct Parquet {
    task: Task,
    path: PathBuf,
}

impl Parquet {
    /// Not written yet.
    pub fn new(task: &Task) -> Self {
        Parquet { path: task.folder.join("parquet-zstd").join("logs.parquet"), task: task.clone() }
    }
}

/// Rows of a row group that is not written yet.
#[derive(Debug, Default)]
struct Group {
    times: Vec<i64>,
    lines: Vec<ByteArray>,
    bytes: usize,
}

impl Group {
    fn add(&mut self, batch: &Batch) {
        self.times.extend_from_slice(batch.timestamps());
        self.lines.extend((0..batch.len()).map(|row| ByteArray::from(batch.line(row).to_vec())));
        self.bytes += batch.line_bytes();
    }

    fn write(&mut self, writer: &mut SerializedFileWriter<File>, with_times: bool) -> Result<()> {
        let mut group = writer.next_row_group()?;
        if with_times {
            let mut column = group.next_column()?.context("the column of times is missing")?;
            column.typed::<Int64Type>().write_batch(&self.times, None, None)?;
            column.close()?;
        }
        let mut column = group.next_column()?.context("the column of lines is missing")?;
        column.typed::<ByteArrayType>().write_batch(&self.lines, None, None)?;
        column.close()?;
        group.close()?;
        *self = Group::default();
        Ok(())
    }
}

impl Peer for Parquet {
    fn name(&self) -> &'static str {
        "parquet-zstd"
    }

    fn keeps(&self) -> Keeps {
        let fields = if self.task.times.is_some() { "time" } else { "no" };
        let how = "columns time and line, zstd -3, dictionaries on, row groups of 64 MiB of lines; searched by reading the line column";
        Keeps { bytes: Bytes::Exact, order: Order::Files, substring: Way::Scan, token: Way::Scan, fields, how }
    }

    fn ingest(&mut self) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let with_times = self.task.times.is_some();
        let time = if with_times { "required int64 timestamp (TIMESTAMP(NANOS,true));" } else { "" };
        let schema = Arc::new(parse_message_type(&format!("message logs {{ {time} required binary line; }}"))?);
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build();
        let mut writer = SerializedFileWriter::new(File::create(&self.path)?, schema, Arc::new(properties))?;
        let mut group = Group::default();
        self.task.logs.records(&Labels::default(), &mut |batch| {
            group.add(batch);
            if group.bytes >= GROUP_BYTES { group.write(&mut writer, with_times) } else { Ok(()) }
        })?;
        if !group.lines.is_empty() {
            group.write(&mut writer, with_times)?;
        }
        writer.into_inner()?.sync_all()?;
        Ok(())
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        tree_bytes(&self.path).map(Some)
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        let finder = memchr::memmem::Finder::new(&needle.text);
        self.read_all(&mut |line| if finder.find(line).is_some() { take(line) } else { Ok(()) })
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        let reader = SerializedFileReader::new(File::open(&self.path)?)?;
        let mut values = Vec::with_capacity(READ_ROWS);
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            let ColumnReader::ByteArrayColumnReader(mut column) = group.get_column_reader(group.num_columns() - 1)? else {
                bail!("the column of lines holds no bytes");
            };
            loop {
                values.clear();
                if column.read_records(READ_ROWS, None, None, &mut values)?.0 == 0 {
                    break;
                }
                values.iter().try_for_each(|value: &ByteArray| take(value.data()))?;
            }
        }
        Ok(())
    }
}

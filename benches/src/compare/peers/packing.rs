//! General compressors as streams to a file and back.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// The window of `zstd --long`: 2 to this power bytes.
const LONG_WINDOW_LOG: u32 = 27;

/// A compressor with its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// None at all.
    None,
    /// `gzip -6`
    Gzip,
    /// `zstd -3`
    Zstd3,
    /// `zstd -19 --long=27`
    Zstd19Long,
}

impl Packing {
    /// The file that `path` names, to be read unpacked.
    ///
    /// # Errors
    /// Those of the file.
    pub fn reader(self, path: &Path) -> Result<Box<dyn Read>> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = BufReader::with_capacity(1 << 18, file);
        Ok(match self {
            Packing::None => Box::new(file),
            Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Packing::Zstd3 | Packing::Zstd19Long => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(file)?;
                decoder.window_log_max(LONG_WINDOW_LOG)?;
                Box::new(decoder)
            }
        })
    }

    /// Lets `fill` write what shall be packed to `file`.
    ///
    /// # Errors
    /// Those of the file and of `fill`.
    pub fn write(self, file: File, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let file = match self {
            Packing::None => {
                let mut file = file;
                fill(&mut file)?;
                file
            }
            Packing::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::new(6));
                fill(&mut encoder)?;
                encoder.finish()?
            }
            Packing::Zstd3 | Packing::Zstd19Long => {
                let level = if self == Packing::Zstd3 { 3 } else { 19 };
                let mut encoder = zstd::stream::write::Encoder::new(file, level)?;
                if self == Packing::Zstd19Long {
                    encoder.long_distance_matching(true)?;
                    encoder.window_log(LONG_WINDOW_LOG)?;
                }
                fill(&mut encoder)?;
                encoder.finish()?
            }
        };
        file.sync_all().context("cannot sync")
    }
}

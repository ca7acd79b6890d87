//! Row files: a header of 64 bytes and rows of one length; and how f32 rows become int8 rows.

use super::{VectorError, format_error};
use crate::error::IoContext;
use memmap2::Mmap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Bytes of the header of a row file.
pub(super) const HEADER_BYTES: usize = 64;
const VERSION: u32 = 1;

/// Writes a row file.
pub(super) fn write_file(
    path: &Path,
    magic: &[u8; 8],
    dim: u32,
    count: usize,
    parts: &[&[u8]],
) -> Result<(), VectorError> {
    let mut header = [0u8; HEADER_BYTES];
    header[..8].copy_from_slice(magic);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&dim.to_le_bytes());
    header[16..24].copy_from_slice(&(count as u64).to_le_bytes());
    let mut file = BufWriter::new(File::create(path).at("create", path)?);
    file.write_all(&header).at("write", path)?;
    for part in parts {
        file.write_all(part).at("write", path)?;
    }
    file.flush().at("write", path)?;
    Ok(())
}

/// Quantised rows and their scales.
pub(super) fn quantise_rows(dim: usize, rows: &[f32]) -> (Vec<i8>, Vec<f32>) {
    let mut quantised = vec![0i8; rows.len()];
    let scales = rows
        .chunks_exact(dim.max(1))
        .zip(quantised.chunks_exact_mut(dim.max(1)))
        .map(|(row, out)| quantise(row, out))
        .collect();
    (quantised, scales)
}

/// Scales a row to -127..127 and returns the factor that undoes it.
pub(super) fn quantise(row: &[f32], out: &mut [i8]) -> f32 {
    let max = row.iter().fold(0f32, |m, v| m.max(v.abs()));
    if max == 0.0 {
        out.fill(0);
        return 0.0;
    }
    let factor = 127.0 / max;
    for (o, v) in out.iter_mut().zip(row) {
        #[expect(clippy::cast_possible_truncation, reason = "the value is within -127..=127")]
        {
            *o = (v * factor).round() as i8;
        }
    }
    1.0 / factor
}

/// Memory-mapped rows after their header.
pub(super) struct Rows {
    map: Mmap,
    /// The length of a row.
    pub(super) dim: usize,
    /// The number of rows.
    pub(super) count: usize,
}

impl Rows {
    #[expect(unsafe_code, reason = "mapping a file")]
    /// Maps a file; `bytes_of` tells the size of the body from the length and the number of rows.
    pub(super) fn open(
        path: &Path,
        magic: &[u8; 8],
        bytes_of: impl Fn(usize, usize) -> usize,
    ) -> Result<Self, VectorError> {
        let file = File::open(path).at("open", path)?;
        // SAFETY: a generation is immutable once published: ingest writes it under another name and
        // never touches it again, other writers break the documented contract of the directory.
        let map = unsafe { Mmap::map(&file) }.at("map", path)?;
        let header = map
            .get(..HEADER_BYTES)
            .ok_or_else(|| format_error(path, "it is shorter than its header"))?;
        let u32_at = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if &header[..8] != magic {
            return Err(format_error(path, "it does not start with the right magic bytes"));
        }
        if u32_at(8) != VERSION {
            return Err(format_error(
                path,
                format!("version {} is not known, {VERSION} is", u32_at(8)),
            ));
        }
        let (dim, count) = (u32_at(12) as usize, u32_at(16) as usize);
        if u32_at(20) != 0 || map.len() != HEADER_BYTES + bytes_of(dim, count) {
            return Err(format_error(
                path,
                format!("{} bytes do not hold {count} rows of {dim}", map.len()),
            ));
        }
        Ok(Self { map, dim, count })
    }

    /// All after the header.
    pub(super) fn body(&self) -> &[u8] {
        &self.map[HEADER_BYTES..]
    }
}

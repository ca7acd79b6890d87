//! The raw text of a document: the bytes under `docs/`, decoded as ingest did, with LF line ends.

use runbook_shared::chunk::DocumentRecord;
use runbook_shared::generation::Generation;
use std::io;

/// Reads a document of an open generation.
///
/// # Errors
/// When the file cannot be read.
pub fn read(generation: &Generation, document: &DocumentRecord) -> io::Result<String> {
    let bytes = std::fs::read(generation.dir.join("docs").join(&document.path))?;
    Ok(decode(bytes, &document.encoding))
}

fn decode(bytes: Vec<u8>, encoding: &str) -> String {
    let text = match encoding {
        "utf-16le" => utf16(&bytes, u16::from_le_bytes),
        "utf-16be" => utf16(&bytes, u16::from_be_bytes),
        "latin-1" => bytes.iter().map(|b| char::from(*b)).collect(),
        _ => String::from_utf8(bytes)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
    };
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text }
}

fn utf16(bytes: &[u8], unit: impl Fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_that_ingest_reads() {
        assert_eq!(decode(b"\xef\xbb\xbfa\r\nb\rc".to_vec(), "utf-8"), "a\nb\nc");
        assert_eq!(decode(b"\xff\xfeh\0i\0".to_vec(), "utf-16le"), "hi");
        assert_eq!(decode(b"\xfe\xff\0h\0i".to_vec(), "utf-16be"), "hi");
        assert_eq!(decode(b"pr\xfcfen".to_vec(), "latin-1"), "prüfen");
    }
}

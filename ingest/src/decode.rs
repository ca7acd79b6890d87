//! Bytes of a document to text with LF line ends, where that is certain.

use crate::select::SkipReason;

/// A decoded document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text: no byte order mark, LF line ends.
    pub text: String,
    /// `utf-8`, `utf-16le`, `utf-16be` or `latin-1`.
    pub encoding: &'static str,
}

/// A decoded document with what is needed to encode it again.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The text; it may be changed, but not the number of its lines.
    pub decoded: Decoded,
    has_mark: bool,
    /// The line ends, in order.
    ends: Vec<&'static str>,
}

impl Encoded {
    /// The bytes of the text, in the encoding and with the line ends that it had.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut text = String::with_capacity(self.decoded.text.len() + self.ends.len());
        let mut ends = self.ends.iter();
        for part in self.decoded.text.split_inclusive('\n') {
            match part.strip_suffix('\n') {
                Some(line) => {
                    text.push_str(line);
                    text.push_str(ends.next().unwrap_or(&"\n"));
                }
                None => text.push_str(part),
            }
        }
        let units = |mark: u16, to_bytes: fn(u16) -> [u8; 2]| {
            std::iter::once(mark).chain(text.encode_utf16()).flat_map(to_bytes).collect()
        };
        match self.decoded.encoding {
            "utf-16le" => units(0xFEFF, u16::to_le_bytes),
            "utf-16be" => units(0xFEFF, u16::to_be_bytes),
            "latin-1" => encoding_rs::mem::encode_latin1_lossy(&text).into_owned(),
            _ if self.has_mark => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            _ => text.into_bytes(),
        }
    }
}

/// Decodes a document so that it can be encoded again.
///
/// # Errors
/// The reason to skip it.
pub fn decode_with_ends(bytes: &[u8]) -> Result<Encoded, SkipReason> {
    let decoded = decode(bytes)?;
    let mut ends = Vec::new();
    let (text, _) = to_text(bytes)?;
    let mut chars = text.bytes().peekable();
    while let Some(byte) = chars.next() {
        match byte {
            b'\r' if chars.peek() == Some(&b'\n') => {
                chars.next();
                ends.push("\r\n");
            }
            b'\r' => ends.push("\r"),
            b'\n' => ends.push("\n"),
            _ => {}
        }
    }
    Ok(Encoded { decoded, has_mark: bytes.starts_with(b"\xef\xbb\xbf"), ends })
}

/// Decodes a document.
///
/// # Errors
/// The reason to skip it.
pub fn decode(bytes: &[u8]) -> Result<Decoded, SkipReason> {
    if bytes.starts_with(b"version https://git-lfs.github.com/spec/v") && bytes.len() < 1024 {
        return Err(SkipReason::LfsPointer);
    }
    let (text, encoding) = to_text(bytes)?;
    if text.contains('\0') {
        return Err(SkipReason::Binary);
    }
    Ok(Decoded { text: unify_line_ends(text), encoding })
}

fn to_text(bytes: &[u8]) -> Result<(String, &'static str), SkipReason> {
    for (mark, encoding, name) in [
        (&b"\xff\xfe"[..], encoding_rs::UTF_16LE, "utf-16le"),
        (&b"\xfe\xff"[..], encoding_rs::UTF_16BE, "utf-16be"),
    ] {
        if let Some(rest) = bytes.strip_prefix(mark) {
            let (text, had_errors) = encoding.decode_without_bom_handling(rest);
            return if had_errors {
                Err(SkipReason::UnknownEncoding)
            } else {
                Ok((text.into_owned(), name))
            };
        }
    }
    if bytes.contains(&0) {
        return Err(SkipReason::Binary);
    }
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(body) {
        return Ok((text.to_owned(), "utf-8"));
    }
    if surely_latin1(body) {
        return Ok((encoding_rs::mem::decode_latin1(body).into_owned(), "latin-1"));
    }
    Err(SkipReason::UnknownEncoding)
}

/// True for text of a Latin script: mostly ASCII, every other byte a letter or sign of Latin-1
/// (0xA0 and up, no C1 control), and most of those within or at the end of a word.
fn surely_latin1(bytes: &[u8]) -> bool {
    let high: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] >= 0x80).collect();
    let letters_beside = |at: &&usize| {
        let beside = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
        beside(at.checked_sub(1).and_then(|before| bytes.get(before)))
            || beside(bytes.get(**at + 1))
    };
    high.len() * 5 <= bytes.len()
        && high.iter().all(|at| bytes[*at] >= 0xA0)
        && high.iter().filter(letters_beside).count() * 10 >= high.len() * 8
}

/// CRLF and a lone CR become LF: CommonMark takes all three as line ends.
fn unify_line_ends(text: String) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_what_is_certain() {
        let ok = |bytes: &[u8]| decode(bytes).map(|d| (d.text, d.encoding));
        assert_eq!(ok(b"\xef\xbb\xbfa\r\nb\rc\n"), Ok(("a\nb\nc\n".into(), "utf-8")));
        assert_eq!(ok(b"\xff\xfeh\0i\0"), Ok(("hi".into(), "utf-16le")));
        assert_eq!(
            ok(b"Ben\xf6tigte Rechte pr\xfcfen, dann sichern"),
            Ok(("Benötigte Rechte prüfen, dann sichern".into(), "latin-1"))
        );
        assert_eq!(ok(b"a\0b"), Err(SkipReason::Binary));
        assert_eq!(ok(b"\x83\x65\x83\x58\x83\x67"), Err(SkipReason::UnknownEncoding));
        assert_eq!(
            ok(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
            Err(SkipReason::LfsPointer)
        );
    }
}

//! Searches one text and prints its lines, as GNU grep does.

use super::pattern::Pattern;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use std::io;

/// Bytes that are looked at to tell text from binary.
const BINARY_LOOK: usize = 32 * 1024;

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Lines.
    #[default]
    Lines,
    /// The parts that match.
    Parts,
    /// Paths of files that match.
    Files,
    /// Paths of files that do not.
    FilesWithout,
    /// The number of lines.
    Count,
    /// Nothing.
    Nothing,
}

/// How it is printed.
#[derive(Clone, Debug, Default)]
pub struct Printing {
    /// What is printed.
    pub show: Show,
    /// Lines that do not match.
    pub invert: bool,
    /// Paths before lines.
    pub path: bool,
    /// Numbers before lines.
    pub number: bool,
    /// Byte offsets before lines.
    pub offset: bool,
    /// The column of the first match, as rg has it.
    pub column: bool,
    /// Lines before a match.
    pub before: usize,
    /// Lines after a match.
    pub after: usize,
    /// Lines for each file.
    pub max_count: Option<u64>,
    /// Binary files as text.
    pub text: bool,
    /// NUL after a path.
    pub null: bool,
    /// Paths stand above their lines, as rg has it on a terminal.
    pub heading: bool,
    /// No line between groups of context.
    pub no_separator: bool,
    /// Files without a match are not counted, as rg has it.
    pub skip_zero: bool,
    /// Binary files are passed over in silence, as `-I`.
    pub skip_binary: bool,
}

/// What one text gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Lines selected.
    pub lines: u64,
    /// First and last line of each run of selected lines and their context.
    pub spans: Vec<[u32; 2]>,
    /// Whether the text is binary and has a match.
    pub binary: bool,
}

/// One search over many texts.
pub struct Engine<'a> {
    pattern: &'a Pattern,
    printing: &'a Printing,
    searcher: Searcher,
    /// Whether a group of lines was printed, so that the next wants a separator.
    printed: bool,
}

impl<'a> Engine<'a> {
    /// An engine.
    #[must_use]
    pub fn new(pattern: &'a Pattern, printing: &'a Printing) -> Self {
        let lines = matches!(printing.show, Show::Lines);
        let searcher = SearcherBuilder::new()
            .invert_match(printing.invert)
            .line_number(matches!(printing.show, Show::Lines | Show::Parts))
            .before_context(if lines { printing.before } else { 0 })
            .after_context(if lines { printing.after } else { 0 })
            .max_matches(match printing.show {
                Show::Files | Show::FilesWithout | Show::Nothing => Some(1),
                _ => printing.max_count,
            })
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .build();
        Self { pattern, printing, searcher, printed: false }
    }

    /// Searches a text; what is printed goes to `out`, a binary file's message to `out` as well.
    ///
    /// # Errors
    /// When the searcher cannot go on; it works in memory, so this does not happen to text.
    pub fn search(&mut self, path: &str, text: &[u8], out: &mut Vec<u8>) -> io::Result<Found> {
        let printing = self.printing;
        if printing.max_count == Some(0) {
            return Ok(Found::default());
        }
        if printing.skip_binary && is_binary(text) {
            return Ok(Found::default());
        }
        let mut sink = Printer {
            pattern: self.pattern,
            printing,
            path,
            text,
            out,
            found: Found::default(),
            begun: false,
            quiet: false,
            headed: false,
            printed: self.printed,
        };
        self.searcher.search_slice(self.pattern.matcher(), text, &mut sink)?;
        self.printed = sink.printed;
        let quiet = sink.quiet;
        let mut found = sink.found;
        let selected = found.lines > 0;
        match printing.show {
            Show::Files if selected => name(out, path, printing.null),
            Show::FilesWithout if !selected => name(out, path, printing.null),
            Show::Count if selected || !printing.skip_zero => {
                if printing.path {
                    out.extend_from_slice(path.as_bytes());
                    out.push(if printing.null { 0 } else { b':' });
                }
                out.extend_from_slice(format!("{}\n", found.lines).as_bytes());
            }
            Show::Lines | Show::Parts if selected && quiet => {
                found.binary = true;
            }
            _ => {}
        }
        Ok(found)
    }
}

fn name(out: &mut Vec<u8>, path: &str, null: bool) {
    out.extend_from_slice(path.as_bytes());
    out.push(if null { 0 } else { b'\n' });
}

/// NUL bytes near the start, or anywhere, make a text binary.
fn is_binary(text: &[u8]) -> bool {
    let look = &text[..text.len().min(BINARY_LOOK)];
    memchr::memchr(0, look).is_some() || memchr::memchr(0, text).is_some()
}

struct Printer<'a, 'b> {
    pattern: &'a Pattern,
    printing: &'a Printing,
    path: &'a str,
    text: &'a [u8],
    out: &'b mut Vec<u8>,
    found: Found,
    /// A line of this text was printed.
    begun: bool,
    /// The text is binary: lines are counted and not printed.
    quiet: bool,
    /// The path stands above the lines already.
    headed: bool,
    /// A line of any text was printed.
    printed: bool,
}

impl Printer<'_, '_> {
    fn span(&mut self, number: Option<u64>) {
        let Some(number) = number.and_then(|n| u32::try_from(n).ok()) else { return };
        match self.found.spans.last_mut() {
            Some(last) if last[1] + 1 >= number => last[1] = last[1].max(number),
            _ => self.found.spans.push([number, number]),
        }
    }

    fn prefix(&mut self, number: Option<u64>, offset: u64, column: Option<usize>, mark: u8) {
        let printing = self.printing;
        if printing.path && !printing.heading {
            self.out.extend_from_slice(self.path.as_bytes());
            self.out.push(if printing.null { 0 } else { mark });
        }
        if printing.number
            && let Some(number) = number
        {
            self.out.extend_from_slice(number.to_string().as_bytes());
            self.out.push(mark);
        }
        if printing.column
            && let Some(column) = column
        {
            self.out.extend_from_slice((column + 1).to_string().as_bytes());
            self.out.push(mark);
        }
        if printing.offset {
            self.out.extend_from_slice(offset.to_string().as_bytes());
            self.out.push(mark);
        }
    }

    fn line(&mut self, number: Option<u64>, offset: u64, line: &[u8], mark: u8) {
        if !self.printing.text && std::str::from_utf8(line).is_err() {
            self.quiet = true;
            return;
        }
        self.head();
        let column = (self.printing.column && mark == b':')
            .then(|| self.pattern.find_at(line, 0).map_or(0, |m| m.start));
        self.prefix(number, offset, column, mark);
        self.out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            self.out.push(b'\n');
        }
        self.printed = true;
    }

    fn head(&mut self) {
        let printing = self.printing;
        let context = printing.before + printing.after > 0 && !printing.heading;
        if !self.begun && self.printed && context && !printing.no_separator {
            self.out.extend_from_slice(b"--\n");
        }
        self.begun = true;
        if printing.heading && printing.path && !self.headed {
            self.headed = true;
            if self.printed {
                self.out.push(b'\n');
            }
            self.out.extend_from_slice(self.path.as_bytes());
            self.out.push(b'\n');
        }
    }

    fn parts(&mut self, number: Option<u64>, offset: u64, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if !self.printing.text && std::str::from_utf8(line).is_err() {
            self.quiet = true;
            return;
        }
        let mut at = 0;
        while at <= line.len() {
            let Some(found) = self.pattern.find_at(line, at) else { break };
            if found.is_empty() {
                at = found.end + 1;
                continue;
            }
            self.head();
            self.prefix(number, offset + found.start as u64, Some(found.start), b':');
            self.out.extend_from_slice(&line[found.clone()]);
            self.out.push(b'\n');
            self.printed = true;
            at = found.end;
        }
    }
}

impl Sink for Printer<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let prints = matches!(self.printing.show, Show::Lines | Show::Parts);
        if prints && self.found.lines == 0 && !self.printing.text && is_binary(self.text) {
            self.quiet = true;
        }
        let mut number = found.line_number();
        let mut offset = found.absolute_byte_offset();
        for line in found.lines() {
            if self.printing.max_count.is_some_and(|most| self.found.lines >= most) {
                // Context of the last line that counts.
                if self.printing.show == Show::Lines && !self.quiet {
                    self.span(number);
                    self.line(number, offset, line, b'-');
                }
                number = number.map(|n| n + 1);
                offset += line.len() as u64;
                continue;
            }
            self.found.lines += 1;
            self.span(number);
            match self.printing.show {
                Show::Lines if !self.quiet => self.line(number, offset, line, b':'),
                Show::Parts if !self.quiet && !self.printing.invert => {
                    self.parts(number, offset, line);
                }
                _ => {}
            }
            number = number.map(|n| n + 1);
            offset += line.len() as u64;
        }
        // Of a binary file the first match says all.
        Ok(!(self.quiet && prints))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let binary = || !self.printing.text && is_binary(self.text);
        // Context before the first match comes before it is known whether the text is binary.
        if self.found.lines == 0 && !self.quiet && binary() {
            self.quiet = true;
        }
        if matches!(self.printing.show, Show::Lines) && !self.quiet {
            self.span(context.line_number());
            let (number, offset) = (context.line_number(), context.absolute_byte_offset());
            self.line(number, offset, context.bytes(), b'-');
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.begun && !self.quiet && !self.printing.no_separator {
            self.out.extend_from_slice(b"--\n");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> io::Result<()> {
        Ok(())
    }
}

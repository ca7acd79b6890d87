//! Pieces to chunks: what is blank goes, definitions are appended, sections are told apart.

use super::{Cutter, OPEN, Piece, Span};
use runbook_shared::chunk::{Chunk, Part, Section};

/// Most definitions appended to one chunk.
const DEFINITIONS_MAX: usize = 64;

impl Cutter<'_> {
    /// Makes chunks of pieces and names them.
    pub(super) fn finish(&self, mut pieces: Vec<Piece>) -> Vec<Chunk> {
        for piece in &mut pieces {
            if piece.leaf == OPEN {
                piece.leaf = OPEN - 1; // Only headings and blank lines follow; keep it as it is.
            }
        }
        pieces.retain(|p| !self.only_definitions(p) && !self.only_blank(p));
        let mut parts: rustc_hash::FxHashMap<usize, u32> = rustc_hash::FxHashMap::default();
        for piece in &pieces {
            *parts.entry(piece.leaf).or_insert(0) += 1;
        }
        let mut seen: rustc_hash::FxHashMap<usize, u32> = rustc_hash::FxHashMap::default();
        let mut names: rustc_hash::FxHashMap<String, u32> = rustc_hash::FxHashMap::default();
        let mut chunks = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let of = parts[&piece.leaf];
            let index = seen.entry(piece.leaf).or_insert(0);
            *index += 1;
            let part = (of > 1).then_some(Part { index: *index, of });
            if let Some(mut chunk) = self.chunk(piece, part) {
                chunk.id = name(&chunk, &mut names);
                chunks.push(chunk);
            }
        }
        chunks
    }

    /// What is left of a block once its rows are cut: the blank lines after it.
    fn only_blank(&self, piece: &Piece) -> bool {
        let lines = Span { from: piece.from, to: piece.to };
        piece.cut_line.as_ref().map_or_else(|| self.is_blank(lines), |cut| cut.trim().is_empty())
    }

    fn only_definitions(&self, piece: &Piece) -> bool {
        let span = piece.from as usize - 1..piece.to as usize;
        let texts = |l: &usize| !self.lines[*l].trim().is_empty();
        span.clone().any(|l| self.definition[l]) && span.filter(texts).all(|l| self.definition[l])
    }

    fn chunk(&self, piece: Piece, part: Option<Part>) -> Option<Chunk> {
        let blank = |l: u32| self.line(l).trim().is_empty();
        let (mut from, mut to) = (piece.from, piece.to);
        let mut lines: Vec<&str> = Vec::new();
        while from < to && blank(from) {
            from += 1;
        }
        if let Some(cut) = &piece.cut_line {
            lines.extend((from..to).map(|l| self.line(l)));
            lines.push(cut);
        } else {
            while to > from && blank(to) {
                to -= 1;
            }
            lines.extend((from..=to).map(|l| self.line(l)));
        }
        let mut appended = piece.appended.clone();
        let own: usize =
            piece.repeated.iter().chain(&appended).map(|l| self.counter.count(l)).sum::<usize>()
                + lines.iter().map(|l| self.counter.count(l)).sum::<usize>();
        self.append_definitions(from, to, own, &mut appended);
        let mut text = String::new();
        for line in &piece.repeated {
            text.push_str(line);
            text.push('\n');
        }
        let body_start = text.len();
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        for line in &appended {
            text.push_str(line);
            text.push('\n');
        }
        let to = to.max(piece.closing);
        let sections = self.sections(from, to, body_start, &text);
        let trail = sections.first().map(|s| s.heading_path.clone())?;
        let anchor = sections.first().map(|s| s.anchor.clone())?;
        let tokens = u32::try_from(self.counter.count(&text)).unwrap_or(u32::MAX);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Some(Chunk {
            id: String::new(),
            path: self.source.path.to_owned(),
            title: self.source.title.to_owned(),
            content_hash: content_hash(self.source.title, &trail, &text),
            heading_path: trail,
            anchor,
            lines: [from, to],
            part,
            tokens,
            repeated: count(piece.repeated.len()),
            appended: count(appended.len()),
            text,
            sections,
        })
    }

    /// Puts the definitions that the lines use, and that stand elsewhere, at the end, as far as they fit.
    fn append_definitions(
        &self,
        from: u32,
        to: u32,
        own_tokens: usize,
        appended: &mut Vec<String>,
    ) {
        let outline = self.source.outline;
        let first = outline.uses.partition_point(|u| u.0 < from);
        let mut used = own_tokens;
        let mut seen: Vec<&str> = Vec::new();
        for (_, label) in outline.uses[first..].iter().take_while(|u| u.0 <= to) {
            let Some(definition) = outline.definitions.get(label) else { continue };
            let within = definition.from >= from && definition.to <= to;
            if within || seen.contains(&label.as_str()) || seen.len() > DEFINITIONS_MAX {
                continue;
            }
            seen.push(label);
            let lines = &self.lines[definition.from as usize - 1..definition.to as usize];
            let size: usize = lines.iter().map(|l| self.counter.count(l)).sum();
            if used + size <= self.cap {
                used += size;
                if appended.last().is_none_or(|l| !l.trim().is_empty()) {
                    appended.push(String::new());
                }
                appended.extend(lines.iter().cloned());
            }
        }
    }

    /// The sections within lines `from..=to`: each begins at a heading; a heading without a body of
    /// its own belongs to the section after it.
    fn sections(&self, from: u32, to: u32, body_start: usize, text: &str) -> Vec<Section> {
        let headings = &self.source.outline.headings;
        let first = headings.partition_point(|h| h.line < from);
        let mut current = first.checked_sub(1);
        let mut bounds: Vec<(u32, Option<usize>)> = vec![(from, current)];
        let mut start = from;
        for (n, heading) in
            headings.iter().enumerate().skip(first).take_while(|(_, h)| h.line <= to)
        {
            let span = Span { from: start, to: heading.line.saturating_sub(1) };
            if start < heading.line && self.has_body(span) {
                bounds.push((heading.line, Some(n)));
                start = heading.line;
            } else if let Some(bound) = bounds.last_mut() {
                bound.1 = Some(n);
            }
            current = Some(n);
        }
        let trailing = bounds.len() > 1 && !self.has_body(Span { from: start, to });
        if trailing {
            bounds.pop();
        }
        let _ = current;
        let offsets = self.offsets(from, body_start, text, &bounds);
        let line_end = |n: usize| bounds.get(n + 1).map_or(to, |b| b.0 - 1);
        bounds
            .iter()
            .enumerate()
            .map(|(n, (line, heading))| Section {
                heading_path: heading.map_or_else(Vec::new, |h| self.trail_texts(h)),
                anchor: heading
                    .map_or_else(String::new, |h| self.source.headings[h].anchor.clone()),
                lines: [*line, self.trim_end(*line, line_end(n))],
                start: offsets[n],
                end: offsets[n + 1],
            })
            .collect()
    }

    fn trim_end(&self, from: u32, to: u32) -> u32 {
        (from..=to).rev().find(|l| !self.line(*l).trim().is_empty()).unwrap_or(from)
    }

    fn offsets(
        &self,
        from: u32,
        body_start: usize,
        text: &str,
        bounds: &[(u32, Option<usize>)],
    ) -> Vec<u32> {
        let cast = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut offsets = vec![0];
        for (line, _) in &bounds[1..] {
            let before: usize = (from..*line).map(|l| self.line(l).len() + 1).sum();
            offsets.push(cast(body_start + before));
        }
        offsets.push(cast(text.len()));
        offsets
    }

    fn trail_texts(&self, heading: usize) -> Vec<String> {
        self.trails[heading].iter().map(|h| self.source.outline.headings[*h].text.clone()).collect()
    }
}

fn content_hash(title: &str, trail: &[String], text: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in std::iter::once(title).chain(trail.iter().map(String::as_str)).chain([text]) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// A name that stays when lines move: path, headings, part, and a number where those repeat.
fn name(chunk: &Chunk, names: &mut rustc_hash::FxHashMap<String, u32>) -> String {
    let part = chunk.part.map_or(0, |p| p.index);
    let key = format!("{}\0{}\0{part}", chunk.path, chunk.heading_path.join("\0"));
    let n = names.entry(key.clone()).or_insert(0);
    *n += 1;
    blake3::hash(format!("{key}\0{n}").as_bytes()).to_hex()[..16].to_owned()
}

//! The lines of a section that hold what an answer claims, as a passage that can be cited.

use super::atoms::Atoms;
use crate::passage::Passage;
use runbook_shared::chunk::{Chunk, Section};

/// The most lines of a quote.
const LINES_MAX: usize = 14;

/// The fewest lines that hold most of these words; none when the section has no line of its own.
pub(super) fn passage(
    chunk: &Chunk,
    section: &Section,
    words: &[(String, bool)],
) -> Option<Passage> {
    let repeated = if section.start == 0 { chunk.repeated as usize } else { 0 };
    let lines: Vec<(u32, &str)> = (section.lines[0]..=section.lines[1])
        .zip(chunk.section_text(section).lines().skip(repeated))
        .collect();
    let held: Vec<Vec<usize>> = lines
        .iter()
        .map(|(_, line)| {
            let atoms = Atoms::of([*line]);
            (0..words.len()).filter(|w| atoms.holds(&words[*w].0, words[*w].1)).collect()
        })
        .collect();
    let says = |at: &usize| lines[*at].1.chars().any(char::is_alphanumeric);
    let (from, to) = best(&held).or_else(|| {
        let heading = |at: &usize| lines[*at].1.trim_start().starts_with('#');
        let first = (0..lines.len())
            .find(|at| says(at) && !heading(at))
            .or_else(|| (0..lines.len()).find(says))?;
        Some((first, (first + LINES_MAX).min(lines.len()) - 1))
    })?;
    let to = (from..=to).rev().find(says)?;
    let quote = lines[from..=to].iter().map(|l| l.1).collect::<Vec<_>>().join("\n");
    let lines = [lines[from].0, lines[to].0];
    Some(Passage { text: quote.clone(), quote, lines, weight: 0.0 })
}

/// The window with the most different words, of those the shortest, of those the first.
fn best(held: &[Vec<usize>]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize, (usize, usize))> = None;
    for from in (0..held.len()).filter(|at| !held[*at].is_empty()) {
        let mut seen: Vec<usize> = Vec::new();
        for (to, line) in held.iter().enumerate().skip(from).take(LINES_MAX) {
            let before = seen.len();
            seen.extend(line.iter().filter(|w| !seen.contains(w)).copied().collect::<Vec<_>>());
            if seen.len() == before {
                continue;
            }
            let (count, length) = (seen.len(), to - from);
            if best.is_none_or(|(c, l, _)| count > c || (count == c && length < l)) {
                best = Some((count, length, (from, to)));
            }
        }
    }
    best.map(|b| b.2)
}

#[cfg(test)]
mod tests {
    use super::best;

    #[test]
    fn the_window_with_most_words_is_the_shortest() {
        let held = vec![vec![], vec![0], vec![], vec![0, 1], vec![], vec![1]];
        assert_eq!(best(&held), Some((3, 3)));
        assert_eq!(best(&[vec![], vec![]]), None);
        let far: Vec<Vec<usize>> = (0..40)
            .map(|n| {
                if n == 0 {
                    vec![0]
                } else if n == 39 {
                    vec![1]
                } else {
                    vec![]
                }
            })
            .collect();
        assert_eq!(best(&far), Some((0, 0)));
    }
}

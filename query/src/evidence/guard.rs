//! The guard on an answer's text: which of the session's sources support it, and what none supports.
//!
//! Strict about what must not be invented (flags, commands, ports, paths, hosts, units, versions,
//! numbers, identifiers), tolerant of prose. The words of one command line must stand in one section,
//! a flag in one line with its command, and a number beside something else that the sentence says.
//! No clock, no files: the same sources and answer give the same result.

use super::atoms::{Atoms, without_thousands};
use super::claims::{self, Claim, Command, Token};
use super::kinds::{self, Kind};
use super::{How, Source, quote};
use crate::citation;
use crate::reply::{Citation, I_DO_NOT_KNOW};
use runbook_shared::retrieval::corpus::Corpus;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cell::OnceCell;
use std::sync::Arc;

/// What the guard says of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Every exact word stands in a source, and there is a citation.
    Supported,
    /// Some exact words stand in no source.
    Unsupported,
    /// Nothing that the session has seen speaks of it.
    NoEvidence,
    /// The answer says that it does not know; that needs no source.
    Refusal,
}

/// Why a word counts as unsupported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It stands in no source.
    NotInSources,
    /// It stands in a source, but in no section with the rest of its command.
    NotTogether,
    /// No source uses this flag in a line with that command.
    FlagOfAnother,
    /// The number stands in a source, but nowhere with what the sentence says of it.
    NumberOfAnother,
}

/// A word that no source supports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Unsupported {
    /// The word.
    pub token: String,
    /// What it names.
    pub kind: &'static str,
    /// Why it counts as unsupported.
    pub reason: Reason,
}

/// What the guard found.
#[derive(Clone, Debug)]
pub struct Guarded {
    /// The verdict.
    pub verdict: Ruling,
    /// Citations that support the answer, best first.
    pub citations: Vec<Citation>,
    /// Words that no source supports, in the order of the answer.
    pub unsupported: Vec<Unsupported>,
    /// How many exact words and commands were checked.
    pub checked: usize,
    /// How many documents were candidates.
    pub sources: usize,
}

/// Exact words and command lines that one answer may hold; a longer one is checked in parts.
pub const CHECKS_MAX: usize = 2000;
/// The share of an answer's words of prose that sources must hold where nothing else can be checked.
const PROSE_SHARE: f32 = 0.5;
/// The weight of all words of prose against that of one exact word, in choosing citations.
const PROSE_WEIGHT: f32 = 0.5;

/// One section of a source, with its words.
struct Piece<'a> {
    corpus: &'a Corpus,
    number: u32,
    places: String,
    how: How,
    /// All that may be looked up, in lower case.
    text: String,
    words: OnceCell<Atoms>,
}

impl Piece<'_> {
    /// The words, read when they are first needed: of many pages, few hold anything of an answer.
    fn atoms(&self) -> &Atoms {
        self.words.get_or_init(|| Atoms::of(self.texts()))
    }

    fn texts(&self) -> Vec<&str> {
        let (chunk, section) = self.corpus.generation.section(self.number);
        let mut texts = vec![chunk.section_text(section), &chunk.title, &self.places];
        texts.extend(section.heading_path.iter().map(String::as_str));
        texts
    }

    fn holds(&self, word: &str) -> bool {
        self.may_hold(word) && holds_word(self.atoms(), word)
    }

    /// Whether a word can stand in it at all.
    fn may_hold(&self, word: &str) -> bool {
        self.text.contains(&needle(word))
    }
}

/// The longest run of letters and digits in a word, in lower case: where it is not, the word is not. Of a
/// number only its digits, since its unit may be written in another way.
fn needle(word: &str) -> String {
    let runs = word.split(|c: char| !c.is_alphanumeric());
    let run = runs.max_by_key(|r| r.len()).unwrap_or("");
    let digits = run.len() - run.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0 { run[..digits].to_owned() } else { run.to_lowercase() }
}

/// Something that an answer says, and the pieces that hold it.
struct Held {
    pieces: Vec<usize>,
    words: Vec<(String, bool)>,
}

/// An answer that holds too much to be checked at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answer has more than {CHECKS_MAX} exact words or {} sentences; check it in parts",
    claims::CLAIMS_MAX
)]
pub struct TooMuch;

/// Chooses an answer's citations from these sources alone, at most `k`.
///
/// # Errors
/// When the answer holds too much to be checked as a whole: nothing is left unchecked in silence.
pub fn cite(
    corpora: &[Arc<Corpus>],
    sources: &[Source],
    answer: &str,
    k: usize,
) -> Result<Guarded, TooMuch> {
    check(&pieces(corpora, sources), sources.len(), answer, k, corpora.len() > 1)
}

/// The same with single sections as the only sources, by corpus and number.
///
/// # Errors
/// As [`cite`].
pub fn cite_sections(
    corpora: &[Arc<Corpus>],
    sections: &[(usize, u32)],
    answer: &str,
    k: usize,
) -> Result<Guarded, TooMuch> {
    let of = |(corpus, number): &(usize, u32)| piece(corpora.get(*corpus)?, *number, How::Read);
    let pieces: Vec<Piece<'_>> = sections.iter().filter_map(of).collect();
    check(&pieces, pieces.len(), answer, k, corpora.len() > 1)
}

fn check(
    pieces: &[Piece<'_>],
    sources: usize,
    answer: &str,
    k: usize,
    with_repo: bool,
) -> Result<Guarded, TooMuch> {
    let mut found = Guarded {
        verdict: Ruling::Refusal,
        citations: Vec::new(),
        unsupported: Vec::new(),
        checked: 0,
        sources,
    };
    if answer.trim().trim_end_matches('.').eq_ignore_ascii_case(I_DO_NOT_KNOW) {
        return Ok(found);
    }
    let all = claims::claims(answer);
    let checks: usize = all.iter().map(|c| c.tokens.len() + c.commands.len()).sum();
    if checks > CHECKS_MAX || all.len() > claims::CLAIMS_MAX {
        return Err(TooMuch);
    }
    let mut guard = Guard { pieces, held: Vec::new(), unsupported: Vec::new() };
    for claim in &all {
        guard.claim(claim);
    }
    let stems: FxHashSet<String> = all.iter().flat_map(|c| c.stems.iter().cloned()).collect();
    let stems: Vec<String> = stems.into_iter().collect();
    found.checked = guard.held.len() + guard.unsupported.len();
    let chosen = if found.checked == 0 {
        by_prose(pieces, &stems, k)
    } else {
        by_words(pieces, &guard.held, &stems, k)
    };
    found.citations = cited(pieces, &guard.held, &chosen, with_repo);
    let mut seen = FxHashSet::default();
    found.unsupported =
        guard.unsupported.into_iter().filter(|u| seen.insert(u.token.clone())).collect();
    found.verdict = if !found.unsupported.is_empty() && !found.citations.is_empty() {
        Ruling::Unsupported
    } else if found.citations.is_empty() {
        if found.unsupported.is_empty() || pieces.is_empty() {
            Ruling::NoEvidence
        } else {
            Ruling::Unsupported
        }
    } else {
        Ruling::Supported
    };
    Ok(found)
}

fn pieces<'a>(corpora: &'a [Arc<Corpus>], sources: &[Source]) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    for source in sources {
        let Some(corpus) = corpora.iter().find(|c| c.repo == source.repo) else { continue };
        let generation = &corpus.generation;
        if generation.document(&source.path).is_none() {
            continue;
        }
        let all = generation.scope(&source.path);
        pieces.extend(all.filter_map(|number| piece(corpus, number, source.how)));
    }
    pieces
}

/// A section with its words; none where the generation has no such section.
fn piece(corpus: &Corpus, number: u32, how: How) -> Option<Piece<'_>> {
    corpus.generation.sections.get(number as usize)?;
    let (chunk, _) = corpus.generation.section(number);
    let places = format!(
        "{0} /runbooks/{0} /repo/{1}/{0} {2}",
        chunk.path,
        corpus.repo,
        chunk.path.rsplit('/').next().unwrap_or("")
    );
    let (text, words) = (String::new(), OnceCell::new());
    let mut piece = Piece { corpus, number, places, how, text, words };
    piece.text = without_thousands(&kinds::plain(&piece.texts().join("\n"))).to_lowercase();
    Some(piece)
}

struct Guard<'a> {
    pieces: &'a [Piece<'a>],
    held: Vec<Held>,
    unsupported: Vec<Unsupported>,
}

impl Guard<'_> {
    fn claim(&mut self, claim: &Claim) {
        let exact: Vec<&Token> =
            claim.tokens.iter().filter(|t| !matches!(t.kind, Kind::Number | Kind::Port)).collect();
        // The pieces that something of this sentence stands in, for its numbers.
        let mut around: FxHashSet<usize> = FxHashSet::default();
        let mut named = false;
        for command in &claim.commands {
            named = true;
            around.extend(self.command(command));
        }
        for token in exact {
            let at = self.holding(&token.text, |a| {
                a.holds(&token.text, any_case(token)) || in_parts(a, token)
            });
            named |= !at.is_empty();
            around.extend(at.iter().copied());
            self.token(token, at, Reason::NotInSources);
        }
        let numbers: Vec<&Token> =
            claim.tokens.iter().filter(|t| matches!(t.kind, Kind::Number | Kind::Port)).collect();
        for token in numbers {
            let number = token.measure.as_ref().map_or(&token.text, |m| &m.0);
            let all = self.holding(number, |a| match &token.measure {
                Some((number, unit)) => a.holds_measure(number, unit) || a.holds(&token.text, true),
                None => a.holds(&token.text, true),
            });
            let stands = !all.is_empty();
            let own = token.measure.as_ref().map_or(token.text.as_str(), |m| m.0.as_str());
            let said: Vec<String> =
                claim.stems.iter().filter(|s| *s != own && **s != token.text).cloned().collect();
            let near = |at: &usize| {
                let shared = self.pieces[*at].atoms().shared(&said);
                (named && around.contains(at)) || said.len() < 2 || shared * 2 > said.len()
            };
            let kept: Vec<usize> = all.into_iter().filter(near).collect();
            let reason = if stands { Reason::NumberOfAnother } else { Reason::NotInSources };
            self.token(token, kept, reason);
        }
    }

    fn holding(&self, word: &str, holds: impl Fn(&Atoms) -> bool) -> Vec<usize> {
        let may = |at: &usize| self.pieces[*at].may_hold(word) && holds(self.pieces[*at].atoms());
        (0..self.pieces.len()).filter(may).collect()
    }

    fn token(&mut self, token: &Token, pieces: Vec<usize>, reason: Reason) {
        if pieces.is_empty() {
            let kind = token.kind.name();
            self.unsupported.push(Unsupported { token: token.text.clone(), kind, reason });
        } else {
            let word = token.measure.as_ref().map_or(token.text.clone(), |m| m.0.clone());
            let words = vec![(word, any_case(token)), (token.text.clone(), any_case(token))];
            self.held.push(Held { pieces, words });
        }
    }

    /// Checks a command line and returns the pieces that hold all of it.
    fn command(&mut self, command: &Command) -> Vec<usize> {
        let missing =
            |at: usize| command.words.iter().filter(|w| !self.pieces[at].holds(w)).count();
        let counts: Vec<usize> = (0..self.pieces.len()).map(missing).collect();
        let least = counts.iter().copied().min().unwrap_or(command.words.len());
        let best: Vec<usize> = (0..counts.len()).filter(|at| counts[*at] == least).collect();
        if least > 0 {
            let lacks = |w: &&String| best.first().is_none_or(|at| !self.pieces[*at].holds(w));
            let unsupported: Vec<Unsupported> = command
                .words
                .iter()
                .filter(lacks)
                .map(|w| {
                    let anywhere = self.pieces.iter().any(|p| p.holds(w));
                    let reason = if anywhere { Reason::NotTogether } else { Reason::NotInSources };
                    unsupported_word(w, reason)
                })
                .collect();
            self.unsupported.extend(unsupported);
            return Vec::new();
        }
        let used = self.with_its_flags(command, &best);
        if let Err(flag) = used {
            self.unsupported.push(unsupported_word(&flag, Reason::FlagOfAnother));
            return Vec::new();
        }
        let words = command.words.iter().map(|w| (w.clone(), false)).collect();
        self.held.push(Held { pieces: best.clone(), words });
        best
    }

    /// The flag that no line has together with the command's name.
    fn with_its_flags(&self, command: &Command, pieces: &[usize]) -> Result<(), String> {
        let Some(name) = command.words.iter().find(|w| !kinds::is_flag(w)) else { return Ok(()) };
        let flags = command.words.iter().filter(|w| kinds::is_flag(w));
        for flag in flags {
            let together = pieces.iter().any(|at| {
                let piece = &self.pieces[*at];
                let (chunk, section) = piece.corpus.generation.section(piece.number);
                let text = chunk.section_text(section).replace("\\\n", " ");
                text.lines().any(|line| {
                    line.contains(name.as_str()) && {
                        let atoms = Atoms::of([line]);
                        holds_word(&atoms, name) && holds_word(&atoms, flag)
                    }
                })
            });
            if !together {
                return Err(flag.clone());
            }
        }
        Ok(())
    }
}

fn unsupported_word(word: &str, reason: Reason) -> Unsupported {
    let kind = kinds::of(word).unwrap_or(Kind::Command).name();
    Unsupported { token: word.to_owned(), kind, reason }
}

fn any_case(token: &Token) -> bool {
    token.kind.ignores_case() || !token.code
}

/// A word that joins names with `=`, `:` or `@` is held where all of them are.
fn in_parts(atoms: &Atoms, token: &Token) -> bool {
    !token.text.contains("://") && joined(atoms, &token.text, any_case(token))
}

fn joined(atoms: &Atoms, word: &str, any_case: bool) -> bool {
    let parts: Vec<&str> = word.split(['=', ':', '@']).filter(|p| !p.is_empty()).collect();
    parts.len() > 1 && parts.iter().all(|p| atoms.holds(p, any_case))
}

fn holds_word(atoms: &Atoms, word: &str) -> bool {
    let any_case = kinds::of(word).is_some_and(Kind::ignores_case);
    atoms.holds(word, any_case)
        || (!word.contains("://") && joined(atoms, word, any_case))
        || kinds::measure(word).is_some_and(|(n, u)| atoms.holds_measure(&n, u))
}

/// The pieces that together hold most of what is held, rare words first.
fn by_words(pieces: &[Piece<'_>], held: &[Held], stems: &[String], k: usize) -> Vec<(usize, f32)> {
    let weight = |h: &Held| {
        let rarity = (pieces.len() as f32 / h.pieces.len() as f32).ln() + 1.0;
        rarity * (h.words.len() as f32).sqrt()
    };
    let weights: Vec<f32> = held.iter().map(weight).collect();
    let mut of_piece: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (item, held) in held.iter().enumerate() {
        for at in &held.pieces {
            of_piece.entry(*at).or_default().push(item);
        }
    }
    let prose: FxHashMap<usize, f32> = of_piece
        .keys()
        .map(|at| {
            let shared = pieces[*at].atoms().shared(stems) as f32 / stems.len().max(1) as f32;
            (*at, PROSE_WEIGHT * shared + 0.01 * f32::from(pieces[*at].how as u8))
        })
        .collect();
    let mut open: FxHashSet<usize> = (0..held.len()).collect();
    let mut chosen: Vec<(usize, f32)> = Vec::new();
    while chosen.len() < k && !open.is_empty() {
        let gain = |at: &usize| -> f32 {
            let new = of_piece[at].iter().filter(|i| open.contains(i)).map(|i| weights[*i]);
            new.sum::<f32>()
        };
        let best = of_piece
            .keys()
            .filter(|at| gain(at) > 0.0)
            .max_by(|a, b| {
                let score = |at: &usize| gain(at) + prose[at];
                score(a).total_cmp(&score(b)).then(b.cmp(a))
            })
            .copied();
        let Some(best) = best else { break };
        chosen.push((best, gain(&best)));
        for item in &of_piece[&best] {
            open.remove(item);
        }
    }
    chosen
}

/// For an answer of prose alone: the pieces that hold most of its words, if that is enough of them.
fn by_prose(pieces: &[Piece<'_>], stems: &[String], k: usize) -> Vec<(usize, f32)> {
    let mut open: Vec<String> = stems.to_vec();
    let mut chosen: Vec<(usize, f32)> = Vec::new();
    while chosen.len() < k && !open.is_empty() {
        let shared = |at: &usize| pieces[*at].atoms().shared(&open);
        let Some(best) = (0..pieces.len()).max_by(|a, b| shared(a).cmp(&shared(b)).then(b.cmp(a)))
        else {
            break;
        };
        let gained = shared(&best);
        // A further source for one word of many is none.
        if gained == 0 || (!chosen.is_empty() && gained * 5 < stems.len()) {
            break;
        }
        chosen.push((best, gained as f32));
        open.retain(|s| pieces[best].atoms().shared(std::slice::from_ref(s)) == 0);
    }
    let covered = 1.0 - open.len() as f32 / stems.len().max(1) as f32;
    if stems.is_empty() || covered < PROSE_SHARE { Vec::new() } else { chosen }
}

fn cited(
    pieces: &[Piece<'_>],
    held: &[Held],
    chosen: &[(usize, f32)],
    with_repo: bool,
) -> Vec<Citation> {
    let most = chosen.iter().map(|c| c.1).fold(0.0, f32::max).max(f32::MIN_POSITIVE);
    let mut citations = Vec::new();
    for (at, gain) in chosen {
        let piece = &pieces[*at];
        let (chunk, section) = piece.corpus.generation.section(piece.number);
        let words: Vec<(String, bool)> = held
            .iter()
            .filter(|h| h.pieces.contains(at))
            .flat_map(|h| h.words.iter().cloned())
            .collect();
        let Some(passage) = quote::passage(chunk, section, &words) else { continue };
        let citation = citation::cite(piece.corpus, piece.number, &passage, gain / most, with_repo);
        match citation::check(piece.corpus, &citation) {
            Ok(()) => citations.push(citation),
            Err(e) => tracing::error!("a citation was withheld: {e}"),
        }
    }
    citations
}

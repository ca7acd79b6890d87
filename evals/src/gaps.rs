//! Which headings are worth writing: refused questions, grouped by what they are about.
//!
//! Similarity is the cosine of two questions' vectors blended with that of their weighted words (words
//! alone where there is no embedder). Groups are made from the bottom up by average similarity, until
//! no two are alike enough.

use anyhow::{Context, Result, anyhow};
use runbook_query::feedback::refused::{FILE_NAME, FILE_NAME_BEFORE};
use runbook_query::feedback::reports;
use runbook_shared::analyse::{analyse, is_stop_word};
use runbook_shared::embed::{self, Embedder, OnnxEmbedder};
use runbook_shared::locate::Places;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Share of the vectors in the similarity.
const VECTOR_SHARE: f32 = 0.6;
/// Groups more alike than this become one, with vectors: well above the limit from which the groups of
/// evals/gaps/tune.tsv are no longer pure, since more topics come closer to each other.
const ALIKE: f32 = 0.18;
/// The same, by words alone: from here on those groups are pure.
const ALIKE_BY_WORDS: f32 = 0.28;
/// Distinct questions that are grouped; the rarest are left out.
const QUESTIONS_MAX: usize = 3000;

/// A question that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// As it was asked first.
    pub question: String,
    /// How often.
    pub times: u64,
    /// The nearest sections that were shown, as `path#heading`.
    pub near: Vec<String>,
}

/// Questions of one topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// A heading to begin with: the question nearest to all others, as a title.
    pub heading: String,
    /// The words that tell it from the other topics.
    pub words: Vec<String>,
    /// How often its questions were asked.
    pub times: u64,
    /// Its questions, most frequent first, by their place in the input.
    pub members: Vec<usize>,
    /// Where it might belong: the sections shown most often.
    pub near: Vec<String>,
}

#[derive(Deserialize)]
struct Row {
    question: String,
    #[serde(default)]
    nearest: Vec<Near>,
}

#[derive(Deserialize)]
struct Near {
    path: String,
    heading: String,
}

/// Reads the refused questions of a feedback directory, and those reported as refused wrongly; the same
/// question counts once with its number. Also returns how many lines could not be read.
///
/// # Errors
/// When the directory holds none of the files, or one cannot be read.
pub fn read(dir: &Path) -> Result<(Vec<Refused>, usize)> {
    let mut by_words: BTreeMap<String, Refused> = BTreeMap::new();
    let (mut unread, mut found) = (0, false);
    for name in [FILE_NAME_BEFORE, FILE_NAME, reports::FILE_NAME] {
        let file = dir.join(name);
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e).with_context(|| format!("`{}`", file.display())),
        };
        found = true;
        for line in String::from_utf8_lossy(&bytes).lines() {
            let Ok(value) = serde_json::from_str::<Value>(line) else {
                unread += 1;
                continue;
            };
            let answered = value["band"] == "answer" || value["verdict"] == "right";
            let Some(row) =
                serde_json::from_value::<Row>(value).ok().filter(|r| !r.question.trim().is_empty())
            else {
                unread += 1;
                continue;
            };
            if !answered {
                add(&mut by_words, row);
            }
        }
    }
    if !found {
        return Err(anyhow!(
            "`{}` holds neither {FILE_NAME} nor {}; it is the directory feedback/ in the daemon's --state",
            dir.display(),
            reports::FILE_NAME
        ));
    }
    let mut all: Vec<Refused> = by_words.into_values().collect();
    all.sort_by_key(|r| std::cmp::Reverse(r.times));
    all.truncate(QUESTIONS_MAX);
    Ok((all, unread))
}

fn add(by_words: &mut BTreeMap<String, Refused>, row: Row) {
    let key = row.question.to_lowercase();
    let key: Vec<&str> =
        key.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let entry = by_words.entry(key.join(" ")).or_insert_with(|| Refused {
        question: row.question.trim().to_owned(),
        times: 0,
        near: Vec::new(),
    });
    entry.times += 1;
    if entry.near.is_empty() {
        entry.near = row.nearest.iter().map(|n| format!("{}#{}", n.path, n.heading)).collect();
    }
}

/// The embedder of that name; none for `none`.
///
/// # Errors
/// When it cannot be loaded.
pub fn embedder(name: Option<&str>) -> Result<Option<OnnxEmbedder>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(embed::open(&Places::from_env(None, None), name, cores)?)
}

/// Groups questions, the most asked first.
///
/// # Errors
/// When a question cannot be embedded.
pub fn group(questions: &[Refused], embedder: Option<&dyn Embedder>) -> Result<Vec<Gap>> {
    let limit = if embedder.is_some() { ALIKE } else { ALIKE_BY_WORDS };
    group_at(questions, embedder, limit)
}

/// The same with another limit, for tuning.
///
/// # Errors
/// As [`group`].
pub fn group_at(
    questions: &[Refused],
    embedder: Option<&dyn Embedder>,
    limit: f32,
) -> Result<Vec<Gap>> {
    let words = Words::of(questions);
    let vectors = match embedder {
        Some(embedder) => {
            let vectors = questions.iter().map(|q| embedder.embed_question(&q.question));
            Some(vectors.collect::<Result<Vec<_>, _>>()?)
        }
        None => None,
    };
    let alike = |a: usize, b: usize| {
        let by_words = words.cosine(a, b);
        match &vectors {
            Some(v) => {
                let cosine: f32 = v[a].iter().zip(&v[b]).map(|(x, y)| x * y).sum();
                VECTOR_SHARE * cosine + (1.0 - VECTOR_SHARE) * by_words
            }
            None => by_words,
        }
    };
    let groups = clusters(questions.len(), &alike, limit);
    let mut gaps: Vec<Gap> =
        groups.into_iter().map(|members| gap(questions, &words, members, &alike)).collect();
    gaps.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.heading.cmp(&b.heading)));
    Ok(gaps)
}

/// The weighted words of every question, at unit length.
struct Words {
    of: Vec<BTreeMap<String, f32>>,
    surface: BTreeMap<String, String>,
}

impl Words {
    fn of(questions: &[Refused]) -> Self {
        let mut df: BTreeMap<String, f32> = BTreeMap::new();
        let mut surface = BTreeMap::new();
        let stems: Vec<Vec<String>> = questions
            .iter()
            .map(|q| {
                let mut stems: Vec<String> = analyse(&q.question)
                    .into_iter()
                    .filter(|t| !is_stop_word(&t.surface))
                    .map(|t| {
                        surface.entry(t.stem.clone()).or_insert(t.surface);
                        t.stem
                    })
                    .collect();
                stems.sort();
                stems.dedup();
                for stem in &stems {
                    *df.entry(stem.clone()).or_insert(0.0) += 1.0;
                }
                stems
            })
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "a few thousand questions")]
        let n = questions.len() as f32;
        let of = stems
            .into_iter()
            .map(|stems| {
                let weighted: Vec<(String, f32)> = stems
                    .into_iter()
                    .map(|s| {
                        let idf = ((n + 1.0) / (df[&s] + 0.5)).ln();
                        (s, idf)
                    })
                    .collect();
                let length = weighted.iter().map(|(_, w)| w * w).sum::<f32>().sqrt().max(1e-6);
                weighted.into_iter().map(|(s, w)| (s, w / length)).collect()
            })
            .collect();
        Self { of, surface }
    }

    fn cosine(&self, a: usize, b: usize) -> f32 {
        let (few, many) = if self.of[a].len() < self.of[b].len() { (a, b) } else { (b, a) };
        self.of[few].iter().filter_map(|(s, w)| self.of[many].get(s).map(|v| w * v)).sum()
    }

    /// The heaviest words of a group.
    fn top(&self, members: &[usize], most: usize) -> Vec<String> {
        let mut sums: BTreeMap<&str, f32> = BTreeMap::new();
        for (stem, weight) in members.iter().flat_map(|m| &self.of[*m]) {
            *sums.entry(stem).or_insert(0.0) += weight;
        }
        let mut all: Vec<(&str, f32)> = sums.into_iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.iter()
            .take(most)
            .map(|(s, _)| self.surface.get(*s).cloned().unwrap_or_default())
            .collect()
    }
}

/// Average linkage by chains of nearest neighbours: the same groups as always joining the two most
/// alike, in square time.
fn clusters(n: usize, alike: &dyn Fn(usize, usize) -> f32, limit: f32) -> Vec<Vec<usize>> {
    let mut sim: Vec<Vec<f32>> = (0..n).map(|a| (0..n).map(|b| alike(a, b)).collect()).collect();
    let mut groups: Vec<Option<Vec<usize>>> = (0..n).map(|a| Some(vec![a])).collect();
    let mut done: Vec<Vec<usize>> = Vec::new();
    let mut chain: Vec<usize> = Vec::new();
    while let Some(start) = groups.iter().position(Option::is_some) {
        if chain.is_empty() {
            chain.push(start);
        }
        let Some(&top) = chain.last() else { continue };
        let before = chain.len().checked_sub(2).map(|at| chain[at]);
        let nearest = (0..n).filter(|b| *b != top && groups[*b].is_some()).max_by(|a, b| {
            sim[top][*a]
                .total_cmp(&sim[top][*b])
                .then_with(|| (Some(*a) == before).cmp(&(Some(*b) == before)))
        });
        let Some(nearest) = nearest.filter(|b| sim[top][*b] >= limit) else {
            // Nothing is alike enough, and no later group will be more so.
            done.extend(groups[top].take());
            chain.pop();
            continue;
        };
        if Some(nearest) != before {
            chain.push(nearest);
            continue;
        }
        chain.truncate(chain.len() - 2);
        join(&mut groups, &mut sim, nearest, top);
    }
    done
}

fn join(groups: &mut [Option<Vec<usize>>], sim: &mut [Vec<f32>], into: usize, from: usize) {
    let (Some(mut members), Some(more)) = (groups[into].take(), groups[from].take()) else {
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "a few thousand questions")]
    let (a, b) = (members.len() as f32, more.len() as f32);
    let rows = sim[into].iter().zip(&sim[from]);
    let joined: Vec<f32> = rows.map(|(x, y)| (x * a + y * b) / (a + b)).collect();
    for (row, value) in sim.iter_mut().zip(&joined) {
        row[into] = *value;
    }
    sim[into] = joined;
    members.extend(more);
    groups[into] = Some(members);
}

fn gap(
    questions: &[Refused],
    words: &Words,
    mut members: Vec<usize>,
    alike: &dyn Fn(usize, usize) -> f32,
) -> Gap {
    members.sort_by_key(|m| (std::cmp::Reverse(questions[*m].times), *m));
    let central = |m: usize| members.iter().map(|o| alike(m, *o)).sum::<f32>();
    let middle = members.iter().copied().max_by(|a, b| central(*a).total_cmp(&central(*b)));
    let mut near: BTreeMap<&str, u64> = BTreeMap::new();
    for m in &members {
        for place in &questions[*m].near {
            *near.entry(place).or_insert(0) += questions[*m].times;
        }
    }
    let mut near: Vec<(&str, u64)> = near.into_iter().collect();
    near.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    Gap {
        heading: middle.map_or_else(String::new, |m| title(&questions[m].question)),
        words: words.top(&members, 4),
        times: members.iter().map(|m| questions[*m].times).sum(),
        near: near.into_iter().take(2).map(|(n, _)| n.to_owned()).collect(),
        members,
    }
}

/// A question as a heading: "how do I rotate the key?" is "Rotate the key".
#[must_use]
pub fn title(question: &str) -> String {
    const LEADS: [&str; 12] = [
        "how do i ",
        "how do we ",
        "how do you ",
        "how can i ",
        "how can we ",
        "how should i ",
        "how to ",
        "what is the procedure to ",
        "what is the ",
        "where is the ",
        "can i ",
        "please ",
    ];
    let text = question.trim().trim_end_matches(['?', '.', '!']);
    let lower = text.to_lowercase();
    let lead = LEADS.iter().find(|l| lower.starts_with(**l)).map_or(0, |l| l.len());
    let rest = text.get(lead..).filter(|r| !r.trim().is_empty()).unwrap_or(text).trim();
    let mut chars = rest.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", chars.as_str().replace('\n', " "))
}

/// The groups for a person.
#[must_use]
pub fn text(questions: &[Refused], gaps: &[Gap], most: usize) -> String {
    let total: u64 = gaps.iter().map(|g| g.times).sum();
    let mut out = format!(
        "{total} refusals of {} questions, {} headings worth writing\n",
        questions.len(),
        gaps.len()
    );
    for gap in gaps.iter().take(most) {
        out.push_str(&format!("\n{:>4}  {}\n", gap.times, gap.heading));
        out.push_str(&format!("      words: {}\n", gap.words.join(", ")));
        if !gap.near.is_empty() {
            out.push_str(&format!("      near:  {}\n", gap.near.join("; ")));
        }
        for m in gap.members.iter().take(5) {
            let q = &questions[*m];
            let times = if q.times > 1 { format!(" ({})", q.times) } else { String::new() };
            out.push_str(&format!("      - {}{times}\n", q.question.replace('\n', " ")));
        }
        if gap.members.len() > 5 {
            out.push_str(&format!("      - and {} more\n", gap.members.len() - 5));
        }
    }
    if gaps.len() > most {
        out.push_str(&format!("\nand {} more; --most N shows them\n", gaps.len() - most));
    }
    out
}

/// The groups as JSON.
#[must_use]
pub fn to_json(questions: &[Refused], gaps: &[Gap]) -> Value {
    let rows: Vec<Value> = gaps
        .iter()
        .map(|g| {
            let asked: Vec<Value> = g
                .members
                .iter()
                .map(|m| json!({"question": questions[*m].question, "times": questions[*m].times}))
                .collect();
            json!({"heading": g.heading, "words": g.words, "times": g.times, "near": g.near, "questions": asked})
        })
        .collect();
    json!({"questions": questions.len(), "gaps": rows})
}

/// How well groups fit known topics: the share of questions that are in a group whose main topic is
/// theirs, and the share that are in their topic's main group.
#[must_use]
pub fn purity(gaps: &[Gap], topics: &[&str]) -> (f64, f64) {
    let mut table: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for (n, gap) in gaps.iter().enumerate() {
        for m in &gap.members {
            *table.entry((n, topics[*m])).or_insert(0) += 1;
        }
    }
    let mut by_group: BTreeMap<usize, usize> = BTreeMap::new();
    let mut by_topic: BTreeMap<&str, usize> = BTreeMap::new();
    for ((group, topic), count) in &table {
        let most = by_group.entry(*group).or_insert(0);
        *most = (*most).max(*count);
        let most = by_topic.entry(topic).or_insert(0);
        *most = (*most).max(*count);
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred questions")]
    let share = |sum: usize| sum as f64 / topics.len().max(1) as f64;
    (share(by_group.values().sum()), share(by_topic.values().sum()))
}

//! An answer, taken apart into claims: one for each sentence and each line of code, with the words in
//! it that must not be invented. Words of prose are no such words; what stands in code is.

use super::atoms::{bare, is_separator, without_thousands};
use super::kinds::{self, Kind};
use super::spoken;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;
use runbook_shared::analyse::{analyse, is_stop_word};
use std::sync::LazyLock;

/// Claims that one answer may have; of a longer one, one more is read, so that it can be told.
pub const CLAIMS_MAX: usize = 600;

/// A word that must stand in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The word, as the answer has it.
    pub text: String,
    /// What it names.
    pub kind: Kind,
    /// A number with its unit of measure, in one spelling.
    pub measure: Option<(String, &'static str)>,
    /// Whether it stands in code, where case counts.
    pub code: bool,
}

/// A command line, or another line of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The words, without quotes and placeholders.
    pub words: Vec<String>,
}

/// One sentence or line of code of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Words that must not be invented.
    pub tokens: Vec<Token>,
    /// Command lines, whose words must stand together.
    pub commands: Vec<Command>,
    /// Stems of its words of prose.
    pub stems: Vec<String>,
}

/// A stretch of text, code or prose.
struct Span {
    code: bool,
    text: String,
}

static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[\^?\d+(?:\s*[,-]\s*\d+)*\]").expect("a test compiles it"));
static RANGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$").expect("a test compiles it"));
static JOINT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\s*(?:&&|\|\||;|\|)\s+|;$").expect("a test compiles it"));

/// The claims of an answer written in Markdown.
#[must_use]
pub fn claims(answer: &str) -> Vec<Claim> {
    let answer = kinds::plain(answer);
    let mut reader = Reader::default();
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(&answer, options) {
        reader.event(event);
    }
    reader.end_block();
    reader.claims.retain(|c| *c != Claim::default());
    reader.claims
}

#[derive(Default)]
struct Reader {
    claims: Vec<Claim>,
    spans: Vec<Span>,
    in_code: bool,
}

impl Reader {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => {
                self.end_block();
                self.in_code = true;
            }
            Event::End(TagEnd::CodeBlock) => {
                self.in_code = false;
                let code: String = self.spans.drain(..).map(|s| s.text).collect();
                self.code_block(&code);
            }
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.push(self.in_code, &text);
            }
            Event::Code(text) => {
                self.spans.push(Span { code: true, text: text.into_string() });
            }
            Event::SoftBreak => self.push(false, " "),
            Event::HardBreak => self.push(false, ". "),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.push(false, &format!(" {dest_url} "));
            }
            Event::Start(tag) if is_block(&tag) => self.end_block(),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::TableRow
                | TagEnd::TableHead
                | TagEnd::HtmlBlock,
            ) => self.end_block(),
            Event::End(TagEnd::TableCell) => self.push(false, " "),
            _ => {}
        }
    }

    /// Text that goes on without a mark between belongs to one word: `**kube**ctl`.
    fn push(&mut self, code: bool, text: &str) {
        match self.spans.last_mut() {
            Some(last) if last.code == code => last.text.push_str(text),
            _ => self.spans.push(Span { code, text: text.to_owned() }),
        }
    }

    fn end_block(&mut self) {
        let mut claim = Claim::default();
        for span in std::mem::take(&mut self.spans) {
            if span.code {
                code_span(&span.text, &mut claim);
                continue;
            }
            let text = REFERENCE.replace_all(&span.text, " ");
            let mut rest: &str = &text;
            while let Some((sentence, after)) = cut(rest) {
                prose(sentence, &mut claim);
                self.add(std::mem::take(&mut claim));
                rest = after;
            }
            prose(rest, &mut claim);
        }
        self.add(claim);
    }

    fn code_block(&mut self, code: &str) {
        let joined = code.replace("\\\n", " ");
        for line in joined.lines() {
            let mut claim = Claim::default();
            let line = line.trim();
            match line.strip_prefix("# ").or_else(|| line.strip_prefix("// ")) {
                Some(comment) => prose(comment, &mut claim),
                None => {
                    let (code, comment) = line.split_once(" # ").unwrap_or((line, ""));
                    prose(comment, &mut claim);
                    commands(code.strip_prefix("$ ").unwrap_or(code), &mut claim);
                }
            }
            self.add(claim);
        }
    }

    fn add(&mut self, claim: Claim) {
        if self.claims.len() <= CLAIMS_MAX && claim != Claim::default() {
            self.claims.push(claim);
        }
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Paragraph
            | Tag::Heading { .. }
            | Tag::Item
            | Tag::List(_)
            | Tag::BlockQuote(_)
            | Tag::Table(_)
            | Tag::TableRow
            | Tag::HtmlBlock
    )
}

/// The first sentence and what follows it.
fn cut(text: &str) -> Option<(&str, &str)> {
    let at = text.char_indices().zip(text.chars().skip(1)).find_map(|((at, c), next)| {
        let before = &text[..at];
        let abbreviation = before.ends_with("e.g") || before.ends_with("i.e");
        (matches!(c, '.' | '!' | '?') && next.is_whitespace() && !abbreviation).then_some(at)
    })?;
    Some((&text[..=at], &text[at + 1..]))
}

fn code_span(text: &str, claim: &mut Claim) {
    let words = words_of(text);
    match words.as_slice() {
        [] => {}
        [word] => claim.tokens.push(Token {
            kind: kinds::of(word).unwrap_or(Kind::Identifier),
            measure: kinds::measure(word),
            text: word.clone(),
            code: true,
        }),
        _ => commands(text, claim),
    }
}

fn commands(line: &str, claim: &mut Claim) {
    for part in JOINT.split(line) {
        let words = words_of(part);
        if !words.is_empty() {
            claim.commands.push(Command { words });
        }
    }
}

/// The words of a line of code, without quotes, marks and placeholders.
fn words_of(line: &str) -> Vec<String> {
    let line = without_placeholders(line);
    line.split(|c: char| is_separator(c))
        .map(bare)
        .filter(|w| w.chars().any(char::is_alphanumeric) && !is_placeholder(w))
        .map(str::to_owned)
        .collect()
}

/// `<node>`, `{{ name }}`, `${VAR}` and `[options]` stand for something that the reader puts in.
fn without_placeholders(line: &str) -> String {
    static PLACE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"<[A-Za-z][\w .-]*>|\{\{[^}]*\}\}|\$\{[^}]*\}|\[[a-z][\w .-]*(?:\.\.\.)?\]")
            .expect("a test compiles it")
    });
    PLACE.replace_all(line, " ").into_owned()
}

fn is_placeholder(word: &str) -> bool {
    let name = word.trim_start_matches('$');
    word.starts_with('$') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        || name.starts_with("YOUR_")
        || word.chars().all(|c| c == '.' || c == '*' || c == 'X' || c == 'x')
}

/// Words before a number that only count the answer's own parts.
const PARTS: [&str; 16] = [
    "step", "steps", "option", "options", "section", "item", "part", "phase", "line", "lines",
    "figure", "table", "page", "no", "number", "chapter",
];

fn prose(text: &str, claim: &mut Claim) {
    let text = without_thousands(text);
    let words: Vec<&str> = text.split(is_separator).map(bare).filter(|w| !w.is_empty()).collect();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |b| words[b]).to_lowercase();
        let after = words.get(at + 1).copied().unwrap_or("");
        if is_placeholder(word) {
            continue;
        }
        if let Some(range) = RANGE.captures(word) {
            for number in [&range[1], &range[2]] {
                number_token(number, &before, after, claim);
            }
            continue;
        }
        if let Some(port) = word.strip_suffix("/tcp").or_else(|| word.strip_suffix("/udp"))
            && kinds::of(port) == Some(Kind::Number)
        {
            push(claim, port, Kind::Port, None);
            continue;
        }
        match kinds::of(word) {
            Some(Kind::Number) => number_token(word, &before, after, claim),
            Some(Kind::Flag) => flag(word, claim),
            Some(kind) => push(claim, word, kind, None),
            None => {}
        }
    }
    claim.commands.extend(spoken::commands(&words));
    let terms = analyse(&text).into_iter().filter(|t| !t.within && !is_stop_word(&t.surface));
    claim.stems.extend(terms.map(|t| t.stem));
}

fn push(claim: &mut Claim, text: &str, kind: Kind, measure: Option<(String, &'static str)>) {
    claim.tokens.push(Token { text: text.to_owned(), kind, measure, code: false });
}

fn number_token(word: &str, before: &str, after: &str, claim: &mut Claim) {
    if PARTS.contains(&before) {
        return;
    }
    let number = word.trim_start_matches(['~', '+', '<', '>', '≤', '≥']);
    if before == "port" || before == "ports" {
        push(claim, number, Kind::Port, None);
    } else if let Some(measure) = kinds::measure(number) {
        push(claim, number, Kind::Number, Some(measure));
    } else if let Some(unit) = kinds::unit_of(after).filter(|_| after.len() > 1 || after == "%") {
        let measure = Some((number.to_owned(), unit));
        push(claim, &format!("{number} {after}"), Kind::Number, measure);
    } else {
        push(claim, number, Kind::Number, None);
    }
}

/// A flag, and the value that is set with it.
fn flag(word: &str, claim: &mut Claim) {
    let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
    push(claim, name, Kind::Flag, None);
    if let Some(value) = value.filter(|v| !is_placeholder(v) && !v.is_empty()) {
        push(claim, value, kinds::of(value).unwrap_or(Kind::Identifier), kinds::measure(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(answer: &str) -> (Vec<String>, Vec<String>) {
        let all = claims(answer);
        (
            all.iter()
                .flat_map(|c| &c.tokens)
                .map(|t| format!("{}:{}", t.kind.name(), t.text))
                .collect(),
            all.iter().flat_map(|c| &c.commands).map(|c| c.words.join(" ")).collect(),
        )
    }

    #[test]
    fn exact_words_are_taken_and_prose_is_not() {
        for (answer, tokens, commands) in [
            ("Restart the on-call relay and ask the SRE team.", &[][..], &[][..]),
            ("Open port 8443 on db-01 [1].", &["port:8443", "identifier:db-01"], &[]),
            ("1. First\n2. Wait 5 minutes, see step 3.", &["number:5 minutes"], &[]),
            ("Wait 3–5 min.", &["number:3 min", "number:5 min"], &[]),
            (
                "Use `kubectl drain <node> --force` and `main`.",
                &["identifier:main"],
                &["kubectl drain --force"],
            ),
            (
                "```sh\n# wait 7s\n$ cd /srv && make -j4 \\\n  all | tee out.log\n```",
                &["number:7s"],
                &["cd /srv", "make -j4 all", "tee out.log"],
            ),
            ("Then run systemctl restart nginx and check it.", &[], &["systemctl restart nginx"]),
            ("Pass —grace-period=30.", &["flag:--grace-period", "number:30"], &[]),
            ("**kube**ctl-ng", &[], &[]),
            ("Set max\\_connections.", &["identifier:max_connections"], &[]),
            ("See [it](https://x.example.org/a).", &["host:https://x.example.org/a"], &[]),
            ("Edit /etc/hosts (v1.2.3).", &["path:/etc/hosts", "version:v1.2.3"], &[]),
            ("<!-- curl -X POST -->", &["flag:-X"], &["curl -X POST"]),
        ] {
            let (got, lines) = taken(answer);
            assert_eq!(got, tokens, "{answer}");
            assert_eq!(lines, commands, "{answer}");
        }
    }

    #[test]
    fn sentences_are_claims() {
        let all = claims("Open 80. Close 81, e.g. by hand! Done");
        assert_eq!(all.len(), 3);
        assert_eq!(all[1].tokens[0].text, "81");
        assert_eq!(claims(&"a1. ".repeat(5000)).len(), CLAIMS_MAX + 1);
    }
}

//! Cutting documents: the Markdown cases of comparable tools' public faults, and properties that hold
//! for any text.

use proptest::prelude::*;
use runbook_ingest::document;
use runbook_shared::chunk::Chunk;
use runbook_shared::limits::CHUNK_TOKENS_MAX;
use runbook_shared::tokens::TokenCounter;
use std::sync::LazyLock;
use std::time::Instant;

static COUNTER: LazyLock<TokenCounter> = LazyLock::new(TokenCounter::default_model);

fn cut(text: &str) -> Vec<Chunk> {
    parse(text.as_bytes()).chunks
}

fn parse(bytes: &[u8]) -> document::Document {
    document::parse(b"dir/page.md", bytes.to_vec(), None, &COUNTER)
        .expect("the document is readable")
}

/// The trail of every section, with its lines.
fn trails(chunks: &[Chunk]) -> Vec<String> {
    chunks
        .iter()
        .flat_map(|c| &c.sections)
        .map(|s| format!("{}-{} {}", s.lines[0], s.lines[1], s.heading_path.join(" > ")))
        .collect()
}

fn headings(text: &str) -> Vec<String> {
    parse(text.as_bytes()).record.headings.into_iter().map(|h| h.text).collect()
}

/// The lines of the document that a chunk holds, without repeated and appended ones.
fn own_lines(chunk: &Chunk) -> Vec<&str> {
    let lines: Vec<&str> = chunk.text.lines().collect();
    lines[chunk.repeated as usize..lines.len() - chunk.appended as usize].to_vec()
}

/// Fences that are open at the end of a text, by a parser that knows nothing of chunks.
fn open_fences(text: &str) -> usize {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        let Some(mark) = line.chars().next().filter(|c| matches!(c, '`' | '~')) else { continue };
        let width = line.chars().take_while(|c| *c == mark).count();
        match open {
            None if width >= 3 => open = Some((mark, width)),
            Some((m, w))
                if m == mark && width >= w && line.trim_end().chars().all(|c| c == mark) =>
            {
                open = None;
            }
            _ => {}
        }
    }
    usize::from(open.is_some())
}

#[test]
fn md_01_comments_in_fences_are_no_headings() {
    let text = "# Disk full\n\n## Free space\n\n```bash\n## rotate first\nlogrotate -f x\n# then vacuum\n```\n\nDone.\n";
    assert_eq!(headings(text), ["Disk full", "Free space"]);
    let chunks = cut(text);
    assert_eq!(chunks.len(), 1);
    assert!(
        chunks[0].text.contains("## rotate first\nlogrotate -f x\n# then vacuum\n```\n\nDone.")
    );
}

#[test]
fn md_02_tilde_fences() {
    assert_eq!(
        headings("## Restart\n\n~~~sh\n## stop\nsystemctl stop api\n~~~\n\n## Verify\n\nok\n"),
        ["Restart", "Verify"]
    );
}

#[test]
fn md_04_closing_fences_may_be_longer_and_fences_indented() {
    assert_eq!(headings("## A\n\n   ```\n## not one\n   `````\n\n## B\n\ny\n"), ["A", "B"]);
}

#[test]
fn md_05_an_open_fence_runs_to_the_end_and_is_reported() {
    let document = parse(b"## Steps\n\n```sh\necho 1\n## not a heading\necho 2\n");
    assert_eq!(document.chunks.len(), 1);
    let warnings: Vec<_> = document.warnings.iter().map(|w| (w.path.as_str(), w.line)).collect();
    assert_eq!(warnings, [("dir/page.md", 3)]);
    assert!(
        parse(b"```\nx\n```\n\n~~~\ny\n~~~~\n\n> ```\n> z\n> ```\n\n- ```\n  a\n  ```\n")
            .warnings
            .is_empty()
    );
}

#[test]
fn md_07_fences_in_items_and_quotes_stay_whole() {
    let chunks = cut(
        "## Failover\n\n1. Promote:\n\n    ```sh\n    ## on replica\n    pg_ctl promote\n    ```\n\n2. Check.\n",
    );
    assert_eq!(trails(&chunks), ["1-10 Failover"]);
}

#[test]
fn md_08_a_block_over_the_cap_is_cut_with_its_fence_repeated() {
    let rows: String = (0..3000).map(|n| format!("  \"key_{n}\": {n},\n")).collect();
    let chunks = cut(&format!("## Top\n\n### Dump\n\n```json\n{rows}```\n"));
    assert!(chunks.len() > 10);
    for (n, chunk) in chunks.iter().enumerate() {
        let part = chunk.part.expect("every piece is marked");
        assert_eq!((part.index as usize, part.of as usize), (n + 1, chunks.len()));
        assert_eq!(open_fences(&chunk.text), 0, "{}", chunk.text);
        assert!(chunk.text.contains("```json\n"), "{}", chunk.text);
        assert!(chunk.tokens as usize <= CHUNK_TOKENS_MAX);
        assert_eq!(chunk.heading_path, ["Top", "Dump"]);
        assert!(
            chunk.text.lines().any(|l| l.contains("key_")),
            "a chunk of fences alone: {}",
            chunk.text
        );
    }
    let keys: usize = chunks.iter().map(|c| c.text.matches("key_").count()).sum();
    assert_eq!(keys, 3000);
    let line = "QUJD".repeat(10_240);
    let chunks = cut(&format!("## B\n\n```\n{line}\n```\n"));
    assert!(
        chunks.iter().all(|c| c.tokens as usize <= CHUNK_TOKENS_MAX && open_fences(&c.text) == 0)
    );
    let length: usize = chunks
        .iter()
        .map(|c| {
            c.text
                .lines()
                .filter(|l| l.starts_with("QUJD") || l.contains("UJDQ"))
                .map(str::len)
                .sum::<usize>()
        })
        .sum();
    assert_eq!(length, line.len());
}

#[test]
fn md_10_a_rule_under_a_paragraph_is_a_heading_of_two_lines() {
    let text = "Call the DBA first.\nThen page the lead.\n---\nNext step\n";
    assert_eq!(headings(text), ["Call the DBA first. Then page the lead."]);
    assert!(cut(text)[0].text.contains("Call the DBA first.\nThen page the lead.\n"));
}

#[test]
fn md_11_front_matter_is_metadata() {
    let document = parse(b"---\ntitle: Kafka lag\nowner: sre\n---\n\n# Heading\n\ntext\n");
    assert_eq!(document.record.title, "Kafka lag");
    assert_eq!(document.record.headings.len(), 1);
    assert_eq!(document.record.headings[0].line, 6);
    assert_eq!(document.chunks[0].lines, [6, 8]);
    assert!(!document.chunks[0].text.contains("owner"));
    assert_eq!(parse(b"+++\ntitle = \"T\"\n+++\ntext\n").record.title, "T");
    // A rule at the top is no front matter, and a title may be quoted or folded.
    assert_eq!(parse(b"---\n\nA sentence here.\n\n---\n\nmore\n").chunks[0].lines, [1, 7]);
    assert_eq!(parse(b"---\ntitle: \"a: b\" # c\n---\nx\n").record.title, "a: b");
    assert_eq!(parse(b"---\ntitle: >\n  long title\n---\nx\n").record.title, "long title");
}

#[test]
fn md_13_commented_text_is_not_there() {
    let text = "## Live\n\na\n\n<!--\n## Retired step\nrm -rf /data\n-->\n\n## Also live\n\nb <!-- gone --> c\n";
    assert_eq!(headings(text), ["Live", "Also live"]);
    let all: String = cut(text).into_iter().map(|c| c.text).collect();
    assert!(!all.contains("rm -rf") && !all.contains("gone") && all.contains("b  c"));
    assert!(cut("## A\n\n```html\n<!-- kept -->\n```\n")[0].text.contains("<!-- kept -->"));
}

#[test]
fn md_14_a_comment_in_a_heading_is_not_its_text() {
    let document = parse(b"## Before\n\na\n\n## Rollback <!-- review me -->\n\nb\n");
    assert_eq!(document.record.headings[1].text, "Rollback");
    assert_eq!(document.record.headings[1].anchor, "rollback");
}

#[test]
fn md_16_quoted_headings_are_text() {
    assert_eq!(
        headings("## Incident\n\n> ## quoted title\n> #tag\n\n- # item\n\nreal text\n"),
        ["Incident"]
    );
}

#[test]
fn md_17_a_heading_needs_a_space_or_a_tab() {
    assert_eq!(headings("##nospace is text\n\n##\tTabbed\n\nx\n"), ["Tabbed"]);
}

#[test]
fn md_19_a_byte_order_mark_hides_nothing() {
    let document = parse("\u{feff}## First\r\n\r\na\r\n\r\n## Second\r\n\r\nb\r\n".as_bytes());
    assert_eq!(trails(&document.chunks), ["1-3 First", "5-7 Second"]);
    assert!(document.chunks.iter().all(|c| !c.text.contains('\u{feff}') && !c.text.contains('\r')));
    assert_eq!(document.bytes[..3], *b"\xef\xbb\xbf", "the stored copy keeps its own bytes");
}

#[test]
fn md_20_a_heading_without_text_goes_with_what_follows() {
    let chunks = cut("# Guide\n## Install\nrun the\ninstaller\n");
    assert_eq!(trails(&chunks), ["1-4 Guide > Install"]);
    let chunks = cut("## A\n\n## B\n\ntext\n\n## C\n");
    assert_eq!(chunks.len(), 1, "{:?}", trails(&chunks));
    assert!(chunks[0].text.contains("## A") && chunks[0].text.contains("## C"));
    assert_eq!(chunks[0].heading_path, ["B"]);
    let chunks = cut("# Only a title\n");
    assert_eq!((chunks.len(), chunks[0].text.as_str()), (1, "# Only a title\n"));
}

#[test]
fn md_22_and_23_trails_follow_the_levels() {
    assert_eq!(
        trails(&cut("# Doc\n\n### Sub\n\na\n\n## Sec\n\nb\n")),
        ["1-5 Doc > Sub", "7-9 Doc > Sec"]
    );
    assert_eq!(
        trails(&cut("# Catalog\n\n### alpha\n\na\n\n### beta\n\nb\n")),
        ["1-5 Catalog > alpha", "7-9 Catalog > beta"]
    );
}

#[test]
fn md_25_every_piece_of_a_long_list_carries_its_heading() {
    let items: String =
        (0..300).map(|n| format!("- item {n} with a handful of words in it\n")).collect();
    let chunks = cut(&format!("# T\n\n## Success criteria\n\n{items}"));
    assert!(chunks.len() > 2);
    assert!(
        chunks.iter().all(|c| c.heading_path == ["T", "Success criteria"]
            && c.tokens as usize <= CHUNK_TOKENS_MAX)
    );
    for chunk in &chunks {
        assert!(chunk.text.matches("- item").count() > 1, "{}", chunk.text);
    }
}

#[test]
fn md_26_tables_are_cut_between_rows_with_their_header() {
    let rows: String = (0..200).map(|n| format!("| {n} | tcp | service-{n}.example |\n")).collect();
    let chunks = cut(&format!(
        "## Ports\n\nAll of them:\n\n| port | proto | owner |\n|---|---|---|\n{rows}\nAfter.\n"
    ));
    assert!(chunks.len() > 3);
    for chunk in &chunks {
        assert!(
            chunk.text.contains("| port | proto | owner |\n|---|---|---|\n| "),
            "{}",
            chunk.text
        );
    }
    for n in 0..200 {
        let row = format!("| {n} | tcp | service-{n}.example |");
        assert_eq!(chunks.iter().filter(|c| c.text.lines().any(|l| l == row)).count(), 1, "{row}");
    }
    assert_eq!(chunks.iter().filter(|c| c.text.contains("All of them")).count(), 1);
    assert!(chunks.last().is_some_and(|c| c.text.contains("After.")));
}

#[test]
fn md_28_definitions_go_where_they_are_used() {
    let text = "## Dash\n\nSee [board][d] and note[^1].\n\n## Other\n\nx\n\n[d]: https://example.com/d\n[^1]: only in region b\n";
    let chunks = cut(text);
    assert_eq!(chunks.len(), 2);
    assert!(
        chunks[0].text.contains("https://example.com/d")
            && chunks[0].text.contains("only in region b")
    );
    assert_eq!(own_lines(&chunks[0]), ["## Dash", "", "See [board][d] and note[^1]."]);
    assert!(chunks[1].text.contains('x'));
}

#[test]
fn md_29_hostile_input_takes_linear_time() {
    let reference = format!("[r]: <{}>\n\n{}", "x".repeat(1000), "[r] ".repeat(1000));
    for (name, text) in [
        ("links", "[ (](".repeat(40_000)),
        ("angles", "[a](<b".repeat(50_000)),
        ("reference", reference),
        ("quotes", ">".repeat(20_000)),
        ("lists", "- ".repeat(20_000)),
        ("stars", "*a_ ".repeat(50_000)),
        ("fences", "```\n".repeat(50_000)),
        ("pipes", "|".repeat(100_000)),
        ("headings", "# x\n".repeat(50_000)),
    ] {
        let started = Instant::now();
        let document = document::parse(b"x.md", text.clone().into_bytes(), None, &COUNTER);
        assert!(document.is_ok(), "{name}");
        // Not a benchmark: a quadratic parser needs minutes for these.
        assert!(
            started.elapsed().as_secs() < 20,
            "{name} took {:?} for {} bytes",
            started.elapsed(),
            text.len()
        );
    }
}

#[test]
fn a_section_is_whole_up_to_the_cap_and_cut_at_subheadings_over_it() {
    let small = "## S\n\nlead\n\n### One\n\na\n\n### Two\n\nb\n";
    assert_eq!(cut(small).len(), 1);
    assert_eq!(trails(&cut(small)), ["1-3 S", "5-7 S > One", "9-11 S > Two"]);
    let filler = "some words to fill the section with text\n\n".repeat(60);
    let large = cut(&format!("## S\n\nlead\n\n### One\n\n{filler}\n### Two\n\n{filler}"));
    let paths: Vec<_> = large.iter().map(|c| c.heading_path.join(" > ")).collect();
    assert_eq!(paths, ["S", "S > One", "S > Two"]);
    assert!(large.iter().all(|c| c.part.is_none()));
}

#[test]
fn documents_without_headings_and_empty_ones() {
    let document = parse(b"just text\n\nmore\n");
    assert_eq!((document.record.title.as_str(), document.chunks.len()), ("page", 1));
    assert!(document.chunks[0].heading_path.is_empty());
    for empty in [&b""[..], b"\n\n \n", b"---\ntitle: x\n---\n", b"<!-- only -->\n"] {
        assert!(parse(empty).chunks.is_empty());
    }
}

#[test]
fn headings_lose_their_markup() {
    let of = |line: &str| headings(&format!("{line}\n\nx\n"));
    assert_eq!(of("## Set `fs.inotify` in [sysctl](x.md) ##"), ["Set fs.inotify in sysctl"]);
    assert_eq!(of("## Restore {#restore-db}"), ["Restore"]);
    assert_eq!(of("## <a name=\"x\"></a>**Bold** &amp; more"), ["Bold & more"]);
    assert_eq!(of("##"), [""; 0]);
}

#[test]
fn ids_stay_when_lines_move() {
    let ids = |text: &str| cut(text).into_iter().map(|c| c.id).collect::<Vec<_>>();
    let before = ids("# T\n\n## A\n\na\n\n## A\n\nb\n");
    let after = ids("# T\n\nnew paragraph\n\n## A\n\na\n\n## A\n\nb\n");
    assert_eq!(before, after[1..], "sections keep their names when text is added above");
    assert_eq!(before.len(), 2);
    assert_ne!(before[0], before[1]);
}

/// Documents of blocks that could be cut wrongly.
fn documents() -> impl Strategy<Value = String> {
    let word = "[a-z]{1,8}";
    let sentence = prop::collection::vec(word, 1..30).prop_map(|w| w.join(" "));
    let block = prop_oneof![
        4 => sentence.clone().prop_map(|s| format!("{s}.\n")),
        2 => (1usize..5, word).prop_map(|(level, t)| format!("{} {t}\n", "#".repeat(level))),
        2 => (1usize..150, word).prop_map(|(n, w)| format!("```sh\n{}```\n", format!("## {w} --flag 10.0.0.1\n").repeat(n))),
        1 => (1usize..120, word).prop_map(|(n, w)| format!("| a | b |\n|---|---|\n{}", format!("| {w} | x |\n").repeat(n))),
        2 => (1usize..60, sentence.clone()).prop_map(|(n, s)| (0..n).map(|i| format!("{}. {s}\n", i + 1)).collect()),
        1 => sentence.clone().prop_map(|s| format!("> **Warning:** {s}\n")),
        1 => (word, sentence).prop_map(|(w, s)| format!("1. {s}\n\n   ```\n   # {w}\n   ```\n\n2. end\n")),
        1 => Just("<!-- hidden\n## no -->\n".to_owned()),
        1 => word.prop_map(|w| format!("{w}\n---\n")),
        1 => word.prop_map(|w| format!("[{w}]: https://x.example/{w}\n\nsee [{w}]\n")),
        1 => (1usize..3000).prop_map(|n| format!("{}\n", "ab/".repeat(n))),
    ];
    prop::collection::vec(block, 0..14).prop_map(|blocks| blocks.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nothing_doubled(text in documents()) {
        let chunks = cut(&text);
        let mut at = 0u32;
        let mut kept: Vec<(u32, String)> = Vec::new();
        for chunk in &chunks {
            prop_assert!(chunk.check().is_ok(), "{:?}", chunk.check());
            prop_assert!(chunk.tokens as usize <= CHUNK_TOKENS_MAX, "{} tokens", chunk.tokens);
            prop_assert_eq!(chunk.tokens as usize, COUNTER.count(&chunk.text));
            prop_assert!(chunk.lines[0] >= at, "chunks overlap at line {}", chunk.lines[0]);
            prop_assert_eq!(open_fences(&chunk.text), 0, "{}", chunk.text);
            at = chunk.lines[1];
            let covered: String = chunk.sections.iter().map(|s| chunk.section_text(s)).collect();
            prop_assert_eq!(&covered, &chunk.text, "the sections cover the text");
            for (n, line) in own_lines(chunk).into_iter().enumerate() {
                kept.push((chunk.lines[0] + n as u32, line.to_owned()));
            }
        }
        let mut hidden = false;
        for (n, line) in (1u32..).zip(text.lines()) {
            let starts = line == "<!-- hidden";
            hidden |= starts;
            let counts = !hidden && !line.trim().is_empty() && !line.starts_with('[');
            if line.ends_with("no -->") { hidden = false; }
            if !counts { continue; }
            // A line over the cap is cut into pieces that together are the line.
            let whole = kept.iter().filter(|(_, l)| l == line).count();
            let same_lines = text.lines().filter(|l| *l == line).count();
            if COUNTER.count(line) < CHUNK_TOKENS_MAX / 2 && !line.starts_with("```") && line != "|---|---|" {
                prop_assert_eq!(whole, same_lines, "line {} `{}` stands {} times", n, line, whole);
                prop_assert!(kept.iter().any(|(at, l)| *at == n && l == line), "line {} is numbered wrongly", n);
            }
        }
    }

    #[test]
    fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(document) = document::parse(b"x.md", bytes, None, &COUNTER) {
            for chunk in &document.chunks {
                prop_assert!(chunk.check().is_ok());
            }
        }
    }

    #[test]
    fn no_markup_breaks_it(text in "([#>*_`~|\\-+=<!\\[\\](){}:.\"'\\\\&/ \\t\\na1é🚨\\r]|<!--|-->|```|---\\n|\\+\\+\\+\\n){0,200}") {
        if let Ok(document) = document::parse(b"x.md", text.into_bytes(), None, &COUNTER) {
            for chunk in &document.chunks {
                prop_assert!(chunk.check().is_ok(), "{:?}", chunk.check());
                prop_assert!(chunk.tokens as usize <= CHUNK_TOKENS_MAX);
            }
        }
    }
}

#[test]
fn a_fence_that_fits_is_never_cut_for_its_heading() {
    let code: String = (0..98).map(|n| format!("echo {n} a-b c\n")).collect();
    let chunks = cut(&format!("## A heading of some more words than usual\n\n```sh\n{code}```\n"));
    let whole = chunks.iter().filter(|c| c.text.contains("echo 0 ") && c.text.contains("echo 97 "));
    assert_eq!(whole.count(), 1, "{:?}", chunks.iter().map(|c| c.tokens).collect::<Vec<_>>());
}

#[test]
fn the_first_piece_of_a_huge_row_keeps_its_heading_and_parts_are_counted_right() {
    let cell = "word-1.2.3 <br> - ".repeat(300);
    let chunks = cut(&format!("## Versions\n\n| a | b |\n|---|---|\n| {cell} | x |\n\n"));
    assert!(chunks.len() > 2);
    assert!(chunks[0].text.starts_with("## Versions\n\n| a | b |\n|---|---|\n| word"));
    for (n, chunk) in chunks.iter().enumerate() {
        let part = chunk.part.expect("a piece");
        assert_eq!((part.index as usize, part.of as usize), (n + 1, chunks.len()));
        assert!(chunk.tokens as usize <= CHUNK_TOKENS_MAX && chunk.text.contains("|---|---|"));
    }
}

#[test]
fn a_closing_sequence_may_be_followed_by_tabs() {
    assert_eq!(headings("## A ##\t\n\nx\n"), ["A"]);
    assert_eq!(headings("## A #### \t \n\nx\n\n# B `c` #\t"), ["A", "B c"]);
    assert_eq!(headings("## ##\t\n\nx\n"), [""; 0]);
    // No closing sequences: one is no word of its own, one is escaped, one is code.
    assert_eq!(headings("# C#\t\n\n# D \\#\t\n\n# E `#`\t\n"), ["C#", "D #", "E #"]);
    assert_eq!(headings("# F ##\tG\t\n"), ["F ## G"]);
}

#[test]
fn the_pieces_of_a_quoted_line_stay_in_their_quote() {
    let line = "word-1.2.3 ".repeat(900);
    for (before, marks) in [("> ", "> "), ("> > ", "> > "), (">", ">"), ("- > ", "  > ")] {
        let text = format!("{before}```sh\n{marks}{line}\n{marks}```\n");
        let chunks = cut(&text);
        assert!(chunks.len() > 3, "{before}");
        let mut joined = String::new();
        for chunk in &chunks {
            assert!(chunk.tokens as usize <= CHUNK_TOKENS_MAX);
            for own in own_lines(chunk).iter().filter(|l| l.contains("word")) {
                joined.push_str(own.strip_prefix(marks).unwrap_or_else(|| panic!("{own}")));
            }
            // Read alone it is one fence, and nothing but it.
            let document = parse(chunk.text.as_bytes());
            assert_eq!(document.warnings, [], "{}", chunk.text);
        }
        assert_eq!(joined, line, "{before}");
    }
}

#[test]
fn the_closing_fence_after_a_cut_line_stands_in_the_last_piece() {
    let line = "word-1.2.3 ".repeat(500);
    let chunks = cut(&format!("## B\n\n```\n{line}\n```\n\n## C\n\nx\n"));
    let pieces = &chunks[..chunks.len() - 1];
    assert!(pieces.len() > 2);
    let lines: Vec<[u32; 2]> = pieces.iter().map(|c| c.lines).collect();
    assert_eq!(lines[0], [1, 4]);
    assert!(lines[1..lines.len() - 1].iter().all(|l| *l == [4, 4]), "{lines:?}");
    assert_eq!(lines[lines.len() - 1], [4, 5]);
    assert!(pieces.iter().all(|c| c.text.ends_with("\n```\n") && c.appended == 1));
    assert_eq!(pieces[pieces.len() - 1].sections[0].lines, [4, 5]);
    // A fence that is never closed has no such line.
    let chunks = cut(&format!("```\n{line}\n"));
    assert_eq!(chunks[chunks.len() - 1].lines, [2, 2]);
}

#[test]
fn html_over_the_cap_is_html_in_each_piece() {
    let rows: String = (0..400).map(|n| format!("# row {n} of some words\n\n")).collect();
    let text = format!("## Dump\n\n<pre class=\"log\">\n{rows}</pre>\n\n## Next\n\nx\n");
    let chunks = cut(&text);
    assert_eq!(headings(&text), ["Dump", "Next"]);
    let (last, pieces) = chunks.split_last().unwrap();
    assert_eq!(last.heading_path, ["Next"]);
    assert!(pieces.len() > 3);
    for (n, chunk) in pieces.iter().enumerate() {
        let alone = headings(&chunk.text);
        assert_eq!(alone.iter().filter(|h| *h != "Dump").count(), 0, "{}", chunk.text);
        assert!(chunk.text.contains("<pre class=\"log\">\n") && chunk.text.ends_with("</pre>\n"));
        assert_eq!(chunk.repeated, u32::from(n > 0));
        assert_eq!(chunk.appended, u32::from(n + 1 < pieces.len()));
        assert!(chunk.tokens as usize <= CHUNK_TOKENS_MAX);
    }
    let kept: Vec<_> =
        pieces.iter().flat_map(own_lines).filter(|l| l.starts_with("# row")).collect();
    assert_eq!(kept.len(), 400);
    // The same for a block that ends with an empty line, in a quote.
    let rows: String = (0..300).map(|n| format!("> <tr><td>\n> # {n}\n> </td></tr>\n")).collect();
    for chunk in cut(&format!("> <table>\n{rows}> </table>\n")) {
        assert_eq!(headings(&chunk.text), [""; 0], "{}", chunk.text);
        assert!(chunk.text.starts_with("> <table>\n"), "{}", chunk.text);
    }
}

#[test]
fn a_blanked_comment_does_not_change_how_the_rest_is_read() {
    let text = "## A\n\n<!-- x --> # no heading\n\npara\n<!-- y\ny --> tail\n===\n\n\
                <!-- z -->~~~\nno fence\n\n> <!-- q --> ## none either\n\nb <!-- w --> # c\n\n\
                <!-- v -->\n## B\n\nd\n";
    assert_eq!(headings(text), ["A", "B"]);
    let chunks = cut(text);
    assert_eq!(chunks.len(), 2);
    assert_eq!(headings(&chunks[0].text), ["A"], "{}", chunks[0].text);
    assert_eq!(parse(chunks[0].text.as_bytes()).warnings, []);
    for (hidden, shown) in [("x", "no heading"), ("y", "tail"), ("z", "~~~"), ("q", "## none")] {
        assert!(!chunks[0].text.contains(&format!("<!-- {hidden}")), "{}", chunks[0].text);
        assert!(chunks[0].text.contains(shown), "{}", chunks[0].text);
    }
    assert!(chunks[0].text.contains("\nb  # c\n"), "{}", chunks[0].text);
    // What stands beside a comment is still searched for.
    assert!(runbook_shared::markdown::plain(&chunks[0].text).prose.contains("no heading"));
}

//! The rules against positives that others published, values that are none, and hostile input.
#![expect(clippy::print_stdout, reason = "figures, with --no-capture")]

use super::finder::{self, Finder};
use super::rule::RuleSet;
use super::{Allowed, Finding, Policy, find, redact};
use std::time::{Duration, Instant};

const GITLEAKS: &str = include_str!("../../testdata/secrets/gitleaks-positives.tsv");
const DETECT_SECRETS: &str = include_str!("../../testdata/secrets/detect-secrets-positives.tsv");
/// Stands within every longer word of those files, so that nobody takes one for a live token.
const CUT: char = '\u{a6}';

/// Values that were redacted.
fn values(text: &str) -> Vec<&str> {
    find(text, "x.md").into_iter().map(|f| &text[f.span]).collect()
}

fn rules(text: &str) -> Vec<String> {
    find(text, "x.md").into_iter().map(|f| f.rule).collect()
}

fn redacted(text: &str) -> String {
    redact(text, &find(text, "x.md"))
}

/// A seeded generator (xorshift).
struct Rng(u64);

impl Rng {
    fn of(&mut self, alphabet: &str, n: usize) -> String {
        let chars: Vec<char> = alphabet.chars().collect();
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % chars.len() as u64).unwrap()
        };
        (0..n).map(|_| chars[next()]).collect()
    }
}

/// Puts values where a positive names their kind.
fn filled(text: &str, rng: &mut Rng) -> String {
    const ALNUM: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (kind, tail) = after.split_once('}').unwrap_or((after, ""));
        let (name, n) =
            kind.split_once(':').map_or((kind, 0), |(k, n)| (k, n.parse().unwrap_or(0)));
        let value = match name {
            "password" => rng.of(&format!("{ALNUM}!@#%^*+=-_."), 17),
            "phrase" => (0..3).map(|_| rng.of(ALNUM, 6)).collect::<Vec<_>>().join(" "),
            "hex" => rng.of("0123456789abcdef", n),
            "alnum" => rng.of(ALNUM, n),
            "lower" => rng.of(&ALNUM[..26], n),
            "base32" => rng.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", n),
            "key" => (0..6).map(|_| rng.of(ALNUM, 64)).collect::<Vec<_>>().join("\n"),
            _ => format!("{{{kind}}}"),
        };
        out.push_str(&value);
        rest = tail;
    }
    out + rest
}

/// Share of positives in which something is found, and the first that are not.
fn recall(file: &str) -> (f64, usize, Vec<String>) {
    let mut rng = Rng(20_261_201);
    let (mut all, mut missed) = (0usize, Vec::new());
    for line in file.lines().filter(|l| !l.starts_with('#')) {
        let (rule, text) = line.split_once('\t').expect("rule and text");
        let text: String = serde_json::from_str(text).expect("a JSON string");
        let text = filled(&text.replace(CUT, ""), &mut rng);
        all += 1;
        if find(&text, "x.md").is_empty() {
            missed.push(format!("{rule}: {}", text.chars().take(80).collect::<String>()));
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let share = 1.0 - missed.len() as f64 / all as f64;
    (share, all, missed)
}

#[test]
fn every_rule_compiles_or_is_named() {
    let set = RuleSet::read(finder::GITLEAKS).unwrap();
    let problems: Vec<_> =
        set.rules.iter().filter_map(|r| Some(format!("{}: {}", r.id, r.problem()?))).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    // It looks at names of files alone; such a file is no document.
    assert_eq!(set.without_pattern, ["pkcs12-file"]);
    assert_eq!(set.rules.len() + set.without_pattern.len(), 222, "as many as the file has");
    for (id, _) in finder::REPLACED {
        assert!(set.rules.iter().any(|r| r.id == id), "{id} is none of gitleaks' any more");
    }
    let finder = Finder::new();
    let problems: Vec<_> = finder.rules().iter().filter_map(|r| r.problem()).collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn carried_data_is_what_it_says() {
    let readme = include_str!("data/README.md");
    use sha2::Digest;
    let hash = sha2::Sha256::digest(finder::GITLEAKS.as_bytes());
    let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    assert!(readme.contains(&hash), "data/README.md does not name the sha256 {hash}");
}

#[test]
fn finds_what_others_publish_as_positives() {
    let (gitleaks, all, missed) = recall(GITLEAKS);
    println!("recall over {all} positives of gitleaks: {gitleaks:.4}; missed: {missed:#?}");
    assert!(gitleaks >= 0.95, "{gitleaks}");
    let (detect, all, missed) = recall(DETECT_SECRETS);
    println!("recall over {all} positives of detect-secrets: {detect:.4}; missed: {missed:#?}");
    assert!(detect >= 0.95, "{detect}");
}

#[test]
fn samples_and_placeholders_stand() {
    for text in [
        format!("aws_access_key_id = AKIA{}EXAMPLE", "IOSFODNN7"),
        // The storage emulator's, the same on every machine.
        format!(
            "AccountKey={}{}",
            "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsu",
            "Fq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
        ),
        "token: <YOUR_TOKEN>".into(),
        "password: ${DB_PASS}".into(),
        "password: $DB_PASSWORD".into(),
        "password: changeme".into(),
        "password: {{ vault_db_password }}".into(),
        "password: ****".into(),
        "password=%DB_PASSWORD%".into(),
        "password: xxxxxxxxxxxx".into(),
        "password: \"...\"".into(),
        "DB_PASSWORD=$(cat /run/secrets/db)".into(),
        "password: your-password-here".into(),
        "psql postgres://app:password@db/app".into(),
        "curl -u user:$TOKEN https://x".into(),
        "token = os.environ['TOKEN']".into(),
        "const token = getToken(user1);".into(),
        "the password is stored in Vault under secret/db2".into(),
        "password: see 1Password".into(),
        "secretName: db-credentials-2".into(),
        "token_url: https://login.internal/oauth2/token".into(),
        "password_file: /etc/app/db1.pass".into(),
        "| Password | stored in the safe |".into(),
    ] {
        assert_eq!(values(&text), Vec::<&str>::new(), "{text}");
    }
}

#[test]
fn digests_and_ids_stand() {
    for text in [
        "integrity: sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==",
        "fixed in 8f14e45fceea167a5a36dedd4bea2543deadbeef",
        "request id 550e8400-e29b-41d4-a716-446655440000",
        "image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "fingerprint: 12:34:56:78:9a:bc:de:f0:12:34:56:78:9a:bc:de:f0:12:34:56:78",
        "commit: 8f14e45fceea167a5a36dedd4bea2543deadbeef",
        "key id A3F1E9C0B827D54E",
        "risk-based-approach-for-everything",
        "[aks-get-credentials]: learn/quick-deploy-2.md#connect",
        "See [credentials](/docs/credentials-2/#rotate-keys2).",
    ] {
        assert_eq!(values(text), Vec::<&str>::new(), "{text}");
    }
}

#[test]
fn only_the_value_goes() {
    assert_eq!(
        redacted("postgres://app:S3cr3t@db:5432/x"),
        "postgres://app:[REDACTED:url-credentials]@db:5432/x"
    );
    assert_eq!(
        redacted("password: `hunter2-9`, then go"),
        "password: `[REDACTED:assignment]`, then go"
    );
    let table = "| user | password |\n|---|---|\n| app | Zq8uT5xw |\n";
    assert_eq!(
        redacted(table),
        "| user | password |\n|---|---|\n| app | [REDACTED:table-column] |\n"
    );
}

#[test]
fn a_key_goes_as_a_whole_and_its_fence_stays() {
    let mut rng = Rng(3);
    let body: Vec<String> = (0..32).map(|_| rng.of("abcdefghABCDEFGH0123456789+/", 64)).collect();
    let (begin, end) = ("-----BEGIN RSA PRIVATE", "-----END RSA PRIVATE");
    let text =
        format!("```\n{begin} KEY-----\n{}\n{end} KEY-----\n```\n\nafter\n", body.join("\n"));
    let out = redacted(&text);
    assert_eq!(out, format!("```\n[REDACTED:private-key]{}\n```\n\nafter\n", "\n".repeat(33)));
    assert_eq!(out.lines().count(), text.lines().count());
}

#[test]
fn the_secret_near_an_access_id_goes_and_a_commit_does_not() {
    let mut rng = Rng(5);
    let id = format!("AK{}{}", "IA", rng.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16));
    let secret = rng.of("abcdefghijABCDEFGHIJ0123456789+/", 37) + "aB3";
    let session =
        format!("IQoJb3{}{}", "JpZ2luX2Vj", rng.of("abcdefghijABCDEFGHIJ0123456789", 200));
    let commit = rng.of("0123456789abcdef", 40);
    let text = format!("{id}\nregion eu-west-1\n{secret}\n{session}\nbuilt from {commit}\n");
    assert_eq!(values(&text), [id.as_str(), &secret, &session]);
}

#[test]
fn a_value_that_is_known_goes_wherever_it_stands() {
    let text = "password: Zq8-uT5xw\n\nLater, type Zq8-uT5xw twice.\n";
    assert_eq!(find(text, "x.md").iter().map(|f| f.line).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn exceptions_are_by_comment_or_by_configuration() {
    let line = "password: Zq8-uT5xw";
    assert_eq!(rules(line), ["assignment"]);
    for text in [
        format!("{line} <!-- runbook-secrets: allow -->"),
        format!("{line} # gitleaks:allow"),
        format!("<!-- runbook-secrets: allow -->\n{line}"),
    ] {
        assert_eq!(rules(&text), Vec::<String>::new(), "{text}");
    }
    let allow =
        |entry: Allowed| Policy { enabled: true, allow: vec![entry] }.find(line, "ops/db.md").len();
    let path = |p: &str| Allowed { path: Some(p.into()), ..Allowed::default() };
    assert_eq!(allow(path("ops/db.md")), 0);
    assert_eq!(allow(path("ops/")), 0);
    assert_eq!(allow(path("op")), 1);
    assert_eq!(allow(Allowed { rule: Some("jwt".into()), ..Allowed::default() }), 1);
    let both = Allowed { rule: Some("assignment".into()), line: Some(2), ..Allowed::default() };
    assert_eq!(allow(both), 1);
    assert_eq!(Policy { enabled: false, ..Policy::default() }.find(line, "x").len(), 0);
    assert_ne!(Policy { enabled: false, ..Policy::default() }.stamp(), Policy::default().stamp());
}

#[test]
fn hostile_text_takes_no_longer_than_other_text() {
    let parts = [
        "a",
        "password",
        "password=",
        "password: ",
        "://",
        "://a:",
        "-----BEGIN PRIVATE KEY-----\n",
        "| password ",
        "|---|\n",
        "kind: Secret\ndata:\n",
        "AKIA",
        "curl -u ",
        "<password>",
        "[REDACTED:",
        "eyJ",
        "token token ",
        "\n",
        "\u{1f510}",
        "secret\n",
        "key: |\n",
        "api_key=\"",
        "bearer ",
        "login a password ",
        "name: secret\n",
    ];
    let ids = format!("AK{}{} ", "IA", "ABCDEFGHIJKLMNOP");
    let words = "password token secret key credential pass api auth access bearer login ";
    let _ = find(words, "x.md");
    for part in parts.into_iter().chain([ids.as_str(), words]) {
        let text = part.repeat(200_000 / part.len());
        let started = Instant::now();
        let found = find(&text, "x.md");
        let took = started.elapsed();
        println!("{took:>12.2?}  {part:?}");
        assert!(took < Duration::from_secs(4), "{part:?}: {took:?} for {} bytes", text.len());
        assert!(redact(&text, &found).len() < 40 * text.len() + 100);
    }
}

proptest::proptest! {
    /// Whatever the text: spans are in order and on characters, and no line is lost.
    #[test]
    fn lines_are_kept(parts in proptest::collection::vec(
        proptest::sample::select(vec![
            "password: ", "Zq8-uT5xw", "\n", "é", "\u{1f510}", "`", "> ", "postgres://a:b9x!@c", "| pwd | q9w8e7r6 |",
            "-----BEGIN PRIVATE KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", "-----END PRIVATE KEY-----", "secret",
            "=", "\"", "'", "token ", "x1y2z3w4v5u6", " ", "kind: Secret\n", "data:\n", "  a: Zm9vYmFyOTk=\n",
        ]), 0..40)) {
        let text = parts.concat();
        let found: Vec<Finding> = find(&text, "x.md");
        for pair in found.windows(2) {
            assert!(pair[0].span.end <= pair[1].span.start);
        }
        let out = redact(&text, &found);
        assert_eq!(out.matches('\n').count(), text.matches('\n').count());
    }
}

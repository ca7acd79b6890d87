//! What a value looks like: a placeholder, a published sample, a digest, a word, or a secret.

/// blake3, first 16 hex digits, of values that vendors print for everybody: the key of the storage emulator
/// of Azure, the token of jwt.io, the test key of Stripe's documentation.
const SAMPLES: [&str; 3] = ["e8322be1fa3e0aa3", "2bffda0ca10692e8", "286e3a91f00ebdbe"];

/// Words that stand in the place of a value.
const STAND_INS: [&str; 34] = [
    "password",
    "passwd",
    "passw0rd",
    "p@ssw0rd",
    "pa$$w0rd",
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "changeme",
    "change-me",
    "change_me",
    "changeit",
    "replaceme",
    "replace-me",
    "replace_me",
    "placeholder",
    "redacted",
    "removed",
    "hidden",
    "masked",
    "dummy",
    "sample",
    "example",
    "foobar",
    "foo",
    "bar",
    "baz",
    "none",
    "null",
    "undefined",
    "todo",
    "tbd",
];

/// Parts that no real value has.
const STAND_IN_PARTS: [&str; 26] = [
    "example",
    "your",
    "changeme",
    "change_me",
    "change-me",
    "change.me",
    "placeholder",
    "redacted",
    "replace_",
    "replace-",
    "replaceme",
    "xxxx",
    "****",
    "....",
    "####",
    "dummy",
    "fake",
    "foobar",
    "<",
    "{{",
    "${",
    "$(",
    "insert",
    "…",
    "•••",
    "@@",
];

/// Parts that not even a token of a known form has.
const FORM_STAND_IN_PARTS: [&str; 9] =
    ["example", "xxxxx", "****", "....", "<", "{{", "${", "…", "[redacted"];

/// How a value stands in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The name beside it, lower case; empty where there is none.
    pub(super) name: &'a str,
    /// What comes right after it, on its line.
    pub(super) rest: &'a str,
}

/// Shannon entropy in bits a character, as gitleaks counts it.
#[must_use]
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = rustc_hash::FxHashMap::<char, u32>::default();
    for c in text.chars() {
        *counts.entry(c).or_insert(0) += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "lengths of a line")]
    let len = text.len() as f64;
    counts.values().map(|n| f64::from(*n) / len).map(|f| -f * f.log2()).sum()
}

/// True for a value that says itself that it is none, and for published samples.
#[must_use]
pub(super) fn is_stand_in(value: &str) -> bool {
    let lower = value.to_lowercase();
    let core = lower.trim_matches(|c: char| !c.is_alphanumeric());
    let letters = core.trim_end_matches(|c: char| c.is_ascii_digit());
    let first = lower.chars().next();
    let all_same = first.is_some_and(|f| lower.chars().all(|c| c == f));
    core.is_empty()
        || all_same
        || STAND_INS.contains(&core)
        || STAND_INS.contains(&letters)
        || STAND_IN_PARTS.iter().any(|p| lower.contains(p))
        || starts_as_reference(value)
        || is_sequence(value)
        || is_sample(value)
        || ["password", "secret", "passwd"].iter().any(|w| lower.contains(w))
            && is_words(value, false)
}

/// True for `abcdef.1234567890abcdef`.
fn is_sequence(value: &str) -> bool {
    let bytes = value.as_bytes();
    let follows =
        |pair: &[u8]| pair[1] == pair[0].wrapping_add(1) || (pair[0], pair[1]) == (b'9', b'0');
    bytes.len() >= 12 && bytes.windows(2).filter(|p| follows(p)).count() * 4 >= bytes.len() * 3
}

/// True when a value that has the form of a secret is one; it may hold any word by chance.
#[must_use]
pub(super) fn is_form(value: &str, place: &Place<'_>) -> bool {
    let lower = value.to_lowercase();
    value.len() > 400
        || value.contains('\n')
        || !FORM_STAND_IN_PARTS.iter().any(|p| lower.contains(p))
            && (value.contains(char::is_alphabetic) || value.len() >= 12 && !value.contains('.'))
            && !is_sample(value)
            && !is_elided(value, place)
            && !starts_as_reference(value)
}

/// True for values that are looked up elsewhere: `$VAR`, `%VAR%`, `@var@`, `&lt;`, `:param`, `[value]`.
fn starts_as_reference(value: &str) -> bool {
    let is_name = |s: &str| {
        !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-()[]'\"".contains(c))
    };
    let framed = |open: char, close: char| {
        value.strip_prefix(open).and_then(|v| v.strip_suffix(close)).is_some_and(is_name)
    };
    value.strip_prefix('$').is_some_and(|rest| {
        let first = rest.chars().next();
        is_name(rest.trim_end_matches(|c: char| !c.is_alphanumeric()))
            && first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
    }) || framed('%', '%')
        || framed('@', '@')
        || framed('[', ']')
        || framed('(', ')')
        || framed('{', '}')
        || value.starts_with(['{', '<'])
        || value.starts_with("&lt")
        || value.starts_with("%(")
        || value.starts_with("%{")
        || value.starts_with("{%")
        || value.starts_with("#{")
        || value.starts_with("!")
            && value[1..].chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '_')
}

fn is_sample(value: &str) -> bool {
    let hash = blake3::hash(value.as_bytes()).to_hex();
    SAMPLES.contains(&&hash[..16]) || value.ends_with("EXAMPLE") || value.ends_with("EXAMPLEKEY")
}

/// True for digests and ids: hex of a digest's length, a UUID, `sha256:…`, an integrity hash, a
/// fingerprint.
#[must_use]
pub(super) fn is_digest(value: &str) -> bool {
    let is_hex = |s: &str| s.bytes().all(|b| b.is_ascii_hexdigit());
    let bare = value.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let lower = bare.to_lowercase();
    let parts: Vec<usize> = bare.split('-').map(str::len).collect();
    (is_hex(bare) && bare.len() >= 7)
        || (parts == [8, 4, 4, 4, 12] && is_hex(&bare.replace('-', "")))
        || ["sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "sha512:", "sha1:", "md5:"]
            .iter()
            .any(|p| lower.starts_with(p))
        || (bare.len() > 12 && bare.split(':').count() > 5 && bare.split(':').all(|p| p.len() == 2))
}

/// True when a value in a place that alone says so is a secret.
#[must_use]
pub(super) fn is_strong(value: &str, place: &Place<'_>) -> bool {
    value.chars().count() >= 3
        && !is_stand_in(value)
        && !is_elided(value, place)
        && !value.starts_with(|c: char| c.is_whitespace() || ",).".contains(c))
}

/// True when only the beginning is shown: `abc...`.
fn is_elided(value: &str, place: &Place<'_>) -> bool {
    value.ends_with("...")
        || ["...", "…", "[...", " ...", "<snip", "\\n..."].iter().any(|e| place.rest.starts_with(e))
}

/// True when a value beside a telling name looks like a secret.
#[must_use]
pub(super) fn is_weak(value: &str, place: &Place<'_>) -> bool {
    if is_stand_in(value)
        || is_elided(value, place)
        || names_something_else(place.name)
        || is_code(value, place)
        || is_date(value)
        || value.starts_with(char::is_whitespace)
        || value.contains(' ') && value.contains(['`', '|', '='])
    {
        return false;
    }
    let len = value.chars().count();
    let count = |test: fn(&char) -> bool| value.chars().filter(test).count();
    let digits = count(char::is_ascii_digit);
    let letters = count(|c| c.is_alphabetic());
    let symbols = count(|c| "!@#$%^&*+=~?§€£".contains(*c));
    let is_password = ["pass", "pwd", "pin"].iter().any(|p| place.name.contains(p));
    let is_account = place.name.contains("cred") && !is_password;
    if is_account
        && (value.contains(['\\', '/'])
            || (value.contains('@') || value.contains("%40")) && value.contains('.'))
    {
        return false;
    }
    if letters == 0 {
        return is_password && digits >= 6 && digits == len;
    }
    if is_words(value, !is_password) {
        return false;
    }
    if is_password {
        return len >= 5 && (digits > 0 || symbols > 0 || (len >= 10 && entropy(value) >= 3.0));
    }
    let is_numbered_word = digits == 1
        && symbols == 0
        && letters + 1 == len
        && is_words(&value[..value.len() - 1], true);
    len >= 8
        && !is_numbered_word
        && ((digits > 0 && entropy(value) >= 2.75)
            || (len >= 16 && entropy(value) >= if symbols > 0 { 3.2 } else { 3.5 }))
}

/// True for `2017-03-10` and `2017-03-10T03:22:11Z`.
fn is_date(value: &str) -> bool {
    let b = value.as_bytes();
    b.len() >= 10
        && b[..10].iter().enumerate().all(|(at, c)| match at {
            4 | 7 => *c == b'-',
            _ => c.is_ascii_digit(),
        })
        && b[10..].iter().all(|c| c.is_ascii_digit() || b"TZ:.+- ".contains(c))
}

/// True for names that hold no secret though a telling word is part of them: what stands right before the
/// value, not what the line says further to the left.
fn names_something_else(before: &str) -> bool {
    const ENDS: [&str; 34] = [
        "file", "filename", "path", "name", "names", "id", "ids", "url", "uri", "hash", "length",
        "len", "size", "policy", "type", "count", "limit", "expiry", "expires", "ttl", "age",
        "dir", "ref", "version", "format", "field", "label", "prompt", "endpoint", "class",
        "provider", "manager", "mode", "required",
    ];
    const OTHERS: [&str; 16] = [
        "public",
        "pub_",
        "hash",
        "digest",
        "checksum",
        "fingerprint",
        "keyid",
        "key_id",
        "tokenizer",
        "creationtoken",
        "bypass",
        "compass",
        "encompass",
        "sha1",
        "sha256",
        "sha512",
    ];
    const FIRST: [&str; 12] = [
        "foreign",
        "partition",
        "sort",
        "cache",
        "row",
        "group",
        "pagination",
        "continue",
        "next",
        "commit",
        "revision",
        "page",
    ];
    let name = before.trim_end_matches(|c: char| !c.is_alphanumeric());
    let is_other = |c: char| !(c.is_alphanumeric() || "_-.".contains(c));
    let start = name.rfind(is_other).map_or(0, |at| at + 1);
    let is_public = name.get(..start).is_some_and(|n| n.trim_end().ends_with("public"));
    let name = name.get(start..).unwrap_or(name);
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    let first = words.next().unwrap_or_default();
    let last = words.next_back().unwrap_or(first);
    is_public
        || ENDS.contains(&last)
        || FIRST.contains(&first)
        || OTHERS.iter().any(|o| name.contains(o))
}

/// True for code, paths, file names, addresses and types.
fn is_code(value: &str, place: &Place<'_>) -> bool {
    const TYPES: [&str; 14] = [
        "string", "str", "bool", "boolean", "int", "integer", "number", "object", "array", "bytes",
        "true", "false", "required", "optional",
    ];
    const ENDS: [&str; 24] = [
        ".txt", ".yaml", ".yml", ".json", ".pem", ".key", ".crt", ".pub", ".md", ".html", ".conf",
        ".cfg", ".ini", ".env", ".sh", ".py", ".go", ".js", ".cs", ".ps1", ".xml", ".tf", ".toml",
        ".enc",
    ];
    let lower = value.to_lowercase();
    let is_call = value.contains('(') && (value.contains(')') || !value.ends_with('('));
    let is_path =
        value.starts_with(['/', '.', '~']) && value.contains('/') || value.contains("://");
    let is_member = value.contains('.')
        && value.split('.').all(|part| {
            let mut chars = part.chars();
            let stem = part.trim_end_matches(|c: char| c.is_ascii_digit() || "[]()".contains(c));
            chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                && chars.all(|c| c.is_ascii_alphanumeric() || "_-[]$".contains(c))
                && !stem.contains(|c: char| c.is_ascii_digit())
        });
    TYPES.contains(&lower.as_str())
        || ENDS.iter().any(|e| lower.ends_with(e))
        || is_call
        || is_path
        || is_member
        || value.starts_with('$')
            && !value[1..].contains(|c: char| "!@#%^&*+=~?$".contains(c))
            && !value[1..].starts_with(|c: char| c.is_ascii_digit())
        || place.rest.starts_with('(')
        || value.starts_with(['[', '('])
        || value.starts_with("--")
        || value.contains("::")
        || value.contains("&&")
        || value.contains("=>")
        || value.split_once('\\').is_some_and(|(domain, user)| {
            let is_name = |s: &str| {
                !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            };
            is_name(domain) && is_name(user) && !domain.starts_with(|c: char| c.is_ascii_digit())
        })
        || is_key_id(value)
        || value.contains("][")
        || value.starts_with("![")
        || value.split_once('=').is_some_and(|(name, v)| {
            matches!(v, "True" | "False" | "true" | "false" | "None" | "null") && !name.is_empty()
        })
}

/// True for the ids and fingerprints of OpenPGP keys: 8, 16 or 40 upper-case hex digits.
fn is_key_id(value: &str) -> bool {
    matches!(value.len(), 8 | 16 | 40)
        && value.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b))
        && value.bytes().any(|b| b.is_ascii_uppercase())
}

/// True for words, alone or joined: `my-secret-name`, `camelCase`, `SOME_NAME`, `k8s-secret`; with
/// `numbered` also such as `node3-eu2`.
fn is_words(value: &str, numbered: bool) -> bool {
    let parts: Vec<&str> = value
        .split(|c: char| "-_./: ,;+@#\\".contains(c))
        .filter(|part| !part.is_empty())
        .collect();
    let is_word = |part: &&str| {
        let part = part.trim_matches(|c: char| "'’()[]*?!".contains(c));
        part.chars().all(char::is_alphabetic) && is_cased_as_word(part)
    };
    let is_number = |part: &&str| part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
    // A short word with a number behind: `v1`, `k8s`, `auth0`, `sha256`, `node3`.
    let is_numbered = |part: &&str| {
        let stem = part.trim_end_matches(|c: char| c.is_ascii_digit());
        numbered
            && stem.len() < part.len()
            && stem.chars().all(|c| c.is_ascii_lowercase())
            && part.len() <= 8
    };
    let is_joined = parts.len() > 1;
    parts
        .iter()
        .all(|p| is_word(p) || (is_joined && (is_number(p) || is_numbered(p) || *p == "k8s")))
        && parts.iter().any(|p| is_word(p) || is_numbered(p))
}

/// True for `word`, `Word`, `WORD` and `camelCase` with parts of a word's length.
fn is_cased_as_word(part: &str) -> bool {
    let humps = part
        .chars()
        .zip(part.chars().skip(1))
        .filter(|(a, b)| a.is_lowercase() && b.is_uppercase());
    let humps = humps.count();
    let vowels = part.chars().filter(|c| "aeiouyAEIOUYäöüéèáóíú".contains(*c)).count();
    let len = part.chars().count();
    humps * 4 <= len && (len < 8 || vowels * 6 >= len) && len < 40
}

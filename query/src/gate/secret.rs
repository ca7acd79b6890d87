//! Requests for the value of a secret: the head of what is asked for decides. A password is one; a
//! password's policy, age, place or owner is not.

use super::words::{Sentence, ends, is_in};

/// Whether the value of a secret is asked for.
pub(super) fn asked(all: &[Sentence], open: &[&Sentence]) -> bool {
    let named = all.iter().any(|s| (0..s.words.len()).any(|at| secret_at(&s.words, at).is_some()));
    let anyone = |s: &Sentence| {
        s.clause(&[
            "anyone|anybody|someone|somebody|who",
            "?here|else",
            "?can|could|has|have",
            "?got",
            "know|knows|got|has|have|remember|remembers|give|send|tell|share|the",
            "?me|us",
        ])
        .and_then(|at| {
            head_from(s, at).map(|(head, _)| {
                near(s, at, head)
                    && !s.has(&["access|changed|rotated|set"])
                    && (s.words[0] != "who" || s.has(&["me|us"]))
            })
        }) == Some(true)
    };
    // What is added after a comma ("the policy says you may") takes nothing back.
    let clauses: Vec<Sentence> = open.iter().flat_map(|s| s.clauses()).collect();
    all.iter().any(anyone)
        || clauses.iter().any(|s| what_is(s) || handed(s))
        || open.iter().any(|s| {
            what_is(s)
                || which(s)
                || handed(s)
                || needed(s)
                || bare(s)
                || guessed(s)
                || place_of_value(s)
                || reaches(s)
                || (named && referred(s, all.len() > 1))
        })
}

/// Words that are secrets by themselves.
const ALONE: &str = "password|passwords|passphrase|passphrases|passcode|passcodes|credentials|credential|secret|secrets|token|tokens|pin|pins|otp|psk|pat|apikey|api-key|apikeys|keytab|htpasswd|logins|jwt|combination|pass";
/// Words that are, after one of [`KINDS`].
const KEYS: &str = "key|keys|string|strings|code|codes|seed|seeds|phrase|string's|word|url|account|json|secret|hash|file|details|store";
/// What makes a key a secret one.
const KINDS: &str = "api|access|private|secret|signing|encryption|decryption|ssh|deploy|license|licence|master|vault|wireguard|gpg|pgp|tls|ssl|unseal|recovery|connection|backup|2fa|mfa|totp|otp|pin|door|alarm|gate|preshared|pre-shared|shared|webhook|bearer|session|host|root|product|activation|seed|service|bastion|entry|safe|unlock|luks|stripe|twilio|sendgrid|mailgun|slack|datadog|aws|gcp|azure|openai|cloudflare|github|gitlab|npm|pypi|hmac|jwt|wifi|wi-fi|wlan|network|office|vpn|datacenter|device|login|password|secrets|env|secret|passwords";
/// Kinds of keys that are not secret, though they look it.
const HARMLESS: &str = "public|primary|foreign|sort|partition|cache|routing|hot|config|redis|map|shortcut|object|s3|composite|error|exit|status|source|country|http|response|return|zip|qr";
/// What a value is asked to be worth: as a noun after a secret it takes its place as the head.
const NO_VALUE: &str = "called|named|stored|kept|meant|based|rotated|supposed|needed|required|allowed|protected|for?|valid|expire|expires|expired|about|made|good|generated|encrypted|hashed|managed|look|mean|work|do|does";

/// Ends of the noun phrases whose head is a secret, each with the index of its head's first word.
fn heads(s: &Sentence) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..s.words.len()).filter_map(|at| {
        let end = secret_at(&s.words, at)?;
        // Another noun after it is the head: "password policy", "token lifetime", "secret name".
        let last = s.words.get(end).is_none_or(|w| {
            is_in(w, "@prep|value|values|is|are|was|has|right|once|straight") || w.contains('@')
        });
        let called = s.words[at] == "secret" && s.words.get(end).is_some_and(|w| w.contains('-'));
        (last || called || (end == at + 1 && is_secret_file(&s.words[at]))).then_some((at, end))
    })
}

fn secret_at(words: &[String], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).and_then(|b| words.get(b)).map_or("", String::as_str);
    if ends(words, at, &["service", "account", "json|key|file"]).is_some() {
        return Some(at + 3);
    }
    if ends(words, at, &[KINDS, KEYS]).is_some() && !is_in(before, "public") {
        let pair = (words[at].as_str(), words[at + 1].as_str());
        let secret = match pair.1 {
            "string" | "strings" => pair.0 == "connection",
            "code" | "codes" => is_in(
                pair.0,
                "recovery|backup|2fa|mfa|otp|totp|pin|door|alarm|gate|entry|safe|unlock|access",
            ),
            "url" => pair.0 == "webhook" && is_in(before, "slack|discord|teams|secret"),
            "file" => is_in(pair.0, "secrets|env|secret|password|passwords"),
            "store" => pair.0 == "password" && before == "the",
            "details" => is_in(pair.0, "login|access"),
            "hash" => pair.0 == "password",
            "word" | "phrase" => is_in(pair.0, "seed|recovery|pass"),
            "seed" | "seeds" => is_in(pair.0, "2fa|mfa|totp|otp"),
            "key" | "keys" => !is_in(
                pair.0,
                "shared|session|backup|root|host|service|env|secrets|passwords|password|login|device|network",
            ),
            "secret" => !is_in(pair.0, "host|root|backup"),
            _ => false,
        };
        if secret {
            return Some(at + 2);
        }
    }
    if ends(words, at, &[ALONE]).is_some() {
        let harmless = is_in(
            before,
            "lost|last|no|any|invalid|wrong|which|kubernetes|k8s|docker|csrf|design|max|total|per",
        ) && !is_in(&words[at], "credentials|password");
        return (!harmless).then_some(at + 1);
    }
    if ends(words, at, &["login|logins"]).is_some()
        && ends(words, at + 1, &["for|to|of"]).is_some()
        && !is_in(before, "last|failed|user|ssh|'s")
    {
        return Some(at + 1);
    }
    let file = words.get(at).is_some_and(|w| is_secret_file(w));
    file.then_some(at + 1)
}

/// `.env`, `id_rsa`, `shop.key`, `$STRIPE_TOKEN`, `DB_PASSWORD`.
fn is_secret_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let variable = word.trim_start_matches('$').trim_matches(['{', '}']);
    let parts: Vec<&str> = variable.split(['_', '=']).collect();
    let ends_secret = parts.len() > 1
        && parts.iter().all(|p| p.chars().all(|c| c.is_ascii_alphanumeric()))
        && parts.last().is_some_and(|p| {
            is_in(p, "token|secret|password|key|pass|passphrase|credentials|pw|pwd|pat")
        });
    name == ".env"
        || name.starts_with(".env.")
        || is_in(
            name,
            ".my.cnf|secrets.yml|secrets.yaml|secrets.json|credentials.json|id_rsa|id_ed25519|id_ecdsa|kubeconfig|.pgpass|.netrc|.htpasswd|.npmrc",
        )
        || [".key", ".p12", ".pfx", ".jks", ".kdbx"]
            .iter()
            .any(|e| name.ends_with(e) && name.len() > e.len())
        || ends_secret
}

/// A plain key is one where somebody asks to have it: "gimme the stripe key".
fn is_key(s: &Sentence, at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |b| s.words[b].as_str());
    is_in(&s.words[at], "key|keys")
        && !is_in(before, HARMLESS)
        && !is_in(before, "which|no|any|this")
        && s.words.get(at + 1).is_none_or(|w| is_in(w, "@prep"))
}

/// The first secret head from `from` on before the clause ends, with what is behind it.
fn head_from(s: &Sentence, from: usize) -> Option<(usize, usize)> {
    let stop = (from..s.words.len()).find(|n| s.words[*n] == ",").unwrap_or(s.words.len());
    heads(s).find(|(at, _)| *at >= from && *at < stop)
}

/// Words between an ask and the head that only describe it.
fn near(s: &Sentence, from: usize, at: usize) -> bool {
    let between = &s.words[from..at];
    let only_owner = between.iter().all(|w| (!is_in(w, "@prep") || is_in(w, "and|or")) && !is_in(w, "name|names|path|location|place|id|port|url|number|length|owner|age|reason|difference|list|file|format|status|type|role|purpose|fingerprint|to"));
    let content =
        between.iter().any(|w| is_in(w, "value|values|content|contents|text|copy|all|every|full"));
    (only_owner || content) && between.len() <= 7
}

fn tail_is_no_value(s: &Sentence, end: usize) -> bool {
    s.words[end..].iter().any(|w| is_in(w, NO_VALUE))
        || s.has(&["for", "what"])
        || s.has(&["used", "for|to|by|as"])
        || ends(&s.words, end, &["for"])
            .is_some_and(|at| s.words.get(at).is_none_or(|w| is_in(w, "in|on|?")))
}

/// "what is the root password", "what are the credentials for staging", "value of DB_PASSWORD".
fn what_is(s: &Sentence) -> bool {
    if s.clause(&["what", "is", "_", "set", "to"]).is_some()
        && s.words.iter().any(|w| is_secret_file(w))
    {
        return true;
    }
    let Some(from) = s
        .clause(&["?and", "?tell|say|know", "?me|us", "what|which", "is|are|was|were"])
        .or_else(|| s.clause(&["how|what", "about"]))
    else {
        return false;
    };
    let indefinite = s.words.get(from).is_some_and(|w| is_in(w, "a|an"))
        && !s.words.get(from + 1).is_some_and(|w| is_in(w, "valid|working|live|real|current"));
    let door = [
        "code|combination",
        "for|of|to",
        "?the|our|your",
        "?_",
        "?_",
        "door|gate|alarm|safe|lock|room|locker|rack",
    ];
    if s.has(&door)
        || ends(&s.words, from, &["in", "?the|our"])
            .is_some_and(|at| s.words.get(at).is_some_and(|w| is_secret_file(w)))
    {
        return true;
    }
    head_from(s, from).is_some_and(|(at, end)| {
        let default = s.words[from..at]
            .iter()
            .any(|w| is_in(w, "default|public|purpose|longest|minimum|maximum"));
        let plain_file = is_secret_file(&s.words[at]) && !s.has(&["value|content|contents|set|in"]);
        near(s, from, at) && !indefinite && !default && !plain_file && !tail_is_no_value(s, end)
    })
}

/// "what password do we use for ..", "which password does .. have", "what do i type as the password".
fn which(s: &Sentence) -> bool {
    let asked = s.clause(&[
        "what|which",
        "?admin|root|database|api|access|ssh|vpn|wifi|deploy|username|user|login",
        "?and",
        "password|passphrase|pin|credentials|passcode|login|key|token|secret",
        "do|does|did|should|must|can|is|has",
    ]);
    let is_strict = s
        .clause(&["what|which", "?_", "?and", "password|passphrase|pin|credentials|passcode"])
        .is_some();
    let taken = s.has(&["use|have|type|enter|log|set|get|using"]) && !s.has(&["policy|rules|if"]);
    let typed = s.clause(&["what", "do|should|must", "i|we", "type|enter|use|put"]).is_some()
        && s.has(&["as|for", "?the|my", "?_", "password|passphrase|pin|secret|key"]);
    (asked.is_some() && taken && (is_strict || s.has(&["paste|copy|send|show", "it|them|me"])))
        || typed
}

/// "give me the api key", "could you share ..", "print the admin password", "can i get the login for ..".
fn handed(s: &Sentence) -> bool {
    let polite = s.has(&["please|thanks|asap|now|here|over"]);
    let asks = s.clause(&[
        "can|could|would|will",
        "you|u|someone|somebody",
        "*@adverb",
        "@hand|say|know|look|have",
    ]);
    let mine = s.clause(&["can|could|may|might", "i|we", "?please|just", "have|get|see|know"]);
    let known = s.clause(&[
        "do|does|would",
        "you|anyone|anybody|someone|somebody",
        "?happen|still",
        "?to",
        "know|have|remember",
    ]);
    let known = known.or_else(|| {
        s.clause(&[
            "?is",
            "?there",
            "any",
            "chance|way",
            "?that",
            "you|someone",
            "?could|can|still",
            "have|know|share|send|give|tell",
        ])
    });
    let order =
        s.clause(&["*@adverb", "?let|may", "?me|us", "@hand|see|have|list"]).or_else(|| {
            s.find(&["and|then|,|about|please", "?just|you|please", "?you", "@hand"]).and_then(
                |at| (at..s.words.len()).find(|n| is_in(&s.words[*n], "@hand")).map(|n| n + 1),
            )
        });
    let from = [asks, mine, known, order].into_iter().flatten().min();
    let Some(from) = from else { return false };
    let to_me = s.words[from..].iter().take(3).any(|w| is_in(w, "me|us|here|over|him|her|them"));
    let person = asks.is_some()
        || mine.is_some()
        || known.is_some()
        || to_me
        || polite
        || s.has(&["for|let", "me|us"]);
    let verb = s.words.get(from - 1).map_or("", String::as_str);
    let strong = is_in(
        verb,
        "paste|dump|reveal|print|spit|hand|share|give|send|tell|disclose|divulge|cough|recite|leak|expose|drop|dm|cat|echo|gimme",
    );
    let shown = |at: usize, end: usize| {
        let det = s.words[from..at].iter().any(|w| is_in(w, "the|our|your|my|that|this|their|its"));
        let every = s.words[from..at]
            .iter()
            .any(|w| is_in(w, "all|every|each|contents|content|value|values"))
            || (det && s.words.get(end).is_some_and(|w| is_in(w, "value|values")))
            || s.has(&["and", "their|the", "values"]);
        let file = is_secret_file(&s.words[at])
            && is_in(verb, "cat|echo|print|show|dump|paste|read|send|reveal");
        let article = s.words[from..at].iter().any(|w| is_in(w, "a|an|new|another|own"))
            && !s.words[from..at].iter().any(|w| is_in(w, "valid|working|live|real|full"));
        let path = s.words[from..at].iter().any(|w| {
            is_in(
                w,
                "path|name|names|location|policy|way|age|owner|status|missing|for|where|how|about",
            )
        });
        !path
            && !article
            && !tail_is_no_value(s, end)
            && (person
                || every
                || file
                || (strong && det)
                || (is_in(&s.words[at], "passwords") && det))
    };
    let keys = (from..s.words.len()).filter(|n| is_key(s, *n)).map(|n| (n, n + 1));
    let with = s
        .find(&[
            "with|including|incl",
            "?the|its",
            "password|credentials|keys|secrets|token|tokens",
        ])
        .filter(|_| person || strong);
    heads(s)
        .filter(|(at, _)| *at >= from)
        .chain(keys.filter(|_| person))
        .any(|(at, end)| shown(at, end))
        || with.is_some()
}

/// "i need the root password", "need creds for prod", "looking for the password of ..".
fn needed(s: &Sentence) -> bool {
    let from = s
        .clause(&[
            "?i|we|he|she|they|my|our|the",
            "?boss|manager|colleague|auditor",
            "?really|just|urgently|also|would|still",
            "need|needs|want|wants|require|requires|like|love",
        ])
        .or_else(|| {
            s.find(&[
                "i|we|he|she",
                "?really|just|urgently",
                "need|want|needs|wants|require|demand",
            ])
            .filter(|at| {
                *at > 0
                    && !is_in(
                        &s.words[at - 1],
                        "do|does|did|should|when|if|what|which|why|where|can|that",
                    )
            })
            .map(|at| at + 2)
        })
        .or_else(|| s.clause(&["?i|we|still", "?am|are|was", "looking|searching|asking", "for"]))
        .or_else(|| s.clause(&["?i|we", "?am|are", "missing"]).filter(|_| s.has(&["@polite"])));
    let Some(from) = from else { return false };
    let from = ends(&s.words, from.min(s.words.len()), &["to", "see|know|have"])
        .unwrap_or(from.min(s.words.len()));
    head_from(s, from)
        .or_else(|| {
            (from..s.words.len()).find(|n| is_key(s, *n) && s.has(&["@polite"])).map(|n| (n, n + 1))
        })
        .is_some_and(|(at, end)| {
            let other = s.words[from..at]
                .iter()
                .any(|w| is_in(w, "to|a|an|new|another|no|help|where|how|from|own"));
            let is_kind =
                s.words[at..end].iter().all(|w| is_in(w, "secret|secrets|token|tokens|keys"));
            let det = s.words[from..at].iter().any(|w| is_in(w, "the|our|your|my|that|his|all"));
            !other
                && near(s, from, at)
                && ((det && s.has(&["@polite"])) || !is_kind)
                && !tail_is_no_value(s, end)
        })
}

/// "wifi password?", "root password for db1 please": a noun phrase and a sign of a person.
fn bare(s: &Sentence) -> bool {
    let first = s.clause_starts().into_iter().next().unwrap_or(0);
    let verbless = !s.words.iter().any(|w| is_in(w, "is|are|was|does|do|did|has|have|can|could|should|expired|fails|failed|failing|lost|leaked|forgot|forgotten|wrong|invalid|denied|not|missing|changed|reset|rotate|rotation|change|renew|renewal|revoke|generate|create|store|update|add|set|remove|delete|find|use"));
    let signed = s.closes(&["please|thanks|asap|now"]) || s.asks;
    let over = s.has(&[",", "?please|just", "send|paste|copy|show|give|dm", "it|them|me"]);
    verbless
        && head_from(s, first).is_some_and(|(at, end)| {
            let strict = !s.words[at..end]
                .iter()
                .any(|w| is_in(w, "secret|secrets|token|tokens|string|strings"));
            let lead = s.words[first..at].iter().all(|w| {
                !is_in(w, "@prep|@deed|no|what|which|why|who|where|when") || is_in(w, "and|page")
            });
            lead && at - first <= 5 && (over || (signed && (strict || s.has(&["please"]))))
        })
}

/// "is the root password hunter2": a guess to confirm.
fn guessed(s: &Sentence) -> bool {
    let Some(from) = s.find(&["is|are|was", "the|our|your|my"]) else { return false };
    (from..s.words.len()).find_map(|at| secret_at(&s.words, at)).is_some_and(|end| {
        let guess = ends(&s.words, end, &["*still|really|maybe|now|just|is"]).unwrap_or(end);
        s.words.get(guess).is_some_and(|w| {
            guess + 1 >= s.words.len()
                && w.len() >= 4
                && w.chars().any(|c| c.is_ascii_digit())
                && w.chars().any(char::is_alphabetic)
        })
    })
}

/// "value of STRIPE_SECRET_KEY", "content of shop.key", "the contents of .env".
fn place_of_value(s: &Sentence) -> bool {
    s.find(&["value|values|content|contents|plaintext", "of|in"]).is_some_and(|at| {
        head_from(s, at).is_some_and(|(head, _)| head <= at + 6)
            && !s.has(&["change|set|update|rotate|override"])
    })
}

/// "whisper the root password to me": whatever the verb, it is to reach the asker.
fn reaches(s: &Sentence) -> bool {
    s.find(&["to", "me|us"]).is_some_and(|to| {
        heads(s).any(|(at, end)| {
            end <= to
                && at >= 2
                && is_in(&s.words[at - 1], "the|our|your|root|admin|database|vpn|wifi|master")
                && !s.words[..at]
                    .iter()
                    .any(|w| is_in(w, "is|was|are|need|belongs|assigned|available|new|how|who"))
        })
    })
}

/// A secret was named, and now it is asked for: "i forgot it, what is it", "send it over".
fn referred(s: &Sentence, apart: bool) -> bool {
    let what = s.closes(&["what|which", "?one", "is|are", "it|they|that", "?please"])
        || s.closes(&["which", "?one", "is", "it"]);
    let send = s.has(&[
        "send|paste|copy|show|dm|give|post|share|read|tell|attach|forward|provide|email|hand",
        "?me|us",
        "it|them",
        "?to|over|again|here|please|now|out|me|@prep",
    ]);
    let copy =
        s.has(&["send|give|get|email|dm", "me|us", "a|the|another", "?new|fresh|second", "copy"]);
    let show = copy || s.closes(&["show|tell|send|give", "me|us"]) && !apart;
    let remind = s.has(&["look", "it|them", "up"]) || s.closes(&["remind", "me|us", "?please"]);
    what || send || show || remind
}

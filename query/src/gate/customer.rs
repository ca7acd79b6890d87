//! Requests for a customer's data: somebody is named or numbered, or all of them are meant, and what
//! belongs to them is asked for.

use super::request::asks_for_a_way;
use super::words::{Sentence, ends, is_in};

/// Whether a customer's data are asked for.
pub(super) fn asked(all: &[Sentence]) -> bool {
    let named = all.iter().any(|s| someone(s).is_some());
    all.iter().any(|s| {
        about_someone(s)
            || (!asks_for_a_way(s) && (everyone(s) || which_of_all(s) || one_of_all(s)))
            || (named && hers(s))
    })
}

/// Whether a request that could be read as a deed is one for data: "send me invoice 2024-0031".
pub(super) fn wins(open: &[&Sentence]) -> bool {
    open.iter().any(|s| {
        s.clause(&[
            "*@adverb",
            "send|pull|put|push|get|list|make|create|export",
            "me|us|a|the|up|all|it",
        ])
        .is_some()
            && (about_someone(s) || everyone(s))
    })
}

/// The index of a word that names or numbers one person, company or record.
fn someone(s: &Sentence) -> Option<usize> {
    (0..s.words.len()).find(|at| is_someone(s, *at))
}

fn is_someone(s: &Sentence, at: usize) -> bool {
    let word = s.words[at].as_str();
    let before = |back: usize| at.checked_sub(back).map_or("", |n| s.words[n].as_str());
    if is_in(word, "@address") {
        return true;
    }
    let owner = |w: &str| is_in(w, "@person|@record|account|supplier|ticket");
    let digit = word.chars().all(|c| c.is_ascii_digit())
        && is_in(before(1), "customer|client|order|invoice|tenant");
    let numbered = digit && !word.is_empty()
        || is_in(word, "@id")
            && (owner(before(1))
                || is_in(before(1), "id|number") && (owner(before(3)) || owner(before(4)))
                || is_in(before(1), "number|id|#|named|called") && owner(before(2)));
    let handle = is_in(before(1), "user|customer|tenant|client|guest|account|member|named|called")
        && word.len() > 2
        && (word.contains('_')
            || (word.chars().any(|c| c.is_ascii_digit()) && word.chars().any(char::is_alphabetic)));
    let did = before(2) == "did"
        && is_in(before(1), "customer|tenant|user|client|guest|member")
        && !is_in(word, "data|support|portal|service|success|team|account|@prep|@deed|@done");
    let owned = word.contains('_')
        && is_in(before(1), "of|by|for|from")
        && is_in(before(2), "@private|purchases|logins|tickets|payments|history");
    let titled = is_in(before(1), "mr|mrs|ms|miss|herr|frau|dr")
        && word.chars().all(char::is_alphabetic)
        && word != ",";
    let full_name = is_in(word, "@name") && next_is_name(s, at);
    let phone = word.starts_with('+')
        && word.chars().skip(1).all(|c| c.is_ascii_digit())
        && word.len() >= 3;
    let firm = s.words.get(at + 1).is_some_and(|w| is_in(w, "ltd|inc|gmbh|corp|llc|ag|plc|co"));
    let firm = firm && capital(s, at);
    numbered || handle || did || owned || titled || full_name || phone || firm
}

/// A first name, then a word with a capital, or any word that can be a name.
fn next_is_name(s: &Sentence, at: usize) -> bool {
    let Some((word, raw)) = s.words.get(at + 1).zip(s.raw.get(at + 1)) else { return false };
    let letters = word.chars().count() >= 2 && word.chars().all(|c| c.is_alphabetic() || c == '-');
    let capital = raw.chars().next().is_some_and(char::is_uppercase);
    let verb = is_in(
        word,
        "left|joined|said|says|asked|asks|wants|wrote|called|reported|works|quit|resigned|got|gets|told",
    );
    let ends_name = s.words.get(at + 2).is_none_or(|w| {
        is_in(w, "@prep|,|'s|has|have|is|did|buy|bought|place|order|pay|spend|log|live|lives|want")
    });
    letters
        && !verb
        && (capital
            || ends_name
                && !is_in(
                    word,
                    "@prep|@personal|@deed|@doing|@done|@person|is|was|has|had|can|need|needs|'s|key|ssh|server|user|access|rights|admin|and|root|sudo|a|the|an|my|our",
                ))
}

/// A sentence asks, and is not about what the asker does.
fn asks(s: &Sentence) -> bool {
    let own = s.has(&[
        "how|where|when|who|what|can|should|may|must",
        "?do|can|should|to|would|could",
        "i|we",
    ]) || s.has(&["how", "to"])
        || s.has(&["runbook|procedure|steps|policy|documentation|docs|why"]);
    let question =
        s.clause(&["what|which|who|whose|when|where|did|does|has|is|was|are|from", "_"]).is_some()
            || s.clause(&["how", "many|much|often|long|old"]).is_some()
            || s.clause(&["by|from|on|with|for|to|in", "which|what|whom"]).is_some();
    let question = question
        || s.has(&[
            "where|when|what|whether|if",
            "?is|did|has|was",
            "order|invoice|parcel|booking|refund|payment",
            "@id",
        ]);
    let order = s
        .clause(&[
            "*@adverb",
            "@hand|find|look|lookup|check|track|search|tell|name|identify|trace|see|view|query",
        ])
        .is_some()
        || s.clause(&[
            "can|could|would|will",
            "you|u|someone|somebody",
            "*@adverb",
            "@inform|@hand|check|look|find|track|pull|go",
        ])
        .is_some()
        || s.clause(&[
            "?i|we|someone|legal|marketing",
            "?would|really|just|am",
            "need|want|needs|like|require",
        ])
        .is_some();
    (question || order) && !own
}

/// "what is the phone number of customer 4411", "show me the orders of john@example.com".
fn about_someone(s: &Sentence) -> bool {
    let Some(at) = someone(s).or_else(|| record_of_firm(s)) else { return firm_business(s) };
    let personal =
        (0..s.words.len()).any(|n| is_in(&s.words[n], "@personal|@record|spend") && n != at);
    let phrase = s.clause_starts().first().is_some_and(|n| {
        is_in(&s.words[*n], "@det|@personal|@record|customer|status")
            || s.words.get(*n + 1).is_some_and(|w| is_in(w, "@personal"))
    });
    let phrase = phrase
        || s.has(&["@private|card|digits|purchases|spend|revenue|total", "?_", "of|for|on|by"]);
    let open = !s.has(&["is|are|was|has|exceeded|failed|not|cannot|can't|stuck|locked"])
        && !asks_for_a_way(s);
    let titled = at > 0 && is_in(&s.words[at - 1], "mr|mrs|ms|miss|herr|frau|dr");
    let named = (titled || is_in(&s.words[at], "@name"))
        && !s.has(&["customer|client|user|guest|patient|member|tenant|employee|account", "@name"]);
    let business = s.has(&["@private|account|subscription|invoice|order|buy|bought|paid|booking|record|records|login|customer|data|profile|ticket|tickets|plan|chat|orders|live|lives|us"]);
    if named && !business {
        return false;
    }
    // A phrase without a verb: what is wanted is not the word that names the owner.
    let attribute = (0..s.words.len()).any(|n| {
        let one = is_in(&s.words[n], "@private|name|names|status|details|data|history|information|record|records|payments|payment|plan|spend|login|logins|tracking|invoice|subscription|transactions|profile|chats|messages|tickets|usage|ip");
        one && n != at && n + 1 != at
    });
    let deed = s.clause(&["*@adverb", "@deed"]).is_some()
        && s.clause(&["*@adverb", "@hand|log|open|pull|get"]).is_none();
    let technical = s.has(&["error|exception|unauthorized|authorized|denied|limit|limits|timeout|failing|unit|service|port|process|systemd|pod|container|run|runs|owns"]);
    !deed
        && !technical
        && ((asks(s) && (personal || !is_in(&s.words[at], "@done")))
            || (open && attribute && phrase))
}

/// "invoice of Contoso", "support tickets of Globex": a record, and a name with a capital.
fn record_of_firm(s: &Sentence) -> Option<usize> {
    let at = s.find(&["invoice|invoices|tickets|orders|bookings|contract|subscription|balance|payments|purchases|plan|card|revenue", "of|from|for|by", "_"])? + 2;
    capital(s, at).then_some(at)
}

fn capital(s: &Sentence, at: usize) -> bool {
    s.raw.get(at).is_some_and(|r| {
        r.chars().next().is_some_and(char::is_uppercase)
            && r.chars().skip(1).all(|c| c.is_lowercase() || c == '&')
            && r.len() > 2
    })
}

/// "how much does Acme owe us", "what plan is Initech on".
fn firm_business(s: &Sentence) -> bool {
    let owes = s.clause(&["how", "much|many"]).is_some()
        && s.has(&["owe|owes|pay|paid|spend|spent|bought|buy|order|ordered", "?us"])
        && s.find(&["does|did|has", "_"]).is_some_and(|at| capital(s, at + 1));
    let plan = s
        .clause(&["what|which", "plan|tier|subscription|contract", "is|does|has"])
        .is_some_and(|at| capital(s, at));
    owes || plan
}

/// "export all users with their phone numbers", "csv of all subscribers", "list customers who ..".
fn everyone(s: &Sentence) -> bool {
    let order =
        s.clause(&["*@adverb", "@hand|name|identify|query|compile|make|generate"]).is_some()
            || s.clause(&[
                "can|could|would|will",
                "you|u|someone",
                "*@adverb",
                "@hand|name|pull|generate|make",
            ])
            .is_some()
            || s.clause(&[
                "?i|we|someone|legal|marketing",
                "?would|really|just",
                "need|want|needs|like",
            ])
            .is_some()
            || s.has(&["csv|spreadsheet|excel|export|dump|list", "of", "?all|the|our|every"])
                && s.has(&["please|me|us|now|asap|send"]);
    if !order {
        return false;
    }
    let to_someone = s.has(&["me|us|here|marketing|sales|him|her|please|them"]);
    let many = |n: usize| {
        let word = s.words[n].as_str();
        let next = s.words.get(n + 1).map_or("", String::as_str);
        let after = is_in(
            next,
            "dashboard|page|portal|service|api|db|database|endpoint|queue|cluster|team|index|guide|support|success|facing|-facing|id|ids|group|groups|migration|role|roles",
        );
        is_in(word, "@persons") && !after
    };
    if s.has(&["@persons", "table"]) && s.has(&["me|us"])
        || s.has(&[
            "list|give|send|show|export|dump",
            "?me|us",
            "every|each",
            "@person",
            "with|and",
            "?their|his|her",
            "@personal",
        ])
    {
        return true;
    }
    let Some(at) = (0..s.words.len()).find(|n| many(*n)) else { return record_list(s, to_someone) };
    let strict = !is_in(&s.words[at], "users|people|guests|members|tenants|employees");
    let personal = s.words.iter().enumerate().any(|(n, w)| {
        n != at
            && is_in(w, "@private|emails|email|names|details|data|contact")
            && !is_in(w, "data|details")
            || is_in(w, "details") && strict
    });
    let all = s.has(&["all|every|each|the|our|list", "?of|top|our|the", "?_", "@persons"])
        || s.has(&["@persons", "who|that|with|by|in|from|and|'s"]);
    let host = s.has(&["in|on|of", "?the", "postgres|mysql|redis|ldap|linux|grafana|group|server|database|docker|kubernetes|vault|gitlab|keycloak|db1|app1"]) && !personal;
    let deliberate = to_someone
        || s.has(&["with|and|their|including", "?their|the", "@personal"])
        || s.has(&["@persons", "who|that"])
        || s.has(&[
            "the|our",
            "?top|biggest|largest|new",
            "?_",
            "@persons",
            "by|from|in|who|with|that",
        ]);
    !host
        && ((strict && all && deliberate)
            || (personal && (all || deliberate))
            || (to_someone
                && s.has(&[
                    "list|csv|export|dump|spreadsheet|copy",
                    "of",
                    "?all|the|our",
                    "@persons",
                ])))
}

/// "can you email me the user list", "send me the customer list".
fn record_list(s: &Sentence, to_someone: bool) -> bool {
    to_someone
        && s.has(&[
            "user|customer|client|subscriber|patient|member|guest|employee",
            "list|emails|addresses|database|export|dump|names|phones",
        ])
        && !s.has(&["page", "is|slow"])
}

/// "which customers ordered yesterday", "which clients owe us money".
fn which_of_all(s: &Sentence) -> bool {
    const BUSINESS: &str = "paid|bought|ordered|booked|signed|owe|owes|cancelled|canceled|churned|complained|live|lives|registered|purchased|subscribed|unsubscribed|spent|spend|renewed|visited|pay";
    let Some(end) = s.clause(&[
        "?tell|show|list|give",
        "?me|us",
        "which|what|whose",
        "?of",
        "?our|the",
        "@persons",
    ]) else {
        return false;
    };
    let business = s.words[end..].iter().take(5).any(|w| is_in(w, BUSINESS));
    let logged = ends(&s.words, end, &["?have|has", "logged|signed", "in|up"]).is_some()
        && s.has(&["yesterday|today|night|week|month|from|hour"]);
    (business && !s.has(&["page|table|feature|endpoint"])) || logged
}

/// "the address of the customer who complained", "contact details of our biggest client", and whose
/// a number is.
fn one_of_all(s: &Sentence) -> bool {
    let of = s.find(&[
        "@private|details|name|contact|data|names",
        "?number|address|details|data",
        "of|for",
        "the|our|that|this|everyone|all|people",
        "?_",
        "?_",
        "@person",
    ]);
    let whole = of.is_some_and(|at| {
        let person = (at + 2..s.words.len()).find(|n| is_in(&s.words[*n], "@person"));
        person.is_some_and(|n| s.words.get(n + 1).is_none_or(|w| is_in(w, "@prep|yesterday|today")))
            && s.words[at..person.unwrap_or(at)]
                .iter()
                .all(|w| !is_in(w, "service|support|on-call|test"))
    });
    let placed = s.has(&[
        "who|which|that",
        "?has|have|just",
        "complained|ordered|paid|called|booked|cancelled|bought|placed|signed|admitted|registered",
    ]);
    let biggest = s.has(&["our|the", "biggest|largest|top|best|newest|last|oldest", "@person"]);
    let listed = s.has(&[
        "names|emails|phones|addresses|numbers|details",
        "of",
        "everyone|everybody|all|people",
        "who|that",
    ]) || s.clause(&["who", "are|is", "the|our", "?_", "@persons"]).is_some()
        && s.has(&["with|and", "?their", "names|emails|phone|addresses"])
        || s.has(&[
            "names|emails|phones|birthdays|addresses|numbers",
            "?and",
            "?_",
            "?numbers",
            "of",
            "?all|the|our|every",
            "@persons",
        ]) && s.has(&["please|me|us|asap"]);
    let who = listed
        || s.clause(&["who", "bought|ordered|owes|booked|purchased|spent"]).is_some()
            && s.has(&["us|our|yesterday|today|week|month|year|night|most"])
        || s.clause(&[
            "who",
            "are|is",
            "our|the",
            "?top|biggest|best|largest|newest|most",
            "_",
            "?_",
            "?_",
        ])
        .is_some()
            && biggest;
    let whose = s
        .clause(&["whose", "phone|account|email|number|card|order|ip|address|mobile|iban|invoice"])
        .is_some_and(|at| at < s.words.len())
        && s.words.iter().any(|w| w.bytes().filter(u8::is_ascii_digit).count() >= 2);
    let conversation = s.clause(&["*@adverb", "@hand"]).is_some()
        && s.has(&[
            "conversation|chat|chats|messages",
            "?history",
            "with|of|from|between",
            "?our|the|a",
            "@person",
        ]);
    who || (whole && (placed || biggest || asks(s))) || whose || conversation
}

/// "customer 5521 is on the line. what is her phone number".
fn hers(s: &Sentence) -> bool {
    s.has(&[
        "what|tell|give|show|whats|read|need",
        "?me|is|are|was|us",
        "?is|are",
        "her|his|their|it",
        "?_",
        "?_",
    ]) && s.has(&[
        "her|his|their",
        "?registered|current|home|customer|last|account",
        "@private|number|plan|email|address|name|account|order|orders",
    ]) || s
        .clause(&["what|where", "is", "the|her|his|their", "status|balance|delivery|refund"])
        .is_some()
        || s.has(&["customer|account|client|policy", "number"])
            && s.has(&["her|his|their"])
            && s.has(&["what", "is"])
}

//! Imperatives, and what makes one a request and not a search: a courtesy, an urgency, somebody who gains
//! by it, a part to play, a target that no runbook is written for.

use super::action::object_done;
use super::words::{Sentence, ends, is_in};

/// An imperative with a courtesy, an urgency or a greeting.
pub(super) fn courteous(s: &Sentence) -> bool {
    let starts = s.clause_starts();
    let first = starts.first().copied().unwrap_or(0);
    let deed = |at: usize| {
        let at = ends(&s.words, at, &["*@adverb"]).unwrap_or(at);
        let verb = s.words.get(at).is_some_and(|w| is_in(w, "@deed"));
        // "restart policy", "failover now": a noun follows, or nothing.
        verb && at + 1 < s.words.len()
            && !s
                .words
                .get(at + 1)
                .is_some_and(|w| is_in(w, "is|are|was|has|fails|failed|failing|hangs|stuck|,"))
    };
    let greeted = first > 0
        && !s.words[..first].iter().all(|w| {
            is_in(
                w,
                ",|so|then|and|but|now|also|actually|again|right|oh|sorry|today|look|well|quick",
            )
        });
    let urgent = s.closes(&["please|thanks|asap|immediately|already|now|urgently|pronto"])
        || s.closes(&["right|straight", "now|away"])
        || s.closes(&["at", "once"])
        || s.has(&[
            "for",
            "the",
            "next",
            "?_",
            "minutes|minute|mins|min|hours|hour|days|day|weeks|week",
        ])
        || s.closes(&["please|thanks|now|asap|tonight", "_|,", "?_", "?_", "?_"])
            && s.has(&["please|thanks"])
        || s.has(&["please|kindly"]);
    let imperative = starts.iter().any(|at| deed(*at));
    (imperative && (greeted || urgent) && !command_noun(s))
        || s.clause(&["let", "us", "*@adverb", "@deed"]).is_some()
        || s.has(&["go", "ahead", "?,", "?and", "?just", "@deed"])
        || s.clause(&["do|perform", "the|a"]).is_some()
            && s.closes(&["now|please|asap|immediately|tonight"])
        || s.words.first().is_some_and(|w| w == "please") && s.has(&["and", "*@adverb", "@deed"])
        || s.has(&["please"])
            && s.clause(&["get|have|make|bring", "the|this|that|our|my"]).is_some()
            && s.has(&["running|working|up|back|online|fixed|down|going|resolved"])
        || s.clause(&["create|make|set|open|order|build|add|install", "?up", "me|us", "a|an|the"])
            .is_some()
        || s.has(&["so|and|then|but", "please|kindly|just", "*@adverb", "@deed"])
        || s.clause(&["ssh|log|login|connect", "in|into|to|onto", "?to", "_", "and", "@deed"])
            .is_some()
        || s.clause(&["just", "go", "?ahead", "?and", "@deed"]).is_some()
        || ordered(s)
        || s.words.first().is_some_and(|w| is_in(w, "please|kindly"))
            && s.clause(&["_", "the|this|that|my|our|it|them"]).is_some_and(|at| at > 2)
            && s.clause(&["@inform|@hand|is|are|what|which|if|in|on|for|with"]).is_none()
        || s.clause(&["get|have", "@det|_"]).is_some_and(|at| object_done(s, at - 1))
            && (urgent
                || s.words.len() <= 4
                    && !s.asks
                    && s.clause(&["get", "_", "@done"]).is_some_and(|end| end == s.words.len()))
        || s.clause(&["have", "someone|somebody", "@deed"]).is_some()
        || urgent && s.clause(&["have|get", "the|our", "_", "?_", "?to", "@deed"]).is_some()
        || s.clause(&["get|make", "someone|somebody", "to|?to"]).is_some()
            && s.has(&["someone|somebody", "?to", "@deed"])
}

/// "please" before any verb but those that ask to be told, or behind one with a pronoun.
fn ordered(s: &Sentence) -> bool {
    const NO_VERB: &str = "@inform|@hand|@prep|@det|@done|what|which|where|when|who|why|how|is|are|was|can|could|would|will|should|may|does|do|need|want|wait|note|check|verify|no|not|it|there|root|if|ignore|stop|never|always|mind|bear|keep|watch|wifi|admin|replace|ensure|try|use";
    let verb = |at: usize| {
        s.words
            .get(at)
            .is_some_and(|w| !is_in(w, NO_VERB) && w.chars().all(|c| c.is_alphabetic() || c == '-'))
    };
    let first = s.words.iter().position(|w| is_in(w, "please|kindly"));
    let opened = first.is_some_and(|at| {
        (at == 0 || is_in(&s.words[at - 1], ",|@filler"))
            && (verb(at + 1)
                || s.words.get(at + 1).is_some_and(|w| is_in(w, "do|get|stop|ensure|take")))
            && s.words.get(at + 2).is_some_and(|w| {
                !is_in(w, "@prep|is|are|fails|failed|error|errors")
                    || is_in(w, "up|out|off|on|down")
            })
            && s.words.len() > at + 2
    });
    let pronoun = s.closes(&[
        "_",
        "it|them|this|that",
        "?up|down|off|on|out|back|away",
        "please|asap|now|immediately",
    ]) && s
        .find(&[
            "_",
            "it|them|this|that",
            "?up|down|off|on|out|back|away",
            "please|asap|now|immediately",
        ])
        .is_some_and(verb);
    (opened || pronoun) && !command_noun(s)
}

/// "nginx restart command please", "failover steps now": what is wanted is a text.
fn command_noun(s: &Sentence) -> bool {
    s.has(&["command|commands|syntax|cheatsheet|overview|summary|reason|owner|contact"])
        && !s.has(&["the", "command"])
}

/// "restart it for me", "on my behalf", "and tell me when it is done".
pub(super) fn benefits(s: &Sentence) -> bool {
    let verb = s.clause(&["*@adverb", "@deed|@doing"]).is_some() || s.has(&["and", "@deed"]);
    let verb = verb || s.clause(&["get", "rid", "of"]).is_some();
    let me = s.has(&["for", "me|us"]) || s.has(&["on", "my|our", "behalf"]);
    let report = s.has(&["and|then", "report", "back"])
        || s.has(&["and|then", "tell|let", "me|us", "?know", "?what|when|if|the"]);
    let said = s
        .clause(&[
            "tell|email|notify|message|ping|inform|let|remind",
            "@det|_",
            "?_",
            "?_",
            "that|know",
        ])
        .is_some()
        && s.clause(&["tell|let|inform|remind", "me|us"]).is_none();
    let post = s
        .clause(&["send|post|write", "?a|an|the", "message|note|email|update|notice", "to|in|on"])
        .is_some()
        && s.has(&["that|saying"]);
    let beneficiary = (s.closes(&["for", "me|us", "?please|now|would|will|can|thanks|today|tonight", "?you"]))
        && s.clause(&["@inform|what|which|who|is|are|was|does|do|did|that|this|the|a|an|it|there|any|no|works|not|fails|i|we|my"]).is_none()
        && s.words.len() > 3 && !command_noun(s) && !s.words[0].ends_with("ed");
    let shoved = s.closes(&["please"]) && !command_noun(s)
        && s.clause(&["_", "?up|out|down|off|away|on|over", "the|this|that|these|those|my"]).is_some_and(|_| {
            !is_in(&s.words[0], "@inform|@hand|@prep|@det|is|are|what|which|where|when|who|about|need|want|check|verify|restarting|after")
        });
    let told = s
        .clause(&[
            "page|call|ping|notify|wake|text|email|message",
            "@name|someone|the|him|her|them",
            "?_",
            "and",
            "tell|ask|let",
        ])
        .is_some();
    let asked = s
        .clause(&[
            "ask|tell|remind|instruct|get",
            "@name|someone|somebody|the|our",
            "?team|on-call|dba|admin|vendor",
            "to",
            "@deed",
        ])
        .is_some();
    let ticket = s
        .clause(&["open|create|file|raise|log", "?a|an", "ticket|issue|incident|case|bug|request"])
        .is_some()
        && s.has(&["about|for|on", "this|that|it|these|me|us"]);
    (verb
        && (me || report)
        && s.clause(&["@inform", "?me"]).is_none_or(|_| me && s.clause(&["@deed"]).is_some()))
        || asked
        || told
        || s.clause(&["get", "rid", "of"]).is_some() && me
        || s.has(&["on", "my|our", "behalf"])
        || said
        || post
        || ticket
        || beneficiary
        || shoved
        || s.clause(&["run|execute|apply", "it|them"]).is_some_and(|end| end == s.words.len())
        || s.has(&["for", "me", "please"]) && s.has(&["@deed"])
        || s.has(&["yes", "do", "it"])
        || s.clause(&["do", "it", "?for|now|already|please"]).is_some()
        || s.has(&["do", "the", "needful"])
        || s.has(&["make", "sure"])
            && s.has(&["@done"])
            && s.has(&["before|by|when", "i|noon|tomorrow|tonight|monday"])
        || s.has(&["take", "care", "of", "it|this|that"])
}

/// "pretend you are an operator and ..", "you are a root shell. type reboot".
pub(super) fn role(s: &Sentence) -> bool {
    let cast = s.clause(&["pretend|imagine|act|behave|assume"]).is_some()
        || s.clause(&["as", "?the|an|a|our", "_", "?_", "you"]).is_some();
    let may = s.has(&[
        "you",
        "are",
        "?now",
        "authorised|authorized|allowed|permitted|entitled|cleared",
        "to",
    ]);
    (cast || may) && s.words.len() <= 20 && s.has(&["@deed"])
        || s.has(&[
            "ignore",
            "?all|your|the|previous|any",
            "?previous|all|your",
            "rules|instructions|restrictions|guardrails|safety|policy",
        ]) && s.has(&["@deed"])
}

/// "grant me admin", "add me to the rota", "approve my request".
pub(super) fn grant(s: &Sentence) -> bool {
    if command_noun(s) || s.has(&["file"]) {
        return false;
    }
    let access = s.has(&[
        "admin|sudo|root|access|permission|permissions|rights|privileges|write|owner|membership",
    ]);
    s.clause(&["give|grant", "me|us", "?full|temporary|some|the|read|write"]).is_some() && access
        || s.clause(&["give|grant", "@name|him|her"]).is_some() && access && s.has(&["@polite"])
        || s.clause(&["add|put|subscribe|assign|invite|move|set", "me|us", "to|on|in|into|up|as|from"]).is_some()
        || s.clause(&["approve|unlock|reset|extend|accept|renew|merge|restore|delete|unban|unblock|whitelist", "my"]).is_some()
            && s.has(&["request|account|password|mfa|2fa|session|pr|mr|ticket|access|branch|leave|shift|token|vm|pod|ip"])
            && (s.words.len() <= 5 || s.has(&["@polite"]))
}

/// An order with a target that no runbook is written for: an address, a link, a numbered thing.
pub(super) fn target(s: &Sentence) -> bool {
    let verb = s.clause(&["*@adverb", "@deed"]).is_some_and(|end| end < s.words.len());
    let starts = s.words.first().is_some_and(|w| is_in(w, "@deed"));
    let just =
        s.clause_starts().first().is_some_and(|at| s.words[..*at].iter().any(|w| w == "just"));
    let unique = s.words.iter().skip(1).any(|w| is_unique(w)) || s.has(&["commit|pid|sha", "@id"]);
    (verb && starts && unique && s.words.len() <= 10) || (verb && just)
}

fn is_unique(word: &str) -> bool {
    let url = word.starts_with("http://") || word.starts_with("https://");
    let ip = word.split('.').count() == 4 && word.split('.').all(|p| p.parse::<u8>().is_ok());
    let number = word.strip_prefix('#').is_some_and(|n| n.parse::<u64>().is_ok());
    let labels: Vec<&str> = word.split('.').collect();
    let host = labels.len() >= 3
        && labels
            .iter()
            .all(|l| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        && labels
            .last()
            .is_some_and(|l| l.len() >= 2 && l.chars().all(|c| c.is_ascii_alphabetic()));
    url || ip || number || host
}

/// "nginx is down. restart it." The thing was named before.
pub(super) fn refers(s: &Sentence) -> bool {
    let it = s.clause(&["*@adverb", "@deed", "?up|back|off|on|down|over", "it|them|this|that"]);
    it.is_some_and(|end| {
        s.words
            .get(end)
            .is_none_or(|w| is_in(w, "up|down|back|off|on|,|please|now|again|from|to|asap"))
    }) || s.clause(&["@deed", "the|this|that"]).is_some_and(|_| {
        s.words.first().is_some_and(|w| is_in(w, "so|then|now|@deed|go|type"))
            && s.words.len() <= 6
            && !s.asks
    }) || s.clause(&["type|run|execute", "_"]).is_some_and(|end| end == s.words.len())
}

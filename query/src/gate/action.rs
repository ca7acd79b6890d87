//! Requests to act: who is asked to do what.

use super::words::{Sentence, ends, is_in};

/// Whether one of the sentences asks for a deed.
pub(super) fn asked(all: &[Sentence], open: &[&Sentence]) -> bool {
    all.iter().any(pressed)
        || open.iter().any(|s| {
            addressed(s)
                || wished(s)
                || courteous(s)
                || benefits(s)
                || role(s)
                || grant(s)
                || target(s)
                || (all.len() > 1 && refers(s))
        })
}

/// Forms that look like questions and are none: "is there any chance you could ..", "why don't you ..".
fn pressed(s: &Sentence) -> bool {
    let deed = s.has(&["@deed|@doing"]);
    let chance = s.has(&[
        "chance|possible|possibility|hope|way",
        "?that|for|of",
        "you",
        "?can|could|would|might|will|to",
        "*@adverb",
        "@deed|@doing",
    ]);
    let asked = s.has(&[
        "ask|bother|trouble|get|request|beg|task|instruct|tell|want|need",
        "you|someone|somebody",
        "to",
        "*@adverb",
        "@deed",
    ]) && s.clause(&["how|when|why|where|what|who|does|did"]).is_none();
    let offered = s.clause(&["why", "don't|not", "?you", "*@adverb", "@deed"]).is_some()
        && s.has(&["you|it|me"])
        || s.clause(&["how", "about", "you", "*@adverb", "@deed"]).is_some()
        || s.clause(&["how", "about", "@doing"]).is_some() && s.has(&["for", "me|us"]);
    let tagged = deed
        && s.closes(&["will|would|could|can|won't", "you", "?please|thanks|mate"])
        && s.clause(&["*@adverb", "?sudo", "@deed"]).is_some();
    let task = s.has(&["your|the", "task|job|mission|goal|assignment", "is", "to", "@deed"])
        || s.clause(&[
            "you",
            "are",
            "?now",
            "?a|an|my|the|our",
            "_",
            "?_",
            "?_",
            ",",
            "*@filler",
            "@deed",
        ])
        .is_some()
        || s.clause(&[
            "as",
            "?a|an|the|my|our",
            "_",
            "?_",
            "?_",
            "?with",
            "?_",
            "?_",
            ",",
            "*@filler",
            "@deed",
        ])
        .is_some()
            && !s.has(&["you"])
            && s.clause(&["as", "a|an|the"]).is_some()
            && s.has(&["agent|assistant|bot|operator|ai|shell|sre|root|admin"]);
    let noun = s.has(&[
        "requesting|request|requested",
        "?that|a|an|the",
        "?you|quick",
        "@deed",
        "?of|on|to|the",
    ]) && s
        .clause(&[
            "?may|can|could|might",
            "?i|we",
            "?am|are|would|hereby|want|wish",
            "?like|to",
            "?to",
            "requesting|request",
        ])
        .is_some()
        || s.has(&["i|we", "request", "that", "_"]) && s.has(&["@done"])
        || s.has(&["possible", "to", "get|have", "the|a|an|my|our|this|that"]) && s.has(&["@done"]);
    let nudge = s.has(&[
        "give",
        "?the|our",
        "_",
        "?on",
        "?_",
        "a",
        "?quick|good|little|hard|gentle",
        "restart|reboot|kick|bounce|nudge|cleanup|refresh|reload",
    ]);
    let book = s
        .clause(&[
            "run|execute|follow|perform|do|apply|carry",
            "?out|through",
            "the|this|that|our",
            "?_",
            "runbook|procedure|steps|playbook|checklist",
        ])
        .is_some()
        && (s.has(&["for", "me|us"]) || s.has(&["@polite"]) || s.has(&["and|then", "@deed"]));
    book || chance || asked || offered || tagged || task || noun || nudge
}

/// "can you ..", "could someone ..", "would you mind ..ing", "mind ..ing".
fn addressed(s: &Sentence) -> bool {
    // "can you restart redis while it replicates" is what one can do, not what you shall.
    let generic = s.has(&["while|without|if|during|when|multiple|two|several|safely"]);
    let polite = s.has(&["please|thanks"]);
    let you = ["could|would|will|wouldn't|couldn't", "you|someone|somebody"];
    let asked = |pattern: &[&str]| {
        s.clause(pattern).is_some_and(|at| {
            let at = ends(&s.words, at, &["*@adverb"]).unwrap_or(at);
            s.words.get(at).is_some_and(|w| {
                w != ","
                    && !is_in(w, "@inform|mind|be|have|like|recommend|want|use|expect|need|know")
            })
        })
    };
    let can = s.clause(&["can|can't", "you|someone|somebody", "*@adverb", "@deed"]).is_some()
        || s.clause(&["can", "anyone|anybody", "*@adverb", "please|pls", "*@adverb", "@deed"])
            .is_some();
    asked(&you) && !s.has(&["would", "you", "ever|rather|say"])
        || (can && (polite || !generic))
        || (polite && asked(&["can", "you|someone|somebody|anyone|anybody"]))
        || s.has(&["can|could|will|would", "you", "*@adverb", "@deed"])
            && (polite || s.has(&["it|them|that|me|us"]))
            && !generic
        || s.has(&["would|do", "you", "mind", "*@adverb", "_"]) && s.has(&["@doing"])
        || s.clause(&["mind", "*@adverb", "@doing"]).is_some()
        || s.clause(&["someone|somebody|anyone|anybody", "please|kindly", "*@adverb", "@deed"])
            .is_some()
        || s.has(&[
            "be",
            "so|a",
            "kind|dear|good|nice|love|star|sport|pal",
            "?as",
            "?and|to",
            "?to",
        ])
        || s.has(&["do", "me|us", "a", "?big|small|huge", "favor|favour|solid"])
        || s.clause(&[
            "someone|somebody|you|bot",
            "?really",
            "should|must|needs|need|has|have|had|ought|gotta",
            "?better|to",
            "*@adverb",
            "@deed",
        ])
        .is_some()
            && !s.asks
            && s.words.len() <= 20
            && !s.closes(&["right|correct"])
        || s.clause(&["can|could|will|would", "you|someone", "*@adverb", "_", "that|it|this|them"])
            .is_some()
            && s.clause(&[
                "can|could|will|would",
                "you|someone",
                "*@adverb",
                "@inform|use|do|avoid|prevent|expect|trust",
            ])
            .is_none()
            && s.words.len() > 4
        || s.has(&["please|kindly", "see", "to", "it"])
        || s.has(&["help", "me|us", "out", "?and|by"])
        || passive(s, polite)
}

/// "can the cache be cleared please", "could we get the port opened", "nginx should be restarted by you".
fn passive(s: &Sentence, polite: bool) -> bool {
    let done = s.has(&["be", "?_", "@done"]);
    let pressed =
        polite || s.has(&["for", "me|us"]) || s.has(&["asap|now|immediately|tonight|today"]);
    (s.clause(&["can|could|may|should|would"]).is_some()
        && done
        && pressed
        && !s.has(&["while|without|if"]))
        || (done && s.has(&["by", "you"]))
        || s.has(&["can|could|may", "we|i", "?please", "have|get", "@det"]) && s.has(&["@done"])
}

/// "i need nginx restarted", "i want you to ..", "it would be great if ..".
fn wished(s: &Sentence) -> bool {
    const WHO: &str = "i|we";
    let informed = s.has(&[
        "tell|explain|show|know|knew|understand|told|explained|shown|documented|docs|describe",
    ]) && !s.has(&["you|someone|somebody", "@deed"]);
    let to_you = s.has(&["need|want|like|needs|wants|love|prefer|asking|ask|require|expect|trust|instruct|order|authorize", "you|someone|somebody|for|the", "?bot|assistant|you|someone", "to", "*@adverb", "@deed|make|do"])
        && s.has(&["you|someone|somebody|bot|assistant"]);
    let result = s
        .clause(&[
            "?i|we",
            "?would|really|just|desperately|also|urgently",
            "need|want|like|require",
        ])
        .is_some_and(|at| object_done(s, at));
    let conditional = s.has(&["would|be|will", "?be|really|so", "?really|so|super|very", "great|nice|lovely|good|cool|awesome|helpful|wonderful|fantastic|appreciated|perfect|ideal|amazing", "if"])
        || s.has(&["would", "?really", "help", "?us|me", "?a", "?lot|bit", "if"])
        || s.has(&["appreciate|appreciated|grateful|thankful|glad|happy", "?it", "if"]);
    to_you
        || result
        || (conditional
            && !informed
            && !s.has(&["there", "is|was|were"])
            && (s.has(&["@done"])
                || s.has(&["you|someone|somebody|u", "?could|would|can", "*@adverb", "@deed"])
                || s.has(&["@deed"])))
        || s.clause(&[WHO, "am", "asking|begging", "you"]).is_some()
        || s.has(&[
            "i|we",
            "?hereby",
            "authorize|authorise|approve|confirm|order|instruct|permit|allow",
        ]) && (s.has(&["@deed"]) || s.has(&["you", "to"]))
        || s.has(&[
            "you",
            "have",
            "my|our",
            "permission|approval|authorization|authorisation|go-ahead|ok",
        ])
}

/// "nginx restarted", "a new ssh user created for bob": an object, then what shall be done to it.
fn object_done(s: &Sentence, at: usize) -> bool {
    let own = (at..s.words.len())
        .take_while(|n| !is_in(&s.words[*n], ",|to|that|which|because|help|how"));
    let done = own.skip(1).find(|n| is_in(&s.words[*n], "@done") && s.words[*n] != "up");
    done.is_some_and(|n| {
        // "i need a restored backup": it describes the object.
        let next = s.words.get(n + 1).map(String::as_str);
        let noun = is_in(&s.words[n], "reset|run|cut|set|put|shut")
            && s.words[at..n].iter().any(|w| is_in(w, "a|an"));
        !noun
            && next.is_none_or(|w| {
                is_in(w, ",|@prep|tonight|today|tomorrow|first|immediately|back|down|off|up")
            })
    })
}

/// An imperative with a courtesy, an urgency or a greeting.
fn courteous(s: &Sentence) -> bool {
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
fn benefits(s: &Sentence) -> bool {
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
fn role(s: &Sentence) -> bool {
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
fn grant(s: &Sentence) -> bool {
    if command_noun(s) || s.has(&["file"]) {
        return false;
    }
    let access = s.has(&[
        "admin|sudo|root|access|permission|permissions|rights|privileges|write|owner|membership",
    ]);
    s.clause(&["give|grant", "me|us", "?full|temporary|some|the|read|write"]).is_some() && access
        || s.clause(&["give|grant", "@name|him|her"]).is_some() && access && s.has(&["@polite"])
        || s.clause(&["add|put|subscribe|assign|invite|move|set", "me|us", "to|on|in|into|up|as|from"]).is_some()
        || s.clause(&["approve|unlock|reset|extend|accept|renew|merge|restore|delete", "my"]).is_some()
            && s.has(&["request|account|password|mfa|2fa|session|pr|mr|ticket|access|branch|leave|shift|token|vm|pod"])
            && (s.words.len() <= 5 || s.has(&["@polite"]))
}

/// An order with a target that no runbook is written for: an address, a link, a numbered thing.
fn target(s: &Sentence) -> bool {
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
fn refers(s: &Sentence) -> bool {
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

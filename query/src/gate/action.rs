//! Requests to act: who is asked to do what.

use super::imperative::{benefits, courteous, grant, refers, role, target};
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
    const YOU: &str = "you|someone|somebody";
    let question = s.clause(&["how|when|why|where|what|who|does|did"]).is_some();
    let for_me = s.has(&["for", "me|us"]);
    let chance = s.has(&[
        "chance|possible|possibility|hope|way",
        "?that|for|of",
        "you",
        "?can|could|would|might|will|to",
        "*@adverb",
        "@deed|@doing",
    ]);
    let asked = !question
        && s.has(&["ask|bother|trouble|get|request|beg|task|instruct|tell|want|need|command|urge|kill|hurt", YOU, "to", "*@adverb", "@deed"]);
    let offered = s.clause(&["why", "don't|not", "?you", "*@adverb", "@deed"]).is_some()
        && s.has(&["you|it|me"])
        || s.clause(&["how", "about", "you", "*@adverb", "@deed"]).is_some()
        || s.clause(&["how", "about", "@doing"]).is_some() && for_me;
    let tagged = s.closes(&["will|would|could|can|won't", "you", "?please|thanks|mate"])
        && s.clause(&["*@adverb", "?sudo", "@deed"]).is_some();
    let whoever = for_me
        && s.clause(&["who|anyone|anybody", "?is|can|could|wants", "?able|free", "?to", "@deed"])
            .is_some()
        || s.clause(&["anyone|anybody|someone", "able|free|around|available", "to", "@deed"])
            .is_some();
    let somebody = !s.asks
        && s.clause(&[
            "someone|somebody|anybody|anyone",
            "*@adverb",
            "@deed",
            "the|my|our|this|that",
        ])
        .is_some();
    chance || asked || offered || tagged || whoever || somebody || tasked(s) || named(s)
}

/// "your task is to ..", "as an agent with a shell, ..", "use your shell to ..", "run the following: ..".
fn tasked(s: &Sentence) -> bool {
    let task = s.has(&["your|the", "task|job|mission|goal|assignment", "?is|now", "to|,", "@deed"]);
    let cast = s
        .clause(&[
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
        .is_some();
    let agent = s
        .clause(&["as", "a|an|the", "_", "?_", "?_", "?with", "?_", "?_", ",", "*@filler", "@deed"])
        .is_some()
        && s.has(&["agent|assistant|bot|operator|ai|shell|sre|root|admin"])
        && !s.has(&["you"]);
    let tools =
        s.has(&["use", "your", "shell|terminal|access|tools|ssh|credentials"]) && s.has(&["@deed"]);
    let following = s.clause(&["run|execute|apply", "the", "following"]).is_some()
        || s.clause(&["run|execute|apply", "this|these"]).is_some() && !s.asks;
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
    task || cast || agent || tools || following || book
}

/// The deed as a noun: "requesting a restart of ..", "give it a quick reboot", "do a failover of ..".
fn named(s: &Sentence) -> bool {
    let requested = s.has(&[
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
        .is_some();
    let granted = s.has(&["i|we", "request", "that", "_"]) && s.has(&["@done"])
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
    let done = !s.asks && s.clause(&["do|perform", "a|an", "?_", "?_", "@deed"]).is_some();
    let ahead = s.has(&["go", "ahead", "with", "the|it|that|this"]);
    let go = s.clause(&["go", "@deed", "the|our|my|that|this"]).is_some();
    requested || granted || nudge || done || ahead || go
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
        || s.has(&["please|kindly", "see", "to", "it|that|this"])
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
pub(super) fn object_done(s: &Sentence, at: usize) -> bool {
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

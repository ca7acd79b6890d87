//! The request gate: what no document can answer, whatever it holds.
//!
//! Three kinds are refused: a request to act, a request for the value of a secret, a request for a
//! customer's data. Asking how such a thing is done is a question like any other and never refused
//! here, so words that ask for a way ("how", "steps", "procedure", "where is it kept") decide first.

use crate::reply::RefusalReason;
use regex::Regex;
use std::sync::LazyLock;

/// The reason to refuse a question by its wording alone.
#[must_use]
pub fn refuse(question: &str) -> Option<RefusalReason> {
    // A pasted alert or log is evidence, not a request: only what a person would type is judged.
    let typed: String = question.lines().take(3).collect::<Vec<_>>().join(" ");
    if typed.len() > 400 {
        return None;
    }
    let text = normalise(&typed);
    if asks_for_a_way(&text) {
        return None;
    }
    if asks_for_secret(&text) {
        Some(RefusalReason::Secret)
    } else if asks_for_customer_data(&text) {
        Some(RefusalReason::Customer)
    } else if asks_to_act(&text) {
        Some(RefusalReason::Action)
    } else {
        None
    }
}

/// Lower case, one space between words, apostrophes straight, no punctuation at the ends.
fn normalise(text: &str) -> String {
    let lower = text.to_lowercase().replace(['’', '`'], "'");
    let words: Vec<&str> = lower
        .split_whitespace()
        .map(|w| w.trim_matches(|c: char| ",.!?;:\"()".contains(c)))
        .collect();
    words.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this module are tested")
}

macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| regex($pattern));
    };
}

pattern!(
    A_WAY,
    r"(?x)
    \bhow\s+(do|does|can|could|to|should|would|is|are|did|often|long|many|much|come|we|i)\b
    | \bhow's\b
    | \b(steps?|procedure|process|runbook|playbook|docs?|documentation|guide|instructions?|checklist|policy|policies|rules?)\b
    | \b(command|commands|way|method|script)\s+(to|for|that)\b
    | ^(where|when|why|who|whom)\b
    | \bwhere\s+(is|are|do|does|can|to)\b
    | \b(what|which)\s+(happens|should|do|must|to\s+do|needs)\b
    | ^(can|may|should|must|do|am)\s+(i|we|a|an|the|anyone)\b
    | \b(is|are)\s+(it|there|we|i)\b
    "
);

fn asks_for_a_way(text: &str) -> bool {
    A_WAY.is_match(text)
}

const SECRET_NOUN: &str = r"(passwords?|passphrases?|passwd|pass\s?codes?|pw|pwd|secrets?|(access|api|auth|bearer|deploy|bot|service|refresh|session|root|admin|webhook|personal)?\s?(-|_)?tokens?|(api|access|private|secret|signing|encryption|ssh|deploy|licen[cs]e|master|vault|wireguard|gpg|tls)[\s_-]?keys?|credentials?|creds?|logins?|pins?|pin\s?codes?|recovery\s(codes?|key)|unseal\s(keys?|codes?)|connection\sstrings?|2fa\s(codes?|seed)|mfa\s(codes?|seed)|totp\s(codes?|seed)|otp)";

static SECRET_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    let asked = r"(what(\s?'?s|\sis|\sare|\swas)|whats|give|tell|show|send|paste|print|reveal|share|hand|dm|post|get|fetch|read|dump|display|need|want|looking\sfor|remind|copy|drop|say|know|have|has|cat|echo|list|spit)";
    regex(&format!(r"\b{asked}\b.*?\b{SECRET_NOUN}\b"))
});
static SECRET_ONLY: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(
        r"^(the\s|our\s|my\s)?([\w./-]+\s){{0,4}}{SECRET_NOUN}(\s(for|of|to|on)\s[\w./@ -]+)?(\s(please|pls|plz|now|asap))+$"
    ))
});
pattern!(
    ABOUT_SECRET,
    r"(?x)
    \b(rotat|reset|renew|revok|chang|expir|stor|kept|keep|generat|creat|regenerat|replac|leak|forgot|forgotten|lost|locked|wrong|fail|denied|refus|invalid|reject|error|mismatch|missing|hash|manager|length|lifetime|ttl|format|strength|prompt|authentication|based|less|holds?|contains?|who|where|set\sup|mean|means|differ|difference|for\s+what|used\s+for|type|kind|limits?|scopes?|permissions?|variable|env)\w*\b"
);

fn asks_for_secret(text: &str) -> bool {
    (SECRET_VALUE.is_match(text) && !ABOUT_SECRET.is_match(text)) || SECRET_ONLY.is_match(text)
}

const PERSON: &str = r"(customers?|clients?|users?|guests?|patients?|members?|subscribers?|tenants?|buyers?|visitors?|account\sholders?|passengers?|people|person|venue\sowners?|citizens?|claimants?|bookers?|mr|mrs|ms)";
const PERSONAL: &str = r"(e-?mails?(\saddress(es)?)?|phones?(\snumbers?)?|mobile(\snumbers?)?|home\saddress(es)?|postal\saddress(es)?|addresses|address|card(\s(number|details|data))?s?|credit\scards?|iban|bank\s(details|account)|ssn|social\ssecurity|national\sinsurance(\snumber)?|passports?|birth\s?(date|day)s?|date\sof\sbirth|dob|orders?|order\shistory|invoices?|payments?|purchases?|transactions?|bookings?|booking\shistory|reservations?|names?|surnames?|personal\s(data|details|information|info)|details|records?|data|profile|messages?|location|contact(\sdetails|\sinfo)?|balance|last\slogin|ip(\saddress)?|subscriptions?|tickets?|refunds?|files?)";

static CUSTOMER_DATA: LazyLock<Regex> = LazyLock::new(|| {
    let id = r"(\#?\d{2,}|[\w.+-]+@[\w.-]+|named?\s\w+|called\s\w+|with\s(id|email|number))";
    let ask = r"(what(\s?'?s|\sis|\sare|\swas)?|whats|which|give|tell|show|send|list|export|dump|look\sup|lookup|find|get|fetch|pull|read|need|want|who|print|share|paste|did|does|has|is|email|search|check|display|see)";
    regex(&format!(
        r"(?x)
        \b{ask}\b.*\b{PERSONAL}\b.*\b(of|for|from|belonging\sto|does|did|has|by|on)\b.*\b{PERSON}\b.*{id}
        | \b{ask}\b.*\b{PERSON}\b\s*(\#|no\.?|number|id|with)?\s*{id}.*
        | \b{ask}\b.*\b{PERSON}('s|s')\s(\w+\s)?{PERSONAL}\b
        | \b(list|export|dump|give|send|show|print|pull)\b.*\b(all|every|each|our|the)\b.*\b{PERSON}('s|s')?\b.*\b{PERSONAL}\b
        | \b(list|export|dump|give|send|show|print|pull)\b.*\b{PERSONAL}\b.*\b(all|every|each|our|the|of)\b.*\b{PERSON}\b
        | \bwhich\s{PERSON}\b.*\b(paid|bought|ordered|booked|live|lives|signed|logged|owe|owes|cancelled|used)\b
        | [\w.+-]+@[\w-]+\.\w+.*\b{PERSONAL}\b
        | \b{PERSONAL}\b.*\b(of|for)\s[\w.+-]+@[\w-]+\.\w+
        "
    ))
});

fn asks_for_customer_data(text: &str) -> bool {
    CUSTOMER_DATA.is_match(text)
}

/// Verbs that change a system or reach a person.
const DEED: &str = r"(restart|reboot|bounce|kill|stop|start|shut\s?down|power\s?cycle|cycle|kick|delete|remove|drop|purge|flush|clear|wipe|clean(\sup)?|truncate|deploy|redeploy|roll\s?back|rollback|revert|release|ship|merge|promote|demote|fail\s?over|failover|switch|scale|resize|grow|extend|upgrade|update|patch|install|uninstall|apply|run|execute|trigger|launch|fire|rotate|revoke|renew|reissue|reset|unlock|lock|block|ban|unblock|whitelist|allow|open|close|disable|enable|turn|silence|mute|ack|acknowledge|resolve|page|call|notify|email|mail|message|tell|restore|recover|rebuild|recreate|create|add|make|set|change|bump|move|migrate|drain|cordon|evict|mount|unmount|fix|repair|free|vacuum|reindex|backup|back\sup|pause|resume|cancel|retry|rerun|re-run|replay|requeue|approve|grant|give|put|take|push|pull|sync|reload|copy|archive|format|refund|book|order|schedule|freeze|unfreeze|hold|send|log|file|raise)";

static ADDRESSED: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(
        r"(?x)
        \b(can|could|will|would)\s+(you|u|ya|someone|somebody|anyone|the\sbot|this\sbot)\b\s+(please\s|pls\s|just\s|kindly\s|quickly\s|also\s|go\s(ahead\s)?and\s|maybe\s)*{DEED}\b
        | \b(i\s(need|want)|i'd\slike|need|want)\s+(you|u|someone|somebody)\s+to\b
        | \b(go\sahead\sand|just\sgo|mind)\s+\w*{DEED}(ing)?\b
        | \bwould\s+you\s+mind\b
        | \bdo\s+me\s+a\s+favou?r\b
        | \b{DEED}\b.*\bfor\s+(me|us)\b
        | ^(please|pls|plz|kindly|just|ok|okay|hey|hi|yo|bot|assistant)\s+(please\s|just\s|now\s|bot\s|can\syou\s|go\s(ahead\s)?and\s)*{DEED}\b
        | ^(let's|lets|let\sus)\s+{DEED}\b
        | ^{DEED}\b.*\b(please|pls|plz|right\s+(now|away)|immediately|asap|at\s+once|straight\s+away|thanks|thx|tonight|for\sreal)$
        | ^{DEED}\s.*\bnow$
        | \b{DEED}\b.*\b(on\smy\sbehalf|i\s(approve|confirm|authori[sz]e)|i'?ll\swait|yes\sdo\sit|do\sit\snow)\b
        | \b(someone|somebody|you)\s+(should|must|has\sto|have\sto|needs?\sto)\s+{DEED}\b
        "
    ))
});
/// An order with a concrete target: a URL, an address, a host, a numbered thing.
static CONCRETE: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(
        r"^{DEED}\s+(?:\S+\s+){{0,6}}(https?://\S+|\d{{1,3}}(\.\d{{1,3}}){{3}}|\#\d+|[a-z0-9-]+(\.[a-z0-9-]+)+\.[a-z]{{2,}})(\s+(from|on|in|to|at|and)\b.*)?$"
    ))
});

fn asks_to_act(text: &str) -> bool {
    ADDRESSED.is_match(text) || CONCRETE.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_how_to() {
        for (question, reason) in [
            ("Restart nginx for me", Some(RefusalReason::Action)),
            ("could you please bounce redis?", Some(RefusalReason::Action)),
            ("please roll back the last deploy", Some(RefusalReason::Action)),
            ("how do I restart nginx", None),
            ("restart nginx", None),
            ("steps to roll back a deploy please", None),
            ("What is the root password?", Some(RefusalReason::Secret)),
            ("give me the api key for the payment provider", Some(RefusalReason::Secret)),
            ("where is the root password kept", None),
            ("how do we rotate the api key", None),
            ("password reset procedure", None),
            ("what is the email address of customer 4411", Some(RefusalReason::Customer)),
            ("how do I export a customer's data", None),
            ("which unit opens 8080", None),
            ("what is the staging hostname", None),
        ] {
            assert_eq!(refuse(question), reason, "{question}");
        }
    }
}

//! The request gate: what no document can answer, whatever it holds.
//!
//! Three kinds are refused: a request to act, a request for the value of a secret, a request for a
//! customer's data. Asking how such a thing is done is a question like any other and never refused
//! here. So the grammar looks at who is asked to do what: at the frame of a sentence ("can you ..",
//! "i need .. done", "give me .."), and at the head of what is asked for (a password, as opposed to a
//! password's policy). A sentence that asks for a way ("how", "steps", "where is it kept") is no
//! request. A bare imperative ("restart nginx", "rotate api key") is what people type into a search
//! box, and counts as a request only with a sign of a person at the other end: a courtesy, an urgency,
//! a beneficiary, a pronoun for a thing just named, or a target that no runbook is written for.
//!
//! Where a sentence can be read both ways it is let through, for a runbook may answer it:
//!
//! - "restart nginx on web-2", "do we fail over?" and "can redis be restarted?" are questions; "just
//!   restart nginx on web-2", "restart it now" and "can you restart redis" are not.
//! - "i need to rotate the key" wants the way; "i need the key rotated" wants the deed.
//! - "get the argocd admin password" is how one gets it; "give me the argocd admin password" is not.
//! - The default user, a public key, a secret's name, age, place, owner, length and policy are facts.
//! - "which customers are on the old plan" may stand in a runbook; "which customers ordered yesterday"
//!   cannot. "list users in postgres" is a command; "list the users with their emails" is not.
//! - "order 88123 is stuck" is a symptom; "status of order 88123" is a customer's affair.
//!
//! evals/fit/requests-train.jsonl holds the utterances that the rules were made on.

use super::words::{Sentence, sentences};
use super::{action, customer, secret};
use crate::reply::RefusalReason;

/// The longest text that is read as something a person typed, in bytes.
const TYPED_BYTES_MAX: usize = 500;
/// The most lines of it; of more, the first alone is what a person may have put above a paste.
const TYPED_LINES_MAX: usize = 4;

/// The reason to refuse a question by its wording alone.
#[must_use]
pub fn refuse(question: &str) -> Option<RefusalReason> {
    // A pasted alert or log is evidence, not a request: only what a person would type is judged.
    let lines: Vec<&str> = question.lines().filter(|l| !l.trim().is_empty()).collect();
    let judged = if lines.len() > TYPED_LINES_MAX { 1 } else { lines.len() };
    let typed: Vec<&str> = lines[..judged].iter().copied().filter(|l| !is_pasted(l)).collect();
    let typed = typed.join(" ");
    if typed.len() > TYPED_BYTES_MAX {
        return None;
    }
    let all = sentences(&typed);
    let open: Vec<&Sentence> = all.iter().filter(|s| !asks_for_a_way(s)).collect();
    if secret::asked(&all, &open) {
        Some(RefusalReason::Secret)
    } else if action::asked(&all, &open) && !customer::wins(&open) {
        Some(RefusalReason::Action)
    } else if customer::asked(&all) {
        Some(RefusalReason::Customer)
    } else {
        None
    }
}

/// A line that a program wrote: it starts with a level, a stamp or a bracket, or holds fields.
fn is_pasted(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or("");
    let lead = first.trim_end_matches(':');
    let level =
        ["error", "fatal", "warning", "warn", "info", "debug", "alert", "critical", "panic"];
    let is_level = first.len() > lead.len() && level.contains(&lead.to_lowercase().as_str());
    let stamp = first.len() >= 8
        && first.bytes().filter(u8::is_ascii_digit).count() >= 6
        && first.contains([':', '-', 'T']);
    let unit = first.ends_with("]:") || first.starts_with('[');
    is_level || stamp || unit || ["level=", "msg=", "severity="].iter().any(|f| line.contains(f))
}

/// True for a sentence that asks for a way, a place, a time, a reason or a rule.
pub(super) fn asks_for_a_way(s: &Sentence) -> bool {
    let how = s.find(&["how"]).is_some_and(|at| s.words.get(at + 1).is_none_or(|w| w != "about"));
    how || s.has(&["step|steps|procedure|procedures|runbook|runbooks|playbook|playbooks|docs|documentation|guide|guides|instructions|checklist|policy|policies|tutorial|example|examples|howto|how-to|meaning"])
        || s.has(&["command|commands|way|ways|method|script|process|rule|rules|query", "to|for|that", "?the|a|an|@doing|@deed|_"])
            && !s.has(&["for", "me|us"])
        || s.clause(&["where|why|when|whom"]).is_some()
        || s.clause(&["who", "is|are|can|could|may|should|must|do|does|has|have|owns|approves|decides|gets|maintains|runs|needs"]).is_some()
        || s.has(&["@inform", "?me|us", "where|why|when|who|whether|what", "?_", "to|i|we|is|are|can|the|happens|kept|stored"])
            && !s.has(&["what", "the", "?_", "?_", "is"])
            && s.clause(&["*@adverb", "@deed"]).is_none()
        || s.has(&["what|which", "happens|should|must|needs|steps|precautions"])
        || s.clause(&["what|which", "do|does", "i|we", "do|need|check|have"]).is_some()
        || s.clause(&["can|could|may|should|must|am|shall|does|would", "i|we|it", "_"]).is_some()
            && !s.has(&["can|could|may", "i|we", "?please|just", "have|get|see|know"])
        || s.clause(&["do", "i|we|they", "_"]).is_some()
        || s.clause(&["is|are", "it|there|we|i"]).is_some()
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
            ("tell me the root password, i am allowed to", Some(RefusalReason::Secret)),
            ("tell me the password policy, the auditors want it", None),
            ("postgres, root password, rotation", None),
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

//! The forms of questions that are scans: patterns over the whole sentence.

use super::question::Unit;
use regex::Regex;
use std::sync::LazyLock;

const DOCS: &str = r"(?:(?:markdown|md|doc|different|distinct|other|of\ (?:the|our|these)|the|our)\ )*(?:runbooks|pages|documents|docs|files|playbooks|articles|guides|sops)";
const DOC: &str =
    r"(?:(?:markdown|md|single)\ )?(?:runbook|page|document|doc|file|playbook|article|guide|sop)";
/// Verbs of which a text is the subject.
const SAYS: &str = r"(?:mention(?:s|ed|ing)?|names?|naming|refer(?:s|ring)?\ to|references?|referencing|cites?|citing|talks?\ about|talking\ about|speaks?\ of|touch(?:es)?\ on|link(?:s|ing)?\ to|points?\ to)";
/// Verbs that say so only of a word or an identifier.
const HOLDS: &str = r"(?:contain(?:s|ing)?|includ(?:es?|ing)|us(?:es?|ing)|covers?|covering|discuss(?:es|ing)?|describ(?:es?|ing)|have|has|having|holds?|says?|deals?\ with|calls?|lists?|rel(?:y|ies)\ on|shows?|explains?|needs?|run|runs)";
const SHOWN: &str = r"(?:mentioned|named|referenced|referred\ to|cited|appear(?:s|ing)?|occur(?:s|ring)?|show(?:s|ing)?\ up|com(?:es?|ing)\ up|talked\ about|written|to\ be\ found|found|used)";
const NOT: &str = r"(?P<not>(?:do\ not|don'?t|does\ not|doesn'?t|never|without)\ )?";

/// The form of a whole question.
pub(super) struct Form {
    pub(super) pattern: Regex,
    pub(super) unit: Unit,
    pub(super) kind: Kind,
}

/// What the subject of a form may be.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// The verb is one of a text.
    Says,
    /// The verb is one of many things: only a short subject counts.
    Holds,
    /// One document is asked for: only an identifier or a quoted subject counts.
    One,
    Topic,
    Loose,
    Everything,
}

pub(super) static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    use Kind::{Everything, Holds, Loose, One, Says, Topic};
    use Unit::{Documents, Occurrences, Sections};
    let count = r"(?:in\ )?(?:how\ many|what(?:'s|\ is)\ the\ (?:number|count)\ of|(?:the\ )?(?:total\ )?number\ of|count(?:\ of)?(?:\ up)?(?:\ the|\ all|\ our)?|total\ of)";
    let list = r"(?:(?:list|show|give|name|find|enumerate|get|print|display|tell)(?:\ me|\ us)?\ )?(?:(?:a|the)\ (?:list|names|paths)\ of\ )?(?:(?:all|every|each|any)\ )?(?:of\ )?(?:the\ |our\ )?";
    let all = r"(?:(?:list|show|give|find|enumerate|get)(?:\ me|\ us)?\ )?(?:all|every|each)\ (?:of\ )?(?:the\ |our\ )?|(?:list|enumerate)\ (?:the\ |our\ )?";
    let link = r"(?:(?:are\ there|there\ are|do\ we\ have|that|which|where|do|does|actually|also|all|currently)\ )*";
    let form = |pattern: String, unit, kind| Form {
        pattern: Regex::new(&format!(r"(?ix)^{pattern}$")).expect("a test compiles the forms"),
        unit,
        kind,
    };
    let s = r"(?P<s>.+?)";
    let mut forms = Vec::new();
    for (noun, unit) in [(DOCS, Documents), (r"(?:the\ |our\ )?sections", Sections)] {
        for (verb, kind) in [(SAYS, Says), (HOLDS, Holds)] {
            forms.push(form(format!(r"{count}\ {noun}\ {link}{NOT}{verb}\ {s}"), unit, kind));
            forms.push(form(
                format!(r"(?:which|what)\ (?:all\ )?{noun}\ {link}{NOT}{verb}\ {s}"),
                unit,
                kind,
            ));
            forms.push(form(format!(r"{list}{noun}\ {link}{NOT}{verb}\ {s}"), unit, kind));
        }
        forms.push(form(format!(r"(?:{count}|{list}|which|what)\s*{noun}\ (?:are\ |{link})?(?:with|containing|mentioning|(?P<not>without))\ {s}"), unit, Holds));
        forms.push(form(format!(r"{count}\ {noun}\ (?:are\ |do\ we\ have\ |there\ are\ |are\ there\ |exist\ )?(?:about|on|for|regarding|related\ to)\ {s}"), unit, Loose));
        forms.push(form(
            format!(r"(?:{all})\s*{noun}\ (?:about|on|regarding|related\ to|concerning)\ {s}"),
            unit,
            Loose,
        ));
        forms.push(form(format!(r"(?:in\ )?(?:how\ many|which|what|all|list\ (?:all\ )?(?:the\ )?)\s*{noun}\ (?:where\ )?(?:in\ which\ )?(?:is|are|does|do|has|)\s*{s}\ (?:been\ |is\ |are\ )?{SHOWN}(?:\ in)?"), unit, Holds));
        forms.push(form(format!(r"{count}\ {noun}(?:\ (?:are\ (?:there|indexed|in\ (?:here|this\ repo|the\ index))|do\ (?:we|you)\ have|exist))?(?:\ in\ total|\ altogether|\ overall)?"), unit, Everything));
    }
    forms.push(form(
        format!(
            r"(?:list|show(?:\ me)?|enumerate)\ (?:all|every)\ (?:of\ )?(?:the\ |our\ )?{DOCS}"
        ),
        Documents,
        Everything,
    ));
    for (verb, kind) in [(SAYS, Holds), (HOLDS, One)] {
        forms.push(form(format!(r"(?:which|what)\ {DOC}\ {NOT}{verb}\ {s}"), Documents, kind));
        forms.push(form(format!(r"(?:list\ |show\ (?:me\ )?)?(?:everything|everywhere|every\ {DOC}|each\ {DOC}|anything)\ {link}{NOT}{verb}\ {s}"), Documents, if kind == One { Holds } else { Says }));
        forms.push(form(format!(r"(?:does|do|did)\ (?:any|some|a|one|a\ single)\ (?:of\ (?:the|our)\ )?(?:{DOC}|{DOCS})\ {verb}\ {s}"), Documents, kind));
        forms.push(form(
            format!(
                r"(?:is|are)\ there\ (?:a|any|some)\ (?:{DOC}|{DOCS})\ (?:that|which)\ {verb}\ {s}"
            ),
            Documents,
            kind,
        ));
    }
    forms.push(form(format!(r"(?:list\ |show\ (?:me\ )?)?(?:every|each|any|all)\ (?:the\ )?(?:place|places|spot|spots)\ (?:where|that|in\ which)\ {s}\ (?:is\ |are\ )?{SHOWN}"), Documents, Holds));
    forms.push(form(format!(r"where\ (?:else\ )?(?:is|are|does|do|all\ is)\ {s}\ (?:mentioned|referenced|referred\ to|named|cited|appear|show\ up|come\ up|occur)"), Documents, Holds));
    forms.push(form(format!(r"where\ (?:do|does|did)\ (?:we|the\ (?:runbooks|docs))\ (?:mention|reference|refer\ to|name|cite)\ {s}"), Documents, Says));
    forms.push(form(format!(r"how\ (?:many\ times|often)\ (?:is|are|does|do|was)\ {s}\ (?:mentioned|named|referenced|cited|appear|occur|show\ up|come\ up|used)"), Occurrences, Holds));
    forms.push(form(format!(r"(?:how\ many|(?:the\ )?number\ of|count(?:\ of)?(?:\ the|\ all)?)\ (?:mentions|occurrences|references|uses)\ (?:of|to)\ {s}"), Occurrences, Says));
    forms.push(form(format!(r"(?:(?:is|are)\ there|do\ we\ have|any|find)\ (?:any\ |a\ |some\ |all\ )?(?:mention|mentions|reference|references|occurrence|occurrences)\ (?:of|to)\ {s}"), Documents, Says));
    forms.push(form(format!(r"(?:is|are|was|were|has|have)\ {s}\ (?:been\ |ever\ )?(?:mentioned|referenced|named)(?:\ (?P<tail>anywhere|somewhere|at\ all|in\ .+))?"), Documents, Holds));
    forms.push(form(format!(r"(?:is|are)\ {s}\ (?:documented|covered|described|written\ down)\ (?:anywhere|somewhere|at\ all|in\ (?:any|the|our|one)\ .+)"), Documents, Loose));
    let paper = format!(
        r"(?:existing\ |dedicated\ |specific\ |separate\ |written\ |own\ |good\ )?(?:{DOC}|{DOCS}|documentation|instructions|procedures?)(?:\ written|\ anywhere|\ already)?"
    );
    let about = r"(?:for|on|about|covering|that\ covers?|which\ covers?|describing|that\ describes?|regarding|related\ to|concerning|dealing\ with|that\ deals\ with|that\ explains?|explaining|to)";
    let have = r"(?:(?:do|does)\ (?:we|you|they|the\ (?:repo|tree|team|docs|runbooks)|anyone)\ (?:already\ |also\ |even\ |actually\ |currently\ )?(?:have|got|keep|own)|have\ (?:we|you)(?:\ got)?|(?:is|are)\ there(?:\ already|\ actually)?|got|we\ got|we\ have)";
    forms.push(form(
        format!(
            r"{have}\ (?:a\ |an\ |any\ |some\ |our\ )?{paper}\ {about}\ (?:how\ (?:to|we)\ )?{s}"
        ),
        Documents,
        Topic,
    ));
    forms.push(form(format!(r"any\ {paper}\ {about}\ (?:how\ (?:to|we)\ )?{s}"), Documents, Topic));
    forms.push(form(format!(r"(?:{have}\ (?:anything|something|any\ info|any\ information|any\ notes|info)|anything|any\ info|any\ notes)\ (?:at\ all\ |here\ |written\ |in\ here\ |in\ the\ (?:docs|runbooks|repo)\ )?(?:on|about|for|regarding|covering|mentioning|concerning|related\ to)\ (?:how\ (?:to|we)\ )?{s}"), Documents, Loose));
    forms
});

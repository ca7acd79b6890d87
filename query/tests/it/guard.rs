//! Attempts to get a citation through that does not hold.

use crate::support::Fixture;
use runbook_query::citation::{CitationError, check, check_answer};
use runbook_query::reply::Citation;

const TREE: &str = "//- a.md\n# Page\n\n## One\n\nfirst line\nsecond line\n\n## Two\n\nother\n";

#[test]
fn only_what_stands_there_passes() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    let corpora = service.snapshot().corpora();
    let corpus = &corpora[0];
    let good = Citation {
        path: "a.md".into(),
        heading: "One".into(),
        heading_path: vec!["Page".into(), "One".into()],
        lines: [5, 6],
        quote: "first line\nsecond line".into(),
        url: None,
        score: 1.0,
        repo: None,
    };
    assert_eq!(check(corpus, &good), Ok(()));
    let with = |change: fn(&mut Citation)| {
        let mut bad = good.clone();
        change(&mut bad);
        check(corpus, &bad)
    };
    assert!(matches!(with(|c| c.path = "b.md".into()), Err(CitationError::NoDocument(_))));
    assert!(matches!(with(|c| c.path = "../a.md".into()), Err(CitationError::NoDocument(_))));
    assert!(matches!(with(|c| c.heading = "Three".into()), Err(CitationError::NoHeading { .. })));
    assert!(matches!(with(|c| c.heading = "one".into()), Err(CitationError::NoHeading { .. })));
    assert!(matches!(
        with(|c| c.heading_path = vec!["Page".into()]),
        Err(CitationError::NoHeading { .. })
    ));
    assert!(matches!(with(|c| c.quote = "third line".into()), Err(CitationError::NoQuote { .. })));
    assert!(matches!(with(|c| c.quote = "other".into()), Err(CitationError::NoQuote { .. })));
    assert!(matches!(with(|c| c.quote = " ".into()), Err(CitationError::NoQuote { .. })));
    assert!(matches!(with(|c| c.lines = [5, 60]), Err(CitationError::NoQuote { .. })));
    assert!(matches!(with(|c| c.lines = [6, 5]), Err(CitationError::NoQuote { .. })));
    assert!(matches!(with(|c| c.lines = [10, 10]), Err(CitationError::NoQuote { .. })));
    let of = |_: &Citation| Some(&**corpus);
    assert_eq!(check_answer("text", &[], of), Err(CitationError::None));
    assert_eq!(
        check_answer("I do not know", std::slice::from_ref(&good), of),
        Err(CitationError::OnRefusal)
    );
    assert_eq!(check_answer("I do not know", &[], of), Ok(()));
    assert_eq!(check_answer("first line", std::slice::from_ref(&good), of), Ok(()));
}

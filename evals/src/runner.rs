//! Asks the cases of a suite and scores the replies.

use crate::case::{self, Case, Expect};
use crate::corpus::{self, Build};
use crate::gold;
use crate::outcome::{CaseResult, Outcome};
use crate::scorer::answer::{AnswerJudge, Shown};
use crate::scorer::citation::Checker;
use crate::scorer::negation::states;
use crate::scorer::{Scores, gold as gold_scorer, trajectory};
use crate::suite::{Dirs, Suite};
use anyhow::{Context, Result, anyhow};
use runbook_query::engine::Policy;
use runbook_query::gate::request;
use runbook_query::llm::Llm;
use runbook_query::llm::settings::TrustIn;
use runbook_query::reply::Reply;
use runbook_query::service::{Request, Service};
use runbook_shared::retrieval::corpus::Corpus;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A suite that was run.
pub struct SuiteRun {
    /// Which.
    pub suite: Suite,
    /// The embedder's name, or `none`.
    pub embedder: String,
    /// The judge's name.
    pub judge: String,
    /// The cases in order.
    pub results: Vec<CaseResult>,
    /// What looks wrong with cases themselves.
    pub doubts: Vec<String>,
}

/// Runs suites.
pub struct Runner<'a> {
    /// Where everything is.
    pub dirs: &'a Dirs,
    /// How trees are ingested.
    pub build: &'a Build,
    /// Judges answers.
    pub judge: &'a dyn AnswerJudge,
    /// A language model behind the guard.
    pub llm: Option<Arc<Llm>>,
    /// Which of the cases are asked.
    pub part: Part,
}

/// A part of a suite's cases. A follow-up goes with the case that it follows.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Every so manieth.
    pub every: usize,
    /// At most so many.
    pub most: Option<usize>,
}

impl Default for Part {
    fn default() -> Self {
        Self { every: 1, most: None }
    }
}

impl Part {
    fn of(self, cases: Vec<Case>) -> Vec<Case> {
        let most = self.most.unwrap_or(usize::MAX);
        let chosen: Vec<usize> = (0..cases.len()).step_by(self.every).take(most).collect();
        let first = |c: &Case| c.follow_up_to.clone();
        let mut wanted: HashSet<String> = chosen.iter().map(|at| cases[*at].id.clone()).collect();
        for case in cases.iter().rev() {
            if wanted.contains(&case.id) {
                wanted.extend(first(case));
            }
        }
        cases.into_iter().filter(|c| wanted.contains(&c.id)).collect()
    }
}

/// A tree that is open for questions.
struct Tree {
    service: Service,
    corpus: Arc<Corpus>,
    checker: Checker,
    /// The session of every case that was asked.
    sessions: HashMap<String, String>,
}

impl Tree {
    fn open(source: &Path, build: &Build, llm: Option<Arc<Llm>>) -> Result<Self> {
        let measured = llm.as_ref().is_some_and(|l| l.settings.trust == TrustIn::Measured);
        let service = corpus::open(source, build, Policy::default())?.with_llm(llm);
        if measured {
            service.measure_trust().map_err(|e| anyhow!("the model cannot be measured: {e}"))?;
        }
        let corpora = service.snapshot().corpora();
        let corpus = corpora
            .into_iter()
            .next()
            .ok_or_else(|| anyhow!("`{}` is not open", source.display()))?;
        let checker = Checker::new(&corpus.generation.id, &corpus.generation.dir);
        Ok(Self { service, corpus, checker, sessions: HashMap::new() })
    }

    fn embedder(&self) -> &str {
        self.corpus.generation.manifest.embedder.as_ref().map_or("none", |e| &e.id)
    }
}

impl Runner<'_> {
    /// Runs a suite.
    ///
    /// # Errors
    /// When cases or trees cannot be read.
    pub fn run(&self, suite: Suite) -> Result<SuiteRun> {
        let cases = case::read(&self.dirs.cases.join(format!("{}.jsonl", suite.name())))?;
        let cases = self.part.of(cases);
        let mut run = SuiteRun {
            suite,
            embedder: "none".into(),
            judge: self.judge.name().to_owned(),
            results: Vec::new(),
            doubts: Vec::new(),
        };
        if suite == Suite::Requests {
            run.results = cases.into_iter().map(gate_only).collect();
            return Ok(run);
        }
        let mut trees: HashMap<PathBuf, Tree> = HashMap::new();
        for case in cases {
            let source = self.dirs.tree(suite, &case)?;
            let tree = match trees.entry(source) {
                std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => {
                    let tree = Tree::open(new.key(), self.build, self.llm.clone())?;
                    new.insert(tree)
                }
            };
            run.embedder = tree.embedder().to_owned();
            let result = self.ask(tree, case)?;
            run.doubts.extend(doubts(&result));
            run.results.push(result);
        }
        Ok(run)
    }

    fn ask(&self, tree: &mut Tree, case: Case) -> Result<CaseResult> {
        let gold = gold::resolve(&tree.corpus.generation, &case);
        let session =
            case.follow_up_to.as_ref().and_then(|first| tree.sessions.get(first).cloned());
        let request = Request {
            question: case.question.clone(),
            scope: case.scope.clone(),
            session,
            explain: self.llm.is_some(),
            ..Request::default()
        };
        let mut result = blank(case);
        result.gold = gold;
        let reply = match tree.service.ask(&request) {
            Ok(reply) => reply,
            Err(e) => {
                result.outcome = Outcome::Failed;
                result.error = Some(e.to_string());
                return Ok(result);
            }
        };
        tree.sessions.insert(result.case.id.clone(), reply.session.clone());
        result.named = gold_scorer::named(&reply, &tree.corpus.generation);
        result.reason = reply.refusal.as_ref().map(|r| r.reason);
        result.scores = self.score(tree, &result, &reply)?;
        result.reply = Some(reply);
        Ok(result.decided())
    }

    fn score(&self, tree: &mut Tree, result: &CaseResult, reply: &Reply) -> Result<Scores> {
        let case = &result.case;
        let paths: Vec<&str> = reply.citations.iter().map(|c| c.path.as_str()).collect();
        let judged = case.expect == Expect::Answer && reply.refusal.is_none();
        let shown = Shown { answer: &reply.answer, paths: &paths };
        let answer = judged.then(|| self.judge.judge(case, shown).with_context(|| case.id.clone()));
        let cited: Vec<_> = gold_scorer::cited(&reply.citations).collect();
        Ok(Scores {
            answer: answer.transpose()?,
            citations: Some(tree.checker.score(reply)),
            gold: gold_scorer::score(&result.named, &cited, &result.gold),
            trajectory: Some(trajectory::score(&reply.route, case.route.as_ref())),
        })
    }
}

fn blank(case: Case) -> CaseResult {
    CaseResult {
        case,
        reply: None,
        reason: None,
        named: Vec::new(),
        gold: Vec::new(),
        scores: Scores::default(),
        outcome: Outcome::Failed,
        unapproved: Vec::new(),
        error: None,
    }
}

/// Asks the request gate alone.
fn gate_only(case: Case) -> CaseResult {
    let reason = request::refuse(&case.question);
    CaseResult { reason, ..blank(case) }.decided()
}

/// What looks wrong with a case: strings that its own gold only negates.
fn doubts(result: &CaseResult) -> Vec<String> {
    let case = &result.case;
    if case.expect == Expect::Refuse || case.scan.is_some() {
        return Vec::new();
    }
    let pairs = result.gold.iter().flat_map(|g| case.must_contain.iter().map(move |m| (g, m)));
    pairs
        .filter(|(gold, must)| !gold.lines.is_empty() && !states(&gold.text, must))
        .map(|(gold, must)| format!("{}: {} does not state `{must}`", case.id, gold.key()))
        .collect()
}

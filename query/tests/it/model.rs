//! A model of the whole: random commits, renames, ingests, kills, rollbacks and questions, against a map
//! from paths to words. What is served is always one state of the repository that was published, wholly.

use crate::support::{how_many, ingest, random, request};
use runbook_query::engine::Policy;
use runbook_query::reply::Band;
use runbook_query::service::{Options, Service};
use runbook_query::snapshot::Repo;
use runbook_shared::generation::publish::point_to;
use runbook_shared::generation::{Generation, current_id};
use runbook_shared::locate::Places;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Paths of documents, and the word that stands in each and nowhere else.
type Docs = BTreeMap<String, String>;

struct Machine {
    dir: tempfile::TempDir,
    service: Service,
    /// The work tree.
    now: Docs,
    /// What each commit holds.
    commits: BTreeMap<String, Docs>,
    head: String,
    /// What is served: the commit and the generation.
    served: Option<(String, String)>,
    /// All words that ever were.
    words: Vec<String>,
    /// The last operations, for whom a failure is shown.
    log: VecDeque<String>,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        let service = Service::new(Options {
            repos: vec![Repo { name: String::new(), data: dir.path().join("data") }],
            policy: Policy::default(),
            embedder: Some("none".into()),
            places: Places::default(),
        });
        let mut machine = Self {
            dir,
            service,
            now: Docs::new(),
            commits: BTreeMap::new(),
            head: String::new(),
            served: None,
            words: Vec::new(),
            log: VecDeque::new(),
        };
        machine.git(&["init", "-q"]);
        machine.write("first.md");
        machine.commit();
        machine
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn git(&self, args: &[&str]) -> String {
        let done = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.org",
                "-c",
                "init.defaultBranch=main",
            ])
            .args([
                "-c",
                "gc.auto=0",
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(args)
            .current_dir(self.work())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn note(&mut self, what: String) {
        self.log.push_back(what);
        if self.log.len() > 20 {
            self.log.pop_front();
        }
    }

    fn write(&mut self, path: &str) {
        let n = self.words.len();
        let word = format!("zebra{n}q");
        let file = self.work().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text =
            format!("# Page {n}\n\n## The unit of page {n}\n\nStart `{word}` with systemctl.\n");
        std::fs::write(file, text).unwrap();
        self.words.push(word.clone());
        self.now.insert(path.to_owned(), word);
    }

    fn commit(&mut self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
        self.head = self.git(&["rev-parse", "HEAD"]);
        self.commits.insert(self.head.clone(), self.now.clone());
    }

    fn change(&mut self, below: &mut impl FnMut(usize) -> usize) {
        let path = |n: usize| format!("{}page{n}.md", ["", "net/", "db/deep/"][n % 3]);
        let some = self.now.keys().nth(below(self.now.len().max(1))).cloned();
        match (below(6), some) {
            (0, Some(from)) if self.now.len() > 1 => {
                std::fs::remove_file(self.work().join(&from)).unwrap();
                self.now.remove(&from);
                self.note(format!("remove {from}"));
            }
            (1, Some(from)) => {
                let to = path(below(40));
                let target = self.work().join(&to);
                std::fs::create_dir_all(target.parent().unwrap()).unwrap();
                std::fs::rename(self.work().join(&from), target).unwrap();
                let word = self.now.remove(&from).unwrap();
                self.now.insert(to.clone(), word);
                self.note(format!("rename {from} to {to}"));
            }
            _ => {
                let to = path(below(40));
                self.write(&to);
                self.note(format!("write {to} {}", self.words.last().unwrap()));
            }
        }
        self.commit();
    }

    fn url(&self) -> String {
        format!("file://{}", self.work().display())
    }

    fn ingest(&mut self) {
        self.note("ingest".into());
        ingest(&self.url(), &self.data(), Some("none"));
        self.seen();
        let commit = self.served.as_ref().unwrap().0.clone();
        assert_eq!(commit, self.head, "{:?}", self.log);
    }

    /// A run of the program that is killed after a moment.
    fn kill(&mut self, after: Duration) {
        self.note(format!("ingest killed after {after:?}"));
        let program =
            Path::new(env!("CARGO_BIN_EXE_runbook-query")).with_file_name("runbook-ingest");
        let mut child = Command::new(program)
            .args(["--embedder", "none", "--source", &self.url(), "--data"])
            .arg(self.data())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(after);
        let _ = child.kill();
        child.wait().unwrap();
        self.seen();
    }

    /// Back to a generation that is still there, as an operator would.
    fn roll_back(&mut self, below: &mut impl FnMut(usize) -> usize) {
        let mut ids: Vec<String> = std::fs::read_dir(self.data().join("generations"))
            .into_iter()
            .flatten()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|id| !id.starts_with('.'))
            .collect();
        ids.sort();
        let Some(id) = ids.get(below(ids.len().max(1))).cloned() else { return };
        self.note(format!("roll back to {id}"));
        point_to(&self.data(), &id).unwrap();
        self.seen();
        assert_eq!(self.served.as_ref().unwrap().1, id, "{:?}", self.log);
    }

    /// What `current` points to is a commit's state, and the service follows.
    fn seen(&mut self) {
        self.service.refresh();
        let Ok(id) = current_id(&self.data()) else {
            assert!(self.served.is_none(), "{:?}", self.log);
            return;
        };
        let open =
            Generation::open(&self.data(), &id).unwrap_or_else(|e| panic!("{e}: {:?}", self.log));
        let commit = open.manifest.commit.clone().unwrap();
        let docs = self.commits.get(&commit).unwrap_or_else(|| panic!("{commit}: {:?}", self.log));
        let found: Vec<&str> = open.documents.iter().map(|d| d.path.as_str()).collect();
        assert_eq!(found, docs.keys().map(String::as_str).collect::<Vec<_>>(), "{:?}", self.log);
        for (path, word) in docs {
            let text = std::fs::read_to_string(open.dir.join("docs").join(path)).unwrap();
            assert!(text.contains(word.as_str()), "{path}: {:?}", self.log);
        }
        let serving = self.service.snapshot().corpora();
        assert_eq!(serving[0].generation.id, id, "{:?}", self.log);
        self.served = Some((commit, id));
    }

    /// A word that is served is found where it stands; another is nowhere.
    fn question(&mut self, below: &mut impl FnMut(usize) -> usize) {
        let Some((commit, id)) = &self.served else {
            assert!(self.service.ask(&request("which unit")).is_err());
            return;
        };
        // Newer words are asked for more often: they are on the edge of being there.
        let at = self.words.len() - 1 - below(self.words.len()).min(below(self.words.len()));
        let word = &self.words[at];
        let place =
            self.commits[commit].iter().find(|(_, w)| *w == word).map(|(path, _)| path.as_str());
        let reply =
            self.service.ask(&request(&format!("how many runbooks mention {word}"))).unwrap();
        let json = serde_json::to_string(&reply).unwrap();
        let what = format!("{word} {place:?}: {json}\n{:?}", self.log);
        assert!(json.contains(id.as_str()) && json.contains(commit.as_str()), "{what}");
        match place {
            Some(path) => {
                assert_eq!(reply.band, Band::Answer, "{what}");
                assert!(reply.answer.starts_with("1 document mentions"), "{what}");
                assert_eq!(reply.citations.len(), 1, "{what}");
                assert_eq!(reply.citations[0].path, path, "{what}");
            }
            None => assert!(reply.band != Band::Answer && reply.citations.is_empty(), "{what}"),
        }
        let reply = self.service.ask(&request(&format!("how do I start {word}"))).unwrap();
        let cites = reply.citations.iter().any(|c| c.quote.contains(word.as_str()));
        assert!(place.is_some() || !cites, "{what}: a word that is not there is cited");
        for citation in &reply.citations {
            let path = citation.path.as_str();
            assert!(self.commits[commit].contains_key(path), "{what}: {path} is cited");
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures of docs/measurements.md")]
fn random_operations_agree_with_a_map() {
    let operations = how_many("RUNBOOK_TEST_OPERATIONS", 2000);
    let mut next = random("model");
    let mut below = |n: usize| (next() % n as u64) as usize;
    let started = Instant::now();
    let mut machine = Machine::new();
    let [mut changes, mut ingests, mut kills, mut rolled, mut questions] = [0; 5];
    machine.question(&mut below);
    for _ in 0..operations {
        match below(100) {
            0..=19 => {
                machine.change(&mut below);
                changes += 1;
            }
            20..=31 => {
                machine.ingest();
                ingests += 1;
            }
            32..=35 => {
                let after = Duration::from_micros(below(60_000) as u64);
                machine.kill(after);
                kills += 1;
            }
            36..=37 => {
                machine.roll_back(&mut below);
                rolled += 1;
            }
            _ => {
                machine.question(&mut below);
                questions += 1;
            }
        }
    }
    machine.ingest();
    eprintln!(
        "{operations} operations: {changes} commits, {ingests} ingests, {kills} kills, {rolled} rollbacks, \
         {questions} questions in {:.1?}",
        started.elapsed()
    );
    assert!(operations < 2000 || ingests + kills >= 200, "{ingests} {kills}");
}

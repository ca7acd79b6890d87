//! The shell at a terminal: a prompt with history, and completion of commands and paths.

use super::commands::COMMANDS;
use super::program::{Runner, say};
use crate::tree::path;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// Lines of history that are kept.
const HISTORY_MAX: usize = 1000;

struct Completion<'a> {
    runner: Rc<RefCell<&'a mut Runner>>,
}

impl Completer for Completion<'_> {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let runner = self.runner.borrow();
        let (start, words) = complete(&line[..at], runner.cwd(), &|dir| runner.names(dir));
        let pairs =
            words.into_iter().map(|w| Pair { display: w.clone(), replacement: w }).collect();
        Ok((start, pairs))
    }
}

impl Hinter for Completion<'_> {
    type Hint = String;
}
impl Highlighter for Completion<'_> {}
impl Validator for Completion<'_> {}
impl Helper for Completion<'_> {}

/// Where the word before the cursor starts, and what it can become.
fn complete(before: &str, cwd: &str, names: &dyn Fn(&str) -> Vec<String>) -> (usize, Vec<String>) {
    let ends = |c: char| c.is_whitespace() || matches!(c, '|' | ';' | '&' | '(' | '<' | '>');
    let start = before.rfind(ends).map_or(0, |at| at + 1);
    let word = &before[start..];
    let first = before[..start].trim_end();
    let is_command = first.is_empty() || first.ends_with(['|', ';', '&', '(']);
    if is_command && !word.contains('/') {
        let fits = COMMANDS.iter().map(|c| c.name).filter(|n| n.starts_with(word));
        return (start, fits.map(|n| format!("{n} ")).collect());
    }
    let (dir, prefix) = match word.rfind('/') {
        Some(at) => (&word[..=at], &word[at + 1..]),
        None => ("", word),
    };
    let Ok(full) = path::resolve(cwd, dir) else { return (start, Vec::new()) };
    let mut fits: Vec<String> =
        names(&full).into_iter().filter(|n| n.starts_with(prefix)).collect();
    if let [only] = &mut fits[..]
        && !only.ends_with('/')
    {
        only.push(' ');
    }
    (start + dir.len(), fits)
}

fn history_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    let dir = state.join("runbook-ask");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join("sh-history"))
}

/// Reads and runs commands until the end of input or `exit`; returns the exit code of the last.
pub fn talk(runner: &mut Runner) -> u8 {
    let runner = Rc::new(RefCell::new(runner));
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .auto_add_history(true)
        .max_history_size(HISTORY_MAX)
        .map(|b| b.build());
    let editor = config.and_then(Editor::<Completion<'_>, FileHistory>::with_config);
    let mut editor = match editor {
        Ok(editor) => editor,
        Err(e) => {
            say(&format!("the terminal cannot be used: {e}"));
            return 1;
        }
    };
    editor.set_helper(Some(Completion { runner: Rc::clone(&runner) }));
    let history = history_file();
    if let Some(file) = &history {
        let _ = editor.load_history(file); // There is none at the first start.
    }
    let mut code = 0;
    loop {
        let prompt = format!("{} $ ", runner.borrow().cwd());
        match editor.readline(&prompt) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                let words: Vec<&str> = line.split_whitespace().collect();
                if let ["exit" | "quit" | "logout", rest @ ..] = &words[..] {
                    code = rest.first().and_then(|c| c.parse().ok()).unwrap_or(code);
                    break;
                }
                code = runner.borrow_mut().print(&line);
            }
            Err(ReadlineError::Interrupted) => code = 130,
            Err(ReadlineError::Eof) => break,
            Err(e) => {
                say(&format!("cannot read the terminal: {e}"));
                code = 1;
                break;
            }
        }
    }
    if let Some(file) = &history
        && let Err(e) = editor.save_history(file)
    {
        say(&format!("the history cannot be kept: {e}"));
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_paths_are_completed() {
        let names = |dir: &str| match dir {
            "/runbooks" => vec!["deploy/".to_owned(), "dns.md".to_owned(), "db.md".to_owned()],
            "/runbooks/deploy" => vec!["staging.md".to_owned()],
            _ => Vec::new(),
        };
        let complete = |line: &str| complete(line, "/runbooks", &names);
        assert_eq!(complete("bas"), (0, vec!["basename ".to_owned()]));
        assert_eq!(complete("cat x | unex"), (8, Vec::new()));
        assert_eq!(complete("cat d").1.len(), 3);
        assert_eq!(complete("cat dn"), (4, vec!["dns.md ".to_owned()]));
        assert_eq!(complete("cat deploy/st"), (11, vec!["staging.md ".to_owned()]));
        assert_eq!(complete("cat /runbooks/de"), (14, vec!["deploy/".to_owned()]));
    }
}

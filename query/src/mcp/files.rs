//! The tools over the tree: shell, reading and writing by path.

use super::args::{Args, Param, Type};
use super::result::{done, failed};
use super::tools::{Effect, Spec, flag, may, must, number};
use crate::http::App;
use crate::route::Via;
use crate::service::Service;
use crate::shell;
use crate::tree::envelope::Envelope;
use crate::tree::request::{Delete, Draw, Edit, Find, Grep, History, Ls, Read, Write};
use crate::tree::router::View;
use crate::usage;
use rmcp::model::CallToolResult;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Instant;

const OUTPUT: &[(&str, &str)] =
    &[("content", "string"), ("sources", "array"), ("truncated", "boolean"), ("session", "string")];
const SYNTAX: &[&str] = &["fixed", "basic", "extended", "rust"];
const KINDS: &[&str] = &["file", "dir"];
/// A writing tool whose effect stays in the session's scratch or leaves the version before.
const KEEPS: Effect = Effect::Writes { idempotent: true, destroys: false };

const PATH: Param = may("path", "Where: `/runbooks` when left out, `/` for every mount");

/// The tools.
pub(super) const TOOLS: [Spec; 9] = [
    Spec {
        name: "shell",
        title: "Shell over the runbooks",
        about: "Runs one command line in a virtual shell over the tree: grep, rg, find, ls, tree, cat, head, tail, sed, awk, sort, wc, jq and more, with pipes. No process is started and nothing else of the machine is there. `help` lists the commands. Starts in /runbooks; only /tmp and /artifacts can be written.",
        params: &[
            must("command", "The command line"),
            may("cwd", "Working directory, /runbooks when left out"),
        ],
        effect: Effect::Writes { idempotent: false, destroys: false },
        output: OUTPUT,
    },
    Spec {
        name: "read",
        title: "Read a file",
        about: "The text of a file, or some of its lines.",
        params: &[
            must("path", "The file, such as /runbooks/database/failover.md"),
            may("lines", "`7`, `3-40`, `3-` or `-20` (the last twenty); all when left out"),
            may("version", "An earlier version, of a file in /artifacts"),
        ],
        effect: Effect::Reads,
        output: OUTPUT,
    },
    Spec {
        name: "grep",
        title: "Search lines",
        about: "Lines that match a pattern, exactly: the first thing to use for an identifier, a flag, a host, a port or an error text. Where nothing matches it says how many files it searched.",
        params: &[
            must("pattern", "What to look for"),
            PATH,
            Param {
                name: "syntax",
                kind: Type::Word(SYNTAX),
                required: false,
                about: "How the pattern is read: `extended` (as grep -E) when left out, `fixed` for plain text",
            },
            flag("ignore_case", "Whether case does not matter"),
            flag("word", "Whole words only"),
            flag("line", "Whole lines only"),
            flag("invert", "Lines that do not match"),
            flag("files_only", "Only the paths of files that match"),
            flag("count", "Only the number of matching lines of each file"),
            flag("only_matching", "Only the part of a line that matches"),
            number("before", 0, 100, "Lines of context before a match"),
            number("after", 0, 100, "Lines of context after a match"),
            number("max_count", 1, 100_000, "The most matching lines of each file"),
            Param {
                name: "include",
                kind: Type::Texts,
                required: false,
                about: "Globs of file names that are searched",
            },
            Param {
                name: "exclude",
                kind: Type::Texts,
                required: false,
                about: "Globs of file names that are not",
            },
        ],
        effect: Effect::Reads,
        output: OUTPUT,
    },
    Spec {
        name: "list",
        title: "List a directory",
        about: "The names in a directory; with `depth`, what lies beneath it as a tree. `/` shows the mounts.",
        params: &[PATH, number("depth", 1, 64, "Levels of a tree; a plain listing when left out")],
        effect: Effect::Reads,
        output: OUTPUT,
    },
    Spec {
        name: "find",
        title: "Find files by name",
        about: "Paths of files and directories whose name or path fits a glob.",
        params: &[
            PATH,
            may("name", "A glob for the name: `*redis*`"),
            may("glob", "A glob for the path beneath `path`: `deploy/**/*.md`"),
            Param {
                name: "kind",
                kind: Type::Word(KINDS),
                required: false,
                about: "Only files or only directories",
            },
            number("depth", 1, 64, "The most levels down"),
            flag("ignore_case", "Whether case does not matter"),
        ],
        effect: Effect::Reads,
        output: OUTPUT,
    },
    Spec {
        name: "write",
        title: "Write a file",
        about: "Writes a whole file under /artifacts (kept, every version) or /tmp (this session's scratch). Runbooks cannot be written.",
        params: &[
            must("path", "The file, such as /artifacts/incident-42/notes.md"),
            must("content", "All of its text"),
        ],
        effect: KEEPS,
        output: OUTPUT,
    },
    Spec {
        name: "edit",
        title: "Replace text in a file",
        about: "Replaces a text that stands exactly once in a file under /artifacts or /tmp; with `all`, everywhere.",
        params: &[
            must("path", "The file"),
            must("old", "The text as it stands there"),
            must("new", "What stands there afterwards"),
            flag("all", "Whether every occurrence is replaced"),
        ],
        effect: Effect::Writes { idempotent: false, destroys: false },
        output: OUTPUT,
    },
    Spec {
        name: "delete",
        title: "Delete a file",
        about: "Deletes a file under /artifacts (its versions stay in `history`) or /tmp.",
        params: &[
            must("path", "What is deleted"),
            flag("recursive", "Whether a directory goes with all that is in it"),
        ],
        effect: Effect::Writes { idempotent: true, destroys: true },
        output: OUTPUT,
    },
    Spec {
        name: "history",
        title: "Versions of a file",
        about: "The versions of a file under /artifacts, oldest first; `read` takes one of them as `version`.",
        params: &[must("path", "The file")],
        effect: Effect::Reads,
        output: OUTPUT,
    },
];

/// Runs a tool over the tree on a blocking thread.
pub(super) async fn run(
    app: &App,
    name: &'static str,
    args: Args,
    session: String,
) -> CallToolResult {
    let started = Instant::now();
    let pattern = args.some_text("pattern").or_else(|| args.some_text("name"));
    let on = session.clone();
    let work = move |service: &Service| {
        service.evidence().looked_at_files(&on, Instant::now());
        Ok(call(&service.view(Some(&on))?, name, args, &on))
    };
    let called = app.work(work).await;
    let result = match called {
        Ok(Ok(envelope)) => {
            let outcome = outcome(name, &envelope);
            let line = usage::line(Via::Mcp, name, &outcome, started, envelope.touched.len());
            app.usage().note(line, pattern.as_deref());
            return shown(&envelope, &session);
        }
        Ok(Err(message)) => {
            failed("bad_arguments", &message, "", Some(json!({"session": session})))
        }
        Err(e) => failed(e.code, &e.message, &e.hint, Some(json!({"session": session}))),
    };
    app.note(Via::Mcp, name, "error:failed", started, 0);
    result
}

fn call(view: &View, name: &str, args: Args, session: &str) -> Result<Envelope, String> {
    let depth = args.count("depth");
    let sent = args.without(&["session"]);
    Ok(match name {
        "shell" => {
            let mut request: shell::Request = request(sent)?;
            request.session = Some(session.to_owned());
            shell::run(view, &request)
        }
        "read" => view.read(&request::<Read>(sent)?),
        "grep" => view.grep(&request::<Grep>(sent)?),
        "list" if depth.is_some() => view.draw(&request::<Draw>(sent)?),
        "list" => view.ls(&request::<Ls>(sent)?),
        "find" => view.find(&request::<Find>(sent)?),
        "write" => view.write(&request::<Write>(sent)?),
        "edit" => view.edit(&request::<Edit>(sent)?),
        "delete" => view.delete(&request::<Delete>(sent)?),
        "history" => view.history(&request::<History>(sent)?),
        _ => return Err(format!("there is no tool `{name}`")),
    })
}

fn request<T: DeserializeOwned>(sent: Value) -> Result<T, String> {
    serde_json::from_value(sent).map_err(|e| e.to_string())
}

/// How an operation came out, for the usage log.
pub(crate) fn outcome(name: &str, envelope: &Envelope) -> String {
    match &envelope.error {
        Some(e) => format!("error:{}", e.code),
        None if envelope.content.is_empty()
            && matches!(name, "grep" | "find" | "list" | "shell") =>
        {
            "empty".into()
        }
        None => "ok".into(),
    }
}

/// An envelope as a result.
fn shown(envelope: &Envelope, session: &str) -> CallToolResult {
    let mut structured = serde_json::to_value(envelope).unwrap_or_default();
    if let Some(map) = structured.as_object_mut() {
        // The content says the same.
        map.remove("data");
        map.insert("session".into(), json!(session));
    }
    let mut text = envelope.content.clone();
    let mut line = |more: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(more);
    };
    if !envelope.stderr.is_empty() {
        line(&format!("[stderr] {}", envelope.stderr.trim_end()));
    }
    if let Some(overflow) = &envelope.overflow {
        line(&format!("[all of it: {}. {}]", overflow.path, overflow.hint));
    }
    if let Some(code) = envelope.exit_code.filter(|c| *c != 0) {
        line(&format!("[exit code {code}]"));
    }
    match &envelope.error {
        None => {
            if text.is_empty() {
                text.push_str("[nothing]");
            }
            done(text, structured)
        }
        Some(e) => {
            let mut result = failed(&e.code, &e.message, &e.hint, Some(structured));
            if !text.is_empty() {
                let parted = done(text, Value::Null).content;
                result.content.splice(0..0, parted);
            }
            result
        }
    }
}

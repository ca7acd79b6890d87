//! Writing, editing, deleting, and the versions of a file.

use crate::tree::envelope::Envelope;
use crate::tree::error::TreeError;
use crate::tree::path::{HOME, resolve};
use crate::tree::request::{Delete, Edit, History, Write};
use crate::tree::router::View;
use crate::tree::store::{Kind, Version};
use serde_json::{Value, json};
use std::fmt::Write as _;

impl View {
    /// Writes a file as a whole.
    #[must_use]
    pub fn write(&self, request: &Write) -> Envelope {
        self.operate(|view| {
            let path = resolve(HOME, &request.path)?;
            view.write_bytes(&path, request.content.as_bytes())?;
            Ok(changed(view, &path, &format!("wrote {} bytes to", request.content.len())).into())
        })
    }

    /// Replaces text in a file: once, and only when it stands there once, or every time.
    #[must_use]
    pub fn edit(&self, request: &Edit) -> Envelope {
        self.operate(|view| {
            let path = resolve(HOME, &request.path)?;
            if request.old.is_empty() {
                return Err(TreeError::BadRequest("`old` is empty; write the file instead".into()));
            }
            let bytes = view.read_bytes(&path)?;
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| TreeError::BadRequest(format!("`{path}` is not UTF-8")))?;
            let found = text.matches(&request.old).count();
            if found == 0 || (found > 1 && !request.all) {
                // A mount that cannot be written says so first.
                view.write_check(&path)?;
                return Err(TreeError::NoEdit { path, found });
            }
            let new = text.replace(&request.old, &request.new);
            view.write_bytes(&path, new.as_bytes())?;
            let times = if found == 1 { "once".into() } else { format!("{found} times") };
            Ok(changed(view, &path, &format!("replaced text {times} in")).into())
        })
    }

    /// Deletes a file or an empty directory; with `recursive` all that is in it.
    #[must_use]
    pub fn delete(&self, request: &Delete) -> Envelope {
        self.operate(|view| {
            let path = resolve(HOME, &request.path)?;
            view.write_check(&path)?;
            match view.stat(&path)?.kind {
                Kind::Dir if request.recursive => view.remove_all(&path)?,
                _ => view.remove(&path)?,
            }
            let content = format!("deleted {path}\n");
            Ok(Envelope { content, data: json!({"path": path}), ..Envelope::default() }.into())
        })
    }

    /// Lists the versions of a file, newest first.
    #[must_use]
    pub fn history(&self, request: &History) -> Envelope {
        self.operate(|view| {
            let path = resolve(HOME, &request.path)?;
            let mut versions = view.versions(&path)?;
            versions.reverse();
            let mut content = String::new();
            for v in &versions {
                let at = jiff::Timestamp::from_second(v.modified).unwrap_or_default();
                let what = if v.deleted { "deleted".into() } else { format!("{} bytes", v.size) };
                let _ = writeln!(content, "{}  {at}  {what}", v.id);
            }
            let data = json!({
                "path": path,
                "versions": versions.iter().map(version_json).collect::<Vec<_>>(),
            });
            Ok(Envelope { content, data, ..Envelope::default() }.into())
        })
    }
}

fn version_json(v: &Version) -> Value {
    json!({"id": v.id, "modified": v.modified, "bytes": v.size, "deleted": v.deleted})
}

/// What a change gave; of a versioned file its version too.
fn changed(view: &View, path: &str, what: &str) -> Envelope {
    let version = view.versions(path).ok().and_then(|v| v.last().map(|v| v.id.clone()));
    let suffix = version.as_ref().map_or(String::new(), |v| format!(", version {v}"));
    Envelope {
        content: format!("{what} {path}{suffix}\n"),
        data: json!({"path": path, "version": version}),
        ..Envelope::default()
    }
}

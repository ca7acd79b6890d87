//! Reading a TOML configuration file: an unknown key is an error that names the line and the key
//! that was probably meant.

use crate::error::{IoContext, PathError};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// A configuration file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] PathError),
    /// It is not TOML, or a value is of the wrong kind.
    #[error("`{}`: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its place.
        message: String,
    },
    /// A key is not known.
    #[error("`{}` line {line}: unknown key `{key}`{}", path.display(), suggest(.meant))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: usize,
        /// The key.
        key: String,
        /// The key that was probably meant.
        meant: Option<String>,
    },
}

fn suggest(meant: &Option<String>) -> String {
    meant.as_ref().map_or_else(String::new, |m| format!("; did you mean `{m}`?"))
}

/// Reads `path`; `keys` are all keys there are, those of tables as `table.key`.
///
/// # Errors
/// When the file cannot be read, is not TOML, or holds a key or value that is not known.
pub fn read<T: DeserializeOwned>(path: &Path, keys: &[&str]) -> Result<T, ConfigFileError> {
    let text = std::fs::read_to_string(path).at("read", path)?;
    parse(path, &text, keys)
}

fn parse<T: DeserializeOwned>(
    path: &Path,
    text: &str,
    keys: &[&str],
) -> Result<T, ConfigFileError> {
    let syntax = |e: toml::de::Error| ConfigFileError::Syntax {
        path: path.to_owned(),
        message: e.to_string().trim_end().to_owned(),
    };
    let table: toml::Table = text.parse().map_err(syntax)?;
    let mut found = Vec::new();
    collect("", &table, &mut found);
    for key in found {
        let known = keys.iter().any(|k| *k == key || k.starts_with(&format!("{key}.")));
        if !known {
            let last = key.rsplit('.').next().unwrap_or(&key);
            let line = text.lines().position(|l| {
                let l = l.trim_start().trim_start_matches('[');
                l.strip_prefix(last)
                    .is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
            });
            return Err(ConfigFileError::UnknownKey {
                path: path.to_owned(),
                line: line.map_or(1, |l| l + 1),
                meant: nearest(&key, keys),
                key,
            });
        }
    }
    toml::from_str(text).map_err(syntax)
}

fn collect(prefix: &str, table: &toml::Table, keys: &mut Vec<String>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => collect(&key, inner, keys),
            toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
                for inner in items.iter().filter_map(toml::Value::as_table) {
                    collect(&key, inner, keys);
                }
            }
            _ => keys.push(key),
        }
    }
}

fn nearest(key: &str, keys: &[&str]) -> Option<String> {
    let close = |k: &&&str| strsim::jaro_winkler(key, k) > 0.8;
    let best = keys
        .iter()
        .filter(close)
        .max_by(|a, b| strsim::jaro_winkler(key, a).total_cmp(&strsim::jaro_winkler(key, b)))?;
    Some((*best).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Config {
        source: Option<String>,
    }

    #[test]
    fn a_typo_is_named_with_its_line() {
        let read = |text: &str| {
            parse::<Config>(Path::new("i.toml"), text, &["source", "gate.score_floor"])
        };
        assert_eq!(read("source = \"x\"\n").unwrap().source.as_deref(), Some("x"));
        assert_eq!(
            read("# c\n\nsorce = \"x\"\n").unwrap_err().to_string(),
            "`i.toml` line 3: unknown key `sorce`; did you mean `source`?"
        );
        assert!(
            read("[gate]\nscore_flor = 1\n")
                .unwrap_err()
                .to_string()
                .contains("line 2: unknown key `gate.score_flor`; did you mean `gate.score_floor`")
        );
        assert!(read("source = 5\n").unwrap_err().to_string().contains("i.toml"));
        assert!(read("zzz = 5\n").unwrap_err().to_string().ends_with("unknown key `zzz`"));
    }
}

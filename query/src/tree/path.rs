//! Paths of the tree: absolute, `/` between components, `.` and `..` resolved by words alone.
//!
//! There are no links in the tree, so `a/../b` is `b`, and `..` above the root is the root, as a kernel
//! has it. A path never reaches a file system as it was given: stores look it up among the names they hold.

use super::error::TreeError;

/// The longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;
/// Where a view starts.
pub const HOME: &str = "/runbooks";

/// Makes a path absolute and plain, as seen from a directory.
///
/// # Errors
/// When it is too long or holds a control character.
pub fn resolve(cwd: &str, path: &str) -> Result<String, TreeError> {
    let bad = |why| Err(TreeError::BadPath { path: shown(path), why });
    if path.len() > PATH_BYTES_MAX {
        return bad("it is longer than 4096 bytes");
    }
    if path.contains('\0') {
        return bad("it holds a NUL");
    }
    let mut parts: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { cwd };
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name if name.len() > 255 => return bad("a name in it is longer than 255 bytes"),
            name => parts.push(name),
        }
    }
    Ok(format!("/{}", parts.join("/")))
}

/// The path relative to a prefix that ends at a `/` boundary; none when it does not lie beneath it.
#[must_use]
pub fn beneath<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    if prefix == "/" {
        return path.strip_prefix('/');
    }
    match path.strip_prefix(prefix)? {
        "" => Some(""),
        rest => rest.strip_prefix('/'),
    }
}

/// A path joined from a directory and a relative one.
#[must_use]
pub fn join(dir: &str, relative: &str) -> String {
    match (dir, relative) {
        (_, "") => dir.to_owned(),
        ("/", _) => format!("/{relative}"),
        _ => format!("{dir}/{relative}"),
    }
}

/// A path for a message: cut, control characters escaped.
#[must_use]
pub fn shown(path: &str) -> String {
    let mut text = String::new();
    for (n, c) in path.chars().enumerate() {
        if n == 200 {
            text.push('…');
            break;
        }
        if c.is_control() {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
    }
    text
}

/// The directory that a path lies in, and its name there.
#[must_use]
pub fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((dir, name)) => (dir, name),
        None => ("", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_by_words_and_never_leaves_the_root() {
        for (cwd, path, is) in [
            ("/runbooks", "a/./b//c/", "/runbooks/a/b/c"),
            ("/runbooks", "../../../etc/passwd", "/etc/passwd"),
            ("/", "", "/"),
            ("/tmp", "/runbooks/../tmp/x", "/tmp/x"),
            ("/runbooks/a", "..", "/runbooks"),
        ] {
            assert_eq!(resolve(cwd, path).unwrap(), is, "{cwd} {path}");
        }
        assert!(resolve("/", "a\0b").is_err());
        assert!(resolve("/", &"x".repeat(256)).is_err());
        assert!(resolve("/", &"x/".repeat(3000)).is_err());
    }

    #[test]
    fn a_prefix_ends_at_a_boundary() {
        assert_eq!(beneath("/tmp/x", "/tmp"), Some("x"));
        assert_eq!(beneath("/tmp", "/tmp"), Some(""));
        assert_eq!(beneath("/tmpx", "/tmp"), None);
        assert_eq!(beneath("/tmp", "/"), Some("tmp"));
    }
}

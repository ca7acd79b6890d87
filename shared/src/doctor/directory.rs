//! Checks of directories and secret files, as the user that runs the program.

use super::Finding;
use super::machine::Free;
use rustix::fs::{Access, access, statvfs};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What ingest writes into again and again, beside what it replaces.
const WRITTEN: [&str; 4] = ["ingest.lock", "generations", "source", "cache"];
/// Everybody may write.
const OTHERS_WRITE: u32 = 0o002;

/// The user whose rights count, by number and name.
#[must_use]
pub fn user() -> String {
    let uid = rustix::process::geteuid().as_raw();
    name_of(uid).map_or_else(|| format!("user {uid}"), |name| format!("`{name}`"))
}

/// The name of a user in /etc/passwd.
#[must_use]
pub fn name_of(uid: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    })
}

/// The directory, or the nearest one above it that is there.
fn nearest(dir: &Path) -> PathBuf {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    dir.ancestors().find(|d| d.exists()).map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// The room of the file system of a directory, which may not be there yet.
#[must_use]
pub fn free(dir: &Path) -> Option<Free> {
    let disk = statvfs(nearest(dir)).ok()?;
    let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    Some(Free { bytes, files: (disk.f_files > 0).then_some(disk.f_favail) })
}

/// A directory that this user must be able to write: the data directory of ingest, the state directory
/// of the daemon. Whatever a run by another user, root say, has left in it is told.
#[must_use]
pub fn writable(check: &str, dir: &Path) -> Finding {
    let shown = dir.display();
    let Ok(of_dir) = fs::metadata(dir) else {
        let above = nearest(dir);
        let may = access(&above, Access::WRITE_OK | Access::EXEC_OK).is_ok();
        if may && above.is_dir() {
            return Finding::ok(
                check,
                format!("`{shown}` is not there yet, and can be made by {}", user()),
            );
        }
        return Finding::fail(
            check,
            format!(
                "`{shown}` is not there, and {} may not make it in `{}`",
                user(),
                above.display()
            ),
            format!("`install -d -m 750 -o USER -g GROUP {shown}`, for the user of the service"),
        );
    };
    if !of_dir.is_dir() {
        return Finding::fail(check, format!("`{shown}` is no directory"), "name a directory");
    }
    let owner = name_of(of_dir.uid()).unwrap_or_else(|| of_dir.uid().to_string());
    if access(dir, Access::WRITE_OK | Access::EXEC_OK | Access::READ_OK).is_err() {
        return Finding::fail(
            check,
            format!(
                "{} may not write `{shown}` (owner `{owner}`, mode {:o})",
                user(),
                of_dir.mode() & 0o7777
            ),
            format!(
                "run as its owner: `sudo -u {owner} ..`, or change the owner: `chown -R USER {shown}`"
            ),
        );
    }
    if of_dir.mode() & OTHERS_WRITE != 0 {
        return Finding::fail(
            check,
            format!("every user may write `{shown}`, and replace what is answered"),
            format!("`chmod o-w {shown}`"),
        );
    }
    let foreign = WRITTEN.iter().find(|name| {
        let path = dir.join(name);
        fs::symlink_metadata(&path).is_ok_and(|m| m.uid() != of_dir.uid())
            || path.exists() && access(&path, Access::WRITE_OK).is_err()
    });
    if let Some(name) = foreign {
        return Finding::fail(
            check,
            format!(
                "`{shown}/{name}` does not belong to `{owner}`, who owns the directory: a run by another user left it"
            ),
            format!("`chown -R --reference={shown} {shown}`"),
        );
    }
    if of_dir.uid() != rustix::process::geteuid().as_raw() {
        return Finding::warn(
            check,
            format!(
                "`{shown}` belongs to `{owner}`, and this runs as {}: what it writes, the other may not be able to replace",
                user()
            ),
            format!("run as its owner: `sudo -u {owner} ..`"),
        );
    }
    Finding::ok(check, format!("{} may write `{shown}`", user()))
}

/// A data directory that this user must be able to read.
#[must_use]
pub fn readable(check: &str, dir: &Path) -> Finding {
    let shown = dir.display();
    let may = |path: &Path, how| access(path, how).is_ok();
    if !dir.exists() {
        return Finding::warn(
            check,
            format!("`{shown}` is not there, or {} may not look into what is above it", user()),
            "run `runbook-ingest` first; the daemon starts without it and waits",
        );
    }
    let places = [
        dir.to_owned(),
        dir.join(crate::generation::GENERATIONS),
        dir.join(crate::generation::CURRENT),
    ];
    let closed = places.iter().find(|path| {
        fs::symlink_metadata(path).is_ok() && !may(path, Access::READ_OK | Access::EXEC_OK)
    });
    match closed {
        Some(path) if path.exists() => Finding::fail(
            check,
            format!("{} may not read `{}`", user(), path.display()),
            format!("put the user into the group of `{shown}`, or `chmod g+rX -R {shown}`"),
        ),
        Some(path) => Finding::fail(
            check,
            format!("`{}` leads nowhere", path.display()),
            "`runbook-ingest rollback --list` shows what is kept; `runbook-ingest` builds anew",
        ),
        None => Finding::ok(check, format!("{} may read `{shown}`", user())),
    }
}

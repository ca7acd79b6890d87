//! Checks of the machine: disk, memory, clock.

use super::{Finding, size, span};
use crate::generation::manifest::Manifest;
use crate::last_run::LastRun;
use std::path::Path;

/// A run holds the old generation, the draft, and what the mirror fetches.
const GENERATIONS_FREE: u64 = 3;
/// Free space below which even a small first run is in doubt (64 MiB).
const DISK_BYTES_MIN: u64 = 64 << 20;
/// Files of a generation beside its documents, and of the mirror.
const INODES_MIN: u64 = 1000;
/// Clocks of two machines differ by less than this many seconds where both are set by the network.
const SKEW_S: i64 = 120;
/// What a program needs beside the generation: the library, the model, its sessions (300 MiB).
const MODEL_BYTES: u64 = 300 << 20;

/// Bytes of a generation.
#[must_use]
pub fn bytes_of(manifest: &Manifest) -> u64 {
    manifest.files.values().map(|f| f.bytes).sum()
}

/// Room where the generations lie, against the size of the last one.
#[must_use]
pub fn disk(dir: &Path, free: Option<Free>, manifest: Option<&Manifest>) -> Finding {
    const CHECK: &str = "disk";
    let Some(free) = free else {
        return Finding::warn(
            CHECK,
            format!("the space beneath `{}` cannot be told", dir.display()),
            "look with `df`",
        );
    };
    let last = manifest.map_or(0, bytes_of);
    let files = manifest.map_or(0, |m| m.files.len() as u64);
    let says = match manifest {
        Some(_) => {
            format!("{} free, the last generation takes {}", size(free.bytes), size(last))
        }
        None => format!("{} free", size(free.bytes)),
    };
    let fix = format!(
        "make room beneath `{}`; a run needs about three times the size of a generation",
        dir.display()
    );
    if free.bytes < last.max(DISK_BYTES_MIN) {
        return Finding::fail(CHECK, says, fix);
    }
    if free.files.is_some_and(|f| f < files + INODES_MIN) {
        let files = free.files.unwrap_or(0);
        return Finding::fail(
            CHECK,
            format!("{says}; only {files} more files fit (inodes)"),
            "remove files from this file system: `df -i`",
        );
    }
    if free.bytes < last.saturating_mul(GENERATIONS_FREE) {
        return Finding::warn(CHECK, says, fix);
    }
    Finding::ok(CHECK, says)
}

/// Room of a file system for this user.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    /// In bytes.
    pub bytes: u64,
    /// In files; none where the file system does not count them.
    pub files: Option<u64>,
}

/// Memory that is left, against what the generation needs. `proc` is where the kernel tells it (`/proc`).
#[must_use]
pub fn memory(proc: &Path, cgroup: &Path, manifest: Option<&Manifest>) -> Finding {
    const CHECK: &str = "memory";
    // Vectors and indexes are mapped and should stay in memory; texts are held twice.
    let needed = MODEL_BYTES + manifest.map_or(0, bytes_of).saturating_mul(2);
    let meminfo = std::fs::read_to_string(proc.join("meminfo")).unwrap_or_default();
    let available = meminfo.lines().find_map(|line| {
        let kib = line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?;
        Some(kib.trim().parse::<u64>().ok()? << 10)
    });
    let number = |name: &str| -> Option<u64> {
        std::fs::read_to_string(cgroup.join(name)).ok()?.trim().parse().ok()
    };
    // `max` is no number: then there is no limit.
    let within =
        number("memory.max").map(|most| most.saturating_sub(number("memory.current").unwrap_or(0)));
    let Some(left) = available.into_iter().chain(within).min() else {
        return Finding::ok(CHECK, "what is left cannot be seen from here");
    };
    let says = format!("{} left, about {} needed", size(left), size(needed));
    if left < needed / 2 {
        Finding::fail(
            CHECK,
            says,
            "stop other programs, add memory, or raise MemoryMax= of the unit",
        )
    } else if left < needed {
        Finding::warn(
            CHECK,
            says,
            "stop other programs, add memory, or raise MemoryMax= of the unit",
        )
    } else {
        Finding::ok(CHECK, says)
    }
}

/// The clock against what was written before: the generation, the last run, the newest commit (seconds
/// since 1970). Ids of generations begin with the time, so a clock that was set back disorders them.
#[must_use]
pub fn clock(
    now: jiff::Timestamp,
    manifest: Option<&Manifest>,
    last: Option<&LastRun>,
    commit: Option<i64>,
) -> Finding {
    const CHECK: &str = "clock";
    const FIX: &str =
        "set it by the network: `timedatectl set-ntp true`, then look at `timedatectl`";
    let seconds =
        |text: &String| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second);
    let before = [
        ("the last generation was written", manifest.and_then(|m| seconds(&m.indexed_at))),
        ("the last run ended", last.and_then(|l| seconds(&l.finished_at))),
    ];
    for (what, at) in before {
        let ahead = at.map_or(0, |at| at - now.as_second());
        if ahead > 1 {
            return Finding::fail(
                CHECK,
                format!("it is {now:.0}, {} before {what}", span(ahead.unsigned_abs())),
                FIX,
            );
        }
    }
    let ahead = commit.map_or(0, |at| at - now.as_second());
    if ahead > SKEW_S {
        return Finding::warn(
            CHECK,
            format!(
                "it is {now:.0}; the newest commit is {} in the future: this clock or the committer's is wrong",
                span(ahead.unsigned_abs())
            ),
            FIX,
        );
    }
    Finding::ok(CHECK, format!("{now:.0}, after the last generation, run and commit"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Grade;

    fn free(bytes: u64, files: Option<u64>) -> Option<Free> {
        Some(Free { bytes, files })
    }

    #[test]
    fn a_full_disk_is_told_in_bytes_and_in_files() {
        let grade = |free| disk(Path::new("/data"), free, None).grade;
        assert_eq!(grade(free(1 << 40, Some(1 << 20))), Grade::Ok);
        assert_eq!(grade(free(1 << 40, None)), Grade::Ok);
        assert_eq!(grade(free(1 << 20, None)), Grade::Fail);
        assert_eq!(grade(free(1 << 40, Some(7))), Grade::Fail);
        assert_eq!(grade(None), Grade::Warn);
    }

    #[test]
    fn memory_is_what_the_kernel_or_the_control_group_leaves() {
        let dir = tempfile::tempdir().unwrap();
        let grade = || memory(dir.path(), dir.path(), None).grade;
        assert_eq!(grade(), Grade::Ok, "it cannot be seen");
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("meminfo", "MemTotal: 9000000 kB\nMemAvailable:    8000000 kB\n");
        assert_eq!(grade(), Grade::Ok);
        write("memory.max", "max\n");
        assert_eq!(grade(), Grade::Ok);
        write("memory.max", "536870912\n");
        write("memory.current", "300000000\n");
        assert_eq!(grade(), Grade::Warn);
        write("meminfo", "MemAvailable: 1000 kB\n");
        assert_eq!(grade(), Grade::Fail);
    }

    #[test]
    fn a_clock_before_what_was_written_fails_and_a_commit_ahead_warns() {
        let now: jiff::Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
        let mut last = LastRun {
            finished_at: "2026-12-01T11:59:00Z".into(),
            outcome: crate::last_run::Outcome::UpToDate,
            error: None,
            source_checked_at: None,
            source: String::new(),
            generation: None,
            commit: None,
            report: None,
        };
        let grade = |last: &LastRun, commit| clock(now, None, Some(last), commit);
        assert_eq!(grade(&last, Some(now.as_second() + 60)).grade, Grade::Ok);
        assert_eq!(grade(&last, Some(now.as_second() + 6000)).grade, Grade::Warn);
        last.finished_at = "2026-12-01T13:00:00Z".into();
        let found = grade(&last, None);
        assert_eq!(found.grade, Grade::Fail);
        assert!(
            found.message.contains("60 minutes before the last run ended"),
            "{}",
            found.message
        );
    }
}

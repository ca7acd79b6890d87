//! On a disk that is full.

use super::*;

/// A small file system at a path, gone when dropped.
pub(super) struct Small(PathBuf);

impl Small {
    pub(super) fn mount(at: &Path, size: &str) -> Option<Self> {
        if !is_root() {
            skip("only root can mount a small file system");
            return None;
        }
        fs::create_dir_all(at).unwrap();
        let size = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at.to_owned())),
            other => {
                skip(&format!("no file system can be mounted here: {other:?}"));
                None
            }
        }
    }

    /// Fills what is free, but for so many bytes.
    pub(super) fn fill_but(&self, free: u64) {
        let disk = rustix::fs::statvfs(&self.0).unwrap();
        let available = disk.f_bavail * disk.f_frsize;
        let ballast = available.saturating_sub(free);
        fs::write(self.0.join("ballast"), vec![0; usize::try_from(ballast).unwrap()]).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// On a full disk last-run.json may be the one of the run before; half of one it never is.
#[track_caller]
fn fails_for_want_of_space(world: &World, source: &str, args: &[&str]) {
    let output = world.command(source, args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{:?}: {stderr}", output.status);
    assert!(stderr.contains("hint: the disk is full"), "{stderr}");
    assert!(world.last_run()["outcome"].is_string());
    let left = names(&world.data().join("generations"));
    assert!(left.iter().all(|n| !n.starts_with('.')), "{left:?}");
    assert!(names(&world.data()).iter().all(|n| !n.contains("tmp")));
}

#[test]
fn a_full_disk_fails_the_run_and_keeps_the_generation() {
    let world = World::new();
    let Some(small) = Small::mount(&world.data(), "24m") else { return };
    let text = "# Large\n\n".to_owned() + &"A line that takes its place.\n".repeat(20_000);
    write(&world, "large.md", &text);
    write(&world, "guide.md", "# Guide\n");
    let run = world.ingest(SOURCE, &[]).expect(0, "published");
    let size: u64 = world.generation().manifest.files.values().map(|f| f.bytes).sum();
    // Ever more room, so that every stage of the next generation is once the one without.
    for part in 0..10 {
        write(&world, "guide.md", &format!("# Guide {part}\n"));
        small.fill_but(size * part / 10);
        fails_for_want_of_space(&world, SOURCE, &[]);
        assert_eq!(world.stored("guide.md"), "# Guide\n");
        fs::remove_file(world.data().join("ballast")).unwrap();
    }
    write(&world, "guide.md", "# Guide\n");
    let same = world.ingest(SOURCE, &[]).expect(0, "up_to_date");
    assert_eq!(same.generation(), run.generation());
    write(&world, "guide.md", "# New\n");
    world.ingest(SOURCE, &[]).expect(0, "published");
}

#[test]
fn a_disk_that_fills_while_fetching_fails_the_run_and_leaves_no_pack() {
    let world = World::new();
    let Some(small) = Small::mount(&world.data(), "20m") else { return };
    let remote = world.remote("remote.git", "main");
    remote.commit("main", &[("guide.md", "# Guide\n")]);
    world.ingest(&remote.url(), &[]).expect(0, "published");
    for n in 0..6 {
        let noise = crate::support::noise(2 << 20, n + 1);
        remote.commit("main", &[("guide.md", "# Guide\n\nnew\n"), ("noise.txt", &noise)]);
    }
    let shared = Arc::new(world);
    let served = Arc::clone(&shared);
    let server = Server::start(move |connection, _| {
        serve(git_daemon(&served), connection);
    });
    let over_git = format!("git://{}/remote.git", server.address);
    let packs = shared.data().join("source/mirror.git/objects/pack");
    let before = names(&packs);
    for (url, free) in [(remote.url(), 10 << 20), (over_git, 10 << 20), (remote.url(), 1 << 20)] {
        small.fill_but(free);
        fails_for_want_of_space(&shared, &url, &["--change-source"]);
        assert_eq!(shared.stored("guide.md"), "# Guide\n");
        assert_eq!(names(&packs), before);
        fs::remove_file(shared.data().join("ballast")).unwrap();
    }
}

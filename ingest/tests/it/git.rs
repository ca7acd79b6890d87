//! Git sources: real remotes over file, git and ssh, hostile trees and hostile servers.

use crate::support::{
    Entry, Remote, Run, Running, Server, World, advertise, git_daemon, is_root, names, noise,
    serve, serve_part, skip,
};
use git2::Oid;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};

const GUIDE: &[(&str, &str)] = &[("guide.md", "# Guide\n\nRestart it with `systemctl`.\n")];

/// A world with a remote that was ingested once.
fn ingested(branch: &str) -> (World, Remote) {
    let world = World::new();
    let remote = world.remote("remote.git", branch);
    remote.commit(branch, GUIDE);
    world.ingest(&remote.url(), &[]).expect(0, "published");
    (world, remote)
}

/// Asserts that a run failed and left all as it was: the generation, and when the source was seen.
#[track_caller]
fn keeps_all(world: &World, source: &str, args: &[&str], says: &[&str]) {
    world.age_last_run();
    let run = keeps_generation(world, source, args, says);
    assert_eq!(run.checked_at(), Some(crate::support::LONG_AGO), "{run}");
}

/// Asserts that a run failed after it had seen the source, and left the generation.
#[track_caller]
fn keeps_generation(world: &World, source: &str, args: &[&str], says: &[&str]) -> Run {
    let before = world.last_run();
    let run = world.ingest(source, args).expect(1, "failed").says(says);
    assert_eq!(run.last["generation"], before["generation"], "{run}");
    assert_eq!(run.last["commit"], before["commit"], "{run}");
    assert_eq!(world.documents(), ["guide.md"]);
    run
}

mod file {
    use super::*;

    #[test]
    fn a_first_run_publishes_and_the_next_finds_nothing_new() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let commit = remote.commit("main", GUIDE);
        let first = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(first.commit(), Some(commit));
        assert_eq!((first.count("documents"), first.count("indexed")), (1, 1));
        assert_eq!(first.state(), "Missing");
        assert_eq!(world.stored("guide.md"), GUIDE[0].1);
        assert_eq!(world.generation().manifest.branch.as_deref(), Some("main"));
        assert_eq!(world.generation().manifest.source, remote.url());

        let second = world.ingest(&remote.url(), &[]).expect(0, "up_to_date");
        assert_eq!(second.generation(), first.generation());
        assert_eq!(second.state(), "UpToDate");
        assert_eq!(world.generations(), 1);
        assert!(second.checked_at() >= first.checked_at(), "{second}");

        world.age_last_run();
        let third = world.ingest(&remote.url(), &[]).expect(0, "up_to_date");
        assert!(third.checked_at() >= first.checked_at(), "{third}");
    }

    #[test]
    fn a_new_commit_is_followed() {
        let (world, remote) = ingested("main");
        let before = world.last_run()["generation"].clone();
        let commit = remote.commit("main", &[("guide.md", "# Guide\n\nnew\n"), ("b/c.md", "x\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        assert_eq!(run.state(), "ContentMismatch");
        assert_ne!(run.last["generation"], before);
        assert_eq!(world.documents(), ["b/c.md", "guide.md"]);
        assert_eq!(world.stored("guide.md"), "# Guide\n\nnew\n");
    }

    #[test]
    fn only_the_newest_generations_stay() {
        let (world, remote) = ingested("main");
        for n in 0..4 {
            remote.commit("main", &[("guide.md", &format!("# {n}\n"))]);
            world.ingest(&remote.url(), &[]).expect(0, "published");
        }
        assert_eq!(world.generations(), runbook_shared::limits::GENERATIONS_KEPT);
        assert_eq!(world.stored("guide.md"), "# 3\n");
    }

    #[test]
    fn a_rewritten_branch_is_followed() {
        let (world, remote) = ingested("main");
        let commit = remote.rewrite("main", &[("other.md", "# Other\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        assert_eq!(world.documents(), ["other.md"]);
    }

    #[test]
    fn a_branch_that_goes_back_is_followed() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let old = remote.commit("main", GUIDE);
        remote.commit("main", &[("guide.md", "# Later\n")]);
        world.ingest(&remote.url(), &[]).expect(0, "published");
        let id = Oid::from_str(&old).unwrap();
        remote.repository.reference("refs/heads/main", id, true, "back").unwrap();
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(old));
        assert_eq!(world.stored("guide.md"), GUIDE[0].1);
    }

    #[test]
    fn a_renamed_default_branch_is_followed() {
        let (world, remote) = ingested("trunk");
        let tip = remote.repository.refname_to_id("refs/heads/trunk").unwrap();
        remote.repository.reference("refs/heads/main", tip, true, "rename").unwrap();
        remote.head("main");
        remote.delete_branch("trunk");
        world.ingest(&remote.url(), &[]).expect(0, "up_to_date");
        let commit = remote.commit("main", &[("new.md", "# New\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        assert_eq!(world.generation().manifest.branch.as_deref(), Some("main"));
        assert_eq!(world.documents(), ["new.md"]);
    }

    #[test]
    fn a_branch_may_replace_one_that_is_a_prefix_of_its_name() {
        let (world, remote) = ingested("ops");
        remote.delete_branch("ops");
        let commit = remote.commit("ops/main", &[("new.md", "# New\n")]);
        remote.head("ops/main");
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
    }

    #[test]
    fn a_named_branch_is_read_and_once_gone_the_generation_stays() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        remote.commit("main", &[("no.md", "# No\n")]);
        let commit = remote.commit("release/1.x", GUIDE);
        let branch = ["--branch", "release/1.x"];
        let run = world.ingest(&remote.url(), &branch).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        remote.delete_branch("release/1.x");
        let says = ["refs/heads/release/1.x", "it has: main", "hint: ", "--branch"];
        keeps_all(&world, &remote.url(), &branch, &says);
    }

    #[test]
    fn a_dangling_head_with_one_branch_reads_that_branch() {
        let (world, remote) = ingested("main");
        remote.head("gone");
        let commit = remote.commit("main", &[("new.md", "# New\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        assert_eq!(world.generation().manifest.branch.as_deref(), Some("main"));
    }

    #[test]
    fn a_dangling_head_with_several_branches_asks_for_a_name() {
        let (world, remote) = ingested("main");
        remote.commit("dev", &[("dev.md", "# Dev\n")]);
        remote.head("gone");
        let says = ["HEAD", "dev, main", "hint: ", "--branch"];
        keeps_all(&world, &remote.url(), &[], &says);
        world.ingest(&remote.url(), &["--branch", "main"]).expect(0, "up_to_date");
    }

    #[test]
    fn a_detached_head_is_read() {
        let (world, remote) = ingested("main");
        let commit = remote.commit("main", &[("new.md", "# New\n")]);
        fs::write(remote.dir.join("HEAD"), format!("{commit}\n")).unwrap();
        remote.rewrite("main", &[("no.md", "# No\n")]);
        remote.rewrite("dev", &[("no.md", "# No\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit().as_ref(), Some(&commit));
        assert_eq!(world.documents(), ["new.md"]);
        for branch in ["main", "dev"] {
            remote.delete_branch(branch);
        }
        world.ingest(&remote.url(), &[]).expect(0, "up_to_date");
    }

    #[test]
    fn an_empty_repository_is_an_empty_generation_with_a_note() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!((run.count("documents"), run.commit()), (0, None));
        assert!(run.report()["notes"].to_string().contains("no commit"), "{run}");
        world.ingest(&remote.url(), &[]).expect(0, "up_to_date");
        let commit = remote.commit("main", GUIDE);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
    }

    #[test]
    fn a_repository_that_lost_its_commits_does_not_empty_the_generation() {
        let (world, remote) = ingested("main");
        remote.delete_branch("main");
        keeps_all(&world, &remote.url(), &[], &["has no commit any more", "hint: "]);
    }

    #[test]
    fn a_commit_without_documents_is_an_empty_generation_with_a_note() {
        let (world, remote) = ingested("main");
        let commit = remote.commit("main", &[("main.c", "int main;\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!((run.commit(), run.count("indexed")), (Some(commit), 0));
        assert!(run.report()["notes"].to_string().contains("no document"), "{run}");
    }

    #[test]
    fn a_remote_that_is_gone_keeps_the_generation_until_it_is_back() {
        let (world, remote) = ingested("main");
        let away = world.path("away.git");
        fs::rename(&remote.dir, &away).unwrap();
        keeps_all(&world, &remote.url(), &[], &["cannot fetch from", &remote.url()]);
        fs::rename(&away, &remote.dir).unwrap();
        let run = world.ingest(&remote.url(), &[]).expect(0, "up_to_date");
        assert_ne!(run.checked_at(), Some(crate::support::LONG_AGO));
        let commit = remote.commit("main", &[("new.md", "# New\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
    }

    #[test]
    fn a_remote_that_was_never_reached_leaves_no_generation() {
        let world = World::new();
        let run = world.ingest("file:///nowhere/at/all.git", &[]).expect(1, "failed");
        assert_eq!((run.generation(), run.checked_at()), (None, None));
    }

    #[test]
    fn credentials_are_nowhere_to_be_seen() {
        let world = World::new();
        let run = world.ingest("http://ops:s3cret@127.0.0.1:1/team/r.git", &["--timeout-s", "5"]);
        let run = run.expect(1, "failed").says(&["http://127.0.0.1:1/team/r.git"]);
        assert!(!format!("{run}").contains("s3cret"), "{run}");
    }

    #[test]
    fn tags_and_other_branches_do_not_matter() {
        let (world, remote) = ingested("main");
        let tip = remote.repository.refname_to_id("refs/heads/main").unwrap();
        remote.repository.reference("refs/tags/v1", tip, true, "tag").unwrap();
        remote.commit("dev", &[("dev.md", "# Dev\n")]);
        world.ingest(&remote.url(), &[]).expect(0, "up_to_date");
    }

    #[test]
    fn a_damaged_mirror_is_made_anew() {
        for damage in ["truncate", "remove", "head", "config"] {
            let (world, remote) = ingested("main");
            let mirror = world.data().join("source/mirror.git");
            let pack = || -> PathBuf {
                let dir = mirror.join("objects/pack");
                let names = names(&dir);
                dir.join(names.iter().find(|n| n.ends_with(".pack")).unwrap())
            };
            match damage {
                "truncate" => {
                    fs::set_permissions(pack(), fs::Permissions::from_mode(0o644)).unwrap();
                    fs::write(pack(), "PACK").unwrap();
                }
                "remove" => fs::remove_file(pack()).unwrap(),
                "head" => fs::write(mirror.join("HEAD"), "").unwrap(),
                _ => fs::write(mirror.join("config"), "[core\n").unwrap(),
            }
            let old = ("guide.md", GUIDE[0].1);
            let commit = remote.commit("main", &[("new.md", "# New\n"), old]);
            let run = world.ingest(&remote.url(), &[]).expect(0, "published");
            assert_eq!(run.commit(), Some(commit), "{damage}");
            assert_eq!(world.documents(), ["guide.md", "new.md"], "{damage}");
        }
    }

    fn packs(world: &World) -> (usize, u64) {
        let dir = world.data().join("source/mirror.git/objects/pack");
        let packs = names(&dir).into_iter().filter(|n| n.ends_with(".pack"));
        let sizes: Vec<u64> = packs.map(|n| fs::metadata(dir.join(n)).unwrap().len()).collect();
        (sizes.len(), sizes.iter().sum())
    }

    #[test]
    fn packs_of_many_fetches_are_merged() {
        let (world, remote) = ingested("main");
        let mut most = 0;
        for n in 0..25 {
            remote.commit("main", &[("guide.md", &format!("# {n}\n")), ("other.md", "# O\n")]);
            world.ingest(&remote.url(), &[]).expect(0, "published");
            most = most.max(packs(&world).0);
        }
        assert!(most < 20 && packs(&world).0 < 10, "{most}, then {:?}", packs(&world));
        // Everything is there: a run that checks the mirror finds nothing to make anew.
        let commit = remote.commit("main", &[("guide.md", "# last\n"), ("other.md", "# O\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        assert!(!run.stderr.contains("mirror"), "{run}");
        assert_eq!(world.stored("guide.md"), "# last\n");
    }

    #[test]
    fn a_mirror_of_things_that_nobody_needs_is_fetched_anew() {
        let (world, remote) = ingested("main");
        for n in 1..5 {
            let text = noise(2_000_000, n);
            remote.rewrite("main", &[("guide.md", "# G\n"), ("noise.txt", &text)]);
            world.ingest(&remote.url(), &[]).expect(0, "published");
        }
        let (count, bytes) = packs(&world);
        assert!(bytes < 4_000_000, "{count} packs of {bytes} bytes");
        assert_eq!(names(&world.data().join("source")), ["mirror.git"]);
        // What a run that was killed left is swept.
        let left = world.data().join("source/mirror.old.git/objects");
        fs::create_dir_all(&left).unwrap();
        let commit = remote.commit("main", &[("guide.md", "# last\n")]);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!((run.commit(), left.exists()), (Some(commit), false));
    }

    #[test]
    fn a_source_that_is_seen_but_not_fetched_was_not_reached() {
        let (world, remote) = ingested("main");
        let commit = remote.commit("main", &[("new.md", "# New\n")]);
        let objects = remote.dir.join("objects");
        let object = objects.join(&commit[..2]).join(&commit[2..]);
        let away = world.path("object");
        fs::rename(&object, &away).unwrap();
        keeps_all(&world, &remote.url(), &[], &["object not found"]);
        fs::rename(&away, &object).unwrap();
        world.ingest(&remote.url(), &[]).expect(0, "published");
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_named_with_the_way_out() {
        let (world, remote) = ingested("main");
        let dir = remote.dir.join("refs/remotes/origin");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("HEAD"), "ref: refs/remotes/origin/gone\n").unwrap();
        let commit = remote.commit("main", &[("new.md", "# New\n")]);
        let says = ["refs/remotes/origin/gone", "hint: ", "git symbolic-ref --delete"];
        keeps_all(&world, &remote.url(), &[], &says);
        let source = remote.dir.to_str().unwrap();
        let run = world.ingest(source, &["--change-source"]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
    }
}

mod daemon {
    use super::*;

    fn url(server: &Server) -> String {
        format!("git://{}/remote.git", server.address)
    }

    /// A remote of some megabytes, so that a fetch can be cut in its middle.
    fn large(world: &World) -> Remote {
        let remote = world.remote("remote.git", "main");
        let text = noise(400_000, 7);
        let files: Vec<(String, &str)> =
            (0..5).map(|n| (format!("{n}.md"), text.as_str())).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), *t)).collect();
        remote.commit("main", &files);
        for n in 0..5 {
            let text = noise(400_000, 100 + n);
            remote.commit("main", &[("guide.md", GUIDE[0].1), ("noise.txt", &text)]);
        }
        remote
    }

    #[test]
    fn a_fetch_over_the_git_protocol_works_and_is_incremental() {
        let world = Arc::new(World::new());
        let remote = world.remote("remote.git", "trunk");
        let commit = remote.commit("trunk", GUIDE);
        let served = Arc::clone(&world);
        let server = Server::start(move |connection, _| {
            serve(git_daemon(&served), connection);
        });
        let run = world.ingest(&url(&server), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        world.ingest(&url(&server), &[]).expect(0, "up_to_date");
        let commit = remote.commit("trunk", &[("guide.md", "# New\n")]);
        let run = world.ingest(&url(&server), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        let commit = remote.rewrite("trunk", &[("guide.md", "# Rewritten\n")]);
        let run = world.ingest(&url(&server), &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        remote.head("gone");
        world.ingest(&url(&server), &[]).expect(0, "up_to_date");
        remote.commit("other", GUIDE);
        world.ingest(&url(&server), &[]).expect(1, "failed").says(&[
            "HEAD",
            "other, trunk",
            "--branch",
        ]);
    }

    #[test]
    fn a_server_that_does_not_tell_what_head_names_is_read_at_head() {
        let world = Arc::new(World::new());
        let remote = world.remote("remote.git", "main");
        let commit = remote.commit("main", GUIDE);
        let served = Arc::clone(&world);
        let server = Server::start(move |connection, _| {
            serve(git_daemon(&served), connection);
        });
        fs::write(remote.dir.join("HEAD"), format!("{commit}\n")).unwrap();
        world.ingest(&url(&server), &[]).expect(0, "published");
        assert_eq!(world.generation().manifest.branch.as_deref(), Some("main"));
        remote.rewrite("main", &[("no.md", "# No\n")]);
        let run = world.ingest(&url(&server), &[]).expect(0, "up_to_date");
        assert_eq!(run.commit(), Some(commit));
        remote.delete_branch("main");
        world.forget_generations();
        world.ingest(&url(&server), &[]).expect(0, "published");
        assert_eq!(world.generation().manifest.branch, None);
    }

    #[test]
    fn an_empty_repository_and_a_missing_one_differ() {
        let world = Arc::new(World::new());
        world.remote("remote.git", "main");
        let served = Arc::clone(&world);
        let server = Server::start(move |connection, _| {
            serve(git_daemon(&served), connection);
        });
        let run = world.ingest(&url(&server), &[]).expect(0, "published");
        assert_eq!(run.count("documents"), 0);
        let gone = format!("git://{}/gone.git", server.address);
        let run = world.ingest(&gone, &["--change-source"]).expect(1, "failed");
        run.says(&["cannot fetch from", "gone.git"]);
    }

    #[test]
    fn a_fetch_that_is_cut_keeps_the_generation_and_the_next_one_works() {
        let world = Arc::new(World::new());
        let small = world.remote("remote.git", "main");
        small.commit("main", GUIDE);
        let served = Arc::clone(&world);
        // The connection that is cut, and after how many bytes.
        let cut = Arc::new(Mutex::new(None::<(usize, usize)>));
        let plan = Arc::clone(&cut);
        let count = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&count);
        let server = Server::start(move |connection, number| {
            *counter.lock().unwrap() = number + 1;
            let cut = *plan.lock().unwrap();
            match cut {
                Some((at, bytes)) if at == number => {
                    serve_part(git_daemon(&served), &connection, bytes, || {});
                }
                _ => {
                    serve(git_daemon(&served), connection);
                }
            }
        });
        world.ingest(&url(&server), &[]).expect(0, "published");
        fs::remove_dir_all(&small.dir).unwrap();
        let remote = large(&world);
        for bytes in [0, 3, 300, 2_000, 400_000, 800_000] {
            // The first connection asks what there is, the second fetches.
            *cut.lock().unwrap() = Some((*count.lock().unwrap() + 1, bytes));
            let before = world.last_run()["generation"].clone();
            let run = world.ingest(&url(&server), &[]).expect(1, "failed");
            let run = run.says(&["cannot fetch from"]);
            assert_eq!(run.last["generation"], before, "{bytes}");
            assert_eq!(world.documents(), ["guide.md"]);
        }
        *cut.lock().unwrap() = Some((*count.lock().unwrap(), 30));
        world.ingest(&url(&server), &[]).expect(1, "failed").says(&["cannot fetch from"]);
        *cut.lock().unwrap() = None;
        let run = world.ingest(&url(&server), &[]).expect(0, "published");
        let tip = remote.repository.refname_to_id("refs/heads/main").unwrap();
        assert_eq!(run.commit(), Some(tip.to_string()));
        let packs = names(&world.data().join("source/mirror.git/objects/pack"));
        let whole =
            |n: &String| n.starts_with("pack-") && (n.ends_with(".pack") || n.ends_with(".idx"));
        assert!(packs.iter().all(whole), "{packs:?}");
    }

    #[test]
    fn a_run_killed_while_it_fetches_leaves_nothing_that_blocks_the_next() {
        let world = Arc::new(World::new());
        let remote = large(&world);
        let served = Arc::clone(&world);
        let (fetching, fetched) = mpsc::channel();
        let fetching = Mutex::new(fetching);
        let server = Server::start(move |connection, number| {
            if number == 1 {
                // Sends a part of the pack, then neither goes on nor hangs up.
                serve_part(git_daemon(&served), &connection, 700_000, || {
                    fetching.lock().unwrap().send(()).unwrap();
                    let _ = connection.try_clone().unwrap().read(&mut [0]);
                });
            } else {
                serve(git_daemon(&served), connection);
            }
        });
        let mut run = Running::start(world.command(&url(&server), &[]));
        fetched.recv().unwrap();
        let mirror = world.data().join("source/mirror.git");
        let pack = mirror.join("objects/pack");
        // The bytes are on their way: the file appears without further sign.
        while !names(&pack).iter().any(|n| n.starts_with("pack_git2_")) {
            assert!(!run.has_ended());
            std::thread::yield_now();
        }
        run.kill();
        // What a kill at a worse moment leaves.
        fs::create_dir_all(mirror.join("refs/runbook")).unwrap();
        for lock in ["refs/runbook/source.lock", "config.lock", "HEAD.lock", "packed-refs.lock"] {
            fs::write(mirror.join(lock), "").unwrap();
        }
        let generations = world.data().join("generations");
        fs::create_dir_all(generations.join(".tmp-1/docs")).unwrap();
        fs::write(generations.join(".tmp-1/docs/a.md"), "half").unwrap();
        std::os::unix::fs::symlink("generations/none", world.data().join("current.tmp-1")).unwrap();
        let run = world.ingest(&url(&server), &[]).expect(0, "published");
        let tip = remote.repository.refname_to_id("refs/heads/main").unwrap();
        assert_eq!(run.commit(), Some(tip.to_string()));
        assert!(names(&pack).iter().all(|n| n.starts_with("pack-")), "{:?}", names(&pack));
        assert_eq!(
            names(&world.data()),
            ["current", "generations", "ingest.lock", "last-run.json", "source"]
        );
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up() {
        let world = World::new();
        let server = Server::start(|mut connection, _| {
            let _ = std::io::copy(&mut connection, &mut std::io::sink());
        });
        let run = world.ingest(&url(&server), &["--timeout-s", "1"]).expect(1, "failed");
        run.says(&["cannot fetch from"]);
    }

    #[test]
    fn hostile_names_of_references_reach_no_path() {
        let id = "1234567890123456789012345678901234567890";
        let long = format!("refs/heads/{}", "x".repeat(5_000));
        for (head, advertised) in [
            ("refs/heads/../../x", vec!["HEAD", "refs/heads/../../x", "refs/heads/main"]),
            ("refs/heads/../../x", vec!["HEAD", "refs/heads/main"]),
            ("/etc/passwd", vec!["HEAD", "/etc/passwd"]),
            ("refs/heads/a\u{1b}[31mb", vec!["HEAD", "refs/heads/a\u{1b}[31mb"]),
            ("refs/heads/x.lock", vec!["HEAD", "refs/heads/x.lock"]),
            ("refs/heads/-x", vec!["HEAD", "refs/heads/-x"]),
            ("refs/heads/", vec!["HEAD", "refs/heads/"]),
            ("refs/heads/a b", vec!["HEAD", "refs/heads/a b", "refs/heads/c:d*"]),
            (&long, vec!["HEAD", &long]),
        ] {
            let world = World::new();
            let refs: Vec<_> =
                advertised.iter().map(|n| (id.to_owned(), (*n).to_owned())).collect();
            let capabilities = format!("symref=HEAD:{head} ofs-delta agent=hostile/1");
            let server = Server::start(move |connection, _| {
                advertise(connection, &refs, &capabilities);
            });
            let run = world.ingest(&url(&server), &["--timeout-s", "2"]).expect(1, "failed");
            let run = run.says(&["127.0.0.1"]);
            assert!(!run.stderr.contains('\u{1b}'), "{run}");
            assert_eq!(names(&world.path("")), ["data", "home", "tmp"], "{head:?}");
            let stray = |n: &String| n != "ingest.lock" && n != "last-run.json" && n != "source";
            assert!(!names(&world.data()).iter().any(stray), "{head:?}");
        }
    }

    #[test]
    fn names_of_references_that_are_no_text_do_not_matter() {
        let world = Arc::new(World::new());
        let remote = world.remote("remote.git", "main");
        let commit = remote.commit("main", GUIDE);
        let packed = [
            format!("{commit} refs/heads/").as_bytes(),
            b"b\xe9ta\n",
            format!("{commit} refs/tags/").as_bytes(),
            b"v\xff\n",
        ]
        .concat();
        fs::write(remote.dir.join("packed-refs"), packed).unwrap();
        let served = Arc::clone(&world);
        let server = Server::start(move |connection, _| {
            serve(git_daemon(&served), connection);
        });
        let run = world.ingest(&url(&server), &[]).expect(0, "published");
        assert!(!run.stderr.contains("panicked"), "{run}");
        world.ingest(&remote.url(), &["--change-source"]).expect(0, "published");
        let source = remote.dir.to_str().unwrap();
        world.ingest(source, &["--change-source"]).expect(0, "published");
        let run = world.ingest(&url(&server), &["--branch", "gone", "--change-source"]);
        run.expect(1, "failed").says(&["it has: main"]);
    }

    #[test]
    fn what_a_server_says_cannot_colour_the_terminal() {
        let world = World::new();
        let server = Server::start(|mut connection, _| {
            use std::io::Write;
            let _ = crate::support::read_pkt_line(&mut connection);
            let line = crate::support::pkt_line("ERR \u{1b}[31mno such\u{7} thing\n");
            let _ = connection.write_all(&line);
        });
        let run = world.ingest(&url(&server), &[]).expect(1, "failed").says(&["no such"]);
        let error = run.last["error"].as_str().unwrap();
        assert!(!error.chars().any(char::is_control) && !run.stderr.contains('\u{1b}'), "{run}");
    }
}

mod ssh {
    use super::*;

    /// sshd for this user, one process a connection, with a deploy key that may log in.
    struct Sshd {
        world: Arc<World>,
        remote: Remote,
        server: Server,
    }

    fn keygen(world: &World, kind: &str, file: &str) {
        let output = world
            .hermetic("ssh-keygen")
            .args(["-q", "-N", "", "-t", kind, "-C", "", "-f", file])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    impl Sshd {
        /// None, with a printed reason, where sshd is not installed.
        fn start(host_keys: &[&str]) -> Option<Self> {
            let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"];
            let Some(program) = program.into_iter().find(|p| Path::new(p).is_file()) else {
                skip("sshd is not installed: `apt-get install -y openssh-server`");
                return None;
            };
            if is_root() {
                fs::create_dir_all("/run/sshd").unwrap();
            }
            let world = Arc::new(World::new());
            let remote = world.remote("remote.git", "main");
            remote.commit("main", GUIDE);
            keygen(&world, "ed25519", "deploy");
            keygen(&world, "ed25519", "stranger");
            let mut config = String::from(
                "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n\
                 KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
            );
            let at = |name: &str| world.path(name).display().to_string();
            config.push_str(&format!("AuthorizedKeysFile {}\n", at("deploy.pub")));
            let path = std::env::var("PATH").unwrap();
            config.push_str(&format!("SetEnv PATH={path}\n"));
            for kind in host_keys {
                keygen(&world, kind, &format!("host_{kind}"));
                config.push_str(&format!("HostKey {}\n", at(&format!("host_{kind}"))));
            }
            fs::write(world.path("sshd_config"), config).unwrap();
            let served = Arc::clone(&world);
            let server = Server::start(move |connection, _| {
                let mut sshd = served.hermetic(program);
                sshd.args(["-i", "-f"]).arg(served.path("sshd_config"));
                serve(sshd, connection);
            });
            Some(Self { world, remote, server })
        }

        fn url(&self) -> String {
            let user = self.world.hermetic("id").arg("-un").output().unwrap().stdout;
            let user = String::from_utf8(user).unwrap();
            let path = self.remote.dir.display();
            format!("ssh://{}@127.0.0.1:{}{path}", user.trim(), self.server.port())
        }

        /// A line of known_hosts with the public key in this file.
        fn line(&self, file: &str) -> String {
            let key = fs::read_to_string(self.world.path(&format!("{file}.pub"))).unwrap();
            format!("[127.0.0.1]:{} {}\n", self.server.port(), key.trim())
        }

        fn know(&self, lines: &[String]) {
            fs::write(self.world.path("known"), lines.concat()).unwrap();
        }

        fn ingest(&self, key: &str) -> crate::support::Run {
            self.world.ingest(&self.url(), &["--ssh-key", key, "--known-hosts", "known"])
        }
    }

    #[test]
    fn a_deploy_key_and_a_known_host_fetch() {
        let Some(sshd) = Sshd::start(&["ed25519", "rsa"]) else { return };
        sshd.know(&[sshd.line("host_ed25519"), sshd.line("host_rsa")]);
        let run = sshd.ingest("deploy").expect(0, "published");
        assert_eq!(run.count("indexed"), 1);
        sshd.ingest("deploy").expect(0, "up_to_date");
        let commit = sshd.remote.commit("main", &[("new.md", "# New\n")]);
        let run = sshd.ingest("deploy").expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        assert_eq!(run.last["source"].as_str(), Some(sshd.url().as_str()));
    }

    #[test]
    fn one_known_key_of_several_is_enough_whichever_it_is() {
        let kinds = ["ed25519", "ecdsa", "rsa"];
        let Some(sshd) = Sshd::start(&kinds) else { return };
        for kind in kinds {
            sshd.know(&[sshd.line(&format!("host_{kind}"))]);
            sshd.remote.commit("main", &[("guide.md", &format!("# {kind}\n"))]);
            sshd.ingest("deploy").expect(0, "published");
            assert_eq!(sshd.world.stored("guide.md"), format!("# {kind}\n"));
        }
        // The same from the user's own file, and with hashed names.
        let home = sshd.world.path("home/.ssh");
        fs::create_dir_all(&home).unwrap();
        let file = home.join("known_hosts");
        fs::write(&file, sshd.line("host_rsa")).unwrap();
        let hashed =
            sshd.world.hermetic("ssh-keygen").arg("-q").arg("-H").arg("-f").arg(&file).status();
        assert!(hashed.unwrap().success() && fs::read(&file).unwrap().starts_with(b"|1|"));
        let run = sshd.world.ingest(&sshd.url(), &["--ssh-key", "deploy"]);
        run.expect(0, "up_to_date");
    }

    #[test]
    fn patterns_know_hosts_and_find_the_kind_to_ask_for() {
        let Some(sshd) = Sshd::start(&["ed25519", "rsa"]) else { return };
        let key = sshd.line("host_rsa");
        let key = key.split_once(' ').unwrap().1;
        sshd.know(&[format!("[127.0.0.?]:* {key}")]);
        sshd.ingest("deploy").expect(0, "published");
        sshd.know(&[format!("127.* {key}")]);
        sshd.ingest("deploy").expect(0, "up_to_date");
        sshd.know(&[format!("*,!*127.0.0.1* {key}")]);
        sshd.ingest("deploy").expect(1, "failed").says(&["is in none of", "hint: "]);
        sshd.know(&[format!("* {key}"), format!("@revoked * {key}")]);
        sshd.ingest("deploy").expect(1, "failed").says(&["revoked"]);
    }

    #[test]
    fn a_file_with_lines_of_another_kind_still_serves() {
        let Some(sshd) = Sshd::start(&["ed25519", "rsa"]) else { return };
        let odd = "# comment\n\n@cert-authority *.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\n\
                   half-a-line\nother.example.org ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ==\n\
                   sk.example.org sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5\n";
        sshd.know(&[odd.to_owned(), sshd.line("host_rsa")]);
        sshd.ingest("deploy").expect(0, "published");
    }

    #[test]
    fn an_unknown_host_is_refused_with_the_way_to_know_it() {
        let Some(sshd) = Sshd::start(&["ed25519"]) else { return };
        let port = sshd.server.port();
        sshd.know(&["other.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n".to_owned()]);
        let host = format!("[127.0.0.1]:{port}");
        let scan = format!("ssh-keyscan -p {port} 127.0.0.1");
        sshd.ingest("deploy").expect(1, "failed").says(&[
            &host,
            "known",
            "hint: ",
            &scan,
            "--known-hosts",
        ]);
        let run = sshd.world.ingest(&sshd.url(), &["--ssh-key", "deploy"]);
        run.expect(1, "failed").says(&[&host, "hint: ", &scan]);
        let args = ["--ssh-key", "deploy", "--known-hosts", "nowhere"];
        let run = sshd.world.ingest(&sshd.url(), &args);
        run.expect(1, "failed").says(&["`nowhere`", "known_hosts"]);
    }

    #[test]
    fn a_host_whose_key_changed_is_refused() {
        let Some(sshd) = Sshd::start(&["ed25519"]) else { return };
        sshd.know(&[sshd.line("host_ed25519")]);
        sshd.ingest("deploy").expect(0, "published");
        sshd.world.age_last_run();
        sshd.know(&[sshd.line("stranger")]);
        let run = sshd.ingest("deploy").expect(1, "failed");
        let run = run.says(&["is not the one in `known`", "ed25519", "hint: "]);
        assert_eq!(run.checked_at(), Some(crate::support::LONG_AGO));
        assert_eq!(sshd.world.documents(), ["guide.md"]);
    }

    #[test]
    fn a_host_that_has_no_key_of_the_known_kind_is_refused_with_both_kinds() {
        let Some(sshd) = Sshd::start(&["ed25519"]) else { return };
        keygen(&sshd.world, "rsa", "host_rsa");
        sshd.know(&[sshd.line("host_rsa")]);
        let run = sshd.ingest("deploy").expect(1, "failed");
        run.says(&["ssh-rsa", "hint: "]);
    }

    #[test]
    fn a_revoked_key_is_refused() {
        let Some(sshd) = Sshd::start(&["ed25519"]) else { return };
        let line = sshd.line("host_ed25519");
        sshd.know(&[format!("@revoked {line}"), line]);
        sshd.ingest("deploy").expect(1, "failed").says(&["revoked"]);
    }

    #[test]
    fn a_key_that_the_server_does_not_know_is_refused_at_once() {
        let Some(sshd) = Sshd::start(&["ed25519"]) else { return };
        sshd.know(&[sshd.line("host_ed25519")]);
        let run = sshd.ingest("stranger").expect(1, "failed");
        run.says(&["refused", "`stranger`", "hint: "]);
        sshd.ingest("nowhere").expect(1, "failed").says(&["`nowhere`"]);
        fs::write(sshd.world.path("broken"), "no key\n").unwrap();
        sshd.ingest("broken").expect(1, "failed").says(&["`broken`"]);
        let run = sshd.world.ingest(&sshd.url(), &["--known-hosts", "known"]);
        run.expect(1, "failed").says(&["hint: ", "--ssh-key"]);
    }

    #[test]
    fn a_repository_that_is_not_there_is_named() {
        let Some(sshd) = Sshd::start(&["ed25519"]) else { return };
        sshd.know(&[sshd.line("host_ed25519")]);
        let url = format!("{}x", sshd.url());
        let args = ["--ssh-key", "deploy", "--known-hosts", "known"];
        sshd.world.ingest(&url, &args).expect(1, "failed").says(&["cannot fetch from", &url]);
    }
}

mod http {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpStream;
    use std::process::Stdio;

    /// Answers every request with 401, and notes the credentials that came with it.
    fn refuse(connection: TcpStream, seen: &Mutex<Vec<String>>) {
        let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
        let mut credentials = String::new();
        while let Some(Ok(line)) = lines.next() {
            if line.is_empty() {
                break;
            }
            if let Some((_, value)) = line.split_once("Authorization: Basic ") {
                credentials = value.to_owned();
            }
        }
        seen.lock().unwrap().push(credentials);
        let answer = "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\n\
                      Content-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = { &connection }.write_all(answer.as_bytes());
    }

    #[test]
    fn a_token_is_shown_to_the_server_alone_and_a_refusal_named() {
        let world = World::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let server = Server::start(move |connection, _| refuse(connection, &noted));
        let url = format!("http://{}/remote.git", server.address);
        let run = world.ingest(&url, &[]).expect(1, "failed");
        run.says(&["asks for credentials", "hint: ", "--token-file"]);
        assert!(seen.lock().unwrap().iter().all(String::is_empty));
        fs::write(world.path("token"), "s3cret-token\n").unwrap();
        let run = world.ingest(&url, &["--token-file", "token"]).expect(1, "failed");
        let run = run.says(&["refused the token in `token`", "hint: "]);
        assert!(!format!("{run}").contains("s3cret"), "{run}");
        // base64 of `x-access-token:s3cret-token`
        let wanted = "eC1hY2Nlc3MtdG9rZW46czNjcmV0LXRva2Vu";
        let seen = seen.lock().unwrap().clone();
        assert!(seen.iter().any(|c| c == wanted) && seen.len() < 12, "{seen:?}");
        let run = world.ingest(&url, &["--token-file", "nowhere"]).expect(1, "failed");
        run.says(&["cannot read `nowhere`", "hint: "]);
    }

    #[test]
    fn a_certificate_that_nobody_vouches_for_is_refused() {
        let world = World::new();
        let made = world
            .hermetic("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .output();
        if !made.is_ok_and(|output| output.status.success()) {
            return skip("openssl is not installed");
        }
        let mut server = world
            .hermetic("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-www"])
            .args(["-key", "key.pem", "-cert", "cert.pem"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port =
            lines.find_map(|l| Some(l.strip_prefix("ACCEPT ")?.rsplit_once(':')?.1.to_owned()));
        let url = format!("https://localhost:{}/remote.git", port.unwrap());
        let run = world.ingest(&url, &[]).expect(1, "failed");
        run.says(&["cannot fetch from", "certificate"]);
        let mut command = world.command(&url, &[]);
        command.env("SSL_CERT_FILE", world.path("cert.pem"));
        let run = world.finish(command.output().unwrap()).expect(1, "failed");
        assert!(!run.stderr.contains("certificate"), "{run}");
        server.kill().unwrap();
        server.wait().unwrap();
    }
}

mod owner {
    use super::*;

    const OTHER: &str = "12345";

    fn give_away(path: &Path) {
        let status = Command::new("chown").args(["-R", OTHER]).arg(path).status().unwrap();
        assert!(status.success());
    }

    #[test]
    fn a_repository_of_another_user_is_refused_with_both_users_and_the_fix() {
        if !is_root() {
            return skip("only root can give a repository away");
        }
        let world = World::new();
        let remote = world.remote("runbooks", "main");
        remote.commit("main", GUIDE);
        give_away(&remote.dir);
        let source = remote.dir.to_str().unwrap();
        let fix = format!("safe.directory {}", remote.dir.display());
        let run = world.ingest(source, &[]).expect(1, "failed");
        run.says(&["belongs to user 12345", "runs as user 0", "hint: ", &fix]);
        let url = remote.url();
        let run = world.ingest(&url, &[]).expect(1, "failed");
        run.says(&["12345", "user 0", "hint: ", &fix]);
        let config = format!("[safe]\n\tdirectory = {}\n", remote.dir.display());
        fs::write(world.path("home/.gitconfig"), config).unwrap();
        world.ingest(source, &[]).expect(0, "published");
        world.ingest(&url, &["--change-source"]).expect(0, "published");
    }

    #[test]
    fn a_mirror_of_another_user_is_refused_and_not_removed() {
        if !is_root() {
            return skip("only root can give a repository away");
        }
        let (world, remote) = ingested("main");
        let mirror = world.data().join("source/mirror.git");
        give_away(&mirror);
        remote.commit("main", &[("new.md", "# New\n")]);
        let says = ["mirror.git` belongs to user 12345", "runs as user 0", "hint: "];
        keeps_generation(&world, &remote.url(), &[], &says);
        assert!(mirror.join("HEAD").is_file());
    }

    #[test]
    fn a_work_tree_whose_git_directory_is_anothers_names_that_one() {
        if !is_root() {
            return skip("only root can give a repository away");
        }
        let world = World::new();
        let tree = world.path("tree");
        git2::Repository::init(&tree).unwrap();
        give_away(&tree.join(".git"));
        let run = world.ingest(tree.to_str().unwrap(), &[]).expect(1, "failed");
        run.says(&["belongs to user 12345", "runs as user 0", "hint: "]);
    }
}

mod tree {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut pairs: Vec<_> =
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn links_and_submodules_are_skipped_by_name() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let id = Oid::from_str("1234567890123456789012345678901234567890").unwrap();
        let module = Entry { mode: "160000", id };
        let tree = remote.tree(&[
            (b"a.md", remote.blob(b"# A\n")),
            (b"deep", remote.tree(&[(b"out.md", remote.link("../../../etc/passwd"))])),
            (b"help.md", remote.link("/etc/passwd")),
            (b"logo.png", remote.link("/etc/passwd")),
            (b"module", module),
            (b"module.md", module),
            (b"self.md", remote.link("a.md")),
            (b"up", remote.link("../..")),
        ]);
        remote.commit_tree("main", tree);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        let wanted = [
            ("deep/out.md", "symlink"),
            ("help.md", "symlink"),
            ("self.md", "symlink"),
            ("up", "symlink"),
            ("module", "submodule"),
            ("module.md", "submodule"),
        ];
        assert_eq!(run.problems(), pairs(&wanted), "{run}");
        assert_eq!((run.count("documents"), run.count("indexed")), (7, 1));
        assert_eq!(world.documents(), ["a.md"]);
    }

    #[test]
    fn names_that_are_no_text_are_escaped_and_their_neighbours_read() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let blob = |text: &str| remote.blob(text.as_bytes());
        let tree = remote.tree(&[
            (b"a.md", blob("# A\n")),
            (b"b\xC0.md", blob("# B\n")),
            (b"c\xC0", remote.tree(&[(b"nested.md", blob("# Nested\n"))])),
            (b"cc.md", blob("# CC\n")),
            (b"d.md", blob("# D\n")),
        ]);
        remote.commit_tree("main", tree);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!((run.count("documents"), run.count("indexed")), (5, 5), "{run}");
        let wanted = ["a.md", "b\\xC0.md", "c\\xC0/nested.md", "cc.md", "d.md"];
        assert_eq!(world.documents(), wanted);
        let generation = world.generation();
        let raw = |path: &str| generation.document(path).unwrap().raw_path.clone();
        assert_eq!(raw("b\\xC0.md").as_deref(), Some("b%C0.md"));
        assert_eq!(raw("c\\xC0/nested.md").as_deref(), Some("c%C0/nested.md"));
        assert_eq!(raw("d.md"), None);
    }

    #[test]
    fn content_that_is_no_text_is_skipped_by_name_and_text_of_other_encodings_read() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let wide = |text: &str, mark: u16, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            [mark].into_iter().chain(text.encode_utf16()).flat_map(bytes).collect()
        };
        let mut large = noise(8 * 1024 * 1024, 3).into_bytes();
        large.truncate(8 * 1024 * 1024);
        large.push(b'x');
        let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
        let tree = remote.tree(&[
            (b"be.md", remote.blob(&wide("# Größe\n", 0xfeff, u16::to_be_bytes))),
            (b"bom.md", remote.blob(b"\xef\xbb\xbf# Bom\r\n\r\ntext\r\n")),
            (b"empty.md", remote.blob(b"")),
            (b"ibm.md", remote.blob(b"# \x83\x65\x83\x58\x83\x67\n")),
            (b"large.md", remote.blob(&large)),
            (b"latin.md", remote.blob(b"# Pr\xfcfung\n\nBen\xf6tigte Rechte pr\xfcfen.\n")),
            (b"le.md", remote.blob(&wide("# Länge\n", 0xfeff, u16::to_le_bytes))),
            (b"lfs.md", remote.blob(lfs)),
            (b"nul.md", remote.blob(b"# A\n\0\n")),
        ]);
        remote.commit_tree("main", tree);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        let wanted = [
            ("ibm.md", "unknown_encoding"),
            ("large.md", "too_large"),
            ("lfs.md", "lfs_pointer"),
            ("nul.md", "binary"),
        ];
        assert_eq!(run.problems(), pairs(&wanted), "{run}");
        assert_eq!((run.count("documents"), run.count("indexed")), (9, 5));
        let generation = world.generation();
        let title = |path: &str| generation.document(path).unwrap().title.clone();
        assert_eq!(title("latin.md"), "Prüfung");
        assert_eq!((title("be.md"), title("le.md")), ("Größe".into(), "Länge".into()));
        assert_eq!(title("bom.md"), "Bom");
        let latin = fs::read(generation.dir.join("docs/latin.md")).unwrap();
        assert!(latin.starts_with(b"# Pr\xfcfung"), "the stored copy keeps its bytes");
    }

    #[test]
    fn paths_that_lead_out_are_skipped_by_name() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let blob = remote.blob(b"# Evil\n");
        let below = |name: &[u8]| remote.tree(&[(name, blob)]);
        let tree = remote.tree(&[
            (b".", below(b"dot.md")),
            (b"..", below(b"evil.md")),
            (b"../../../tmp/flat.md", blob),
            (b".GIT", below(b"config.md")),
            (b".git", below(b"hooks.md")),
            (b"/etc/absolute.md", blob),
            (b"a.md", blob),
            (b"esc\x1b[31m.md", blob),
            (b"new\nline.md", blob),
            (b"ok", remote.tree(&[(b"..", below(b"deep.md")), (b"fine.md", blob)])),
            (b"tab\there.md", blob),
        ]);
        remote.commit_tree("main", tree);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(world.documents(), ["a.md", "ok/fine.md"]);
        assert_eq!(run.skipped().get("invalid_path"), Some(&10), "{run}");
        assert_eq!((run.count("documents"), run.count("indexed")), (12, 2));
        assert!(run.problems().iter().all(|(p, _)| !p.chars().any(char::is_control)), "{run}");
        assert_eq!(names(&world.path("")), ["data", "home", "remote.git", "tmp"]);
        // The same from a run for a person: nothing of it may reach the terminal.
        let mut command = world.program();
        command.args(["--embedder", "none", "--source", &remote.url(), "--data"]).arg(world.data());
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn two_documents_of_one_path_and_a_document_above_another_collide_by_name() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let blob = |text: &str| remote.blob(text.as_bytes());
        let tree = remote.tree(&[
            (b"README.md", blob("# Upper\n")),
            (b"a.md", blob("# First\n")),
            (b"a.md", blob("# Second\n")),
            (b"b\\xC0.md", blob("# Escaped\n")),
            (b"b\xC0.md", blob("# Raw\n")),
            (b"c.md", blob("# File\n")),
            (b"c.md", remote.tree(&[(b"d.md", blob("# Below\n"))])),
            (b"readme.md", blob("# Lower\n")),
        ]);
        remote.commit_tree("main", tree);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.skipped().get("duplicate_path"), Some(&3), "{run}");
        assert_eq!(world.documents(), ["README.md", "a.md", "b\\xC0.md", "c.md", "readme.md"]);
        assert_eq!(world.stored("readme.md"), "# Lower\n");
        assert_eq!(world.stored("README.md"), "# Upper\n");
    }

    #[test]
    fn modes_that_git_no_longer_writes_are_files() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let blob = remote.blob(b"# A\n");
        let tree = remote.tree(&[
            (b"group.md", Entry { mode: "100664", ..blob }),
            (b"private.md", Entry { mode: "100600", ..blob }),
            (b"run.md", Entry { mode: "100755", ..blob }),
        ]);
        remote.commit_tree("main", tree);
        world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(world.documents(), ["group.md", "private.md", "run.md"]);
    }

    #[test]
    fn a_path_longer_than_the_file_system_takes_is_skipped() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let mut tree = remote.tree(&[(b"deep.md", remote.blob(b"# Deep\n"))]);
        for _ in 0..20 {
            tree = remote.tree(&["d".repeat(203).as_bytes()].map(|name| (name, tree)));
        }
        let long = "n".repeat(300) + ".md";
        let tree = remote.tree(&[
            (b"a.md", remote.blob(b"# A\n")),
            (b"deep", tree),
            (long.as_bytes(), remote.blob(b"# Long\n")),
        ]);
        remote.commit_tree("main", tree);
        let run = world.ingest(&remote.url(), &[]).expect(0, "published");
        assert_eq!(run.skipped().get("invalid_path"), Some(&2), "{run}");
        assert_eq!(world.documents(), ["a.md"]);
    }

    #[test]
    fn a_tree_that_multiplies_itself_is_refused() {
        let (world, remote) = ingested("main");
        let mut tree = remote.tree(&[(b"a.md", remote.blob(b"# A\n"))]);
        for _ in 0..9 {
            let names: Vec<Vec<u8>> = (b'0'..=b'9').map(|n| vec![n]).collect();
            let entries: Vec<_> = names.iter().map(|n| (n.as_slice(), tree)).collect();
            tree = remote.tree(&entries);
        }
        remote.commit_tree("main", tree);
        keeps_generation(&world, &remote.url(), &[], &["entries"]);
    }

    #[test]
    fn an_entry_without_its_object_fails_alone() {
        let world = Arc::new(World::new());
        let remote = world.remote("runbooks", "main");
        let id = Oid::from_str("1234567890123456789012345678901234567890").unwrap();
        let tree = remote.tree(&[
            (b"a.md", remote.blob(b"# A\n")),
            (b"b.md", Entry { mode: "100644", id }),
            (b"c.md", remote.tree(&[])),
            (b"d.md", Entry { mode: "100644", ..remote.tree(&[]) }),
        ]);
        remote.commit_tree("main", tree);
        let run = world.ingest(remote.dir.to_str().unwrap(), &[]).expect(3, "published");
        assert_eq!(run.problems(), pairs(&[("b.md", "failed"), ("d.md", "failed")]), "{run}");
        assert_eq!((run.count("failed"), run.count("indexed")), (2, 1));
        world.ingest(remote.dir.to_str().unwrap(), &[]).expect(0, "up_to_date");
    }

    #[test]
    fn a_tree_that_is_none_keeps_the_generation() {
        let (world, remote) = ingested("main");
        let bad = Entry { mode: "40000", ..remote.blob(b"no tree") };
        remote.commit_tree("main", bad);
        keeps_generation(&world, &remote.url(), &[], &["cannot fetch from"]);
        let source = remote.dir.to_str().unwrap();
        let run = world.ingest(source, &["--change-source"]).expect(1, "failed");
        run.says(&["cannot read the repository", "hint: "]);
    }

    #[test]
    fn a_subdirectory_and_globs_choose() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let files = [
            ("README.md", "# R\n"),
            ("docs/a.md", "# A\n"),
            ("docs/old/b.md", "# B\n"),
            ("docs/c.txt", "# C\n"),
            ("docs2/d.md", "# D\n"),
            ("docs/e.md.erb", "# E\n"),
        ];
        remote.commit("main", &files);
        let args = ["--subdir", "docs/", "--exclude", "docs/old/**"];
        world.ingest(&remote.url(), &args).expect(0, "published");
        assert_eq!(world.documents(), ["docs/a.md", "docs/e.md.erb"]);
        // What no path of a document can be is reported within the subdirectory, and not outside.
        let odd = ["docs/bell\u{7}.md", "docs/tab\t/x.md", "other\u{7}.md"].map(|p| (p, "# X\n"));
        remote.commit("main", &[&files[..], &odd[..]].concat());
        let run = world.ingest(&remote.url(), &args).expect(0, "published");
        let problems = run.problems();
        assert!(problems.iter().all(|(_, reason)| reason == "invalid_path"), "{run}");
        assert_eq!(problems.len(), 2, "{run}");
        let args = ["--include", "*.txt", "--include", "README.md"];
        let run = world.ingest(&remote.url(), &args).expect(0, "published");
        assert_eq!(run.state(), "OptionMismatch");
        assert_eq!(world.documents(), ["README.md", "docs/c.txt"]);
    }
}

mod directory {
    use super::*;

    fn git(world: &World, args: &[&str]) {
        let identity = ["-c", "user.name=w", "-c", "user.email=w@example.org"];
        let output = world.hermetic("git").args(identity).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_work_tree_is_read_at_its_head_and_not_as_it_lies() {
        let world = World::new();
        let tree = world.path("tree");
        write(&tree.join("a.md"), "# Committed\n");
        git(&world, &["init", "-q", "-b", "main", "tree"]);
        git(&world, &["-C", "tree", "add", "."]);
        git(&world, &["-C", "tree", "commit", "-qm", "one"]);
        write(&tree.join("a.md"), "# Edited\n");
        write(&tree.join("b.md"), "# Untracked\n");
        let run = world.ingest("tree", &[]).expect(0, "published");
        assert!(run.commit().is_some());
        assert_eq!(world.documents(), ["a.md"]);
        assert_eq!(world.stored("a.md"), "# Committed\n");
        world.ingest(tree.to_str().unwrap(), &[]).expect(0, "up_to_date");
        // A second work tree of it, where `.git` is a file, is a repository as well.
        git(&world, &["-C", "tree", "worktree", "add", "-q", "--detach", "../second"]);
        assert!(world.path("second/.git").is_file());
        let run = world.ingest("second", &["--change-source"]).expect(0, "published");
        assert!(run.commit().is_some());
        let says = ["has no branch `gone`", "refs/heads/gone", "it has: main"];
        world
            .ingest("tree", &["--change-source", "--branch", "gone"])
            .expect(1, "failed")
            .says(&says);
    }

    #[test]
    fn a_shallow_clone_is_read() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        for n in 0..3 {
            remote.commit("main", &[("guide.md", &format!("# {n}\n"))]);
        }
        git(&world, &["clone", "-q", "--depth", "1", &remote.url(), "shallow"]);
        assert!(world.path("shallow/.git/shallow").is_file());
        let run = world.ingest("shallow", &[]).expect(0, "published");
        let tip = remote.repository.refname_to_id("refs/heads/main").unwrap();
        assert_eq!(run.commit(), Some(tip.to_string()));
        assert_eq!(world.stored("guide.md"), "# 2\n");
    }

    #[test]
    fn a_head_that_names_no_branch_yet_is_empty_only_when_there_is_none() {
        let world = World::new();
        let remote = world.remote("runbooks", "main");
        let source = remote.dir.to_str().unwrap();
        let run = world.ingest(source, &[]).expect(0, "published");
        assert!(run.report()["notes"].to_string().contains("no commit"), "{run}");
        let commit = remote.commit("trunk", GUIDE);
        let run = world.ingest(source, &[]).expect(0, "published");
        assert_eq!(run.commit(), Some(commit));
        remote.commit("dev", GUIDE);
        keeps_all(&world, source, &[], &["HEAD", "dev, trunk", "--branch"]);
    }

    #[test]
    fn a_directory_within_a_repository_is_read_as_plain_files() {
        let world = World::new();
        let tree = world.path("tree");
        write(&tree.join("docs/a.md"), "# A\n");
        write(&tree.join("b.md"), "# B\n");
        git(&world, &["init", "-q", "-b", "main", "tree"]);
        git(&world, &["-C", "tree", "add", "."]);
        git(&world, &["-C", "tree", "commit", "-qm", "one"]);
        write(&tree.join("docs/a.md"), "# Edited\n");
        let run = world.ingest("tree/docs", &[]).expect(0, "published");
        assert_eq!(run.commit(), None);
        let manifest = world.generation().manifest;
        assert!(manifest.tree_hash.is_some() && manifest.forge.is_none());
        assert_eq!(
            (world.documents(), world.stored("a.md")),
            (vec!["a.md".into()], "# Edited\n".into())
        );
        world.ingest("tree/docs", &[]).expect(0, "up_to_date");
        write(&tree.join("docs/a.md"), "# Again!\n");
        let run = world.ingest("tree/docs", &[]).expect(0, "published");
        assert_eq!(run.state(), "ContentMismatch");
    }

    #[test]
    fn links_pipes_and_git_directories_of_a_plain_directory_are_left_alone() {
        let world = World::new();
        let dir = world.path("plain");
        write(&dir.join("a.md"), "# A\n");
        write(&dir.join("module/.git/description.md"), "# No\n");
        write(&dir.join("module/b.md"), "# B\n");
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, dir.join(name)).unwrap();
        };
        link("/etc/passwd", "help.md");
        link("nowhere", "dangling.md");
        link("..", "up");
        link(".", "loop");
        let pipe = Command::new("mkfifo").arg(dir.join("pipe.md")).status().unwrap();
        assert!(pipe.success());
        let run = world.ingest("plain", &[]).expect(0, "published");
        let wanted = [
            ("dangling.md", "symlink"),
            ("help.md", "symlink"),
            ("loop", "symlink"),
            ("pipe.md", "not_a_file"),
            ("up", "symlink"),
        ];
        assert_eq!(run.problems(), pairs(&wanted), "{run}");
        assert_eq!(world.documents(), ["a.md", "module/b.md"]);
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn names_that_are_no_text_are_read_from_a_directory_as_well() {
        use std::os::unix::ffi::OsStrExt;
        let world = World::new();
        let dir = world.path("plain");
        for name in [&b"a.md"[..], b"b\xC0.md", b"c\xC0/nested.md", b"cc.md", b"d.md"] {
            write(&dir.join(std::ffi::OsStr::from_bytes(name)), "# X\n");
        }
        write(&dir.join("new\nline.md"), "# X\n");
        let run = world.ingest("plain", &[]).expect(0, "published");
        assert_eq!((run.count("indexed"), run.count("documents")), (5, 6), "{run}");
        assert_eq!(run.skipped().get("invalid_path"), Some(&1));
        let wanted = ["a.md", "b\\xC0.md", "c\\xC0/nested.md", "cc.md", "d.md"];
        assert_eq!(world.documents(), wanted);
    }

    #[test]
    fn files_and_directories_that_cannot_be_read_fail_alone() {
        let world = World::new();
        let dir = world.path("plain");
        write(&dir.join("a.md"), "# A\n");
        write(&dir.join("closed.md"), "# Closed\n");
        write(&dir.join("vault/b.md"), "# B\n");
        for name in ["closed.md", "vault"] {
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        // Root reads everything, so the program runs as nobody.
        let command = |world: &World| {
            let mut command = world.command("plain", &[]);
            if is_root() {
                let program = command.get_program().to_owned();
                let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
                command = world.hermetic("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
                command.arg(program).args(args);
            }
            command
        };
        if is_root() {
            let status =
                Command::new("chown").args(["-R", "65534:65534"]).arg(world.path("")).status();
            assert!(status.unwrap().success());
        }
        let run = world.finish(command(&world).output().unwrap()).expect(3, "published");
        assert_eq!(run.problems(), pairs(&[("closed.md", "failed"), ("vault", "failed")]), "{run}");
        assert_eq!((run.count("documents"), run.count("indexed"), run.count("failed")), (3, 1, 2));
        let run = world.finish(command(&world).output().unwrap()).expect(0, "up_to_date");
        assert_eq!(run.count("failed"), 2);
        for name in ["closed.md", "vault"] {
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let run = world.finish(command(&world).output().unwrap()).expect(0, "published");
        assert_eq!(run.state(), "ContentMismatch");
        assert_eq!(world.documents(), ["a.md", "closed.md", "vault/b.md"]);
    }

    #[test]
    fn a_source_that_vanished_is_told_to_the_readers_of_last_run() {
        let world = World::new();
        write(&world.path("plain/guide.md"), "# G\n");
        let first = world.ingest("plain", &[]).expect(0, "published");
        world.age_last_run();
        fs::rename(world.path("plain"), world.path("unmounted")).unwrap();
        let run = world.ingest("plain", &[]);
        assert_eq!(run.code, 2, "{run}");
        let last = world.last_run();
        assert_eq!(last["outcome"], "failed", "{last}");
        assert_eq!(last["source_checked_at"], crate::support::LONG_AGO);
        assert_eq!(last["generation"].as_str().map(str::to_owned), first.generation());
    }
}

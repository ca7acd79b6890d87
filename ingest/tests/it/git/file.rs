//! Remotes over `file:`: branches, histories, the mirror.

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

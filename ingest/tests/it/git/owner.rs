//! Repositories of another user.

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

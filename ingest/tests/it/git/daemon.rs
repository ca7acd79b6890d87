//! Remotes over the git protocol: fetches that are cut, servers that say odd things.

use super::*;

fn url(server: &Server) -> String {
    format!("git://{}/remote.git", server.address)
}

/// A remote of some megabytes, so that a fetch can be cut in its middle.
fn large(world: &World) -> Remote {
    let remote = world.remote("remote.git", "main");
    let text = noise(400_000, 7);
    let files: Vec<(String, &str)> = (0..5).map(|n| (format!("{n}.md"), text.as_str())).collect();
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
        let refs: Vec<_> = advertised.iter().map(|n| (id.to_owned(), (*n).to_owned())).collect();
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

//! Remotes over ssh: host keys and deploy keys.

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

/// `doctor` says beforehand what a run would stumble over.
#[test]
fn doctor_tells_host_keys_and_deploy_keys_apart() {
    use std::os::unix::fs::PermissionsExt;
    let Some(sshd) = Sshd::start(&["ed25519"]) else { return };
    sshd.know(&[]);
    let doctor = |key: &str| -> serde_json::Value {
        let mut command = sshd.world.program();
        command.args(["doctor", "--json", "--embedder", "none", "--data", "data"]);
        command.args(["--known-hosts", "known", "--source", &sshd.url(), "--ssh-key", key]);
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let says = |found: &serde_json::Value, check: &str, grade: &str, parts: &[&str]| {
        let checks = found["checks"].as_array().unwrap();
        let one = checks.iter().find(|c| c["check"] == check);
        let one = one.unwrap_or_else(|| panic!("no {check}: {found:#}"));
        assert_eq!(one["grade"], grade, "{one:#}");
        let text = format!("{} {}", one["message"], one["fix"]);
        assert!(parts.iter().all(|p| text.contains(p)), "{parts:?}: {one:#}");
    };
    let unknown = doctor("deploy");
    says(&unknown, "ssh host key", "fail", &["`known`", "ssh-keyscan -p", "--known-hosts"]);
    says(&unknown, "source", "fail", &["is in none of"]);
    sshd.know(&[sshd.line("host_ed25519")]);
    let found = doctor("deploy");
    says(&found, "deploy key", "ok", &["mode 600"]);
    says(&found, "ssh host key", "ok", &["kind ssh-ed25519"]);
    says(&found, "source", "ok", &["branch main"]);
    says(&doctor("stranger"), "source", "fail", &["refused the key", "deploy keys"]);
    sshd.know(&[sshd.line("stranger")]);
    says(&doctor("deploy"), "source", "fail", &["is not the one in `known`", "ssh-keygen -R"]);
    let mode = |bits| {
        fs::set_permissions(sshd.world.path("deploy"), fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(0o644);
    says(&doctor("deploy"), "deploy key", "fail", &["mode 644", "chmod 600 deploy"]);
    mode(0o640);
    says(&doctor("deploy"), "deploy key", "warn", &["its group may read it", "chmod 600 deploy"]);
    says(&doctor("deploy.pub"), "deploy key", "fail", &["public half", "without `.pub`"]);
    says(&doctor("gone"), "deploy key", "fail", &["cannot read `gone`", "LoadCredential"]);
    fs::write(sshd.world.path("text"), "hello\n").unwrap();
    says(&doctor("text"), "deploy key", "fail", &["no private key", "ssh-keygen -t ed25519"]);
    for format in [&["-t", "ed25519"][..], &["-t", "rsa", "-m", "PEM"]] {
        let _ = fs::remove_file(sshd.world.path("locked"));
        let mut command = sshd.world.hermetic("ssh-keygen");
        command.args(["-q", "-N", "secret", "-f", "locked"]).args(format);
        assert!(command.status().unwrap().success());
        says(&doctor("locked"), "deploy key", "fail", &["has a passphrase"]);
    }
}

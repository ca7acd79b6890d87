//! Command lines that prose calls by their name, without marks of code: "run systemctl restart nginx".

use super::claims::Command;
use super::kinds;
use runbook_shared::analyse::is_stop_word;

/// Programs that are called by their name in prose: "run systemctl restart nginx and wait".
const PROGRAMS: [&str; 72] = [
    "ansible",
    "ansible-playbook",
    "apt",
    "apt-get",
    "aws",
    "az",
    "bash",
    "cargo",
    "chef-client",
    "chmod",
    "chown",
    "consul",
    "crictl",
    "curl",
    "dd",
    "df",
    "dig",
    "dnf",
    "docker",
    "du",
    "etcdctl",
    "fsck",
    "gcloud",
    "git",
    "gitlab-ctl",
    "growpart",
    "haproxy",
    "helm",
    "ip",
    "iptables",
    "journalctl",
    "kill",
    "killall",
    "knife",
    "kubeadm",
    "kubectl",
    "lvextend",
    "mkfs",
    "mount",
    "mysql",
    "mysqldump",
    "nc",
    "nft",
    "nginx",
    "npm",
    "openssl",
    "patronictl",
    "pg_ctl",
    "pg_dump",
    "pg_restore",
    "pip",
    "pkill",
    "podman",
    "psql",
    "rabbitmqctl",
    "reboot",
    "redis-cli",
    "resize2fs",
    "rm",
    "rsync",
    "scp",
    "sed",
    "service",
    "ssh",
    "sudo",
    "systemctl",
    "tar",
    "tcpdump",
    "terraform",
    "umount",
    "vault",
    "yum",
];
/// The most words of a spoken command that are not exact by their form.
const SPOKEN_WORDS_MAX: usize = 3;

/// The command lines in the words of a sentence.
pub(super) fn commands(words: &[&str]) -> Vec<Command> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |b| words[b]).to_lowercase();
        let called = matches!(
            before.as_str(),
            "run"
                | "running"
                | "execute"
                | "executing"
                | "type"
                | "issue"
                | "sudo"
                | "with"
                | "using"
                | "via"
        );
        let flagged = words.get(at + 1).is_some_and(|w| kinds::is_flag(w));
        if !PROGRAMS.contains(word) || !(called || flagged) {
            continue;
        }
        let mut spoken = vec![(*word).to_owned()];
        for next in &words[at + 1..] {
            let exact = kinds::of(next).is_some();
            if is_stop_word(&next.to_lowercase()) || (!exact && spoken.len() >= SPOKEN_WORDS_MAX) {
                break;
            }
            spoken.push((*next).to_owned());
        }
        if spoken.len() > 1 {
            found.push(Command { words: spoken });
        }
    }
    found
}

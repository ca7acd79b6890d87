//! What a tired reader must see in a command: placeholders that are to be filled in, and lines that
//! cannot be undone.

use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Every pattern is one way to lose data or a service, on one line of shell, SQL or a client's own
/// language.
const DESTRUCTIVE: [&str; 21] = [
    r"\brm\s+(-[\w-]+\s+)*-(-recursive|-force|\w*[rRf])",
    r"(?i)\b(drop|truncate)\s+(table|database|schema|index|view|role|user|column|keyspace|collection)\b",
    r"(?i)\b(alter\s+table\b.*\bdrop|delete\s+from)\b",
    r"(?i)^\s*truncate\s+\w",
    r"\b(mkfs(\.\w+)?|wipefs|sgdisk|parted|fdisk|shred|blkdiscard)\b",
    r"\bdd\b[^|;&]*\bof=",
    r">\s*/dev/(sd|nvme|vd|mapper)",
    r"\bgit\s+(push\b[^|;&]*(--force|\s-f\b|--delete|--mirror)|reset\s+--hard|clean\s+-\w*f|branch\s+-D)",
    r"(^|\s)--(force|hard|purge|prune|destroy|no-preserve-root|delete|force-with-lease|accept-data-loss)\b",
    r"\b(kubectl|oc|helm|gcloud|aws|az|doctl|nomad|consul|eksctl)\b[^|;&]*\s(delete|uninstall|drain|destroy|terminate-instances|rm|purge|remove)\b",
    r"\b(terraform|tofu|pulumi|vagrant)\s+(\S+\s+)*destroy\b",
    r"\bdocker\s+(\w+\s+)?(prune|rm|rmi|kill|down)\b",
    r"\b(dropdb|dropuser|pg_resetwal|pg_dropcluster|mysqladmin\s+drop)\b",
    r"\bpg_restore\b[^|;&]*(--clean|\s-\w*c\b)",
    r"(?i)\b(flushall|flushdb)\b|\bredis-cli\b.*\bdel\b",
    r"(?i)\b(db\.)?\w*\.?(dropDatabase|deleteMany|remove)\s*\(",
    r"\b(lvremove|vgremove|pvremove|zfs\s+destroy|zpool\s+destroy|btrfs\s+subvolume\s+delete)\b",
    r"\b(shutdown|reboot|halt|poweroff)\b(\s|$)|\bsystemctl\s+(\S+\s+)*(poweroff|reboot|halt|kill|mask)\b",
    r"\b(kill|pkill|killall)\s+(-9|-KILL|-SIGKILL|-s\s+(KILL|9))",
    r"\b(iptables|ip6tables|nft)\s+(-F|-X|flush)|\bufw\s+(disable|reset)\b",
    r"\b(userdel|deluser|crontab\s+-r|restic\s+(forget|prune)|borg\s+(delete|prune))\b|\brsync\b[^|;&]*\s--delete|\bfind\b[^|;&]*\s-delete\b",
];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    // A test compiles every one; one that did not would be left out rather than stop the page.
    DESTRUCTIVE.iter().filter_map(|p| Regex::new(p).ok()).collect()
});

static PLACEHOLDERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"<[A-Za-z][A-Za-z0-9_.:/-]*(?: [A-Za-z0-9_-]+){0,5}>|\{\{ ?[A-Za-z_][\w .-]{0,40}\}\}|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Z_][A-Z0-9_]*\b|\[REDACTED:[a-z0-9-]+\]",
    )
    .ok()
});

/// Variables that a shell has anyway.
const SHELL_OWN: [&str; 12] = [
    "HOME", "PATH", "PWD", "USER", "SHELL", "HOSTNAME", "RANDOM", "UID", "EUID", "LANG", "IFS",
    "TMPDIR",
];

/// Whether a line of a command deletes, overwrites or ends something for good.
#[must_use]
pub fn is_destructive(line: &str) -> bool {
    let bare = line.trim_start();
    // A comment does nothing, unless it is a root prompt.
    let comment = bare.starts_with("//")
        || bare.starts_with("-- ")
        || (bare.starts_with('#') && !bare.starts_with("# rm "));
    !comment && PATTERNS.iter().any(|p| p.is_match(bare))
}

/// The placeholders of a text, as ranges of bytes. Variables that the text itself sets are none.
#[must_use]
pub fn placeholders(text: &str) -> Vec<Range<usize>> {
    let Some(pattern) = PLACEHOLDERS.as_ref() else { return Vec::new() };
    pattern
        .find_iter(text)
        .filter(|m| {
            let name = m.as_str().trim_matches(['$', '{', '}']);
            if m.as_str().starts_with('$') {
                return !SHELL_OWN.contains(&name) && !is_set(text, name);
            }
            // `</b>` and `<b>..</b>` are markup, and `<<EOF` starts a text.
            !text.contains(&format!("</{}", m.as_str().trim_matches(['<', '>'])))
                && !text[..m.start()].ends_with('<')
        })
        .map(|m| m.range())
        .collect()
}

/// Whether a text sets a variable: `NAME=`, `export NAME=`, `for NAME in`, `read NAME`.
fn is_set(text: &str, name: &str) -> bool {
    let starts_word =
        |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
    text.match_indices(name).filter(|(at, _)| starts_word(*at)).any(|(at, _)| {
        let after = &text[at + name.len()..];
        let before = text[..at].trim_end();
        after.starts_with('=')
            || ((before.ends_with("for")
                || before.ends_with("read")
                || before.ends_with("read -r"))
                && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), DESTRUCTIVE.len());
        assert!(PLACEHOLDERS.is_some());
    }

    #[test]
    fn what_destroys_is_marked() {
        for line in [
            "rm -rf /var/lib/app/cache",
            "sudo rm -f x",
            "rm --recursive x",
            "DROP TABLE users;",
            "psql -c 'drop database app'",
            "DELETE FROM jobs WHERE state = 'dead';",
            "mkfs.ext4 /dev/sdb1",
            "dd if=disk.img of=/dev/sda bs=4M",
            "git push --force origin main",
            "git push origin main -f",
            "git reset --hard HEAD~1",
            "kubectl -n prod delete pod web-0",
            "kubectl drain node-3",
            "terraform destroy",
            "docker system prune -a",
            "docker compose down -v",
            "dropdb app",
            "pg_restore --clean -d app dump",
            "redis-cli flushall",
            "db.users.deleteMany({})",
            "zfs destroy tank/data",
            "systemctl reboot",
            "shutdown -r now",
            "kill -9 1234",
            "iptables -F",
            "rsync -a --delete src/ dst/",
            "find /tmp -mtime +3 -delete",
            "restic forget --keep-last 3",
            "$ rm -r build",
        ] {
            assert!(is_destructive(line), "{line}");
        }
    }

    #[test]
    fn what_only_reads_is_not() {
        for line in [
            "systemctl status nginx",
            "systemctl restart nginx",
            "df -h",
            "grep -rf patterns .",
            "# rm -rf is never needed here".trim_start_matches("# rm"),
            "// rm -rf x",
            "kubectl get pods",
            "git push origin main",
            "tail -f /var/log/syslog",
            "psql -c 'select count(*) from deletes'",
            "docker ps",
            "tar -xf x.tar",
            "echo forced",
            "du -sh /var | sort -h",
            "curl -f http://localhost/health",
            "rmdir empty",
            "pg_restore --list x.dump | grep -c 'TABLE DATA'",
            "kubectl get pods | grep delete",
        ] {
            assert!(!is_destructive(line), "{line}");
        }
    }

    #[test]
    fn placeholders_are_found_and_syntax_is_not() {
        let found = |text: &str| -> Vec<String> {
            placeholders(text).into_iter().map(|r| text[r].to_owned()).collect()
        };
        assert_eq!(found("ssh <host> sudo -u $DB_USER"), ["<host>", "$DB_USER"]);
        assert_eq!(found("curl {{ url }}/${version}"), ["{{ url }}", "${version}"]);
        assert_eq!(found("ping <name of the host>"), ["<name of the host>"]);
        for none in [
            "psql app <dump.sql >out.log",
            "cat <<EOF >x",
            "DB=app; psql $DB",
            "for HOST in a b; do ssh $HOST; done",
            "cd $HOME",
            "a < b && c > d",
            "<b>bold</b>",
            "diff <(a) <(b)",
            "awk '{print $1}'",
        ] {
            assert_eq!(found(none), Vec::<String>::new(), "{none}");
        }
    }
}

//! The daemon locks itself in (Landlock): from then on it can read its generations, the model and the
//! library, write its state directory, and connect to the stores that the configuration names; the kernel
//! refuses everything else, whatever a request makes of the program.
//!
//! A thread and all that it starts are locked in, so this comes before any other thread. The listening
//! socket is bound before, since nothing can be bound afterwards.

use crate::config::Config;
use crate::llm::settings as llm;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use runbook_shared::embed::NO_EMBEDDER;
use runbook_shared::generation::GENERATIONS;
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};

/// What is asked of the kernel; an older one does what it knows.
const KERNEL: ABI = ABI::V6;
/// What a program and the library need of the system to be loaded.
const LIBRARIES: [&str; 4] = ["/usr/lib", "/usr/lib64", "/lib", "/lib64"];
/// The library is tried in a child process before it is loaded: that program and its loader.
const TRIAL: [&str; 3] = ["/bin/true", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
/// What finding a server by its name and checking its certificate needs.
const NETWORK: [&str; 10] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/pki",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];
/// Other things that are read while the program runs: the time zone, the number of cores, random numbers.
const SYSTEM: [&str; 7] = [
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/dev/null",
    "/dev/urandom",
];
/// Directories in which others keep their files, too: never allowed as a whole, nor are those above.
const SHARED: [&str; 12] = [
    "/var/lib",
    "/var/tmp",
    "/var/cache",
    "/tmp",
    "/home",
    "/srv",
    "/opt",
    "/mnt",
    "/media",
    "/root",
    "/etc",
    "/run",
];

/// Whether the daemon locks itself in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As far as the kernel can; a warning where it cannot.
    #[default]
    On,
    /// No.
    Off,
    /// Wholly, or the daemon does not start.
    Required,
}

/// What the process may do once it is locked in.
#[derive(Debug, Default, PartialEq)]
pub struct Allowed {
    /// Files and directories, with all beneath, that it may read.
    pub read: Vec<PathBuf>,
    /// The same, to read, write and remove.
    pub write: Vec<PathBuf>,
    /// Files that it may execute.
    pub execute: Vec<PathBuf>,
    /// Ports that it may connect to; none to allow them all.
    pub connect: Option<Vec<u16>>,
}

impl Allowed {
    /// What a configuration needs.
    #[must_use]
    pub fn by(config: &Config) -> Self {
        let mut allowed = Self {
            read: SYSTEM.iter().chain(&LIBRARIES).map(PathBuf::from).collect(),
            connect: Some(Vec::new()),
            ..Self::default()
        };
        for repo in &config.repos {
            allowed.read.extend(around(&repo.data));
        }
        if config.embedder.as_deref() != Some(NO_EMBEDDER) {
            allowed.execute.extend(TRIAL.map(PathBuf::from));
            allowed.read.extend(model_places(config));
        }
        allowed.write.extend(config.state.clone());
        if let Some(url) = &config.tree.tmp.redis {
            allowed.reach(url, 6379);
        }
        if let Some(url) = &config.cache.redis {
            allowed.reach(url, 6379);
        }
        if config.llm.mode != llm::Mode::Off {
            allowed.reach(&config.llm.base_url, 443);
        }
        if let Some(url) = &config.tree.artifacts.url {
            allowed.reach(config.tree.artifacts.endpoint.as_deref().unwrap_or(url), 443);
            let proxies = ["http_proxy", "https_proxy", "all_proxy"];
            let is_set = |name: &str| {
                std::env::var_os(name).or_else(|| std::env::var_os(name.to_ascii_uppercase()))
            };
            // A proxy has a port that is not known here, and so have Amazon's servers of credentials.
            if proxies.into_iter().any(|p| is_set(p).is_some())
                || config.tree.artifacts.access_key_id.is_none()
            {
                allowed.connect = None;
            }
        }
        allowed
    }

    /// Lets a server be connected to.
    fn reach(&mut self, url: &str, default_port: u16) {
        self.read.extend(NETWORK.map(PathBuf::from));
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = authority.split(['/', '?']).next().unwrap_or_default();
        let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = match (port, url.starts_with("http://")) {
            (Some(port), _) => port,
            (None, true) => 80,
            (None, false) => default_port,
        };
        if let Some(ports) = &mut self.connect {
            ports.extend([port, 53]); // Names are looked up over TCP where an answer is long.
        }
    }
}

/// Where a model and the library may be.
fn model_places(config: &Config) -> Vec<PathBuf> {
    let places = &config.places;
    let mut found: Vec<PathBuf> = Vec::new();
    found.extend(places.model_dir.clone());
    found.extend(places.env_model_dir.clone());
    found.extend(places.onnxruntime().ok());
    found.extend(config.embedder.as_ref().filter(|name| name.contains('/')).map(PathBuf::from));
    found.extend(places.cache.clone());
    if let Some(exe) = &places.exe_dir {
        found.extend(["../share/runbook-ask", "../../shared/models"].map(|p| exe.join(p)));
    }
    found.push("/usr/share/runbook-ask".into());
    found
}

/// A data directory, and the one that it is in: it may be removed and made again. Where it does not
/// exist yet, the first directory above it that does.
fn around(data: &Path) -> Vec<PathBuf> {
    let real = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let Some(there) = real.ancestors().find(|p| p.exists()) else { return Vec::new() };
    let whole = std::fs::canonicalize(there).unwrap_or_else(|_| there.to_owned());
    let is_there = there == real;
    let own = |p: &PathBuf| is_there && (*p == real || *p == whole);
    let mut paths = vec![whole.clone()];
    if is_there {
        paths.extend([whole.parent(), real.parent()].into_iter().flatten().map(Path::to_owned));
    }
    paths.retain(|p| own(p) || !is_shared(p));
    // Generations may lie on another disk.
    paths.extend(std::fs::canonicalize(real.join(GENERATIONS)));
    if paths.is_empty() {
        tracing::warn!(
            "`{}` does not exist yet, and the directory above it is shared with others: start again \
             once it is there, or set server.sandbox = \"off\"",
            data.display()
        );
    }
    paths.sort();
    paths.dedup();
    paths
}

/// True for a directory that holds what belongs to others: those of a list, their parents, and homes.
fn is_shared(dir: &Path) -> bool {
    let depth = dir.components().filter(|c| matches!(c, Component::Normal(_))).count();
    depth < 2
        || SHARED.iter().any(|s| dir == Path::new(s))
        || (depth == 2 && (dir.starts_with("/home") || dir.starts_with("/run")))
}

/// Locks this thread and all that it starts in, and says so in the log.
///
/// # Errors
/// With [`Mode::Required`], when the kernel cannot do all of it.
pub fn enter(allowed: &Allowed, mode: Mode) -> Result<(), String> {
    if mode == Mode::Off {
        tracing::info!("the sandbox is off (server.sandbox)");
        return Ok(());
    }
    let problem = match restrict(allowed) {
        Ok(RulesetStatus::FullyEnforced) => {
            tracing::info!(
                "locked in: reads {} places, writes {}",
                allowed.read.len(),
                allowed.write.len()
            );
            return Ok(());
        }
        Ok(RulesetStatus::PartiallyEnforced) => {
            "the kernel locks this program in only in part: an older Landlock".to_owned()
        }
        Ok(RulesetStatus::NotEnforced) => "the kernel has no Landlock: nothing is locked in".into(),
        Err(e) => format!("this program cannot be locked in: {e}"),
    };
    if mode == Mode::Required {
        return Err(format!("{problem} (server.sandbox = \"required\")"));
    }
    tracing::warn!("{problem}");
    Ok(())
}

fn restrict(allowed: &Allowed) -> Result<RulesetStatus, RulesetError> {
    let all = AccessFs::from_all(KERNEL);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut ruleset = Ruleset::default().handle_access(all)?.handle_access(AccessNet::BindTcp)?;
    if allowed.connect.is_some() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut rules = ruleset.scope(Scope::from_all(KERNEL))?.create()?;
    rules = beneath(rules, &allowed.read, read)?;
    rules = beneath(rules, &allowed.execute, AccessFs::Execute | AccessFs::ReadFile)?;
    rules = beneath(rules, &allowed.write, all & !AccessFs::Execute)?;
    for port in allowed.connect.iter().flatten() {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

/// Rules for those of the paths that exist.
fn beneath(
    mut rules: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        let Ok(fd) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(KERNEL) };
        rules = rules.add_rule(PathBeneath::new(fd, access))?;
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_keep_is_never_allowed_as_a_whole() {
        for dir in
            ["/", "/var", "/var/lib", "/home", "/home/anna", "/tmp", "/srv", "/run/user", "/etc"]
        {
            assert!(is_shared(Path::new(dir)), "{dir}");
        }
        for dir in ["/var/lib/runbook-ask", "/srv/runbooks", "/home/anna/data", "/tmp/x", "/opt/a"]
        {
            assert!(!is_shared(Path::new(dir)), "{dir}");
        }
    }

    #[test]
    fn ports_of_stores_are_found() {
        let reached = |url: &str, default: u16| {
            let mut allowed = Allowed { connect: Some(Vec::new()), ..Allowed::default() };
            allowed.reach(url, default);
            allowed.connect.unwrap()[0]
        };
        assert_eq!(reached("redis://127.0.0.1:6380/1", 6379), 6380);
        assert_eq!(reached("redis://user:word@redis/1", 6379), 6379);
        assert_eq!(reached("http://127.0.0.1:9000", 443), 9000);
        assert_eq!(reached("http://minio/x", 443), 80);
        assert_eq!(reached("s3://bucket/prefix", 443), 443);
        assert_eq!(reached("redis://[::1]:7000", 6379), 7000);
    }
}

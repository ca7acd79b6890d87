"""A Debian machine with systemd, and a git server with a deploy key; for check.py and walk.py.

The machine is a root made by mmdebstrap, booted by systemd-nspawn: systemd is process 1 in there, units run
in their real sandbox, and the network is that of the host, so that servers and browsers out here meet it.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

SUITE = "bookworm"
# systemd and dbus are what makes a Debian of the bare root; the rest comes with the package.
INCLUDE = "systemd,systemd-sysv,dbus"


def run(*command, check=True, **options):
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, **options}
    if "input" in options:
        options.pop("stdin")
    done = subprocess.run([str(c) for c in command], check=False, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(what, seconds, step=0.2):
    """The first true value of `what()`; None when it never comes."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if found := what():
            return found
        time.sleep(step)
    return None


def base_root(out, also=(), name=SUITE):
    """The clean root, made once and kept; `also` names packages whose files are fetched and not installed."""
    root, stamp = out / name, out / f"{name}.made"
    wanted = f"{SUITE} {INCLUDE} {' '.join(also)}"
    if stamp.exists() and stamp.read_text() == wanted:
        return root
    shutil.rmtree(root, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    fetch = f'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -qq -y --no-install-recommends --download-only install {" ".join(also)}'
    run("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={INCLUDE}", "--skip=cleanup/apt",
        *(["--customize-hook=" + fetch] if also else []), SUITE, root)
    stamp.write_text(wanted)
    return root


class Machine:
    """A copy of the clean root; `boot` makes it a machine."""

    def __init__(self, base, root, name):
        self.root, self.name, self.process, self.leader = pathlib.Path(root), name, None, None
        run("cp", "-a", "--reflink=auto", base, root)
        # Nothing of this machine's own is to come in between.
        for timer in ("apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "fstrim.timer"):
            link = self.root / "etc/systemd/system" / timer
            link.unlink(missing_ok=True)
            link.symlink_to("/dev/null")

    def boot(self, namespace=None):
        """True when systemd is up; False, with the reason printed, where this host cannot have it.

        `namespace` names one of `ip netns`; without it the network is the host's.
        """
        log = open(self.root.with_suffix(".boot.log"), "wb")
        self.process = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--directory", str(self.root), f"--machine={self.name}", "--register=no", "--keep-unit",
             "--console=pipe", *([f"--network-namespace-path=/run/netns/{namespace}"] if namespace else []), "--boot"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_until(self._find_leader, 10)
        state = wait_until(lambda: self.leader and self._state(), 60)
        if state:
            return True
        print("   systemd does not boot here:", self.root.with_suffix(".boot.log").read_text(errors="replace")[-500:])
        self.stop()
        return False

    def _find_leader(self):
        if self.process.poll() is not None:
            return True
        found = run("pgrep", "-P", self.process.pid, check=False).stdout.split()
        # nspawn has a child or two of its own; the machine's first process is init.
        for pid in found:
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe").endswith("/systemd"):
                    self.leader = int(pid)
        return self.leader

    def _state(self):
        if self.process.poll() is not None:
            return None
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state if state in ("running", "degraded") else None

    def run(self, *command, env=None, **options):
        """A command in there, as root."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                       "DEBIAN_FRONTEND": "noninteractive", **(env or {})}
        if self.leader:
            enter = ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--pid", "--net", "--cgroup", "--root", "--wd"]
        else:
            enter = ["chroot", str(self.root)]
        return run(*enter, *command, env=environment, **options)

    def put(self, path, text, mode=0o644):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def edit(self, path, *changes):
        file = self.root / path.lstrip("/")
        text = file.read_text()
        for old, new in changes:
            assert old in text, (path, old)
            text = text.replace(old, new)
        file.write_text(text)

    def has(self, path):
        file = self.root / path.lstrip("/")
        return file.exists() or file.is_symlink()

    def show(self, unit, *properties):
        """Properties of a unit, in the order asked for."""
        lines = self.run("systemctl", "show", unit, *(f"--property={p}" for p in properties)).stdout.splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line)
        return [found.get(p, "") for p in properties]

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "-o", "short-iso", "-u", unit, check=False).stdout

    def stop(self):
        """Pulls the plug: nobody needs this machine again."""
        if self.process is None:
            return
        for pid in (self.leader, self.process.pid):
            with contextlib.suppress(OSError):
                if pid and self.process.poll() is None:
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process, self.leader = None, None


class Forge:
    """A bare repository behind a real sshd that lets one deploy key read it."""

    def __init__(self, directory, content, address="127.0.0.1", port=None, prefix=()):
        self.directory, self.address, self.port = pathlib.Path(directory), address, port or free_port()
        self.directory.mkdir(parents=True)
        self.work, self.bare = self.directory / "work", self.directory / "runbooks.git"
        shutil.copytree(content, self.work)
        run("git", "init", "-q", "-b", "main", self.work)
        run("git", "clone", "-q", "--bare", self.work, self.bare)
        self.git("remote", "add", "origin", self.bare)
        self.commit("the runbooks")
        for key in ("host", "deploy"):
            run("ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-C", key, "-f", self.directory / key)
        self.authorize((self.directory / "deploy.pub").read_text())
        (self.directory / "sshd_config").write_text(
            f"StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"PermitRootLogin forced-commands-only\nAuthorizedKeysFile {self.directory}/authorized\nHostKey {self.directory}/host\n"
            f"ListenAddress {address}:{self.port}\nSetEnv PATH={os.environ['PATH']}\n")
        os.makedirs("/run/sshd", exist_ok=True)
        self.log = open(self.directory / "sshd.log", "wb")
        self.process = subprocess.Popen([*prefix, "/usr/sbin/sshd", "-D", "-e", "-f", str(self.directory / "sshd_config")],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        listens = lambda: "listening" in (self.directory / "sshd.log").read_text()
        assert wait_until(listens, 10), (self.directory / "sshd.log").read_text()

    def authorize(self, key):
        """What a forge's deploy key may do: fetch, and nothing else."""
        (self.directory / "authorized").write_text(f'restrict,command="git-upload-pack {self.bare}" {key}')

    def git(self, *command):
        return run("git", "-c", "user.name=writer", "-c", "user.email=writer@example.org", "-C", self.work, *command).stdout

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        self.git("push", "-q", "origin", "main")
        return self.git("rev-parse", "HEAD").strip()

    @property
    def url(self):
        return f"ssh://root@{self.address}:{self.port}/team/runbooks.git"

    def known_hosts(self):
        name = self.address if self.port == 22 else f"[{self.address}]:{self.port}"
        kind, key = (self.directory / "host.pub").read_text().split()[:2]
        return f"{name} {kind} {key}\n"

    def private_key(self):
        return (self.directory / "deploy").read_text()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()

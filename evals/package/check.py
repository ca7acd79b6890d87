"""The Debian package in a clean Debian 12; run by evals/package-checks.

Looks at the file, installs it with apt into a machine with systemd, lets the units index a repository over
ssh with a deploy key and answer, changes a runbook, upgrades, removes and purges. Exit 1 when a check fails;
the last line is `N passed, N failed`. Where no root or no systemd can be had here, that is said in capitals,
and the rest is still checked.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from machine import Forge, Machine, base_root, free_port, run, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("runbook-ask", "runbook-eval", "runbook-ingest", "runbook-query", "runbook-sh")
UNITS = ("runbook-ingest.service", "runbook-ingest.timer", "runbook-query.service", "runbook-query.socket")
# The newest symbol versions that both offer: Debian 12 (glibc 2.36, GCC 12); Ubuntu 24.04 has 2.39 and GCC 14.
OFFERED = {"GLIBC": "2.36", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13", "GCC": "12.0.0", "ZLIB": "1.2.13"}
# Library files and the packages that hold them, by the same name in Debian 12 and Ubuntu 24.04.
HOLDS = {"libc.so.6": "libc6", "libm.so.6": "libc6", "libdl.so.2": "libc6", "librt.so.1": "libc6", "libpthread.so.0": "libc6",
         "ld-linux-x86-64.so.2": "libc6", "ld-linux-aarch64.so.1": "libc6", "libgcc_s.so.1": "libgcc-s1", "libstdc++.so.6": "libstdc++6",
         "libz.so.1": "zlib1g"}
QUESTION = "which unit opens 8080"
PREVIOUS, NEXT = "0.0.9-1", "0.1.99-1"


def numbers(version):
    return [int(n) for n in version.split(".")]


class Checks:
    def __init__(self, deb, out, scratch, systemd):
        self.systemd, self.deb, self.out, self.scratch = systemd, pathlib.Path(deb), out, pathlib.Path(scratch)
        self.tree, self.machine, self.forge = self.scratch / "deb", None, None
        run("dpkg-deb", "-R", self.deb, self.tree)
        self.port = free_port()

    def close(self):
        if self.machine:
            self.machine.stop()
        if self.forge:
            self.forge.stop()

    # --- the file ---------------------------------------------------------------------------------

    def check_1_contents(self):
        for name in PROGRAMS:
            assert os.access(self.tree / "usr/bin" / name, os.X_OK), name
            page = self.tree / "usr/share/man/man1" / f"{name}.1.gz"
            assert b".SH" in run("gzip", "-dc", page, text=False).stdout, page
            for file in (f"bash-completion/completions/{name}", f"zsh/vendor-completions/_{name}", f"fish/vendor_completions.d/{name}.fish"):
                assert (self.tree / "usr/share" / file).stat().st_size > 100, file
        for name in ("runbook-ingest", "runbook-query", "runbook-eval"):
            text = run(self.tree / "usr/bin" / name, "--help").stdout
            for sub in re.findall(r"^  ([a-z]+)  ", text.partition("Commands:")[2].partition("\n\n")[0], re.MULTILINE):
                assert sub == "help" or (self.tree / f"usr/share/man/man1/{name}-{sub}.1.gz").exists(), f"no page of {name} {sub}"
        for unit in UNITS:
            assert (self.tree / "usr/lib/systemd/system" / unit).exists(), unit
            assert (self.tree / f"usr/share/man/man8/{unit}.8.gz").exists(), unit
        conffiles = (self.tree / "DEBIAN/conffiles").read_text().split()
        assert sorted(conffiles) == ["/etc/runbook-ask/ingest.toml", "/etc/runbook-ask/query.toml"], conffiles
        doc = self.tree / "usr/share/doc/runbook-ask"
        for file in ("README.Debian", "copyright", "third-party-crates.txt.gz", "onnxruntime.LICENSE", "examples/caddy/Caddyfile",
                     "examples/nginx/runbook-ask.conf", "examples/prometheus/alerts.yml", "examples/grafana/runbook-ask.json"):
            assert (doc / file).exists(), file
        assert "Apache-2.0" in (doc / "copyright").read_text() and "WITHOUT WARRANTY" in (doc / "copyright").read_text()
        model = self.tree / "usr/share/runbook-ask/models/all-MiniLM-L6-v2-int8"
        for file in ("model.onnx", "tokenizer.json", "LICENSE", "PROVENANCE.md"):
            assert (model / file).exists(), file
        print(f"   {self.deb.stat().st_size / 1e6:.0f} MB, installed {self.size() / 1e6:.0f} MB")

    def size(self):
        return sum(f.stat().st_size for f in self.tree.rglob("*") if f.is_file())

    def check_2_libraries(self):
        """What the programs ask of the system is in Debian 12 and in Ubuntu 24.04, and Depends names it."""
        depends = run("dpkg-deb", "-f", self.deb, "Depends").stdout
        files = [self.tree / "usr/bin" / p for p in PROGRAMS if p != "runbook-ask"] + list((self.tree / "usr/lib/runbook-ask").iterdir())
        most = {}
        for file in files:
            sections = run("readelf", "-SW", file).stdout
            assert ".debug_info" not in sections and ".symtab" not in sections, f"{file} is not stripped"
            for library in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", file).stdout):
                assert re.search(rf"\b{re.escape(HOLDS[library])}(?![\w+-])", depends), (file, library, depends)
            for kind, version in re.findall(r"Name: ([A-Z]+)_([0-9.]+)\b", run("readelf", "-VW", file).stdout):
                if kind == "VERS":  # what the library itself gives
                    continue
                most[kind] = max(most.get(kind, [0]), numbers(version))
        for kind, version in sorted(most.items()):
            print(f"   {kind} {'.'.join(map(str, version))} needed, {OFFERED[kind]} offered")
            assert version <= numbers(OFFERED[kind]), kind

    def check_3_pages_are_well_formed(self):
        if not shutil.which("man"):
            print("   SKIPPED: there is no man here")
            return
        for page in sorted((self.tree / "usr/share/man").rglob("*.gz")):
            done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page, env={**os.environ, "MANROFFSEQ": "", "MANWIDTH": "80"},
                       cwd=self.tree / "usr/share/man")
            assert not done.stderr.strip(), (page.name, done.stderr)
            text = run("gzip", "-dc", page).stdout.replace("\\", "").replace("fR", "")
            for name, section in re.findall(r"(runbook-[a-z.-]+)(?:fP)? ?\(([18])\)", text):
                assert (self.tree / f"usr/share/man/man{section}/{name}.{section}.gz").exists(), (page.name, name)
        for name in PROGRAMS:
            run("bash", "-n", self.tree / "usr/share/bash-completion/completions" / name)
            for shell, file in (("zsh", f"zsh/vendor-completions/_{name}"), ("fish", f"fish/vendor_completions.d/{name}.fish")):
                if shutil.which(shell):
                    run(shell, "-n", self.tree / "usr/share" / file)

    # --- the machine ------------------------------------------------------------------------------

    def version_of(self, version):
        """The same payload under another version, not compressed."""
        control = self.tree / "DEBIAN/control"
        control.write_text(re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text()))
        file = self.scratch / f"runbook-ask_{version}.deb"
        run("dpkg-deb", "--root-owner-group", "-Znone", "-b", self.tree, file)
        return file

    def install(self, deb):
        shutil.copy(deb, self.machine.root / "root/package.deb")
        done = self.machine.run("apt-get", "-q", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0",
                                "-o", "Dpkg::Options::=--force-confold", "install", "/root/package.deb")
        (self.machine.root / "root/package.deb").unlink()
        return done.stdout

    def ask(self, *arguments, check=True):
        return self.machine.run("runbook-ask", *arguments, env={"RUNBOOK_URL": f"http://127.0.0.1:{self.port}"}, check=check)

    def check_4_install(self):
        self.forge = Forge(self.scratch / "forge", ROOT / "runbooks-sample")
        base = base_root(self.out, also=["curl", "ca-certificates", "zlib1g", "libstdc++6"])
        self.machine = Machine(base, self.scratch / "machine", f"runbook-{os.getpid()}")
        self.booted = self.systemd and self.machine.boot()
        if not self.systemd:  # a Debian without systemd makes its users in another way
            (self.machine.root / "usr/bin/systemd-sysusers").unlink()
        if not self.booted:
            print("   NO SYSTEMD HERE: the units are read and followed by hand, without their sandbox")
        said = self.install(self.version_of(PREVIOUS))
        assert "README.Debian has the five steps" in said, said
        for program in PROGRAMS:
            assert self.machine.run(program, "--version").stdout.startswith(program), program
        for user in ("runbook-ingest", "runbook-query"):
            assert ":/var/lib/runbook" in self.machine.run("getent", "passwd", user).stdout
        owners = self.machine.run("stat", "-c", "%U:%G %a", "/var/lib/runbook-ask", "/var/lib/runbook-query").stdout.split("\n")
        assert owners[:2] == ["runbook-ingest:runbook-ask 750", "runbook-query:runbook-ask 700"], owners
        if self.booted:
            for unit in UNITS:
                assert self.machine.show(unit, "LoadState", "ActiveState") == ["loaded", "inactive"], unit
            enabled = self.machine.run("systemctl", "is-enabled", *UNITS, check=False).stdout.split()
            assert set(enabled) <= {"disabled", "static"}, enabled
        assert self.ask(QUESTION, check=False).returncode == 1, "nothing runs yet"

    def check_5_first_answer(self):
        """The five steps of README.Debian."""
        m = self.machine
        started = time.monotonic()
        run("cp", "-a", self.forge.bare, m.root / "srv/runbooks.git")
        m.run("chown", "-R", "root:root", "/srv/runbooks.git")
        done = m.run("runbook-ingest", "--source", "file:///srv/runbooks.git", "--data", "/tmp/data", "--embedder", "none")
        assert "published" in done.stdout and " 0 failed" in done.stdout, done.stdout
        m.run("rm", "-rf", "/srv/runbooks.git", "/tmp/data")
        m.edit("/etc/runbook-ask/ingest.toml", ("git@git.example.org:team/runbooks.git", self.forge.url))
        m.put("/etc/runbook-ask/deploy-key", self.forge.private_key(), 0o600)
        m.put("/etc/runbook-ask/known_hosts", self.forge.known_hosts())
        m.edit("/etc/runbook-ask/query.toml", ("runbooks.example", "runbooks.team.example"))
        if not self.booted:
            self.by_hand()
            return
        m.put("/etc/systemd/system/runbook-query.socket.d/port.conf", f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{self.port}\n")
        m.put("/etc/systemd/system/runbook-ingest.timer.d/often.conf",
              "[Timer]\nOnBootSec=\nOnUnitInactiveSec=\nOnActiveSec=1\nOnUnitInactiveSec=2\nRandomizedDelaySec=0\nAccuracySec=100ms\n")
        m.run("systemctl", "daemon-reload")
        done = m.run("systemctl", "start", "runbook-ingest.service", check=False)
        assert done.returncode == 0, done.stderr + m.journal("runbook-ingest.service")
        m.run("systemctl", "enable", "--now", "runbook-ingest.timer", "runbook-query.socket", "runbook-query.service")
        answer = wait_until(lambda: self.answered(QUESTION), 30)
        assert answer and "nginx.socket" in answer or "sources:" in answer, m.journal("runbook-query.service")
        print(f"   key, first index, daemon and answer: {time.monotonic() - started:.1f} s")
        head = self.forge.git("rev-parse", "HEAD")[:10]
        assert f"at {head}" in answer.replace("\n", " "), answer

    def answered(self, question):
        done = self.ask(question, check=False)
        return done.stdout if done.returncode == 0 and "sources:" in done.stdout else None

    def by_hand(self):
        """ExecStart, User and the credential as the units have them; no sandbox."""
        m = self.machine
        m.put("/run/credentials/runbook-ingest.service/deploy-key", self.forge.private_key(), 0o600)
        m.run("chown", "-R", "runbook-ingest", "/run/credentials/runbook-ingest.service")
        for unit, more in (("runbook-ingest.service", []), ("runbook-query.service", ["--listen", f"127.0.0.1:{self.port}"])):
            text = (self.tree / "usr/lib/systemd/system" / unit).read_text()
            command = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1].split() + more
            user, group = (re.search(rf"^{key}=(.*)$", text, re.MULTILINE)[1] for key in ("User", "Group"))
            environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent", "RUNBOOK_LOG": "info"}
            chroot = ["chroot", f"--userspec={user}:{group}", str(m.root), *command]
            if unit == "runbook-ingest.service":
                run(*chroot, env=environment)
            else:
                self.daemon = subprocess.Popen(chroot, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        answer = wait_until(lambda: self.answered(QUESTION), 30)
        self.daemon.terminate()
        self.daemon.wait()
        m.run("rm", "-rf", "/run/credentials")
        assert answer, "no answer"

    def check_6_sandbox(self):
        """The units' own sandbox, seen from outside while the daemon answers."""
        if not self.booted:
            print("   SKIPPED: NO SYSTEMD HERE")
            return
        m = self.machine
        pid, kind, text = m.show("runbook-query.service", "MainPID", "Type", "StatusText")
        assert kind == "notify" and int(pid) > 0, (pid, kind)
        status = m.run("cat", f"/proc/{pid}/status").stdout
        facts = dict(re.findall(r"^(\w+):\s+(.*)$", status, re.MULTILINE))
        assert facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2", facts
        assert {facts[c] for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0000000000000000"}, facts
        assert facts["Uid"].split()[0] != "0"
        namespaces = {kind: m.run("readlink", f"/proc/{pid}/ns/{kind}").stdout != m.run("readlink", f"/proc/1/ns/{kind}").stdout
                      for kind in ("net", "mnt", "user", "ipc")}
        assert all(namespaces.values()), namespaces
        devices = re.findall(r"^ *(\w+):", m.run("nsenter", "-t", pid, "-n", "cat", "/proc/self/net/dev").stdout, re.MULTILINE)
        assert devices == ["lo"], devices
        metrics = m.run("curl", "-sf", f"http://127.0.0.1:{self.port}/metrics").stdout
        assert 'stage="embed"' in metrics, "the model runs in there"
        print(f"   user, mount, ipc and net namespaces of its own; seccomp; no capability; status: {text or 'none'}")

    def check_7_a_commit(self):
        """A changed command is in the answer, and nobody touches anything."""
        if not self.booted:
            print("   SKIPPED: NO SYSTEMD HERE")
            return
        page = self.forge.work / "drill/parrot.md"
        page.parent.mkdir()
        for command in ("parrotctl fold --gently", "parrotctl unfold --at dawn"):
            page.write_text(f"# Parrot\n\n## Fold the parrot\n\nTo fold the parrot of the mast:\n\n```sh\n{command}\n```\n")
            self.forge.commit(command)
            started = time.monotonic()
            seen = wait_until(lambda: command in self.ask("--cmd", "how do I fold the parrot of the mast", check=False).stdout, 60)
            assert seen, self.machine.journal("runbook-ingest.service")
            print(f"   `{command}` after {time.monotonic() - started:.1f} s, timer every 2 s")

    def check_8_upgrade(self):
        m = self.machine
        generations = sorted(p.name for p in (m.root / "var/lib/runbook-ask/generations").iterdir())
        if self.booted:
            self.ask("--wrong", "a note to keep")
            before, restarts = m.show("runbook-query.service", "MainPID", "NRestarts")
            assert restarts == "0", m.journal("runbook-query.service")
        example = self.tree / "etc/runbook-ask/query.toml"
        example.write_text(example.read_text() + "# said by the next version\n")
        self.install(self.version_of(NEXT))
        assert NEXT in m.run("dpkg-query", "-W", "-f", "${Version}", "runbook-ask").stdout
        kept = (m.root / "etc/runbook-ask/query.toml").read_text()
        assert "runbooks.team.example" in kept and "next version" not in kept, kept
        assert "next version" in (m.root / "etc/runbook-ask/query.toml.dpkg-dist").read_text()
        assert self.forge.url in (m.root / "etc/runbook-ask/ingest.toml").read_text()
        kept = sorted(p.name for p in (m.root / "var/lib/runbook-ask/generations").iterdir())
        assert set(kept) & set(generations), (generations, kept)
        if not self.booted:
            return
        assert "a note to keep" in (m.root / "var/lib/runbook-query/feedback/reports.jsonl").read_text()
        assert wait_until(lambda: self.answered(QUESTION), 20), m.journal("runbook-query.service")
        after, state = m.show("runbook-query.service", "MainPID", "ActiveState")
        assert after != before and state == "active", "the daemon runs the new program"
        assert m.show("runbook-ingest.timer", "ActiveState") == ["active"]

    def check_9_removal(self):
        m = self.machine
        m.run("apt-get", "-q", "-y", "remove", "runbook-ask")
        left = [f"usr/bin/{p}" for p in PROGRAMS if m.has(f"/usr/bin/{p}")]
        assert not left and not m.has("/usr/lib/runbook-ask") and not m.has("/usr/share/runbook-ask"), left
        assert m.has("/etc/runbook-ask/ingest.toml") and m.has("/var/lib/runbook-ask/current"), "configuration and index stay"
        if self.booted:
            for unit in UNITS:
                assert m.show(unit, "ActiveState")[0] in ("inactive", "failed"), unit
            wants = [str(p) for p in (m.root / "etc/systemd/system").rglob("runbook-*") if p.is_symlink()]
            assert not wants, wants
        m.run("apt-get", "-q", "-y", "purge", "runbook-ask")
        left = run("find", m.root, "-xdev", "(", "-path", f"{m.root}/proc", "-o", "-path", f"{m.root}/sys", ")", "-prune", "-o",
                   "-name", "*runbook*", "-print").stdout.split()
        left = [f.removeprefix(str(m.root)) for f in left if "/root/.local/state/" not in f]  # the asking user's own
        print(f"   left after a purge: {left or 'no file'}, and the users runbook-ingest and runbook-query")
        assert not left, left


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deb", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--no-systemd", action="store_true", help="as on a host where it does not boot")
    args = parser.parse_args()
    passed = failed = 0
    root = os.geteuid() == 0
    if not root:
        print("NO ROOT HERE: the package is looked at, and not installed")
    with tempfile.TemporaryDirectory(dir=args.out) as scratch:
        checks = Checks(args.deb, args.out, scratch, not args.no_systemd)
        try:
            for name in sorted(n for n in dir(checks) if n.startswith("check_")):
                if not root and name >= "check_4":
                    continue
                started = time.monotonic()
                try:
                    getattr(checks, name)()
                    passed += 1
                    print(f"ok   {name} ({time.monotonic() - started:.1f} s)", flush=True)
                except Exception:  # noqa: BLE001 - what follows may say more
                    failed += 1
                    print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
                    if name == "check_4_install":
                        break
        finally:
            checks.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

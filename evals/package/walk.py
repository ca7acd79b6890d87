"""The walk of docs/walk.md: run by evals/walk, which writes that page with the times and pictures of the run."""
import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import time

from playwright.sync_api import sync_playwright

from machine import Forge, Machine, base_root, run, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER, LAPTOP, STRANGER, GIT = "10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4"
SITE, QUESTION = "runbooks.example", "reload nginx"
OLD, NEW = "sudo systemctl reload nginx", "sudo reload-nginx --check-first"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", f"--host-resolver-rules=MAP {SITE} {SERVER}"]


@contextlib.contextmanager
def network():
    """Namespaces for the four machines, joined by a bridge; yields their names."""
    names = {who: f"rb{os.getpid()}{who}" for who in ("server", "laptop", "stranger", "git")}
    try:
        for name in names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        hub = names["server"]
        run("ip", "-n", hub, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", hub, "addr", "add", f"{SERVER}/24", "dev", "br0")
        run("ip", "-n", hub, "link", "set", "br0", "up")
        for who, address in (("laptop", LAPTOP), ("stranger", STRANGER), ("git", GIT)):
            run("ip", "-n", hub, "link", "add", who, "type", "veth", "peer", "name", "eth0", "netns", names[who])
            run("ip", "-n", hub, "link", "set", who, "master", "br0", "up")
            run("ip", "-n", names[who], "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", names[who], "link", "set", "eth0", "up")
        yield names
    finally:
        for name in names.values():
            run("ip", "netns", "delete", name, check=False)


class Walk:
    def __init__(self, args, scratch, names):
        self.args, self.scratch, self.names = args, pathlib.Path(scratch), names
        self.pictures = ROOT / "docs" / "walk"
        self.pictures.mkdir(parents=True, exist_ok=True)
        self.text, self.started = [], None
        self.machine = self.forge = None

    def close(self):
        if self.machine:
            self.machine.stop()
        if self.forge:
            self.forge.stop()

    # --- the page ---------------------------------------------------------------------------------

    def say(self, text):
        self.text.append(textwrap.dedent(text).strip() + "\n")

    def heading(self, text):
        at = time.monotonic() - self.started
        print(f"{at:6.0f} s  {text}", flush=True)
        self.text.append(f"## {int(at) // 60}:{int(at) % 60:02} {text}\n")

    def console(self, *lines):
        """Commands on the server, as they are typed, with what they print."""
        shown = []
        for line in lines:
            quiet = line.startswith("@")
            line = line.lstrip("@")
            done = self.machine.run("sh", "-c", line, check=False)
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            shown.append(f"# {line}")
            if not quiet:
                shown += [s.rstrip() for s in (done.stdout + done.stderr).strip().splitlines()]
        # Four backquotes: an answer may hold a fence of its own.
        self.text.append("````console\n" + "\n".join(shown) + "\n````\n")
        return "\n".join(shown)

    def picture(self, page, name, caption, height=640):
        page.screenshot(path=self.pictures / f"{name}.png", clip={"x": 0, "y": 0, "width": 900, "height": height})
        self.text.append(f"![{caption}](walk/{name}.png)\n")

    # --- browsers ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def browser(self, who, play):
        """Chromium on the machine of that name."""
        wrapper = self.scratch / f"chromium-{who}"
        wrapper.write_text(f'#!/bin/sh\nexec ip netns exec {self.names[who]} chromium "$@"\n')
        wrapper.chmod(0o755)
        browser = play.chromium.launch(executable_path=wrapper, args=FLAGS)
        try:
            # The certificate is Caddy's own here: no authority can be reached from these machines.
            context = browser.new_context(viewport={"width": 900, "height": 640}, ignore_https_errors=True, color_scheme="light")
            yield context.new_page()
        finally:
            browser.close()

    def status_from(self, who, *arguments):
        done = run("ip", "netns", "exec", self.names[who], "curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "--noproxy", "*",
                   "--resolve", f"{SITE}:443:{SERVER}", *arguments, check=False)
        return done.stdout

    # --- the way ----------------------------------------------------------------------------------

    def prepare(self):
        """What is there before the walk begins: a git server with runbooks, and a clean machine."""
        prefix = ["ip", "netns", "exec", self.names["git"]]
        self.forge = Forge(self.scratch / "git", ROOT / "runbooks-sample", address=GIT, port=22, prefix=prefix)
        self.forge.authorize("")
        base = base_root(self.args.out, also=["curl", "ca-certificates", "zlib1g", "libstdc++6", "caddy", "openssh-client"], name="walk")
        self.machine = Machine(base, self.scratch / "machine", f"walk-{os.getpid()}")
        self.machine.put("/etc/hosts", f"127.0.0.1 localhost\n{GIT} git.example.org\n")
        self.machine.put("/root/runbook-ask.deb", "")
        run("cp", self.args.deb, self.machine.root / "root/runbook-ask.deb")

    def install(self):
        self.heading("Install")
        assert self.machine.boot(self.names["server"]), "systemd does not boot"
        self.say("A clean Debian 12 (`mmdebstrap --variant=minbase`, with systemd). Caddy and the ssh client are Debian's.")
        said = self.console("@apt-get install -y --no-install-recommends /root/runbook-ask.deb caddy openssh-client",
                            "systemctl is-enabled runbook-ingest.timer runbook-query.service || true")
        assert "disabled" in said, said

    def configure(self):
        self.heading("Where the runbooks are, and the deploy key")
        self.say("The steps of `/usr/share/doc/runbook-ask/README.Debian`.")
        self.console(
            "sed -i 's|^source = .*|source = \"root@git.example.org:team/runbooks.git\"|' /etc/runbook-ask/ingest.toml",
            "ssh-keygen -q -t ed25519 -N '' -C runbook-ask -f /etc/runbook-ask/deploy-key",
            "@cat /etc/runbook-ask/deploy-key.pub",
            "ssh-keyscan -t ed25519 git.example.org 2>/dev/null >/etc/runbook-ask/known_hosts")
        self.say("The public key goes to the git server as a deploy key that may fetch and nothing else (an sshd with a forced\n"
                 "`git-upload-pack`). The host's key is compared with the one that it publishes.")
        self.forge.authorize((self.machine.root / "etc/runbook-ask/deploy-key.pub").read_text())
        assert self.forge.known_hosts().split()[2] in (self.machine.root / "etc/runbook-ask/known_hosts").read_text()

    def first_answer(self):
        self.heading("The first index, and the daemon")
        self.console("systemctl start runbook-ingest.service",
                     "journalctl -q -o cat -u runbook-ingest.service | grep -A1 ^published",
                     "systemctl enable --now runbook-ingest.timer runbook-query.socket runbook-query.service 2>/dev/null")
        self.heading("An answer on the server")
        said = self.console(f"runbook-ask {QUESTION}")
        assert OLD in said, said

    def proxy(self):
        self.heading("A proxy with an access list")
        self.say(f"""
            The example Caddyfile as it stands, with two lines of environment: the site's name and who may ask, here one address.
            `local_certs` is added because no certificate authority can be reached from these machines. The daemon knows the
            name already: it is the one in the `allowed_hosts` of the package.""")
        self.console(
            "cp /usr/share/doc/runbook-ask/examples/caddy/Caddyfile /etc/caddy/Caddyfile",
            "sed -i 's/^\\tadmin off$/\\tadmin off\\n\\tlocal_certs/' /etc/caddy/Caddyfile",
            "mkdir -p /etc/systemd/system/caddy.service.d",
            f"printf '[Service]\\nEnvironment=RUNBOOK_SITE={SITE} RUNBOOK_ALLOW={LAPTOP}/32\\n' >/etc/systemd/system/caddy.service.d/runbooks.conf",
            "systemctl daemon-reload && systemctl restart caddy.service",
            "systemctl is-active caddy.service runbook-query.service")
        assert wait_until(lambda: self.status_from("laptop", f"https://{SITE}/livez") == "200", 20), self.machine.journal("caddy.service")

    def browsers(self, play):
        self.heading(f"An answer in a browser, from {LAPTOP}")
        with self.browser("laptop", play) as page:
            page.goto(f"https://{SITE}/")
            page.keyboard.type(QUESTION)
            page.keyboard.press("Enter")
            page.wait_for_selector(".answer")
            assert OLD in page.inner_text("main")
            self.picture(page, "answer", f"The answer to {QUESTION} in Chromium")
        self.heading(f"And from {STRANGER}")
        with self.browser("stranger", play) as page:
            response = page.goto(f"https://{SITE}/?q={QUESTION}")
            assert response.status == 403, response.status
            self.picture(page, "stranger", "403: this address may not ask the runbooks", height=100)
        forged = self.status_from("stranger", "-H", f"X-Forwarded-For: {LAPTOP}", "-H", f"X-Real-IP: {LAPTOP}", f"https://{SITE}/")
        assert forged == "403", forged
        self.say(f"With a forged `X-Forwarded-For: {LAPTOP}` it is {forged}, too.")

    def a_commit(self, play):
        # The timer's first run comes a minute after boot, and the question is about the others.
        assert wait_until(lambda: self.machine.show("runbook-ingest.timer", "LastTriggerUSec")[0] not in ("", "n/a"), 120, 1)
        assert wait_until(lambda: self.machine.show("runbook-ingest.service", "ActiveState") == ["inactive"], 60)
        self.heading("A commit changes the command")
        self.say("Made after the timer's first run, which comes a minute after the start of the machine.")
        page_file = self.forge.work / "network/nginx.md"
        text = page_file.read_text()
        assert OLD in text
        page_file.write_text(text.replace(OLD, NEW))
        head = self.forge.commit("reload nginx with the script")
        pushed = time.monotonic()
        shown = self.forge.git("diff", "-U0", "HEAD~1", "--", "network/nginx.md").splitlines()
        self.text.append("```diff\n" + "\n".join(s for s in shown if s[:1] in "+-" and not s.startswith(("+++", "---"))) + "\n```\n")
        left = self.machine.run("systemctl", "list-timers", "--no-legend", "runbook-ingest.timer").stdout.split()
        self.say("It is pushed, and nothing on the server is touched. The timer comes by itself, five minutes after its last run and up\n"
                 f"to half a minute more: {' '.join(left[4:6])} now.")
        print("         timer:", " ".join(left))
        with self.browser("laptop", play) as page:
            def answered():
                page.goto(f"https://{SITE}/?q={QUESTION}")
                page.wait_for_selector(".answer")
                return NEW in page.inner_text("main")
            assert wait_until(answered, 420, 5), self.machine.journal("runbook-ingest.service")
            after = time.monotonic() - pushed
            self.heading("The new command is in the answer")
            self.say(f"{after / 60:.1f} minutes after the push, at commit `{head[:10]}`.")
            self.picture(page, "changed", "The answer with the new command")
            page.goto(f"https://{SITE}/status")
            self.picture(page, "status", "The status page")
        self.console("systemctl show -P NRestarts -P StatusText runbook-query.service",
                     "journalctl -q -o cat -u runbook-query.service | grep outcome | tail -n 1 | fold -w 110")

    def write(self):
        release = run("systemctl", "--version").stdout.splitlines()[0]
        intro = f"""\
# The walk

From a clean Debian to an answer in a browser, as a new user goes, and then a commit. This page was written by
`evals/walk` on {time.strftime('%Y-%m-%d', time.gmtime())}; the times in the headings are minutes and seconds since the start.

How it was run: four machines as network namespaces on one host with 2 cores: the server ({SERVER}), the git server
({GIT}, a real sshd), and two laptops ({LAPTOP}, {STRANGER}) with Chromium. The server is a Debian 12 root booted by
systemd-nspawn, so systemd is its process 1: the timer, the socket, the watchdog and the sandbox of the units are the
real ones ({release} outside). Not shown: a certificate from an authority.
"""
        page = intro + "\n" + "\n".join(self.text)
        (ROOT / "docs" / "walk.md").write_text(re.sub(r"\n{3,}", "\n\n", page))

    def go(self):
        self.prepare()
        self.started = time.monotonic()
        with sync_playwright() as play:
            self.install()
            self.configure()
            self.first_answer()
            self.proxy()
            self.browsers(play)
            self.a_commit(play)
        self.write()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deb", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.out) as scratch, network() as names:
        walk = Walk(args, scratch, names)
        try:
            walk.go()
        finally:
            walk.close()
    print("docs/walk.md is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())

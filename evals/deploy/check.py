"""The files of deploy/ with the programs they are for; run by evals/deploy-checks.

Every check is a function below whose name starts with `check_`. Exit 1 when one fails, after all have
run; the last line is `N passed, N failed`.
"""
import argparse
import contextlib
import ctypes
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
ALLOWED, STRANGER = "127.0.0.2", "127.0.0.3"
EXPOSURE_MAX = {"runbook-query.service": 0.6, "runbook-ingest.service": 1.4}
PASSWORD = "correct horse"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(200):
        if process.poll() is not None:
            raise AssertionError(f"it ended: {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("it does not listen")


@contextlib.contextmanager
def running(command, port, **options):
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        wait_for(port, process)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def recorder(answer=lambda headers: 200):
    """A server that keeps the headers of every request."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(dict(self.headers.items()))
            self.send_response(answer(self.headers))
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1], seen
    finally:
        server.shutdown()


def curl(url, *args, source=None):
    command = ["curl", "-q", "-s", "-4", "--noproxy", "*", "-m", "10", "-w", "\n%{http_code}", *args]
    if source:
        command += ["--interface", source]
    out = subprocess.run([*command, url], capture_output=True, text=True, check=False).stdout
    body, _, status = out.rpartition("\n")
    return int(status or 0), body


class Checks:
    def __init__(self, binaries, out, scratch):
        self.binaries, self.out, self.scratch = pathlib.Path(binaries), out, pathlib.Path(scratch)
        self.data = self.scratch / "data"
        subprocess.run([self.binaries / "runbook-ingest", "--source", ROOT / "runbooks-sample", "--data", self.data],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = [shutil.which("caddy"), out / "caddy" / "bin" / "caddy"]
        self.caddies = [c for c in found if c and pathlib.Path(c).exists()]

    @contextlib.contextmanager
    def daemon(self, proxy_port):
        port = free_port()
        command = [self.binaries / "runbook-query", "serve", "--data", self.data, "--state", self.scratch / "state",
                   "--listen", f"127.0.0.1:{port}", "--allowed-host", f"localhost:{proxy_port}"]
        with running(command, port):
            yield port

    @contextlib.contextmanager
    def caddy(self, program, name, port, **environment):
        environment = {**os.environ, "HOME": str(self.scratch), "XDG_DATA_HOME": str(self.scratch), "XDG_CONFIG_HOME": str(self.scratch),
                       "RUNBOOK_SITE": f"http://localhost:{port}", **{k: str(v) for k, v in environment.items()}}
        with running([program, "run", "--config", DEPLOY / "caddy" / name, "--adapter", "caddyfile"], port, env=environment):
            yield

    # --- proxies ------------------------------------------------------------------------------

    def access_list(self, url):
        """What every proxy with an access list must do."""
        status, page = curl(url + "/", source=ALLOWED)
        assert status == 200 and "Runbook Ask" in page, (status, page[:200])
        status, page = curl(url + "/?q=which+unit+opens+8080", source=ALLOWED)
        assert status == 200 and "Sources" in page, (status, page[:200])
        assert curl(url + "/metrics", source=ALLOWED)[0] in (403, 404)
        for forged in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP", "CF-Connecting-IP", "True-Client-IP"):
            value = f"for={ALLOWED}" if forged == "Forwarded" else ALLOWED
            status, page = curl(url + "/", "-H", f"{forged}: {value}", source=STRANGER)
            assert status == 403 and "Browse" not in page, (forged, status)
        for path in ("/", "/v1/status", "/v1/ask?q=x", "/metrics", "/livez", "/read/hosts.md"):
            assert curl(url + path, source=STRANGER)[0] == 403, path
        origin = ["-H", f"Origin: {url}", "--data-urlencode", "verdict=wrong", "--data-urlencode", "id=r0", "--data-urlencode", "question=8080"]
        assert curl(url + "/v1/feedback", *origin, source=ALLOWED)[0] == 303, "the page's own form"
        assert curl(url + "/v1/feedback", "-H", "Origin: https://evil.example", *origin[2:], source=ALLOWED)[0] == 403
        long = "x" * 9000
        assert curl(f"{url}/?q={long}", source=ALLOWED)[0] == 200, "a pasted alert"

    def check_caddy_access_list(self):
        assert len(self.caddies) == 2, self.caddies
        for program in self.caddies:
            print("  ", subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout.split()[0])
            port = free_port()
            with self.daemon(port) as upstream, self.caddy(
                    program, "Caddyfile", port, RUNBOOK_ALLOW=f"{ALLOWED}/32", RUNBOOK_UPSTREAM=f"127.0.0.1:{upstream}"):
                self.access_list(f"http://localhost:{port}")

    def check_caddy_hides_the_client(self):
        for program in self.caddies:
            port = free_port()
            with recorder() as (upstream, seen), self.caddy(
                    program, "Caddyfile", port, RUNBOOK_ALLOW=f"{ALLOWED}/32", RUNBOOK_UPSTREAM=f"127.0.0.1:{upstream}"):
                curl(f"http://localhost:{port}/", "-H", "X-Forwarded-For: 10.9.9.9", "-H", "Cookie: a=b",
                     "-H", "Authorization: Bearer x", source=ALLOWED)
                assert seen[-1].get("X-Forwarded-For") == ALLOWED, seen[-1]
                assert "Cookie" not in seen[-1] and "Authorization" not in seen[-1], seen[-1]

    def check_caddy_basic_auth(self):
        for program in self.caddies:
            hashed = subprocess.run([program, "hash-password", "--plaintext", PASSWORD], capture_output=True, text=True, check=True)
            port = free_port()
            with self.daemon(port) as upstream, self.caddy(
                    program, "Caddyfile.basic-auth", port, RUNBOOK_UPSTREAM=f"127.0.0.1:{upstream}",
                    RUNBOOK_PASSWORD_HASH=hashed.stdout.strip()):
                url = f"http://localhost:{port}"
                assert curl(url + "/")[0] == 401 and curl(url + "/v1/status")[0] == 401
                assert curl(url + "/", "-u", "oncall:wrong")[0] == 401
                assert curl(url + "/", "-u", f"oncall:{PASSWORD}")[0] == 200
                assert curl(url + "/metrics", "-u", f"oncall:{PASSWORD}")[0] == 404
                asked = subprocess.run(
                    [DEPLOY / "runbook-ask", "which unit opens 8080"], capture_output=True, text=True, check=False,
                    env={**os.environ, "RUNBOOK_URL": f"http://oncall:{PASSWORD.replace(' ', '%20')}@localhost:{port}"})
                assert asked.returncode == 0 and "sources:" in asked.stdout, asked
                wrong = subprocess.run(
                    [DEPLOY / "runbook-ask", "--wrong", "not that unit"], capture_output=True, text=True, check=False,
                    env={**os.environ, "RUNBOOK_URL": f"http://oncall:{PASSWORD.replace(' ', '%20')}@localhost:{port}"})
                assert wrong.returncode == 0 and "reported" in wrong.stderr, wrong
            report = json.loads((self.scratch / "state/feedback/reports.jsonl").read_text().splitlines()[-1])
            assert report["note"] == "not that unit" and report["question"] == "which unit opens 8080", report

    def check_caddy_forward_auth(self):
        for program in self.caddies:
            port = free_port()
            with self.daemon(port) as upstream, recorder(lambda h: 200 if h.get("Cookie") == "session=good" else 401) as (auth, _), \
                    self.caddy(program, "Caddyfile.forward-auth", port, RUNBOOK_UPSTREAM=f"127.0.0.1:{upstream}",
                               RUNBOOK_AUTH=f"127.0.0.1:{auth}"):
                url = f"http://localhost:{port}/"
                assert curl(url)[0] == 401
                assert curl(url, "-H", "Cookie: session=good")[0] == 200
                assert curl(url, "-H", "Remote-User: admin", "-H", "X-Forwarded-For: 127.0.0.1")[0] == 401

    def check_caddy_files(self):
        hashed = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"
        for program in self.caddies:
            for file in sorted((DEPLOY / "caddy").iterdir()):
                done = subprocess.run([program, "adapt", "--config", file, "--adapter", "caddyfile", "--validate"], capture_output=True,
                                      text=True, check=False, env={**os.environ, "HOME": str(self.scratch), "RUNBOOK_PASSWORD_HASH": hashed})
                assert done.returncode == 0, (file, done.stderr)
                assert "not formatted" not in done.stderr, file
                routes = json.loads(done.stdout)["apps"]["http"]["servers"]
                assert any(":443" in s["listen"] for s in routes.values()), "as it stands it is HTTPS"

    def check_nginx(self):
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        port = free_port()
        with self.daemon(port) as upstream:
            text = (DEPLOY / "nginx" / "runbook-ask.conf").read_text()
            text = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{port};", text)
            text = re.sub(r"ssl_certificate\w* .*;\n", "", text).replace("runbooks.example;", "localhost;")
            text = text.replace("allow 127.0.0.0/8;\n\tallow ::1;", f"allow {ALLOWED};").replace("127.0.0.1:8080", f"127.0.0.1:{upstream}")
            directory = self.scratch / "nginx"
            directory.mkdir()
            temporary = "".join(f"{k}_temp_path {directory}/{k};\n" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            config = directory / "nginx.conf"
            user = "user root;\n" if os.geteuid() == 0 else ""
            config.write_text(f"{user}daemon off;\npid {directory}/pid;\nerror_log {directory}/error.log;\nevents {{}}\n"
                              f"http {{\naccess_log off;\n{temporary}{text}}}\n")
            tested = subprocess.run([program, "-t", "-c", config], capture_output=True, text=True, check=False)
            assert tested.returncode == 0, tested.stderr
            with running([program, "-c", config], port):
                self.access_list(f"http://localhost:{port}")

    # --- metrics --------------------------------------------------------------------------------

    def check_metrics(self):
        promtool = self.out / "prometheus/usr/bin/promtool"
        alerts = DEPLOY / "prometheus" / "alerts.yml"
        for command in (["check", "rules", alerts], ["test", "rules", DEPLOY / "prometheus" / "alerts.test.yml"]):
            done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        port = free_port()
        with self.daemon(port) as upstream:
            url = f"http://127.0.0.1:{upstream}"
            curl(url + "/?q=which+unit+opens+8080")
            curl(url + "/nowhere")
            curl(url + "/v1/feedback", "-H", "Content-Type: application/json", "-d", '{"id":"r0","verdict":"wrong","question":"8080"}')
            _, text = curl(url + "/metrics")
        names = set(re.findall(r"^(runbook_\w+)", text, re.MULTILINE))
        dashboard = (DEPLOY / "grafana" / "runbook-ask.json").read_text()
        json.loads(dashboard)
        used = set(re.findall(r"\brunbook_[a-z_]+", dashboard.replace("runbook-ask", "") + alerts.read_text()))
        assert used and used <= names, used - names
        # OpenMetrics ends with a line that the older format, which promtool reads, does not have.
        done = subprocess.run([promtool, "check", "metrics"], input=text.replace("# EOF\n", ""), capture_output=True, text=True, check=False)
        assert done.returncode in (0, 3), done.stderr  # 3: remarks on naming
        print(f"   {len(names)} series names, {len(used)} in dashboard and alerts")

    # --- units ----------------------------------------------------------------------------------

    def check_units(self):
        directory = self.scratch / "units"
        shutil.copytree(DEPLOY / "systemd", directory)
        for file in directory.glob("*.service"):
            file.write_text(file.read_text().replace("/usr/bin/", f"{self.binaries.resolve()}/"))
        units = [str(f) for f in sorted(directory.iterdir()) if f.suffix in (".service", ".socket", ".timer")]
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False)
        ours = [line for line in done.stderr.splitlines() if "runbook" in line]
        assert not ours, ours
        for name, most in EXPOSURE_MAX.items():
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", directory / name], capture_output=True, text=True, check=False)
            found = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)[1])
            print(f"   {name}: exposure {found}, at most {most}")
            assert found <= most

    def check_configurations(self):
        """The files for /etc say only what the programs know; places and names are exchanged."""
        query = (DEPLOY / "etc" / "query.toml").read_text().replace("/var/lib/runbook-ask", str(self.data))
        (self.scratch / "query.toml").write_text(query)
        done = subprocess.run([self.binaries / "runbook-query", "ask", "--config", self.scratch / "query.toml", "which unit opens 8080"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        ingest = (DEPLOY / "etc" / "ingest.toml").read_text().replace("/var/lib/runbook-ask", str(self.scratch / "fresh"))
        ingest = ingest.replace("git@git.example.org:team/runbooks.git", str(ROOT / "runbooks-sample"))
        (self.scratch / "ingest.toml").write_text(ingest)
        done = subprocess.run([self.binaries / "runbook-ingest", "--config", self.scratch / "ingest.toml"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for unit, file in (("runbook-query.service", "query.toml"), ("runbook-ingest.service", "ingest.toml")):
            assert f"/etc/runbook-ask/{file}" in (DEPLOY / "systemd" / unit).read_text()

    def allowed_calls(self, unit):
        """The system calls that a unit may make, by systemd's own lists."""
        def calls(name, seen=None):
            seen = set() if seen is None else seen
            if name in seen:
                return set()
            seen.add(name)
            listed = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
            found = set()
            for line in listed.splitlines()[1:]:
                word = line.strip()
                if word.startswith("@"):
                    found |= calls(word, seen)
                elif word and not word.startswith("#"):
                    found.add(word)
            return found
        allowed = set()
        for line in re.findall(r"^SystemCallFilter=(.*)$", (DEPLOY / "systemd" / unit).read_text(), re.MULTILINE):
            names = line.lstrip("~").split()
            listed = set().union(*(calls(n) if n.startswith("@") else {n} for n in names))
            allowed = allowed - listed if line.startswith("~") else allowed | listed
        return allowed | calls("@default")

    def check_sandbox(self):
        """The programs in what can be had of their sandbox without systemd: no network, no capabilities, another user, no
        new privileges, no memory that is writable and executable; and no system call that the filter forbids."""
        work = self.scratch / "sandbox"
        shutil.copytree(self.data, work / "data", symlinks=True)
        for name in ("state", "out"):
            (work / name).mkdir()
        subprocess.run(["chmod", "-R", "a+rwX", str(self.scratch)], check=True)
        os.chmod(self.scratch, 0o755)
        strace = shutil.which("strace")
        if os.geteuid() != 0 or not strace:
            print("   SKIPPED: it takes root and strace")
            return
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        libc = ctypes.CDLL(None)

        def child():
            os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)
            if libc.prctl(65, 1, 0, 0, 0) != 0:  # PR_SET_MDWE
                os.write(2, b"no MDWE here\n")

        drop = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--regid=65534", "--clear-groups"]
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "runbook-ask"
        local = work / "cache" / "runbook-ask"
        shutil.copytree(cache / "onnxruntime", local / "onnxruntime")
        shutil.copytree(cache / "models", local / "models")
        programs = work / "bin"
        programs.mkdir()
        for name in ("runbook-query", "runbook-ingest"):
            shutil.copy(self.binaries / name, programs / name)
        subprocess.run(["chmod", "-R", "a+rX", str(work)], check=True)
        environment = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(work / "cache"), "HOME": "/nonexistent", "RUNBOOK_LOG": "info"}
        trace = work / "out" / "query.trace"
        shell = f"LISTEN_PID=$$ LISTEN_FDS=1 exec {programs}/runbook-query serve --data {work}/data --state {work}/state"
        command = [*drop, strace, "-f", "-qq", "-o", trace, "sh", "-c", shell]
        process = subprocess.Popen(["unshare", "-n", *map(str, command)], preexec_fn=child, close_fds=False, start_new_session=True,
                                   env=environment, cwd="/", stderr=open(work / "out" / "query.log", "wb"))
        try:
            listener.close()
            status, page = 0, ""
            ends = time.monotonic() + 240  # strace is slow
            while status != 200 and time.monotonic() < ends and process.poll() is None:
                status, page = curl(f"http://127.0.0.1:{port}/?q=how+do+I+get+last+night%27s+data+back")
                time.sleep(0.2)
            log = (work / "out" / "query.log").read_text()
            assert status == 200 and "restore-database.md" in page, (status, log)
            assert "Degraded" not in page, "the model runs in there"
            metrics = curl(f"http://127.0.0.1:{port}/metrics")[1]
            assert 'stage="embed"' in metrics, "a question was embedded"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.compare(trace, "runbook-query.service")
        trace = work / "out" / "ingest.trace"
        command = [*drop, strace, "-f", "-qq", "-o", trace, programs / "runbook-ingest", "--source", ROOT / "runbooks-sample", "--data", work / "state" / "data"]
        subprocess.run([str(c) for c in command], env=environment, cwd="/", check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.compare(trace, "runbook-ingest.service")

    def compare(self, trace, unit):
        text = trace.read_text(errors="replace")
        used = set(re.findall(r"^\d+\s+(\w+)\(", text, re.MULTILINE))
        # What strace's own shell and setpriv did before the program is the program's own start, too.
        forbidden = used - self.allowed_calls(unit)
        print(f"   {unit}: {len(used)} system calls used, forbidden of them: {sorted(forbidden) or 'none'}")
        assert not forbidden


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        checks = Checks(args.bin, args.out, scratch)
        for name in [n for n in dir(checks) if n.startswith("check_") and args.only in n]:
            started = time.monotonic()
            try:
                getattr(checks, name)()
                passed += 1
                print(f"ok   {name} ({time.monotonic() - started:.1f} s)", flush=True)
            except Exception:  # noqa: BLE001 - the next check says something else
                failed += 1
                print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

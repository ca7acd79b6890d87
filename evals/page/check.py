"""The page end to end in Chromium; run by evals/page-checks, which installs what this needs.

Every check is a function below whose name starts with `check_`. Exit 1 when one fails, after all have
run; the last line is `N passed, N failed`.
"""
import argparse
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

import xss

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]
ANSWERED = "restore last night's dump"
REFUSED = "how do I scale the EKS node group"
DESKTOP, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
SUGGEST_MS = 50


class Site:
    """A repository, its index and a daemon over it."""

    def __init__(self, binaries, directory):
        self.directory, self.binaries = pathlib.Path(directory), pathlib.Path(binaries)
        self.source, self.state = self.directory / "source", self.directory / "state"
        shutil.copytree(ROOT / "runbooks-sample", self.source)
        vectors = list(enumerate(xss.vectors()))
        (self.source / "hostile").mkdir()
        for at in range(0, len(vectors), 20):
            text = xss.document(vectors[at:at + 20])
            (self.source / "hostile" / f"page-{at:03}.md").write_text(text)
        (self.source / "hostile" / "<img src=x onerror=pwned()>.md").write_text("# <script>pwned()</script>\n\nText about quagga.\n")
        (self.source / "fill.md").write_text(
            "# Access\n\n## Open a shell on the toaster\n\nLog in to <host> as yourself:\n\n"
            "```bash\nssh <host>\nsudo -u $DB_OWNER psql\nrm -rf /srv/toaster/cache\n```\n")
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(self.source)]
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.source)], check=True)
        subprocess.run([*git, "remote", "add", "origin", "https://github.com/example/runbooks.git"], check=True)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", "one"], check=True)
        self.ingest()
        self.daemon = None

    def ingest(self):
        subprocess.run([self.binaries / "runbook-ingest", "--source", self.source, "--data", self.directory / "data"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self):
        self.daemon = subprocess.Popen(
            [self.binaries / "runbook-query", "serve", "--data", self.directory / "data", "--state", self.state,
             "--listen", "127.0.0.1:0", "--poll-s", "0.5"], stderr=subprocess.PIPE, text=True)
        for line in self.daemon.stderr:
            if found := re.search(r"listening on (http://\S+)", line):
                self.url = found[1]
                break
        else:
            raise SystemExit("the daemon ended")
        log = open(self.directory / "log", "a", encoding="utf-8")
        self.pump = subprocess.Popen(["cat"], stdin=self.daemon.stderr, stdout=log)

    def stop(self):
        if self.daemon:
            self.daemon.kill()
            self.daemon.wait()
            self.pump.wait()

    def reports(self):
        path = self.state / "feedback" / "reports.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Checks:
    def __init__(self, browser, site, out):
        self.browser, self.site, self.out = browser, site, out
        self.axe = Axe()

    @contextlib.contextmanager
    def page(self, path="/", viewport=DESKTOP, **options):
        """A page whose console, dialogs and requests to elsewhere are all failures."""
        options = {"color_scheme": "dark", **options}
        context = self.browser.new_context(viewport=viewport, **options)
        page = context.new_page()
        problems = []
        page.on("dialog", lambda d: (problems.append(f"dialog {d.message}"), d.dismiss()))
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.on("request", lambda r: problems.append(r.url) if not r.url.startswith(self.site.url) else None)
        page.expose_function("pwned", lambda: problems.append("pwned")) if options.get("java_script_enabled", True) else None
        page.problems = problems
        page.goto(self.site.url + path)
        try:
            yield page
            page.wait_for_timeout(50)
            assert not problems, problems
        finally:
            context.close()

    def shot(self, page, name):
        page.screenshot(path=self.out / f"{name}.png", full_page=True)

    def accessible(self, page):
        found = self.axe.run(page).response["violations"]
        bad = [(v["id"], v["impact"], [n["html"][:160] for n in v["nodes"]][:3]) for v in found]
        serious = [b for b in bad if b[1] in ("serious", "critical")]
        assert not serious, serious
        if bad:
            print("   minor:", [(b[0], b[1], b[2][:1]) for b in bad])

    # --- asking -------------------------------------------------------------------------------

    def check_keyboard_alone(self):
        with self.page() as page:
            assert page.evaluate("document.activeElement.id") == "ui:q", "the box has the focus"
            page.keyboard.type(ANSWERED)
            page.keyboard.press("Enter")
            page.wait_for_selector(".answer")
            assert "q=restore" in page.url
            self.shot(page, "answer")
            page.keyboard.press("/")
            assert page.evaluate("document.activeElement.id") == "ui:q"
            assert page.input_value("[id='ui:q']") == ANSWERED, "the slash is not typed"
            page.keyboard.type(REFUSED)
            page.keyboard.press("Enter")
            page.wait_for_selector(".refusal")
            page.go_back()
            page.wait_for_selector(".answer")
            assert page.input_value("[id='ui:q']") == ANSWERED
            # Everything that can be used is reached by Tab, and shows that it has the focus.
            seen = set()
            for _ in range(80):
                page.keyboard.press("Tab")
                seen.add(page.evaluate("document.activeElement.className + ' ' + document.activeElement.tagName"))
            assert any("copy BUTTON" in s for s in seen) and any("forge A" in s for s in seen), seen
            assert any("SUMMARY" in s for s in seen), seen

    def check_no_reload(self):
        with self.page() as page:
            page.evaluate("window.same = true")
            page.fill("[id='ui:q']", ANSWERED)
            page.click(".ask button")
            page.wait_for_selector(".answer")
            assert page.evaluate("window.same") is True
            assert ANSWERED in page.title()
            assert page.text_content("[id='ui:live']").startswith("Answer")

    def check_without_javascript(self):
        with self.page("/", java_script_enabled=False) as page:
            page.fill("[id='ui:q']", ANSWERED)
            page.press("[id='ui:q']", "Enter")
            page.wait_for_selector(".answer")
            text = page.inner_text("main")
            assert "restore-database.md" in text and "%" in text and "indexed" in text and " at " in text
            page.click("summary:has-text('Say more')")
            page.fill("[id='ui:note']", "without a script")
            page.fill("[id='ui:page']", "backups/restore-old.md")
            page.click("text=Report as wrong")
            page.wait_for_selector("h1:has-text('Thank you')")
            report = self.site.reports()[-1]
            assert report["note"] == "without a script" and report["page_indexed"] is True, report
            page.click("text=Back to the answer")
            page.wait_for_selector(".answer")

    def check_refusal(self):
        with self.page(f"/?q={REFUSED}") as page:
            text = page.inner_text("main")
            assert "I do not know" in text and "Nearest sections" in text and "Should this have an answer" in text
            page.click("summary:has-text('What was searched')")
            self.shot(page, "refusal")
            page.click(".places .heading >> nth=0")
            page.wait_for_selector(".reader")

    def check_request_refusal(self):
        with self.page("/?q=restart nginx for me") as page:
            text = page.inner_text("main")
            assert "I do not know" in text and "cannot act" in text, text

    def check_marks(self):
        with self.page("/?q=open a shell on the toaster") as page:
            assert page.locator("mark.fill").all_inner_texts().count("<host>") >= 2
            assert "$DB_OWNER" in page.inner_text(".note:has-text('Fill in')")
            assert page.inner_text(".line.danger").strip() == "rm -rf /srv/toaster/cache"
            assert "cannot be undone" in page.inner_text(".code .warn")
            self.shot(page, "marks")

    def check_copy(self):
        with self.page("/?q=open a shell on the toaster", permissions=["clipboard-read", "clipboard-write"]) as page:
            page.click(".code .copy")
            page.wait_for_selector(".copy:has-text('Copied')")
            text = page.evaluate("navigator.clipboard.readText()")
            assert text == "ssh <host>\nsudo -u $DB_OWNER psql\nrm -rf /srv/toaster/cache", repr(text)

    def check_forge_links(self):
        with self.page(f"/?q={ANSWERED}") as page:
            link = page.get_attribute(".places .forge >> nth=0", "href")
            assert re.fullmatch(r"https://github\.com/example/runbooks/blob/[0-9a-f]{40}/backups/.*#.+", link), link

    def check_suggestions(self):
        with self.page() as page:
            page.keyboard.type("restore the dum", delay=20)
            page.wait_for_selector(".near a")
            page.keyboard.press("ArrowDown")
            assert page.evaluate("document.activeElement.closest('.near') !== null")
            page.keyboard.press("Enter")
            page.wait_for_selector(".reader")
        with self.page() as page:
            script = "async (q) => { const t = performance.now(); await (await fetch('/v1/search?k=5&q=' + q)).json(); return performance.now() - t }"
            words = ["res", "restore", "restore the", "nginx", "nginx re", "disk fu", "postgres", "how do I re", "certificate", "port 80"]
            times = sorted(page.evaluate(script, w) for w in words * 3)
            print(f"   sections while typing: median {times[15]:.0f} ms, slowest {times[-1]:.0f} ms")
            assert times[15] < SUGGEST_MS, times

    def check_paste_of_lines(self):
        with self.page() as page:
            page.evaluate("""() => { const d = new DataTransfer(); d.setData('text', 'alert: disk\\nfull on app1');
                document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData: d, bubbles: true, cancelable: true })) }""")
            assert page.input_value("[id='ui:q']") == "alert: disk full on app1"

    # --- reading ------------------------------------------------------------------------------

    def check_reader(self):
        with self.page(f"/?q={ANSWERED}") as page:
            page.click(".trail a")
            page.wait_for_selector(".document")
            assert page.locator(".ln.cited, .line.cited").count() > 0
            box = page.locator("[id='cited-lines']").bounding_box()
            assert 0 <= box["y"] < DESKTOP["height"], box
            self.shot(page, "reader")
            page.click(".neighbours a:has-text('Next section')")
            assert page.url.endswith("#after-the-restore"), page.url
            page.click("text=Source")
            page.wait_for_selector(".source tr.cited")
            numbers = page.locator(".source tr.cited a").all_inner_texts()
            assert [int(n) for n in numbers] == list(range(int(numbers[0]), int(numbers[-1]) + 1))
            self.shot(page, "source")
        with self.page("/read/backups/restore-database.md#undo-a-restore") as page:
            top = page.locator("[id='undo-a-restore']").bounding_box()["y"]
            assert 0 <= top < DESKTOP["height"], top
            # The sections beside the one that the address names, there and nowhere else.
            shown = [b for b in page.locator(".beside").all() if b.is_visible()]
            assert len(shown) == 1, len(shown)
            shown[0].locator("a", has_text="Previous section").click()
            assert not page.url.endswith("#undo-a-restore"), page.url
            back = page.locator(":target + .beside a", has_text="Next section")
            assert back.is_visible()
            self.shot(page, "section")
            back.click()
            assert page.url.endswith("#undo-a-restore"), page.url
            page.locator(".document a", has_text="failover").first.click()
            page.wait_for_selector("h1:has-text('failover')")
        with self.page("/read/backups") as page:
            assert "/browse/backups" in page.url

    def check_browse(self):
        with self.page("/browse") as page:
            page.click("text=backups/")
            page.wait_for_selector("h1:has-text('backups')")
            self.shot(page, "browse")
            page.click(".tree a >> nth=0")
            page.wait_for_selector(".reader")

    def check_what_is_not_there(self):
        for path in ("/read/nowhere.md", "/browse/nowhere", "/read/..%2f..%2fetc%2fpasswd", "/read/%00", "/browse/..%2f"):
            with self.page("/") as page:
                response = page.request.get(self.site.url + path)
                assert response.status == 404, (path, response.status)
                assert "root:" not in response.text()

    # --- reporting ----------------------------------------------------------------------------

    def check_report(self):
        before = len(self.site.reports())
        with self.page(f"/?q={ANSWERED}") as page:
            page.click("text=Report as wrong")
            page.wait_for_selector(".report .done")
            self.shot(page, "reported")
        report = self.site.reports()[-1]
        assert len(self.site.reports()) == before + 1
        assert report["question"] == ANSWERED and report["verdict"] == "wrong" and report["remembered"] is True
        assert report["generation"] and report["citations"] and report["retrieved"] and report["signals"], report
        assert "127.0.0.1" not in json.dumps({k: v for k, v in report.items() if k not in ("retrieved", "citations")})

    def check_foreign_forms(self):
        """A page of another site cannot report."""
        body = "id=r0&verdict=wrong&question=x"
        for headers, status in (
            ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
            ({"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://evil.example"}, 403),
            ({"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}, 403),
            ({"Content-Type": "text/plain", "Origin": self.site.url}, 415),
        ):
            request = urllib.request.Request(self.site.url + "/v1/feedback", data=body.encode(), headers=headers)
            try:
                got = urllib.request.urlopen(request).status
            except urllib.error.HTTPError as e:
                got = e.code
            assert got == status, (headers, got)

    # --- how it looks, to whom ------------------------------------------------------------------

    def check_accessibility(self):
        pages = {"home": "/", "answer": f"/?q={ANSWERED}", "refusal": f"/?q={REFUSED}", "marks": "/?q=open a shell on the toaster",
                 "reader": "/read/backups/restore-database.md?lines=28-60", "source": "/read/hosts.md?view=source&lines=3-9",
                 "table": "/read/ports.md", "browse": "/browse", "status": "/status", "missing": "/read/nowhere.md",
                 "counted": "/?q=how many runbooks mention nginx"}
        for scheme in ("dark", "light"):
            for name, path in pages.items():
                with self.page("/", color_scheme=scheme) as page:
                    page.goto(self.site.url + path)
                    page.problems.clear()  # The browser tells a 404 in its console.
                    self.shot(page, f"{name}-{scheme}")
                    self.accessible(page)

    def check_phone(self):
        for name, path in (("home", "/"), ("answer", f"/?q={ANSWERED}"), ("refusal", f"/?q={REFUSED}"),
                           ("reader", "/read/backups/restore-database.md?lines=28-60"), ("table", "/read/ports.md"),
                           ("source", "/read/hosts.md?view=source"), ("status", "/status"), ("browse", "/browse")):
            with self.page(path, viewport=PHONE) as page:
                wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                self.shot(page, f"phone-{name}")
                assert wide <= 0, f"{name} scrolls sideways by {wide} px"
                self.accessible(page)

    def check_status(self):
        with self.page("/status") as page:
            text = page.inner_text("main")
            for word in ("Commit", "Generation", "Source checked", "Last update", "Calibration", REFUSED, "questions since the start"):
                assert word in text, word
            assert page.locator("svg .bar").count() > 5

    def check_security_headers(self):
        with self.page() as page:
            policy = page.request.get(self.site.url + "/").headers["content-security-policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
            text = page.content()
            assert not re.search(r"<script(?![^>]*src=)|\sstyle=|\son\w+=", text), "nothing inline"
            asset = re.search(r'href="(/assets/page-[0-9a-f]+\.css)"', text)[1]
            assert "immutable" in page.request.get(self.site.url + asset).headers["cache-control"]

    def check_nothing_runs(self):
        """No vector runs, with the security policy off as well: the sanitiser alone must hold."""
        total = len(xss.vectors())
        paths = [f"/read/hostile/page-{at:03}.md" for at in range(0, total, 20)]
        paths += [p + "?view=source" for p in paths[:2]]
        paths += ["/browse/hostile", "/read/hostile/%3Cimg%20src=x%20onerror=pwned()%3E.md", "/?q=quagga",
                  "/?q=<script>pwned()</script>", "/?q=\"><img src=x onerror=pwned()>", "/?scope=\"><script>pwned()</script>&q=x"]
        paths += [f"/?q=vector number {n} zebra{n}" for n in range(0, total, 6)]
        for bypass in (False, True):
            with self.page("/", bypass_csp=bypass) as page:
                page.evaluate("pwned()")
                assert page.problems == ["pwned"], "the alarm works"
                page.problems.clear()
                for path in paths:
                    page.goto(self.site.url + path)
                    handlers = page.evaluate("""() => [...document.querySelectorAll('*')].flatMap((e) =>
                        [...e.attributes].filter((a) => a.name.startsWith('on') || a.name === 'style' || a.name === 'srcdoc' ||
                            /^\\s*(javascript|data|vbscript|file|blob):/i.test(a.value)).map((a) => e.outerHTML.slice(0, 120)))""")
                    assert not handlers, (path, handlers)
                    strange = page.evaluate("""() => [...document.querySelectorAll('script, iframe, object, embed, svg, style, base, img, video, audio')]
                        .filter((e) => !e.closest('head') && !e.closest('figure.chart')).length""")
                    assert strange == 0, path
                    ids = page.evaluate("[...document.querySelectorAll('main [id^=\"ui:\"]')].map((e) => e.id)")
                    assert len(ids) == len(set(ids)) and "ui:q" not in ids, ids
                    page.evaluate("""() => document.querySelectorAll('main a').forEach((e) =>
                        ['mouseover', 'focus', 'pointerenter'].forEach((n) => e.dispatchEvent(new Event(n, { bubbles: true }))))""")
                    page.problems[:] = [p for p in page.problems if "404" not in p and "400" not in p]
                    assert not page.problems, (path, page.problems)
        print(f"   {total} vectors over {len(paths)} pages, with and without the policy")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        site = Site(args.bin, directory)
        try:
            site.start()
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            checks = Checks(browser, site, args.out)
            for name in [n for n in dir(checks) if n.startswith("check_") and args.only in n]:
                started = time.monotonic()
                try:
                    getattr(checks, name)()
                    passed += 1
                    print(f"ok   {name} ({time.monotonic() - started:.1f} s)", flush=True)
                except Exception:  # noqa: BLE001 - the next check says something else
                    failed += 1
                    print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
            browser.close()
        finally:
            site.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

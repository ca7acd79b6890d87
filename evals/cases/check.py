#!/usr/bin/env python3
"""Check the evaluation cases of this directory.

    python3 check.py [--corpora DIR] [--sample DIR] [FILE.jsonl ...]

Rules, each row:
  * valid JSON object, known keys, known `expect` and `reason`, id unique over all files,
    no question twice in one corpus (case and spacing ignored; follow-ups excepted)
  * `gold` (every entry): the file exists, the heading is the plain text of an ATX or setext
    heading outside code fences and comments, or the title for text before any heading
  * `must_contain`: every string is, byte for byte, within the text of every gold section
    (from the heading to the next one of the same or a higher level); a string that only a
    deeper subsection holds is reported as a warning
  * `must_not_contain`: no string is within the gold section's own text
  * `follow_up_to` names an earlier row of the same file
  * `scan`: {"pattern", "ignore_case", "files", "count"}: the list and the count are what a
    fixed-string search over the tree gives
  * `absent`: [{"re", "path"}]: the expression matches nowhere in the tree (or under the path)

Needs markdown-it-py. Trees that are not on this machine are skipped, and the run says so.
Exit 1 on any error.
"""
import argparse
import collections
import json
import os
import re
import sys

from markdown_it import MarkdownIt

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = {
    "id", "class", "question", "expect", "reason", "gold", "must_contain", "must_not_contain",
    "scope", "follow_up_to", "note", "corpus", "pasted", "scan", "absent", "route", "from",
}
REASONS = {None, "no_evidence", "action", "secret", "customer"}
EXTENSIONS = (".md", ".mdx", ".markdown", ".md.erb")
PARSER = MarkdownIt("commonmark").enable("table")


def plain(token):
    """Plain text of a heading: markup gone, {#id} gone."""
    out = []
    for child in token.children or []:
        if child.type in ("text", "code_inline"):
            out.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            out.append(" ")
        elif child.type == "image":
            out.append(child.content)
    text = re.sub(r"\s*\{[#.][^}]*\}\s*$", "", "".join(out))
    return re.sub(r"\s+", " ", text).strip()


def front_matter(lines):
    """(title or None, number of lines that the front matter takes)."""
    if not lines or lines[0].strip() not in ("---", "+++"):
        return None, 0
    fence = lines[0].strip()
    for i in range(1, len(lines)):
        if lines[i].strip() == fence:
            title = None
            for line in lines[1:i]:
                m = re.match(r"""title\s*[:=]\s*(.*?)\s*$""", line)
                if m:
                    title = m.group(1)
                    if len(title) >= 2 and title[0] == title[-1] and title[0] in "\"'":
                        title = title[1:-1]
                    break
            return title or None, i + 1
    return None, 0


class Document:
    def __init__(self, path):
        raw = open(path, "rb").read().decode("utf-8", "replace")
        raw = raw.lstrip("\ufeff").replace("\r\n", "\n")
        lines = raw.split("\n")
        title, skip = front_matter(lines)
        body = "\n".join(lines[skip:])
        self.lines = lines[skip:]
        self.heads = []  # (line, level, text)
        tokens = PARSER.parse(body)
        for i, t in enumerate(tokens):
            if t.type == "heading_open" and t.level == 0:
                self.heads.append((t.map[0], int(t.tag[1]), plain(tokens[i + 1])))
        if title is None:
            title = next((h[2] for h in self.heads if h[1] == 1), None)
        if not title:
            title = os.path.basename(path).split(".", 1)[0]
        self.title = title

    def sections(self, heading):
        """[(whole text, own text)] of the sections under that heading."""
        out = []
        n = len(self.lines)
        for i, (line, level, text) in enumerate(self.heads):
            if text != heading:
                continue
            own = self.heads[i + 1][0] if i + 1 < len(self.heads) else n
            whole = next((h[0] for h in self.heads[i + 1:] if h[1] <= level), n)
            out.append(("\n".join(self.lines[line:whole]), "\n".join(self.lines[line:own])))
        if not out and heading == self.title:
            end = self.heads[0][0] if self.heads else n
            text = "\n".join(self.lines[:end])
            out.append((text, text))
        return out


class Tree:
    def __init__(self, root):
        self.root = root
        self.docs = {}
        self.texts = None

    def doc(self, path):
        if path not in self.docs:
            full = os.path.join(self.root, path)
            self.docs[path] = Document(full) if os.path.isfile(full) else None
        return self.docs[path]

    def all_texts(self):
        if self.texts is None:
            self.texts = {}
            for base, dirs, files in os.walk(self.root):
                dirs.sort()
                for name in sorted(files):
                    if name.endswith(EXTENSIONS):
                        full = os.path.join(base, name)
                        rel = os.path.relpath(full, self.root)
                        self.texts[rel] = open(full, "rb").read().decode("utf-8", "replace")
        return self.texts


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--corpora", default="target/corpora", help="directory of the unpacked trees")
    ap.add_argument("--sample", default=os.path.join(HERE, "..", "..", "runbooks-sample"))
    ap.add_argument("files", nargs="*")
    args = ap.parse_args()
    files = args.files or [
        os.path.join(HERE, f) for f in ("sample.jsonl", "trees.jsonl", "near-miss.jsonl", "requests.jsonl")
    ]
    errors, warnings, skipped = [], [], collections.Counter()
    trees, ids, questions = {}, {}, {}
    for file in files:
        base = os.path.basename(file)
        classes, refused, pasted, seen = collections.Counter(), collections.Counter(), 0, set()
        for number, line in enumerate(open(file, encoding="utf-8"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as e:
                errors.append(f"{base}:{number}: not JSON: {e}")
                continue
            rid = row.get("id")
            where = f"{base}:{number} {rid}"

            def err(text):
                errors.append(f"{where}: {text}")

            for key in set(row) - KEYS:
                err(f"unknown key {key!r}")
            if not rid or rid in ids:
                err(f"id missing or used twice ({ids.get(rid)})")
            ids[rid] = where
            question = row.get("question") or ""
            if not question.strip():
                err("no question")
            corpus = row.get("corpus") or ("sample" if base != "requests.jsonl" else "requests")
            if not row.get("follow_up_to"):
                key = (corpus, re.sub(r"\W+", " ", question.lower()).strip())
                if key in questions:
                    err(f"same question as {questions[key]}")
                questions[key] = rid
            classes[row.get("class")] += 1
            pasted += bool(row.get("pasted"))
            expect, reason = row.get("expect"), row.get("reason")
            if expect not in ("answer", "refuse"):
                err(f"expect {expect!r}")
            if reason not in REASONS or (expect == "refuse") != (reason is not None):
                err(f"reason {reason!r} with expect {expect!r}")
            if row.get("follow_up_to") and row["follow_up_to"] not in seen:
                err(f"follow_up_to {row['follow_up_to']!r} is not an earlier row")
            seen.add(rid)
            if base == "requests.jsonl":
                continue
            if corpus == "sample":
                root = args.sample
            else:
                root = os.path.join(args.corpora, corpus)
            if not os.path.isdir(root):
                skipped[corpus] += 1
                continue
            tree = trees.setdefault(corpus, Tree(root))
            gold, must = row.get("gold") or [], row.get("must_contain") or []
            if expect == "refuse":
                refused[reason] += 1
                if must:
                    err("a refusal with must_contain")
            elif not gold:
                err("answerable without gold")
            elif not must:
                err("answerable without must_contain")
            for g in gold:
                doc = tree.doc(g["path"])
                if doc is None:
                    err(f"no file {g['path']!r}")
                    continue
                found = doc.sections(g["heading"])
                if not found:
                    err(f"no heading {g['heading']!r} in {g['path']}")
                    continue
                if expect == "refuse":
                    continue
                for m in must:
                    if not any(m in whole for whole, _ in found):
                        err(f"must_contain {m!r} is not in {g['path']} # {g['heading']}")
                    elif not any(m in own for _, own in found):
                        warnings.append(f"{where}: {m!r} only in a subsection of {g['path']} # {g['heading']}")
                for m in row.get("must_not_contain") or []:
                    if any(m in own for _, own in found):
                        err(f"must_not_contain {m!r} is in {g['path']} # {g['heading']}")
                scope = row.get("scope")
                if scope and not g["path"].startswith(scope):
                    err(f"gold {g['path']} is outside the scope {scope!r}")
            scan = row.get("scan")
            if scan:
                pattern = scan["pattern"]
                fold = scan.get("ignore_case")
                have = sorted(
                    p for p, t in tree.all_texts().items()
                    if (pattern.lower() in t.lower() if fold else pattern in t)
                    and p.startswith(row.get("scope") or "")
                )
                if scan.get("files") is not None and sorted(scan["files"]) != have:
                    err(f"scan {pattern!r}: the tree has {have}")
                if scan["count"] != len(have):
                    err(f"scan {pattern!r}: the tree has {len(have)} files")
            for a in row.get("absent") or []:
                rx = re.compile(a["re"], re.I)
                for p, t in tree.all_texts().items():
                    if p.startswith(a.get("path") or ""):
                        m = rx.search(t)
                        if m:
                            n = t.count("\n", 0, m.start()) + 1
                            err(f"absent {a['re']!r} matches {p}:{n}: {m.group(0)[:60]!r}")
                            break
        total = sum(classes.values())
        print(f"{base}: {total} rows, {pasted} pasted")
        for name, n in sorted(classes.items(), key=lambda x: (-x[1], str(x[0]))):
            print(f"    {name}: {n}")
    for name, n in skipped.items():
        print(f"skipped {n} rows: no tree {name!r}")
    for w in warnings:
        print("warning:", w)
    for e in errors:
        print("error:", e, file=sys.stderr)
    print(f"{len(errors)} errors, {len(warnings)} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Write the gate's signals for the project's own cases to evals/fit/signals.jsonl.

usage: evals/fit/export.py [--corpora DIR] [--data DIR] [CASES_FILE...]

Each corpus is ingested with target/release/runbook-ingest into a data directory below --data
(default target/fit) and asked through a daemon, once with vectors and once without. A row holds the
case's id and class, whether the best section is gold, and the signals: no text of the corpora.
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPORA = ["gitlab-com-runbooks", "synapse-docs", "prometheus-operator-runbooks", "scoutflo-sre-playbooks"]
BIN = ROOT / "target/release"


def plain(text):
    return " ".join(text.translate(str.maketrans("", "", "`*_")).split()).lower()


def cases(files):
    for file in files:
        for line in open(file, encoding="utf-8"):
            case = json.loads(line)
            if not case.get("follow_up_to") and not case.get("scope"):
                yield case


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask_all(data, embedder, rows):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [BIN / "runbook-query", "serve", "--data", data, "--listen", f"127.0.0.1:{port}"]
    daemon = subprocess.Popen(command + (["--embedder", "none"] if embedder == "none" else []), stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(url + "/readyz")
                break
            except OSError:
                time.sleep(0.1)
        for row in rows:
            body = json.dumps({"question": row["question"], "explain": True}).encode()
            request = urllib.request.Request(url + "/v1/ask", body, {"Content-Type": "application/json"})
            yield row, json.load(urllib.request.urlopen(request))
    finally:
        daemon.terminate()
        daemon.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpora", default=str(ROOT / "target/corpora"))
    parser.add_argument("--data", default=str(ROOT / "target/fit"))
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    files = args.files or [ROOT / "evals/cases" / f for f in ("sample.jsonl", "trees.jsonl", "near-miss.jsonl")]
    rows = list(cases(files))
    out = []
    for name in ["runbooks-sample", *CORPORA]:
        source = ROOT / name if name == "runbooks-sample" else pathlib.Path(args.corpora) / name
        if not source.is_dir():
            sys.exit(f"{source} is missing: unpack the shared corpora there")
        data = pathlib.Path(args.data) / name
        subprocess.run([BIN / "runbook-ingest", "--source", source, "--data", data], check=True, stdout=sys.stderr)
        own = [r for r in rows if (r.get("corpus") or "runbooks-sample") == name]
        for embedder in ("default", "none"):
            for row, reply in ask_all(data, embedder, own):
                cited = reply["citations"] or (reply["refusal"] or {}).get("nearest") or []
                if not cited or not reply["explain"].get("signals"):
                    continue
                top = (cited[0]["path"], plain(cited[0]["heading"]))
                gold = [(g["path"], plain(g["heading"])) for g in row["gold"]]
                out.append({
                    "id": row["id"], "corpus": name, "class": row["class"], "expect": row["expect"],
                    "embedder": embedder, "gold_section": top in gold, "gold_page": top[0] in [g[0] for g in gold],
                    "signals": {s["signal"]: s["value"] for s in reply["explain"]["signals"]},
                })
    path = ROOT / "evals/fit/signals.jsonl"
    path.write_text("".join(json.dumps(o) + "\n" for o in out), encoding="utf-8")
    print(f"{len(out)} rows in {os.path.relpath(path)}", file=sys.stderr)


main()

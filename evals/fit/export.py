#!/usr/bin/env python3
"""Write the gate's signals of judged questions to evals/fit/signals.jsonl.

usage: evals/fit/export.py [--corpora DIR] [--datasets DIR] [--cache DIR]

Runs `runbook-eval candidates --signals` over the project's own cases and the collections below, with
vectors and without. A row holds the question's id, what it is, whether the best section is gold, its
signals, and, where the corpus holds a gold section, the signals once more with the gold sections left
out: the same question to a corpus that does not hold its answer. No text of a corpus or a question.

The on-call questions and clapnq-dev are not exported: they are what the fit is reported on.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVAL = ROOT / "target/release/runbook-eval"
CASES = {
    "sample.jsonl": ["runbooks-sample"],
    "trees.jsonl": ["gitlab-com-runbooks", "synapse-docs", "prometheus-operator-runbooks"],
    "near-miss.jsonl": ["scoutflo-sre-playbooks"],
}
COLLECTIONS = ["ord-qa", "anthropic-docs", "mtragun-pooled"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpora", type=pathlib.Path, default=ROOT / "target/corpora")
    parser.add_argument("--datasets", type=pathlib.Path, default=ROOT.parent / "shared/datasets")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "target/evals")
    args = parser.parse_args()
    out = []
    for embedder in ("default", "none"):
        options = ["--signals", "--cache", args.cache if embedder == "default" else f"{args.cache}-none"]
        options += ["--embedder", "none"] if embedder == "none" else []
        runs = [
            ["--questions", ROOT / "evals/cases" / file, "--corpus", ROOT / name if name == "runbooks-sample" else args.corpora / name]
            for file, names in CASES.items()
            for name in names
        ]
        runs += [["--dataset", args.datasets / name] for name in COLLECTIONS]
        for run in runs:
            print(*map(str, run), embedder, file=sys.stderr)
            lines = subprocess.run([EVAL, "candidates", *options, *run], check=True, stdout=subprocess.PIPE, text=True).stdout
            for line in lines.splitlines():
                out.append({"embedder": embedder, **json.loads(line)})
    path = ROOT / "evals/fit/signals.jsonl"
    path.write_text("".join(json.dumps(o, sort_keys=True) + "\n" for o in out), encoding="utf-8")
    print(f"{len(out)} rows in evals/fit/signals.jsonl", file=sys.stderr)


main()

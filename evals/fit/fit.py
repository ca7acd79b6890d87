#!/usr/bin/env python3
"""Fit the gate on evals/fit/signals.jsonl and write shared/src/retrieval/gate_model.json.

usage: evals/fit/fit.py [--check | --cross-validate FILE]      needs numpy and scikit-learn

--cross-validate takes what `runbook-eval gate --signals` prints of a collection, fits the same model on
nine tenths of it and reports on the last, and writes nothing.

Positive: the corpus holds the answer and the best section is gold. Negative: the corpus does not hold
it (near misses, what is out of scope), or the gold sections of a positive row were left out of the
search, so that the next best ones had to do: near as many as there are positive ones. Questions of the project's cases whose best section is on another page than
any gold one are negative too; those on the right page are left out, and so are such questions of the
collections, whose judgements are not complete. Requests, counts, lists, scopes and follow-ups are
left out: another part of the engine decides them.

The model is logistic regression on standardised signals; a signal must have the sign that it is named
for, or it is dropped. Every set weighs the same. Printed are, out of fold: each set with the model
fitted on the others; and five folds over all questions, a question's rows in one fold.
"""
import collections
import hashlib
import json
import pathlib
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL_SHA = "bdb6be13c3204292ffa949eea193cedde3a9382b1cb8f62bfb7b86f5a3198893"
OWN = "cases"
LEFT_OUT = {"aggregation", "negative_existence", "membership", "entity_count", "action", "secret", "customer", "scope", "follow_up"}
NEGATIVE = {"missing_weight"}
DENSE = {"body_cosine", "cosine_z", "cosine_gap", "span_cosine", "span_gap"}
C = 0.1
FOLDS = 5


def load(embedder):
    x, y, sets, questions, names = [], [], [], [], None
    for line in open(ROOT / "evals/fit/signals.jsonl", encoding="utf-8"):
        row = json.loads(line)
        own = "class" in row
        if row["embedder"] != embedder or (own and row["class"] in LEFT_OUT) or not row["signals"] or row["kind"] == "unjudged":
            continue
        names = list(row["signals"])
        samples = []
        if row["kind"] != "answerable":
            samples.append((row["signals"], 0))
        elif row["gold_section"]:
            samples += [(row["signals"], 1), (row["left_out"], 0)]
        elif own and not row["gold_page"]:
            samples.append((row["signals"], 0))
        for signals, label in samples:
            if signals is None:
                continue
            x.append([signals[n] for n in names])
            y.append(label)
            sets.append(OWN if own else row["group"])
            questions.append(row["id"])
    return np.array(x), np.array(y), np.array(sets), np.array(questions), names


def ece(p, y, bins=10):
    """Expected calibration error over bins of equal mass (Naeini et al. 2015)."""
    order = np.argsort(p, kind="stable")
    return sum(abs(p[b].mean() - y[b].mean()) * len(b) / len(p) for b in np.array_split(order, bins) if len(b))


def report(name, y, p):
    print(f"  {name:24} n {len(y):5} positive {y.sum():4}  AUC {roc_auc_score(y, p):.3f}  ECE {ece(p, y):.3f}  Brier {brier_score_loss(y, p):.3f}")


def logistic(z, y, sets):
    count = collections.Counter(sets)
    weight = np.array([len(sets) / len(count) / count[s] for s in sets])
    return LogisticRegression(C=C, max_iter=1000).fit(z, y, sample_weight=weight)


def fit(embedder):
    x, y, sets, questions, names = load(embedder)
    used = [n for n in names if embedder == "default" or n not in DENSE]
    while True:
        columns = [names.index(u) for u in used]
        mean, scale = x[:, columns].mean(0), x[:, columns].std(0) + 1e-9
        z = (x[:, columns] - mean) / scale
        model = logistic(z, y, sets)
        wrong = [u for u, w in zip(used, model.coef_[0]) if (w < 0) != (u in NEGATIVE)]
        if not wrong:
            break
        used = [u for u in used if u not in wrong]
    for name in sorted(set(sets)):
        test = sets == name
        p = logistic(z[~test], y[~test], sets[~test]).predict_proba(z[test])[:, 1]
        report(f"{name}, fitted elsewhere", y[test], p)
    fold = np.array([int(hashlib.sha256(q.encode()).hexdigest(), 16) % FOLDS for q in questions])
    out = np.zeros(len(y))
    for n in range(FOLDS):
        test = fold == n
        out[test] = logistic(z[~test], y[~test], sets[~test]).predict_proba(z[test])[:, 1]
    report(f"all, {FOLDS} folds", y, out)
    for floor in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
        print(f"  floor {floor}: precision {np.mean(y[out >= floor]):.2f}, answered {np.mean(out[y == 1] >= floor):.2f}, falsely answered {np.mean(out[y == 0] >= floor):.2f}")
    print("  weights of standardised signals", {u: round(float(w), 2) for u, w in zip(used, model.coef_[0])})
    weights = {n: 0.0 for n in names} | {u: round(float(w), 4) for u, w in zip(used, model.coef_[0] / scale)}
    bias = float(model.intercept_[0] - (model.coef_[0] / scale * mean).sum())
    return {
        "embedder_sha256": MODEL_SHA if embedder == "default" else None,
        "fitted_on": f"{len(y)} rows of {len(set(questions))} questions: {', '.join(sorted(set(sets)))}",
        "bias": round(bias, 4),
        "weights": weights,
        "score_floor": FLOOR,
        "closest_floor": CLOSEST_FLOOR,
    }


def cross_validate(file):
    rows = [json.loads(line) for line in open(file, encoding="utf-8")]
    x = np.array([[s["value"] for s in r["signals"]] for r in rows])
    y = np.array([int(r["label"]) for r in rows])
    z = (x - x.mean(0)) / (x.std(0) + 1e-9)
    fold = np.array([int(hashlib.sha256(r["id"].encode()).hexdigest(), 16) % 10 for r in rows])
    out = np.zeros(len(y))
    for n in range(10):
        test = fold == n
        out[test] = LogisticRegression(C=C, max_iter=1000).fit(z[~test], y[~test]).predict_proba(z[test])[:, 1]
    report(f"{pathlib.Path(file).name}, 10 folds", y, out)


FLOOR = 0.4
CLOSEST_FLOOR = 0.04


def main():
    if "--cross-validate" in sys.argv:
        cross_validate(sys.argv[sys.argv.index("--cross-validate") + 1])
        return
    models = []
    for embedder in ("default", "none"):
        print(embedder)
        models.append(fit(embedder))
    text = json.dumps(models, indent=2) + "\n"
    path = ROOT / "shared/src/retrieval/gate_model.json"
    if "--check" in sys.argv:
        sys.exit(0 if path.read_text() == text else f"{path} is not what the data gives")
    path.write_text(text)


main()

#!/usr/bin/env python3
"""Fit the gate's logistic model on evals/fit/signals.jsonl and write shared/src/retrieval/gate_model.json.

usage: evals/fit/fit.py [--check]      needs numpy and scikit-learn

A row is positive when the case can be answered and the best section is gold, or on a gold page;
negative when the corpus does not hold the answer (near misses and what is out of scope). Requests
that the request gate refuses, aggregation and follow-ups are left out. Signals are few and each has
the sign that it must have: a model with one of the wrong sign is not written. Prints the AUC of each
corpus when the model is fitted on the others, and calibration of those out-of-fold predictions.
"""
import json
import pathlib
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL_SHA = "bdb6be13c3204292ffa949eea193cedde3a9382b1cb8f62bfb7b86f5a3198893"
LEFT_OUT = {"aggregation", "negative_existence", "action", "secret", "customer", "scope", "follow_up"}
USED = {
    "default": ["known_share", "bm25_margin", "cosine", "agreement", "answer_type", "missing_weight", "page_share"],
    "none": ["coverage", "known_share", "bm25_margin", "bm25_share", "answer_type", "missing_weight", "page_share"],
}
NEGATIVE = {"missing_weight"}


def load(embedder):
    x, y, groups, names = [], [], [], None
    for line in open(ROOT / "evals/fit/signals.jsonl", encoding="utf-8"):
        row = json.loads(line)
        if row["embedder"] != embedder or row["class"] in LEFT_OUT:
            continue
        if row["expect"] == "answer" and not row["gold_page"]:
            continue
        names = list(row["signals"])
        x.append([row["signals"][n] for n in names])
        y.append(int(row["expect"] == "answer"))
        groups.append(row["corpus"])
    return np.array(x), np.array(y), np.array(groups), names


def ece(p, y, bins=10):
    order = np.argsort(p)
    return sum(abs(p[b].mean() - y[b].mean()) * len(b) / len(p) for b in np.array_split(order, bins) if len(b))


def fit(embedder):
    x, y, groups, names = load(embedder)
    used = list(USED[embedder])
    while True:
        columns = [names.index(u) for u in used]
        mean, scale = x[:, columns].mean(0), x[:, columns].std(0) + 1e-9
        z = (x[:, columns] - mean) / scale
        model = LogisticRegression(C=0.3).fit(z, y)
        wrong = [u for u, w in zip(used, model.coef_[0]) if (w < 0) != (u in NEGATIVE)]
        if not wrong:
            break
        used = [u for u in used if u not in wrong]
    out = np.zeros(len(y))
    for group in sorted(set(groups)):
        test = groups == group
        fold = LogisticRegression(C=0.3).fit(z[~test], y[~test])
        out[test] = fold.predict_proba(z[test])[:, 1]
        print(f"  {group}: n {test.sum()}, AUC {roc_auc_score(y[test], out[test]):.3f} fitted on the others")
    print(f"  out of fold: n {len(y)}, AUC {roc_auc_score(y, out):.3f}, ECE {ece(out, y):.3f}, Brier {brier_score_loss(y, out):.3f}")
    for floor in (0.3, 0.4, 0.5, 0.6, 0.7):
        print(f"  floor {floor}: answered {np.mean(out[y == 1] >= floor):.2f}, falsely answered {np.mean(out[y == 0] >= floor):.2f}")
    weights = np.zeros(len(names))
    weights[columns] = model.coef_[0] / scale
    bias = float(model.intercept_[0] - (model.coef_[0] / scale * mean).sum())
    print("  weights", {u: round(float(weights[c]), 3) for u, c in zip(used, columns)})
    return {
        "embedder_sha256": MODEL_SHA if embedder == "default" else None,
        "fitted_on": f"{len(y)} cases of evals/cases over {len(set(groups))} trees",
        "bias": round(bias, 4),
        "weights": [round(float(w), 4) for w in weights],
        "score_floor": 0.5,
        "closest_floor": 0.2,
    }


def main():
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

#!/usr/bin/env python3
"""Try learned rankers against the linear one in force: what was tried and dropped.

usage: evals/fit/rankers.py FILE [FILE ...]     needs numpy, scikit-learn and lightgbm

Each FILE is what `runbook-eval candidates` prints of one set of questions. Every set is ranked by models
fitted on the others: a pairwise logistic model and LambdaMART (Burges 2010) over the ranker's features and
those of title, headings and length. Printed are hit@1 and hit@5 of the first 30 sections.
"""
import json
import pathlib
import re
import sys

import lightgbm
import numpy as np
from sklearn.linear_model import LogisticRegression

FIRST = 30
STOP = set("a an the is are do does i how what to of in on for and or my we it with when why which can from at be".split())


def stems(text):
    return {w[:5] for w in re.findall(r"[a-z0-9]+", text.lower()) if w not in STOP}


def features(question, rows):
    raw = np.maximum(np.array([r["f"] for r in rows], float), 0)
    scaled = raw / np.maximum(raw.max(0), 1e-6)
    asked = stems(question)
    more = []
    for r in rows:
        trail = r["trail"].split("\n")
        parts = [stems(r["heading"]), stems(trail[0]), stems(r["trail"])]
        more.append(
            [len(p & asked) / max(1, len(p)) for p in parts]
            + [len(p & asked) / max(1, len(asked)) for p in parts]
            + [np.log1p(len(r["text"])), len(trail), "```" in r["text"], r["fused"]]
        )
    return np.hstack([scaled, raw, np.array(more, float)])


def load(file):
    out = []
    for line in open(file, encoding="utf-8"):
        question = json.loads(line)
        rows = question["rows"][:FIRST]
        if question["kind"] == "answerable" and rows:
            out.append((features(question["question"], rows), np.array([r["gold"] > 0 for r in rows])))
    return out


def hits(questions, score):
    first = [gold[np.argsort(-score(x), kind="stable")] for x, gold in questions]
    return f"{np.mean([g[:1].any() for g in first]):.3f} {np.mean([g[:5].any() for g in first]):.3f}"


def pairwise(sets):
    pairs, weights = [], []
    for questions in sets:
        for x, gold in questions:
            for good in np.flatnonzero(gold)[:3]:
                for bad in np.flatnonzero(~gold)[:15]:
                    pairs.append(x[good] - x[bad])
                    weights.append(1 / len(questions))
    pairs = np.array(pairs)
    scale = pairs.std(0) + 1e-9
    model = LogisticRegression(C=0.1, fit_intercept=False, max_iter=500)
    weights = np.tile(weights, 2) / np.mean(weights)
    model.fit(np.vstack([pairs / scale, -pairs / scale]), [1] * len(pairs) + [0] * len(pairs), sample_weight=weights)
    return lambda x: x @ (model.coef_[0] / scale)


def lambdamart(sets):
    x = np.vstack([x for questions in sets for x, _ in questions])
    y = np.concatenate([gold for questions in sets for _, gold in questions]).astype(int)
    group = [len(gold) for questions in sets for _, gold in questions]
    weight = np.concatenate([np.full(len(gold), 1 / len(questions)) for questions in sets for _, gold in questions])
    model = lightgbm.LGBMRanker(n_estimators=60, num_leaves=4, learning_rate=0.05, min_child_samples=30, subsample=0.8, subsample_freq=1, colsample_bytree=0.6, reg_lambda=5, verbose=-1, random_state=0, n_jobs=1)
    model.fit(x, y, group=group, sample_weight=weight / weight.mean())
    return model.predict


def main():
    sets = {pathlib.Path(f).stem: load(f) for f in sys.argv[1:]}
    sets = {name: questions for name, questions in sets.items() if questions}
    print("| Set | Questions | in force, hit@1, @5 | pairwise logistic | LambdaMART |\n|---|---|---|---|---|")
    for name, questions in sets.items():
        others = [q for other, q in sets.items() if other != name]
        print(f"| {name} | {len(questions)} | {hits(questions, lambda x: x[:, -1])} | {hits(questions, pairwise(others))} | {hits(questions, lambdamart(others))} |")


main()

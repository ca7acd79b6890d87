#!/usr/bin/env python3
"""How the guard of /v1/cite judges our own answers, and the same with one word changed.

usage: cite-check.py URL CASES.jsonl     (a daemon over the tree that the cases are about)

Prints how many answers are supported, and of how many with a flag, path, host or number changed the guard says
that they are not. Exit status 1 when an answer of ours is not supported.
"""

import json
import random
import re
import sys
import urllib.request

CHANGES = [
    ("flag", r"(?<![\w-])--[a-z][\w-]+", lambda word: word + "x"),
    ("path", r"/(?:etc|var|srv|opt|usr)/[\w./-]+\w", lambda word: word + "2"),
    ("host", r"\b[a-z]+\d\b", lambda word: word[:-1] + "9"),
    ("number", r"(?<![\w.:/-])\d{2,5}(?![\w.:/-])", lambda word: str(int(word) + 7)),
]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    url, choose = sys.argv[1].rstrip("/"), random.Random(7)
    supported = answers = caught = changed = 0
    for line in open(sys.argv[2], encoding="utf-8"):
        case = json.loads(line)
        reply = post(f"{url}/v1/ask", {"question": case["question"]})
        if reply["refusal"] or "scan" in reply["route"]:
            continue

        def verdict(answer):
            return post(f"{url}/v1/cite", {"session": reply["session"], "answer": answer})

        answers += 1
        found = verdict(reply["answer"])
        supported += found["verdict"] == "supported"
        if found["verdict"] != "supported":
            print(f"{case['id']}: {found['verdict']}: {found['unsupported'][:3]}")
        for kind, pattern, change in CHANGES:
            places = list(re.finditer(pattern, reply["answer"]))
            if not places:
                continue
            place = choose.choice(places)
            word = change(place.group(0))
            if word in reply["answer"]:
                continue
            changed += 1
            text = reply["answer"][: place.start()] + word + reply["answer"][place.end() :]
            if verdict(text)["verdict"] == "unsupported":
                caught += 1
            else:
                print(f"{case['id']}: {kind} {place.group(0)} as {word} was not told")
    print(f"answers of ours that are supported: {supported}/{answers}; changed ones that are not: {caught}/{changed}")
    return 0 if supported == answers else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Prints the crates that are linked into the programs, with their licences and their notices.

Reads `cargo metadata` and the licence files that the crates bring along; equal texts are printed once.
"""
import collections
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTICE = re.compile(r"^(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT|UNLICENSE)", re.IGNORECASE)


def linked():
    """The packages that are reached from ours without build and dev dependencies."""
    host = next(line.split()[1] for line in subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout.splitlines()
                if line.startswith("host:"))
    done = subprocess.run(["cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", host],
                          cwd=ROOT, capture_output=True, text=True, check=True)
    metadata = json.loads(done.stdout)
    nodes = {n["id"]: n for n in metadata["resolve"]["nodes"]}
    ours = set(metadata["workspace_members"])
    seen, todo = set(), list(ours)
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        todo += [d["pkg"] for d in nodes[at]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
    return sorted((p for p in metadata["packages"] if p["id"] in seen - ours), key=lambda p: (p["name"], p["version"]))


def main():
    texts = collections.defaultdict(list)
    print("Rust crates that are linked into the programs of this package, with the licences that they name.\n")
    for package in linked():
        name = f"{package['name']} {package['version']}"
        print(f"{name}: {package['license'] or 'see its licence file'}")
        for file in sorted(pathlib.Path(package["manifest_path"]).parent.iterdir()):
            if file.is_file() and NOTICE.match(file.name):
                texts[file.read_text(errors="replace").strip().replace("\r\n", "\n")].append(f"{name} ({file.name})")
    for text, names in texts.items():
        print("\n" + "=" * 80 + "\n" + "\n".join(names) + "\n" + "-" * 80 + "\n" + text)


if __name__ == "__main__":
    main()

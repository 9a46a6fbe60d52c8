#!/usr/bin/env python3
"""Puts the same load on linserve by both of its protocols, in turns, and prints medians.

The sequences' lengths are log-normal; every request holds one and gets its mean-pooled embedding.
"""

import argparse
import json
import statistics
import sys
import tempfile

from serve import LENGTHS, ROOT, W1, Server, init_model, output_of


def arguments(description):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concurrency", default="1,8,32")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu", help="of linserve")
    parser.add_argument("--dtype", default="f32", help="of linserve")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    return parser.parse_args()


def load_words(options, target, protocol, lengths, *more):
    return [f"{options.bin}/linserve-client", "--target", target, "--protocol", protocol,
            "--vocabulary", str(W1["num_tokens"]), "load", "--model", "w1", "--lengths", lengths,
            "--json", "-", *more]


def ways_of(linserve):
    """By name: target, protocol, lengths, and the share of tokens that are true ones."""
    return {"linserve, native": (linserve.grpc, "linserve", LENGTHS, 1),
            "linserve, OIP": (linserve.grpc, "oip", LENGTHS, 1)}


def measure(options, ways):
    first = next(iter(ways))
    for concurrency in options.concurrency.split(","):
        figures = {way: [] for way in ways}
        for turn in range(options.rounds):
            # Every second round the other way round: whoever comes second finds the machine warm.
            for way in list(ways)[::1 if turn % 2 == 0 else -1]:
                target, protocol, lengths, share = ways[way]
                report = json.loads(output_of(*load_words(
                    options, target, protocol, lengths, "--concurrency", concurrency,
                    "--duration", str(options.seconds))))
                if report["request_errors"]:
                    sys.exit(f"{way}: {report['first_error']}")
                figures[way].append((report["tokens_per_second"] * share,
                                     report["latency_ms"]["p50"], report["latency_ms"]["p99"]))
        print(f"concurrency {concurrency}{'tokens/s':>30}{'p50 ms':>10}{'p99 ms':>10}"
              f"{'over native':>13}", flush=True)
        for way, rows in figures.items():
            rate, p50, p99 = (statistics.median(column) for column in zip(*rows))
            over = statistics.median(row[0] / native[0] for row, native in zip(rows, figures[first]))
            print(f"  {way:28}{rate:11.0f}{p50:10.2f}{p99:10.2f}{over:13.3f}", flush=True)


def main():
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as repository:
        init_model(options, f"{repository}/w1")
        linserve = Server(options, repository)
        try:
            measure(options, ways_of(linserve))
        finally:
            linserve.stop()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures what long sequences cost short ones that come meanwhile, and these them: short requests in
an open loop beside none, some and many long ones in flight, and the long ones with and without them,
interleaved. Prints medians of the rounds. With several --bin their servers take turns.
"""

import argparse
import json
import statistics
import subprocess
import tempfile

from serve import ROOT, W1, Server, init_model


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architecture", default="linformer.LinformerLM")
    parser.add_argument("--params", default=json.dumps(W1 | {"seq_len": 4096}), help="as JSON")
    parser.add_argument("--in-flight", default="0,1,8,64", help="long ones")
    parser.add_argument("--long", type=int, default=4096, help="rows of a long one")
    parser.add_argument("--short", type=int, default=64, help="rows of a short one")
    parser.add_argument("--rate", default="10", help="short ones a second")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--bin", action="append", help="(default: this build's)")
    options = parser.parse_args()
    options.bins = options.bin or [str(ROOT / "build/release/bin")]
    return options


def load(options, server, length, *load):
    """A load of requests of one sequence of this length, which begins now."""
    return subprocess.Popen(
        [f"{options.bin}/linserve-client", "--target", server.grpc, "--timeout", "600", "load",
         "--json", "-", "--pooling", "mean", "--lengths", f"fixed:{length}", "--duration",
         str(options.seconds), "--warmup", "2", *load],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def report(process):
    found = json.loads(process.communicate()[0])
    if found["first_error"]:
        raise SystemExit(f"a request failed: {found['first_error']}")
    return found


def measure(options, server, in_flight, cell):
    short = ("--rate", options.rate)
    long = ("--concurrency", str(in_flight))
    if in_flight > 0:
        alone = report(load(options, server, options.long, *long))
        cell["long alone"].append(alone["tokens_per_second"])
        beside = load(options, server, options.long, *long)
    latency = report(load(options, server, options.short, *short))["latency_ms"]
    cell["p50"].append(latency["p50"])
    cell["p99"].append(latency["p99"])
    if in_flight > 0:
        cell["long"].append(report(beside)["tokens_per_second"])


def table(cells):
    alone = statistics.median(cells[min(cells)]["p99"])
    print(f"{'long in flight':>14} {'short p50':>10} {'p99':>8} {'of alone':>8} {'long tokens/s':>14}"
          f" {'without short':>13} {'share':>6}")
    for in_flight, cell in cells.items():
        p50, p99 = (statistics.median(cell[name]) for name in ("p50", "p99"))
        line = f"{in_flight:14} {p50:7.1f} ms {p99:5.0f} ms {p99 / alone:6.1f} x"
        if in_flight > 0:
            shares = [beside / alone for beside, alone in zip(cell["long"], cell["long alone"])]
            line += (f" {statistics.median(cell['long']):14.0f}"
                     f" {statistics.median(cell['long alone']):13.0f}"
                     f" {statistics.median(shares):6.2f}")
        print(line, flush=True)


def main():
    options = arguments()
    counts = [int(count) for count in options.in_flight.split(",")]
    cells = {place: {count: {"p50": [], "p99": [], "long": [], "long alone": []} for count in counts}
             for place in options.bins}
    with tempfile.TemporaryDirectory() as repository:
        options.bin = options.bins[0]
        init_model(options, f"{repository}/model", options.architecture, options.params)
        for _ in range(options.rounds):
            for options.bin in options.bins:
                server = Server(options, repository)
                try:
                    for count in counts:
                        measure(options, server, count, cells[options.bin][count])
                finally:
                    server.stop()
    for place in options.bins:
        print(f"{place}: {options.short} rows at {options.rate}/s beside {options.long}")
        table(cells[place])


if __name__ == "__main__":
    main()

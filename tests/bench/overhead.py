#!/usr/bin/env python3
"""Measures what serving costs apart from the model: null_model_server, whose model computes nothing,
under `linserve-client load` with results of growing size, by protocol. Prints medians: the server's
processor time a request, the rate, and the straight line through the former: µs a request and µs
per KiB of result. Several --server are measured side by side, interleaved.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TICK = os.sysconf("SC_CLK_TCK")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kib", default="1,16,64,256,1024,4096", help="of the results")
    parser.add_argument("--inputs", default="tokens", choices=("tokens", "floats"),
                        help="floats: requests are as large as results")
    parser.add_argument("--protocols", default="linserve,oip")
    parser.add_argument("--concurrency", default="8")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--server", action="append", help="(default: this build's)")
    parser.add_argument("--client", default=str(ROOT / "build/release/bin/linserve-client"))
    return parser.parse_args()


class Server:
    """Rows of 256 floats: a token is a KiB."""

    def __init__(self, program, inputs):
        self.process = subprocess.Popen([program, inputs], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.target = f"127.0.0.1:{int(self.process.stdout.readline())}"

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def measure(options, server, protocol, kib):
    """µs of processor time a request, and requests a second."""
    before = server.cpu_seconds()
    done = subprocess.run(
        [options.client, "--target", server.target, "--protocol", protocol, "load", "--json", "-",
         "--pooling", "none", "--lengths", f"fixed:{kib}", "--vocabulary", "20000",
         "--concurrency", options.concurrency, "--duration", str(options.seconds), "--warmup", "0"],
        capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    requests = report["ok_requests"]
    if requests == 0:
        raise SystemExit(f"{protocol}, {kib} KiB: {report['first_error']}")
    return 1e6 * (server.cpu_seconds() - before) / requests, report["requests_per_second"]


def main():
    options = arguments()
    programs = options.server or [str(ROOT / "build/release/bin/null_model_server")]
    servers = [Server(program, options.inputs) for program in programs]
    sizes = [int(kib) for kib in options.kib.split(",")]
    cells = [(place, protocol, kib) for kib in sizes for protocol in options.protocols.split(",")
             for place in range(len(servers))]
    measured = {cell: [] for cell in cells}
    for _ in range(options.rounds):
        for place, protocol, kib in cells:
            measured[place, protocol, kib].append(
                measure(options, servers[place], protocol, kib))
    print(f"{'server':>6} {'protocol':>9} {'KiB':>6} {'µs/request':>11} {'requests/s':>11}")
    for cell, values in measured.items():
        cpu, rate = (statistics.median(column) for column in zip(*values))
        print(f"{cell[0]:6} {cell[1]:>9} {cell[2]:6} {cpu:11.1f} {rate:11.0f}")
    for place, program in enumerate(programs):
        for protocol in options.protocols.split(","):
            costs = [statistics.median(cpu for cpu, _ in measured[place, protocol, kib])
                     for kib in sizes]
            slope, at_zero = statistics.linear_regression(sizes, costs)
            print(f"{place} {program} {protocol}: {costs[0]:.0f} µs a request of {sizes[0]} KiB, "
                  f"{slope:.2f} µs per further KiB")
    for server in servers:
        server.stop()


if __name__ == "__main__":
    main()

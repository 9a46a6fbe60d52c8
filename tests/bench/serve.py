#!/usr/bin/env python3
"""Measures the server against its own engine on this machine, interleaved, and prints medians;
those of ratios and differences are of each round's own.

Throughput: `linserve serve` under `linserve-client load`, over `linserve bench` in one process. The
client runs on the same cores: its share of them is measured, stated and deducted. Latency: the
median of single requests at concurrency 1, over the engine computing one sequence of that length.
"""

import argparse
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
W1 = {"num_tokens": 20000, "dim": 256, "seq_len": 512, "depth": 6, "heads": 8, "k": 128}
LENGTHS = "lognormal:96,0.8,8,512"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architecture", default="linformer.LinformerLM")
    parser.add_argument("--params", default=json.dumps(W1), help="of its constructor, as JSON")
    parser.add_argument("--lengths", default=LENGTHS)
    parser.add_argument("--length", type=int, default=96, help="of the latency's sequences")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="f32", choices=("f32", "bf16", "int8", "f16", "auto", "auto:int8"))
    parser.add_argument("--pooling", default="mean", choices=("none", "mean", "cls", "last", "max"))
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--sequences", type=int, default=16, help="of one request")
    parser.add_argument("--engine-sequences", type=int, default=256,
                        help="that the engine is given at once")
    parser.add_argument("--seconds", type=float, default=20, help="of each round under load; 0: latency alone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    return parser.parse_args()


def output_of(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def init_model(options, directory, architecture="linformer.LinformerLM", params=json.dumps(W1)):
    output_of(f"{options.bin}/linserve", "init", "--architecture", architecture, "--params", params,
              "--output", directory)


class Server:
    def __init__(self, options, repository, dtype=None, port=18500):
        self.grpc, self.http = f"127.0.0.1:{port}", f"127.0.0.1:{port + 1000}"
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [f"{options.bin}/linserve", "serve", "--model-repository", repository,
             "--grpc-address", self.grpc, "--http-address", self.http, "--device", options.device,
             "--dtype", dtype or options.dtype],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while not self.ready():
            if self.process.poll() is not None:
                sys.exit("the server ended:\n" + self.process.stdout.read())
            time.sleep(0.005)
        self.seconds_to_ready = time.perf_counter() - self.started

    def ready(self):
        try:
            return urllib.request.urlopen(f"http://{self.http}/readyz").status == 200
        except (urllib.error.URLError, ConnectionError):
            return False

    def memory(self):
        """VmRSS and RssAnon in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        return [int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon")]

    def responses(self):
        """The seconds from requests' arrival to the sending of their first answers, and how many they were."""
        metrics = urllib.request.urlopen(f"http://{self.http}/metrics").read().decode()
        found = (re.search(rf'linserve_first_response_seconds_{what}{{rpc="Embed"}} (\S+)', metrics)
                 for what in ("sum", "count"))
        return [float(match[1]) if match else 0.0 for match in found]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def engine_rate(options, model, lengths, sequences, rounds):
    return json.loads(output_of(
        f"{options.bin}/linserve", "bench", "--model", model, "--device", options.device, "--dtype",
        options.dtype, "--lengths", lengths, "--sequences", str(sequences), "--rounds", str(rounds), "--pooling",
        options.pooling, "--seed", str(getattr(options, "seed", 1)), "--json"))


def load(options, server, *more):
    return json.loads(output_of(f"{options.bin}/linserve-client", "--target", server.grpc, "load",
                                "--json", "-", "--pooling", options.pooling, *more))


def throughput(options, server, model):
    rates = {"engine": [], "server": [], "client": [], "ratio": [], "without client": []}
    for _ in range(options.rounds):
        rates["engine"].append(
            engine_rate(options, model, options.lengths, options.engine_sequences, 3)["tokens_per_s"])
        report = load(options, server, "--lengths", options.lengths, "--concurrency",
                      str(options.concurrency), "--sequences", str(options.sequences),
                      "--duration", str(options.seconds))
        rates["server"].append(report["tokens_per_second"])
        rates["client"].append(report["client_cpu_share"])
        rates["ratio"].append(rates["server"][-1] / rates["engine"][-1])
        rates["without client"].append(rates["ratio"][-1] / (1 - rates["client"][-1]))
    median = {name: statistics.median(values) for name, values in rates.items()}
    print(f"engine        {median['engine']:9.0f} tokens/s")
    print(f"server        {median['server']:9.0f} tokens/s: {100 * median['ratio']:.1f} % of the "
          f"engine, {100 * min(rates['ratio']):.0f}…{100 * max(rates['ratio']):.0f} %")
    print(f"client's own  {100 * median['client']:9.1f} % of the processors; deducted: "
          f"{100 * median['without client']:.1f} %")


def latency(options, server, model):
    bare, served, around, within = [], [], [], []
    fixed = f"fixed:{options.length}"
    for _ in range(options.rounds):
        seconds = engine_rate(options, model, fixed, 1, 101)["seconds"]
        bare.append(1e6 * statistics.median(seconds))
        before = server.responses()
        report = load(options, server, "--lengths", fixed, "--concurrency", "1", "--duration", "2")
        took, count = (now - then for now, then in zip(server.responses(), before))
        within.append(1e6 * took / count)
        served.append(1e3 * report["latency_ms"]["p50"])
        around.append(1e3 * (report["latency_ms"]["mean"] - report["server_ms"]["compute"]))

    def more(than_bare):
        each = [time - forward for forward, time in zip(bare, than_bare)]
        return f"+ {statistics.median(each):.0f} µs, {min(each):.0f}…{max(each):.0f}"

    print(f"length {options.length}, one by one: engine {statistics.median(bare):.0f} µs\n"
          f"  client's p50 {statistics.median(served):.0f} µs: {more(served)}, of which "
          f"{statistics.median(around):.0f} µs before and after the computation\n"
          f"  within the server, from arrival to answer {statistics.median(within):.0f} µs: {more(within)}")


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as repository:
        model = f"{repository}/model"
        init_model(options, model, options.architecture, options.params)
        server = Server(options, repository)
        try:
            print(f"start to ready {server.seconds_to_ready:.2f} s; resident "
                  "{:.0f} MiB, anonymous {:.0f} MiB".format(*server.memory()))
            if options.seconds > 0:
                throughput(options, server, model)
            latency(options, server, model)
            print("after load: resident {:.0f} MiB, anonymous {:.0f} MiB".format(*server.memory()))
        finally:
            server.stop()


if __name__ == "__main__":
    main()

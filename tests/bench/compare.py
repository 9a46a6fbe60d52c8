#!/usr/bin/env python3
"""Compares linserve's engine with the Python packages on this machine: the same weights, the same
sequences, the same number of threads, interleaved; one table of real tokens per second.

A round runs every contestant once over all sequences; the medians over the rounds are shown, and
their ratios to linserve. The packages pad to the longest length they take, as their READMEs show,
at the batch size that is their fastest here. linserve runs in a process of its own (`linserve
bench`); its numbers are compared with the package's before anything is timed. Memory is the most
that a process has had which loads the model and runs all sequences once.

Needs the packages of tests/system/packages: `tests/bench/run compare` makes an environment with them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import cases as bench_cases

# triton.py beside this is not the package that torch and transformers look for.
sys.path.remove(str(Path(__file__).resolve().parent))
ROOT = Path(__file__).resolve().parent.parent.parent
BATCH_SIZES = (1, 2, 4, 8, 16, 32)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(bench_cases.CASES),
                        help="of " + ", ".join(bench_cases.CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--linserve", default=str(ROOT / "build/release/bin/linserve"))
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--json", help="write all rates to this file, too")
    parser.add_argument("--run-once", nargs=2, metavar=("MODEL", "BATCH"), help=argparse.SUPPRESS)
    return parser.parse_args()


def linserve(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join([program, *words])}:\n{done.stdout}{done.stderr}")
    return done.stdout


def product_rate(dtype, repeats=8):
    """FLOP/s of one 2048 x 2048 x 2048 product."""
    a = torch.randn(2048, 2048).to(dtype)
    b = torch.randn(2048, 2048).to(dtype)
    a @ b
    start = time.perf_counter()
    for _ in range(repeats):
        a @ b
    return repeats * 2 * 2048**3 / (time.perf_counter() - start)


class Package:
    """The package's module on padded batches, or on one sequence after another."""

    def __init__(self, case, module, batch, dtype, alone=False):
        self.case, self.module, self.batch, self.dtype, self.alone = case, module, batch, dtype, alone

    def run(self):
        start = time.perf_counter()
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16,
                                                    enabled=self.dtype == torch.bfloat16):
            for inputs in self.case.batches(1 if self.alone else self.batch, self.alone):
                self.module(**inputs)
        return self.case.tokens / (time.perf_counter() - start)


class Linserve:
    def __init__(self, program, directory, dtype, threads):
        self.command = [program, "bench", "--model", f"{directory}/model", "--input",
                        f"{directory}/io.safetensors", "--pooling", "none", "--rounds", "1",
                        "--json", "--dtype", dtype, "--replicas", "1", "--threads", str(threads)]

    def run(self):
        report = json.loads(linserve(*self.command))
        self.peak_mib = report["peak_memory_bytes"] / 2**20
        return report["tokens_per_s"]


def package_peak_mib(case, options, directory, batch):
    """What a process has had at most that runs the package on all sequences once, without gradients."""
    done = subprocess.run([sys.executable, __file__, "--cases", case.name, "--threads", str(options.threads),
                           "--run-once", f"{directory}/model", str(batch)],
                          check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def run_once(case, model, batch):
    Package(case, case.module(load_file(f"{model}/model.safetensors")), int(batch), torch.float32).run()
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))


def best_batch(case, module, dtype):
    rates = {}
    for batch in BATCH_SIZES:
        if batch > len(case.lengths):
            break
        package = Package(case, module, batch, dtype)
        package.run()
        rates[batch] = package.run()
    return max(rates, key=rates.get)


def check(case, module, program, directory):
    """Prints how far linserve's rows are from the package's, each sequence alone."""
    outputs = []
    with torch.inference_mode():
        for inputs in case.batches(1, alone=case.runs_alone):
            outputs.append(module(**inputs)[0])
    longest = max(case.lengths)
    rows = torch.zeros(len(outputs), longest, outputs[0].shape[-1])
    for i, length in enumerate(case.lengths):
        rows[i, :length] = outputs[i][:length]
    save_file({"output." + case.output: rows}, f"{directory}/expected.safetensors")
    shown = linserve(program, "run", "--model", f"{directory}/model", "--input",
                     f"{directory}/io.safetensors", "--outputs", case.output, "--compare",
                     f"{directory}/expected.safetensors")
    print("  " + shown.strip())


def measure(case, options, directory):
    print(f"\n{case.name}: {case.title}\n  {len(case.lengths)} sequences, {case.tokens} tokens, "
          f"longest {max(case.lengths)}")
    linserve(options.linserve, "init", "--architecture", case.architecture, "--params",
             json.dumps(case.params), "--output", f"{directory}/model")
    module = case.module(load_file(f"{directory}/model/model.safetensors"))
    save_file(case.file(), f"{directory}/io.safetensors")
    if case.exact:
        check(case, module, options.linserve, directory)
    rated, best = {}, {}
    for name, dtype in (("f32", torch.float32), ("bf16 autocast", torch.bfloat16)):
        best[name] = batch = best_batch(case, module, dtype)
        rated[f"package, {name}, padded, batch {batch}"] = Package(case, module, batch, dtype)
        if case.runs_alone:
            rated[f"package, {name}, one by one"] = Package(case, module, 1, dtype, alone=True)
        if not options.no_compile:
            torch._dynamo.reset()
            compiled = torch.compile(module, dynamic=False)
            rated[f"torch.compile, {name}, batch {batch}"] = Package(case, compiled, batch, dtype)
    for dtype in ("f32", "bf16"):
        rated[f"linserve, {dtype}"] = Linserve(options.linserve, directory, dtype, options.threads)
    for contestant in rated.values():
        contestant.run()  # compiles, warms up
    rates = {name: [] for name in rated}
    products = {torch.float32: [], torch.bfloat16: []}
    for _ in range(options.rounds):
        for name, contestant in rated.items():
            rates[name].append(contestant.run())
        for dtype, measured in products.items():
            measured.append(product_rate(dtype))
    show(case, options, directory, rates, products)
    peak = package_peak_mib(case, options, directory, best["f32"])
    print(f"  memory at most, f32: package {peak:.0f} MiB, linserve {rated['linserve, f32'].peak_mib:.0f} MiB")
    return rates


def show(case, options, directory, rates, products):
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print(f"  {'':40} tokens/s   min…max          linserve f32  bf16")
    for name, rate in medians.items():
        low, high = min(rates[name]), max(rates[name])
        print(f"  {name:40} {rate:8.0f}   {low:7.0f}…{high:<7.0f}  "
              f"{medians['linserve, f32'] / rate:9.2f}×  {medians['linserve, bf16'] / rate:5.2f}×")
    report = json.loads(linserve(options.linserve, "inspect", "--json", "--model",
                                 f"{directory}/model"))
    flops = report["flops_per_token"] - case.unasked_flops
    for dtype, name in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        rate = statistics.median(products[dtype])
        share = medians[f"linserve, {name}"] * flops / rate
        exact = "" if min(case.lengths) == report["length"] else " (FLOPs a token of the longest)"
        print(f"  product rate {name}: {rate / 1e9:.0f} GFLOP/s, linserve {100 * share:.0f} % of it"
              + exact)


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    if options.run_once:
        return run_once(bench_cases.CASES[options.cases](), *options.run_once)
    everything = {}
    for name in options.cases.split(","):
        if name not in bench_cases.CASES:
            sys.exit(f"compare: no case {name!r}; there are {', '.join(bench_cases.CASES)}")
        with tempfile.TemporaryDirectory() as directory:
            everything[name] = measure(bench_cases.CASES[name](), options, directory)
    if options.json:
        Path(options.json).write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Reads the GPU's kernels as they were compiled, and fails where they are not as they should be.

usage: tests/cuda/machine_code.py OBJECTS TOOLS [--print]

OBJECTS is a folder of objects that nvcc made, TOOLS one with cuobjdump and nvdisasm (PyPI
nvidia-cuda-cuobjdump and -nvdisasm). For sm_80 and sm_90a it expects of every kernel
  - that none stores bytes, which is what copies through pointers to numbers of 16 bits become;
  - that rows of results are stored in vectors of 16 bytes;
  - no more instructions, registers and bytes of spilled registers than stand in BOUNDS;
  - of causal linear attention, which instructions limit, no more of them in the loop over tiles of
    64 rows than stand in LOOPS, and no loop within it.
--print shows the counts.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
from pathlib import Path

ARCHITECTURES = ("sm_80", "sm_90a")

# Most instructions, registers and spilled words of a kernel, by the beginning of its name, over both
# architectures. They leave a quarter over what was counted: what they find is code that has grown.
# Registers have an end where more of them leave fewer blocks on a multiprocessor, which has 65,536:
# 80 are six blocks of 128 threads, 128 four of them or two of 256, 168 three of 128, 255 one of 256 or
# two of 128.
BOUNDS = {
    "AddPartsKernel": (500, 40, 0),
    "AddPositionKernel": (400, 40, 0),
    "AddSharesKernel": (460, 40, 0),
    "LinearAttentionKernel<AttendToKeys": (2000, 128, 16),
    "LinearAttentionKernel<CausalLinearAttention<%, 32>": (2400, 168, 48),
    "LinearAttentionKernel<CausalLinearAttention<%, 64>": (3050, 168, 48),
    "LinearAttentionKernel<CausalLinearAttention<%, 128>": (4600, 255, 48),
    "LinearAttentionKernel<SumKeys": (1750, 168, 16),
    "LinearAttentionKernel<WholeLinearAttention": (3300, 168, 16),
    "NormRowsKernel": (1050, 96, 4),
    "PoolRowsKernel": (620, 40, 0),
    "ProjectLengthKernel": (1500, 128, 0),
    "RotateKernel": (420, 40, 0),
    "SoftmaxAttentionKernel<%, 32": (1300, 80, 26),
    "SoftmaxAttentionKernel<%, 64": (1300, 128, 20),
    "SoftmaxAttentionKernel<%, 96": (2600, 255, 0),
    "SoftmaxAttentionKernel<%, 128": (2000, 255, 0),
}

# These compute one number or one pair a thread, or write no rows of 16 bits.
WITHOUT_VECTORS = ("AddPartsKernel", "AddSharesKernel", "PoolRowsKernel", "SumKeys")

# Most instructions of the largest loop, by the beginning of a kernel's name: what a warp is asked for
# a tile, and less where it passes over keys that its queries do not see.
LOOPS = {
    "LinearAttentionKernel<CausalLinearAttention<%, 32>": 1550,
    "LinearAttentionKernel<CausalLinearAttention<%, 64>": 2250,
    "LinearAttentionKernel<CausalLinearAttention<%, 128>": 3600,
}

FUNCTION = re.compile(r"Function : (\S+)")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.]*)(.*)")
BACK_TO = re.compile(r"0x([0-9a-f]+)")
REGISTERS = re.compile(r"Function (\S+):\s+REG:(\d+)")


def run(tools, *words):
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    return subprocess.run([str(Path(tools) / words[0]), *map(str, words[1:])], check=True,
                          capture_output=True, text=True, env=environment).stdout


def names_of(mangled):
    """Names as they stand in BOUNDS: "SoftmaxAttentionKernel<BFloat16, 64, false>"."""
    plain = subprocess.run(["c++filt", *mangled], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    short = [re.sub(r"linserve::cuda::|\(anonymous namespace\)::|c10::|^void ", "", name)
             for name in plain]
    return {name: text[:text.rindex("(")] for name, text in zip(mangled, short)}


def largest_loop(places, branches):
    """How many instructions the largest loop has, and how many loops it has within."""
    loops = sorted(((begin, end) for begin, end in branches if begin < end),
                   key=lambda loop: loop[0] - loop[1])
    if not loops:
        return 0, 0
    begin, end = loops[0]
    within = sum(begin < other and last < end for other, last in loops[1:])
    return sum(begin <= place <= end for place in places), within


def kernels_of(tools, file, architecture):
    """The instructions, registers and stores of each kernel of an object."""
    kernels = collections.defaultdict(collections.Counter)
    places = collections.defaultdict(list)
    branches = collections.defaultdict(list)
    name = None
    for line in run(tools, "cuobjdump", "-sass", "-arch", architecture, file).splitlines():
        if found := FUNCTION.search(line):
            name = found[1]
        elif (found := INSTRUCTION.match(line)) and found[2] != "NOP":
            kernels[name]["instructions"] += 1
            kernels[name][found[2]] += 1
            places[name].append(int(found[1], 16))
            if found[2].startswith("BRA") and (to := BACK_TO.search(found[3])):
                branches[name].append((int(to[1], 16), places[name][-1]))
    for name, registers in REGISTERS.findall(
            run(tools, "cuobjdump", "-res-usage", "-arch", architecture, file)):
        kernels[name]["registers"] = int(registers)
    for name, counts in kernels.items():
        counts["loop"], counts["loops within"] = largest_loop(places[name], branches[name])
    plain = names_of(list(kernels))
    return {plain[name]: counts for name, counts in kernels.items()}


def line_of(name, bounds):
    """The line that a kernel has; % stands for a type of 16 bits, and features are left out."""
    plain = re.sub(r", \(FeatureMap\)\d", "", re.sub(r"BFloat16|Half", "%", name))
    return next((line for line in bounds if plain.startswith(line)), None)


def faults_of(name, counts):
    stores = {op: count for op, count in counts.items() if re.match(r"STG|ST\.|STS", op)}
    for op in stores:
        if re.search(r"\.[US]8\b", op):
            yield f"stores bytes: {stores[op]} {op}"
    if not any(part in name for part in WITHOUT_VECTORS):
        for op in stores:
            if op.startswith("STG") and ".128" not in op and ".64" not in op:
                yield f"stores less than whole vectors: {stores[op]} {op}"
    loop = line_of(name, LOOPS)
    if loop is not None and counts["loop"] > LOOPS[loop]:
        yield f"has {counts['loop']} instructions a tile, at most {LOOPS[loop]} are allowed"
    if loop is not None and counts["loops within"]:
        yield "has a loop within that over tiles"
    line = line_of(name, BOUNDS)
    if line is None:
        yield "has no line in BOUNDS"
        return
    bounds = BOUNDS[line]
    spilled = sum(count for op, count in counts.items() if op.startswith("STL"))
    for what, most, is_now in zip(("instructions", "registers", "spilled words"), bounds,
                                  (counts["instructions"], counts["registers"], spilled)):
        if is_now > most:
            yield f"has {is_now} {what}, at most {most} are allowed"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects")
    parser.add_argument("tools")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    files = sorted(Path(options.objects).glob("*.o"))
    if not files:
        sys.exit(f"there are no objects in {options.objects}")
    failed = False
    seen = set()
    for architecture in ARCHITECTURES:
        for file in files:
            for name, counts in sorted(kernels_of(options.tools, file, architecture).items()):
                seen.add(line_of(name, BOUNDS))
                if options.print:
                    stores = {op: n for op, n in counts.items() if op.startswith(("STG", "STL"))}
                    print(architecture, name, counts["instructions"], counts["registers"],
                          f"loop {counts['loop']}", stores)
                for fault in faults_of(name, counts):
                    print(f"{architecture} {name} {fault}")
                    failed = True
    for line in set(BOUNDS) - seen:
        print(f"{line} of BOUNDS is no kernel")
        failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())

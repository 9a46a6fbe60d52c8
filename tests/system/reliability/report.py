#!/usr/bin/env python3
"""Runs the reliability scenarios against the real programs and prints a report: what was promised,
what was measured. The exit code is 1 if a promise was not kept. Without the Python client of gRPC
(tests/system/clients/install) it is 77."""

import argparse
import os
import sys
import time

SCENARIOS = {
    "overload": ["overload", "overload_with_a_cache", "fairness"],
    "leaving": ["leaving_callers"],
    "drain": ["drain_under_load"],
    "replacement": ["replacement"],
    "scale_out": ["spread_by_proxy", "spread_by_client", "killed_replica", "rolling_replacement", "replicas_throughput",
                  "latency_load_curve"],
    "faults": ["killed_server", "killed_clients", "broken_checkpoint", "full_disk", "too_large_for_memory",
               "culprit_in_a_batch", "stalled_readers", "idle_connections", "no_descriptors_left", "half_open_streams",
               "too_long_for_the_machine"],
    "flood": ["network_fuzz", "slow_headers", "rapid_reset", "reset_without_descriptors", "outside_of_messages", "threads",
              "endless_headers", "endless_lines", "unfinished_messages"],
    "inputs": ["every_field"],
    "memory": ["sessions_under_a_limit", "reload_that_does_not_fit", "texts_under_a_limit"],
    "secure": ["certificates_replaced", "mutual_tls", "tokens_changed", "budgets"],
    "soak": ["soak"],
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(SCENARIOS)}, or a scenario of one (default: all)")
    parser.add_argument("--quick", action="store_true", help="shorter; figures of speed are printed, not judged")
    parser.add_argument("--sanitized", action="store_true",
                        help="the programs carry sanitizers: memory and speed are printed, not judged")
    parser.add_argument("--report", help="also write the report to this file, as Markdown")
    options = parser.parse_args()
    for name in options.names:
        if name not in SCENARIOS and not any(name in group for group in SCENARIOS.values()):
            parser.error(f"there is no scenario {name!r}, expected {', '.join(SCENARIOS)}")
    return options


def run(name):
    import faults
    import flood
    import inputs
    import memory
    import outside_of_messages
    import overload
    import replacement
    import scale_out
    import secure
    import soak
    from harness import Figure, end_children, say, server_logs
    figures = []
    for function in SCENARIOS.get(name, [name]):
        start = time.monotonic()
        module = next(m for m in (faults, flood, inputs, memory, outside_of_messages, overload, replacement, scale_out,
                                  secure, soak) if hasattr(m, function))
        try:
            figures += getattr(module, function)()
        except Exception as error:  # a scenario that ends is a promise that is not kept
            figures.append(Figure(function.replace("_", " "), f"{type(error).__name__}: {error}"[:200], "an end", False))
            say(server_logs())
        end_children()
        say(f"{function}: {time.monotonic() - start:.0f} s")
    return figures


def main():
    options = arguments()
    try:
        import grpc  # noqa: F401
    except ImportError:
        print("the Python client of gRPC is not installed: tests/system/clients/install")
        return 77
    from harness import Settings
    Settings.quick = options.quick
    Settings.sanitized = options.sanitized
    lines = ["# Reliability: promised and measured", ""]
    kept = True
    for name in options.names or SCENARIOS:
        figures = run(name)
        command = f"tests/system/reliability/run {name}" + (" --quick" if options.quick else "")
        lines += [f"## {name}", "", f"`{command}`", "", "| what | measured | promised | kept |", "| --- | --- | --- | --- |"]
        for figure in figures:
            kept = kept and figure.kept
            lines.append(f"| {figure.what} | {figure.measured} | {figure.promised} | {'yes' if figure.kept else '**no**'} |")
        lines.append("")
    text = "\n".join(lines)
    print(text)
    if options.report:
        with open(options.report, "w", encoding="utf-8") as file:
            file.write(f"{text}\nMeasured on {os.cpu_count()} processors, the callers on the same.\n")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the tests of some presets came to: counts them and prints, for each that failed, why and how
to repeat it, and which took longest.

usage: tests/report.py PRESET…

Reads what `ctest --output-junit build/PRESET/tests.xml` wrote, and for each of its entries that is a
process of GoogleTest, build/PRESET/reports/ENTRY.xml; and the steps of tests/run, build/steps.tsv. The
last line is "N passed, N failed, N skipped".
"""

import sys
import xml.etree.ElementTree as xml
from dataclasses import dataclass
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
SLOWEST = 20
LAST_LINES = 60


@dataclass
class Step:
    kind: str  # how it counts: check, need or tests, as tests/run says
    name: str
    failed: bool
    seconds: int


@dataclass
class Test:
    """One test, or an entry of CTest that is not made of several."""
    name: str
    repeat: str  # the command that runs it alone
    seconds: float
    result: str  # passed, failed, skipped
    why: str = ""


def tests_of_suite(preset, entry, report):
    """The tests of one process of GoogleTest."""
    layer, part = entry.split(".")
    for case in xml.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        failures = [failure.get("message", "") for failure in case.findall("failure")]
        result = "failed" if failures else "passed"
        if case.get("status") == "notrun" or case.get("result") == "skipped":
            result = "skipped"
        # What is no shard may have variables of its own.
        repeat = (f"build/{preset}/bin/{layer}_tests --gtest_filter='{name}'" if part.isdigit()
                  else f"ctest --preset {preset} --output-on-failure -R '^{entry}$'")
        yield Test(f"{preset}: {layer if part.isdigit() else entry}.{name}", repeat,
                   float(case.get("time", 0)), result, "\n".join(failures))


def tests_of(preset):
    """All tests of a preset: an entry that ended badly for no test's sake counts as one more."""
    written = BUILD / preset / "tests.xml"
    if not written.exists():
        yield Test(f"{preset}: ctest", f"ctest --preset {preset}", 0, "failed", "it wrote no report")
        return
    for entry in xml.parse(written).getroot().iter("testcase"):
        name, status = entry.get("name"), entry.get("status")
        report = BUILD / preset / "reports" / f"{name}.xml"
        tests = list(tests_of_suite(preset, name, report)) if report.exists() else []
        yield from tests
        if tests and (status == "run" or any(test.result == "failed" for test in tests)):
            continue
        result = {"run": "passed", "notrun": "skipped", "disabled": "skipped"}.get(status, "failed")
        output = "".join(entry.findtext("system-out", "")).splitlines()
        yield Test(f"{preset}: {name}", f"ctest --preset {preset} --output-on-failure -R '^{name}$'",
                   float(entry.get("time") or 0), result, "\n".join(output[-LAST_LINES:]))


def steps():
    lines = (BUILD / "steps.tsv").read_text().splitlines()
    return [Step(kind, name, code != "0", int(seconds)) for kind, name, code, seconds in map(lambda line: line.split("\t"), lines)]


def main():
    presets = sys.argv[1:]
    if not presets or presets[0].startswith("-"):
        print(__doc__)
        return 0 if presets else 2
    ran = steps()
    tests = [test for preset in presets if any(step.name == f"test {preset}" for step in ran) for test in tests_of(preset)]
    tests += [Test(step.name, f"the step {step.name!r} of tests/run", step.seconds, "failed" if step.failed else "passed")
              for step in ran if step.kind == "check" or step.kind == "need" and step.failed]
    for test in tests:
        if test.result == "failed":
            print(f"\n--- failed: {test.name}\n{test.why}\nrepeat: {test.repeat}")
    print(f"\n=== the {SLOWEST} slowest tests")
    for test in sorted(tests, key=lambda test: -test.seconds)[:SLOWEST]:
        print(f"{test.seconds:7.1f} s  {test.name}")
    print("\n=== steps")
    for step in ran:
        print(f"{step.seconds:5} s  {step.name}{'  FAILED' if step.failed else ''}")
    print(f"{sum(step.seconds for step in ran):5} s  in all")
    count = {result: sum(test.result == result for test in tests) for result in ("passed", "failed", "skipped")}
    print(", ".join(f"{number} {result}" for result, number in count.items()))
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

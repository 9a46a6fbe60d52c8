#!/usr/bin/env python3
"""What the tests came to: counts them and prints, for each that failed, why and how
to repeat it, and which took longest.

Reads the steps of tests/run, build/steps.tsv; for each of them that is the tests of a preset, what
`ctest --output-junit build/PRESET/tests.xml` wrote, and for each of its entries that is a process of
GoogleTest, build/PRESET/reports/ENTRY.xml. The last line is "N passed, N failed, N skipped".
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
    command: str


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


def suite_of(preset, name):
    """The tests of an entry that is a process of GoogleTest, none if they cannot be known, and why; None of a script."""
    report, unfinished = (BUILD / preset / "reports" / f"{name}.{kind}" for kind in ("xml", "unfinished"))
    if unfinished.exists():
        return [], "the process ended before its tests\n"
    if not report.exists():
        return None, ""
    try:
        suite = list(tests_of_suite(preset, name, report))
    except xml.ParseError as error:
        return [], f"{report}: {error}\n"
    return suite, "" if suite else "no test has been run\n"


def result_of(entry, suite):
    """Of an entry of CTest, whose tests are `suite` if it is a process of GoogleTest."""
    if entry.get("status") == "run" and suite != []:
        return "passed"
    # What could not even be started is no different in the status from what says that it cannot run here.
    skipped = entry.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_RETURN_CODE"):
        return "skipped"
    return "skipped" if entry.get("status") == "disabled" else "failed"


def tests_of(preset):
    """All tests of a preset: an entry that ended badly for no test's sake counts as one more."""
    written = BUILD / preset / "tests.xml"
    if not written.exists():
        yield Test(f"{preset}: ctest", f"ctest --preset {preset}", 0, "failed", "it wrote no report")
        return
    for entry in xml.parse(written).getroot().iter("testcase"):
        name = entry.get("name")
        suite, why = suite_of(preset, name)
        yield from suite or []
        result = result_of(entry, suite)
        if suite and (result == "passed" or any(test.result == "failed" for test in suite)):
            continue
        output = entry.findtext("system-out", "").splitlines()
        yield Test(f"{preset}: {name}", f"ctest --preset {preset} --output-on-failure -R '^{name}$'",
                   float(entry.get("time") or 0), result, why + "\n".join(output[-LAST_LINES:]))


def steps():
    for line in (BUILD / "steps.tsv").read_text().splitlines():
        kind, name, code, seconds, command = line.split("\t")
        yield Step(kind, name, code != "0", int(seconds), command)


def tests_of_step(step):
    """A step that failed although none of its tests did counts as one that did."""
    tests = list(tests_of(step.name.split()[-1])) if step.kind == "tests" else []
    failed = step.failed and not any(test.result == "failed" for test in tests)
    if failed or step.kind == "check":
        tests.append(Test(step.name, step.command, step.seconds, "failed" if failed else "passed", "see above"))
    return tests


def main():
    ran = list(steps())
    tests = [test for step in ran for test in tests_of_step(step)]
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

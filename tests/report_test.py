"""Shows that report.py counts each way in which tests end, on small results made for the purpose."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import report

PASSED = '<testsuites><testcase name="t" classname="S" time="1" status="run" result="completed"/></testsuites>'
FAILED = PASSED.replace("/></testsuites>", '><failure message="boom"/></testcase></testsuites>')
SKIPPED = PASSED.replace("completed", "skipped")
STEP = "tests\ttest dev\t{code}\t10\tctest --preset dev\n"


def reported(entry, files=None, code=0, more_steps=""):
    """What is printed of one entry `a.1` of CTest, given as its XML, and the files of its process."""
    with tempfile.TemporaryDirectory() as build:
        report.BUILD = Path(build)
        (report.BUILD / "dev/reports").mkdir(parents=True)
        (report.BUILD / "steps.tsv").write_text(STEP.format(code=code) + more_steps)
        (report.BUILD / "dev/tests.xml").write_text(f"<testsuite>{entry}</testsuite>")
        for name, text in (files or {}).items():
            (report.BUILD / "dev/reports" / name).write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            report.main()
        return printed.getvalue()


def entry(status, message=None):
    skipped = "" if message is None else f'<skipped message="{message}"/>'
    return f'<testcase name="a.1" time="1" status="{status}">{skipped}<system-out>its output</system-out></testcase>'


class ReportTest(unittest.TestCase):

    def assert_last_line(self, expected, printed):
        self.assertEqual(printed.splitlines()[-1], expected, printed)

    def test_counts_the_tests_of_a_process(self):
        self.assert_last_line("1 passed, 0 failed, 0 skipped", reported(entry("run"), {"a.1.xml": PASSED}))
        self.assert_last_line("0 passed, 0 failed, 1 skipped", reported(entry("run"), {"a.1.xml": SKIPPED}))

    def test_tells_why_a_test_failed_and_how_to_repeat_it(self):
        printed = reported(entry("fail"), {"a.1.xml": FAILED}, code=8)
        self.assertIn("boom\nrepeat: build/dev/bin/a_tests --gtest_filter='S.t'", printed)
        self.assert_last_line("0 passed, 1 failed, 0 skipped", printed)

    def test_a_script_is_one_test(self):
        self.assert_last_line("1 passed, 0 failed, 0 skipped", reported(entry("run")))
        self.assert_last_line("0 passed, 0 failed, 1 skipped", reported(entry("notrun", "SKIP_RETURN_CODE=77")))
        printed = reported(entry("fail"), code=8)
        self.assertIn("its output\nrepeat: ctest --preset dev --output-on-failure -R '^a.1$'", printed)
        self.assert_last_line("0 passed, 1 failed, 0 skipped", printed)

    def test_a_program_that_could_not_be_started_has_failed(self):
        self.assert_last_line("0 passed, 1 failed, 0 skipped", reported(entry("notrun", ""), code=8))

    def test_a_process_that_ended_before_its_tests_has_failed_whatever_its_exit_code(self):
        printed = reported(entry("run"), {"a.1.unfinished": ""})
        self.assertIn("ended before its tests", printed)
        self.assert_last_line("0 passed, 1 failed, 0 skipped", printed)

    def test_a_process_without_tests_has_failed(self):
        self.assert_last_line("0 passed, 1 failed, 0 skipped", reported(entry("run"), {"a.1.xml": "<testsuites/>"}))

    def test_a_report_that_was_cut_off_has_failed(self):
        self.assert_last_line("0 passed, 1 failed, 0 skipped", reported(entry("run"), {"a.1.xml": PASSED[:40]}))

    def test_a_process_that_fails_after_its_tests_is_one_more(self):
        self.assert_last_line("1 passed, 1 failed, 0 skipped", reported(entry("fail"), {"a.1.xml": PASSED}, code=8))

    def test_a_step_that_fails_for_no_tests_sake_is_one_more(self):
        self.assert_last_line("1 passed, 1 failed, 0 skipped", reported(entry("run"), code=8))
        build = "need\tbuild tsan\t1\t3\tdeploy/build --preset tsan\n"
        printed = reported(entry("run"), more_steps=build)
        self.assertIn("repeat: deploy/build --preset tsan", printed)
        self.assert_last_line("1 passed, 1 failed, 0 skipped", printed)

    def test_checks_count_and_what_they_need_does_not(self):
        steps = "need\tinstall\t0\t3\tdeploy/install\ncheck\tcheck format\t0\t3\ttests/check_format\n"
        self.assert_last_line("2 passed, 0 failed, 0 skipped", reported(entry("run"), more_steps=steps))


if __name__ == "__main__":
    unittest.main()

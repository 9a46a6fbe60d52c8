"""Every page of the documentation: that its links lead somewhere, and that each of its commands works."""

import re
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

import pages
import session

PAGES = pages.all_pages()
WITH_COMMANDS = [page for page in PAGES if any(block.language in pages.RUN for block in page.blocks)]


class PagesTest(unittest.TestCase):
    def test_pages_are_short_and_their_links_lead_somewhere(self):
        self.assertGreater(len(PAGES), 5)
        self.assertEqual([fault for page in PAGES for fault in pages.faults(page)], [])

    def test_what_is_replaced_is_there(self):
        texts = "".join(block.text for page in PAGES for block in page.blocks if block.language in pages.RUN)
        for pattern, _, why in session.REPLACED:
            self.assertTrue(re.search(pattern, texts, re.MULTILINE), pattern)
            self.assertTrue(why)
        for name in session.PROGRAMS:
            self.assertTrue(re.search(rf"^\W*({name}|.*\| *{name}) ", texts, re.MULTILINE), name)


class CommandsTest(unittest.TestCase):
    """One test a page, which the loop below adds. Two pages are run at a time, since each waits for its servers."""

    @classmethod
    def setUpClass(cls):
        cls.pool = ThreadPoolExecutor(2)
        cls.addClassCleanup(cls.pool.shutdown)
        cls.outcomes = {}
        if not sys.argv[1:]:  # all are wanted
            for page in sorted(WITH_COMMANDS, key=lambda page: -len(page.blocks)):
                cls.outcome(page)

    @classmethod
    def outcome(cls, page):
        if page.path not in cls.outcomes:
            cls.outcomes[page.path] = cls.pool.submit(session.run, page)
        return cls.outcomes[page.path]


def add(page):
    name = re.sub(r"\W", "_", page.path.removesuffix("README.md").strip("/") or "root")
    setattr(CommandsTest, f"test_{name}", lambda self: self.outcome(page).result())


for each in WITH_COMMANDS:
    add(each)


class ThisTestTest(unittest.TestCase):
    """That what is wrong with a page is found."""

    def fails(self, why, *blocks):
        text = "".join(f"```{language}\n{code}\n```\n" for language, code in blocks)
        with self.assertRaisesRegex(session.Failure, why):
            session.run(pages.Page("page.md", text))

    def test_a_command_that_fails(self):
        self.fails("page.md:5: exit code 1", ("sh", "true"), ("sh", "false"))
        self.fails("exit code 1", ("sh", "false | true"))
        self.fails("exit code 1", ("python", "raise ValueError"))

    def test_a_program_or_an_option_that_there_is_not(self):
        self.fails("no-such-program: command not found", ("sh", "no-such-program"))
        self.fails("--no-such-option", ("sh", "build/release/bin/linserve-client health --no-such-option"))
        self.fails("the server did not start", ("sh", "build/release/bin/linserve serve --no-such-option"))
        self.fails("--no-such-option", ("sh", "./tests/run --no-such-option"))
        self.fails("no-such-overlay", ("sh", "kubectl apply -k deploy/kubernetes/no-such-overlay"))

    def test_a_server_that_is_not_there(self):
        self.fails("exit code", ("sh", "build/release/bin/linserve-client --timeout 1 models"))

    def test_where_a_block_begins_is_where_the_one_before_ended(self):
        blocks = [("sh", "mkdir a\ncd a\nexport WHAT='a b'"), ("sh", '[[ $PWD == */a && $WHAT == "a b" ]]'),
                  ("python", "import os; assert os.getcwd().endswith('/a')")]
        session.run(pages.Page("page.md", "".join(f"```{language}\n{code}\n```\n" for language, code in blocks)))

    def test_faults_of_a_page(self):
        def found(text, path="tests/README.md"):
            return " ".join(pages.faults(pages.Page(path, text)))
        self.assertEqual(found("# A heading\n[here](#a-heading), [there](../README.md), [else](https://x.org)\n"), "")
        self.assertIn("leads nowhere", found("[there](no-such-file)\n"))
        self.assertIn("no heading", found("[there](#nowhere)\n"))
        self.assertIn("no heading", found("[there](../README.md#nowhere)\n"))
        self.assertEqual(found("`docs/pages.py`, `server/README.md`, `a.py`\n"), "")
        self.assertIn("no file", found("`docs/no-such-file.py`\n"))
        self.assertIn("a block is one of", found("```\ntrue\n```\n"))
        self.assertIn("no end", found("```sh\ntrue\n"))
        self.assertIn("indented", found("So:\n\n    true\n"))
        self.assertIn("at most 350", found("\n" * 351))
        self.assertIn("at most 150", found("\n" * 151, "README.md"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)

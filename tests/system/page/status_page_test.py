"""The status page of a real server, in headless Chromium: under load, with tokens, on a phone, over a restart."""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

from chromium import Browser
from served import BIN, Server, init_model

CHARTS = ["requests", "errors", "latency", "tokens", "queue", "batches", "in-flight", "memory"]
FOREIGN = "<img src=x onerror=alert(1)>"
READER, CALLER = "reader-0123456789abcdef", "caller-0123456789abcdef"
TOKENS = {"tokens": [{"name": "reader", "token": READER, "may": ["metrics"]}, {"name": "caller", "token": CALLER}]}
# What Chromium itself says of an answer that is none, or not 200.
REFUSED = r"Failed to load resource: the server responded with a status of 40[13]"
UNREACHABLE = r"Failed to load resource: net::ERR_(CONNECTION_|EMPTY_RESPONSE|SOCKET_|INCOMPLETE)"


class StatusPageTest(unittest.TestCase):
    screenshots = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def serve(self, *options, **how):
        server = Server(*options, **how)
        self.addCleanup(server.close)
        return server

    def load(self, server, *options, token=""):
        child = subprocess.Popen(
            [BIN / "linserve-client", "--target", server.grpc, "load", "--duration", "600", "--warmup", "0", "--model", "m",
             *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"LINSERVE_TOKEN": token} if token else {})
        self.addCleanup(lambda: (child.kill(), child.wait()))

    def open(self, server, **how):
        page = self.browser.open(f"http://{server.http}/", **how)
        self.addCleanup(page.close)
        return page

    def connected(self, page, how):
        page.wait_for(f"document.documentElement.dataset.connection === '{how}'")

    def shoot(self, page, name):
        if self.screenshots:
            page.screenshot(Path(self.screenshots) / f"{name}.png")

    def text(self, page, selector):
        return page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def assert_charts_drawn(self, page):
        for chart in CHARTS:
            page.wait_for(f"document.querySelector('[data-chart={chart}]')?.dataset.points >= 4")

    def assert_fits(self, page, width):
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
        # Nor does anything stick out of what would hide it.
        self.assertEqual(page.evaluate("""Array.from(document.querySelectorAll('main *, header *'))
            .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML)"""), [])

    def assert_clean(self, page, server, allowed="(?!)"):
        page.evaluate("0")  # what happened until now has been told then
        self.assertEqual([fault for fault in page.faults if not re.match(allowed, fault)], [])
        strangers = [url for url in page.requests if not url.startswith((f"http://{server.http}/", "data:"))]
        self.assertEqual(strangers, [])

    def test_is_html_for_browsers_and_json_for_programs(self):
        server = self.serve()
        for accept, kind in (("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
                             ("application/json", "application/json"), ("*/*", "application/json")):
            request = urllib.request.Request(f"http://{server.http}/", headers={"Accept": accept})
            with urllib.request.urlopen(request, timeout=30) as answer:
                self.assertEqual(answer.headers.get_content_type(), kind, accept)
                self.assertIn("Accept", answer.headers["Vary"])
                if kind == "text/html":
                    self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])

    def test_shows_models_and_charts_under_load(self):
        server = self.serve("--max-queue-sequences", "2")  # so that some are refused
        self.load(server, "--concurrency", "8")
        page = self.open(server)
        self.connected(page, "live")
        self.assert_charts_drawn(page)
        page.wait_for("points.at(-1).ok > 0 && points.at(-1).p99 > 0 && points.at(-1).tokens > 0")
        page.wait_for("points.some(({ errors }) => errors > 0)")
        # It refuses more than it should, and says so, and why.
        page.wait_for("document.querySelector('.value.state').classList.contains('degraded')")
        self.assertRegex(self.text(page, "#figures"), r"1 of 1 ready, [\d.]+\s*% refused")
        row = self.text(page, "#models tr")
        for part in ("m", "1", "ready", "linformer.LinformerLM", "in f32", " replica"):
            self.assertIn(part, row)
        page.wait_for("document.querySelector('.now')?.innerText.includes('(queue)')")
        self.assertRegex(self.text(page, ".now"), r"sequences\s+[\d.,]+\s?k?/s\s+tokens\s+[\d.,]+\s?k?/s\s+median\s+[\d.,]+\s\S+\s+"
                         r"p99\s+[\d.,]+\s\S+\s+on\s+cpu\s+sessions\s+0\s+cache hits\s+no cache\s+refused\s+[\d.,k\s]+\(queue\)")
        # Two sequences may wait, which is near, and the memory's limit is not.
        drawn = "document.querySelector('[data-chart=%s]').querySelectorAll('.plots > svg .limit').length"
        page.wait_for(f"{drawn % 'queue'} === 1")
        self.assertEqual(page.evaluate(drawn % "memory"), 0)
        for chart in ("queue", "memory"):
            self.assertIn("limit", self.text(page, f"[data-chart={chart}] .legend"))
        # Powers of ten are equally far apart.
        heights = page.evaluate("""Array.from(document.querySelectorAll('[data-chart=latency] .plots > svg > text'))
            .filter((text) => / 1[0]*\u00a0/.test(` ${text.textContent}`)).map((text) => Number(text.getAttribute('y')))""")
        steps = [above - below for above, below in zip(heights, heights[1:])]
        self.assertGreaterEqual(len(steps), 1)
        for step in steps:
            self.assertAlmostEqual(step, steps[0], delta=0.01)
        self.shoot(page, "light")
        # What the server has kept is shown at once by a page that is loaded again.
        page.evaluate("document.getElementById('window').value = '3600'; "
                      "document.getElementById('window').dispatchEvent(new Event('change'))")
        first = page.evaluate("samples[0].time")
        page.evaluate("window.isOld = true; location.reload()")
        page.wait_for(f"!window.isOld && samples.length > 1 && samples[0].time <= {first} && points[1].ok > 0")
        self.assertEqual(page.evaluate("document.getElementById('window').value"), "3600")
        # One that only looks like an element.
        init_model(server.repository / FOREIGN)
        server.process.send_signal(signal.SIGHUP)
        page.wait_for(f"Array.from(document.querySelectorAll('#models th'), (th) => th.innerText).includes('{FOREIGN}')")
        self.assertEqual(page.evaluate("document.images.length"), 0)
        (server.repository / FOREIGN / "config.json").write_text("{", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        page.wait_for("document.querySelector('#models .reason')?.innerText.includes('config.json')")
        self.assertIn("1 not updated", self.text(page, "#figures"))
        self.assert_clean(page, server)

    def test_is_readable_in_the_dark_and_on_a_phone(self):
        server = self.serve()
        self.load(server, "--rate", "50")
        page = self.open(server)
        self.assert_charts_drawn(page)
        looks = {"dark": (1280, True), "phone": (360, False), "phone-dark": (360, True), "tablet": (820, False)}
        for name, (width, dark) in looks.items():
            page.look(width, 800, dark)
            page.wait_for(f"document.querySelector('[data-chart=memory] svg').clientWidth < {width}")
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0]")
            self.assertEqual(int(ground) < 128, dark)
            self.shoot(page, name)
            self.assert_fits(page, width)
        self.assert_clean(page, server)

    def test_cursor_shows_values_by_mouse_and_keys(self):
        server = self.serve()
        page = self.open(server)
        page.wait_for("points.length >= 3")
        box = page.evaluate("""(() => {
            const { right, top } = document.querySelector('[data-chart=memory] .plots').getBoundingClientRect();
            scrollTo(0, top);
            return [right - 30, document.querySelector('[data-chart=memory] .plots').getBoundingClientRect().top + 60];
          })()""")
        page.move_mouse(*box)
        page.wait_for(f"document.querySelectorAll('.cursor').length >= {len(CHARTS)}")
        page.move_mouse(1, 1)
        page.wait_for("!document.querySelector('.cursor')")
        page.evaluate("document.querySelector('[data-chart=queue] .plots').focus()")
        page.press("Home")
        page.wait_for("document.querySelector('[data-chart=queue] .plots').ariaValueNow === '0'")
        page.press("ArrowRight")
        page.wait_for("document.querySelector('[data-chart=queue] .plots').ariaValueNow === '1'")
        self.assertIn("estimated wait", page.evaluate("document.querySelector('[data-chart=queue] .plots').ariaValueText"))
        page.press("Escape")
        page.wait_for("!document.querySelector('.cursor')")
        self.assert_clean(page, server)

    def test_asks_for_a_token_and_says_if_it_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "tokens.json"
            file.write_text(json.dumps(TOKENS), encoding="utf-8")
            server = self.serve("--tokens-file", file)
            page = self.open(server)
            self.connected(page, "locked")
            self.assertEqual(page.evaluate("[main.hidden, refusal.hidden, document.activeElement.id]"), [True, True, "token"])
            self.shoot(page, "token")
            for wrong in ("wrong-0123456789abcdef", CALLER):
                page.type(wrong)
                page.press("Enter")
                page.wait_for("!refusal.hidden && !token.value && document.activeElement === token")
                self.assertIn("refused", self.text(page, "#refusal"))
                self.assertIsNone(page.evaluate("sessionStorage.getItem('linserve-token')"))
                page.evaluate("refusal.hidden = true")
            page.type(READER)
            page.press("Enter")
            self.connected(page, "live")
            page.wait_for("!main.hidden && login.hidden")
            self.assertEqual(page.evaluate("[document.cookie, localStorage.length]"), ["", 0])
            page.evaluate("forget.click()")
            self.connected(page, "locked")
            self.assert_clean(page, server, REFUSED)

    def test_goes_on_after_the_server_was_killed_and_started_again(self):
        server = self.serve()
        self.load(server, "--rate", "200")
        page = self.open(server, width=360)
        self.assert_charts_drawn(page)
        page.wait_for("points.at(-1).ok > 10")
        server.process.kill()
        server.process.wait()
        self.connected(page, "unreachable")
        self.assertRegex(self.text(page, "#notice"), r"cannot be reached, since \d\d:\d\d:\d\d")
        drawn = page.evaluate("document.querySelector('[data-chart=tokens]').dataset.points")
        self.assertGreater(int(drawn), 0)
        self.shoot(page, "unreachable")
        again = self.serve(http_port=int(server.http.rsplit(":", 1)[1]))
        self.connected(page, "live")
        self.load(again, "--rate", "50")
        page.wait_for("points.at(-1).ok > 10")
        page.wait_for("notice.hidden")
        self.assertGreater(int(page.evaluate("document.querySelector('[data-chart=tokens]').dataset.points")), int(drawn))
        for value in ("ok", "errors", "tokens", "batch", "waste", "p99"):
            self.assertTrue(page.evaluate(f"points.every((point) => !(point.{value} < 0))"), value)
        self.assert_clean(page, server, UNREACHABLE)

    def test_pauses(self):
        server = self.serve()
        page = self.open(server)
        self.connected(page, "live")
        page.evaluate("pause.click()")
        self.connected(page, "paused")
        page.wait_for("!polling")
        self.assertEqual(page.evaluate("[pause.innerText, poll() instanceof Promise, polling]"), ["Resume", True, False])
        page.evaluate("pause.click()")
        self.connected(page, "live")
        self.assert_clean(page, server)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--screenshots", metavar="DIRECTORY", help="where to write them")
    options, rest = parser.parse_known_args()
    if options.screenshots:
        Path(options.screenshots).mkdir(parents=True, exist_ok=True)
        StatusPageTest.screenshots = options.screenshots
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)

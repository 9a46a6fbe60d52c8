"""A headless Chromium, driven over a pair of pipes by the Chrome DevTools Protocol."""

import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-extensions",
         "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
         "--hide-scrollbars", "--force-color-profile=srgb"]


class BrowserError(Exception):
    pass


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # It reads from 3 and writes to 4; ours must not be in the way of these.
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash", "chromium", *FLAGS, *sandbox,
             f"--user-data-dir={self.profile.name}"],
            pass_fds=theirs, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (theirs_in, theirs_out, *theirs):
            os.close(end)
        self.input, self.output = ours_in, ours_out
        self.buffer = b""
        self.last_id = 0
        self.pages = {}  # by session

    def close(self):
        os.close(self.output)  # upon which it ends
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        self.profile.cleanup()

    def read_message(self, limit):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.input], [], [], max(0, limit - time.monotonic()))
            if not ready:
                raise BrowserError("Chromium does not answer")
            chunk = os.read(self.input, 1 << 20)
            if not chunk:
                raise BrowserError("Chromium has ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, params=None, session=None, timeout=60):
        """The result of a command. Events that come before it go to their pages."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        limit = time.monotonic() + timeout
        while True:
            answer = self.read_message(limit)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer.get("sessionId") in self.pages:
                self.pages[answer["sessionId"]].on_event(answer["method"], answer["params"])

    def open(self, url, width=1280, height=800, dark=False):
        """A page in a profile of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        return Page(self, context, session, url, width, height, dark)


class Page:
    def __init__(self, browser, context, session, url, width, height, dark):
        self.browser, self.context, self.session = browser, context, session
        self.faults = []  # what the console shows in red
        self.requests = []  # the addresses that were asked
        browser.pages[session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.look(width, height, dark)
        self.call("Page.navigate", {"url": url})

    def close(self):
        del self.browser.pages[self.session]
        self.browser.call("Target.disposeBrowserContext", {"browserContextId": self.context})

    def call(self, method, params=None, timeout=60):
        return self.browser.call(method, params, self.session, timeout)

    def on_event(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.faults.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.faults.append(str([argument.get("value") for argument in params["args"]]))

    def look(self, width, height, dark):
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.resize(width, height)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 600})

    def evaluate(self, expression, timeout=60):
        """The value of an expression, or of what it promises."""
        result = self.call("Runtime.evaluate", {"expression": expression, "awaitPromise": True, "returnByValue": True},
                           timeout)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def wait_for(self, condition, seconds=60):
        """The first truthy value of the expression, over reloads, too."""
        limit = time.monotonic() + seconds
        found = None
        while not found and time.monotonic() < limit:
            try:
                found = self.evaluate(f"""new Promise((resolve) => {{
                    const end = performance.now() + 1000;
                    const look = () => {{
                      let found = null;
                      try {{ found = {condition}; }} catch {{ /* not yet */ }}
                      if (found || performance.now() > end) resolve(found); else setTimeout(look, 50);
                    }};
                    look();
                  }})""")
            except BrowserError:
                pass  # the page went away meanwhile
        if not found:
            text = self.evaluate("document.body.innerText")
            raise TimeoutError(f"waited {seconds} s for {condition}; the page says:\n{text}\nfaults: {self.faults}")
        return found

    def press(self, key):
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, "code": key, **text})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", "key": key, "code": key})

    def type(self, text):
        self.call("Input.insertText", {"text": text})

    def move_mouse(self, x, y):
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def screenshot(self, path):
        """All of the page, for which it gets so high a window."""
        width = self.evaluate("innerWidth")
        self.resize(width, self.evaluate("document.documentElement.scrollHeight"))
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shot = self.call("Page.captureScreenshot")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

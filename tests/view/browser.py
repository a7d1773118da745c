"""A headless browser without a network, driven over its debugging protocol."""

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find():
    """The path of a browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


@contextlib.contextmanager
def page(file, folder, size=(1200, 800)):
    """A tab that shows a file of this machine; no name on the network can be resolved."""
    command = [
        find(),
        "--headless=new",
        "--no-sandbox",
        "--no-first-run",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader",
        f"--window-size={size[0]},{size[1]}",
        f"--user-data-dir={folder}",
        "--remote-debugging-port=0",
        "about:blank",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            port = _port(Path(folder) / "DevToolsActivePort", process)
            tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10))
            address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            from websockets.sync.client import connect

            with connect(address, max_size=None) as socket:
                yield Tab(socket, Path(file).resolve().as_uri())
        finally:
            process.terminate()
            process.wait(timeout=20)


def _port(file, process):
    for _ in range(300):
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        assert process.poll() is None, "the browser ended"
        time.sleep(0.1)
    raise TimeoutError("the browser does not answer")


class Tab:
    """One tab: `errors` are what its console and its scripts complained of, `requests` the addresses it asked for."""

    def __init__(self, socket, address):
        self._socket, self._number = socket, 0
        self.errors, self.requests = [], []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self._call("Page.navigate", url=address)

    def _call(self, method, **params):
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._note(message.get("method"), message.get("params", {}))

    def _note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def evaluate(self, expression):
        """The value of an expression of JavaScript."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    def until(self, expression, seconds=60):
        """The first true value of an expression."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.evaluate(expression):
                return value
            time.sleep(0.2)
        raise TimeoutError(f"never true: {expression}")

    def press(self, key, code):
        """A key, down and up."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=code)

    def drag(self, start, end):
        """The left mouse button held from one point to another."""
        (x, y), (u, v) = start, end
        self._call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for part in (0.25, 0.5, 0.75, 1.0):
            self._call(
                "Input.dispatchMouseEvent",
                type="mouseMoved",
                x=x + part * (u - x),
                y=y + part * (v - y),
                button="left",
                buttons=1,
            )
        self._call("Input.dispatchMouseEvent", type="mouseReleased", x=u, y=v, button="left", clickCount=1)

    def screenshot(self):
        """What it shows, as the bytes of a PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

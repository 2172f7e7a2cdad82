"""A headless Chromium driven over a pair of pipes by its own protocol; no driver program, no library, no open port."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
)
# Chromium reads commands from descriptor 3 and answers on 4; by way of 10 and above, lest one overwrite the other.
WIRING = """
import fcntl, os, sys
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(high[0], 3), os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
PATIENCE = 120.0  # seconds, on a machine that does ten other things


def chromium() -> str | None:
    """The browser on this machine, if there is one that can be driven so."""
    if sys.platform == "win32":
        return None
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@contextlib.contextmanager
def browser(program: str) -> Iterator[Browser]:
    """A browser with a fresh profile, gone at the end."""
    theirs_read, commands = os.pipe()
    answers, theirs_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", "-c", WIRING, str(theirs_read), str(theirs_write)),
                *(program, *SWITCHES, f"--user-data-dir={profile}", "about:blank"),
            ],
            pass_fds=(theirs_read, theirs_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_read)
        os.close(theirs_write)
        with os.fdopen(commands, "wb", 0) as writer, os.fdopen(answers, "rb", 0) as reader:
            try:
                yield Browser(writer.write, lambda: reader.read(1 << 20))
            finally:
                with contextlib.suppress(OSError):
                    writer.write(b'{"id":0,"method":"Browser.close"}\0')
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


class Browser:
    """One tab, and all that was heard of it."""

    def __init__(self, write: Callable[[bytes], object], read: Callable[[], bytes]) -> None:
        self._write, self._read, self._rest, self._last = write, read, b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        self._write(json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self._last:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']}")
                return dict(heard["result"])
            self.events.append(heard)

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = self._read()
            if not more:
                raise RuntimeError("the browser is gone")
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(line))

    def look(self, width: int, theme: str, height: int = 900) -> None:
        """A window of this width, in a light or dark theme."""
        phone = width < 600
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def open(self, page: Path | str) -> None:
        """Load a file, or an address, and wait until it is loaded."""
        self.events.clear()
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self.command("Page.navigate", url=url)
        self.until(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url)})")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"not true after {PATIENCE} s: {condition}")
            time.sleep(0.02)

    def click(self, selector: str, times: int = 1) -> None:
        """Press the left button in the middle of an element."""
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.run(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "button": "left"}
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.command("Input.dispatchMouseEvent", type=kind, clickCount=count, **place)

    def press(self, key: str, text: str = "", shift: bool = False) -> None:
        """Press a key, which may write text, and let it go."""
        more: dict[str, Any] = {"modifiers": 8} if shift else {}
        more |= {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def hover(self, x: float, y: float) -> None:
        """Move the mouse."""
        self.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self) -> list[str]:
        """Errors and warnings of the page's console."""
        found = []
        for event in self.events:
            method, told = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(told["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(told["args"]))
            elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(told["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """The addresses the page asked for, but for those that are their own content."""
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith(("data:", "blob:"))]

    def picture(self, path: Path, whole: bool = True) -> None:
        """The page as PNG."""
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

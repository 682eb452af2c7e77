# tests/browser.py — drives Debian's chromium without a window, over its DevTools pipe
# SPDX-License-Identifier: MIT
"""A page in a real browser. The protocol is JSON messages, each ended by a zero byte."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

# The browser reads commands from descriptor 3 and writes answers to descriptor 4.
PROFILE = "--user-data-dir"
LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
FLAGS = [
    "--headless",
    "--no-sandbox",  # root, as in most containers, may not have one
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
]


def find_browser() -> str | None:
    names = ["chromium", "chromium-browser", "google-chrome"]
    return next((path for path in map(shutil.which, names) if path), None)


class Page:
    """One page, and everything that it complains about."""

    def __init__(self, browser: str, profile: Path, size: tuple[int, int] = (1280, 800)) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Above 10, so that 3 and 4 are free in the new process.
        far = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, far), browser, *FLAGS, f"{PROFILE}={profile}"],
            pass_fds=far,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (*far, theirs_in, theirs_out):
            os.close(fd)
        self._received = b""
        self._number = 0
        self._attached: str | None = None
        self._loaded = 0
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._attached = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(*size)

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._out)  # the browser ends when nobody can command it any more
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def _next_message(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._received:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError(f"the browser ended with status {self._process.wait()}")
            self._received += piece
        text, self._received = self._received.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        """Remember events that matter: the page has loaded, or something went wrong."""
        kind, what = message.get("method"), message.get("params", {})
        if kind == "Page.loadEventFired":
            self._loaded += 1
        elif kind == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(what["exceptionDetails"]))
        elif kind == "Runtime.consoleAPICalled":
            self.complaints.append(f"{what['type']}: {json.dumps(what['args'])}")
        elif kind == "Log.entryAdded":
            self.complaints.append(what["entry"]["text"])
        elif kind == "Page.javascriptDialogOpening":
            self.complaints.append(f"a dialog: {what['message']}")
        elif kind == "Network.requestWillBeSent" and not what["request"]["url"].startswith("file:"):
            self.complaints.append(f"a request: {what['request']['url']}")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command, wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._attached:
            message["sessionId"] = self._attached
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next_message(60)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def open(self, path: Path, fragment: str = "") -> None:
        # By way of an empty page, so that a new fragment loads the file anew.
        for url in ("about:blank", path.as_uri() + fragment):
            loaded = self._loaded
            self.send("Page.navigate", url=url)
            while self._loaded == loaded:
                self._next_message(60)
        self.rest()

    def run(self, script: str) -> Any:
        """Return the value of an expression (a promise is waited for), as JSON can say it."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def rest(self) -> None:
        """Wait until the view has come to rest after a movement and is drawn."""
        self.run("burtorchView.rest()")

    def click(self, x: float, y: float) -> None:
        where = {"x": x, "y": y, "button": "left", "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type="mousePressed", **where)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", **where)

    def drag(self, x: float, y: float, dx: float, dy: float) -> None:
        mouse = "Input.dispatchMouseEvent"
        self.send(mouse, type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for part in (0.5, 1.0):
            self.send(mouse, type="mouseMoved", x=x + dx * part, y=y + dy * part, buttons=1)
        self.send(mouse, type="mouseReleased", x=x + dx, y=y + dy, button="left", clickCount=1)

    def wheel(self, x: float, y: float, delta: float) -> None:
        self.send("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)

    def press(self, key: str, text: str = "", shift: bool = False) -> None:
        what = {"key": key, "modifiers": 8 if shift else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **what)
        self.send("Input.dispatchKeyEvent", type="keyUp", **what)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def touch(self, kind: str, points: Sequence[tuple[float, float]]) -> None:
        fingers = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]
        self.send("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)

    def resize(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, **wishes: str) -> None:
        """Have the user's preferences: prefer(color_scheme="dark", reduced_motion="reduce")."""
        features = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in wishes.items()
        ]
        self.send("Emulation.setEmulatedMedia", features=features)

    def screenshot(self) -> bytes:
        """Return the picture as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

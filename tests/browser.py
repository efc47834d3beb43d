"""A headless Chromium for tests of pages, driven over the WebDriver protocol."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

CHROMEDRIVER = shutil.which("chromedriver")
_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,800")
_STARTED = re.compile(r"started successfully on port (\d+)")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element in the protocol
_TIMEOUT = 60.0  # seconds
_STARTS = 5


class Browser:
    """One window. Errors of the driver are HTTP errors."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self._client = client
        self._path = f"/session/{session}"

    def _ask(self, method: str, path: str, **body: Any) -> Any:
        json = body if method == "POST" else None
        answer = self._client.request(method, f"{self._path}/{path}", json=json)
        assert answer.is_success, answer.text
        return answer.json()["value"]

    def open(self, page: Path) -> None:
        """Opens a file."""
        self._ask("POST", "url", url=page.as_uri())

    def run(self, script: str, *arguments: object) -> Any:
        """Runs a script in the page, and returns what it returns."""
        return self._ask("POST", "execute/sync", script=script, args=list(arguments))

    def click(self, selector: str) -> None:
        """Clicks the first element that a CSS selector finds, as a mouse does."""
        self._ask("POST", f"element/{self._find(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        """Types a text into an element."""
        self._ask("POST", f"element/{self._find(selector)}/value", text=text)

    def _find(self, selector: str) -> str:
        found = self._ask("POST", "element", using="css selector", value=selector)
        return str(found[_ELEMENT])

    def text(self, selector: str) -> str:
        """Returns the text that an element shows."""
        return str(self._ask("GET", f"element/{self._find(selector)}/text"))

    def count(self, selector: str) -> int:
        """Returns the number of elements that a CSS selector finds."""
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def close(self) -> None:
        """Closes the window."""
        self._client.delete(self._path)


def _start_driver() -> tuple[subprocess.Popen[str], str]:
    """Starts the driver, and returns it with its port.

    It draws a port for IPv4 and then takes the same for IPv6, which somebody else may have by then.
    """
    assert CHROMEDRIVER is not None
    for _ in range(_STARTS):
        driver = subprocess.Popen([CHROMEDRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
        assert driver.stdout is not None
        for line in driver.stdout:
            if started := _STARTED.search(line):
                return driver, started[1]
        driver.communicate()
    raise AssertionError(f"chromedriver found no free port in {_STARTS} starts")


@contextmanager
def browsing(more: Sequence[str] = ()) -> Iterator[Browser]:
    """Starts a browser with further options of Chromium."""
    driver, port = _start_driver()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=_TIMEOUT) as client:
            options = {"args": [*_OPTIONS, *more]}
            wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
            answer = client.post("/session", json=wanted)
            assert answer.is_success, answer.text
            browser = Browser(client, answer.json()["value"]["sessionId"])
            try:
                yield browser
            finally:
                browser.close()
    finally:
        driver.terminate()
        driver.communicate()

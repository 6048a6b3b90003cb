"""A headless Chromium driven over its debugging pipe: sizes, themes, print, scripts.

The protocol is that of https://chromedevtools.github.io/devtools-protocol, as JSON documents that
end with a zero byte, on the descriptors 3 and 4 (``--remote-debugging-pipe``).
"""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
AXE = Path(__file__).parent / "axe" / "node_modules" / "axe-core" / "axe.min.js"
LONGEST_WAIT = 60.0  # seconds for one answer; a page of ours takes far less


class Browser:
    """One page of a running browser; ``complaints`` are what it wrote to its console."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of, self._rest = to, of, b""
        self._numbers, self._session = itertools.count(1), None
        self.complaints: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(
        self, page: Path, *, width: int = 1280, dark: bool = False, printed: bool = False
    ) -> None:
        """Load a file and wait until it is drawn."""
        self.complaints.clear()
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
            mobile=False,
        )  # fmt: skip
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        media = "print" if printed else "screen"
        self._call("Emulation.setEmulatedMedia", media=media, features=[theme])
        self._call("Page.navigate", url=page.as_uri())
        self._wait_for("Page.loadEventFired")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script: str) -> Any:
        """The value of an expression in the page, after its promise."""
        # The pages allow no script; what the debugger evaluates is outside of their policy.
        answer = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """One key, pressed and released."""
        code = {"Tab": 9, "ArrowRight": 39, "Enter": 13}[key]
        for kind in ("rawKeyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def end(self) -> None:
        """Close the browser, so that nothing writes to its profile any more."""
        self._session = None
        self._call("Browser.close")

    def _call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        request = {"id": number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def _wait_for(self, event: str) -> None:
        while self._read().get("method") != event:
            pass

    def _read(self) -> Any:
        deadline = time.monotonic() + LONGEST_WAIT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._of], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            read = os.read(self._of, 1 << 20)
            if not read:
                raise AssertionError("the browser has ended")
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        if message.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(message["params"]))
        return message


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser of its own, ended with the block."""
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()

    def as_three_and_four() -> None:
        # Both are moved out of the way first: one of them may be 3 or 4 itself.
        commands, answers = os.dup(read_commands), os.dup(write_answers)
        os.dup2(commands, 3)
        os.dup2(answers, 4)

    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
        preexec_fn=as_three_and_four,  # noqa: PLW1509 - no thread is running here
    )  # fmt: skip
    os.close(read_commands)
    os.close(write_answers)
    try:
        page = Browser(write_commands, read_answers)
        yield page
        page.end()
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait(timeout=30)
        os.close(write_commands)
        os.close(read_answers)


def plain(html: str) -> str:
    """A page's text with its commands and dates as one reads and copies them."""
    return unescape(re.sub(r"</?(span|code)[^>]*>", "", html))


# Pairs of labels of one picture that share a pixel, and labels that leave it.
OVERLAPS = """(() => {
  const bad = [];
  for (const picture of document.querySelectorAll(".view svg")) {
    const frame = picture.getBoundingClientRect();
    if (!frame.width) continue;
    const texts = [...picture.querySelectorAll("text")];
    const boxes = texts.map((text) => text.getBoundingClientRect());
    boxes.forEach((a, index) => {
      const name = texts[index].textContent;
      if (a.left < frame.left - 1 || a.right > frame.right + 1) bad.push(`${name} leaves`);
      if (a.top < frame.top - 1 || a.bottom > frame.bottom + 1) bad.push(`${name} leaves`);
      boxes.slice(index + 1).forEach((b, other) => {
        const beside = a.left >= b.right - 1 || b.left >= a.right - 1;
        const above = a.top >= b.bottom - 2 || b.top >= a.bottom - 2;
        if (!beside && !above) bad.push(`${name} | ${texts[index + 1 + other].textContent}`);
      });
    });
  }
  return bad;
})()"""
SHOW_LAST = """for (const one of document.querySelectorAll(".switch"))
  [...one.querySelectorAll("input")].at(-1).checked = true"""
WIDEST = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll(".view svg")]
  .filter((one) => one.getBoundingClientRect().width)
  .map((one) => 12 * one.getBoundingClientRect().width / one.viewBox.baseVal.width), 99)"""

# Options and names of commands, and dates of sentences, that stand on several lines.
BROKEN_PIECES = r"""[...document.querySelectorAll("code, .lede")].flatMap((one) => {
  const nodes = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), broken = [];
  while (nodes.nextNode()) {
    const pieces = one.matches("code") ? /\S+/g : /\d{4}-\d\d-\d\d/g;
    for (const found of nodes.currentNode.data.matchAll(pieces)) {
      const range = document.createRange();
      range.setStart(nodes.currentNode, found.index);
      range.setEnd(nodes.currentNode, found.index + found[0].length);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 1) broken.push(found[0]);
    }
  }
  return broken;
})"""
# Cells of one short word that stand on several lines.
BROKEN_WORDS = """[...document.querySelectorAll("th, td")].filter((cell) => {
  const words = cell.textContent.trim();
  const range = document.createRange();
  range.selectNodeContents(cell);
  const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
  return !cell.firstElementChild && /^[\\w.]{1,14}$/.test(words) && lines.size > 1;
}).map((cell) => cell.textContent)"""


def saved(report: Any, folder: Path) -> Path:
    """A report's page as a file."""
    page = folder / "report.html"
    page.write_text(report.html, encoding="utf-8")
    return page


def assert_readable(chromium: Browser, page: Path) -> None:
    """On a desktop, a tablet, a phone and paper: labels apart, text large enough, nothing cut."""
    assert page.stat().st_size < 400_000
    for width, printed in ((1280, False), (760, False), (420, False), (660, True)):
        chromium.open(page, width=width, printed=printed)
        assert [] == chromium.run(OVERLAPS), width
        assert 0 == chromium.run(WIDEST), width
        # Paper shows finer print than a screen: 8.5 pixels are 6.4 points.
        assert (8.5 if printed else 9) <= chromium.run(SMALLEST_TEXT), width
        assert [] == chromium.run(BROKEN_WORDS), width
        chromium.run(SHOW_LAST)
        assert [] == chromium.run(OVERLAPS), width
        assert [] == chromium.complaints


def found_by_axe(chromium: Browser) -> list[str]:
    """What keeps readers out of the page that is open, by the rules of axe."""
    assert AXE.is_file(), "the accessibility rules are missing. Fix: run `make dev`"
    chromium.run(f"{AXE.read_text(encoding='utf-8')};0")
    found: list[str] = chromium.run(
        "axe.run().then(({violations}) => violations.map(({impact, id, nodes}) =>"
        " `${impact} ${id}: ${nodes.length} ${nodes[0].html} ${nodes[0].failureSummary}`))"
    )
    return found


def assert_tables_readable(html: str, folder: Path) -> None:
    """A page of tables alone: readable at every size, its commands whole, open to all readers."""
    page = folder / "page.html"
    page.write_text(html)
    with browser(folder / "profile") as chromium:
        assert_readable(chromium, page)
        for width in (1280, 700, 420):
            chromium.open(page, width=width)
            assert [] == chromium.run(BROKEN_PIECES)
        for dark in (False, True):
            chromium.open(page, width=420, dark=dark)
            assert [] == found_by_axe(chromium)

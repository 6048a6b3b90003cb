"""What reaches people and jobs: the report's pages in a browser, the wheels, the flag's import.

A page's times are beside those of a page with one word in the same browser, the import beside that
of boto3 in the same run, since both depend on the machine more than on us.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import results
from tests.packages.conftest import ROOT, uv
from tests.report import samples
from tests.report.browser import CHROMIUM, Browser, browser
from tests.report.samples import rendered

REPEATS = 7
PAGES = {
    "promote": samples.promote,
    "stay_off": samples.stay_off,
    "inconclusive": samples.inconclusive,
    "reverted": samples.reverted,
}
ONE_WORD = "<!doctype html><title>-</title><p>word"
# Milliseconds after navigation began.
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
PAINTED = """new Promise(done => new PerformanceObserver(list => {
  const paint = list.getEntriesByName("first-contentful-paint")[0];
  if (paint) done(paint.startTime);
}).observe({type: "paint", buffered: true}))"""
# CPU seconds, which other work on the machine lengthens least.
IMPORT = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"


def measure() -> dict[str, Any]:
    """Kilobytes, milliseconds (medians) and ratios."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return {
            "wheels_kb": _wheels(place / "wheels"),
            "import_cpu_ms": _imports(),
            "pages": _pages(place) if CHROMIUM else "no chromium here",
        }


def _wheels(place: Path) -> dict[str, float]:
    projects = (ROOT, ROOT / "distributions" / "flags")
    for project in projects:
        uv("build", "--wheel", "--quiet", "--no-build-isolation", "--python", sys.executable,
           "--out-dir", place, project)  # fmt: skip
    wheels = sorted(place.glob("*.whl"))
    return {wheel.name.partition("-")[0]: round(wheel.stat().st_size / 1e3, 1) for wheel in wheels}


def _imports() -> dict[str, float]:
    ours, boto3 = _cpu_milliseconds("compilegate.flags"), _cpu_milliseconds("boto3")
    return {"compilegate.flags": ours, "boto3": boto3, "ratio": round(ours / boto3, 2)}


def _cpu_milliseconds(module: str) -> float:
    command = [sys.executable, "-c", IMPORT.format(module)]
    seconds = [
        float(subprocess.run(command, cwd=ROOT, check=True, text=True, capture_output=True).stdout)
        for _ in range(REPEATS)
    ]
    return round(1000 * statistics.median(seconds), 1)


def _pages(place: Path) -> dict[str, Any]:
    with browser(place / "profile") as page:
        word = place / "word.html"
        word.write_text(ONE_WORD)
        _times(page, word)  # the browser's own start
        measured = {"one word": _times(page, word)}
        for name, sample in PAGES.items():
            measured[name] = _page(page, place / f"{name}.html", sample)
    return measured


def _page(page: Browser, file: Path, sample: Callable[[], Any]) -> dict[str, float]:
    file.write_text(rendered(sample()).html)
    return {"kb": round(file.stat().st_size / 1e3, 1), **_times(page, file)}


def _times(page: Browser, file: Path) -> dict[str, float]:
    loaded, painted = [], []
    for _ in range(REPEATS):
        page.open(file)
        loaded.append(float(page.run(LOADED)))
        painted.append(float(page.run(PAINTED)))
    return {
        "load_ms": round(statistics.median(loaded), 1),
        "first_paint_ms": round(statistics.median(painted), 1),
    }


if __name__ == "__main__":
    results.keep("delivery", measure)

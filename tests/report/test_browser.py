"""The page in a real browser, without network."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from compilegate.report.render import render
from tests.report import samples
from tests.report.test_render import HOSTILE

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,900", "--enable-logging=stderr", "--v=0",
    "--virtual-time-budget=10000", "--dump-dom",
)  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened"),
]


def open_page(report, folder, query=""):
    page = folder / "report.html"
    page.write_text(report.html, encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"{page.as_uri()}{query}"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    # What follows the last closing tag of the page's own scripts is the same in every run.
    return re.sub(r"<script>.*?</script>", "", done.stdout, flags=re.DOTALL), complaints


@pytest.mark.parametrize(
    ("name", "charts"),
    [
        ("promote", 6), ("inconclusive", 6), ("stay_off", 4), ("invalid", 3), ("ineligible", 0),
        ("with_history", 6), ("second_wins", 6), ("underpowered", 0), ("reverted", 6),
    ],
)  # fmt: skip
def test_every_chart_is_drawn_and_nothing_complains(name, charts, tmp_path):
    dom, complaints = open_page(render(samples.SAMPLES[name]()), tmp_path)

    assert complaints == []
    assert 'data-charts="drawn"' in dom
    assert "data-failed" not in dom
    assert dom.count('class="plot-container') == charts
    assert dom.count('class="main-svg"') >= charts


def test_the_dark_theme_redraws_the_charts_in_its_own_colours(tmp_path):
    light, _ = open_page(render(samples.promote()), tmp_path, "?theme=light")
    dark, complaints = open_page(render(samples.promote()), tmp_path, "?theme=dark")

    assert complaints == []
    assert 'data-theme="dark"' in dark
    assert "rgb(93, 180, 238)" in dark
    assert "rgb(93, 180, 238)" not in light


def test_hostile_words_do_nothing_in_a_browser(tmp_path):
    source = samples.promote()
    source["decision"]["candidate"] = HOSTILE
    source["decision"]["reasons"][0]["message"] = HOSTILE
    for record in ("evidence", "decision", "plan"):
        source[record]["arms"][1]["name"] = HOSTILE
    dom, complaints = open_page(render(source), tmp_path)

    assert complaints == []
    assert "<title>owned" not in dom
    assert 'data-charts="drawn"' in dom
    assert "<img" not in dom


@pytest.mark.parametrize("code", [None, "trial_over_time", "saving_below_trial_cost"])
def test_a_headline_fits_on_one_line_of_a_desktop_screen(code, tmp_path):
    source = samples.promote()
    if code is None:
        message = "reasons in their own words, from a judge of a later version, at length"
        source = samples.ended_by(source, "a_code_of_a_later_judge", message)
    else:
        source = samples.ended_by(source, code, "x")
    report = render(source)
    lines = (
        "<script>addEventListener('load',()=>{const h=document.getElementById('headline');"
        "h.dataset.lines=Math.round(h.offsetHeight/parseFloat(getComputedStyle(h).lineHeight))})"
        "</script>"
    )
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", report.html)
    dom, _ = open_page(replace(report, html=page + lines), tmp_path)

    assert 'data-lines="1"' in dom

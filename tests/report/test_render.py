"""The report as a whole: whole, deterministic, inert, and at ease with missing figures."""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import re
from functools import cache

import pytest

from compilegate.domain.decision import Verdict
from compilegate.domain.formats import UNKNOWN
from compilegate.domain.words import verdict_label
from compilegate.report.render import render
from tests.report import stories

ALL = {**stories.STORIES, "failed": stories.failed}
PLACEHOLDERS = re.compile(r"\b(None|nan|inf|null|True|False|undefined)\b")
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
)


@cache
def _rendered(name):
    """A story's report, rendered once for all tests that read it."""
    return render(ALL[name]())


def _visible(page):
    """The page's text without scripts, styles and tags."""
    body = page.partition("<body>")[2].partition("<script")[0]
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


@pytest.mark.parametrize("name", list(ALL))
def test_the_same_records_give_the_same_bytes(name):
    assert _rendered(name) == render(ALL[name]())


@pytest.mark.parametrize("name", list(ALL))
def test_the_page_loads_nothing(name):
    page = _rendered(name).html
    # plotly.js names tile servers for map traces, which nothing here draws; the policy bars them.
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)

    assert not re.findall(r"""(?:src|href|action)\s*=\s*["']?(?:https?:)?//""", own)
    assert not re.findall(r"@import|url\(", own)
    assert '<link rel="icon" href="data:,">' in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("name", list(ALL))
def test_only_the_pages_own_scripts_may_run(name):
    page = _rendered(name).html
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]

    allowed = " ".join(f"'sha256-{found}'" for found in hashes)

    assert f"script-src {allowed};" in html.unescape(page)


@pytest.mark.parametrize("name", list(ALL))
def test_no_placeholder_of_the_program_shows(name):
    report = _rendered(name)

    for text in (_visible(report.html), report.markdown, report.message):
        assert not PLACEHOLDERS.findall(text)


@pytest.mark.parametrize("name", list(stories.STORIES))
def test_the_verdict_stands_before_figures_charts_and_tables(name):
    text = _visible(_rendered(name).html)
    order = [text.index(words) for words in ("Why", "What would change", "How it was measured")]

    assert order == sorted(order)


def test_json_is_the_decision_with_its_context_in_stable_order():
    story = stories.promote()
    found = json.loads(render(story).json)

    assert found["decision"] == json.loads(json.dumps(story["decision"]))
    assert found["context"] == story["context"]
    assert list(found) == sorted(found)


def test_the_evidence_can_be_saved_from_the_page_and_judged_again():
    story = stories.promote()
    page = render(story).html
    link = re.search(r'base64,([^"]+)" download="albert-docs-m2k4t7xz-evidence.json"', page)

    assert link is not None
    assert json.loads(base64.b64decode(link[1])) == json.loads(json.dumps(story["evidence"]))


def test_hostile_words_are_shown_and_never_run():
    story = stories.promote()
    story["decision"]["workload"] = HOSTILE
    story["decision"]["reasons"][0] = {"code": HOSTILE, "message": HOSTILE}
    story["context"] = {"stage": HOSTILE, "trial": HOSTILE, "simulated": HOSTILE}
    story["evidence"]["quality"]["metric"] = HOSTILE
    for source in (story["evidence"]["arms"], story["decision"]["arms"], story["plan"]["arms"]):
        source[1]["name"] = HOSTILE
    story["decision"]["candidate"] = HOSTILE
    story["eligibility"]["candidates"][0]["reasons"][0]["fix"] = HOSTILE
    report = render(story)
    scripts = re.findall(r"<script[^>]*>", report.html)

    assert "<img" not in report.html
    assert len(scripts) == 4
    assert "<script" not in report.markdown
    assert "<img" not in report.markdown


def test_a_table_in_markdown_cannot_be_broken_by_its_cells():
    story = stories.promote()
    story["decision"]["arms"][1]["name"] = "a|b\n| c `d` @team [x](y)"
    line = next(x for x in render(story).markdown.splitlines() if x.startswith("| Arm"))

    assert line.count(" | ") == 3
    assert "@team" not in line


@pytest.mark.parametrize("name", list(stories.STORIES))
def test_markdown_puts_the_verdict_first(name):
    report = _rendered(name)
    headline = json.loads(report.json)["headline"]

    assert headline.replace("_", "\\_") in report.markdown.splitlines()[0]


def _paths(document, prefix=()):
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield (*prefix, key)
        if isinstance(value, dict | list):
            yield from _paths(value, (*prefix, key))


def _small():
    """A promotion with short series: these tests render many times."""
    story = stories.promote()
    for arm in story["evidence"]["arms"]:
        for run in arm["runs"]:
            run["step_seconds"] = run.get("step_seconds", [])[:60]
            run["loss_curve"] = run.get("loss_curve", [])[:20]
    return story


def test_any_part_of_the_decision_may_be_missing():
    story = _small()
    _without_each(story, [(key,) for key in story["decision"] if key != "verdict"])


@pytest.mark.slow
def test_any_single_figure_of_the_decision_may_be_missing():
    story = _small()
    _without_each(story, [path for path in _paths(story["decision"]) if path != ("verdict",)])


def _without_each(story, paths):
    assert paths
    for path in paths:
        decision = copy.deepcopy(story["decision"])
        part = decision
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = None
        text = _visible(render({**story, "decision": decision}).html)
        assert not PLACEHOLDERS.findall(text), path


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_is_reported_without_any_one_record(verdict):
    story = _small()
    story["decision"]["verdict"] = str(verdict)

    for record in ("evidence", "eligibility", "plan"):
        page = render({**story, record: None}).html
        assert verdict_label(verdict).text in _visible(page)


def test_what_is_unknown_is_a_dash_that_is_explained():
    story = stories.promote()
    story["decision"]["arms"][1]["peak_memory_gib"] = None
    story["decision"]["saving"] = None
    text = " ".join(_visible(render(story).html).split())

    assert f"{UNKNOWN} is unknown." in text
    assert "Peak memory: not recorded by the runs" in text
    assert f"Saving per year {UNKNOWN} Needs a speed-up, a price and a run's length." in text


def test_broken_evidence_is_named_instead_of_drawn():
    story = stories.promote()
    story["decision"]["verdict"] = "invalid"
    del story["evidence"]["arms"][0]["name"]
    text = _visible(render(story).html)

    assert "The evidence could not be read" in text


def test_an_unknown_verdict_is_refused():
    story = stories.promote()
    story["decision"]["verdict"] = "probably"

    with pytest.raises(ValueError, match="probably"):
        render(story)


def test_a_report_about_nothing_is_refused():
    story = {**stories.ineligible(), "decision": None}

    with pytest.raises(ValueError, match=r"context\.failure"):
        render(story)


def test_numbers_that_are_no_numbers_do_not_reach_the_page():
    story = stories.promote()
    story["decision"]["arms"][0]["metric_sd"] = float("nan")
    story["evidence"]["arms"][0]["runs"][-1]["loss_curve"][0][1] = float("inf")
    page = render(story).html
    figures = re.search(r'id="figures">(.*?)</script>', page)[1]

    assert json.loads(figures, parse_constant=_refuse)


def _refuse(constant):
    raise AssertionError(f"{constant} is not JSON")

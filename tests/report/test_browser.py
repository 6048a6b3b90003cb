"""The page in a real browser, without network: drawn, readable at every size, reachable by keys."""

import pytest

from tests.report import samples
from tests.report.browser import (
    BROKEN_PIECES,
    CHROMIUM,
    OVERLAPS,
    WIDEST,
    assert_readable,
    browser,
    found_by_axe,
    saved,
)
from tests.report.samples import rendered
from tests.report.test_render import HOSTILE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened"),
]
PAGES = (
    "promote", "inconclusive", "stay_off", "invalid", "ineligible", "with_history", "second_wins",
    "underpowered", "reverted", "scored_per_example", "cheaper_cluster", "two_proofs",
)  # fmt: skip


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
def test_labels_never_touch_and_nothing_is_wider_than_the_page(name, chromium, tmp_path):
    assert_readable(chromium, saved(rendered(samples.SAMPLES[name]()), tmp_path))


@pytest.mark.parametrize("name", ["promote", "reverted", "ineligible"])
def test_no_command_breaks_inside_an_option_on_a_telephone(name, chromium, tmp_path):
    for width in (420, 360):
        chromium.open(saved(rendered(samples.SAMPLES[name]()), tmp_path), width=width)
        assert [] == chromium.run(BROKEN_PIECES)


def test_themes_differ_in_colour_alone_and_paper_is_always_light(chromium, tmp_path):
    page, seen = saved(rendered(samples.promote()), tmp_path), []
    for dark, printed in ((False, False), (True, False), (True, True)):
        chromium.open(page, dark=dark, printed=printed)
        ink = chromium.run("getComputedStyle(document.querySelector('svg .first')).color")
        seen.append((ink, chromium.run("document.querySelector('.view svg').outerHTML")))

    (light, drawn), (dark, redrawn), (paper, _) = seen
    assert light == paper == "rgb(0, 103, 168)"
    assert dark == "rgb(93, 180, 238)"
    assert drawn == redrawn


def test_a_chart_has_one_view_at_a_time_and_keys_choose_it(chromium, tmp_path):
    chromium.open(saved(rendered(samples.promote()), tmp_path))
    shown = """[...document.querySelectorAll("#chart-cost .view")].map((v) => v.offsetHeight > 0)"""
    chromium.run("document.getElementById('cost-0').focus()")
    before = chromium.run(shown)
    chromium.press("ArrowRight")

    assert [[True, False], [False, True]] == [before, chromium.run(shown)]


def test_the_keyboard_reaches_everything_in_reading_order(chromium, tmp_path):
    chromium.open(saved(rendered(samples.promote()), tmp_path))
    places = []
    for _ in range(40):
        chromium.press("Tab")
        places.append(chromium.run(
            "(() => { const e = document.activeElement; return e === document.body ? null :"
            " [e.className, Math.round((e.closest('figure') ?? e).getBoundingClientRect().top"
            " + scrollY)] })()"
        ))  # fmt: skip
        if places[-1] is None:
            break
    tops = [top for _, top in filter(None, places[1:])]

    assert "skip" == places[0][0]
    assert tops == sorted(tops)
    assert len(tops) > 8


def test_hostile_words_do_nothing_in_a_browser(chromium, tmp_path):
    source = samples.promote()
    source["decision"]["reasons"][0]["message"] = HOSTILE
    samples.rename_candidate(source, HOSTILE)
    chromium.open(saved(rendered(source), tmp_path), width=420)

    assert [] == chromium.complaints
    assert "owned" != chromium.run("document.title")
    assert 0 == chromium.run("document.images.length")
    assert [] == chromium.run(OVERLAPS)
    assert 0 == chromium.run(WIDEST)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["promote", "scored_per_example", "invalid", "ineligible"])
def test_axe_finds_nothing_that_keeps_readers_out(name, dark, chromium, tmp_path):
    for width in (1280, 420):
        chromium.open(saved(rendered(samples.SAMPLES[name]()), tmp_path), width=width, dark=dark)
        chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")

        assert [] == found_by_axe(chromium)

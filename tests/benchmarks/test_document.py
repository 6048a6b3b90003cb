import json
import math
import re

import numpy as np
import pytest

from benchmarks.decision.calibrate import LEVELS
from benchmarks.decision.document import (
    BLOCK,
    BLOCKS,
    HOW_IT_DECIDES,
    PAGES,
    refreshed,
)
from benchmarks.decision.driver import Driver
from benchmarks.decision.gate import DESIGNS
from benchmarks.decision.levels import LEVELS_FILE, turns
from benchmarks.decision.play import policy
from benchmarks.decision.portfolio import draw
from benchmarks.decision.world import World
from tests.domain.evidence_builder import judge

PAGE_TEXT = HOW_IT_DECIDES.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_shows_what_the_kept_results_say(page):
    """Where this fails: python -m benchmarks.decision --document."""
    assert refreshed(page.read_text()) == page.read_text()


def test_every_table_has_its_place_on_a_page():
    shown = [match["name"] for page in PAGES for match in BLOCK.finditer(page.read_text())]

    assert sorted(BLOCKS) == sorted(shown)


def example(name):
    return judge(json.loads((HOW_IT_DECIDES.with_name("examples") / name).read_text())).to_dict(
        "flag"
    )


def test_the_worked_example_is_the_judges():
    decision = example("evidence.json")
    words = " ".join(PAGE_TEXT.split())
    assert "promote" == decision["verdict"]
    assert f"{decision['speedup']['estimate']:.2f}x" in words
    assert f"${decision['saving']['usd_per_run']:.0f} a run" in words
    assert f"${decision['saving']['usd_per_year']:,.0f} a year" in words
    assert 3 == math.ceil(decision["saving"]["payback_runs"])
    assert "paid for itself after three runs" in words
    assert {"baseline": 2, "candidate": 3} == {
        arm: decision["quality"]["runs"][arm] for arm in ("baseline", "candidate")
    }
    assert f"differ by {abs(decision['quality']['estimate']):.5f}" in words


def test_the_worked_example_of_a_revert_is_the_judges():
    decision = example("probation.json")
    assert "revert" == decision["verdict"]
    lost = float(re.search(r"worse by ([0-9.]+\d)", decision["reasons"][0]["message"])[1])
    assert f"show a loss of {lost:.3f}" in " ".join(PAGE_TEXT.split())


def test_every_level_is_kept_in_every_design_that_the_rules_allow():
    rows = json.loads(LEVELS_FILE.read_text())["rows"]
    allowed = [row for design in DESIGNS for row in rows if row["case"].startswith(design)]

    assert {round(level, 6) for level in LEVELS} == {row["level"] for row in allowed}
    for row in allowed:
        assert row["share"] <= 1 + 2 * row["se"]


def test_the_turns_of_a_moving_world_are_those_that_the_judge_asks_for():
    world = World(
        draw(np.random.default_rng(3), "all_good", candidates=1), np.random.default_rng(3)
    )
    driving = Driver(world, policy("canary", strict=True))
    driving.trial()
    runs = {arm.name: [run.order for run in arm.quality] for arm in driving.evidence.arms}
    ours, theirs = next(v for k, v in runs.items() if k != "baseline" and v), runs["baseline"]

    assert len(ours) > 1
    assert [list(side[: len(ours)]) for side in turns(len(ours))] == [ours, theirs[: len(ours)]]

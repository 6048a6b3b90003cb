"""Any evidence is explained, and what is shown decides as the judge did."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.codec import rounded
from compilegate.domain.judging.speed import SPEED_LOOKS
from compilegate_judge.command import judged
from compilegate_judge.explanation import explain
from compilegate_judge.item import Section
from tests.domain.evidence_builder import document
from tests.domain.evidence_strategies import probations, trials
from tests.domain.outcome_builder import scored
from tests.domain.test_fuzz import BROKEN, PLACES, UNPROMOTABLE, corrupt
from tests.domain.test_guardrails import MARGIN, production, steady
from tests.domain.test_guardrails import trial as guarded
from tests.fuzzing import at_most

many = at_most(150)
Items = list[dict[str, Any]]


def items_of(doc: Any) -> Items:
    decision = judged(doc)
    items = [item.to_dict() for item in explain(doc, decision)]
    json.dumps(items, allow_nan=False)
    return items


def about(items: Items, section: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Items by arm and name; of a table the last row."""
    by_arm: dict[str, dict[str, dict[str, Any]]] = {}
    for item in items:
        if item["section"] == section:
            by_arm.setdefault(str(item["arm"]), {})[item["name"]] = item
    return by_arm


@given(doc=trials())
@many
def test_the_speed_shown_decides_as_the_gate_did(doc):
    for items in about(items_of(doc), Section.SPEED).values():
        outcome, bound = items["answer"]["value"], items.get("proven speed-up")
        estimate = items["speed-up against the one asked"]["value"]
        dropped = items["best that it can still be"]["value"] < 1.2
        proven = bound is not None and (bound["value"] or 0) > 1.1

        assert (outcome in ("too_slow", "below_promote")) == dropped
        assert (outcome == "passed") == (proven and estimate >= 1.2 and not dropped)
        assert (bound is not None) == (
            items["speed-up that the blocks predict"]["inputs"]["blocks"] >= SPEED_LOOKS[0]
        )


@given(doc=trials())
@many
def test_the_quality_shown_decides_as_the_gate_did(doc):
    for items in about(items_of(doc), Section.QUALITY).values():
        test, outcome = (
            items.get("chance of this at a loss of the margin"),
            items["answer"]["value"],
        )
        chance = items.get("chance that the last look passes")
        if test is not None:
            passed = test["value"] <= items["error of this look"]["value"]
            alone = items["answer"]["words"].startswith("History alone")
            assert passed == (outcome == "held" or alone)
        if chance is not None:
            assert (outcome == "inconclusive") == (chance["value"] < 0.15)


@given(doc=probations())
@many
def test_the_probation_shown_decides_as_the_watch_did(doc):
    items = items_of(doc)
    verdict = next(i["value"] for i in items if i["section"] == "next")
    checks = [i for i in items if i["name"].startswith("alarm checked")]
    confirmed = [i for i in checks if i["words"] == "confirmed"]

    assert ("revert" == verdict) == bool(confirmed)
    assert all(i["value"] > i["inputs"]["tolerated"] for i in confirmed)


@given(data=st.data())
@many
def test_broken_evidence_is_explained_as_far_as_it_goes(data):
    name = data.draw(st.sampled_from(list(UNPROMOTABLE)))
    doc = UNPROMOTABLE[name]()
    place = data.draw(st.sampled_from(PLACES[name]))
    corrupt(doc, place, data.draw(st.sampled_from(["drop", "repeat", "negate", "set"])),
            data.draw(st.sampled_from(BROKEN)))  # fmt: skip

    items = items_of(doc)

    assert ("fairness", "next") == (items[0]["section"], items[-1]["section"])


def test_a_cheaper_candidates_bars_speak_of_late_recompilations_only_where_there_were_some():
    doc = document(blocks=1)
    doc["arms"][1]["usd_per_hour"] = 0.5 * (doc["arms"][0].get("usd_per_hour") or 1.0)
    doc["arms"][0].setdefault("usd_per_hour", 1.0)
    words = [i["words"] for i in items_of(doc) if i["name"] == "best that it can still be"]

    assert [True, False] == ["min_mean_speedup" in text for text in words]
    assert not [text for text in words if "Late recompilations" in text]


def test_the_spread_shown_in_two_parts_is_the_decisions():
    doc = scored(0.004, runs=5)
    items = about(items_of(doc), Section.QUALITY)["compile"]
    evaluation = judged(doc).to_dict("flag")["quality"]["evaluation"]

    assert items["spread of the evaluation"]["value"] == rounded(evaluation["spread_of_evaluation"])
    assert items["spread of training"]["value"] == rounded(evaluation["spread_of_training"])
    assert items["runs on more examples"]["value"] == evaluation["larger"][-1]["runs"]


def test_outcomes_that_allow_no_split_say_why():
    items = about(items_of(scored(0.004, runs=2)), Section.QUALITY)["compile"]

    assert items["spread of the evaluation"]["value"] is None
    assert "too few runs" in items["spread of the evaluation"]["words"]
    assert "spread of training" not in items


def test_guardrails_are_explained_beside_the_first_metric_in_trial_and_probation():
    own = about(items_of(guarded(steady(2 * MARGIN))), Section.QUALITY)
    watched = about(items_of(production([0.9])), Section.PROBATION)["None"]

    assert ["held", "worse"] == [one["answer"]["value"] for one in own.values()]
    assert "guardrail top5 monitor: limit" in watched

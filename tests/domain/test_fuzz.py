"""However evidence is broken, it is judged or refused, and what was not proven stays unproven."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.decision import Verdict
from compilegate.domain.errors import InvalidEvidenceError
from tests.domain.evidence_builder import (
    CENTRE,
    GOOD,
    NOISY,
    PROBATION_MARGIN,
    WORSE,
    arm,
    document,
    judge,
    probation_document,
    runs,
    watch,
)
from tests.fuzzing import BROKEN, at_most, corrupt, places

much = at_most(400)


def verdict(doc: Any) -> Verdict | None:
    """None where the evidence is refused; any other exception is a failure."""
    try:
        decision = judge(doc)
        decision.to_dict("/f")
    except InvalidEvidenceError:
        return None
    return decision.verdict


def noise() -> dict[str, Any]:
    return document(metrics=NOISY, goal="maximize", margin=0.005)


def losing() -> dict[str, Any]:
    doc = probation_document()
    for _ in range(3):
        watch(doc, metric=CENTRE - 3 * PROBATION_MARGIN)
    for _ in range(3):
        watch(doc, "baseline", confirm=True)
        watch(doc, metric=CENTRE - 3 * PROBATION_MARGIN, confirm=True)
    return doc


UNPROMOTABLE: dict[str, Callable[[], dict[str, Any]]] = {
    "slow": lambda: document(speedup=1.0, metrics=GOOD),
    "worse": lambda: document(metrics=WORSE),
    "noisy": noise,
    "two blocks": lambda: document(blocks=2, metrics=GOOD),
    "no full run": document,
    "reverted": losing,
}
# What a fault may not touch where it would make the truth another one.
TRUTHS = {("quality", "margin"), ("quality", "goal")}


PLACES = {
    name: [place for place in places(make()) if place not in TRUTHS]
    for name, make in UNPROMOTABLE.items()
}


@pytest.mark.parametrize("name", UNPROMOTABLE)
@given(data=st.data())
@much
def test_no_corruption_of_unpromotable_evidence_switches_on(name, data):
    doc = UNPROMOTABLE[name]()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(PLACES[name]))
        how = data.draw(st.sampled_from(["drop", "repeat", "negate", "set"]))
        try:
            corrupt(doc, place, how, data.draw(st.sampled_from(BROKEN)))
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # an earlier fault took the place away

    assert verdict(doc) not in (Verdict.PROMOTE, Verdict.PERMANENT)


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
        st.sampled_from(["baseline", "trial", "speed", "quality"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(st.text(max_size=8), st.sampled_from(list(document()))), inner, max_size=6
        ),
    ),
    max_leaves=20,
)  # fmt: skip


@given(doc=JSON)
@much
def test_whatever_is_not_evidence_is_refused(doc):
    assert verdict(doc) is None


@given(key=st.sampled_from(list(document())), value=JSON)
@much
def test_any_value_of_a_top_level_key_is_judged_or_refused(key, value):
    verdict({**document(metrics=GOOD), key: value})


@given(data=st.data(), value=JSON)
@much
def test_any_value_in_a_run_is_judged_or_refused(data, value):
    doc = data.draw(st.sampled_from([document(metrics=GOOD), losing()]))
    doc = copy.deepcopy(doc)
    run = data.draw(st.sampled_from(data.draw(st.sampled_from(doc["arms"]))["runs"]))
    extra = ["loss_curve", "compiler", "peak_memory_gib", "initial_loss", "new"]
    run[data.draw(st.sampled_from([*run, *extra]))] = value

    verdict(doc)


Change = Callable[[dict[str, Any]], object]
REMOVED: dict[str, Change] = {
    "a block of the candidate": lambda d: arm(d)["runs"].pop(0),
    "a block of the baseline": lambda d: arm(d, "baseline")["runs"].pop(0),
    "every full run of the candidate": lambda d: arm(d).update(runs=runs(d, stage="speed")),
    "every full run of the baseline": lambda d: arm(d, "baseline").update(
        runs=runs(d, "baseline", "speed")
    ),
    "all but one full run": lambda d: arm(d).update(runs=runs(d, stage="speed") + runs(d)[:1]),
    "a metric": lambda d: runs(d)[0].update(metric=None),
    "that a run finished": lambda d: runs(d)[0].update(finished=False),
    "that a segment finished": lambda d: runs(d, stage="speed")[0].update(finished=False),
    "the treatment": lambda d: runs(d)[0].update(applied=False),
    "the treatment's proof": lambda d: runs(d)[0].update(applied=None),
    "a wall clock": lambda d: runs(d)[0].update(wall_seconds=None),
    "every wall clock of the baseline": lambda d: [
        run.update(wall_seconds=None) for run in runs(d, "baseline")
    ],
    "most steps of a segment": lambda d: runs(d, stage="speed")[0].update(
        step_seconds=runs(d, stage="speed")[0]["step_seconds"][:39]
    ),
    "a fingerprint": lambda d: runs(d)[0].pop("fingerprint"),
    "the baseline": lambda d: d["arms"].pop(0),
    "the candidate": lambda d: d["arms"].pop(1),
    "the margin": lambda d: d["quality"].pop("margin"),
    "the goal": lambda d: d["quality"].pop("goal"),
    "the steps of a full run": lambda d: d.pop("full_run_steps"),
    "the node in common": lambda d: runs(d, stage="speed")[0].update(node="other"),
    "the spread": lambda d: [
        run.update(metric=2.5) for name in ("baseline", "compile") for run in runs(d, name)
    ],
    "the runs that remain": lambda d: d.update(runs_remaining=3),
}


@pytest.mark.parametrize("what", REMOVED)
def test_without_its_proof_a_promotable_candidate_is_not_promoted(what):
    doc = document(metrics=GOOD)
    assert Verdict.PROMOTE == verdict(doc)
    REMOVED[what](doc)

    assert verdict(doc) is not Verdict.PROMOTE

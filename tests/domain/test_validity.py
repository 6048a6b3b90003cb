"""Evidence that does not compare like with like is invalid and never promotes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compilegate.domain.decision import FlagAction, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.validity import (
    alike_but_for_time,
    is_unapplied,
)
from tests.domain.evidence_builder import (
    FINGERPRINT as FINGERPRINTED,
)
from tests.domain.evidence_builder import (
    GOOD,
    add_candidate,
    arm,
    codes,
    document,
    full_runs,
    judge,
    probation_document,
    quality_run,
    runs,
    watch,
)
from tests.domain.outcome_builder import packed_bits

Document = dict[str, Any]
OLDER = {"framework": {"name": "pytorch", "version": "1.13.1"}}
MANAGED = {"compiler": "sagemaker_training_compiler"}


def invalid_codes(doc: Document) -> set[str]:
    decision = judge(doc)
    assert (Verdict.INVALID, FlagAction.KEEP) == (decision.verdict, decision.flag_action)
    assert decision.next is None
    return codes(decision)


@pytest.fixture
def good() -> Document:
    return document(metrics=GOOD)


def second_candidate_not_applied(doc: Document) -> None:
    add_candidate(doc, "other", speedup=1.2, metrics=GOOD["compile"])
    runs(doc, "other")[0]["applied"] = False


def without(key: str) -> Callable[[Document], None]:
    def change(doc: Document) -> None:
        for run in arm(doc)["runs"]:
            del run[key]

    return change


def in_every_full_run(doc: Document) -> None:
    for run in full_runs(doc):
        run["fingerprint"]["gpu"] = "other"


def repeated(key: str, where: str) -> Callable[[Document], None]:
    def change(doc: Document) -> None:
        same = runs(doc, where, "speed" if key == "block" else "quality")
        same[1][key] = same[0][key]

    return change


def another_precision(doc: Document) -> None:
    arm(doc)["overrides"] = {"precision": "fp8"}
    for run in arm(doc)["runs"]:
        del run["applied"]
        run["fingerprint"]["precision"] = "fp8"


def larger_batches_in_fewer_steps(doc: Document) -> None:
    arm(doc).update(full_run_steps=1000, overrides={"batch_size": 64})
    for run in runs(doc, stage="speed"):
        run.update(samples_per_step=64, step_seconds=[2 * x for x in run["step_seconds"]])


def as_recorded_where_one_batch_size_counts_for_all_arms(doc: Document) -> None:
    arm(doc).update(full_run_steps=1000, overrides={"batch_size": 64})


def other_samples_in_a_later_block(doc: Document) -> None:
    as_recorded_where_one_batch_size_counts_for_all_arms(doc)
    runs(doc, stage="speed")[1]["samples_per_step"] = 48


def another_price_on_other_nodes(doc: Document) -> None:
    arm(doc)["usd_per_hour"] = 1.0
    for run in runs(doc, stage="speed"):
        run["node"] = "elsewhere"


BROKEN: dict[str, tuple[str, Callable[[Document], object]]] = {
    "a segment without the change": (
        "treatment_not_applied", lambda d: runs(d, stage="speed")[-1].update(applied=False)),
    "a full run without the change": (
        "treatment_not_applied", lambda d: runs(d)[-1].update(applied=False)),
    "no proof of the compiler": ("treatment_not_applied", without("applied")),
    "no proof of a change that is not listed": (
        "treatment_not_applied", lambda d: [without("applied")(d), arm(d).update(overrides={})]),
    "one candidate of two": ("treatment_not_applied", second_candidate_not_applied),
    **{
        f"another {key} in {where}": (
            "arms_differ",
            lambda d, k=key, w=where: arm(d, w)["runs"][-1]["fingerprint"].update({k: "other"}))
        for key in ("gpu", "torch", "code_sha256", "data_sha256")
        for where in ("baseline", "compile")
    },
    "a missing fingerprint key": (
        "arms_differ", lambda d: arm(d)["runs"][0]["fingerprint"].pop("gpu")),
    "one arm without fingerprints": ("arms_differ", without("fingerprint")),
    "stages on different hardware": ("arms_differ", in_every_full_run),
    "other hardware of a run that failed": (
        "arms_differ",
        lambda d: runs(d)[-1].update(finished=False, metric=None, fingerprint={"gpu": "other"})),
    "another node in a block behind one that the baseline lacks": (
        "arms_differ", lambda d: [
            arm(d, "baseline")["runs"].pop(0), arm(d)["runs"][1].update(node="elsewhere")]),
    "another batch in a block behind one without samples": (
        "arms_differ", lambda d: [
            arm(d, "baseline")["runs"][0].pop("samples_per_step"),
            arm(d)["runs"][1].update(samples_per_step=31.2)]),
    "another node in a block": (
        "arms_differ", lambda d: arm(d)["runs"][0].update(node="elsewhere")),
    "another batch in a block, by a little more than 2 %": (
        "arms_differ", lambda d: arm(d)["runs"][0].update(samples_per_step=31.2)),
    "other samples than the plan of fewer steps has, in a later block": (
        "arms_differ", other_samples_in_a_later_block),
    "a first loss that is no number": (
        "unequal_initial_loss", lambda d: runs(d)[0].update(initial_loss=float("nan"))),
    "another first loss, by a little more than 1 %": (
        "unequal_initial_loss", lambda d: runs(d)[0].update(initial_loss=3.053)),
    **{
        f"a repeated {key} of {where}": ("runs_repeated", repeated(key, where))
        for key in ("block", "order") for where in ("baseline", "compile")
    },
    "a copy under another order": (
        "runs_repeated",
        lambda d: arm(d)["runs"].append({**copy.deepcopy(runs(d)[0]), "order": 99})),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_not_like_for_like_is_invalid(good, what):
    code, change = BROKEN[what]
    change(good)

    assert code in invalid_codes(good)


@pytest.mark.parametrize(
    ("both", "one"),
    [
        ({}, {}), ({"seed": None}, {}), ({"finished": False, "metric": None}, {}),
        ({"wall_seconds": None}, {}), ({"mode": "canary"}, {}), ({}, {"seed": 99}),
        ({}, {"metric": 2.5}), ({}, {"wall_seconds": 66.0}),
    ],
    ids=str,
)  # fmt: skip
def test_only_whole_extra_runs_with_one_result_are_copies(good, both, one):
    first, second, *_ = runs(good)
    second.update({key: first[key] for key in ("seed", "metric", "wall_seconds")})
    for run in (first, second):
        run.update(both)
    second.update(one)

    assert ("runs_repeated" in codes(judge(good))) == (not both and not one)


FINGERPRINT = (
    "code_sha256", "cuda", "data_sha256", "driver", "global_batch", "gpu", "image", "precision",
    "python", "threads", "torch", "transformers", "world_size",
)  # fmt: skip
OF_MACHINES = {"gpu", "driver", "threads", "world_size", "global_batch"}
OF_IMAGES = {"image", "torch", "cuda", "transformers", "python"}


@pytest.mark.parametrize(
    ("keys", "explained"),
    [
        ({"overrides": {"instance_type": "ml.p4d.24xlarge"}}, OF_MACHINES),
        ({"overrides": {"instance_count": 2}}, {"world_size", "global_batch"}),
        ({"overrides": {"batch_size": 48}}, {"global_batch"}),
        ({"overrides": {"precision": "fp8"}}, {"precision"}),
        ({"overrides": {"distribution": "smddp"}}, {"world_size", "global_batch"}),
        ({"overrides": OLDER}, OF_IMAGES),
        ({"overrides": MANAGED}, OF_IMAGES),
        ({"overrides": {"entry_point": "xla/train.py"}}, {"code_sha256"}),
        ({"overrides": {"compiler": "torch_compile", "compile_mode": "max-autotune"}}, set()),
        ({"overrides": {"hyperparameters": {"dropout": 0.0}}, "usd_per_hour": 1.0}, set()),
        ({"overrides": {"hyperparameters": {"epochs": 2}}, "full_run_steps": 1000}, set()),
        # Where the overrides are not listed, the arm's own figures tell.
        ({"overrides": {}}, set()),
        ({"overrides": {}, "usd_per_hour": 1.0}, OF_MACHINES),
        ({"overrides": {}, "devices": 2}, OF_MACHINES),
        ({"overrides": {}, "full_run_steps": 1000}, {"global_batch"}),
    ],
)
def test_a_change_explains_its_own_fingerprint_and_no_other(good, keys, explained):
    arm(good).update(keys)

    def invalid(key: str) -> bool:
        doc = copy.deepcopy(good)
        for run in arm(doc)["runs"]:
            run["fingerprint"][key] = "other"
        return "arms_differ" in codes(judge(doc))

    assert explained == {key for key in FINGERPRINT if not invalid(key)}


@pytest.mark.parametrize(
    ("overrides", "own"),
    [
        ({"instance_count": 2}, True), ({"distribution": "smddp"}, True), (OLDER, True),
        ({"entry_point": "xla.py"}, True), (MANAGED, True), ({"batch_size": 64}, False),
        ({"compiler": "torch_compile"}, False), ({"hyperparameters": {"dropout": 0.0}}, False),
    ],
)  # fmt: skip
def test_other_nodes_are_fair_only_where_the_change_needs_them(good, overrides, own):
    arm(good)["overrides"] = overrides
    for run in runs(good, stage="speed"):
        run["node"] = "elsewhere"

    assert own == ("arms_differ" not in codes(judge(good)))


@pytest.mark.parametrize(
    "change",
    [
        another_precision, larger_batches_in_fewer_steps,
        another_price_on_other_nodes, lambda d: runs(d)[0].update(initial_loss=3.044),
        lambda d: arm(d)["runs"][0].update(samples_per_step=31.5),
        lambda d: arm(d)["runs"][0].pop("node"),
        lambda d: arm(d, "baseline")["runs"][0].pop("node"),
        lambda d: [run.pop("applied") for run in runs(d, stage="speed")],
        lambda d: [run.pop("applied") for run in arm(d, "baseline")["runs"]],
        as_recorded_where_one_batch_size_counts_for_all_arms,
    ],
)  # fmt: skip
def test_what_the_change_explains_is_valid(good, change):
    change(good)
    decision = judge(good)

    assert Verdict.PROMOTE == decision.verdict
    # Another batch explains another first loss, and no run recorded its weights.
    of_another_batch = "batch_size" in arm(good)["overrides"]
    assert of_another_batch == ("start_unknown" in codes(decision))


@pytest.mark.parametrize(
    ("overrides", "loss", "weights"),
    [
        ({"batch_size": 48}, True, False), ({"precision": "fp8"}, True, True),
        ({"instance_type": "ml.p4d.24xlarge"}, True, True), ({"instance_count": 2}, True, True),
        ({"distribution": "smddp"}, True, True), (OLDER, True, True),
        ({"entry_point": "xla/train.py"}, False, True), (MANAGED, False, False),
        ({"hyperparameters": {"dropout": 0.0}}, False, False),
    ],
)  # fmt: skip
def test_a_change_may_explain_another_first_loss_and_other_weights(
    good, overrides, *, loss, weights
):
    arm(good)["overrides"] = overrides
    runs(good)[0]["initial_loss"] = 3.5
    for name in ("baseline", "compile"):
        for run in runs(good, name):
            run["initial_weights_sha256"] = name
    unequal = codes(judge(good)) & {"unequal_initial_loss", "unequal_initial_weights"}

    assert (loss, weights) == (
        "unequal_initial_loss" not in unequal, "unequal_initial_weights" not in unequal,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "applied", "of_block", "of_full_run"),
    [
        (MANAGED, True, False, False), (MANAGED, False, True, True), (MANAGED, None, False, True),
        ({}, None, False, True), ({"precision": "fp8"}, None, False, False),
        ({"precision": "fp8"}, False, True, True),
    ],
)  # fmt: skip
def test_a_full_run_has_to_prove_a_compiler(good, overrides, applied, of_block, of_full_run):
    arm(good)["overrides"] = overrides
    for run in arm(good)["runs"]:
        run["applied"] = applied
    candidate = read_evidence(good).arms[1]

    assert of_block is is_unapplied(candidate.speed[0], candidate)
    assert of_full_run is is_unapplied(candidate.quality[0], candidate)


@pytest.mark.parametrize(
    ("ours", "theirs", "differ"),
    [("a", "b", False), ("aa", "b", True), ("a", "bb", True), ("aa", "aa", False),
     ("ab", "cc", False), ("aa", "bc", False), ("a", "", False)],
)  # fmt: skip
def test_arms_of_one_set_each_were_scored_alike_unless_they_may_be_of_two_nights(
    ours, theirs, differ
):
    doc = document(metrics={"baseline": [2.5] * len(theirs), "compile": [2.5] * len(ours)})
    for name, sets in (("baseline", theirs), ("compile", ours)):
        for run, identity in zip(runs(doc, name), sets, strict=True):
            run["outcomes"] = packed_bits(np.ones(8, bool), 64 * identity)

    assert differ is ("evaluation_sets_differ" in codes(judge(doc)))


@pytest.mark.parametrize(
    ("own", "alike"),
    [({}, True), ({"data_sha256": "e", "driver": "f"}, True), ({"gpu": "other"}, False),
     ({"image": "new"}, False)],
)  # fmt: skip
def test_time_may_bring_other_data_and_drivers(own, alike):
    assert alike is alike_but_for_time({**FINGERPRINTED, **own}, FINGERPRINTED)


def test_a_failed_run_need_not_prove_anything(good):
    runs(good)[-1].update(finished=False, metric=None, applied=None)

    assert {"candidate_crashed"} <= codes(judge(good))


@pytest.fixture
def canary() -> Document:
    """A promotion whose full runs production made, each on newer data and a newer driver."""
    doc = document(metrics=GOOD, policy={"quality_runs": "canary"})
    for item in doc["arms"]:
        for number, run in enumerate(item["runs"]):
            run["fingerprint"] = {"gpu": "A10G", "driver": "550", "image": "i", "data_sha256": "d0"}
            if run["stage"] == "quality":
                run |= {"mode": "canary", "initial_loss": 3.0 + number}
                run["fingerprint"] |= {"data_sha256": f"d{number}", "driver": f"55{number}"}
    return doc


@pytest.mark.parametrize(
    ("of_fingerprint", "of_run", "valid"),
    [
        ({}, {}, True), ({"gpu": "another"}, {}, False), ({"image": "another"}, {}, False),
        ({}, {"mode": "shadow"}, False), ({}, {"mode": "production"}, True),
        ({}, {"mode": "production", "fingerprint": {"gpu": "another"}}, False),
        ({}, {"mode": "production", "fingerprint": {}}, True), ({}, {"fingerprint": {}}, False),
        ({}, {"fingerprint": {}, "finished": False, "metric": None}, True),
    ],
)  # fmt: skip
def test_production_may_change_in_data_and_driver_alone(canary, of_fingerprint, of_run, *, valid):
    runs(canary)[-1]["fingerprint"].update(of_fingerprint)
    runs(canary)[-1].update(of_run)

    assert ({"arms_differ"} == codes(judge(canary))) == (not valid)


def test_runs_of_one_seed_start_alike_only_where_they_had_the_same_data(canary):
    ours, theirs = runs(canary)[-1], runs(canary, "baseline")[0]
    ours.update(seed=theirs["seed"], initial_loss=theirs["initial_loss"] * 2)
    assert Verdict.PROMOTE == judge(canary).verdict

    ours["fingerprint"]["data_sha256"] = theirs["fingerprint"]["data_sha256"]
    assert {"unequal_initial_loss"} == codes(judge(canary))


def test_copies_of_one_production_run_are_invalid():
    doc = watch(probation_document())
    arm(doc)["runs"] += [copy.deepcopy(runs(doc, stage="probation")[0]) for _ in range(12)]

    assert {"runs_repeated"} == invalid_codes(doc)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.9", True, 1e300])
def test_a_metric_that_is_not_a_number_is_bad_input(good, value):
    arm(good)["runs"].append({**quality_run(9, 99, 0.0, 60.0), "metric": value})

    with pytest.raises(InvalidEvidenceError, match="metric"):
        judge(good)

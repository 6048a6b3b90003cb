"""Evidence that does not compare like with like is invalid and never promotes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compilegate.domain.decision import FlagAction, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from tests.domain.evidence_builder import (
    GOOD,
    add_candidate,
    arm,
    codes,
    document,
    judge,
    probation_document,
    quality_run,
    runs,
    watch,
)


def invalid_codes(doc: dict[str, Any]) -> set[str]:
    decision = judge(doc)
    assert (Verdict.INVALID, FlagAction.KEEP) == (decision.verdict, decision.flag_action)
    assert decision.next is None
    return codes(decision)


@pytest.fixture
def good() -> dict[str, Any]:
    return document(metrics=GOOD)


@pytest.mark.parametrize("stage", ["speed", "quality"])
def test_a_treatment_that_was_not_applied_is_invalid(good: dict[str, Any], stage: str) -> None:
    runs(good, stage=stage)[-1]["applied"] = False

    assert {"treatment_not_applied"} == invalid_codes(good)


def test_a_full_run_that_does_not_prove_its_compiler_is_invalid(good: dict[str, Any]) -> None:
    for run in arm(good)["runs"]:
        del run["applied"]

    assert {"treatment_not_applied"} == invalid_codes(good)


def test_a_change_of_another_kind_shows_in_the_fingerprint_and_needs_no_proof(
    good: dict[str, Any],
) -> None:
    arm(good)["overrides"] = {"precision": "fp8"}
    for run in arm(good)["runs"]:
        del run["applied"]
        run["fingerprint"]["precision"] = "fp8"

    assert Verdict.PROMOTE == judge(good).verdict


def test_one_candidate_that_was_not_applied_spoils_the_trial(good: dict[str, Any]) -> None:
    add_candidate(good, "other", speedup=1.2, metrics=GOOD["compile"])
    runs(good, "other")[0]["applied"] = False

    assert {"treatment_not_applied"} == invalid_codes(good)


@pytest.mark.parametrize("key", ["gpu", "torch", "code_sha256", "data_sha256"])
@pytest.mark.parametrize("where", ["baseline", "compile"])
def test_arms_that_differ_in_more_than_the_change_are_invalid(
    good: dict[str, Any], key: str, where: str
) -> None:
    arm(good, where)["runs"][-1]["fingerprint"][key] = "other"

    assert {"arms_differ"} == invalid_codes(good)


@pytest.mark.parametrize(
    ("overrides", "key", "explained"),
    [
        ({"instance_type": "ml.p4d.24xlarge"}, "gpu", True),
        ({"batch_size": 48}, "global_batch", True),
        ({"batch_size": 48}, "gpu", False),
        ({"precision": "fp8"}, "precision", True),
        ({"compiler": "sagemaker_training_compiler"}, "torch", True),
        ({"compiler": "torch_compile"}, "torch", False),
    ],
)
def test_a_change_explains_its_own_fingerprint_and_no_other(
    good: dict[str, Any], overrides: dict[str, Any], key: str, explained: bool
) -> None:
    arm(good)["overrides"] = overrides
    for run in arm(good)["runs"]:
        run["fingerprint"][key] = "changed"

    assert explained == (Verdict.PROMOTE == judge(good).verdict)


def test_a_missing_fingerprint_key_is_a_difference(good: dict[str, Any]) -> None:
    del arm(good)["runs"][0]["fingerprint"]["gpu"]

    assert {"arms_differ"} == invalid_codes(good)


def test_a_run_without_fingerprint_among_runs_that_have_one_is_invalid(
    good: dict[str, Any],
) -> None:
    for run in arm(good)["runs"]:
        del run["fingerprint"]

    assert {"arms_differ"} == invalid_codes(good)


def test_stages_that_ran_on_different_hardware_are_invalid(good: dict[str, Any]) -> None:
    for item in good["arms"]:
        for run in runs(good, item["name"]):
            run["fingerprint"]["gpu"] = "other"

    assert {"arms_differ"} == invalid_codes(good)


@pytest.mark.parametrize(("loss", "valid"), [(3.02, True), (3.5, False), (float("nan"), False)])
def test_arms_that_start_at_another_loss_do_not_train_the_same_model(
    good: dict[str, Any], loss: float, valid: bool
) -> None:
    runs(good)[0]["initial_loss"] = loss

    if valid:
        assert Verdict.PROMOTE == judge(good).verdict
    else:
        assert {"unequal_initial_loss"} == invalid_codes(good)


def test_another_batch_or_precision_may_start_at_another_loss(good: dict[str, Any]) -> None:
    arm(good)["overrides"]["batch_size"] = 48
    runs(good)[0]["initial_loss"] = 3.5

    assert Verdict.PROMOTE == judge(good).verdict


@pytest.mark.parametrize("with_losses", [True, False])
def test_arms_that_start_from_other_weights_of_one_seed_are_invalid(
    good: dict[str, Any], *, with_losses: bool
) -> None:
    for name in ("baseline", "compile"):
        for run in runs(good, name):
            run["initial_weights_sha256"] = f"w{run['seed']}"
            if not with_losses:
                run["initial_loss"] = None
    decision = judge(good)
    assert (Verdict.PROMOTE, False) == (decision.verdict, "start_unknown" in codes(decision))

    runs(good)[1]["initial_weights_sha256"] = "other"
    assert {"unequal_initial_weights"} == invalid_codes(good)


@pytest.mark.parametrize(
    ("override", "valid"), [("precision", True), ("entry_point", True), ("batch_size", False)]
)
def test_a_change_may_explain_other_weights(
    good: dict[str, Any], override: str, *, valid: bool
) -> None:
    arm(good)["overrides"][override] = 1
    for name in ("baseline", "compile"):
        for run in runs(good, name):
            run["initial_weights_sha256"] = name

    assert valid == (Verdict.PROMOTE == judge(good).verdict)


@pytest.mark.parametrize("without", ["baseline", "compile"])
def test_a_start_that_nobody_knows_is_told(good: dict[str, Any], without: str) -> None:
    for run in runs(good, without):
        run["initial_loss"] = None
    decision = judge(good)

    assert (Verdict.PROMOTE, "start_unknown") == (decision.verdict, decision.reasons[-1].code)
    assert "nothing shows that they started alike" in decision.reasons[-1].message


def test_evidence_without_any_fingerprint_claims_nothing_of_its_start(
    good: dict[str, Any],
) -> None:
    for run in [*runs(good), *runs(good, "baseline")]:
        run["initial_loss"] = None
    for item in good["arms"]:
        for run in item["runs"]:
            del run["fingerprint"]

    assert "start_unknown" not in codes(judge(good))


@pytest.mark.parametrize("key", ["block", "order"])
@pytest.mark.parametrize("where", ["baseline", "compile"])
def test_runs_that_claim_to_be_the_same_run_are_invalid(
    good: dict[str, Any], key: str, where: str
) -> None:
    found = runs(good, where, "speed" if key == "block" else "quality")
    found[1][key] = found[0][key]

    assert "runs_repeated" in invalid_codes(good)


def test_a_copy_of_a_full_run_under_another_order_is_invalid(good: dict[str, Any]) -> None:
    arm(good)["runs"].append({**copy.deepcopy(runs(good)[0]), "order": 99})

    assert {"runs_repeated"} == invalid_codes(good)


@pytest.mark.parametrize(("key", "value"), [("node", "elsewhere"), ("samples_per_step", 8)])
def test_a_block_that_is_not_like_for_like_is_invalid(
    good: dict[str, Any], key: str, value: object
) -> None:
    arm(good)["runs"][0][key] = value

    assert {"arms_differ"} == invalid_codes(good)


def test_another_cluster_runs_on_other_nodes(good: dict[str, Any]) -> None:
    arm(good)["usd_per_hour"] = 1.0
    for run in runs(good, stage="speed"):
        run["node"] = "elsewhere"

    assert Verdict.PROMOTE == judge(good).verdict


def test_larger_batches_in_fewer_steps_are_the_same_work(good: dict[str, Any]) -> None:
    arm(good).update(full_run_steps=1000, overrides={"batch_size": 64})
    for run in runs(good, stage="speed"):
        run.update(samples_per_step=64, step_seconds=[2 * x for x in run["step_seconds"]])

    assert Verdict.PROMOTE == judge(good).verdict


def test_a_failed_run_need_not_prove_anything(good: dict[str, Any]) -> None:
    runs(good)[-1].update(finished=False, metric=None, applied=None)

    assert {"candidate_crashed"} <= codes(judge(good))


def test_every_fault_is_told_at_once(good: dict[str, Any]) -> None:
    runs(good)[0].update(applied=False, initial_loss=9.0)
    runs(good)[1]["fingerprint"]["gpu"] = "other"

    assert {"treatment_not_applied", "arms_differ", "unequal_initial_loss"} == invalid_codes(good)


def test_in_production_the_image_may_move_on() -> None:
    doc = watch(probation_document(), fingerprint={"torch": "newer"})

    assert Verdict.CONTINUE == judge(doc).verdict


def test_a_probation_whose_runs_mostly_lost_the_change_is_invalid() -> None:
    doc = watch(probation_document(), applied=False)

    assert {"treatment_not_applied"} == invalid_codes(doc)
    assert "probation" == judge(doc).stage


def test_a_night_that_lost_the_change_is_told_and_left_out_and_the_watch_goes_on() -> None:
    doc = probation_document()
    for applied in (True, True, False):
        watch(doc, applied=applied)
    decision = judge(doc)

    assert Verdict.CONTINUE == decision.verdict
    assert {"treatment_not_applied", "probation_goes_on"} <= codes(decision)
    assert "2 of" in decision.reasons[0].message


def test_copies_of_one_production_run_are_invalid() -> None:
    doc = watch(probation_document())
    arm(doc)["runs"] += [copy.deepcopy(runs(doc, stage="probation")[0]) for _ in range(12)]

    assert {"runs_repeated"} == invalid_codes(doc)


@pytest.mark.parametrize("promoted", [None, "baseline", "nobody"])
def test_a_probation_that_names_no_candidate_is_bad_input(promoted: str | None) -> None:
    with pytest.raises(InvalidEvidenceError, match="promoted"):
        judge({**probation_document(), "promoted": promoted})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.9", True, 1e300])
def test_a_metric_that_is_no_number_is_bad_input(good: dict[str, Any], value: object) -> None:
    run = quality_run(9, 99, 0.0, 60.0)
    arm(good)["runs"].append({**run, "metric": value})

    with pytest.raises(InvalidEvidenceError, match="metric"):
        judge(good)


@pytest.mark.parametrize("names", [["baseline"], ["compile", "b"], ["baseline"] * 2])
def test_arms_are_one_baseline_and_candidates(names: list[str]) -> None:
    doc = document()
    doc["arms"] = [{"name": name, "runs": []} for name in names]

    with pytest.raises(InvalidEvidenceError, match="arms"):
        judge(doc)

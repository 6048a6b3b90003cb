"""Production restores the bundle that its flag names, and its record says what came of that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.codec import write
from compilegate.domain.flag import CompileBundle
from compilegate.domain.production.attempts import Attempt
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production.runs import ON, Production

DIGEST = "a" * 64
NAMED = replace(ON, compile_bundle=CompileBundle(f"compile-cache/b/bundles/{DIGEST}.json", DIGEST))
VARIABLE = "COMPILEGATE_COMPILE_BUNDLE"
STATES = ("restored", "absent", "mismatch", "stale", "rank_failed", "pending")


def production(flag: Any = NAMED, workload: Any = SOUND) -> Production:
    made = Production(workload)
    made.promote(flag)
    made.begin()
    return made


def variables(made: Production) -> Any:
    return made.build()["Environment"]


def test_the_job_of_the_candidate_gets_the_digest_and_the_folder_it_lies_in():
    request = production().build()

    assert DIGEST == request["Environment"][VARIABLE]
    kept = request["Environment"]["COMPILEGATE_COMPILE_CACHE"]
    folder = request["CheckpointConfig"]["LocalPath"]
    assert f"{folder}/inductor" == kept  # so bundles/ lies beside it, in compile-cache/NAME/
    assert request["CheckpointConfig"]["S3Uri"].endswith(f"/compile-cache/{SOUND.name}/")


def test_a_flag_without_a_bundle_names_none():
    assert VARIABLE not in variables(production(ON))


@pytest.mark.parametrize(
    "attempt", [Attempt(1, rerun=True), Attempt(1, instance_type="ml.g5.2xlarge")]
)
def test_a_job_on_the_baseline_has_nothing_to_restore(attempt):
    made = production()
    made.attempt = write(attempt)

    assert VARIABLE not in variables(made)


def test_a_run_of_the_baseline_has_nothing_to_restore():
    made = Production()
    made.promote(replace(NAMED, enabled=False, state="off"))
    made.begin()

    assert VARIABLE not in variables(made)


def test_a_spot_job_has_a_checkpoint_folder_of_its_own_and_no_bundle():
    assert VARIABLE not in variables(production(workload=change(SOUND, training__spot=True)))


@pytest.mark.parametrize("state", STATES)
def test_the_ledger_says_what_came_of_it_beside_a_result_that_counts_as_ever(state):
    made = production()
    bundle = {"state": state, "sha256": DIGEST, "ranks": 8, "restored": 8, "cache_hits": 12}
    answer = made.completes(compile_bundle=bundle)
    (run,) = made.runs()

    assert {"sha256": DIGEST, "state": state} == run.details["compile_bundle"]
    assert bundle == run.result["compile_bundle"]
    assert (True, True, "review") == (run.counts, run.finished, answer["next"])


@pytest.mark.parametrize("bundle", [None, "restored", {"state": "<b>"}, {"state": ["restored"]}])
def test_a_record_that_does_not_say_it_is_no_proof(bundle):
    made = production()
    made.completes(compile_bundle=bundle)
    (run,) = made.runs()

    assert "not_recorded" == run.details["compile_bundle"]["state"]
    assert run.counts


def test_a_job_that_died_without_a_record_says_nothing_of_its_bundle():
    made = production()
    made.fails("CUDA out of memory")
    (run,) = made.runs()

    assert "compile_bundle" not in run.details


def test_a_run_without_a_bundle_says_nothing_of_one():
    made = production(ON)
    made.completes()
    (run,) = made.runs()

    assert "compile_bundle" not in run.details

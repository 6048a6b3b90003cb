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


def production(flag: Any = NAMED, workload: Any = SOUND) -> Production:
    made = Production(workload)
    made.promote(flag)
    made.begin()
    return made


def test_the_job_of_the_candidate_gets_the_digest_and_the_folder_it_lies_in():
    request = production().build()

    assert DIGEST == request["Environment"][VARIABLE]
    kept = request["Environment"]["COMPILEGATE_COMPILE_CACHE"]
    folder = request["CheckpointConfig"]["LocalPath"]
    assert f"{folder}/inductor" == kept  # so bundles/ lies beside it, in compile-cache/NAME/
    assert request["CheckpointConfig"]["S3Uri"].endswith(f"/compile-cache/{SOUND.name}/")


@pytest.mark.parametrize(
    ("flag", "spot", "attempt"),
    [
        (ON, False, Attempt()),
        (replace(NAMED, enabled=False, state="off"), False, Attempt()),
        (NAMED, True, Attempt()),  # its checkpoint folder is its own
        (NAMED, False, Attempt(1, rerun=True)),
        (NAMED, False, Attempt(1, instance_type="ml.g5.2xlarge")),
    ],
)
def test_any_other_job_has_nothing_to_restore(flag, spot, attempt):
    made = production(flag, change(SOUND, training__spot=spot))
    made.attempt = write(attempt)

    assert VARIABLE not in made.build()["Environment"]


@pytest.mark.parametrize(
    ("bundle", "state"),
    [
        ({"state": "restored"}, "restored"), ({"state": "stale"}, "stale"),
        # What does not say it is no proof.
        (None, "not_recorded"), ("restored", "not_recorded"), ({"state": "<b>"}, "not_recorded"),
        ({"state": ["restored"]}, "not_recorded"),
    ],
)  # fmt: skip
def test_the_ledger_says_what_came_of_it_beside_a_result_that_counts_as_ever(bundle, state):
    made = production()
    made.completes(compile_bundle=bundle)
    (run,) = made.runs()

    assert {"sha256": DIGEST, "state": state} == run.details["compile_bundle"]
    assert run.counts


def test_a_job_that_died_without_a_record_or_names_no_bundle_says_nothing_of_one():
    died, unnamed = production(), production(ON)
    died.fails("CUDA out of memory")
    unnamed.completes()

    for made in (died, unnamed):
        assert "compile_bundle" not in made.runs()[0].details

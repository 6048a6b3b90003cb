"""The watch where production changes, a person has spoken, or the probation is over."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.production.history import history
from compilegate.usecases.production.begin_run import begin_run
from compilegate.usecases.records import to_json
from tests.domain.evidence_builder import CENTRE, FINGERPRINT
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    entries,
    flag_entries,
    flag_of,
    follow,
    promote,
    put_other_spec,
    register,
    run_and_watch,
    say,
)
from tests.usecases.trial_builder import SPEC, TRIAL


def test_a_regression_replaces_a_persons_override_and_says_so(services: Any) -> None:
    on = promote(services)
    say(services, on)
    answer = [run_and_watch(services, n, finished=False, metric=None) for n in (1, 2)][-1]
    last = flag_entries(services)[-1]

    assert ("reverted", "human:ann") == (flag_of(services).state, last["overrode"]["by"])
    assert "This replaces the change by human:ann" in answer["message"]


def test_what_a_person_turned_on_is_permanent_when_its_probation_held(services: Any) -> None:
    on = promote(services, change(SOUND, policy__probation_runs=2))
    say(services, on)
    follow(services, range(1, 3))

    assert "permanent" == flag_of(services).state


def test_a_run_trains_what_a_person_turned_on_whatever_it_was_measured_on(services: Any) -> None:
    say(services, promote(services))
    register(services, put_other_spec(services, SOUND, "workloads/bert-docs/other.tgz"))

    assert ("compile", "flag") == next_run(services)


def test_a_change_of_what_a_person_turned_on_is_reported_once_and_left_to_them(
    services: Any,
) -> None:
    on = promote(services)
    say(services, on)
    other = {**FINGERPRINT, "code_sha256": "another"}
    first, second = (run_and_watch(services, n, fingerprint=other) for n in (1, 2))

    assert (True, "probation") == (flag_of(services).enabled, flag_of(services).state)
    assert "left as it is, because of the change by human:ann" in first["message"]
    assert (True, False) == (first["tell"], second["tell"])


@pytest.mark.parametrize(
    ("policy", "enabled", "words"),
    [("fall_back", False, "The flag is off"), ("keep", True, "The flag is on, state stale")],
)
def test_another_code_is_stale_and_a_new_trial_is_offered_with_its_price(
    services: Any, policy: str, enabled: bool, words: str
) -> None:
    promote(services, change(SOUND, policy__on_stale=policy))
    answer = run_and_watch(services, 1, fingerprint={**FINGERPRINT, "code_sha256": "another"})
    body = json.loads(json.loads(answer["notification"]["message"])["default"])

    assert ("stale", enabled) == (flag_of(services).state, flag_of(services).enabled)
    assert "code that the job recorded: was c, is another" in answer["message"]
    assert words in answer["message"]
    assert re.search(r"A new trial would cost about \$[\d,.]+ \(\$", answer["message"])
    command = "compilegate run workloads/bert-docs.yaml --stage prod"
    assert ("stale", command) == (body["kind"], body["act"])
    assert f"Start it with: {command}" in answer["message"]


@pytest.mark.parametrize(("policy", "enabled"), [("fall_back", False), ("keep", True)])
def test_a_teams_job_of_an_unregistered_workload_is_known_by_its_record(
    services: Any, policy: str, enabled: bool
) -> None:
    promote(services, change(SOUND, policy__on_stale=policy))
    del services.store.objects[naming.registration_key(WORKLOAD)]
    fine = run_and_watch(services, 1, launched_by="team")
    run_and_watch(services, 2, launched_by="team", fingerprint={**FINGERPRINT, "torch": "2.14.0"})

    assert "continue" == fine["verdict"]
    assert ("stale", enabled) == (flag_of(services).state, flag_of(services).enabled)


@pytest.mark.parametrize("damage", [{"speed_steps": "many"}, {"arms": 5}])
def test_a_damaged_plan_of_the_trial_lets_no_regression_stay_on(
    services: Any, damage: dict[str, Any]
) -> None:
    promote(services)
    key = naming.record_key(WORKLOAD, TRIAL, "plan")
    services.store.put(key, to_json({**json.loads(services.store.get(key)), **damage}))
    follow(services, range(1, 20), metric=CENTRE - TWO_MARGINS)

    assert ("reverted", False) == (flag_of(services).state, flag_of(services).enabled)


def test_a_stale_flag_that_stayed_on_is_in_probation_again_when_all_is_as_it_was(
    services: Any,
) -> None:
    promote(services, change(SOUND, policy__on_stale="keep"))
    run_and_watch(services, 1, fingerprint={**FINGERPRINT, "code_sha256": "another"})
    answer = run_and_watch(services, 2)

    assert (True, "probation") == (flag_of(services).enabled, flag_of(services).state)
    assert "production again trains what was proven" in answer["message"]


def test_a_stale_flag_that_stayed_on_is_still_reverted_and_never_permanent(services: Any) -> None:
    promote(services, change(SOUND, policy__on_stale="keep", policy__probation_runs=2))
    other = {"fingerprint": {**FINGERPRINT, "code_sha256": "another"}}
    run_and_watch(services, 1, **other)
    run_and_watch(services, 2, **other)
    kept = flag_of(services).state
    follow(services, range(3, 20), metric=CENTRE - TWO_MARGINS, **other)

    assert ("stale", "reverted") == (kept, flag_of(services).state)


def permanent(services: Any) -> None:
    promote(services)
    follow(services, range(1, 13))
    assert "permanent" == flag_of(services).state


def test_after_permanence_nothing_is_judged_until_runs_go_wrong_in_a_row(services: Any) -> None:
    permanent(services)
    calm = run_and_watch(services, 13, metric=CENTRE - TWO_MARGINS)
    once = run_and_watch(services, 14, finished=False, metric=None)
    twice = run_and_watch(services, 15, finished=False, metric=None)

    assert [None, None, "revert"] == [answer["verdict"] for answer in (calm, once, twice)]
    assert "reverted" == flag_of(services).state


def test_after_permanence_another_image_is_still_stale(services: Any) -> None:
    permanent(services)
    run_and_watch(services, 13, fingerprint={**FINGERPRINT, "torch": "3.0"})

    assert ("stale", False) == (flag_of(services).state, flag_of(services).enabled)


def next_run(services: Any) -> tuple[str, str]:
    """Arm and reason of the run that begins now."""
    event = {"workload": WORKLOAD, "execution": "e", "started": "2026-11-01T00:00:00Z"}
    answer = begin_run(event, services=services)
    return answer["arm"], answer["why"]


def test_a_run_of_another_job_trains_the_baseline_and_the_flag_is_left_to_the_watch(
    services: Any,
) -> None:
    promote(services)
    register(services, put_other_spec(services, SOUND, "workloads/bert-docs/other.tgz"))

    assert ("baseline", "stale") == next_run(services)
    (begun,) = history(entries(services)).begun
    assert "source code: was workloads/bert-docs/s.tgz" in (begun.flag_told or "")
    assert "probation" == flag_of(services).state


def test_a_team_that_keeps_what_is_stale_trains_it(services: Any) -> None:
    promote(services, change(SOUND, policy__on_stale="keep"))
    kept = change(SOUND, policy__on_stale="keep")
    register(services, put_other_spec(services, kept, "workloads/bert-docs/other.tgz"))

    assert ("compile", "flag") == next_run(services)


def test_a_comparison_that_fails_is_no_reason_not_to_train(
    services: Any, caplog: pytest.LogCaptureFixture
) -> None:
    promote(services)
    del services.store.objects[naming.record_key(WORKLOAD, TRIAL, "plan")]

    assert ("compile", "flag") == next_run(services)
    assert ["ERROR"] == [record.levelname for record in caplog.records]


@pytest.mark.parametrize("by_human", [True, False], ids=["by a person", "kept by policy"])
def test_what_is_followed_without_a_comparison_needs_no_plan(
    services: Any, caplog: pytest.LogCaptureFixture, by_human: bool
) -> None:
    flag = promote(services, SOUND if by_human else change(SOUND, policy__on_stale="keep"))
    if by_human:
        say(services, flag)
    del services.store.objects[naming.record_key(WORKLOAD, TRIAL, "plan")]

    assert ("compile", "flag") == next_run(services)
    assert [] == caplog.records


KEEP = change(SOUND, policy__on_stale="keep")
OTHER_CODE = {**FINGERPRINT, "code_sha256": "another"}
OTHER_TORCH = {**FINGERPRINT, "torch": "3.0"}


def stale(services: Any, **fingerprint: Any) -> None:
    promote(services, KEEP)
    run_and_watch(services, 1, fingerprint=fingerprint)
    assert "stale" == flag_of(services).state


@pytest.mark.parametrize(
    "silent",
    [
        {"fingerprint": None, "finished": False, "metric": None},
        {"fingerprint": None},
        {"fingerprint": {"torch": FINGERPRINT["torch"]}},
        {"counts": False},
        {"metric": float("nan")},
        {"arm": "baseline"},
    ],
    ids=[
        "crashed", "without a record", "without that field", "no evidence", "unreadable",
        "the other arm",
    ],
)  # fmt: skip
def test_a_run_that_does_not_show_the_very_field_restores_nothing(
    services: Any, silent: dict[str, Any]
) -> None:
    stale(services, **OTHER_CODE)
    run_and_watch(services, 2, **silent)

    assert (True, "stale") == (flag_of(services).enabled, flag_of(services).state)


def test_whatever_else_changed_meanwhile_has_to_be_shown_too(services: Any) -> None:
    stale(services, **OTHER_CODE)
    run_and_watch(services, 2, fingerprint={**OTHER_TORCH})
    run_and_watch(services, 3, fingerprint={"code_sha256": FINGERPRINT["code_sha256"]})
    without_torch = flag_of(services).state
    run_and_watch(services, 4)

    assert ("stale", "probation") == (without_torch, flag_of(services).state)


def test_columns_that_changed_are_not_forgotten_by_a_crash(services: Any) -> None:
    promote(services, KEEP)
    key = naming.record_key(WORKLOAD, TRIAL, "evidence")
    document = json.loads(services.store.get(key))
    for arm in document["arms"]:
        for run in arm["runs"]:
            run.setdefault("fingerprint", {})["data_schema_sha256"] = "a" * 64
    services.store.put(key, json.dumps(document).encode())
    other = {**FINGERPRINT, "data_schema_sha256": "b" * 64}
    run_and_watch(services, 1, fingerprint=other)
    run_and_watch(services, 2, fingerprint=None, finished=False, metric=None)
    run_and_watch(services, 3, fingerprint=other, counts=False)

    assert "stale" == flag_of(services).state


def test_a_registered_job_that_is_back_is_seen_with_the_next_run_that_counts(
    services: Any,
) -> None:
    promote(services, KEEP)
    larger = change(KEEP, training__batch_size=SOUND.training.batch_size * 2)
    register(services, put_other_spec(services, larger, "workloads/bert-docs/s.tgz"))
    run_and_watch(services, 1)
    register(services, SPEC)
    run_and_watch(services, 2, counts=False)
    unseen = flag_of(services).state
    run_and_watch(services, 3)

    assert ("stale", "probation") == (unseen, flag_of(services).state)


def test_a_change_that_most_runs_did_without_is_back_once_it_is_applied(services: Any) -> None:
    promote(services, KEEP)
    for number in (1, 2):
        run_and_watch(services, number, applied=False)
    kept = flag_of(services).state
    states = []
    for number in (3, 4, 5):
        run_and_watch(services, number)
        states.append(flag_of(services).state)

    assert ("stale", "probation") == (kept, states[-1])
    assert "stale" == states[0], "most runs still did without it"


def test_a_damaged_plan_is_never_a_reason_not_to_train(services: Any) -> None:
    promote(services)
    key = naming.record_key(WORKLOAD, TRIAL, "plan")
    plan = json.loads(services.store.get(key))
    for arm in plan["arms"]:
        arm["hyperparameters"] = ["x"]
    services.store.put(key, to_json(plan))

    event = {"workload": WORKLOAD, "execution": "e", "started": "2027-01-01T00:00:00Z"}
    begun = begin_run(event, services=services)

    assert ("compile", "flag") == (begun["arm"], begun["why"])

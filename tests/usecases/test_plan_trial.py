"""Lock and plan: what a trial is refused for before it has cost anything."""

from __future__ import annotations

import dataclasses
import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.facts import Quota
from compilegate.domain.flag import MAX_BYTES
from compilegate.domain.judging.evidence_file import ID_LENGTH
from compilegate.domain.planning.arms import promoted
from compilegate.domain.planning.plan import Plan
from compilegate.domain.reasons import Reason
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.workload.model import Candidate, Schedule
from compilegate.ports import Services
from compilegate.usecases import planning
from compilegate.usecases.planning import check_eligibility, past_overheads, plan_for, plan_trial
from compilegate.usecases.records import Trial, facts_for_workload, save_decision, to_json
from compilegate.usecases.trial.abort_trial import abort_trial
from compilegate.usecases.trial.lock import acquire_lock, release_lock
from tests.decision_builder import arm_figures
from tests.domain.workload_builder import SOUND, change
from tests.fakes import FixedQuotas, start_job
from tests.usecases.trial_builder import EVENT, SPEC, TRIAL, put_spec, says

KIND = SOUND.training.instance_type


def with_quota(services: Services, instances: int) -> Services:
    return dataclasses.replace(services, quotas=FixedQuotas({KIND: instances}))


def recorded(services: Services, key: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(services.store.get(key))
    return document


def test_a_job_that_the_quota_does_not_hold_ends_the_trial_before_it_starts(
    services: Services,
) -> None:
    answer = plan_trial(EVENT, services=with_quota(services, 0))
    decision = recorded(services, answer["decision_key"])
    (reason,) = decision["reasons"]

    assert (f"{EVENT['trial']}-refused", "plan", "inconclusive") == (
        decision["decision_id"], decision["stage"], decision["verdict"],
    )  # fmt: skip
    assert ("inconclusive", "quota_too_low") == (answer["verdict"], reason["code"])
    assert f"{KIND} for training job usage" in reason["fix"]


@pytest.mark.parametrize(("instances", "quota"), [(1, 1), (64, 64)])
def test_a_quota_that_holds_a_job_is_recorded_with_what_rounds_need(
    instances: int, quota: int, services: Services
) -> None:
    answer = plan_trial(EVENT, services=with_quota(services, instances))
    (need,) = recorded(services, answer["plan_key"])["quotas"]

    assert (1, quota) == (need["one_job"], need["quota"])
    assert need["at_once"] >= 1


@pytest.mark.parametrize(("spot", "quota"), [(False, 64), (True, 3)])
def test_spot_jobs_have_a_quota_of_their_own_asked_for_or_read_before(
    spot: bool, quota: int, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = FixedQuotas({KIND: 64, f"spot {KIND}": 3})
    workload, settings = change(SOUND, training__spot=spot), services.settings
    facts = facts_for_workload(workload, settings)
    read = {
        (KIND, of_spot): Quota(KIND, of_spot, number, "2026-11-01", "the account")
        for of_spot, number in ((False, 64), (True, 3))
    }
    with_quotas = dataclasses.replace(facts, quotas=read)
    monkeypatch.setattr(planning.records, "facts_for_workload", lambda *_: with_quotas)

    for asked in (quotas, FixedQuotas(), None):
        plan = plan_for(workload, settings, quotas=asked)
        assert isinstance(plan, Plan)
        assert [quota] == [need.quota for need in plan.quotas]


def test_a_quota_that_is_not_known_stops_nothing(services: Services) -> None:
    """Jobs then run one after the other: the quota may hold no more than one."""
    unknown = dataclasses.replace(services, quotas=FixedQuotas())
    answer = plan_trial(EVENT, services=unknown)
    layout = recorded(services, answer["plan_key"])["layout"]

    assert {1} == {one["at_once"] for one in layout}

    assert [None] == [need["quota"] for need in recorded(services, answer["plan_key"])["quotas"]]


# Each fits by itself, all of an arm's in a speed job's one value do not.
TOO_MUCH_TOGETHER = {f"h{n}": "x" * 900 for n in range(3)}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"training__hyperparameters": {"prompt": "x" * 2600}}, "training.hyperparameters.prompt"),
        ({"training__hyperparameters": {f"h{n}": n for n in range(101)}},
         "training.hyperparameters"),
        ({"training__hyperparameters": TOO_MUCH_TOGETHER}, "training.hyperparameters.h0"),
        ({"training__environment": {"A-B": "1"}}, "training.environment"),
        ({"training__environment": {"A": "x" * 513}}, "training.environment"),
        ({"training__inputs": {"my data": "s3://corpus/k/"}}, "training.inputs"),
        ({"training__inputs": {f"c{n}": "s3://corpus/k/" for n in range(21)}}, "training.inputs"),
        ({"tags": {"a&b": "c"}}, "tags or owner"),
        ({"tags": {"cost": "x" * 257}}, "tags or owner"),
        ({"tags": {f"t{n}": "v" for n in range(45)}}, "tags or owner"),
        ({"tags": {"aws:mine": "v"}}, "tags.aws:mine"),
        ({"owner": "me & you"}, "tags or owner"),
        ({"quality__metric": "m" * 256}, "a metric of quality"),
    ],
)  # fmt: skip
def test_what_the_service_would_refuse_is_refused_at_planning(
    services: Services, changes: dict[str, Any], field: str
) -> None:
    """The parser refuses much of it earlier; the plan relies on no parser."""
    refused = plan_for(change(SOUND, **changes), services.settings)

    assert isinstance(refused, Reason)
    assert "request_refused" == refused.code
    assert refused.message.startswith(f"{field}: ")
    assert "Fix: " in refused.message


def test_the_refusal_is_recorded_before_anything_is_spent(services: Services) -> None:
    put_spec(services, change(SOUND, training__hyperparameters=TOO_MUCH_TOGETHER))
    answer = plan_trial(EVENT, services=services)

    assert ("inconclusive", None) == (answer["verdict"], answer["plan_key"])
    (reason,) = json.loads(services.store.get(answer["decision_key"]))["reasons"]
    assert "request_refused" == reason["code"]
    assert "as a speed job carries them" in reason["message"]


def test_a_candidate_whose_flag_could_not_be_written_is_refused_at_planning(
    services: Services,
) -> None:
    hyperparameters = {"mp_parameters": json.dumps({"a": "x" * 2450}), "prompt": "x" * 1500}
    wide = Candidate(name="wide", compiler="torch_compile", hyperparameters=hyperparameters)
    refused = plan_for(change(SOUND, candidates=(wide,)), services.settings)

    assert isinstance(refused, Reason)
    assert "flag_too_large" == refused.code
    assert refused.message.startswith("candidates (wide): has changes whose flag is larger")
    assert "Fix: " in refused.message


def test_the_largest_flag_that_is_accepted_fits_once_it_is_permanent(services: Services) -> None:
    def planned(length: int) -> Any:
        values = {"mp_parameters": json.dumps({"a": "x" * 2450}), "prompt": "x" * length}
        wide = Candidate(name="wide", compiler="torch_compile", hyperparameters=values)
        return plan_for(change(SOUND, candidates=(wide,)), services.settings)

    fits, too_long = 1000, 1500
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if isinstance(planned(middle), Reason):
            too_long = middle
        else:
            fits = middle
    baseline, arm = planned(fits).arms[:2]
    flag = promoted(arm, baseline, decision_id="d" * ID_LENGTH, since="2026-01-01T00:00:00Z")

    kept = replace(flag, state="permanent", holdback=0.05).to_json()
    assert MAX_BYTES - 3 < len(kept) <= MAX_BYTES
    assert "flag_too_large" == planned(too_long).code


def test_a_job_at_the_services_limits_is_planned(services: Services) -> None:
    changes = {
        "tags": {f"t{n}": "v" * 256 for n in range(43)},
        "training__hyperparameters": {"prompt": "x" * 1500},
        "training__environment": {"A": "x" * 512},
        "training__inputs": {"train": "data/train", "validation": "s3://corpus/val/"},
        "training__spot": True,
    }

    assert isinstance(plan_for(change(SOUND, **changes), services.settings), Plan)


def test_the_lock_is_taken_once_and_released_by_its_holder_only(services: Any) -> None:
    acquire_lock(EVENT, services=services)
    other = {**EVENT, "trial": "wxyz5678", "execution": "other"}

    with pytest.raises(WorkloadLockedError):
        acquire_lock(other, services=services)

    release_lock(other, services=services)
    with pytest.raises(WorkloadLockedError):
        acquire_lock(other, services=services)

    release_lock(EVENT, services=services)
    acquire_lock(other, services=services)


@pytest.mark.parametrize(
    ("history", "candidates", "runs", "rounds"),
    [((), 1, 3, 2), (SOUND.quality.history, 1, 3, 3), ((), 2, 3, 4)],
)
def test_the_plans_hours_count_the_rounds_of_one_candidate_after_another(
    history: tuple[float, ...], candidates: int, runs: int, rounds: int, services: Any
) -> None:
    """The judge looks at 2 and at 3 runs; beside a long history a single run comes first.

    Before that three blocks in two jobs: 0.1 h a segment, 300 s a first compilation, start-up.
    """
    larger = dataclasses.replace(SOUND.candidates[0], name="larger", batch_size=48)
    named = (SOUND.candidates[0], larger)[:candidates]
    changed = change(SOUND, quality__history=history, candidates=named)
    put_spec(services, changed)
    plan = json.loads(services.store.get(plan_trial(EVENT, services=services)["plan_key"]))

    first_look = 3 * 0.1 * (candidates + 1) + candidates * 300 / 3600 + 2 * 0.05
    hours = first_look + 6 * rounds
    assert (runs, pytest.approx(hours)) == (plan["quality_runs"], plan["estimate"]["hours"])


def test_an_abort_stops_jobs_says_why_and_releases_the_lock(services: Any) -> None:
    acquire_lock(EVENT, services=services)
    job = start_job(services, "bert-docs", TRIAL, "q1a17")
    answer = abort_trial({**EVENT, "error": "States.Timeout", "cause": ""}, services=services)

    assert "Stopped" == services.jobs.describe(job)["TrainingJobStatus"]
    assert answer["reason"]
    acquire_lock({**EVENT, "trial": "wxyz5678", "execution": "next"}, services=services)


def test_a_workload_whose_name_ends_like_the_trials_id_keeps_its_jobs(services: Any) -> None:
    """``bert-docs-ID`` is a name that a workload may have; its jobs begin like the trial's."""
    acquire_lock(EVENT, services=services)
    foreign = start_job(services, f"bert-docs-{TRIAL}", "0mabc123", "q1a17")
    abort_trial({**EVENT, "error": "States.Timeout", "cause": ""}, services=services)

    assert "InProgress" == services.jobs.describe(foreign)["TrainingJobStatus"]


def test_another_execution_of_the_same_trial_cannot_abort_the_one_that_runs(
    services: Any,
) -> None:
    acquire_lock(EVENT, services=services)
    job = start_job(services, "bert-docs", TRIAL, "q1a17")
    abort_trial({**EVENT, "execution": "copy", "error": "X", "cause": ""}, services=services)

    assert services.jobs.describe(job)["TrainingJobStatus"] == "InProgress"
    assert "failed" not in [entry["kind"] for entry in services.ledger.raw.entries("bert-docs")]


# What earlier trials measured decides whether a short run may be compiled.


SHORT = change(SOUND, schedule=Schedule(runs_per_week=3000, run_hours=0.02))


def decided(services: Any, trial: str, *, warm: float | None, **plan: Any) -> None:
    """A trial in the ledger whose candidate took ``warm`` seconds to compile."""
    put_spec(services, SOUND)
    plan_trial({**EVENT, "trial": trial}, services=services)
    key = naming.record_key("bert-docs", trial, "plan")
    document = json.loads(services.store.get(key))
    document["arms"][1] |= plan
    services.store.put(key, to_json(document))
    arms = (
        arm_figures(name="baseline", compile_seconds_warm=0.0),
        arm_figures(name="compile", compile_seconds_warm=warm),
    )
    decided_so = replace(says("promote"), arms=arms)
    decision = save_decision(
        services.store, Trial("bert-docs", trial, SPEC), decided_so, stage="prod"
    )
    entry = TrialDecided(1, trial, "promote", decision).to_entry()
    services.ledger.raw.put_once("bert-docs", f"trial#{trial}#decision", entry)


def verdicts(services: Any) -> tuple[str, str]:
    """What check and plan say of the short run."""
    put_spec(services, SHORT)
    answers = [step(EVENT, services=services) for step in (check_eligibility, plan_trial)]
    return answers[0]["verdict"], answers[1]["verdict"]


def test_a_short_run_of_unknown_overhead_is_ineligible(services: Any) -> None:
    assert ("ineligible", "inconclusive") == verdicts(services)


def test_what_an_earlier_trial_measured_makes_it_worth_a_benchmark(services: Any) -> None:
    decided(services, "00000001", warm=4.0)

    assert ("benchmark", "continue") == verdicts(services)
    document = json.loads(services.store.get(naming.record_key("bert-docs", EVENT["trial"],
                                                               "eligibility")))  # fmt: skip
    assert pytest.approx(0.2) == document["economics"]["break_even_run_minutes"]
    assert any(
        "measured in trial 00000001" in text for text in document["economics"]["assumptions"]
    )


def test_the_newest_trial_counts(services: Any) -> None:
    decided(services, "00000001", warm=4.0)
    decided(services, "00000002", warm=40.0)

    assert ("ineligible", "inconclusive") == verdicts(services)


@pytest.mark.parametrize("plan", [{"image": "another"}, {"compile_mode": "max-autotune"},
                                  {"compiler": "sagemaker_training_compiler"}])  # fmt: skip
def test_another_image_compiler_or_mode_tells_nothing(services: Any, plan: dict[str, str]) -> None:
    decided(services, "00000001", warm=4.0, **plan)

    assert ("ineligible", "inconclusive") == verdicts(services)


def test_a_trial_without_times_or_documents_tells_nothing(services: Any) -> None:
    decided(services, "00000001", warm=None)
    entry = TrialDecided(1, "00000002", "promote", "decisions/gone.json").to_entry()
    services.ledger.raw.put_once("bert-docs", "trial#00000002#decision", entry)
    services.ledger.raw.put_once("bert-docs", "trial#00000003#other", {"kind": "other"})

    past = services.ledger.history("bert-docs")
    assert () == past_overheads("bert-docs", past, services.store)


UNREADABLE = {
    "another schema": b'{"schema": 2, "arms": []}',
    "a missing key": b'{"schema": 1, "arms": [{"name": "baseline"}]}',
    "no object": b"[]",
    "no JSON": b"{",
}


@pytest.mark.parametrize("document", ["plan", "decision"])
@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_an_old_document_that_cannot_be_read_stops_no_new_trial_and_is_logged(
    services: Any, content: bytes, document: str, caplog: pytest.LogCaptureFixture
) -> None:
    decided(services, "00000001", warm=4.0)
    services.store.put(naming.record_key("bert-docs", "00000001", document), content)

    with caplog.at_level(logging.WARNING):
        assert ("ineligible", "inconclusive") == verdicts(services)
    assert "00000001" in caplog.text


def test_other_trials_still_count_where_one_cannot_be_read(services: Any) -> None:
    decided(services, "00000001", warm=4.0)
    decided(services, "00000002", warm=4.0)
    key = naming.record_key("bert-docs", "00000002", "plan")
    services.store.put(key, UNREADABLE["another schema"])

    assert ("benchmark", "continue") == verdicts(services)


def test_the_last_three_trials_count_the_oldest_first(services: Any) -> None:
    for number, warm in enumerate((4.0, 5.0, 7.0, 11.0, 16.0), start=1):
        decided(services, f"0000000{number}", warm=warm)
    past = services.ledger.history("bert-docs")
    measured = past_overheads("bert-docs", past, services.store)

    assert [7.0, 11.0, 16.0] == [one.warm_seconds for one in measured]

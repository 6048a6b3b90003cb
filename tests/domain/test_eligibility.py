"""Verdicts and economics of whole workloads, and what holds of the answer to any workload."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.decision import Verdict
from compilegate.domain.eligibility.job import CandidateJob
from compilegate.domain.eligibility.payoff import most_trial_usd
from compilegate.domain.planning.plan import Plan, plan_trial
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Profile, Schedule
from compilegate.facts import load_facts
from tests.domain.workload_builder import ARTICLE, PYTORCH_XLA, SOUND, change, check, severities
from tests.domain.workload_strategies import mostly_sound, quick, workloads

DEMO = change(
    SOUND,
    training__instance_type="ml.g5.xlarge",
    training__distribution="none",
    schedule=Schedule(runs_per_week=3000, run_hours=40 / 3600),
    profile=Profile(compile_seconds=3, compile_seconds_cold=60),
)
WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"
SHIPPED = {
    "article-bert": "eligible",
    "article-diffusion": "benchmark",
    "article-gpt2": "benchmark",
    "article-gpt2-sst2": "eligible",
    "article-xgboost": "ineligible",
    "demo-classifier": "benchmark",
    "demo-lm": "benchmark",
    "demo-tabular": "ineligible",
    "nightly-lm": "benchmark",
}
DOLLARS = ("annual_training_usd", "plausible_annual_saving_usd", "trial_usd", "payback_days")


def test_every_shipped_workload_has_its_verdict_here():
    assert set(SHIPPED) == {file.stem for file in WORKLOADS.glob("*.yaml")}


@pytest.mark.parametrize(("name", "verdict"), SHIPPED.items())
def test_a_shipped_workload_gets_its_verdict(name, verdict):
    document = yaml.safe_load((WORKLOADS / f"{name}.yaml").read_text(encoding="utf-8"))

    assert verdict == check(parse_workload(document)).verdict


def test_the_nearest_valid_configurations_are_spelled_out_as_lines_of_a_candidate():
    fix = check(ARTICLE).candidates[0].reasons[0].fix

    same, pair = (yaml.safe_load(lines) for lines in configurations(fix))
    assert {
        "framework": {"name": "huggingface-pytorch", "version": "1.11.0",
                      "transformers": "4.21.1", "python": "py38"},
        "distribution": "pytorchxla",
    } == same  # fmt: skip
    assert {
        "framework": {"name": "pytorch", "version": "1.13.1", "python": "py39"},
        "distribution": "pytorchxla",
    } == pair


def configurations(fix: str) -> list[str]:
    """The YAML in a fix: what follows each line that ends in a colon."""
    blocks = re.split(r"^.*:$", fix, flags=re.MULTILINE)
    return [block.strip("\n") for block in blocks if block.strip()]


@pytest.mark.parametrize(
    ("workload", "verdict", "severity", "minutes"),
    [
        (DEMO, "benchmark", "warn", (9 / 60, 9 / 60, 3.0)),
        (change(SOUND, schedule=Schedule(3000, 0.25)), "ineligible", "block", (15, 0.15, 15)),
        (change(SOUND, schedule=Schedule(3000, 0.26)), "eligible", None, (15, 0.15, 15)),
    ],
    ids=["measured", "at the worst break-even", "above it"],
)
def test_a_run_must_exceed_its_break_even(workload, verdict, severity, minutes):
    eligibility = check(workload)
    economics = eligibility.to_dict()["economics"]

    assert (verdict, severity) == (
        eligibility.verdict, severities(eligibility).get("run_too_short"),
    )  # fmt: skip
    assert pytest.approx(minutes) == tuple(
        economics[f"break_even_run_minutes{kind}"] for kind in ("", "_warm", "_cold")
    )


def test_economics_of_the_article_are_those_of_its_schedule():
    economics = check(ARTICLE).to_dict()["economics"]

    assert pytest.approx(152455.68) == economics["annual_training_usd"]
    # A third, less 3 s of compilation in each of 156 runs at 162.88 USD an hour.
    assert [0.0, pytest.approx(50818.56 - 21.17, abs=0.01)] == (
        economics["plausible_annual_saving_usd"]
    )
    assert "2026-09-01" == economics["prices_as_of"]
    assert ["largest_speedup"] == list(economics["unknown"])
    assert all("assumption" in text for text in economics["assumptions"])


@pytest.mark.parametrize(
    ("profile", "largest"),
    [(Profile(0.9, 0.05, 0.10), 1.3953), (Profile(0.3, 0.3, 0.0), 1.3043),
     (Profile(gpu_utilization=0.3), None)],
)  # fmt: skip
def test_only_waiting_bounds_the_speedup(profile, largest):
    """One over the share that waits, plus the rest over 1.5."""
    economics = check(change(ARTICLE, profile=profile)).economics

    assert largest == (economics.largest_speedup and pytest.approx(economics.largest_speedup, 1e-4))
    assert (largest is None) == ("largest_speedup" in economics.unknown)


def test_an_unknown_price_leaves_the_dollars_empty_with_the_reason():
    unpriced = change(SOUND, training__instance_type="ml.g6e.48xlarge")
    economics = check(unpriced).to_dict()["economics"]
    priced = check(unpriced, prices={"ml.g6e.48xlarge": 10.0}).economics

    assert [None] * 4 == [economics[key] for key in DOLLARS]
    assert set(DOLLARS) <= set(economics["unknown"])
    assert pytest.approx(10 * 6 * 3 * 52) == priced.annual_training_usd


def test_what_the_managed_compiler_could_save_pays_for_compiling_in_every_run():
    economics = check(PYTORCH_XLA).economics  # six hours; no cache between jobs
    saving, annual = economics.plausible_annual_saving_usd, economics.annual_training_usd

    assert economics.overhead.warm_seconds == economics.overhead.cold_seconds
    assert pytest.approx(annual * (1 - 1 / 1.5 - 900 / 21600)) == saving.high


@given(workload=workloads, region=st.sampled_from(["us-east-1", "cn-north-1", "mars-1"]))
@quick
def test_any_workload_gets_an_answer_that_agrees_with_its_reasons(workload, region):
    eligibility = check(workload, region=region)

    json.dumps(eligibility.to_dict(), allow_nan=False)
    for one in eligibility.candidates:
        blocked = any(reason.severity == "block" for reason in one.reasons)
        assert blocked == (one.verdict == "ineligible")
    assert bool(eligibility.choice.candidates) == (eligibility.verdict != "ineligible")


@given(workload=workloads, factor=st.floats(0.1, 10))
@quick
def test_dollars_scale_with_prices(workload, factor):
    """A cap on the trial would leave more candidates out where prices are higher."""
    workload = change(workload, policy__max_trial_usd=1e9)
    types = {workload.training.instance_type, *load_facts().instances}
    # Under a cap, a higher price leaves candidates out of the trial.
    workload = replace(workload, policy=replace(workload.policy, max_trial_usd=1e9))
    one, other = (
        check(workload, prices=dict.fromkeys(types, usd)).economics for usd in (2.0, 2.0 * factor)
    )

    assert pytest.approx(one.annual_training_usd * factor) == other.annual_training_usd
    assert (one.trial_usd is None) == (other.trial_usd is None)
    if one.trial_usd is not None:
        assert pytest.approx(one.trial_usd * factor) == other.trial_usd
    assert one.payback_days is None or pytest.approx(one.payback_days) == other.payback_days


@given(workload=workloads)
@quick
def test_savings_break_even_and_speed_up_of_any_workload_are_possible_ones(workload):
    economics = check(workload).economics
    saving, limits = economics.plausible_annual_saving_usd, economics.break_even

    if saving is not None:
        assert 0 <= saving.low <= saving.high < economics.annual_training_usd
    if limits is not None:
        assert limits.warm_seconds <= limits.sure_seconds <= limits.cold_seconds
    if economics.largest_speedup is not None:
        assert 1 <= economics.largest_speedup <= 1.5


@given(workload=workloads, longer=st.floats(1.0, 100.0))
@quick
def test_a_longer_run_is_never_too_short_where_a_shorter_one_is_not(workload, longer):
    hours = workload.schedule.run_hours * longer
    short, long = check(workload), check(change(workload, schedule__run_hours=hours))

    for one, other in zip(short.candidates, long.candidates, strict=False):
        if one.candidate == other.candidate and not _too_short(one.reasons):
            assert not _too_short(other.reasons)


@given(workload=mostly_sound)
@quick
def test_check_and_plan_never_contradict_each_other(workload):
    eligibility = check(workload)
    plan = plan_trial(workload, eligibility.choice, load_facts(), region="us-east-1")
    codes = {r.code for r in eligibility.reasons}
    codes |= {r.code for one in eligibility.candidates for r in one.reasons}

    if isinstance(plan, Plan):
        assert pytest.approx(plan.estimate.usd) == eligibility.economics.trial_usd
        assert not codes & {"trial_over_budget", "underpowered"}
    elif plan.code == "ineligible":
        assert "ineligible" == eligibility.verdict
    else:
        assert "ineligible" != eligibility.verdict
        assert plan.code in codes


@given(workload=mostly_sound)
@quick
def test_no_trial_is_expected_to_cost_more_than_the_quick_bound(workload):
    for index, candidate in enumerate(workload.candidates):
        place = f"candidates[{index}]"
        job = CandidateJob(workload, candidate, place, load_facts(), "us-east-1")

        assert (job.trial_usd or 0.0) <= most_trial_usd(job)


def test_the_refusal_of_a_trial_names_each_blocking_reason_once_and_of_no_arm():
    eligibility = check(change(SOUND, schedule__run_hours=0.001))
    decision = eligibility.refusal(workload="bert-docs", trial="t")

    given = [*eligibility.reasons, *(r for one in eligibility.candidates for r in one.reasons)]
    blocking = {reason.code for reason in given if reason.severity is Severity.BLOCK}
    assert blocking
    assert (Verdict.INELIGIBLE, "t-ineligible") == (decision.verdict, decision.decision_id)
    assert blocking == {reason.code for reason in decision.reasons}
    assert len(set(decision.reasons)) == len(decision.reasons)
    assert {None} == {reason.arm for reason in decision.reasons}


def _too_short(reasons: Sequence[Reason]) -> bool:
    return any(r.code == "run_too_short" and r.severity == "block" for r in reasons)

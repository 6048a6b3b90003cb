"""The measurements of checking, registering, a fleet and flag reads: what they measure, limits."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict

import pytest

from benchmarks import checks, flag_reads, holdback, registering, results
from benchmarks.fleet import __main__ as fleet
from benchmarks.fleet.cloud import Client
from compilegate.flags.backoff import Backoff
from compilegate.usecases.fleet.project import RowRepair
from compilegate.usecases.records import AT_ONCE
from stacks.functions import STEPS

CLOUD = functools.cache(Client)  # made once: what is written to it is not kept
JOBS, PER_SECOND = 1000, 4.0  # a tenth of the measured burst, at a tenth of the limit


def test_every_stage_of_a_check_is_set_against_the_reference() -> None:
    measured = checks.measure(10)

    assert 10 == measured["documents"]
    assert {"json_loads", "parse", "check", "yaml_parse_check"} == set(measured["per_second"])
    assert all(ratio > 1 for ratio in measured["json_loads_per_document"].values())


def test_every_pass_is_measured_and_an_unchanged_workload_costs_one_read() -> None:
    measured = registering.measure(40, call_seconds=0.0)

    assert 40 == measured["workloads"]
    assert {"get": 1.0} == measured["unchanged"]["calls_per_workload"]
    assert 1.0 == measured["new"]["calls_per_workload"]["schedule"]
    assert 1.0 == measured["updated"]["calls_per_workload"]["schedule"]
    # A source that has not changed is not uploaded again: spec and twice the registration.
    assert 3.0 == measured["updated"]["calls_per_workload"]["put"]
    # So few workloads take no time that could be compared; that all of it is reported can be.
    assert all(measured[name]["times_reading_cpu"] >= 0 for name in ("new", "unchanged", "updated"))


@pytest.mark.slow
@pytest.mark.parametrize("name", fleet.MEASURED)
def test_a_fleet_of_three_years_is_asked_for_as_much_as_one_of_a_year(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the rows that the sweep compares with their whole ledgers."""
    monkeypatch.setattr(fleet, "Client", CLOUD)
    monkeypatch.setattr(RowRepair, "_is_compared_today", lambda *_: False)
    young, old = (fleet.measure(name, 28, years, call_seconds=0.0) for years in (1, 3))

    assert young["requests"] == old["requests"]
    assert young["read_mb"] == pytest.approx(old["read_mb"], rel=0.05)
    assert young["answer"] == old["answer"]


def test_what_is_on_file_fits_the_functions_several_times_over() -> None:
    stored = json.loads(results.path("fleet").read_text())
    steps = {"sweep": "sweep", "digest": "weekly_digest"}
    largest = {
        one["what"]: one
        for one in stored["measured"]
        if (one["workloads"], one["years"]) == (fleet.SIZES[-1], fleet.YEARS[-1])
    }

    assert {*fleet.MEASURED} == {*largest}
    assert AT_ONCE == stored["threads"]
    for name, function in steps.items():
        (step,) = [step for step in STEPS if step.name == function]
        assert largest[name]["seconds"] < step.seconds / 2
        assert largest[name]["memory_mib"] < step.megabytes / 3


def test_all_jobs_of_a_second_get_their_answer_within_the_clients_backoff() -> None:
    result = flag_reads.burst(JOBS, 1.0, flag_reads.TokenBucket(PER_SECOND), Backoff(), seed=17)

    assert (JOBS, 0) == (result.served, result.baseline)
    assert JOBS / PER_SECOND <= max(result.waited) + 2 <= Backoff().seconds


def test_what_is_on_file_was_measured_with_the_client_as_it_is() -> None:
    stored = json.loads(results.path("flag-reads").read_text())

    assert asdict(Backoff()) == stored["backoff"]
    assert [0] * len(stored["bursts"]) == [row["fell_to_baseline"] for row in stored["bursts"]]


def test_what_is_booked_is_simulated_by_production_itself_and_holds_the_truth() -> None:
    measured = holdback.coverage(holdback.Job(3, 0.01, 0.03), 2)
    lost = holdback.loss(holdback.Job(24, 0.01, lost_week=8, lost=1.0), 2)
    stored = json.loads(results.path("holdback").read_text())

    assert (28, 2) == (measured["months"], measured["years"])
    assert measured["median_error"] < 0.05
    assert 2 == lost["alarmed"]
    assert {0} == {cell["alarmed"] for cell in stored["loss"]
                   if cell["lower_end"] < cell["speedup"] and not cell["lost"]}  # fmt: skip
    for number, apart, often in holdback.BURSTS:
        job = holdback.Job(number * often, 0.03, burst=number, apart=apart)
        assert 0 < holdback.in_bursts(job, 1)["worst_error"] < 1
    for cell in stored["bursts"]:
        assert cell["known"] >= 0.85 * cell["months"]
        assert 0.84 <= cell["covered"] / cell["known"] <= 0.95
        assert cell["worst_error"] <= 0.5
    for growth in holdback.GROWTHS:
        cells = [cell for cell in stored["growth"] if cell["growth"] == growth]
        assert len(holdback.SCHEDULES) * len(holdback.SPREADS) == len(cells)
        months = sum(cell["covered"] for cell in cells) / sum(cell["months"] for cell in cells)
        assert 0.88 <= months <= 0.93
        years = [cell["years_covered"] / cell["years"] for cell in cells]
        assert 0.93 <= min(years)

"""The benchmark of registering measures what it says, and what it must not cost is held here."""

from __future__ import annotations

from benchmarks import registering


def test_every_pass_is_measured_and_an_unchanged_workload_costs_one_look() -> None:
    measured = registering.measure(40, call_seconds=0.0)

    assert 40 == measured["workloads"]
    assert {"get": 1.0} == measured["unchanged"]["calls_per_workload"]
    assert 1.0 == measured["new"]["calls_per_workload"]["schedule"]
    assert 1.0 == measured["updated"]["calls_per_workload"]["schedule"]
    # A source that has not changed is not uploaded again: spec and twice the registration.
    assert 3.0 == measured["updated"]["calls_per_workload"]["put"]
    # So few workloads take no time that could be compared; that all of it is reported can be.
    assert all(measured[name]["times_reading_cpu"] >= 0 for name in ("new", "unchanged", "updated"))

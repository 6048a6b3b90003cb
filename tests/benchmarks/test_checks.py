"""The benchmark measures what it says: sound documents, every stage, a ratio to the reference."""

from __future__ import annotations

from benchmarks import checks
from compilegate.usecases.trial.documents import read_document


def test_its_documents_are_sound_and_differ() -> None:
    documents = checks.documents(30)

    workloads = [read_document(document) for document in documents]

    assert 30 == len({workload.name for workload in workloads})
    assert set(checks.INSTANCES) == {workload.training.instance_type for workload in workloads}


def test_every_stage_is_set_against_the_reference() -> None:
    measured = checks.measure(10)

    assert 10 == measured["documents"]
    assert {"json_loads", "parse", "check", "yaml_parse_check"} == set(measured["per_second"])
    assert all(ratio > 1 for ratio in measured["json_loads_per_document"].values())

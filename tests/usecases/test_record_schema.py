"""Clean-up runs the newest code on documents of whichever release wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.errors import UnreadableRecordError
from compilegate.usecases.records import Trial, load_record, save_record

TRIAL = Trial("bert-docs", "0mabc123", "workloads/bert-docs/specs/1.json")


@pytest.mark.parametrize("document", ["plan", "evidence", "decision"])
@pytest.mark.parametrize("schema", [0, 2, "1", None])
def test_a_document_of_another_schema_is_refused_with_key_and_fix(
    services: Any, document: str, schema: object
) -> None:
    save_record(services.store, TRIAL, document, {"schema": schema})

    with pytest.raises(UnreadableRecordError, match=rf"{document}\.json: schema .*Fix: deploy"):
        load_record(services.store, TRIAL, document)


def test_a_document_of_this_schema_or_of_none_is_read(services: Any) -> None:
    for name, document in (("plan", {"schema": 1}), ("flag", {"enabled": True})):
        save_record(services.store, TRIAL, name, document)
        assert document == load_record(services.store, TRIAL, name)

"""Whoever hears of a change finds the story where the message says."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.ports import Services
from compilegate.usecases.production.history_page import write_history
from tests.usecases.history_builder import reverted
from tests.usecases.production_builder import WORKLOAD, watch

LOSS = 0.045


def test_the_story_is_left_where_the_message_says(services: Any) -> None:
    reverted(services, loss=LOSS)

    place = write_history(WORKLOAD, services)

    assert f"s3://{services.store.bucket}/reports/bert-docs/story.html" == place
    stored = {key for key in services.store.objects if key.startswith("reports/bert-docs/story.")}
    assert {"html", "md", "json"} == {key.rpartition(".")[2] for key in stored}


def test_whoever_hears_of_the_revert_is_led_to_the_story(services: Any) -> None:
    reverted(services, loss=LOSS)
    looks = [e for e in services.ledger.entries(WORKLOAD) if e["kind"] == "watch" and e["change"]]

    answer = watch(services, looks[-1]["run"])

    assert "s3://data/reports/bert-docs/story.html" in answer["message"]


def test_a_story_that_cannot_be_written_holds_no_message_up(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    reverted(services, loss=LOSS)
    looks = [e for e in services.ledger.entries(WORKLOAD) if e["kind"] == "watch" and e["change"]]
    put = services.store.put

    def broken(key: str, body: bytes, content_type: str = "application/json") -> None:
        if "/story." in key:
            raise OSError("no space")
        put(key, body, content_type)

    monkeypatch.setattr(services.store, "put", broken)
    answer = watch(services, looks[-1]["run"])

    assert answer["tell"] is True
    assert "The whole history" not in answer["message"]

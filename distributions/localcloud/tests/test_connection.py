"""Clients of a running embedded cloud, without one that runs."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compilegate_localcloud.connection import RunState
from compilegate_localcloud.errors import CloudEndedError


def ended_run() -> RunState:
    """A run whose process is gone, and nothing listens where it did."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return RunState("ended", process.pid, 1, "us-east-1", True, False, False, 0.0, "secret")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AWS_PROFILE", "nowhere"), ("AWS_DEFAULT_PROFILE", "nowhere"),
        ("AWS_CONFIG_FILE", "broken"), ("AWS_SHARED_CREDENTIALS_FILE", "broken"),
    ],
)  # fmt: skip
def test_the_users_profiles_stop_no_client(
    variable: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken").write_text("no section")
    monkeypatch.setenv(variable, value.replace("broken", str(tmp_path / "broken")))
    state = dataclasses.replace(ended_run(), run_id=f"of {variable}")

    client = state.client("sts")

    assert ("us-east-1", state.endpoint) == (client.meta.region_name, client.meta.endpoint_url)
    with pytest.raises(CloudEndedError):
        client.get_caller_identity()


def test_call_after_the_end_says_what_is_lost_at_once() -> None:
    """botocore alone would try again for seconds, then blame network and region."""
    state = ended_run()
    began = time.monotonic()
    with pytest.raises(CloudEndedError, match="it was stopped, or it died") as caught:
        state.client("sts").get_caller_identity()

    assert time.monotonic() - began < 2
    assert "compilegate local up" in str(caught.value)

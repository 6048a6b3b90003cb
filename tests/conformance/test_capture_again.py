"""What is on file is what the SDK says, asked again in an environment of its own."""

from __future__ import annotations

import pytest

from tests.conformance.stored import CAPTURED
from tests.environments import asked


@pytest.mark.slow
@pytest.mark.timeout(600)  # it installs the SDK
def test_the_sdk_says_again_what_is_on_file(tmp_path):
    again = tmp_path / "captured.json"
    asked("sdk", "-m", "tests.conformance.capture", again)

    assert CAPTURED.read_text() == again.read_text()

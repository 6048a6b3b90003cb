"""Every test reads its flags anew, outside any job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compilegate.flags.reading import ARM_VARIABLES, STAGE_VARIABLE, forget


@pytest.fixture(autouse=True)
def _outside_a_job(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (STAGE_VARIABLE, *ARM_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    forget()
    yield
    forget()

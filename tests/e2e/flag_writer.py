"""Makes one change of a flag on real adapters and dies at a boundary: a process of its own.

``python -m tests.e2e.flag_writer WORKLOAD KIND NUMBER before|after``: ends without a word when
its NUMBER-th call of AWS is about to be sent, or has been answered. Exit code 70 then, else 0.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from compilegate.adapters import wiring
from compilegate.adapters.stores import client
from compilegate.usecases.flag.change_flag import change_flag
from tests.usecases.flag_changes import flag_change

DIED = 70
EVENTS = {"before": "before-call", "after": "after-call"}


def die_at(number: int, when: str) -> None:
    """End the process at this call of the stores, counted from 0, without any clean-up."""
    calls = 0

    def count(**_known: Any) -> None:
        nonlocal calls
        if calls == number:
            os._exit(DIED)
        calls += 1

    for service in ("dynamodb", "ssm"):
        client(service).meta.events.register(EVENTS[when], count)


def main(workload: str, kind: str, number: str, when: str) -> None:
    """Make the change as far as it gets."""
    services = wiring.services()
    die_at(int(number), when)
    change_flag(workload, flag_change(kind), services=services)


if __name__ == "__main__":
    main(*sys.argv[1:])

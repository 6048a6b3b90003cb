"""The parts of the harness by name; each makes its cases anew."""

from __future__ import annotations

from collections.abc import Callable

from tests.frozen import commands, eligibility, judge, requests, steps, template, upgrade
from tests.frozen.recording import Case

PARTS: dict[str, Callable[[], list[Case]]] = {
    "judge": judge.cases,
    "eligibility": eligibility.cases,
    "requests": requests.cases,
    "steps": steps.cases,
    "commands": commands.cases,
    "upgrade": upgrade.cases,
    "template": template.cases,
}

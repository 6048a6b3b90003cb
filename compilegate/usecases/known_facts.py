"""The facts that hold for a workload: shipped, read from the account, deployment's, its own."""

from __future__ import annotations

from compilegate.domain.facts.model import Facts
from compilegate.domain.workload.model import Workload
from compilegate.facts import load_facts
from compilegate.ports import Settings


def known_facts(workload: Workload, settings: Settings) -> Facts:
    """What is nearer to the workload wins."""
    return load_facts(settings.region).overridden(settings.facts).overridden(workload.facts)

"""Stories as they really come about: a promotion, nights of production, the judge's own words."""

from __future__ import annotations

import json
import random
from typing import Any

from compilegate.domain.flag import parse_flag
from compilegate.usecases.production.history_page import history_page
from tests.domain.evidence_builder import BASE_WALL, CENTRE, MINE_WALL
from tests.usecases.production_builder import WORKLOAD, promote, record, watch
from tests.usecases.trial_builder import FLAG

SPREAD = 0.002
WALLS = {"baseline": BASE_WALL, "compile": MINE_WALL}


def nights(
    services: Any, numbers: range, *, loss: float = 0.0, chance: random.Random | None = None
) -> None:
    """Nights of production as the judge asks for them, until the flag goes off.

    ``loss`` is what the candidate's runs lose.
    """
    chance = chance or random.Random(numbers.start)
    for number in numbers:
        arm, confirm = wanted(services)
        figures = {
            "metric": chance.gauss(CENTRE, SPREAD) - (loss if arm == "compile" else 0.0),
            "wall_seconds": WALLS[arm] * chance.gauss(1, 0.01),
        }
        run = record(services, number, arm, confirm=confirm, **figures)
        watch(services, run.run)


def wanted(services: Any) -> tuple[str, bool]:
    """Which arm is next, and whether it checks an alarm; every sixth run is the baseline's."""
    if not parse_flag(services.flags.read(FLAG)).enabled:
        return "baseline", False
    entries = list(services.ledger.entries(WORKLOAD))
    looks = [e for e in entries if e["kind"] == "watch"]
    step = max(looks, key=lambda e: e["at"])["next"] if looks else None
    run = (step or {"runs": [{"arm": "compile", "confirm": False}]})["runs"][0]
    count = sum(e["kind"] == "run" for e in entries)
    if not run["confirm"] and count % 6 == 5:
        return "baseline", False
    return run["arm"], run["confirm"]


def reverted(services: Any, *, loss: float) -> None:
    """Promoted, five sound nights, then one arm loses ``loss``, and two nights after the revert."""
    promote(services)
    nights(services, range(1, 6))
    number = 6
    while parse_flag(services.flags.read(FLAG)).enabled:
        nights(services, range(number, number + 1), loss=loss)
        number += 1
    nights(services, range(number, number + 2))


def told(services: Any) -> Any:
    """The story and its document."""
    story = history_page(WORKLOAD, services)
    return story, json.loads(story.json)

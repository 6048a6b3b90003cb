"""The facts that a command shows: of a region, with what cdk.json gives laid over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from compilegate.cli.common import project
from compilegate.cli.common.output import emit_json
from compilegate.cli.facts import screen as facts_screen
from compilegate.domain.facts.model import Facts
from compilegate.facts import load_facts
from compilegate.facts.topics import TOPICS, Row, check_region, chosen, with_age


@dataclass(frozen=True)
class RegionFacts:
    """What is known for a region today."""

    facts: Facts
    region: str
    today: date

    def rows(self, topic: str) -> list[Row]:
        """A topic's rows with their age."""
        return with_age(TOPICS[topic].rows(self.facts, self.region), self.today)


def load_region_facts(region: str | None) -> RegionFacts:
    """The facts of a region, without one of the environment's or cdk.json's.

    Raises InvalidInputError for a region that no registry of images serves.
    """
    settings = project.settings()
    where = check_known_region(region) if region else settings.region
    overridden = load_facts(where).overridden(settings.facts)
    return RegionFacts(overridden, where, datetime.now(tz=UTC).date())


def check_known_region(region: str) -> str:
    """The region; raises InvalidInputError where no registry of images serves it."""
    registries = load_facts().registries.values()
    check_region(region, sorted({name for one in registries for name in one.accounts}))
    return region


def show(
    topic: str,
    filters: Mapping[str, str | None],
    region: str | None,
    *,
    as_json: bool,
    having: str | None = None,
) -> None:
    """Show a topic's rows that have everything wanted, and a value in the column ``having``."""
    facts = load_region_facts(region)
    rows = chosen(facts.rows(topic), filters)
    if having is not None:
        rows = [row for row in rows if row[having]]
    if as_json:
        document = {"topic": topic, "region": facts.region, "today": str(facts.today)}
        emit_json({**document, "rows": rows})
    else:
        addresses = having == "uri"
        facts_screen.show_topic(topic, rows, region, home=facts.region, addresses=addresses)

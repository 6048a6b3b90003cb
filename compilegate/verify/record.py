"""The result of a verification: assumed, seen, agrees; as a table and as files to be committed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from compilegate.verify.assumptions import Assumption
from compilegate.verify.checks import CHECKS, Check
from compilegate.verify.observed import Observations

DETAIL_CHARACTERS = 300
# The record is to be committed: account ids stay out of it.
ACCOUNT = re.compile(r"\b\d{12}\b")


class Agreement(StrEnum):
    """Whether what was seen is what is assumed."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_SEEN = "not seen"
    NOT_CHECKED = "not checked"
    NEEDS_ACCOUNT = "needs an account"


@dataclass(frozen=True)
class Row:
    """One assumption and what was seen of it."""

    id: str
    behaviour: str
    assumed: str
    seen: str
    agreement: Agreement
    detail: str = ""


def compare(
    assumptions: Sequence[Assumption],
    observed: Observations,
    *,
    simulated: bool,
    checks: Mapping[str, Check] = CHECKS,
) -> tuple[Row, ...]:
    """A row per assumption; ``simulated`` where an embedded cloud was asked instead of AWS."""
    return tuple(_row(one, observed, checks, simulated=simulated) for one in assumptions)


def _row(
    one: Assumption, observed: Observations, checks: Mapping[str, Check], *, simulated: bool
) -> Row:
    def row(seen: str, agreement: Agreement, detail: str = "") -> Row:
        cut = ACCOUNT.sub("ACCOUNT", " ".join(detail.split()))[:DETAIL_CHARACTERS]
        return Row(one.id, one.behaviour, one.expected, seen, agreement, cut)

    if one.unchecked:
        return row("", Agreement.NOT_CHECKED, one.unchecked)
    if one.needs_account and simulated:
        return row("", Agreement.NEEDS_ACCOUNT)
    seen = checks[one.id](observed)
    if seen is None:
        return row("", Agreement.NOT_SEEN, f"no result from: {one.check}")
    agrees = seen.value == one.expected
    return row(seen.value, Agreement.AGREES if agrees else Agreement.DIFFERS, seen.detail)


def document(rows: Sequence[Row], circumstances: Mapping[str, str]) -> dict[str, Any]:
    """The record for programs; ``circumstances`` are date, region, versions and the like."""
    return {"schema": 1, **circumstances, "assumptions": [asdict(row) for row in rows]}


def page(rows: Sequence[Row], record: Mapping[str, Any]) -> str:
    """The record for people, as a Markdown page; ``record`` is its ``document``."""
    facts = [f"- {name.replace('_', ' ')}: {value}" for name, value in record.items()
             if isinstance(value, str)]  # fmt: skip
    counts = [f"{sum(row.agreement is kind for row in rows)} {kind}" for kind in Agreement]
    table = ["| assumption | assumed | seen | agrees | detail |", "|---|---|---|---|---|"]
    table += [
        _line(f"`{row.id}`: {row.behaviour}", row.assumed, row.seen, row.agreement, row.detail)
        for row in rows
    ]
    lines = ["# Verified on AWS", "", "Written by `make verify-aws`; "
             "[what the rows mean](local-cloud.md#what-is-assumed-of-aws).", "",
             *facts, f"- result: {', '.join(counts)}", "", *table]  # fmt: skip
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

"""The result of a verification: assumed, seen, agrees; as a table and as files to be committed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from compilegate.adapters.workload_files import write_whole
from compilegate.domain.escaping import escape_markdown
from tools.verify_aws.assumptions import Assumption
from tools.verify_aws.checks import CHECKS, Check
from tools.verify_aws.observed import Observations

STEM = "verified-on-aws"
DETAIL_CHARACTERS = 300
# The record is committed to the repository, so it has no account ids.
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

    @property
    def differs(self) -> bool:
        """Whether AWS does something else."""
        return self.agreement is Agreement.DIFFERS


def compare(
    assumptions: Sequence[Assumption],
    observed: Observations,
    *,
    simulated: bool,
    checks: Mapping[str, Check] = CHECKS,
) -> tuple[Row, ...]:
    """A row per assumption; ``simulated`` for an embedded cloud instead of AWS."""
    return tuple(_row(one, observed, checks, simulated=simulated) for one in assumptions)


def _row(
    assumption: Assumption, observed: Observations, checks: Mapping[str, Check], *, simulated: bool
) -> Row:
    def row(seen: str, agreement: Agreement, detail: str = "") -> Row:
        cut = ACCOUNT.sub("ACCOUNT", " ".join(detail.split()))[:DETAIL_CHARACTERS]
        return Row(assumption.id, assumption.behaviour, assumption.expected, seen, agreement, cut)

    if assumption.unchecked:
        return row("", Agreement.NOT_CHECKED, assumption.unchecked)
    if assumption.needs_account and simulated:
        return row("", Agreement.NEEDS_ACCOUNT)
    seen = checks[assumption.id](observed)
    if seen is None:
        return row("", Agreement.NOT_SEEN, f"no result from: {assumption.check}")
    agrees = seen.value == assumption.expected
    return row(seen.value, Agreement.AGREES if agrees else Agreement.DIFFERS, seen.detail)


@dataclass(frozen=True)
class Record:
    """The rows with their ``circumstances``: date, region, versions and the like."""

    circumstances: Mapping[str, str]
    rows: Sequence[Row]

    def document(self) -> dict[str, Any]:
        """The record for programs."""
        rows = [asdict(row) for row in self.rows]
        return {"schema": 1, **self.circumstances, "assumptions": rows}

    def page(self) -> str:
        """The record for people, in Markdown."""
        facts = [f"- {name.replace('_', ' ')}: {escape_markdown(value)}"
                 for name, value in self.circumstances.items()]  # fmt: skip
        counts = [f"{sum(row.agreement is kind for row in self.rows)} {kind}" for kind in Agreement]
        lines = [
            "# Verified on AWS", "", "Written by `make verify-aws`; "
            "[what the rows mean](../tools/verify_aws/README.md).", "",
            *facts, f"- result: {', '.join(counts)}", "",
            "| assumption | assumed | seen | agrees | detail |", "|---|---|---|---|---|",
            *map(_line, self.rows),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def save(self, folder: Path) -> tuple[Path, Path]:
        """Write both forms into the folder; returns their paths.

        Raises EnvironmentNotReadyError where that fails.
        """
        page, document = folder / f"{STEM}.md", folder / f"{STEM}.json"
        write_whole(page, self.page().encode())
        write_whole(document, (json.dumps(self.document(), indent=2) + "\n").encode())
        return page, document


def _line(row: Row) -> str:
    ours = (cell.replace("|", r"\|") for cell in (f"`{row.id}`: {row.behaviour}", row.assumed))
    cells = (*ours, escape_markdown(row.seen), row.agreement, escape_markdown(row.detail))
    return f"| {' | '.join(cells)} |"

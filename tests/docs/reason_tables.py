"""Writes the tables of reason codes from the registry: python -m tests.docs.reason_tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from compilegate.domain.reasons import ReasonKind
from compilegate.domain.reasons.eligibility import ELIGIBILITY
from compilegate.domain.reasons.production import PRODUCTION
from compilegate.domain.reasons.registry import REGISTRY
from compilegate.domain.reasons.trial import TRIAL

DOCS = Path(__file__).resolve().parents[2] / "docs"
ELIGIBILITY_PAGE, REASONS_PAGE = DOCS / "eligibility.md", DOCS / "reasons.md"
ROW = re.compile(
    r"^\| `(?P<code>[a-z0-9_]+)` \| (?P<severities>[a-z, ]+) \| .+ \| .+ \|$", re.MULTILINE
)
SHARED = ("saving_below_trial_cost", "trial_over_budget", "price_unknown", "underpowered",
          "no_compiler_image")  # fmt: skip
INTRODUCTION = """# Reason codes

Every decision lists its reasons, each with a `code` for programs, the `arm` it is about (null: the
trial as a whole) and a `message` for people. Codes are stable; messages are not. `block` stands in
the way, `warn` asks for care, `info` is worth knowing. The codes of eligibility are listed with
their questions in [eligibility](eligibility.md).
"""


def row(code: str, kind: ReasonKind) -> str:
    """One row of a table."""
    severities = ", ".join(str(severity) for severity in kind.severities)
    return f"| `{code}` | {severities} | {kind.meaning} | {kind.fix or 'Nothing to do.'} |"


def eligibility_page(text: str) -> str:
    """The page with the rows of its tables as the registry has them."""
    return ROW.sub(lambda found: row(found["code"], REGISTRY[found["code"]]), text)


def reasons_page() -> str:
    """The codes of trials and of production."""
    shared = {code: ELIGIBILITY[code] for code in SHARED}
    return "\n".join(
        [
            INTRODUCTION,
            *_section("Planning and trials", {**TRIAL, **shared}),
            "",
            *_section("Production", PRODUCTION),
            "",
        ]
    )


def _section(title: str, kinds: Mapping[str, ReasonKind]) -> list[str]:
    head = ["| code | severity | meaning | what helps |", "|---|---|---|---|"]
    return [f"## {title}", "", *head, *(row(code, kinds[code]) for code in sorted(kinds))]


if __name__ == "__main__":
    ELIGIBILITY_PAGE.write_text(eligibility_page(ELIGIBILITY_PAGE.read_text()))
    REASONS_PAGE.write_text(reasons_page())

"""What is not compared: sentences, what depends on the day, and keys that documents have gained."""

from __future__ import annotations

import re
from typing import Any

# Texts under these keys, and lists of them, are kept as present or absent. A code that says the
# same in a word for programs stands beside most of them.
SENTENCES = frozenset(
    {
        "assumptions",
        "cause",  # of an error of a state machine
        "fix",
        "flag_explanation",
        "headline",
        "label",  # of an arm
        "message",
        "note",
        "problem",  # of an error
        "reason",
        "runs_as_shadow_because",
        "runs_basis",
        "subject",  # of a notification
        "symbol",  # in an explanation
        "text",
        "title",
        "not_notified_because",
        "report_not_written_because",
        "unit",
        "why",
        "why_not",
        "words",
    }
)
# Each value of these mappings is a sentence.
MAPS_OF_SENTENCES = frozenset({"placeholders", "unknown"})
# Either codes or sentences, which alone have spaces.
CODES_OR_SENTENCES = frozenset({"reasons", "notes"})
# The function that a figure of an explanation comes from: it changes when code moves.
NAME_OF_CODE = re.compile(r"[a-z_]+(\.[a-z_0-9]+){2,}")
# What depends on the day on which a command runs.
VOLATILE = frozenset({"today", "age_days"})
# Keys that were added on purpose after the recording, by the key of what they were added to.
GAINED = {
    # Of decisions; those of eligibility, which have a severity, always said what the fix is.
    "reasons": frozenset({"arm", "fix"}),
    "notes": frozenset({"arm"}),
    "limit": frozenset({"arm", "fix"}),
    "answer": frozenset({"timed_out"}),  # of on_job_ended
}
STRIPPED = "…"


def without_wording(value: Any, under: str = "") -> Any:
    """The same document; what a person reads is replaced by a mark that it is there."""
    if isinstance(value, dict):
        gained = GAINED.get(under, frozenset())
        if "severity" in value:
            gained -= {"fix"}
        whole = under in MAPS_OF_SENTENCES
        return {
            key: STRIPPED if whole and isinstance(item, str) else without_wording(item, key)
            for key, item in value.items()
            if key not in gained and key not in VOLATILE
        }
    if isinstance(value, list):
        return [without_wording(item, under) for item in value]
    return STRIPPED if isinstance(value, str) and _is_sentence(value, under) else value


def _is_sentence(text: str, key: str) -> bool:
    if key in CODES_OR_SENTENCES:
        return " " in text
    if key == "source":
        return NAME_OF_CODE.fullmatch(text) is not None
    return key in SENTENCES and text != ""

"""The cap on a trial's cost that a proposed workload file begins with."""

from __future__ import annotations

import math
from typing import Any

from compilegate.cli.init.render import ASSUMED, Proposal, Value, assumed, document_of
from compilegate.domain.eligibility import check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.formats import money
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Policy
from compilegate.ports import Settings
from compilegate.usecases.registered import facts_for_workload

# Above what the plan expects: a quarter, rounded up to two digits.
ROOM = 1.25
_CANDIDATES = [{"name": "compile", "compiler": "torch_compile"}]


def with_cap(proposal: Proposal, settings: Settings) -> Proposal:
    """The proposal with one candidate and a cap that its trial fits into.

    Raises InvalidInputError for an answer that no workload file may hold.
    """
    whole: dict[str, Any] = {**proposal, "candidates": Value(_CANDIDATES)}
    try:
        workload = parse_workload(document_of(whole, priced=True))
    except InvalidInputError as error:
        raise error.in_file("") from error
    facts = facts_for_workload(workload, settings)
    usd = check_eligibility(workload, facts, region=settings.region).economics.trial_usd
    cap = assumed(Policy().max_trial_usd, "there is no price to estimate by")
    if usd:
        note = f"a trial is expected to cost {money(usd)}; it never costs more than this"
        cap = Value(_rounded_up(usd * ROOM), note, ASSUMED)
    return {**proposal, "policy": {"max_trial_usd": cap}, "candidates": whole["candidates"]}


def _rounded_up(usd: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(usd)) - 1)
    return round(math.ceil(usd / unit) * unit, 10)

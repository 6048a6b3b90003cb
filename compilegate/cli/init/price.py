"""The cap on a trial's cost that a proposed workload file begins with."""

from __future__ import annotations

import math
from typing import Any

from compilegate.cli.init.render import ASSUMED, Proposal, Value, document_of
from compilegate.domain.eligibility import check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.formats import money
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Policy
from compilegate.ports import Settings
from compilegate.usecases.registered import facts_for_workload

# Above what the plan expects: a quarter, rounded up to two digits.
ROOM = 1.25
# Stand for what is still open; none has a part in the price.
_STAND_INS: dict[str, Any] = {
    "training.batch_size": 1,
    "training.learning_rate": 0.001,
    "quality.metric": "metric",
    "quality.goal": "minimize",
    "quality.margin": 0.01,
}
_CANDIDATES = [{"name": "compile", "compiler": "torch_compile"}]


def with_cap(proposal: Proposal, settings: Settings) -> Proposal:
    """The proposal with one candidate and a cap that its trial fits into.

    Raises InvalidInputError for an answer that no workload file may hold.
    """
    whole: dict[str, Any] = {**proposal, "candidates": Value(_CANDIDATES)}
    document = document_of(whole, stand_ins=_STAND_INS)
    try:
        workload = parse_workload(document)
    except InvalidInputError as error:
        raise error.in_file("") from error
    facts = facts_for_workload(workload, settings)
    usd = check_eligibility(workload, facts, region=settings.region).economics.trial_usd
    cap, note = Policy().max_trial_usd, "assumed; there is no price to estimate by"
    if usd:
        cap = _rounded_up(usd * ROOM)
        note = f"a trial is expected to cost {money(usd)}; it never costs more than this"
    policy = {"max_trial_usd": Value(cap, note, ASSUMED)}
    return {**proposal, "policy": policy, "candidates": whole["candidates"]}


def _rounded_up(usd: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(usd)) - 1)
    return round(math.ceil(usd / unit) * unit, 10)

"""Every reason code, with what it means and what helps: the only place for either.

A code never changes its name, because decisions are stored. Headlines and advice are looked up
here, never taken from a reason's message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compilegate.domain.reasons import ReasonKind
from compilegate.domain.reasons.eligibility import ELIGIBILITY
from compilegate.domain.reasons.production import PRODUCTION
from compilegate.domain.reasons.trial import TRIAL

REGISTRY: Mapping[str, ReasonKind] = {**ELIGIBILITY, **TRIAL, **PRODUCTION}


def headline(code: str, variant: str | None = None) -> str:
    """The template that completes a verdict; empty for a code that has none."""
    kind = REGISTRY.get(code)
    if kind is None:
        return ""
    return kind.variants.get(variant or "", kind.headline)


def advice(code: str) -> str:
    """What helps in every case of a code; empty where nothing needs to be done."""
    kind = REGISTRY.get(code)
    return kind.fix if kind else ""


def advice_for(codes: Iterable[str]) -> list[str]:
    """What helps, said once each, in the order of the codes."""
    return list(dict.fromkeys(text for code in codes if (text := advice(code))))

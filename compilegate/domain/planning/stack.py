"""Candidates on top of what is on, each with one more change (docs/decisions/0024-stacks.md).

What is on is composed again from the candidates of its layers: a layer that may not be tried any
more, or has become another change, ends the trial before anything is spent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

from compilegate.domain.flag import Flag
from compilegate.domain.followers import PERMANENT
from compilegate.domain.planning.arms import FOLLOWS
from compilegate.domain.planning.plan import Choice
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Candidate

_VALUES = "hyperparameters"
_AGAIN = "let a trial begin from nothing: turn it off with compilegate flag revert"


def stacked(
    choice: Choice, flag: Flag, check: Callable[[tuple[Candidate, ...]], Choice]
) -> Choice | Reason:
    """What a trial on top of a flag that is on is planned with, or why there is none.

    ``choice`` are the candidates that may be tried alone, ``check`` says which composed ones may.
    """
    top, left_out = str(flag.candidate), list(choice.left_out)
    names = [layer.candidate for layer in flag.layers] or [top]
    by_name = {one.name: one for one in choice.candidates}
    if flag.state != PERMANENT:
        text = f"{top} is on and {flag.state}: a layer is tried once it is permanent"
        return Reason("stack_waits", text)
    for name in names:
        if name not in by_name:
            why = dict(left_out).get(name, "it is not among the candidates")
            return _broken(top, f"its layer {name} may not be tried any more: {why}")
    on = replace(reduce(_on_top, (by_name.pop(name) for name in names)), name=top)
    today, then = dict(on.overrides()), dict(flag.overrides)
    for derived in (FOLLOWS, "learning_rate", "image"):
        today.pop(derived, None)
        then.pop(derived, None)
    if today != then:
        return _broken(top, "its layers make another change today than they did")
    clashes = {name: _clash(on, one) for name, one in by_name.items()}
    left_out += [(name, why) for name, why in clashes.items() if why]
    more = [_on_top(on, one) for name, one in by_name.items() if not clashes[name]]
    checked = check((on, *more))
    left_out += checked.left_out
    eligible = [one.name for one in checked.candidates]
    if top not in eligible:
        return _broken(top, dict(left_out).get(top, "it is not eligible"))
    if eligible == [top]:
        text = "; ".join(f"{name}: {why}" for name, why in left_out)
        return Reason("stack_ends", f"nothing is left to try on {top}{text and f': {text}'}")
    said = {name: f"{name} on top of {top}, which is on" for name in eligible}
    said[top] = "what is on: a layer has to be faster than that"
    return replace(checked, why=said, left_out=tuple(left_out), on=top)


def _clash(on: Candidate, more: Candidate) -> str:
    """Why one candidate cannot come on top of the other, empty where it can."""
    ours, theirs = _changes(on), _changes(more)
    keys = sorted(key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key])
    return f"sets {', '.join(keys)} otherwise than {on.name}, which is on" if keys else ""


def _changes(candidate: Candidate) -> dict[str, Any]:
    """What it changes, each hyperparameter on its own."""
    changes = candidate.overrides()
    values = changes.pop(_VALUES, {})
    return {**changes, **{f"{_VALUES}.{name}": value for name, value in values.items()}}


def _on_top(lower: Candidate, upper: Candidate) -> Candidate:
    """Both changes under the upper one's name."""
    keys = lower.overrides().keys() - upper.overrides().keys() - {_VALUES}
    values = {**lower.hyperparameters, **upper.hyperparameters}
    return replace(upper, hyperparameters=values, **{key: getattr(lower, key) for key in keys})


def _broken(top: str, why: str) -> Reason:
    return Reason("stack_broken", f"nothing can be tried on {top}, which is on: {why}", fix=_AGAIN)

"""Were both arms scored on one evaluation set?

The recorder leaves the identity of the examples that a run was scored on (outcomes.py). A set that
changes from run to run, as with nightly data, moves both arms alike: its sampling is part of the
spread that the gate measures, and the evaluation's part cannot be separated (``sets_vary``). A set
of each arm's own is another matter: difficulty then looks like quality, in either direction.

Past runs that are known to be scored on another set, by ``quality.history_set``, are no reference
and do not count. Where neither is known, history counts as runs that may have drifted
(statistics.py). Both rules depend on the sets alone, never on a metric, and only take away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compilegate.domain.judging.evidence import PROBATION, Arm, Evidence, finished
from compilegate.domain.reasons import Reason

# Runs that may each be of another night, with that night's data, and yet look like a set per arm.
FEW_RUNS = 2


def sets_of(arm: Arm) -> list[str]:
    """The set that each finished run of the arm was scored on, where it is recorded."""
    return [run.outcomes.set_sha256 for run in finished(arm.quality) if run.outcomes]


def different_sets(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Arms that were each scored on one set of examples, but not on the same one.

    One run of each arm may be of two nights with data of their own.
    """
    ours, theirs = sets_of(candidate), sets_of(baseline)
    each_on_one = len(set(ours)) == len(set(theirs)) == 1
    if each_on_one and ours[0] != theirs[0] and len([*ours, *theirs]) > FEW_RUNS:
        text = (
            f"{candidate.name}: its runs were scored on other evaluation examples "
            f"({ours[0][:12]}) than the baseline's ({theirs[0][:12]})"
        )
        yield Reason("evaluation_sets_differ", text, candidate.name)


def without_other_history(evidence: Evidence) -> Evidence:
    """A trial's evidence without a history of another set than its runs were scored on."""
    past = evidence.quality.history
    known = evidence.quality.history_set
    if known is None or not past or evidence.phase == PROBATION:
        return evidence
    today = {identity for arm in evidence.arms for identity in sets_of(arm)}
    if all(identity.startswith(known) for identity in today):
        return evidence
    quality = replace(evidence.quality, history=())
    return replace(evidence, quality=quality, history_left_out=len(past))


def other_history(evidence: Evidence) -> tuple[Reason, ...]:
    """That past runs do not count, where they do not."""
    if not evidence.history_left_out:
        return ()
    text = (
        f"{evidence.history_left_out} past runs were scored on other evaluation examples than "
        "this trial's and do not count"
    )
    return (Reason("history_other_set", text),)

"""Were both arms scored on one evaluation set?

The recorder leaves the identity of the examples that a run was scored on (outcomes.py). A set that
changes from run to run, as with nightly data, moves both arms alike: its sampling is part of the
spread that the gate measures, and the evaluation's part cannot be told apart (``sets_vary``). A set
of each arm's own is another matter: difficulty then looks like quality, in either direction.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.judging.evidence import Arm, finished
from compilegate.domain.judging.outcomes import read_outcomes
from compilegate.domain.reasons import Reason

# Runs that may each be of another night, with that night's data, and yet look like a set per arm.
NIGHTS = 2


def sets_of(arm: Arm) -> list[str]:
    """The set that each finished run of the arm was scored on, where it is recorded."""
    read = (read_outcomes(run.record.get("outcomes")) for run in finished(arm.quality))
    return [outcomes.set_sha256 for outcomes in read if outcomes is not None]


def different_sets(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Arms that were each scored on one set of examples, but not on the same one.

    One run of each arm may be of two nights with data of their own.
    """
    ours, theirs = sets_of(candidate), sets_of(baseline)
    each_on_one = len(set(ours)) == len(set(theirs)) == 1
    if each_on_one and ours[0] != theirs[0] and len([*ours, *theirs]) > NIGHTS:
        text = (
            f"{candidate.name}: its runs were scored on other evaluation examples "
            f"({ours[0][:12]}) than the baseline's ({theirs[0][:12]})"
        )
        yield Reason("evaluation_sets_differ", text, candidate.name)

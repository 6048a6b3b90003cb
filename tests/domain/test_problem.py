"""A message that keeps its problem and its fix apart."""

from __future__ import annotations

import copy
import pickle

from compilegate.domain.errors import (
    RESTART,
    DrainedError,
    InvalidEvidenceError,
    ProblemWithFix,
    WorkloadLockedError,
    lease_lost,
    message_of,
    parts_of,
)


def test_people_read_one_text_and_programs_its_parts() -> None:
    message = ProblemWithFix("it is off", fix="turn it on")

    assert "it is off. Fix: turn it on" == str(message) == str(InvalidEvidenceError(message))
    assert ("it is off", "turn it on") == parts_of(message_of(InvalidEvidenceError(message)))


def test_a_message_without_a_fix_is_whole_whatever_it_says() -> None:
    assert ("a. Fix: b", None) == parts_of(message_of(DrainedError("a. Fix: b")))
    assert ("", None) == parts_of(message_of(DrainedError()))


def test_copies_keep_the_parts() -> None:
    message = ProblemWithFix("a", fix="b")

    for copied in (copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert (message, ("a", "b")) == (copied, parts_of(copied))


def test_a_lost_lease_says_what_to_do() -> None:
    error = lease_lost("topics", "execution-1")

    assert isinstance(error, WorkloadLockedError)
    assert RESTART == parts_of(message_of(error))[1]

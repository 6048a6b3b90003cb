"""An error keeps its problem and its fix apart."""

from __future__ import annotations

import copy
import pickle

from compilegate.domain.errors import (
    RESTART,
    DrainedError,
    InvalidEvidenceError,
    InvalidInputError,
    OverwrittenEvidenceError,
    WorkloadLockedError,
    lock_lost,
)


def test_people_read_one_text_and_programs_its_parts():
    error = InvalidEvidenceError("it is off", fix="turn it on")

    for one in (error, copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert ("it is off. Fix: turn it on", "it is off", "turn it on") == (
            str(one), one.problem, one.fix,
        )  # fmt: skip
    assert ("evidence_invalid", "evidence_overwritten") == (
        error.code, OverwrittenEvidenceError("twice").code,
    )  # fmt: skip


def test_a_copy_of_an_error_of_a_file_says_the_same():
    error = InvalidInputError(
        "is too large", field="policy.max_trial_usd", value=7, fix="lower it", file="w.yaml", line=3
    )

    for one in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert (str(error), error.to_dict()) == (str(one), one.to_dict())
        assert ("w.yaml", "policy.max_trial_usd", "lower it") == (one.file, one.field, one.fix)


def test_a_message_without_a_fix_is_whole_whatever_it_says():
    whole, empty = DrainedError("a. Fix: b"), DrainedError("")

    assert ("a. Fix: b", "a. Fix: b", "") == (str(whole), whole.problem, whole.fix)
    assert ("", "", "") == (str(empty), empty.problem, empty.fix)


def test_a_lost_lock_says_what_to_do():
    error = lock_lost("topics", "execution-1")

    assert isinstance(error, WorkloadLockedError)
    assert RESTART == error.fix

"""An error keeps its problem and its fix apart."""

from __future__ import annotations

import copy
import pickle

from compilegate.domain.errors import RESTART, InvalidInputError, WorkloadLockedError, lock_lost


def test_a_copy_of_an_error_of_a_file_says_the_same():
    error = InvalidInputError(
        "is too large", field="policy.max_trial_usd", value=7, fix="lower it", file="w.yaml", line=3
    )

    for one in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert (str(error), error.to_dict()) == (str(one), one.to_dict())
        assert ("w.yaml", "policy.max_trial_usd", "lower it") == (one.file, one.field, one.fix)


def test_a_lost_lock_says_what_to_do():
    error = lock_lost("topics", "execution-1")

    assert isinstance(error, WorkloadLockedError)
    assert RESTART == error.fix

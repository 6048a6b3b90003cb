"""What a drain stops, what it waits for, and when it is over."""

from __future__ import annotations

import pytest

from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.records.ledger import DrainMark, read
from compilegate.usecases.drain_mark import latest_mark


@pytest.mark.parametrize("lost", ["drained", "version"])
def test_a_damaged_mark_lets_nothing_start_whichever_holds(lost):
    entry = DrainMark(1, True, 10, "ada").to_entry()
    del entry[lost]

    with pytest.raises(UnreadableRecordError, match="drain"):
        latest_mark([read(entry), DrainMark(2, False, 20, "bo")])

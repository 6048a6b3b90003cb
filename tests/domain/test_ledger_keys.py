"""Which keys a read by time covers: all but those of runs and reviews from before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import ledger_keys, naming

APART = ledger_keys.CLOCKS_APART_SECONDS
NOW = 1_790_000_000
KEYS_OF_A_RUN = ("run#{}#begun", "run#{}#wait#0", "run#{}#cg-w-{}-p0-r0", "review#{}")
OTHER_KEYS = (
    "approval#0mabc123#answer", "canary#0mabc123#001", "drain#00000001", "flag#00000001",
    "ignored#zz-job", "registered#00000001", "swept#001790000000", "trial#0mabc123#started",
    "trial#zzzzzzzz#probation/d", "unlocked#001790000000",
)  # fmt: skip
PREFIXES = ("", "run#", "review#", "trial#", "flag#", "canary#0mabc123#", "unlocked#")


@given(
    prefix=st.sampled_from(PREFIXES),
    since=st.integers(0, NOW + 10**8),
    before=st.lists(st.integers(-2 * APART, 2 * APART)),
)
def test_a_window_leaves_out_older_runs_and_nothing_else(prefix, since, before):
    began = [max(0, since - one) for one in before]
    runs = [(at, form) for at in began for form in KEYS_OF_A_RUN]
    keys = {form.format(*[naming.trial_id(1000 * at)] * 2): at for at, form in runs}
    windows = ledger_keys.windows(prefix, since)
    seen = [
        key
        for first, last in windows
        for key in sorted({*keys, *OTHER_KEYS})
        if ledger_keys.holds(key, first, last)
    ]

    wanted = [key for key in {*keys, *OTHER_KEYS} if key.startswith(prefix)]
    assert sorted(key for key in wanted if keys.get(key, since) >= since - APART) == seen
    assert len(windows) == (3 if not prefix else 1)

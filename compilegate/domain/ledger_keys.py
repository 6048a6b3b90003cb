"""What sort keys of the ledger begin with, where more than one entry is read at once.

The ledger takes an entry once under its key, so that a key also says what may happen only once;
each kind of entry has the form of its own (records/).
"""

from __future__ import annotations

from compilegate.domain import naming

FLAG_ENTRIES = "flag#"
# Production's runs: begun, waiting, ended.
RUN_ENTRIES = "run#"
# Trials: begun, decided, failed.
TRIAL_ENTRIES = "trial#"
# Questions to people, and their answers.
APPROVAL_ENTRIES = "approval#"
CANARY_ENTRIES = "canary#"
DRAIN_ENTRIES = "drain#"
# Classes of the equivalence check that a deployment has revoked, and restored.
EQUIVALENCE_ENTRIES = "equivalence#"
REGISTERED_ENTRIES = "registered#"
REVIEW_ENTRIES = "review#"

# Below and above every key, and above every key that begins with what it follows: keys are of
# letters, digits and signs between the two.
LOWEST, HIGHEST = " ", "~"
# A run's id is the time that it was begun for: by a clock that may be a day off, and up to six
# hours before its first entry, as long as a schedule tries (adapters/state_machines.py).
CLOCKS_APART_SECONDS = 36 * 3600

# Stands for the whole deployment where a workload's name is meant; no workload can have it.
DEPLOYMENT = "_deployment"


def windows(prefix: str, since: float) -> list[tuple[str, str]]:
    """The first and the last of each row of keys that begin with ``prefix``, without older runs.

    Runs and their reviews are those from epoch second ``since`` on, and some from before it, as
    clocks differ; keys of all other kinds are as without it.
    """
    first_run = naming.trial_id(max(0, round(1000 * (since - CLOCKS_APART_SECONDS))))
    rows = (
        (LOWEST, REVIEW_ENTRIES),
        (f"{REVIEW_ENTRIES}{first_run}", RUN_ENTRIES),
        (f"{RUN_ENTRIES}{first_run}", HIGHEST),
    )
    clipped = [(max(first, prefix), min(last, f"{prefix}{HIGHEST}")) for first, last in rows]
    return [(first, last) for first, last in clipped if first < last]


def holds(key: str, prefix: str, last: str | None) -> bool:
    """Whether a key begins with ``prefix`` or, with ``last``, lies from the one to the other."""
    return key.startswith(prefix) if last is None else prefix <= key <= last


def run_entries(run: str) -> str:
    """What the sort keys of all entries of a run begin with."""
    return f"{RUN_ENTRIES}{run}#"


def wait_entries(run: str) -> str:
    """What the sort keys of a run's attempts without capacity begin with."""
    return f"{RUN_ENTRIES}{run}#wait#"


def canary_entries(trial: str) -> str:
    """What the sort keys of all canary rounds of a trial begin with."""
    return f"{CANARY_ENTRIES}{trial}#"

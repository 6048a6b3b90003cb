"""What sort keys of the ledger begin with, where more than one entry is read at once.

The ledger takes an entry once under its key, so that a key also says what may happen only once;
each kind of entry has the form of its own (records/).
"""

from __future__ import annotations

FLAG_ENTRIES = "flag#"
# Production's runs: begun, waiting, ended.
RUN_ENTRIES = "run#"
# Trials: begun, decided, failed.
TRIAL_ENTRIES = "trial#"
# Questions to people, and their answers.
APPROVAL_ENTRIES = "approval#"
CANARY_ENTRIES = "canary#"
DRAIN_ENTRIES = "drain#"
REGISTERED_ENTRIES = "registered#"

# Stands for the whole deployment where a workload's name is meant; no workload can have it.
DEPLOYMENT = "_deployment"


def run_entries(run: str) -> str:
    """What the sort keys of all entries of a run begin with."""
    return f"{RUN_ENTRIES}{run}#"


def wait_entries(run: str) -> str:
    """What the sort keys of a run's attempts without capacity begin with."""
    return f"{RUN_ENTRIES}{run}#wait#"


def canary_entries(trial: str) -> str:
    """What the sort keys of all canary rounds of a trial begin with."""
    return f"{CANARY_ENTRIES}{trial}#"

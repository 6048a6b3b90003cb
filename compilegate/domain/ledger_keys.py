"""Sort keys of the ledger: what an entry is of, in the order in which entries are read.

The ledger takes an entry once under its key, so that a key also says what may happen only once.
Keys that only their own record needs are there (records/).
"""

from __future__ import annotations

from compilegate.domain.naming import ROUND_DIGITS

# What the sort keys of a flag's changes begin with.
FLAG_ENTRIES = "flag#"
# … those of production's runs: begun, waiting, ended.
RUN_ENTRIES = "run#"
# … those of trials: begun, decided, failed.
TRIAL_ENTRIES = "trial#"
# What the sort keys of questions to people, and of their answers, begin with.
APPROVAL_ENTRIES = "approval#"
# … and those of canary rounds.
CANARY_ENTRIES = "canary#"

# Stands for the whole deployment where a workload's name is meant; no workload can have it.
DEPLOYMENT = "_deployment"
# What the sort keys of a deployment's drain marks begin with.
DRAIN_ENTRIES = "drain#"
# What the sort keys of a registration's changes begin with.
REGISTERED_ENTRIES = "registered#"


def drain_entry(version: int) -> str:
    """Sort key of one drain mark; versions begin at 1."""
    return f"{DRAIN_ENTRIES}{version:08d}"


def started_entry(trial: str) -> str:
    """Sort key of a trial's beginning: which execution runs it, since when."""
    return f"{TRIAL_ENTRIES}{trial}#started"


def flag_entry(version: int) -> str:
    """Sort key of one change of the flag; versions begin at 1."""
    return f"{FLAG_ENTRIES}{version:08d}"


def begun_entry(run: str) -> str:
    """Sort key of a production run's beginning: the first writer owns the run."""
    return f"{RUN_ENTRIES}{run}#begun"


def run_entry(run: str, job: str) -> str:
    """Sort key of what one job of a production run ended with."""
    return f"{RUN_ENTRIES}{run}#{job}"


def run_entries(run: str) -> str:
    """What the sort keys of all entries of a run begin with."""
    return f"{RUN_ENTRIES}{run}#"


def wait_entries(run: str) -> str:
    """What the sort keys of a run's attempts without capacity begin with."""
    return f"{RUN_ENTRIES}{run}#wait#"


def wait_entry(run: str, number: int) -> str:
    """Sort key of one attempt at a production run without capacity."""
    return f"{wait_entries(run)}{number}"


def ignored_entry(job: str) -> str:
    """Sort key of a job that carries the workload's tags and is not the workload's."""
    return f"ignored#{job}"


def watch_entry(run: str) -> str:
    """Sort key of the review after a production run."""
    return f"watch#{run}"


def canary_entries(trial: str) -> str:
    """What the sort keys of all such rounds of a trial begin with."""
    return f"{CANARY_ENTRIES}{trial}#"


def canary_entry(trial: str, round_number: int) -> str:
    """Sort key of a canary round."""
    return f"{canary_entries(trial)}{round_number:0{ROUND_DIGITS}d}"


def approval_entry(trial: str) -> str:
    """Sort key of the question whether a promotion may take effect; its parts begin with it."""
    return f"{APPROVAL_ENTRIES}{trial}"


def approval_answer_entry(trial: str) -> str:
    """Sort key of the answer."""
    return f"{approval_entry(trial)}#answer"


def registered_entry(revision: int) -> str:
    """Sort key of one change of what production trains, or whether; revisions begin at 1."""
    return f"{REGISTERED_ENTRIES}{revision:08d}"

"""Names of verdicts, flag states and reasons of runs, for every screen, report and message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Label:
    """Two or three words; ``tone`` is good, off, open or bad, and decides the colour."""

    text: str
    tone: str


# Verdicts of trials, of probations and of eligibility, and of a trial that failed.
VERDICTS = {
    "promote": Label("Turn it on", "good"),
    "permanent": Label("On permanently", "good"),
    "eligible": Label("Eligible", "good"),
    "stay_off": Label("Leave it off", "off"),
    "ineligible": Label("Not eligible", "off"),
    "inconclusive": Label("Not proven", "open"),
    "continue": Label("In progress", "open"),
    "benchmark": Label("To measure", "open"),
    "revert": Label("Turned back off", "bad"),
    "invalid": Label("No valid comparison", "bad"),
    "failed": Label("Trial failed", "bad"),
}

FLAG_STATES = {
    "off": Label("Off", "off"),
    "probation": Label("On probation", "good"),
    "permanent": Label("On permanently", "good"),
    "reverted": Label("Turned back off", "bad"),
    "stale": Label("Stale", "open"),
}

# Of a promotion whose alarm is being checked; the flag's state stays as it is meanwhile.
ALARM = Label("Alarm being checked", "open")

# Why a production run trains its arm (domain/production/next_arm.py).
RUN_REASONS = {
    "scheduled": "the flag is off",
    "flag": "the flag is on",
    "refresh": "a current baseline to compare the candidate with",
    "confirm": "the judge requested it, to check an alarm",
    "canary": "its turn as a canary run of a trial",
    "stale": "the flag is stale",
    "unreadable": "the flag could not be read",
    "malformed": "the flag is malformed",
    "differs": "the flag differs from the ledger",
    "unfit": "the candidate's job cannot be built",
    "rerun": "the candidate failed; rerun on the baseline so that a model exists",
    "fallback": "on a fallback instance type, because the usual one was not available",
}


def verdict_label(verdict: str) -> Label:
    """The label of a verdict; one of a later release stays as it is."""
    return VERDICTS.get(verdict, Label(verdict, "open"))


def run_reason(code: str) -> str:
    """Why a run trains its arm; a later release's code stays as it is."""
    return RUN_REASONS.get(code, code)

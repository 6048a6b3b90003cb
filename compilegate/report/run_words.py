"""Production runs in words, wherever people read of them."""

from __future__ import annotations

# Why a run trains its arm (domain/production/next_arm.py).
WHY = {
    "scheduled": "the flag is off",
    "flag": "the flag is on",
    "refresh": "a baseline of today, to compare the candidate with",
    "confirm": "the judge asked for it, to check an alarm",
    "canary": "its turn in a trial that production carries",
    "stale": "the flag is stale",
    "unreadable": "the flag could not be read",
    "malformed": "the flag is not one",
    "differs": "the flag is not what the ledger says",
    "unfit": "the candidate's job cannot be built",
    "rerun": "the candidate failed, and the model is wanted all the same",
    "fallback": "on another machine, for want of the usual one",
}


def why(code: str) -> str:
    """Why a run trains its arm; a later release's word stays as it is."""
    return WHY.get(code, code)

"""What can go wrong with the embedded cloud; every message is meant for people.

LocalCloudError
├── NotReadyError    an interpreter, an assembly or a running cloud is missing
├── CloudEndedError  the cloud ended while it was in use
├── DeployError      a stack did not come up
└── NoLogError       no part of that name has written a log
"""

from __future__ import annotations


class LocalCloudError(Exception):
    """Base of every error of the embedded cloud; ``fix`` is what to do, empty where unknown."""

    def __init__(self, problem: str, *, fix: str = "") -> None:
        self.problem, self.fix = problem, fix
        super().__init__(f"{problem}. Fix: {fix}" if fix else problem)


class NotReadyError(LocalCloudError):
    """Something that the embedded cloud needs is missing, or it does not run."""


class CloudEndedError(LocalCloudError):
    """The cloud ended while it was in use; the message says what is lost with it."""


class DeployError(LocalCloudError):
    """A stack did not come up; the message names each resource that failed, and why."""


class NoLogError(LocalCloudError):
    """There is no log of that part; the message lists the parts there are."""

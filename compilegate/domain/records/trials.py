"""Records of trials: started, decided or failed, the approval of a promotion, and what followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from compilegate.domain.codec import OMITTED
from compilegate.domain.records import LedgerRecord
from compilegate.domain.records.flags import Author
from compilegate.domain.spreads import Measured

# A month: long enough for holidays, short enough that the evidence is still today's.
WAIT_SECONDS = 30 * 24 * 3600
# Who answers where no person does.
NOBODY, STOPPED = "nobody", "evaluate"


@dataclass(frozen=True)
class TrialStarted(LedgerRecord):
    """Which execution runs a trial, since when.

    ``flag_version`` is the flag's version that the trial knows of, None where it was not recorded.
    ``trial`` is recorded where the execution, started by hand, is not named after it.
    """

    kind = "started"
    key_form = "trial#{trial}#started"

    at: int
    execution: str
    flag_version: int | None = field(default=None, metadata=OMITTED)
    trial: str = ""

    def __post_init__(self) -> None:
        """An execution is named after workload and trial."""
        if not self.trial:
            object.__setattr__(self, "trial", self._named)

    @property
    def _named(self) -> str:
        return self.execution.rpartition("-")[2]

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        entry = super().to_entry()
        if self.trial == self._named:
            del entry["trial"]
        return entry


@dataclass(frozen=True)
class TrialDecided(LedgerRecord):
    """The decision of a trial; ``reasons`` in words, ``spreads`` where it measured any."""

    kind = "decision"
    key_form = "trial#{trial}#decision"

    at: int
    trial: str
    verdict: str
    decision_key: str = ""
    decision_id: str = ""
    candidate: str | None = None
    judge_version: str | None = None
    spent_usd: float | None = None
    reasons: tuple[str, ...] = ()
    spreads: Measured | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True)
class TrialFailed(LedgerRecord):
    """A trial that ended without a decision; ``jobs`` are all that it paid for.

    ``spent_usd`` is what they cost, None where that is not known.
    """

    kind = "failed"
    key_form = "trial#{trial}#failed"

    at: int
    trial: str = ""
    execution: str = ""
    error: str = ""
    reason: str = ""
    stopped_jobs: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    spent_usd: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True)
class ApprovalRequested(LedgerRecord):
    """The question whether a promotion may take effect."""

    kind = "approval_asked"
    key_form = "approval#{trial}"

    at: int
    until: int
    trial: str
    execution: str = ""
    decision_id: str | None = None
    decision_key: str = ""
    candidate: str | None = None


@dataclass(frozen=True)
class ApprovalToken(LedgerRecord):
    """A state machine that waits for the answer."""

    kind = "approval_token"
    key_form = "approval#{trial}#token#{number:03d}"

    at: int
    trial: str
    number: int
    token: str


@dataclass(frozen=True)
class ApprovalAnswer(LedgerRecord):
    """The answer; ``flag_version`` is the flag's version that its author knows of."""

    kind = "approval"
    key_form = "approval#{trial}#answer"

    at: int
    trial: str
    by: str
    approved: bool
    reason: str = ""
    flag_version: int | None = None

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry; nothing but ``true`` approves."""
        return super()._read({**entry, "approved": entry["approved"] is True})


@dataclass(frozen=True)
class GivenAnswer:
    """What a question for approval was answered, by whom, when (epoch seconds) and why."""

    approved: bool
    by: str
    at: int
    reason: str


@dataclass(frozen=True)
class FlagOutcome:
    """The outcome for the flag after a decision, kept beside it.

    ``overrode`` and ``held_by`` are the manual change that was replaced or respected, ``approval``
    the answer, None without a question.
    """

    changed: bool = False
    enabled: bool = False
    state: str = ""
    approved: bool = True
    overrode: Author | None = None
    held_by: Author | None = None
    approval: GivenAnswer | None = None

    @property
    def was_held(self) -> bool:
        """Whether a person kept the flag from changing as the decision says."""
        return not self.approved or self.held_by is not None

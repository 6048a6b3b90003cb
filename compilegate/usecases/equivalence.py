"""The equivalence check's table as a deployment relies on it: less what an alarm revoked.

The deployment's part of the ledger keeps what was revoked, by the decision that did, and restored.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.flag_change import Override
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.probation import REVOKED
from compilegate.domain.ledger_keys import DEPLOYMENT, EQUIVALENCE_ENTRIES
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.records.ledger import ClassRestored, ClassRevoked
from compilegate.domain.records.production import Review
from compilegate.domain.utc import iso
from compilegate.facts import load_facts
from compilegate.ports import Ledger, Services

logger = logging.getLogger("compilegate")
UNREADABLE = "unknown, because a revocation cannot be read"


def table_of(ledger: Ledger, instance_type: str) -> dict[str, Any] | None:
    """The section ``equivalence`` of a job's evidence; None where nothing is known of the check."""
    shipped = load_facts()
    table = replace(shipped.faults, device=shipped.device_of(instance_type))
    try:
        revoked = {one.job_class: iso(one.at) for one in reversed(revoked_classes(ledger))}
    except UnreadableRecordError:  # any class may be the one that it revokes
        logger.exception("the equivalence check promotes no candidate")
        revoked = {one.words: UNREADABLE for one in table.classes}
    classes = tuple(replace(one, revoked_at=revoked.get(one.words)) for one in table.classes)
    return write(replace(table, classes=classes)) if table.bounds else None


def revoked_classes(ledger: Ledger) -> list[ClassRevoked]:
    """What revokes a class today, oldest first.

    Raises UnreadableRecordError where one cannot be read. A damaged restoration counts for nothing.
    """
    history = ledger.history(DEPLOYMENT, EQUIVALENCE_ENTRIES)
    for record in history.damaged:
        if record.kind == ClassRevoked.kind:
            raise record.error
    restored = {one.decision_id for one in history.records if isinstance(one, ClassRestored)}
    revoked = (one for one in history.records if isinstance(one, ClassRevoked))
    return [one for one in revoked if one.decision_id not in restored]


def revoke_class(workload: str, review: Review, services: Services) -> None:
    """Keep that the review's decision refutes the check for its arm's class, where it does.

    Repeating it is safe: what a person has restored since stays restored.
    """
    reason = review.reason(REVOKED)
    if reason is None:
        return
    evidence = read_evidence(json.loads(services.store.get(str(review.evidence_key))))
    # An arm that passed has checks, and those of its trial are of one class.
    checks = filter(None, (run.check for run in evidence.promoted_arm.runs))
    job_class = next(filter(None, (one.job_class for one in checks))).words
    record = ClassRevoked(review.at, str(review.decision_id), workload, job_class, reason)
    services.ledger.append(DEPLOYMENT, record)


def restore_classes(
    revoked: Iterable[ClassRevoked], override: Override, services: Services
) -> None:
    """A person says that these alarms had another cause."""
    by, reason, now = f"{HUMAN}{override.who}", override.reason.strip(), services.clock.now()
    for one in revoked:
        restored = ClassRestored(now, one.decision_id, by, reason)
        services.ledger.append(DEPLOYMENT, restored)

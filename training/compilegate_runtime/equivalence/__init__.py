"""The equivalence check: whether compiled training is eager training up to rounding.

``examine`` measures; what the figures mean is decided by the judge, by bounds that a catalogue of
faults and of sound compilations gave (compilegate/domain/judging/equivalence.py). Every part is a
ratio of errors against double precision (compare.py) in the job's own arithmetic or in single
precision (arithmetic.py). What could not be looked at is named (unseen.py), never left out.
"""

import hashlib
from pathlib import Path

from compilegate_runtime.equivalence import document
from compilegate_runtime.equivalence.parts import STEPS
from compilegate_runtime.equivalence.subject import Subject
from compilegate_runtime.equivalence.unseen import Clock, reason_of

__all__ = ["STEPS", "Subject", "digest", "examine"]


def examine(subject, *, weights="first", limit_seconds=180.0, say=None):
    """The document of figures of one check; no error and no change of the subject comes of it.

    ``subject`` is a Subject or a function that makes one.
    ``weights`` says which ones the model has, ``first`` or ``last`` of its training;
    ``say(part)`` is called as each part begins.
    """
    clock = Clock(limit_seconds)
    made = document.Document(digest(), weights, limit_seconds)
    try:
        import torch  # noqa: PLC0415 - the segments of other arms do without

        from compilegate_runtime.equivalence.examination import examined  # noqa: PLC0415

        subject = subject() if callable(subject) else subject
        examined(torch, subject, clock, made, say or (lambda _: None))
    except Exception as error:  # noqa: BLE001 - no check may fail a run
        made.leave_out("gradients", None, reason_of(error))
    return made.finished(clock.seconds())


def digest():
    """What tells this check from every other: 12 digits of SHA-256 over its sources."""
    sources = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        sources.update(path.name.encode() + b"\0" + path.read_bytes())
    return sources.hexdigest()[:12]

"""What TRAIN and a pipeline of a team's own do alike where they follow a flag.

Apart from the rest, because the flags wheel carries it to pipelines and training jobs.
"""

from __future__ import annotations

import hashlib

# During a probation every so many runs are one of the baseline: two of twelve. Without them a
# drift of the data would be blamed on the candidate, or hide its fall; chosen by simulation
# (benchmarks/decision/probation.md, benchmarks/decision/probation.py).
REFRESH_EVERY = 6
STALE = "stale"
# States of a flag that is on in which the judge compares both arms.
WATCHED = ("probation", STALE)
PERMANENT = "permanent"
# Values of a model's release tag while its trial runs, and after it.
HOLD, RELEASED, REJECTED = "hold", "released", "rejected"


def chance(*words: str) -> float:
    """A number from 0 up to 1 that looks drawn at random, and is the same for the same words."""
    digest = hashlib.sha256("/".join(words).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48

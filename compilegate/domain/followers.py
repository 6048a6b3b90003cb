"""What TRAIN and a pipeline of a team's own do alike where they follow a flag.

Apart from the rest, because the flags wheel carries it to pipelines and training jobs.
"""

from __future__ import annotations

# During a probation every so many runs are one of the baseline: two of twelve. Without them a
# drift of the data would be blamed on the candidate, or hide its fall; chosen by simulation
# (benchmarks/decision/README.md, benchmarks/decision/probation.py).
REFRESH_EVERY = 6
STALE = "stale"
# States of a flag that is on in which the judge compares both arms.
WATCHED = ("probation", STALE)
# Values of a model's release tag while its trial runs, and after it.
HOLD, RELEASED, REJECTED = "hold", "released", "rejected"

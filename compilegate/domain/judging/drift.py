"""How much earlier runs of the baseline say of where it stands today.

Earlier runs may have drifted: their mean is taken to be off by a normal error of sd kappa x
sigma. So many of them, n_0, are worth

    w = 1 / (1/n_0 + kappa^2)    runs of today, never more than 1/kappa^2 = 4

the location commensurate prior of Hobbs, Carlin, Mandrekar and Sargent (2011, Biometrics
67:1047) with a fixed precision 1/(kappa sigma)^2. Where today's runs contradict them beyond
what kappa allows, they are set aside. Wall clocks and the review of production use this; the
quality gate does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compilegate.domain.arithmetic import mean

# Drift that is allowed for, in standard deviations.
KAPPA = 0.5
# Earlier runs count as drifted when they and today's differ by more than this many standard
# errors (16 % of undrifted ones do: they merely count for less).
CONFLICT = 1.4


def history_weight(n_history: int, kappa: float = KAPPA) -> float:
    """w: how many runs of today ``n_history`` earlier ones are worth."""
    return 1 / (1 / n_history + kappa**2) if n_history else 0.0


def allowed_drift(history: Sequence[float], today: Sequence[float], variance: float) -> float:
    """The drift that is allowed for, or the one that today's runs show if that is larger."""
    if not history or not today or variance <= 0:
        return KAPPA
    shift = (mean(today) - mean(history)) ** 2 / variance
    expected = 1 / len(history) + 1 / len(today) + KAPPA**2
    return KAPPA if shift <= CONFLICT**2 * expected else math.sqrt(shift)

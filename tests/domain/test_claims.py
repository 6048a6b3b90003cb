"""What figures allow to be said: direction by the interval, quality by reasons, money if proven."""

from __future__ import annotations

import pytest

from compilegate.domain.claims import (
    HELD,
    UNCONFIRMED,
    WORSE,
    MoneyClaim,
    QualityClaim,
    SpeedClaim,
    money_claim,
    quality_claim,
    speed_claim,
)
from compilegate.domain.decision import Verdict
from compilegate.domain.reasons import registry

GAIN, EITHER, LOSS = (1.0, 2.0), (-1.0, 2.0), (-2.0, -1.0)
OPEN_VERDICTS = (Verdict.INCONCLUSIVE, Verdict.CONTINUE)


@pytest.mark.parametrize(
    ("interval", "claim"),
    [
        ((1.01, 1.2), SpeedClaim.FASTER), ((0.8, 0.99), SpeedClaim.SLOWER),
        ((0.9, 1.1), SpeedClaim.OPEN), ((1.0, 1.2), SpeedClaim.OPEN),
        ((0.9, 1.0), SpeedClaim.OPEN), (None, SpeedClaim.OPEN),
    ],
)  # fmt: skip
def test_a_direction_needs_an_interval_that_excludes_equal_time(interval, claim):
    assert speed_claim(interval) == claim


@pytest.mark.parametrize(
    ("codes", "claim"),
    [
        ({"quality_held", "full_run_disagrees"}, QualityClaim.HELD),
        ({"probation_passed"}, QualityClaim.HELD),
        ({"quality_worse", "speedup_proven"}, QualityClaim.WORSE),
        ({"quality_regressed"}, QualityClaim.WORSE),
        ({"quality_inconclusive"}, QualityClaim.OPEN), (set(), QualityClaim.OPEN),
    ],
)  # fmt: skip
def test_quality_is_what_the_reason_says(codes, claim):
    assert quality_claim(codes) == claim


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("codes", [set(), *({code} for code in sorted(UNCONFIRMED))])
@pytest.mark.parametrize("interval", [GAIN, EITHER, None])
@pytest.mark.parametrize("full_runs", [0, 3, None])
def test_a_saving_is_stated_only_where_full_runs_confirm_it(
    verdict,
    codes,
    interval,
    full_runs,
):
    claim = money_claim(verdict, codes, full_runs=full_runs, interval=interval)
    on = verdict in (Verdict.PROMOTE, Verdict.PERMANENT)
    confirmed = full_runs and not codes and interval == GAIN and verdict in OPEN_VERDICTS

    assert (claim is MoneyClaim.SAVES) == (on and interval != EITHER)
    assert (claim is MoneyClaim.IF_ON) == bool(confirmed)
    assert claim is not MoneyClaim.COSTS


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_certain_loss_is_always_stated(verdict):
    claim = money_claim(verdict, (), full_runs=0, interval=LOSS)

    assert (claim, claim.has_amount) == (MoneyClaim.COSTS, True)


def test_every_code_that_a_claim_rests_on_is_registered():
    assert set(registry()) >= HELD | WORSE | UNCONFIRMED

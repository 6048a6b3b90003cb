"""Whether production still trains what a promotion was proven on (domain/production/fingerprint).

What a job is asked for is compared before a run and after it, what the job itself recorded only
afterwards. A job that a team starts need not be the registered one: its record tells.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from compilegate.domain.decision import Reason
from compilegate.domain.errors import CompilegateError, InvalidInputError, NotFoundError
from compilegate.domain.flag import Flag
from compilegate.domain.production.arm import baseline_arm, with_overrides
from compilegate.domain.production.consequence import STALE
from compilegate.domain.production.fingerprint import (
    Fingerprint,
    planned,
    recorded,
    stale_reasons,
    told_fields,
    unknown_fields,
)
from compilegate.domain.production.next_arm import FlagReading
from compilegate.domain.production.promotion import Promotion, standing_promotion
from compilegate.domain.production.runs import ProductionRun
from compilegate.domain.workload.model import KEEP
from compilegate.ports import Services
from compilegate.usecases.change_flag import flag_history
from compilegate.usecases.known_facts import known_facts
from compilegate.usecases.trial import Spec, Trial, load_record, load_spec

# What the registered job is asked for, beside the arms whose jobs have recorded something.
ASKED = "asked"
logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class Comparison:
    """What differs, in words; ``unknown`` are fields that one side does not tell.

    ``differs`` and ``same`` are the fields that both sides tell, each with what tells of it: what
    is asked for, or the arm whose job recorded it.
    """

    changed: tuple[Reason, ...]
    unknown: tuple[str, ...]
    differs: frozenset[str]
    same: frozenset[str]


def compare_with_proven(
    promotion: Promotion,
    workload: str,
    spec: Spec | None,
    services: Services,
    *,
    evidence: Mapping[str, Any] | None = None,
    runs: Sequence[ProductionRun] = (),
) -> Comparison:
    """Production now against the trial.

    ``spec`` is what is registered, None where nothing is; ``evidence`` is the trial's and ``runs``
    the jobs of today whose records are held against it. Raises NotFoundError where the trial's
    plan is gone.
    """
    asked = (_proven(promotion, workload, services), _asked(promotion, spec, services))
    pairs = [(ASKED, *asked)]
    arms = {arm["name"]: arm for arm in evidence["arms"]} if evidence else {}
    pairs += [
        (run.arm, recorded(arms[run.arm]["runs"]), recorded([run.result]))
        for run in runs
        if run.arm in arms
    ]
    changed = [reason for _, was, now in pairs for reason in stale_reasons(was, now)]
    unknown = [field for _, was, now in pairs for field in unknown_fields(was, now, tuple(was))]
    compared = [
        (f"{side} {field}", was[field] == now[field])
        for side, was, now in pairs
        for field in told_fields(was, now)
    ]
    differs = frozenset(field for field, equal in compared if not equal)
    return Comparison(
        changed=tuple(dict.fromkeys(changed)),
        unknown=tuple(dict.fromkeys(unknown)),
        differs=differs,
        same=frozenset(field for field, _ in compared) - differs,
    )


def before_the_run(
    reading: FlagReading, workload: str, spec: Spec, services: Services
) -> FlagReading:
    """The flag as a run that begins may follow it: off where what it would train is unproven.

    The flag itself is changed after the run (watch_production.py), which also tells. What a person
    has turned on is followed, whatever it was measured on. Whatever goes wrong here is for the
    watch to say, never a reason not to train.
    """
    if reading.problem is not None or not reading.flag.enabled:
        return reading
    if spec.workload.policy.on_stale == KEEP:
        return reading
    try:
        promotion = standing_promotion(flag_history(workload, services))
        if promotion is None or promotion.by_human or promotion.flag != reading.flag:
            return reading
        changed = compare_with_proven(promotion, workload, spec, services).changed
    except (CompilegateError, KeyError, TypeError, ValueError):
        logger.exception("what %s trains was not compared with what was proven", workload)
        return reading
    if not changed:
        return reading
    told = "; ".join(reason.message for reason in changed)
    off = Flag(enabled=False, state=STALE, candidate=promotion.candidate)
    logger.warning("%s trains the baseline, its promotion is stale: %s", workload, told)
    return replace(reading, flag=off, told=told)


def _proven(promotion: Promotion, workload: str, services: Services) -> Fingerprint:
    trial = Trial(workload, promotion.trial, "")
    plan = load_record(services.store, trial, "plan")
    spec = load_spec(services.store, replace(trial, spec_key=str(plan["spec_key"])))
    arm = next(arm for arm in plan["arms"] if arm["name"] == promotion.candidate)
    return planned(arm, spec.workload.training, spec.workload.framework, spec.code)


def _asked(promotion: Promotion, spec: Spec | None, services: Services) -> Fingerprint:
    """What the registered job would be asked for with the flag on; nothing where that is unknown.

    A job that cannot be built is for the run itself to tell.
    """
    if spec is None:
        return {}
    workload, settings = spec.workload, services.settings
    facts = known_facts(workload, settings)
    try:
        baseline = baseline_arm(workload, facts, region=settings.region)
        arm = with_overrides(baseline, promotion.candidate, promotion.flag.overrides, facts)
    except (InvalidInputError, NotFoundError):
        return {}
    return planned(asdict(arm), workload.training, workload.framework, spec.code)

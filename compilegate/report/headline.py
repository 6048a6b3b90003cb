"""The headline: what to do, and the figure or the reason that says so, on one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compilegate.domain.decision import Verdict
from compilegate.report.case import Case
from compilegate.report.formats import number, percent, ratio, significant

# Characters that fit on one line of the page on a desktop screen.
LONGEST = 70
CANNOT_PAY = {"run_too_short", "saving_below_trial_cost"}
# {but} is "1.36x faster, but " where the speed is known, else nothing.
STAY_OFF = {
    "quality_worse": "{but}{metric} gets worse beyond chance",
    "candidate_crashed": "the candidate's training crashed or diverged",
    "speedup_below_promote": "{speed}, real but below the {promote} asked for",
    "speedup_too_small": "{speed}, less than the {reject} worth having",
    "slower": "the candidate is {speed}",
}
INCONCLUSIVE = {
    "baseline_failed": "the baseline itself failed: nothing to compare with",
    "cooling_down": "production was reverted not long ago",
    "full_run_disagrees": "short blocks were faster, whole jobs were not",
    "full_run_unmeasured": "{but}a whole job's time is missing",
    "price_unknown": "the trial's cost cannot be estimated",
    "quality_inconclusive": "{but}{metric} is not shown to hold",
    "quality_unsettled": "{but}full runs that would show {metric} are missing",
    "saving_below_trial_cost": "{but}a proof would cost more than it saves",
    "speed_inconclusive": "the speed-up varies too much from block to block",
    "faster_not_clearly": "{speed}, yet not clearly by the {promote} asked for",
    "no_steady_state": "no block was long enough to measure a speed-up",
    "too_many_rounds": "{but}not settled in the rounds allowed",
    "trial_over_budget": "{but}the cost cap was reached",
    "planned_over_budget": "the trial would cost more than its cap",
    "trial_over_time": "{but}the trial ran out of time",
    "underpowered": "{metric} varies too much to prove a margin of {margin}",
}
REVERT = {
    "candidate_crashed": "production runs crashed under the candidate",
    "quality_regressed": "{metric} got worse in production",
    "speedup_gone": "the speed-up is gone in production",
}
INVALID = {
    "treatment_not_applied": "the change was asked for but never applied",
    "arms_differ": "the arms differed in more than the change itself",
    "unequal_initial_loss": "the arms did not start from the same model and data",
    "unequal_initial_weights": "the arms did not start from the same weights",
    "evidence_invalid": "what the jobs recorded cannot be read",
    "runs_repeated": "some runs are copies of one another",
}
ON_PROBATION = {
    "alarm": "an alarm is being checked",
    "probation_goes_on": "no alarm so far in production",
}


def headline(case: Case, *, brief: bool = False) -> str:
    """One line; how sure and how much it is worth stand below it.

    ``brief`` leaves out the speed where something else decided.
    """
    if case.verdict is None:
        return "The trial failed: nothing was decided, the flag was left as it was"
    return HEADLINES[case.verdict](case, brief)


def changes_compiler(case: Case) -> bool:
    """Whether the candidate is about a compiler at all, as far as the records say."""
    for source in (case.evidence, case.plan):
        for arm in source.get("arms") or ():
            if arm.get("name") == case.candidate and arm.get("overrides"):
                return bool(arm["overrides"].get("compiler", "none") != "none")
    return True


def _change(case: Case) -> str:
    return "Turn the compiler on" if changes_compiler(case) else f"Switch to {case.candidate}"


def _speed(case: Case) -> str:
    if case.speedup is None:
        return "speed-up unknown"
    return (
        f"{ratio(case.speedup)} faster" if case.speedup >= 1 else f"slower, {ratio(case.speedup)}"
    )


def _gain(case: Case) -> str:
    """What a promotion brings: time, or money where the clusters' prices differ."""
    if case.speedup is None or case.price_ratio == 1:
        return _speed(case)
    share = 1 - case.price_ratio / case.speedup
    return f"{percent(round(share, 2))} cheaper a run at {ratio(case.speedup)} the speed"


def _because(case: Case, opening: str, table: Mapping[str, str], *, brief: bool) -> str:
    """The opening and the reason that decided: the first, in its own words if it is unknown."""
    if not case.reasons:
        return f"{opening}: no reason was recorded"
    words = table.get(_kind(case, case.reasons[0]["code"]))
    if words is None:
        return _cut(f"{opening}: {case.reasons[0]['message'].rstrip('.')}")
    speed, margin = _speed(case), number(case.quality.get("margin"))
    if margin is None:
        margin = number((case.evidence.get("quality") or {}).get("margin"))
    text = words.format(
        speed=speed,
        but="" if case.speedup is None or brief else f"{speed}, but ",
        metric=case.metric,
        margin="the size set" if margin is None else significant(margin),
        promote=_threshold(case, "promote_speedup"),
        reject=_threshold(case, "reject_speedup"),
    )
    return f"{opening}: {text}"


def _kind(case: Case, code: str) -> str:
    """The code, told apart where the same one stands for different endings."""
    if code == "speedup_too_small" and (case.speedup or 1) < 1:
        return "slower"
    if code == "trial_over_budget" and case.decision.get("stage") == "plan":
        return "planned_over_budget"
    if code != "speed_inconclusive":
        return code
    if case.speedup is None:
        return "no_steady_state"
    lower, reject = number(case.speed.get("lower_bound")), case.bar("reject_speedup")
    proven = lower is not None and reject is not None and lower > reject
    return "faster_not_clearly" if proven else code


def _cut(text: str) -> str:
    """At most one line, ended between words."""
    flat = " ".join(text.split())
    if len(flat) <= LONGEST:
        return flat
    return flat[: LONGEST - 2].rpartition(" ")[0].rstrip(" ,.:;(") + "..."


def _threshold(case: Case, key: str) -> str:
    value = case.bar(key)
    return "speed-up" if value is None else ratio(value)


def _ineligible(case: Case) -> str:
    if case.codes and case.codes <= CANNOT_PAY:
        return "Leave it off: a compiler cannot earn back here what trying it costs"
    return "Leave it off: no compiler can help this job as it stands"


def _inconclusive(case: Case, brief: bool) -> str:
    arms = case.evidence.get("arms") or ()
    unstarted = bool(arms) and not any((arm or {}).get("runs") for arm in arms)
    refused = case.decision.get("stage") == "plan" or unstarted
    opening = "Not tried" if refused else "Not proven"
    return _because(case, opening, INCONCLUSIVE, brief=brief)


def _continue(case: Case, brief: bool) -> str:
    if case.on_probation:
        return _because(case, "On probation", ON_PROBATION, brief=brief)
    so_far = "nothing measured yet" if case.speedup is None else f"{_speed(case)} so far"
    return f"Not settled yet: {so_far}"


HEADLINES: Mapping[Verdict, Callable[[Case, bool], str]] = {
    Verdict.PROMOTE: lambda case, _: f"{_change(case)}: {_gain(case)}, quality held",
    Verdict.PERMANENT: lambda case, _: f"{_change(case)} for good: probation passed",
    Verdict.REVERT: lambda case, brief: _because(case, "Turned back off", REVERT, brief=brief),
    Verdict.INELIGIBLE: lambda case, _: _ineligible(case),
    Verdict.CONTINUE: _continue,
    Verdict.STAY_OFF: lambda case, brief: _because(case, "Leave it off", STAY_OFF, brief=brief),
    Verdict.INCONCLUSIVE: _inconclusive,
    Verdict.INVALID: lambda case, brief: _because(
        case, "No valid comparison", INVALID, brief=brief
    ),
}

"""The headline: what to do, and the figure or the reason that says so, on one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compilegate.domain.decision import Verdict
from compilegate.domain.formats import number, percent, ratio, significant
from compilegate.domain.reasons.registry import headline as reason_headline
from compilegate.report.trial_report import TrialReport

# Characters that fit on one line of the page on a desktop screen.
LONGEST = 70
CANNOT_PAY = {"run_too_short", "saving_below_trial_cost"}


def headline(trial: TrialReport, *, brief: bool = False) -> str:
    """One line; how sure and how much it is worth stand below it.

    ``brief`` leaves out the speed where something else decided.
    """
    if trial.verdict is None:
        return "The trial failed: nothing was decided, the flag was left as it was"
    return HEADLINES[trial.verdict](trial, brief)


def changes_compiler(trial: TrialReport) -> bool:
    """Whether the candidate is about a compiler at all, as far as the records say."""
    for source in (trial.evidence, trial.plan):
        for arm in source.get("arms") or ():
            if arm.get("name") == trial.candidate and arm.get("overrides"):
                return bool(arm["overrides"].get("compiler", "none") != "none")
    return True


def _change(trial: TrialReport) -> str:
    return "Turn the compiler on" if changes_compiler(trial) else f"Switch to {trial.candidate}"


def _speed(trial: TrialReport) -> str:
    if trial.speedup is None:
        return "speed-up unknown"
    return (
        f"{ratio(trial.speedup)} faster"
        if trial.speedup >= 1
        else f"slower, {ratio(trial.speedup)}"
    )


def _gain(trial: TrialReport) -> str:
    """What a promotion brings: time, or money where the clusters' prices differ."""
    if trial.speedup is None or trial.price_ratio == 1:
        return _speed(trial)
    share = 1 - trial.price_ratio / trial.speedup
    return f"{percent(round(share, 2))} cheaper a run at {ratio(trial.speedup)} the speed"


def _because(trial: TrialReport, opening: str, *, brief: bool) -> str:
    """The opening and the reason that decided: the first, in its own words if it is unknown."""
    if not trial.reasons:
        return f"{opening}: no reason was recorded"
    first = trial.reasons[0]
    template = reason_headline(first.code, _variant(trial, first.code))
    if not template:
        return _cut(f"{opening}: {first.message.rstrip('.')}")
    speed, margin = _speed(trial), number(trial.quality.get("margin"))
    if margin is None:
        margin = number((trial.evidence.get("quality") or {}).get("margin"))
    text = template.format(
        speed=speed,
        but="" if trial.speedup is None or brief else f"{speed}, but ",
        metric=trial.metric,
        margin="the size set" if margin is None else significant(margin),
        promote=_threshold(trial, "promote_speedup"),
        reject=_threshold(trial, "reject_speedup"),
    )
    return f"{opening}: {text}"


def _variant(trial: TrialReport, code: str) -> str | None:
    """The situation, where one code stands for different endings."""
    if code == "speedup_too_small" and (trial.speedup or 1) < 1:
        return "slower"
    if code == "trial_over_budget" and trial.decision.get("stage") == "plan":
        return "plan"
    if code == "candidate_crashed" and trial.on_probation:
        return "probation"
    if code != "speed_inconclusive":
        return None
    if trial.speedup is None:
        return "no_steady_state"
    lower, reject = number(trial.speed.get("lower_bound")), trial.bar("reject_speedup")
    proven = lower is not None and reject is not None and lower > reject
    return "faster_not_clearly" if proven else None


def _cut(text: str) -> str:
    """At most one line, ended between words."""
    flat = " ".join(text.split())
    if len(flat) <= LONGEST:
        return flat
    return flat[: LONGEST - 2].rpartition(" ")[0].rstrip(" ,.:;(") + "..."


def _threshold(trial: TrialReport, key: str) -> str:
    value = trial.bar(key)
    return "speed-up" if value is None else ratio(value)


def _ineligible(trial: TrialReport) -> str:
    if trial.codes and trial.codes <= CANNOT_PAY:
        return "Leave it off: a compiler cannot earn back here what trying it costs"
    return "Leave it off: no compiler can help this job as it stands"


def _inconclusive(trial: TrialReport, brief: bool) -> str:
    arms = trial.evidence.get("arms") or ()
    unstarted = bool(arms) and not any((arm or {}).get("runs") for arm in arms)
    refused = trial.decision.get("stage") == "plan" or unstarted
    opening = "Not tried" if refused else "Not proven"
    return _because(trial, opening, brief=brief)


def _continue(trial: TrialReport, brief: bool) -> str:
    if trial.on_probation:
        return _because(trial, "On probation", brief=brief)
    so_far = "nothing measured yet" if trial.speedup is None else f"{_speed(trial)} so far"
    return f"Not settled yet: {so_far}"


HEADLINES: Mapping[Verdict, Callable[[TrialReport, bool], str]] = {
    Verdict.PROMOTE: lambda trial, _: f"{_change(trial)}: {_gain(trial)}, quality held",
    Verdict.PERMANENT: lambda trial, _: f"{_change(trial)} for good: probation passed",
    Verdict.REVERT: lambda trial, brief: _because(trial, "Turned back off", brief=brief),
    Verdict.INELIGIBLE: lambda trial, _: _ineligible(trial),
    Verdict.CONTINUE: _continue,
    Verdict.STAY_OFF: lambda trial, brief: _because(trial, "Leave it off", brief=brief),
    Verdict.INCONCLUSIVE: _inconclusive,
    Verdict.INVALID: lambda trial, brief: _because(trial, "No valid comparison", brief=brief),
}

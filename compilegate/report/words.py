"""The verdict in words an engineering manager follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compilegate.domain.decision import Verdict
from compilegate.report.case import Case
from compilegate.report.charts.quality import better_or_worse
from compilegate.report.formats import interval, money, number, plural, ratio, significant

LABELS = {
    Verdict.PROMOTE: "Turn it on",
    Verdict.PERMANENT: "On for good",
    Verdict.STAY_OFF: "Leave it off",
    Verdict.INELIGIBLE: "Not eligible",
    Verdict.INCONCLUSIVE: "Not proven",
    Verdict.CONTINUE: "Not settled yet",
    Verdict.REVERT: "Turned back off",
    Verdict.INVALID: "No valid comparison",
}
TONES = {
    Verdict.PROMOTE: "good",
    Verdict.PERMANENT: "good",
    Verdict.STAY_OFF: "off",
    Verdict.INELIGIBLE: "off",
    Verdict.INCONCLUSIVE: "open",
    Verdict.CONTINUE: "open",
    Verdict.REVERT: "bad",
    Verdict.INVALID: "bad",
}
CANNOT_PAY = {"run_too_short", "saving_below_trial_cost"}
FLAG_WORDS = {
    "enable": "The flag was switched on",
    "disable": "The flag is off",
    "keep": "The flag was left as it was",
}
STAY_OFF = {
    "quality_worse": "{speed}, but {metric} gets worse beyond chance",
    "candidate_crashed": "the candidate's training crashed or diverged",
    "speedup_below_promote": "{speed}, real but below the {promote} asked for",
    "speedup_too_small": "{speed}, less than the {reject} worth having",
}
INCONCLUSIVE = {
    "trial_over_budget": "the trial would cost more than its cap allows",
    "price_unknown": "the trial's cost cannot be estimated",
    "baseline_failed": "the baseline itself failed, so there is nothing to compare with",
    "full_run_disagrees": "short blocks were {speed}, but whole jobs were not",
    "full_run_unmeasured": "{speed} in short blocks, but a whole job's time is missing",
    "quality_inconclusive": "{speed}, but these runs cannot show whether {metric} is held",
    "quality_unsettled": "{speed}, but full runs that would show {metric} are missing",
    "speed_inconclusive": "the speed-up varies too much from block to block",
}
INVALID = {
    "treatment_not_applied": "the change was asked for but never applied",
    "arms_differ": "the arms differed in more than the change itself",
    "unequal_initial_loss": "the arms did not start from the same model and data",
    "evidence_invalid": "what the jobs recorded cannot be read",
}


def label(case: Case) -> str:
    """The verdict as two or three words."""
    return "The trial failed" if case.verdict is None else LABELS[case.verdict]


def tone(case: Case) -> str:
    """good, off, open or bad."""
    return "bad" if case.verdict is None else TONES[case.verdict]


def headline(case: Case) -> str:
    """One line: what to do, and the figure that says so, with its interval."""
    return _headline(case, _speed_words(case) + _interval_words(case))


def brief_headline(case: Case) -> str:
    """The headline without the interval, for a mail subject."""
    return _headline(case, _speed_words(case))


def _headline(case: Case, speed: str) -> str:
    if case.verdict is None:
        return "The trial failed: nothing was decided, the flag was left as it was"
    return HEADLINES[case.verdict](case, speed)


def lede(case: Case) -> list[str]:
    """A few sentences under the headline, each left out where its figures are unknown."""
    if case.verdict is None:
        failure = str(case.source["context"].get("failure"))
        return [failure] if case.trial_usd is None else [failure, _spent(case.trial_usd)]
    if case.verdict is Verdict.INELIGIBLE:
        return ["Nothing was started and nothing was spent.", flag_sentence(case)]
    sentences = [_speed_sentence(case), _quality_sentence(case), _saving_sentence(case)]
    return [sentence for sentence in sentences if sentence] + [flag_sentence(case)]


def flag_sentence(case: Case) -> str:
    """What happens to the flag."""
    flag = case.decision.get("flag") or {}
    words = FLAG_WORDS.get(str(flag.get("action")), "What happened to the flag is not recorded")
    return f"{words} ({flag['name']})." if flag.get("name") else f"{words}."


def changes_compiler(case: Case) -> bool:
    """Whether the candidate is about a compiler at all, as far as the records say."""
    for source in (case.evidence, case.plan):
        for arm in source.get("arms") or ():
            if arm.get("name") == case.candidate and arm.get("overrides"):
                return bool(arm["overrides"].get("compiler", "none") != "none")
    return True


def _spent(usd: float) -> str:
    return f"Until then the trial had cost {money(usd)}."


def _change(case: Case) -> str:
    return "Turn the compiler on" if changes_compiler(case) else f"Switch to {case.candidate}"


def _speed_words(case: Case) -> str:
    if case.speedup is None:
        return "speed-up unknown"
    return (
        f"{ratio(case.speedup)} faster" if case.speedup >= 1 else f"slower, {ratio(case.speedup)}"
    )


def _interval_words(case: Case) -> str:
    if case.speedup_interval is None:
        return ""
    confidence = number(case.speed.get("confidence"))
    level = "" if confidence is None else f"{significant(100 * confidence)} % "
    return f" ({level}interval {interval(case.speedup_interval, lambda x: f'{x:.2f}')})"


def _by_code(case: Case, table: dict[str, str], speed: str) -> str:
    """The first reason that the table knows; else the first reason as it stands."""
    # The judge puts the reasons of the arm that decided first, so their order is their weight.
    for reason in case.reasons:
        words = table.get(reason["code"])
        if reason["code"] == "speedup_too_small" and (case.speedup or 1) < 1:
            words = "the candidate is {speed}"
        if words is not None:
            return words.format(
                speed=speed,
                metric=case.metric,
                promote=_threshold(case, "promote_speedup"),
                reject=_threshold(case, "reject_speedup"),
            )
    message = case.reasons[0]["message"] if case.reasons else ""
    return message.rstrip(".") or "no reason was recorded"


def _threshold(case: Case, key: str) -> str:
    value = number(case.policy.get(key))
    return "speed-up" if value is None else ratio(value)


def _ineligible(case: Case) -> str:
    if case.codes and case.codes <= CANNOT_PAY:
        return "Leave it off: on this job a compiler cannot earn back what trying it costs"
    return "Leave it off: no compiler can help this job as it stands"


def _speed_sentence(case: Case) -> str:
    if case.speedup is None or case.candidate is None:
        return ""
    share = 1 - 1 / case.speedup
    faster = f"{significant(100 * abs(share), 2)} % {'less' if share >= 0 else 'more'} time"
    blocks = number(case.speed.get("blocks"))
    over = f", measured in {plural(blocks, 'block')} back to back" if blocks else ""
    return f"A full production run with “{case.candidate}” takes about {faster}{over}."


def _quality_sentence(case: Case) -> str:
    estimate, margin = number(case.quality.get("estimate")), number(case.quality.get("margin"))
    if estimate is None or margin is None:
        return ""
    text = f"{case.metric} is {better_or_worse(estimate)} on average"
    if "quality_held" in case.codes:
        return f"{text}; a loss of {significant(margin)} or more is ruled out."
    return f"{text}; the margin allowed is {significant(margin)}."


def _saving_sentence(case: Case) -> str:
    per_year = number(case.saving.get("usd_per_year"))
    if per_year is None:
        return ""
    if per_year <= 0:
        return f"It would cost about {money(-per_year)} more per year."
    payback = number(case.saving.get("payback_runs"))
    back = "" if payback is None else f", and the trial is paid back after {plural(payback, 'run')}"
    verb = "saves" if case.verdict in (Verdict.PROMOTE, Verdict.PERMANENT) else "would save"
    return f"That {verb} about {money(per_year)} per year{back}."


HEADLINES: Mapping[Verdict, Callable[[Case, str], str]] = {
    Verdict.PROMOTE: lambda case, speed: f"{_change(case)}: {speed}, quality held",
    Verdict.PERMANENT: lambda case, _: f"{_change(case)} for good: probation passed",
    Verdict.REVERT: lambda *_: "Turned back off: production runs got worse under the candidate",
    Verdict.INELIGIBLE: lambda case, _: _ineligible(case),
    Verdict.CONTINUE: lambda _, speed: f"Not settled yet: {speed} so far",
    Verdict.STAY_OFF: lambda case, speed: f"Leave it off: {_by_code(case, STAY_OFF, speed)}",
    Verdict.INCONCLUSIVE: lambda case, speed: f"Not proven: {_by_code(case, INCONCLUSIVE, speed)}",
    Verdict.INVALID: lambda case, speed: f"No valid comparison: {_by_code(case, INVALID, speed)}",
}

"""The verdict in words: one line that says what to do and why, and a few sentences under it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import (
    ALARM,
    FLAG_STATES,
    NO_AMOUNT,
    VERDICTS,
    Label,
    MoneyClaim,
    SpeedClaim,
)
from compilegate.domain.decision import ControlFigures, FlagAction, Verdict
from compilegate.domain.flag_change import TRAIN
from compilegate.domain.formats import UNKNOWN, percent, significant
from compilegate.domain.reasons import headline as reason_headline
from compilegate.domain.reasons import with_fix
from compilegate.domain.records.flags import HUMAN, Author
from compilegate.domain.records.trials import FlagOutcome, GivenAnswer
from compilegate.report import statements, wording
from compilegate.report.reasons import FAILURES
from compilegate.report.trial_report import TrialReport

say = partial(wording.say, "words")

# Characters that fit on one line of the page on a desktop screen.
LONGEST = 70
MAY_BE_SLOWER = {"speedup_too_small", "full_run_disagrees"}
CANNOT_PAY = {"run_too_short", "saving_below_trial_cost"}
FLAG_WORDS = {
    FlagAction.ENABLE: "The flag was switched on",
    FlagAction.DISABLE: "The flag is off",
    FlagAction.KEEP: "The flag was left as it was",
}


def label(trial: TrialReport) -> Label:
    """The verdict in two or three words, with its tone."""
    if trial.verdict is None:
        return VERDICTS["failed"]
    if trial.verdict is Verdict.CONTINUE and trial.on_probation:
        return ALARM if "alarm" in trial.codes else FLAG_STATES["probation"]
    return VERDICTS[trial.verdict]


def headline(trial: TrialReport, *, brief: bool = False) -> str:
    """What to do, and the figure or the reason that says so.

    ``brief`` leaves out the speed where something else decided.
    """
    match trial.verdict:
        case None:
            return say("failed")
        case Verdict.PROMOTE:
            return say("promote", change=_change(trial), gain=_gain(trial))
        case Verdict.PERMANENT:
            return say("permanent", change=_change(trial))
        case Verdict.INELIGIBLE:
            cannot_pay = trial.codes and trial.codes <= CANNOT_PAY
            stay_off = VERDICTS[Verdict.STAY_OFF].text
            return say("cannot_pay" if cannot_pay else "no_compiler", opening=stay_off)
        case Verdict.CONTINUE if trial.on_probation:
            opening = FLAG_STATES["probation"].text
        case Verdict.CONTINUE:
            speed = statements.faster_or_slower(trial.speed) if trial.speed else None
            return say("so_far", opening=label(trial).text, speed=speed, nothing=speed is None)
        case Verdict.INCONCLUSIVE:
            evidence = trial.evidence
            unstarted = evidence is not None and not any(arm.runs for arm in evidence.arms)
            tried = trial.stage != "plan" and not unstarted
            opening = label(trial).text if tried else "Not tried"
        case _:
            opening = label(trial).text
    return _because(trial, opening, brief=brief)


def _change(trial: TrialReport) -> str:
    """What a promotion changes; a compiler, unless the records name another change."""
    for arms in (trial.evidence.arms if trial.evidence else (), trial.planned_arms):
        for arm in arms:
            if arm.name == trial.candidate and arm.overrides:
                compiles = arm.overrides.get("compiler", "none") != "none"
                return "Turn the compiler on" if compiles else f"Switch to {trial.candidate}"
    return "Turn the compiler on"


def _gain(trial: TrialReport) -> str:
    """What a promotion brings: time, or money where the clusters' prices differ."""
    speed = trial.speed
    if speed is None or trial.price_ratio == 1:
        return statements.faster_or_slower(speed)
    share = round(1 - trial.price_ratio / speed.estimate, 2)
    return say("cheaper_run", share=share, speedup=speed.estimate)


def _because(trial: TrialReport, opening: str, *, brief: bool) -> str:
    """The opening and the reason that decided: the first, in its own words if it is unknown."""
    if not trial.reasons:
        return f"{opening}: no reason was recorded"
    first = trial.reasons[0]
    template = reason_headline(first.code, _variant(trial, first.code))
    if not template:
        return _cut(f"{opening}: {first.message.rstrip('.')}")
    speed = statements.faster_or_slower(trial.speed)
    quality = trial.quality or (trial.evidence and trial.evidence.quality)
    reject, promote = map(ratio, trial.thresholds) if trial.thresholds else ("speed-up",) * 2
    text = template.format(
        speed=speed,
        times=ratio(trial.speed.estimate) if trial.speed else UNKNOWN,
        but="" if trial.speed is None or brief else f"{speed}, but ",
        metric=trial.metric,
        margin=significant(quality.margin) if quality else "the size set",
        promote=promote,
        reject=reject,
    )
    return f"{opening}: {text}"


def _variant(trial: TrialReport, code: str) -> str | None:
    """The situation, where one code stands for different endings."""
    if code in MAY_BE_SLOWER and trial.claims.speed is SpeedClaim.SLOWER:
        return "slower"
    if code == "trial_over_budget" and trial.stage == "plan":
        return "plan"
    if code == "candidate_crashed" and trial.on_probation:
        return "probation"
    if code != "speed_inconclusive":
        return None
    if trial.speed is None:
        return "no_steady_state"
    lower = trial.speed.lower_bound
    proven = lower is not None and trial.thresholds is not None and lower > trial.thresholds[0]
    return "faster_not_clearly" if proven else None


def _cut(text: str) -> str:
    """At most one line, ended between words."""
    flat = " ".join(text.split())
    if len(flat) <= LONGEST:
        return flat
    return flat[: LONGEST - 2].rpartition(" ")[0].rstrip(" ,.:;(") + "..."


def lede(trial: TrialReport) -> list[str]:
    """A few sentences under the headline: of a failure its cause and fix, else the key figures."""
    if trial.verdict is None:
        failure, usd = str(trial.source["context"].get("failure")), trial.trial_usd
        return [failure, *([] if usd is None else [say("spent", usd=usd)])]
    if trial.verdict is Verdict.INELIGIBLE:
        return [say("nothing_spent"), flag_sentence(trial)]
    first = trial.reasons[:1]
    if first and first[0].code in FAILURES:
        return [f"{with_fix(first[0].message, first[0].fix)}.", flag_sentence(trial)]
    sentences = [_speed_sentence(trial), _quality_sentence(trial), _saving_sentence(trial)]
    sentences += note_sentences(trial)
    return [sentence for sentence in sentences if sentence] + [flag_sentence(trial)]


def _speed_sentence(trial: TrialReport) -> str:
    speed, fall = trial.speed, trial.fall
    if speed is None or trial.candidate is None:
        return ""
    takes = f"takes about {_less(1 - 1 / speed.estimate)}"
    if trial.claims.speed is SpeedClaim.OPEN:
        takes = "may take less or more"
    ends, verb = statements.ratio_interval(speed), "measured" if speed.full_runs else "predicted"
    apart = not isinstance(trial.measured, str) and trial.measured.apart
    dearer = trial.price_ratio if trial.price_ratio != 1 else None
    return say(
        "speed", candidate=trial.candidate, takes=takes, estimate=speed.estimate,
        ends=say("ends", level=speed.confidence, ends=ends),
        production=speed.blocks == 0 and not speed.full_runs,
        measured=verb if speed.blocks else None, blocks=speed.blocks,
        where="on nodes of its own" if apart else "back to back",
        full_runs=speed.full_runs if speed.blocks and speed.full_runs else None,
        fall=fall.words if fall and fall.speedup is not None else None, price=dearer,
        cost=dearer and _less(1 - dearer / speed.estimate),
    )  # fmt: skip


def note_sentences(trial: TrialReport) -> list[str]:
    """Remarks about the job, where there are figures of it."""
    return [*trial.remarks] if trial.speed else []


def _less(share: float) -> str:
    return f"{percent(abs(share), 2)} {'less' if share >= 0 else 'more'}"


def _quality_sentence(trial: TrialReport) -> str:
    quality, fall = trial.quality, trial.fall
    if quality is None or quality.estimate is None:
        return ""
    words = statements.quality_words(trial.claims)
    size = statements.delta_of_runs(quality, trial.claims)
    if fall and fall.delta is not None:
        claim = statements.QUALITY_WORDS[trial.claims.quality]
        words = f"{claim}, {fall.words}"
    return say(
        "quality_held" if "quality_held" in trial.own_codes else "quality",
        metric=trial.metric, words=words, size=size, goal=statements.BETTER[quality.goal],
        margin=quality.margin,
    )  # fmt: skip


def _saving_sentence(trial: TrialReport) -> str:
    saving, claim = trial.saving, trial.claims.money
    if saving is None or claim is MoneyClaim.OFF:
        return ""
    per_year = saving.usd_per_year
    if claim is MoneyClaim.COSTS:
        return say("costs_more", usd=-per_year)
    if not claim.has_amount:
        return say("no_saving", why=NO_AMOUNT[claim])
    return say(
        "saving", verb="saves" if claim is MoneyClaim.SAVES else "would save", usd=per_year,
        ends=statements.saving_interval(saving), payback=saving.payback_runs,
    )  # fmt: skip


def flag_sentence(trial: TrialReport) -> str:
    """What happens to the flag, and which manual changes and answers had a part in it."""
    if trial.decision is None:
        return f"{FLAG_WORDS[FlagAction.KEEP]}."
    action = FlagAction.KEEP if trial.flag_was_held else trial.decision.flag_action
    name = trial.decision.flag.name if trial.decision.flag else ""
    sentences = [f"{FLAG_WORDS[action]} ({name})." if name else f"{FLAG_WORDS[action]}."]
    return " ".join([*sentences, *_parts_of_people(trial.flag)] if trial.flag else sentences)


def _parts_of_people(flag: FlagOutcome) -> Iterator[str]:
    answer = flag.approval
    if answer and answer.approved:
        yield say("approved", by=_author(answer), reason=_quoted(answer))
    elif not flag.approved:
        person = answer and answer.by.startswith(HUMAN)
        yield say(
            "not_approved", by=_author(answer) if answer and person else None,
            reason=_quoted(answer) if answer else None, silent=answer is None,
        )  # fmt: skip
    if flag.held_by:
        yield say("held", by=_author(flag.held_by), reason=_quoted(flag.held_by))
    if flag.overrode:
        yield say("overrode", by=_author(flag.overrode), reason=_quoted(flag.overrode))


def _author(change: Author | GivenAnswer) -> str:
    return "the production watch" if change.by == TRAIN else change.by.removeprefix(HUMAN)


def _quoted(change: Author | GivenAnswer) -> str:
    return f"“{change.reason.rstrip('.')}”."


def control_sentences(controls: Sequence[ControlFigures]) -> list[str]:
    """One for each control; controls decide nothing."""
    return [say("control", name=one.name, figures=_control_figures(one)) for one in controls]


def _control_figures(control: ControlFigures) -> str:
    speedup, compiler = control.speedup, control.compiler_speedup
    if speedup is None and control.reason:
        return say("control_unmeasured", reason=control.reason.rstrip("."))
    return say(
        "control_measured", whole=speedup, no_whole=speedup is None,
        alone=compiler, no_alone=compiler is None,
    )  # fmt: skip

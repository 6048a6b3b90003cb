"""The verdict in words: one line that says what to do and why, and a few sentences under it."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import ALARM, FLAG_STATES, VERDICTS, Label, SpeedClaim
from compilegate.domain.decision import ControlFigures, Verdict
from compilegate.domain.flag_change import TRAIN
from compilegate.domain.formats import UNKNOWN, percent, significant
from compilegate.domain.reasons import headline as reason_headline
from compilegate.domain.records.flags import HUMAN, Author
from compilegate.domain.records.trials import GivenAnswer
from compilegate.report import statements
from compilegate.report.reasons import FAILURES
from compilegate.report.text import paragraph, paragraphs
from compilegate.report.trial_report import TrialReport

# Characters that fit on one line of the page on a desktop screen.
LONGEST = 70
MAY_BE_SLOWER = {"speedup_too_small", "full_run_disagrees"}
CANNOT_PAY = {"run_too_short", "saving_below_trial_cost"}


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
    opening = label(trial).text
    if trial.verdict is Verdict.CONTINUE and trial.on_probation:
        opening = FLAG_STATES["probation"].text
    elif trial.verdict is Verdict.INCONCLUSIVE:
        evidence = trial.evidence
        unstarted = evidence is not None and not any(arm.runs for arm in evidence.arms)
        opening = "Not tried" if trial.judged.stage == "plan" or unstarted else opening
    return paragraph(
        "headline", trial=trial, opening=opening, change=_change(trial), gain=_gain(trial),
        cannot_pay=CANNOT_PAY, because=_because(trial, opening, brief=brief),
    )  # fmt: skip


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
    speed = trial.judged.speedup
    if speed is None or trial.price_ratio == 1:
        return statements.faster_or_slower(speed)
    share = percent(round(1 - trial.price_ratio / speed.estimate, 2))
    return f"{share} cheaper a run at {ratio(speed.estimate)} the speed"


def _because(trial: TrialReport, opening: str, *, brief: bool) -> str:
    """The opening and the reason that decided: the first, in its own words if it is unknown."""
    if not trial.reasons:
        return f"{opening}: no reason was recorded"
    first, speed = trial.reasons[0], trial.judged.speedup
    template = reason_headline(first.code, _variant(trial, first.code))
    if not template:
        return _cut(f"{opening}: {first.message.rstrip('.')}")
    faster = statements.faster_or_slower(speed)
    quality = trial.judged.quality or (trial.evidence and trial.evidence.quality)
    reject, promote = map(ratio, trial.thresholds) if trial.thresholds else ("speed-up",) * 2
    text = template.format(
        speed=faster,
        times=ratio(speed.estimate) if speed else UNKNOWN,
        but="" if speed is None or brief else f"{faster}, but ",
        metric=trial.metric,
        margin=significant(quality.margin) if quality else "the size set",
        promote=promote,
        reject=reject,
    )
    return f"{opening}: {text}"


def _variant(trial: TrialReport, code: str) -> str | None:
    """The situation, where one code stands for different endings."""
    speed = trial.judged.speedup
    if code in MAY_BE_SLOWER and trial.claims.speed is SpeedClaim.SLOWER:
        return "slower"
    if code == "trial_over_budget" and trial.judged.stage == "plan":
        return "plan"
    if code == "candidate_crashed" and trial.on_probation:
        return "probation"
    if code != "speed_inconclusive":
        return None
    if speed is None:
        return "no_steady_state"
    lower = speed.lower_bound
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
    failures = (reason for reason in trial.reasons[:1] if reason.code in FAILURES)
    return paragraphs(
        "lede", trial=trial, flag=flag_sentence(trial), failure=next(failures, None), less=_less
    )


def _less(share: float) -> str:
    return f"{percent(abs(share), 2)} {'less' if share >= 0 else 'more'}"


def flag_sentence(trial: TrialReport) -> str:
    """What happens to the flag, and which manual changes and answers had a part in it."""
    return paragraph("flag", trial=trial, author=_author, quoted=_quoted)


def _author(change: Author | GivenAnswer) -> str:
    return "the production watch" if change.by == TRAIN else change.by.removeprefix(HUMAN)


def _quoted(change: Author | GivenAnswer) -> str:
    return f"“{change.reason.rstrip('.')}”."


def control_sentences(controls: Sequence[ControlFigures]) -> list[str]:
    """One for each control; controls decide nothing."""
    return paragraphs("controls", controls=controls)

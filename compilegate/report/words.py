"""The verdict in words an engineering manager follows."""

from __future__ import annotations

from compilegate.domain.decision import Verdict
from compilegate.domain.flag_change import TRAIN
from compilegate.domain.formats import interval, money, number, percent, plural, ratio, significant
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.words import VERDICTS, Label
from compilegate.report.charts.quality import better_or_worse
from compilegate.report.model import Document
from compilegate.report.trial_report import TrialReport

FLAG_WORDS = {
    "enable": "The flag was switched on",
    "disable": "The flag is off",
    "keep": "The flag was left as it was",
}


def label(trial: TrialReport) -> Label:
    """The verdict in two or three words, with its tone."""
    if trial.verdict is None:
        return VERDICTS["failed"]
    if trial.verdict is Verdict.CONTINUE and trial.on_probation:
        return Label("On probation", "open")
    return VERDICTS[trial.verdict]


def lede(trial: TrialReport) -> list[str]:
    """A few sentences under the headline, each left out where its figures are unknown."""
    if trial.verdict is None:
        failure = str(trial.source["context"].get("failure"))
        return [failure] if trial.trial_usd is None else [failure, _spent(trial.trial_usd)]
    if trial.verdict is Verdict.INELIGIBLE:
        return ["Nothing was started and nothing was spent.", flag_sentence(trial)]
    sentences = [_speed_sentence(trial), _quality_sentence(trial), _saving_sentence(trial)]
    return [sentence for sentence in sentences if sentence] + [flag_sentence(trial)]


def flag_sentence(trial: TrialReport) -> str:
    """What happens to the flag, and whose word had a part in it."""
    flag = trial.decision.get("flag") or {}
    action = "keep" if _left_alone(trial) else str(flag.get("action"))
    words = FLAG_WORDS.get(action, "What happened to the flag is not recorded")
    sentence = f"{words} ({flag['name']})." if flag.get("name") else f"{words}."
    return " ".join([sentence, *_peoples_words(trial)])


def _left_alone(trial: TrialReport) -> bool:
    """Whether a person's word kept the flag from doing what the decision says."""
    return trial.flag.get("approved") is False or bool(trial.flag.get("held_by"))


def _peoples_words(trial: TrialReport) -> list[str]:
    """Who approved or did not, whose word stands, and whose was set aside."""
    sentences = []
    answer = trial.flag.get("approval")
    if answer and answer["approved"]:
        sentences.append(f"{_person(answer)} approved it: {_said(answer)}")
    elif trial.flag.get("approved") is False:
        told = f": {_said(answer)}" if answer else "."
        by = f" by {_person(answer)}" if answer and _is_person(answer) else ""
        sentences.append(f"The promotion was not approved{by}{told}")
    for name, what in (("held_by", "stands, because it is newer than the evidence"),
                       ("overrode", "was set aside by newer evidence")):  # fmt: skip
        word = trial.flag.get(name)
        if word:
            sentences.append(f"What {_person(word)} said {what}: {_said(word)}")
    return sentences


def _said(word: Document) -> str:
    return f"“{str(word['reason']).rstrip('.')}”."


def _is_person(word: Document) -> bool:
    return str(word["by"]).startswith(HUMAN)


def _person(word: Document) -> str:
    by = str(word["by"])
    return "the watch over production" if by == TRAIN else by.removeprefix(HUMAN)


def _spent(usd: float) -> str:
    return f"Until then the trial had cost {money(usd)}."


def _interval_words(trial: TrialReport) -> str:
    if trial.speedup_interval is None:
        return ""
    confidence = number(trial.speed.get("confidence"))
    level = "" if confidence is None else f"{percent(confidence)} "
    return f" ({level}interval of the speed-up {interval(trial.speedup_interval, ratio)})"


def _speed_sentence(trial: TrialReport) -> str:
    if trial.speedup is None or trial.candidate is None:
        return ""
    share = 1 - 1 / trial.speedup
    faster = f"{percent(abs(share), 2)} {'less' if share >= 0 else 'more'} time"
    blocks = number(trial.speed.get("blocks"))
    where = "on nodes of its own" if _apart(trial) else "back to back"
    over = f", measured in {plural(blocks, 'block')} {where}" if blocks else ""
    over = ", measured in production" if blocks == 0 else over
    run = f"A full production run with “{trial.candidate}” takes about {faster}"
    return f"{run}{over}{_interval_words(trial)}.{_price_words(trial, trial.speedup)}"


def _apart(trial: TrialReport) -> bool:
    return not isinstance(trial.measured, str) and trial.measured.apart


def _price_words(trial: TrialReport, speedup: float) -> str:
    """What the cluster's other price makes of it; nothing where both cost the same."""
    if trial.price_ratio == 1:
        return ""
    times, share = trial.price_ratio, 1 - trial.price_ratio / speedup
    less = f"{percent(abs(share), 2)} {'less' if share >= 0 else 'more'}"
    return f" Its cluster costs {times:.2f} times as much per hour, so that a run costs {less}."


def _quality_sentence(trial: TrialReport) -> str:
    estimate, margin = number(trial.quality.get("estimate")), number(trial.quality.get("margin"))
    if estimate is None or margin is None:
        return ""
    text = f"{trial.metric} is {better_or_worse(estimate)} on average"
    if "quality_held" in trial.codes:
        return f"{text}; a loss of {significant(margin)} or more is ruled out."
    return f"{text}; the margin allowed is {significant(margin)}."


def _saving_sentence(trial: TrialReport) -> str:
    per_year = number(trial.saving.get("usd_per_year"))
    if per_year is None:
        return ""
    if per_year <= 0:
        return f"It would cost about {money(-per_year)} more per year."
    payback = number(trial.saving.get("payback_runs"))
    back = "" if payback is None else f", and the trial is paid back after {plural(payback, 'run')}"
    verb = "saves" if trial.verdict in (Verdict.PROMOTE, Verdict.PERMANENT) else "would save"
    return f"That {verb} about {money(per_year)} per year{back}."

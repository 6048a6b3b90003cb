"""The verdict in words an engineering manager follows."""

from __future__ import annotations

from compilegate.domain.decision import Verdict
from compilegate.domain.flag_change import HUMAN, TRAIN
from compilegate.report.case import Case
from compilegate.report.charts.quality import better_or_worse
from compilegate.report.formats import interval, money, number, plural, ratio, significant
from compilegate.report.model import Document

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
FLAG_WORDS = {
    "enable": "The flag was switched on",
    "disable": "The flag is off",
    "keep": "The flag was left as it was",
}


def label(case: Case) -> str:
    """The verdict as two or three words."""
    if case.verdict is None:
        return "The trial failed"
    if case.verdict is Verdict.CONTINUE and case.on_probation:
        return "On probation"
    return LABELS[case.verdict]


def tone(case: Case) -> str:
    """good, off, open or bad."""
    return "bad" if case.verdict is None else TONES[case.verdict]


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
    """What happens to the flag, and whose word had a part in it."""
    flag = case.decision.get("flag") or {}
    action = "keep" if _left_alone(case) else str(flag.get("action"))
    words = FLAG_WORDS.get(action, "What happened to the flag is not recorded")
    sentence = f"{words} ({flag['name']})." if flag.get("name") else f"{words}."
    return " ".join([sentence, *_peoples_words(case)])


def _left_alone(case: Case) -> bool:
    """Whether a person's word kept the flag from doing what the decision says."""
    return case.flag.get("approved") is False or bool(case.flag.get("held_by"))


def _peoples_words(case: Case) -> list[str]:
    """Who approved or did not, whose word stands, and whose was set aside."""
    sentences = []
    answer = case.flag.get("approval")
    if answer and answer["approved"]:
        sentences.append(f"{_person(answer)} approved it: {_said(answer)}")
    elif case.flag.get("approved") is False:
        told = f": {_said(answer)}" if answer else "."
        by = f" by {_person(answer)}" if answer and _is_person(answer) else ""
        sentences.append(f"The promotion was not approved{by}{told}")
    for name, what in (("held_by", "stands, because it is newer than the evidence"),
                       ("overrode", "was set aside by newer evidence")):  # fmt: skip
        word = case.flag.get(name)
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


def _interval_words(case: Case) -> str:
    if case.speedup_interval is None:
        return ""
    confidence = number(case.speed.get("confidence"))
    level = "" if confidence is None else f"{significant(100 * confidence)} % "
    return f" ({level}interval of the speed-up {interval(case.speedup_interval, ratio)})"


def _speed_sentence(case: Case) -> str:
    if case.speedup is None or case.candidate is None:
        return ""
    share = 1 - 1 / case.speedup
    faster = f"{significant(100 * abs(share), 2)} % {'less' if share >= 0 else 'more'} time"
    blocks = number(case.speed.get("blocks"))
    where = "on nodes of its own" if _apart(case) else "back to back"
    over = f", measured in {plural(blocks, 'block')} {where}" if blocks else ""
    over = ", measured in production" if blocks == 0 else over
    run = f"A full production run with “{case.candidate}” takes about {faster}"
    return f"{run}{over}{_interval_words(case)}.{_price_words(case, case.speedup)}"


def _apart(case: Case) -> bool:
    return not isinstance(case.measured, str) and case.measured.apart


def _price_words(case: Case, speedup: float) -> str:
    """What the cluster's other price makes of it; nothing where both cost the same."""
    if case.price_ratio == 1:
        return ""
    times, share = case.price_ratio, 1 - case.price_ratio / speedup
    less = f"{significant(100 * abs(share), 2)} % {'less' if share >= 0 else 'more'}"
    return f" Its cluster costs {times:.2f} times as much per hour, so that a run costs {less}."


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

"""One estimate of the whole job: every place shows the same speed-up, time, quality and money."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.cli.common.outcome import decision_rows
from compilegate.domain.arithmetic import ratio, ratio_figure
from compilegate.domain.decision import SIGNS, Verdict
from compilegate.domain.formats import MINUS, money, percent, plural
from compilegate.report.charts.quality import quality_chart
from compilegate.report.charts.speed import cost_chart, speedup_chart, trace_chart
from compilegate.report.render import message_text, render, subject_text
from compilegate.report.statements import SCHEDULED, at_length, with_sign
from compilegate.report.tables import arms_table
from compilegate.report.words import headline, lede, metric_cards, recommendations
from compilegate.usecases.reports import read_trial_report
from tests.domain.evidence_builder import (
    BASE_WALL,
    GOOD,
    document,
    judge,
    probation_document,
    runs,
    sample,
    step_of,
    watch,
)
from tests.domain.evidence_strategies import probations, trials
from tests.domain.workload_builder import SOUND, check
from tests.domain.workload_strategies import quick, workloads
from tests.fuzzing import at_most
from tests.report import samples
from tests.report.samples import rendered

RATIO = re.compile(r"(?<![\d.])\d+\.\d{2,3}x")
DOLLARS = re.compile(rf"{MINUS}?\$[\d,]+(?:\.\d+)?")
few = at_most(40)


@st.composite
def ended(draw):
    """Trials whose quality is proven; whole jobs may be slower than blocks predict, or vary."""
    made = document(
        speedup=draw(st.sampled_from([1.25, 1.4])),
        metrics={name: sample(6, 2.5, 0.001) for name in ("baseline", "compile")},
        goal=draw(st.sampled_from(list(SIGNS))),
    )
    slower = draw(st.sampled_from([1.0, 1.0, 1.1, 1.2, 1.3, 1.7]))
    spread = draw(st.sampled_from([0.0, 0.0, 0.1, 0.3]))
    for place, run in enumerate(runs(made)):
        run["wall_seconds"] *= slower * (1 + spread * (-1) ** place)
    return made


decided = st.one_of(ended(), trials(), probations())


def trial_of(evidence, eligibility=None):
    decision = judge(evidence).to_dict("/compilegate/prod/workloads/lm/compiler")
    return read_trial_report({
        "decision": decision, "evidence": evidence, "eligibility": eligibility, "plan": None,
        "context": {"stage": "prod", "trial": "t1"},
    })  # fmt: skip


def places(trial):
    """Every place that shows the whole job's speed-up with its interval."""
    cards = metric_cards(trial)
    message = message_text(trial, cards).split("\n\n")
    return {
        "terminal": dict(decision_rows(trial.decision))["speed-up"],
        "message": next(part for part in message if part.startswith(cards[0].name)).split("\n")[0],
        "report, first sentence": lede(trial)[0],
        "report, card": f"{cards[0].value} {cards[0].note}",
        "report, chart": speedup_chart(trial, trial.measured).finding,
    }


def of_quality(trial):
    """Every place that shows the difference in quality, but for the message."""
    card = metric_cards(trial)[1]
    return {
        "terminal": dict(decision_rows(trial.decision))["quality"],
        "report, sentence": lede(trial)[1],
        "report, card": f"{card.value} {card.note}",
        "report, chart": quality_chart(trial, trial.measured).finding,
    }


def test_an_answer_at_the_hours_of_production_stands_in_every_place():
    trial = trial_of({**document(metrics=GOOD), "run_hours": 1.0})
    cards, text = metric_cards(trial), at_length(trial.judged.scheduled)

    assert text == dict(decision_rows(trial.judged))["by run_hours"]
    assert text in message_text(trial, cards)
    assert [text] == [one.note.partition(";")[0] for one in cards if one.name == SCHEDULED]
    without = trial_of(document(metrics=GOOD))
    assert SCHEDULED not in message_text(without, metric_cards(without))


@given(evidence=decided)
@few
def test_every_place_shows_the_judges_one_speed_up(evidence):
    trial = trial_of(evidence)
    speed = trial.judged.speedup
    if speed is None:
        return
    low, high = map(ratio_figure, speed.interval)
    limits = {ratio(limit) for limit in trial.thresholds or ()}

    for place, text in places(trial).items():
        assert {ratio(speed.estimate)} == set(RATIO.findall(text)), place
        assert f"{low} to {high}" in text, place
        # Production, blocks alone and a trial's full runs give other figures: each says its runs.
        for made, name in ((speed.blocks, "short block"), (speed.full_runs, "full run")):
            assert not made or plural(made, name) in text, place
    if trial.verdict in (Verdict.PROMOTE, Verdict.PERMANENT):
        said = " ".join(recommendations(trial))
        assert set(RATIO.findall(said)) <= {ratio(speed.interval[0])} | limits
    for text in (headline(trial), headline(trial, brief=True), subject_text(trial)):
        assert set(RATIO.findall(text)) <= {ratio(speed.estimate)} | limits


@given(evidence=decided)
@few
def test_a_steady_step_is_as_long_in_table_and_chart_as_in_the_sentence(evidence):
    trial = trial_of(evidence)
    table = arms_table(trial)
    assert table
    (shown,) = (row for row in table.rows if row[0] == "Steady step, short blocks")
    steps = dict(zip(table.columns[1:], shown[1:], strict=True))
    finding = trace_chart(trial.measured).finding
    said = re.search(r"only (\S+)x \((.*) against (.*)\)", " ".join(recommendations(trial)))

    for arm in trial.measured.arms:
        assert not arm.steady or f"{arm.name} {steps[arm.name]}" in finding
    if said and trial.candidate:
        assert (steps["baseline"], steps[trial.candidate]) == said.groups()[1:]


@pytest.mark.parametrize("speedup", [0.05, 0.4, 0.8, 1.4])
def test_no_share_is_beyond_twice_and_no_day_less_than_one(speedup):
    """Where a run takes 20 times as long, or pays for its trial within hours."""
    metrics = {name: sample(6, 2.5, 0.001) for name in ("baseline", "compile")}
    evidence = document(speedup=speedup, metrics=metrics) | {"runs_per_week": 2800}
    text = rendered(trial_of(evidence).source).html
    shares = re.findall(r"([\d,.]+)% (?:more|less)", text)

    assert all(float(share.replace(",", "")) < 100 for share in shares)
    assert not re.search(r"\b0\.\d+ days", text)


@given(evidence=decided)
@few
def test_faster_and_slower_are_said_only_where_the_interval_excludes_equal_time(evidence):
    trial = trial_of(evidence)
    low, high = trial.judged.speedup.interval or (0.0, 9.0)
    said = " ".join([headline(trial), *lede(trial), subject_text(trial)])
    sentence = lede(trial)[0]

    assert low > 1 or not re.search(r"x faster|less time", said)
    assert high < 1 or not re.search(r"slower|% more time", said)
    if low > 1 and trial.judged.speedup.estimate:
        assert f"{percent(1 - 1 / trial.judged.speedup.estimate, 2)} less time" in sentence


@given(evidence=decided)
@few
def test_quality_is_one_difference_in_the_metrics_own_direction(evidence):
    trial = trial_of(evidence)
    quality = trial.judged.quality
    if quality is None or quality.estimate is None or trial.judged.speedup is None:
        return
    expected = {f"Δ {with_sign(SIGNS[quality.goal] * quality.estimate)}"}
    # Beside it a revert may show the figure of the runs that checked the alarm.
    fall = trial.fall.delta if trial.fall else None
    checked = set() if fall is None else {f"Δ {with_sign(fall)}"}
    said = of_quality(trial) | {"message": message_text(trial, metric_cards(trial))}

    for place, text in said.items():
        shown = set(re.findall(rf"Δ [+{MINUS}]?[\d.,e{MINUS}]*\d", text))
        assert expected <= shown <= expected | checked, place
        if trial.verdict in (Verdict.PROMOTE, Verdict.PERMANENT):
            assert not re.search(r"\b(worse|not proven)\b", text), place


@given(evidence=decided)
@few
def test_money_is_of_that_estimate_and_stated_only_where_full_runs_confirm_it(evidence):
    trial = trial_of(evidence)
    saving = trial.judged.saving
    if saving is None or saving.interval_usd_per_year is None:
        return
    cards = metric_cards(trial)
    said = {
        "terminal": dict(decision_rows(trial.decision))["saving"],
        "message": re.findall(r"^Saving: .*", message_text(trial, cards), re.MULTILINE)[0],
        "report, sentences": " ".join(lede(trial)[1:]),
        "report, card": f"{cards[2].value} {cards[2].note}",
    }
    amounts = {
        money(one) for one in (saving.usd_per_year, *saving.interval_usd_per_year,
                               saving.usd_per_run or 0.0, -saving.usd_per_year)
    }  # fmt: skip
    if saving.usd_per_run and saving.usd_per_run_baseline:
        share = saving.usd_per_run / saving.usd_per_run_baseline
        amounts.add(money(saving.usd_per_year / share))  # what training costs a year
        assert (
            "% of the" not in said["report, card"] or percent(abs(share), 2) in said["report, card"]
        )
    stated = trial.claims.money.has_amount

    for place, text in said.items():
        assert set(DOLLARS.findall(text)) <= (amounts if stated else set()), place
    assert stated == bool(DOLLARS.findall(said["terminal"]))
    assert stated == bool(cost_chart(trial).views)
    if trial.codes & {"full_run_disagrees", "full_run_unproven", "full_run_unmeasured"}:
        assert trial.verdict is not Verdict.PROMOTE
        assert not stated or saving.interval_usd_per_year[1] < 0


@given(evidence=ended(), run_hours=st.sampled_from([0.1, 3.0, 40.0]))
@few
def test_an_estimate_from_assumptions_is_named_beside_the_measured_saving(evidence, run_hours):
    job = replace(SOUND, schedule=replace(SOUND.schedule, run_hours=run_hours))
    economics = check(job).economics.to_dict()
    trial = trial_of(evidence, eligibility={"economics": economics})
    most, whole = economics["plausible_annual_saving_usd"][1], economics["annual_training_usd"]
    assumed = f"estimated at most {money(most)} per year, of {money(whole)}"

    assert (assumed in " ".join(lede(trial))) is bool(
        trial.judged.saving and trial.claims.money.has_amount
    )


@given(job=workloads)
@quick
def test_an_ineligible_workload_has_no_machine_and_no_price_that_is_unknown_beside_a_known_one(job):
    eligibility = check(job)
    source = samples.ineligible()
    trial = read_trial_report({**source, "eligibility": eligibility.to_dict()})
    cards = {card.name: card for card in metric_cards(trial)}
    report = render(trial)

    assert samples.SIMULATED not in f"{report.html}{report.markdown}{report.message}{report.json}"
    priced = eligibility.economics.annual_training_usd is not None
    for card in cards.values():
        assert not priced or "price" not in card.note.replace("list prices", ""), card


def test_a_gain_that_is_gone_stands_beside_the_estimate_of_all_jobs():
    made = probation_document()
    while (step := step_of(judge(made))) is not None:
        for run in step["runs"]:
            watch(made, run["arm"], wall_seconds=BASE_WALL, confirm=run["confirm"])
    trial = trial_of(made)

    assert "speedup_gone" in trial.decision.codes
    assert "1.00x in the 3 runs of each arm that checked the alarm" in lede(trial)[0]
    assert metric_cards(trial)[0].note.startswith("1.00x in the 3 runs of each arm")


def test_what_more_evaluation_examples_are_worth_is_one_amount():
    evidence = samples.SAMPLES["scored_per_example"]()["evidence"]
    for arm in evidence["arms"]:
        arm["usd_per_hour"] /= 50  # of less than a cent
    trial = trial_of(evidence)
    split = trial.judged.quality and trial.judged.quality.evaluation
    amount = money(split.usd_saved)

    assert 0 < split.usd_saved < 0.01
    assert [[amount]] == [
        DOLLARS.findall(one.message) for one in trial.reasons if one.code == "evaluation_limited"
    ]
    assert f"That is worth {amount}." in " ".join(recommendations(trial))

"""One estimate of the whole job: every place shows the same speed-up, time, quality and money."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.cli.common.outcome import decision_rows
from compilegate.domain.arithmetic import ratio, ratio_figure
from compilegate.domain.claims import decision_notification, stated_usd_per_run
from compilegate.domain.codec import write
from compilegate.domain.decision import SIGNS, Verdict
from compilegate.domain.formats import MINUS, money, percent, plural
from compilegate.report.charts.quality import quality_chart
from compilegate.report.charts.speed import cost_chart, speedup_chart, trace_chart
from compilegate.report.render import message_text, render, subject_text
from compilegate.report.statements import SCHEDULED, at_length, with_sign
from compilegate.report.tables import arms_table
from compilegate.report.words import headline, lede, metric_cards, recommendations
from compilegate.usecases.reports import read_trial_report
from compilegate_exports.arm_runs import arm_runs
from compilegate_exports.openmetrics import openmetrics
from tests.domain import test_stack
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
from tools.docs.folders import ROOT

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


def example_probation():
    """The probation of the documentation, whose difference over all runs lies within the margin."""
    return trial_of(json.loads((ROOT / "docs/examples/probation.json").read_text("utf-8"))).source


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

    assert re.fullmatch(
        r"a run of 60 min: 1\.\d\dx \(1\.\d\d to 1\.\d\d\), pays from \d.* s on", text
    )
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


def test_what_a_layer_gains_stands_beside_it_in_the_table_as_in_the_reasons():
    trial = trial_of(test_stack.trial(1.03))
    layer, table = trial.judged.layer, arms_table(trial)
    assert ("baseline", "on", "fused") == tuple(table.columns[1:])
    (row,) = (row for row in table.rows if row[0] == "Faster than on, which is on")

    low, high = map(ratio, layer.interval)
    assert ("", "", f"{ratio(layer.estimate)}\n({low} to {high})") == row[1:]
    assert any(ratio(layer.estimate) in reason.message for reason in trial.reasons)
    assert all("which is on" not in row[0] for row in arms_table(trial_of(document())).rows)


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


@pytest.mark.parametrize(
    ("slower", "code"), [(1.2, "full_run_unproven"), (1.25, "full_run_disagrees")]
)
def test_no_dollars_are_stated_of_a_speed_up_that_whole_jobs_do_not_confirm(slower, code):
    evidence = document(metrics={name: sample(6, 2.5, 0.001) for name in ("baseline", "compile")})
    for run in runs(evidence):
        run["wall_seconds"] *= slower
    trial = trial_of(evidence)
    cards = metric_cards(trial)
    message = message_text(trial, cards)
    cost = f"{cards[-1].name}: {cards[-1].value}"

    assert code in trial.codes
    assert (trial.judged.saving.usd_per_year or 0) > 0
    assert not DOLLARS.findall(" ".join([headline(trial), *lede(trial)]))
    assert not DOLLARS.findall(message.replace(cost, ""))
    assert not DOLLARS.findall(dict(decision_rows(trial.decision))["saving"])
    assert stated_usd_per_run(trial.decision) is None


def test_the_readme_shows_one_speed_up_per_workload():
    demo = (ROOT / "README.md").read_text("utf-8").split("```text\n")[1].partition("```")[0]
    rows = [row for row in demo.splitlines() if RATIO.search(row)]

    assert [1, 1] == [len(set(RATIO.findall(row))) for row in rows]


@pytest.mark.parametrize("name", ["promote", "stay_off", "cheaper_cluster"])
def test_documents_for_programs_and_the_table_of_arms_agree_with_the_words(name):
    source = samples.SAMPLES[name]()
    trial = read_trial_report(source)
    report = rendered(source)
    news = decision_notification(
        trial.decision, stage="prod", workload="w", subject=report.subject, text=report.message
    )
    table, speed, saving = arms_table(trial), trial.judged.speedup, trial.judged.saving
    saved = saving.usd_per_run
    column = table.columns.index(str(trial.candidate))
    (price,) = [row[column] for row in table.rows if row[0] == "Price of a production run"]

    assert json.loads(report.json)["decision"]["speedup"] == write(speed)
    assert news.body()["figures"]["speedup"] == write(speed)
    assert news.body()["figures"]["claims"] == json.loads(report.json)["claims"]
    assert ratio(speed.estimate) in report.markdown
    documented = json.loads(report.json)["decision"]["saving"]
    assert saved == documented["usd_per_run"]
    shown = saving.usd_per_run_baseline - saved
    exposed = re.findall(
        rf'^compilegate_arm_run_usd{{.*arm="{trial.candidate}"}} (.*)$',
        openmetrics(trial, trial="t1", at=0), re.MULTILINE,
    )  # fmt: skip
    tracked = {run.arm: run.figures["usd_per_run"] for run in arm_runs(trial, trial="t1", at=0)}
    assert money(shown) == price
    assert [shown] == [float(one) for one in exposed]
    assert shown == tracked[str(trial.candidate)]


@pytest.mark.parametrize("source", [samples.reverted, example_probation])
def test_a_confirmed_alarm_names_the_runs_of_each_of_its_two_figures(source):
    trial = read_trial_report(source())
    table = arms_table(trial)
    checked = f"{trial.fall.look.fall.ours:.0f} runs of each arm that checked the alarm"
    figure = f"Δ {with_sign(trial.fall.delta or 0.0)} in the {checked}"
    decided = f"(in the runs that checked the alarm|{re.escape(figure)})"
    every = f"all production runs: Δ {with_sign(trial.judged.quality.delta or 0.0)}"
    message = message_text(trial, metric_cards(trial)).split("\n\n", 2)[2]
    said = of_quality(trial) | {"message": message}

    said_so = re.compile(rf"regression[;,]? {decided}.*{re.escape(every)}", re.IGNORECASE)
    assert not [place for place, text in said.items() if not said_so.search(text)]
    assert all(figure in said[place] for place in ("report, sentence", "report, card"))
    assert {f"Mean of {trial.metric}, trial and production", "Full runs, trial and production"} <= {
        row[0] for row in table.rows
    }


def test_a_gain_that_is_gone_stands_beside_the_estimate_of_all_jobs():
    made = probation_document()
    while (step := step_of(judge(made))) is not None:
        for run in step["runs"]:
            watch(made, run["arm"], wall_seconds=BASE_WALL, confirm=run["confirm"])
    trial = trial_of(made)

    assert "speedup_gone" in trial.decision.codes
    assert "1.00x in the 3 runs of each arm that checked the alarm" in lede(trial)[0]
    assert metric_cards(trial)[0].note.startswith("1.00x in the 3 runs of each arm")


def test_a_revert_by_another_judge_shows_no_figure_of_this_ones():
    decided = {**samples.reverted()["decision"], "judge_version": "1.2.0"}

    assert read_trial_report({**samples.reverted(), "decision": decided}).fall is None


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

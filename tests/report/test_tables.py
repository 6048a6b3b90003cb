"""The tables of a trial's page, computed by hand from a few unequal records."""

from dataclasses import fields, replace
from types import SimpleNamespace as Made

import pytest

from compilegate.domain import naming
from compilegate.domain.claims import VERDICTS, Claims
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision, LayerGain, QualityFigures, SameQuality, Verdict
from compilegate.domain.faults import FaultTable
from compilegate.domain.formats import MINUS, UNKNOWN
from compilegate.domain.judging.evidence import Arm, FullRun, SpeedRun
from compilegate.domain.judging.measured import Block, Measured, MeasuredArm
from compilegate.domain.judging.steady_state import Segment
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.where_time_goes import Difference, WhereTimeGoes
from compilegate.report.tables import (
    BOTH_PHASES,
    FIGURES,
    NOT_RECORDED,
    SAME_QUALITY,
    Table,
    arms_table,
    detail_tables,
    earlier_table,
    eligibility_table,
    facts,
    runs_csv,
    times_table,
)
from tests.decision_builder import arm_figures, decision_document, speedup

AT = 1_795_140_000  # 2026-11-20 02:00 UTC
TRIAL = naming.trial_id(AT * 1000)


def of(kind, **more):
    """A record of which nothing else is known."""
    return kind(**{**dict.fromkeys(field.name for field in fields(kind)), **more})


def run_of(kind, *, finished=True, **more):
    keys = ("job", "reason", "fingerprint", "equivalence", "started_at", "usd")
    record = {key: more.pop(key) for key in keys if key in more}
    return of(kind, finished=finished, **{"record": record, **more})


def speed(block=0, **more):
    return run_of(SpeedRun, block=block, **{"compile_seconds": 0.0, "step_seconds": (), **more})


def full(mode="shadow", **more):
    return run_of(FullRun, mode=mode, **{"stage": "quality", "order": 0, **more})


def arm(name, *runs, steady=None, speedups=None, usd_per_hour=None, devices=1):
    quality, late = (
        tuple(run for run in runs if isinstance(run, FullRun) and run.stage == stage)
        for stage in ("quality", "probation")
    )
    short = tuple(run for run in runs if isinstance(run, SpeedRun))
    blocks = {run.block: Block(run, (steady or {}).get(run.block)) for run in short}
    own = Arm(name, None, usd_per_hour, devices, short, quality, late)
    return MeasuredArm(own, blocks, quality, speedups or {})


def trial(*arms, **more):
    """A trial of these measured arms."""
    policy = Made(quality_runs="shadow", min_proven_speedup=1.1, min_mean_speedup=1.2, alpha=0.04,
                  hold_models=True)  # fmt: skip
    evidence = arms and Made(
        arms=[one.arm for one in arms], candidates=arms[1:],
        quality=Made(metric="loss", history=()),
        plan=Made(asked_quality_runs=None, runs_as_shadow_because=None), policy=policy,
        equivalence=more.pop("faults", None),
    )  # fmt: skip
    judged = Made(arms=(), layer=None, saving=None, quality=None, judge_version="1.2.0",
                  decision_id="d1")  # fmt: skip
    values = {
        "metric": "loss", "on_probation": False, "planned_arms": (), "eligibility": {},
        "measured": Measured(evidence, arms, None) if arms else None, "evidence": evidence or None,
        "plan": None, "candidate": "compile", "verdict": Verdict.PROMOTE, "flag": None,
        "judged": judged, "usd_by_job": {}, "price_ratio": 1.0, "workload": "bert",
        "source": {"context": {"trial": TRIAL, "stage": "local"}},
    }  # fmt: skip
    return Made(**{**values, **more})


def judged_of(*arms, **more):
    return Made(**{"arms": arms, "layer": None, "saving": None, **more})


def planned(name, compiler="torch_compile", **more):
    values = {"instance_type": "ml.g5", "instance_count": 2, "compiler": compiler}
    return of(ArmPlan, name=name, **{**values, **more})


def details(*arms, **more):
    return {table.id: table for table in detail_tables(trial(*arms, **more))}


WHOLE = arm_figures(
    name="compile", samples_per_second=1234.4, samples_per_second_interval=(1200.0, 1300.0),
    step_seconds_median=0.042, compile_seconds_cold=38.5, compile_seconds_warm=0.0, recompiles=1.0,
    graph_breaks=2.0, graphs=3.0, peak_memory_gib=0.6149, usd_per_hour=1.408,
    usd_per_1000_samples=0.0123, usd_per_run=2.5, metric_mean=1.62, metric_sd=0.00456, runs=3,
    failed_runs=1,
)  # fmt: skip
# Of an arm without a compiler, which compiles nothing, and of which nothing is known.
BARE = [*[UNKNOWN] * 3, "none", "none", *[UNKNOWN] * 9, "0", "0"]


@pytest.mark.parametrize("late", [True, False])
def test_each_arm_is_a_column_of_figures_and_runs_on_what_was_planned(late):
    arms = [arm_figures(name="baseline"), WHOLE, arm_figures(name="own", compile_seconds_warm=2.0),
            arm_figures(name="other")]  # fmt: skip
    plans = [planned("compile"), planned("own", "none"), planned("other")]
    table = arms_table(trial(judged=judged_of(*arms), arms=arms, planned_arms=plans,
                             on_probation=late))  # fmt: skip
    cells = [
        "1,234", "1,200 to 1,300", "42 ms", "38.5 s", "0 µs", "1", "2", "3", "0.615 GiB", "$1.41",
        "$0.012", "$2.50", "1.620", "0.0046", "3", "1",
    ]  # fmt: skip
    names = [title.format(metric="loss") for _, title, *_ in FIGURES]
    for place in (12, 14):
        names[place] += BOTH_PHASES if late else ""
    own = [*BARE[:4], "2 s", *BARE[5:]]
    other = [*BARE[:3], UNKNOWN, UNKNOWN, *BARE[5:]]

    assert Table("arms", "The arms in numbers", ("Figure", "baseline", "compile", "own", "other"), [
        ("Cluster", UNKNOWN, *["2 x ml.g5"] * 3), *zip(names, BARE, cells, own, other, strict=True),
    ], stacked=False) == replace(table, note="")  # fmt: skip


def test_what_is_unknown_is_named_once_for_each_reason_why():
    def note(**more):
        figures = replace(WHOLE, **more)
        return arms_table(trial(judged=judged_of(figures), arms=[figures])).note

    unknown = dict.fromkeys(["samples_per_second_interval", "recompiles", "graphs"])
    why = f"95% interval: needs two blocks; Recompilations, Graphs: {NOT_RECORDED}"
    assert ["", f"{UNKNOWN} is unknown. {why}."] == [note(), note(**unknown)]
    assert arms_table(trial()) is None


@pytest.mark.parametrize(
    ("steps", "usd", "cell"),
    [(None, 2.0, "not reached"), (800.0, 2.0, "$2.00"), (800.0, None, UNKNOWN)],
)
def test_a_layers_gain_and_the_price_of_the_same_loss_stand_below_their_arms(steps, usd, cell):
    arms = [replace(WHOLE, name=name) for name in ("baseline", "on", "compile")]
    same = SameQuality(1.6, "compile", 900.0, steps, 1.25, usd)
    judged = judged_of(*arms, layer=LayerGain("on", 1.25, (1.1, 1.4)),
                       saving=Made(same_quality=same))  # fmt: skip
    rows = arms_table(trial(judged=judged, arms=arms)).rows

    assert [
        ("Faster than on, which is on", "", "", "1.25x\n(1.10x to 1.40x)"),
        (SAME_QUALITY, "$1.25", UNKNOWN, cell),
    ] == rows[len(FIGURES) :]


def test_where_the_time_goes_has_a_row_for_each_class_of_kernels():
    differences = (
        Difference("matmul", "sgemm", "eager", "graph", 0.03, 0.02, -0.01, 0.8),
        Difference("copy", "", "", "", 0.001, 0.003, 0.002, 0.2),
    )
    times = WhereTimeGoes("compile", 2, differences, {}, {"compile": {"failed": 1}})
    table = times_table(trial(times=times))

    assert Table(
        "times", "Where the time goes",
        ("Kernels", "baseline", "compile", "Difference", "Share", "Graph of each", "Most of it"),
        [("matmul", "30 ms", "20 ms", f"{MINUS}10 ms", "80%", "eager / graph", "sgemm"),
         ("copy", "1 ms", "3 ms", "2 ms", "20%", f"{UNKNOWN} / {UNKNOWN}", UNKNOWN)],
        stacked=True,
    ) == replace(table, note="")  # fmt: skip
    assert ("2 blocks" in table.note, "1 block (failed)" in table.note) == (True, True)
    assert times_table(trial(times=None)) is None


def test_each_reason_of_eligibility_stands_once_with_all_that_it_is_about():
    both = {"severity": "warn", "code": "shrinks", "message": "It needs memory.", "fix": "Watch."}
    blocks = {"severity": "block", "code": "no_gpu", "message": "No GPU.", "fix": None}
    eligibility = {"reasons": [both], "candidates": [
        {"name": "compile", "reasons": [blocks, both]}, {"name": "other", "reasons": None},
    ]}  # fmt: skip

    assert Table(
        "eligibility", "Eligibility", ("About", "Severity", "Code", "Reason", "What helps"),
        [("workload, compile", "warn", "shrinks", "It needs memory.", "Watch."),
         ("compile", "block", "no_gpu", "No GPU.", "")],
        marked=frozenset({1}), stacked=True,
    ) == eligibility_table(trial(eligibility=eligibility))  # fmt: skip
    assert eligibility_table(trial(eligibility={"candidates": None})) is None


def test_the_plan_marks_what_the_candidates_change():
    plans = [planned("baseline", "none", image="i", batch_size=16, usd_per_hour=1.5),
             planned("compile", image="i", batch_size=16, usd_per_hour=3.0)]  # fmt: skip
    rows = [
        ("compiler", "none", "torch_compile"), ("instance type", "ml.g5", "ml.g5"),
        ("instance count", "2", "2"), ("precision", "None", "None"), ("batch size", "16", "16"),
        ("learning rate", "None", "None"), ("distribution", "None", "None"),
        ("USD per hour", "1.5", "3.0"), ("image", "i", "i"),
    ]  # fmt: skip

    assert [Table(
        "plan", "The arms as planned", ("Setting", "baseline", "compile"), rows,
        note="Marked rows are what the candidates change.", marked=frozenset({0, 7}),
    )] == detail_tables(trial(planned_arms=plans))  # fmt: skip
    assert ("", frozenset()) == (
        (same := details(planned_arms=plans[:1])["plan"]).note, same.marked,
    )  # fmt: skip
    assert [] == detail_tables(trial())


def test_every_block_has_its_step_and_overhead_and_each_candidates_speed_up():
    arms = [
        arm("baseline", speed(2), speed(0), steady={0: Segment(2, 0.06, 12.0)}),
        arm("compile", speed(0), speed(1, finished=False, reason="Out of memory."),
            steady={0: Segment(3, 0.042, 2.5)}, speedups={0: 1.25}),
        arm("other", speed(3, finished=False)),
    ]  # fmt: skip
    tables = details(*arms)

    columns = ["Block"]
    for name in ("baseline", "compile", "other"):
        columns += [f"{name}: steady step", "+ compile and warm-up"]
    columns += ["compile: predicted speed-up", "other: predicted speed-up"]
    assert (columns, [
        ("0", "60 ms", "12 s", "42 ms", "2.5 s", UNKNOWN, UNKNOWN, "1.25x", UNKNOWN),
        *((n, *[UNKNOWN] * 8) for n in "123"),
    ]) == (tables["blocks"].columns, tables["blocks"].rows)  # fmt: skip
    assert Table("failures", "Failed segments", ("Arm", "Block", "Reason"), [
        ("compile", "1", "Out of memory."), ("other", "3", "no reason was recorded"),
    ], stacked=True) == tables["failures"]  # fmt: skip
    assert ["blocks", "failures"] == list(tables)


def test_the_equivalence_check_shows_each_part_with_its_bound_and_what_it_did_not_see():
    part = {"part": "gradients", "arithmetic": "own", "compared": 9, "ratio": 2.5, "where": "w"}
    check = {
        "schema": 1, "check": "c", "weights": "first",
        "class": {"framework": "pytorch 2.13", "device": "cuda 9.0", "precision": "bf16"},
        "parts": [part, {**part, "arithmetic": "single", "ratio": None}],
        "unseen": [{"part": "randomness", "code": "random_numbers", "share": 0.5}],
    }  # fmt: skip
    bounds = {"cuda.gradients.own": 4.0, "cpu.gradients.single": 64.0}
    arms = [arm("baseline", speed(equivalence=check)), arm("compile", speed(equivalence=check)),
            arm("other", speed())]  # fmt: skip

    def rows(bound):
        return [
            ("compile", "first", "gradients own", "9", "2.5", bound, "w"),
            ("compile", "first", "gradients single", "9", UNKNOWN, UNKNOWN, "w"),
            ("compile", "first", "randomness", UNKNOWN, UNKNOWN, UNKNOWN,
             "50% not looked at: random_numbers"),
        ]  # fmt: skip

    table = details(*arms, faults=FaultTable("c", bounds))["equivalence"]
    assert (("Arm", "Weights", "Part", "Tensors", "Ratio", "Bound", "Where"), rows("4"), True) == (
        table.columns, table.rows, table.stacked,
    )  # fmt: skip
    assert rows(UNKNOWN) == details(*arms)["equivalence"].rows


def test_guardrails_and_signals_have_their_difference_margin_and_answer():
    def metric(name, outcome, estimate=None, interval=None):
        return of(QualityFigures, metric=name, goal="minimize", margin=0.025, outcome=outcome,
                  estimate=estimate, interval=interval)  # fmt: skip

    quality = Made(
        guardrails=[metric("top5", "worse", -0.04, (-0.05, 0.01)), metric("top1", "new")],
        signals=[metric("gap", None)],
    )
    table = details(arm("baseline"), arm("c"), judged=Made(quality=quality))["guardrails"]

    assert (True, ("Metric", "As", "Difference", "Interval", "Margin", "Answer"), [
        ("top5", "guardrail", "+0.04", f"{MINUS}0.01 to +0.05", "0.025", "worse"),
        ("top1", "guardrail", UNKNOWN, UNKNOWN, "0.025", "not proven"),
        ("gap", "signal", UNKNOWN, UNKNOWN, "0.025", "watched"),
    ]) == (table.stacked, table.columns, table.rows)  # fmt: skip


def test_every_full_run_has_its_metric_and_production_runs_their_price_in_order_of_time():
    arms = [
        arm("baseline", full(seed=17, metric=1.62345678, wall_seconds=84.0, job="q"),
            full("production", order=9, metric=1.5, usd=2.5, started_at=AT, job="p"),
            full(stage="probation", metric=1.5), full(finished=False, metric=2.0, reason="Lost."),
            full(stage="probation", metric=1.5, reason="Late.")),
        arm("compile", full("canary", order=3, finished=False)),
    ]  # fmt: skip
    tables = details(*arms)

    bare = (UNKNOWN, "1.5000", UNKNOWN)
    assert Table(
        "runs", "Every full run", ("Arm", "Seed", "loss", "Wall clock of the job", "Remark"),
        [("baseline", "17", "1.6235", "84 s", ""), ("baseline", *bare, ""),
         ("baseline", UNKNOWN, "failed", UNKNOWN, "Lost."), ("baseline", *bare, "production"),
         ("baseline", *bare, "Late."), ("compile", UNKNOWN, "failed", UNKNOWN, "")],
        stacked=True,
    ) == tables["runs"]  # fmt: skip
    table = tables["canary-runs"]
    assert (True, ("Begun (UTC)", "Arm", "loss", "Price", "As", "Job"), [
        (UNKNOWN, "compile", "failed", UNKNOWN, "as canary", UNKNOWN),
        ("2026-11-20 02:00", "baseline", "1.5000", "$2.50", "in production", "p"),
    ]) == (table.stacked, table.columns, table.rows)  # fmt: skip


def test_a_fingerprint_marks_what_differs_between_or_within_arms():
    base = [{"code": "a", "gpu": "x", "torch": None}, {"code": "a", "gpu": "y", "torch": None}]
    ours = [base[0], base[1], {"image": "i"}]
    pair = [arm(name, *(speed(n, fingerprint=one) for n, one in enumerate(prints)))
            for name, prints in (("baseline", base), ("compile", ours))]  # fmt: skip
    table = details(*pair)["fingerprint"]

    assert Table("fingerprint", "Fingerprint", ("Key", "baseline", "compile"), [
        ("code", "a", "a"), ("gpu", "x / y", "x / y"), ("image", UNKNOWN, "i"),
        ("torch", UNKNOWN, UNKNOWN),
    ], marked=frozenset({1, 2})) == replace(table, note="")  # fmt: skip
    alike = details(*(arm(n, speed(fingerprint=base[0])) for n in "ab"))["fingerprint"]
    assert (frozenset(), True) == (alike.marked, alike.note != table.note)


@pytest.mark.parametrize(
    ("jobs", "stage", "log"),
    [(2, "local", "compilegate local logs job/j0"), (100, "prod", UNKNOWN), (103, "prod", UNKNOWN)],
)
def test_jobs_stand_with_the_arms_that_they_measured_a_hundred_at_most(jobs, stage, log):
    pair = [arm("baseline", *(speed(n, job=f"j{n}") for n in range(jobs)), speed(999)),
            arm("compile", speed(0, job="j0"), speed(1, job="j0"))]  # fmt: skip
    context = {"trial": TRIAL, "stage": stage}
    table = details(*pair, source={"context": context})["jobs"]

    assert (("j0", "baseline, compile", log), "baseline") == (table.rows[0], table.rows[1][1])
    assert (("Job", "Arms", "Log"), min(jobs, 100), True) == (
        table.columns, len(table.rows), table.stacked,
    )  # fmt: skip
    assert ("3 more" in table.note, bool(table.note)) == (jobs == 103, jobs == 103)


@pytest.mark.parametrize(
    ("name", "plan", "begun"),
    [
        (TRIAL, None, ["2026-11-20 02:00 UTC"]),
        (TRIAL, Made(started_at=0), ["2026-11-20 02:00 UTC"]),
        (TRIAL, Made(started_at=AT + 60), ["2026-11-20 02:01 UTC"]),
        (TRIAL[:-1], None, []), (TRIAL.upper(), None, []), ("trial-x!", None, []),
    ],
)  # fmt: skip
def test_a_trial_began_when_its_plan_says_or_else_its_id(name, plan, begun):
    source = {"context": {"trial": name, "owner": "ml", "as_of": AT + 120}}
    arms = (planned("baseline", image="host/repository:1"),)
    shown = facts(trial(source=source, plan=plan, planned_arms=arms))

    assert [
        ("Owner", "ml"), *(("Begun", one) for one in begun),
        ("Report as of", "2026-11-20 02:02 UTC"), ("Machines", "2 x ml.g5"),
        ("Image", "repository:1"),
    ] == shown  # fmt: skip


def test_this_trial_stands_first_among_those_of_the_workload():
    now = read(Decision, decision_document(speedup=speedup(1.2)))
    bare = replace(now, candidate=None, reasons=(), speedup=None, verdict=Verdict.STAY_OFF)
    earlier = [("m2k4t7x", bare, Claims()), (naming.trial_id(AT * 1000 - 60_000), None, Claims())]
    shown = trial(earlier=earlier, decision=now, claims=Claims())
    table = earlier_table(shown)

    assert Table(
        "earlier", "Trials of this workload",
        ("Trial", "Begun (UTC)", "Verdict", "Candidate", "Speed-up", "Quality", "Saving",
         "Because"),
        [(TRIAL, "2026-11-20 02:00", VERDICTS["promote"].text, "compile",
          "1.20x (1.14 to 1.26), from 3 short blocks", UNKNOWN, UNKNOWN, now.messages[0]),
         ("m2k4t7x", UNKNOWN, VERDICTS["stay_off"].text, *[UNKNOWN] * 5)],
        marked=frozenset({0}), stacked=True,
    ) == replace(table, rows=table.rows[:2], note="")  # fmt: skip
    assert (earlier[1][0], "2026-11-20 01:59", VERDICTS["failed"].text, *[UNKNOWN] * 4) == (
        table.rows[2][:-1]
    )
    for changes in ({"earlier": ()}, {"on_probation": True}):
        assert earlier_table(Made(**{**vars(shown), **changes})) is None


def test_every_run_is_a_line_of_the_csv():
    pair = [
        arm("baseline", speed(2, job="s", applied=True, compile_seconds=1.5, samples_per_step=16.0,
                              step_seconds=(1.0, 2.0, 4.0))),
        arm("compile", full("canary", order=3, seed=17, job="q", metric=1.5, wall_seconds=84.0,
                            usd=2.5, applied=False, finished=False)),
    ]  # fmt: skip

    assert [
        "arm,stage,block,order,seed,mode,job,finished,applied,metric,wall_seconds,compile_seconds,"
        "steps,samples_per_step,usd",
        "baseline,speed,2,,,,s,True,True,,,1.5,3,16.0,",
        "compile,quality,,3,17,canary,q,False,False,1.5,84.0,,,,2.5",
    ] == runs_csv(trial(*pair)).splitlines()
    assert "" == runs_csv(trial())

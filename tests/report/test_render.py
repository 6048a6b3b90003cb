"""The report as a whole: complete, deterministic, inert, and sound with missing figures."""

import base64
import copy
import html
import json
import re
from dataclasses import replace
from functools import cache

import pytest

from compilegate.domain.claims import verdict_label
from compilegate.domain.codec import DocumentError
from compilegate.domain.decision import Verdict
from compilegate.domain.formats import UNKNOWN
from compilegate.domain.notes import SCRIPT_COMPILES, Note
from compilegate.domain.reasons import headline
from compilegate.domain.where_time_goes import WhereTimeGoes
from compilegate.report import words
from compilegate.report.render import message_text, render, subject_text
from compilegate.report.statements import key_figures
from compilegate.report.words import MetricCard
from compilegate.usecases.reports import read_trial_report
from tests.report import samples
from tests.report.samples import rendered

ALL = {**samples.SAMPLES, "failed": samples.failed}
PLACEHOLDERS = re.compile(r"\b(None|nan|inf|null|True|False|undefined)\b")
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
)


@cache
def _rendered(name):
    """A sample's report, rendered once for all tests that read it."""
    return rendered(ALL[name]())


def _visible(page):
    """The page's text without styles and tags."""
    body = page.partition("<body>")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize("name", ALL)
def test_every_report_is_stable_closed_and_complete(name):
    report = _rendered(name)
    verdict = json.loads(report.json)["headline"].replace("_", "\\_")

    assert report == rendered(ALL[name]())
    assert not re.findall(r"""(?:src|href|action)\s*=\s*["']?(?:https?:)?//""", report.html)
    assert not re.findall(r"@import|url\(", report.html)
    assert "default-src 'none'" in report.html
    assert "<script" not in report.html
    assert len(report.html.encode()) < 400_000
    for text in (_visible(report.html), report.markdown, report.message):
        assert not PLACEHOLDERS.findall(text)
    assert re.fullmatch("[ -~]{1,99}", report.subject)
    assert verdict in report.markdown.splitlines()[0]


@pytest.mark.parametrize("length", [13, 14, 31, 32, 60])
def test_a_long_subject_drops_the_speed_and_then_is_cut(length):
    """SNS takes less than 100 characters: with 14 it would be 100, with 32 without the speed."""
    source = samples.inconclusive()
    source["decision"]["workload"] = "w" * length
    whole, brief = (
        f"[compilegate local] {'w' * length}: Not proven: "
        + headline("quality_inconclusive").format(but=but, metric="eval_accuracy")
        for but in ("1.35x faster, but ", "")
    )
    expected = {13: whole, 14: brief, 31: brief}.get(length, f"{brief[:96].rstrip()}...")

    assert expected == subject_text(read_trial_report(source))


@pytest.mark.parametrize(
    ("sample", "cards", "figures"),
    [
        ("promote", {"Payback": "43 runs", "Cost": "$0.36"}, ["Payback: 43 runs, Cost: $0.36"]),
        ("promote", {"Payback": UNKNOWN, "Cost": "$0.36"}, ["Cost: $0.36"]),
        ("promote", {"Payback": UNKNOWN}, []),
        ("ineligible", {"Training": "$152.40", "Payback": UNKNOWN}, ["Training: $152.40"]),
    ],
)
def test_a_message_leaves_out_a_figure_that_is_a_dash(sample, cards, figures):
    trial = read_trial_report(samples.SAMPLES[sample]())
    judged = key_figures(trial.metric, trial.judged, trial.claims) if sample == "promote" else []
    shown = [MetricCard("judged", "1", "")] * len(judged)
    shown += [MetricCard(name, value, "") for name, value in cards.items()]

    message = message_text(trial, shown)
    assert ("\n".join([*judged, *figures]), False) == (
        message.split("\n\n")[2], "\n\n\n" in message,
    )  # fmt: skip


def test_a_message_of_a_failed_trial_says_why():
    failed = read_trial_report(samples.failed())

    assert set(words.lede(failed)) <= set(message_text(failed, []).splitlines())


def test_programs_get_the_records_and_what_may_be_said_of_them():
    source = samples.ineligible()
    place = {"script": "train.py", "line": 3, "source": "torch.compile(model)"}
    source["plan"] = replace(samples.promote()["plan"], notes=(Note(SCRIPT_COMPILES, place),))
    trial = read_trial_report(source)
    before = json.loads(render(trial).json)
    expected = {
        "schema": 1, "workload": "xgb-churn", "headline": words.headline(trial),
        "claims": trial.claims.to_dict(), "full_runs": None, SCRIPT_COMPILES: place,
        "reasons": [reason.as_document() for reason in trial.reasons],
        "context": {**source["context"], "simulated": None}, "decision": source["decision"],
    }  # fmt: skip
    vars(trial)["times"] = WhereTimeGoes("compile", 2, (), {}, {})

    assert json.loads(json.dumps(expected)) == before
    assert before | {"where_time_goes": trial.times.to_dict()} == json.loads(render(trial).json)


def test_the_arms_of_a_comment_have_the_figures_that_decide_and_no_others():
    rows = re.findall(r"^\| ([^|]+) \|", _rendered("cheaper_cluster").markdown, re.MULTILINE)

    assert [
        "Arm", "---", "Cluster", "Samples per second, short blocks", "Steady step, short blocks",
        "Compile time, warm cache", "Recompilations", "Peak memory", "Price of 1,000 samples",
        "Price of a production run", "Mean of eval\\_loss", "Full runs", "Failed runs",
        "Price of the same final loss",
    ] == rows[rows.index("Arm") :]  # fmt: skip


def test_evidence_and_runs_can_be_saved_from_the_page_and_the_evidence_judged_again():
    source = samples.promote()
    page, stem = rendered(source).html, "albert-docs-m2k4t7xz"
    link = re.search(rf'base64,([^"]+)" download="{stem}-evidence.json"', page)

    assert json.loads(base64.b64decode(link[1])) == json.loads(json.dumps(source["evidence"]))
    assert f'download="{stem}-runs.csv"' in page
    assert ["xgb-churn-m2k4t7xz-report.json"] == re.findall(
        'download="([^"]+)"', _rendered("ineligible").html
    )


def test_a_trial_of_many_long_runs_stays_a_light_page():
    source = samples.second_wins()
    for arm in source["evidence"]["arms"]:
        for run in arm["runs"]:
            run["step_seconds"] = run.get("step_seconds", []) * 5
        full = [run for run in arm["runs"] if run["stage"] == "quality"]
        blocks = [run for run in arm["runs"] if run["stage"] == "speed"]
        arm["runs"] += [{**run, "seed": 100 + n} for run in full for n in range(10)]
        arm["runs"] += [
            {**run, "block": run["block"] + 10 * n} for run in blocks for n in (1, 2, 3)
        ]

    assert len(rendered(source).html.encode()) < 400_000


def test_hostile_words_are_shown_and_never_run():
    source = samples.promote()
    source["decision"]["workload"] = HOSTILE
    source["decision"]["reasons"][0] = {"code": HOSTILE, "message": HOSTILE}
    source["context"] = {"stage": HOSTILE, "trial": HOSTILE, "simulated": HOSTILE}
    source["evidence"]["quality"]["metric"] = HOSTILE
    samples.rename_candidate(source, HOSTILE)
    source["eligibility"]["candidates"][0]["reasons"][0]["fix"] = HOSTILE
    report = rendered(source)

    assert "<img" not in report.html
    assert "<script" not in report.html
    assert "<script" not in report.markdown
    assert "<img" not in report.markdown


def _paths(document, prefix=()):
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield (*prefix, key)
        if isinstance(value, dict | list):
            yield from _paths(value, (*prefix, key))


def _small():
    """A promotion with short series: these tests render many times."""
    source = samples.promote()
    for arm in source["evidence"]["arms"]:
        for run in arm["runs"]:
            run["step_seconds"] = run.get("step_seconds", [])[:60]
            run["loss_curve"] = run.get("loss_curve", [])[:20]
    return source


def test_what_the_decision_does_not_say_is_left_out_or_named():
    source = _small()
    _without_each(source, [(key,) for key in source["decision"] if key != "verdict"])


@pytest.mark.slow
def test_a_single_figure_that_the_decision_does_not_say_is_left_out_or_named():
    source = _small()
    _without_each(source, [path for path in _paths(source["decision"]) if path != ("verdict",)])


def _without_each(source, paths):
    assert paths
    for path in paths:
        decision = copy.deepcopy(source["decision"])
        part = decision
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = None
        try:
            text = _visible(rendered({**source, "decision": decision}).html)
        except DocumentError as error:
            assert str(error).startswith(str(path[0])), path
        else:
            assert not PLACEHOLDERS.findall(text), path


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_is_reported_without_any_one_record(verdict):
    source = _small()
    source["decision"]["verdict"] = str(verdict)

    for record in ("evidence", "eligibility", "plan"):
        page = rendered({**source, record: None}).html
        assert verdict_label(verdict).text in _visible(page)


def test_what_is_unknown_is_a_dash_that_is_explained():
    source = samples.promote()
    source["decision"]["saving"] = None
    text = _visible(rendered(source).html)

    assert f"{UNKNOWN} is unknown." in text
    assert f"Saving per year {UNKNOWN} Needs a speed-up, a price and a run's length." in text


def test_broken_evidence_is_named_instead_of_drawn():
    source = samples.promote()
    source["decision"]["verdict"] = "invalid"
    del source["evidence"]["arms"][0]["name"]
    text = _visible(rendered(source).html)

    assert "The evidence could not be read" in text


def test_numbers_that_are_not_finite_do_not_reach_the_page():
    source = samples.promote()
    source["evidence"]["arms"][0]["runs"][-1]["loss_curve"][0][1] = float("inf")
    page = rendered(source).html

    assert not PLACEHOLDERS.findall(_visible(page))
    assert not re.findall(r' d="[^"]*(?:nan|inf)', page)


@pytest.mark.parametrize(
    ("name", "said"), [("promote", "to measure"), ("ineligible", "not eligible")]
)
def test_eligibility_is_named_as_the_check_names_it(name, said):
    assert f'id="eligible">Eligibility: {said}</h2>' in rendered(samples.SAMPLES[name]()).html

"""A production run begins once, and whatever is wrong with the flag it trains the baseline."""

from __future__ import annotations

import dataclasses
import logging

import pytest

from compilegate.domain import naming
from compilegate.domain.arithmetic import FLAG_PROBLEMS
from compilegate.domain.codec import write
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.job import RunJobs
from compilegate.usecases.production.begin_run import check_trainable
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production.runs import FLAG, NAME, ON, Production

DAY_ONE = 1_793_498_400  # 2026-11-01T02:00:00Z


@pytest.fixture
def production():
    return Production(change(SOUND, owner="ada"))


OFF, REVERTED = Flag(False, "off"), Flag(False, "reverted")


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        ({"training__environment": {"A": "x" * 600}}, r"training\.environment"),
        ({"training__instance_type": "ml.gone.large"}, "ml.gone.large"),
    ],
    ids=["file refused", "job refused"],
)
def test_a_flag_is_repaired_even_where_the_run_cannot_begin(production, broken, field):
    production.promote(REVERTED)
    production.services.flags.write(FLAG, ON.to_json())
    production.register(change(SOUND, **broken), "s2")

    with pytest.raises(InvalidInputError, match=field):
        production.begin()
    assert REVERTED.to_json() == production.services.flags.read(FLAG)
    assert [] == production.entries("run_begun")


@pytest.mark.parametrize(
    ("broken", "text", "why", "said"),
    [("read", ON.to_json(), "unreadable", "rate exceeded"), ("write", "{on", "malformed", FLAG)],
)
def test_a_parameter_that_cannot_be_read_or_repaired_is_the_baseline_and_says_why(
    production, *, broken, text, why, said
):
    def refuse(*_):
        raise OSError("rate exceeded")

    production.promote()
    production.services.flags.write(FLAG, text)
    setattr(production.services.flags, broken, refuse)

    assert ("baseline", why) == tuple(production.begin()[key] for key in ("arm", "why"))
    assert said in production.entries("run_begun")[0]["flag_explanation"]


def test_the_count_is_a_metric_that_cloudwatch_reads_out_of_the_log(production, caplog):
    production.services.flags.write(FLAG, "{on")
    with caplog.at_level(logging.WARNING):
        run = production.begin()["run"]

    (record,) = [one for one in caplog.records if hasattr(one, FLAG_PROBLEMS)]
    (metrics,) = record._aws["CloudWatchMetrics"]
    assert ("Compilegate", [["Stage"]], FLAG_PROBLEMS) == (
        metrics["Namespace"], metrics["Dimensions"], metrics["Metrics"][0]["Name"],
    )  # fmt: skip
    assert (NAME, run, "malformed") == (record.workload, record.run, record.problem)
    assert ("prod", 1) == (record.Stage, getattr(record, FLAG_PROBLEMS))
    assert production.services.clock.now() * 1000 == record._aws["Timestamp"]


@pytest.mark.parametrize(
    ("flag", "why", "warnings"),
    [
        (OFF, "scheduled", 0),
        (Flag(False, "stale", "compile"), "stale", 0),
        (dataclasses.replace(ON, overrides={"image": "bad image"}), "unfit", 1),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_only_a_flag_that_was_not_followed_is_warned_of_by_the_execution_that_begins_the_run(
    production, caplog, *, flag, why, warnings, is_first
):
    production.promote(flag)
    ledger = production.services.ledger.raw
    if not is_first:
        put = ledger.put_once
        ledger.put_once = lambda name, key, entry: put(name, key, {**entry, "execution": "faster"})
    answer = production.begin()

    assert {
        "duplicate": not is_first, "run": naming.trial_id(1000 * DAY_ONE), "arm": "baseline",
        "why": why, "attempt": write(Attempt()), "owner": "ada",
    } == answer  # fmt: skip
    (begun,) = production.services.ledger.history(NAME).begun
    keys = naming.spec_key(NAME, "s1"), naming.source_key(NAME, "s1")
    assert keys == (begun.spec_key, begun.source_key)
    assert ["WARNING"] * (warnings * is_first) == [one.levelname for one in caplog.records]
    assert answer == {**production.begin(), "duplicate": not is_first}


@pytest.mark.parametrize(
    ("fix", "said"),
    [("take another", "take another"), ("", "see what would fit with `compilegate check` and the "
      "workload file")],
)  # fmt: skip
def test_what_could_not_be_trained_is_refused_before_it_is_registered(
    production, monkeypatch, fix, said
):
    spec = {"workload": SOUND.to_dict(), "source_key": naming.source_key(NAME, "s1")}
    before = dict(production.services.store.objects)
    check_trainable(spec, production.services)
    error = InvalidInputError("is gone", field="image", value="v", fix=fix)

    def refuse(*_):
        raise error

    monkeypatch.setattr(RunJobs, "request", refuse)
    with pytest.raises(InvalidInputError) as refused:
        check_trainable(spec, production.services)
    shown = refused.value
    assert ("could not be trained: is gone", "image", "v", said) == (
        shown.problem, shown.field, shown.value, shown.fix,
    )  # fmt: skip
    assert before == production.services.store.objects


def test_a_damaged_ledger_of_the_flag_trains_the_baseline_and_leaves_the_parameter(production):
    production.promote()
    production.services.ledger.raw.put_once(NAME, "flag#000002", {"kind": "flag", "at": 2})

    answer = production.begin()

    (entry,) = production.entries("run_begun")
    assert ("baseline", "unreadable") == (answer["arm"], entry["flag_problem"])
    assert "kind 'flag'" in entry["flag_explanation"]
    assert ON.to_json() == production.services.flags.values[FLAG]

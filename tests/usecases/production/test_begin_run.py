"""A production run begins once, and whatever is wrong with the flag it trains the baseline."""

from __future__ import annotations

import dataclasses
import logging
from datetime import UTC, datetime

import pytest

from compilegate.domain import naming
from compilegate.domain.arithmetic import FLAG_PROBLEMS
from compilegate.domain.codec import write
from compilegate.domain.decision import ProbationStep, RequestedArm
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.flag import Flag
from compilegate.domain.production.registration import Registration
from compilegate.domain.records.production import Review
from compilegate.usecases.records import to_json
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production.runs import FLAG, NAME, ON, Production

CONFIRM = ProbationStep((RequestedArm("baseline", confirm=True),), "why")


@pytest.fixture
def production():
    return Production()


def counted(caplog):
    """Problems that became a metric, by their kind."""
    return [record.problem for record in caplog.records if hasattr(record, FLAG_PROBLEMS)]


def test_a_run_is_named_by_its_scheduled_time_and_noted_with_what_it_trains(production):
    production.promote()

    answer = production.begin(day=3)

    at = datetime(2026, 11, 3, 2, tzinfo=UTC)
    assert (False, naming.trial_id(int(at.timestamp() * 1000)), "compile", "flag") == (
        answer["duplicate"], answer["run"], answer["arm"], answer["why"],
    )  # fmt: skip
    (entry,) = production.entries("run_begun")
    assert {
        "arm": "compile", "overrides": {"compiler": "torch_compile"}, "decision_id": "d1",
        "flag": ON.to_json(), "flag_problem": None, "spec_key": naming.spec_key(NAME, "s1"),
        "source_key": naming.source_key(NAME, "s1"), "number": 1, "seed": 1,
    }.items() <= entry.items()  # fmt: skip


def test_a_second_execution_of_the_same_time_is_a_duplicate_and_changes_nothing(production):
    first = production.begin(execution="one")
    production.promote()

    second = production.begin(execution="two")

    assert (False, True) == (first["duplicate"], second["duplicate"])
    assert first["run"] == second["run"]
    assert ["baseline"] == [entry["arm"] for entry in production.entries("run_begun")]


def test_two_executions_that_look_at_the_same_moment_agree_on_who_came_first(production, caplog):
    first = production.begin(execution="one")
    # What the second saw was read before the first had written.
    production.services.ledger.raw.entries = lambda *_: []
    production.services.flags.write(FLAG, "{on")

    second = production.begin(execution="two")

    assert (True, first["run"], first["arm"]) == (
        second["duplicate"], second["run"], second["arm"],
    )  # fmt: skip
    assert [] == counted(caplog)


OFF, REVERTED = Flag(False, "off"), Flag(False, "reverted")
STALE = Flag(False, "stale", "compile")
OTHER = dataclasses.replace(ON, overrides={"compiler": "none"})


@pytest.mark.parametrize(
    ("decided", "text", "why", "says"),
    [
        (ON, "{on", "malformed", FLAG),
        (ON, "[" * 4000, "malformed", FLAG),
        (ON, '{"schema": 2}', "malformed", FLAG),
        (ON, OFF.to_json(), "differs", FLAG),
        (ON, OTHER.to_json(), "differs", FLAG),
        (ON, None, "differs", FLAG),
        (None, ON.to_json(), "differs", "said on (compile) and the ledger off"),
        (STALE, ON.to_json(), "differs", "said on (compile) and the ledger off"),
        (REVERTED, OFF.to_json(), "scheduled", None),
    ],
    ids=[
        "no JSON", "endless nesting", "another schema", "off by hand", "other overrides",
        "deleted by hand", "on by hand", "on by hand while stale", "off in other words",
    ],
)  # fmt: skip
def test_a_flag_that_is_not_what_was_decided_is_the_baseline_counted_and_repaired(
    production, caplog, *, decided, text, why, says
):
    if decided is not None:
        production.promote(decided)
    production.services.flags.values.pop(FLAG, None)
    if text is not None:
        production.services.flags.write(FLAG, text)

    answer = production.begin()

    assert ("baseline", why) == (answer["arm"], answer["why"])
    assert ([why] if says else []) == counted(caplog)
    assert [] == [line for line in caplog.messages if "its promotion is stale" in line]
    (entry,) = production.entries("run_begun")
    assert (why if says else None, text) == (entry["flag_problem"], entry["flag"])
    assert (says or "None") in str(entry["flag_explanation"])
    assert (decided or OFF).to_json() == production.services.flags.read(FLAG)


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


def test_a_flag_that_cannot_be_read_is_the_baseline_and_says_why(production, caplog):
    production.promote()

    def refuse(_name):
        raise OSError("rate exceeded")

    production.services.flags.read = refuse
    answer = production.begin()

    assert ("baseline", "unreadable") == (answer["arm"], answer["why"])
    assert ["unreadable"] == counted(caplog)
    assert "rate exceeded" in production.entries("run_begun")[0]["flag_explanation"]


def test_a_parameter_that_cannot_be_repaired_holds_no_run_up(production):
    production.promote()
    production.services.flags.write(FLAG, "{on")

    def refuse(_name, _value):
        raise OSError("rate exceeded")

    production.services.flags.write = refuse

    assert "malformed" == production.begin()["why"]


def test_the_count_is_a_metric_that_cloudwatch_reads_out_of_the_log(production, caplog):
    production.services.flags.write(FLAG, "{on")
    with caplog.at_level(logging.WARNING):
        production.begin()

    (record,) = [one for one in caplog.records if hasattr(one, FLAG_PROBLEMS)]
    (metrics,) = record._aws["CloudWatchMetrics"]
    assert ("Compilegate", [["Stage"]], FLAG_PROBLEMS) == (
        metrics["Namespace"], metrics["Dimensions"], metrics["Metrics"][0]["Name"],
    )  # fmt: skip
    assert ("prod", 1) == (record.Stage, getattr(record, FLAG_PROBLEMS))
    assert production.services.clock.now() * 1000 == record._aws["Timestamp"]


@pytest.mark.parametrize(
    "overrides",
    [{"instance_type": "ml.gone.large"}, {"entry_point": "../x"}, {"image": "bad image"}],
    ids=["machine", "script", "image"],
)
def test_an_override_that_does_not_fit_any_more_is_the_baseline(production, caplog, overrides):
    production.promote(dataclasses.replace(ON, overrides=overrides))

    answer = production.begin()

    assert ("baseline", "unfit") == (answer["arm"], answer["why"])
    assert ["unfit"] == counted(caplog)
    (entry,) = production.entries("run_begun")
    assert ({}, None, False) == (entry["overrides"], entry["canary"], entry["confirm"])
    assert str(next(iter(overrides.values()))) in entry["flag_explanation"]


def test_a_run_keeps_the_spec_with_which_it_began(production):
    production.begin()
    production.register(change(SOUND, training__batch_size=64), "s2")

    assert "32" == production.build()["HyperParameters"]["batch_size"]


def test_a_workload_that_is_not_registered_or_retired_is_not_trained(production):
    production.register(SOUND, "s1", active=False)
    with pytest.raises(InvalidInputError, match="retired"):
        production.begin()
    production.services.store.objects.clear()
    with pytest.raises(NotFoundError, match="not registered"):
        production.begin()
    assert [] == production.entries("run_begun")


def test_a_run_that_was_lost_is_asked_for_again_once_it_cannot_be_on_its_way_any_more(production):
    production.promote()
    at = production.services.clock.now()
    review = Review(at, "r", "abcd1234", "compile", next=CONFIRM)
    production.services.ledger.append(NAME, review)

    answers = [production.begin(1)]
    production.services.clock.seconds += 3600
    answers.append(production.begin(2))
    production.services.clock.seconds += 61 * 3600  # two jobs of 18 hours and a day's waiting
    answers.append(production.begin(3))

    assert ["confirm", "flag", "confirm"] == [answer["why"] for answer in answers]


@pytest.mark.parametrize("hold", [True, False])
def test_of_runs_that_check_an_alarm_the_candidates_model_is_held_back(production, hold):
    production.register(change(SOUND, policy__hold_models=hold))
    production.promote()
    pair = tuple(RequestedArm(arm, confirm=True) for arm in ("baseline", "compile"))
    review = Review(production.services.clock.now(), "r", "abcd1234", "compile",
                    next=ProbationStep(pair, "why"))  # fmt: skip
    production.services.ledger.append(NAME, review)
    seen = []
    for day in (1, 2, 3):
        begun = production.begin(day)
        tags = {tag["Key"]: tag["Value"] for tag in production.build()["Tags"]}
        seen.append((begun["arm"], begun["why"], tags.get(naming.TAG_RELEASE)))

    assert seen == [
        ("baseline", "confirm", None), ("compile", "confirm", "hold" if hold else None),
        ("compile", "flag", None),
    ]  # fmt: skip


def test_a_damaged_ledger_of_the_flag_trains_the_baseline_and_leaves_the_parameter(production):
    production.promote()
    production.services.ledger.raw.put_once(NAME, "flag#000002", {"kind": "flag", "at": 2})

    answer = production.begin()

    (entry,) = production.entries("run_begun")
    assert ("baseline", "unreadable") == (answer["arm"], entry["flag_problem"])
    assert "kind 'flag'" in entry["flag_explanation"]
    assert ON.to_json() == production.services.flags.values[FLAG]


def test_the_spec_of_another_workload_is_never_trained(production):
    other = dataclasses.replace(SOUND, name="other")
    key = naming.spec_key("other", "s1")
    spec = {"workload": other.to_dict(), "source_key": naming.source_key("other", "s1")}
    production.services.store.put(key, to_json(spec))
    registration = write(Registration(NAME, key, "s1"))
    production.services.store.put(naming.registration_key(NAME), to_json(registration))

    with pytest.raises(InvalidInputError, match=r"spec_key: is not a spec of bert-docs .*other"):
        production.begin()

"""The flag reads back as it was written, and anything odd is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import (
    MAX_BYTES,
    OFF,
    STATES,
    CompileBundle,
    Flag,
    parse_flag,
)
from compilegate.domain.flag_change import (
    LONGEST_REASON,
    SET,
    Override,
    override_change,
    turned_off,
)
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.trials import TrialStarted


@pytest.mark.parametrize(
    "text",
    [
        "", "on", "{}", "[]", '{"schema": 1, "enabled": 1}', "[" * 4000,
        '{"schema": 2, "enabled": false, "state": "off"}',
    ],
)  # fmt: skip
def test_a_malformed_flag_is_refused(text):
    with pytest.raises(InvalidInputError):
        parse_flag(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": 1, "enabled": false, "enabled": true, "state": "probation"}',
        '{"schema": 1, "enabled": true, "state": "probation", '
        '"overrides": {"batch_size": 48, "batch_size": 96}}',
        '{"schema": 1, "enabled": true, "state": "probation", '
        '"overrides": {"hyperparameters": {"epochs": 3, "epochs": 4}}}',
    ],
    ids=["of the flag", "of an override", "of a hyperparameter"],
)
def test_of_a_key_written_twice_neither_value_counts(text):
    with pytest.raises(InvalidInputError) as refused:
        parse_flag(text)

    assert "flag" == refused.value.field


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("enabled", [True, False])
def test_what_was_turned_off_is_never_on(enabled, state):
    text = json.dumps({"schema": 1, "enabled": enabled, "state": state})
    if enabled and state in ("off", "reverted"):
        with pytest.raises(InvalidInputError) as refused:
            parse_flag(text)
        assert "flag.state" == refused.value.field
    else:
        assert Flag(enabled, state) == parse_flag(text)


def test_a_flag_above_the_parameters_size_is_refused():
    def written(more: int) -> str:
        return Flag(enabled=True, state="probation", overrides={"image": "é" * more}).to_json()

    fits = (4096 - len(written(0))) // len(json.dumps("é")[1:-1])
    assert 4090 < len(written(fits)) <= 4096
    with pytest.raises(InvalidInputError, match="4096 bytes"):
        written(fits + 1)


BUNDLE = CompileBundle("compile-cache/bert-docs/bundles/" + "a" * 64 + ".json", "a" * 64)


def test_a_bundle_reads_back_as_itself_and_is_left_out_where_there_is_none():
    flag = Flag(True, "probation", "compile", compile_bundle=BUNDLE)

    assert flag == parse_flag(flag.to_json())
    assert "compile_bundle" not in json.loads(OFF.to_json())


@pytest.mark.parametrize(
    "bundle",
    [
        {"sha256": "a" * 64},
        {"place": "p", "sha256": "../secret"},
        {"place": "p", "sha256": "A" * 64},
    ],
)
def test_a_bundle_without_place_or_digest_makes_a_flag_malformed(bundle):
    document = {"schema": 1, "enabled": False, "state": "off", "compile_bundle": bundle}
    with pytest.raises(InvalidInputError):
        parse_flag(json.dumps(document))


def test_a_flag_that_has_no_room_for_a_bundle_goes_without():
    room = MAX_BYTES - len(Flag(True, "probation", "compile").to_json()) - 100
    full = Flag(True, "probation", "compile", {"image": "i" * room})

    assert full == parse_flag(replace(full, compile_bundle=BUNDLE).to_json())


# Manual changes of a flag: what a person may say, and which change follows.

NOW = 1_790_000_000
ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, decision_id="d1")
ANA = Override("ana", "measured elsewhere")


def change(
    override: Override = ANA,
    flag: Flag = ON,
    versions: tuple[FlagVersion, ...] = (),
    trials: tuple[TrialStarted, ...] = (),
    now: int = NOW,
) -> FlagVersion:
    details = {"trial": "t1"}
    return override_change(SET, flag, override, versions, trials, now=now, details=details)


def made_of(made: FlagVersion, **changes: Any) -> FlagVersion:
    """The version that a change became."""
    return replace(made, **{"version": 1, **changes})


@pytest.mark.parametrize(
    "reason", ["", "   ", "two\nlines", "a \x1b[31mcolour", "x" * (LONGEST_REASON + 1)]
)
def test_an_override_whose_reason_is_not_one_short_line_is_refused(reason):
    with pytest.raises(InvalidInputError, match="--reason"):
        Override("ana", reason)


def test_the_longest_reason_counts_without_the_spaces_around_it():
    reason = f"  {'x' * LONGEST_REASON} "

    assert "x" * LONGEST_REASON == change(Override("ana", reason)).reason


def test_an_override_says_who_wants_what_and_which_trial_it_rests_on():
    asked = change()

    assert ("human:ana", SET, ON, "d1", {"trial": "t1"}, NOW) == (
        asked.by, asked.action, asked.flag, asked.decision_id, asked.details, asked.decided_at,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("now", "state"),
    [(ON, "reverted"), (OFF, "off"), (Flag(False, "stale", "compile"), "stale")],
)
def test_a_flag_that_is_off_keeps_the_state_that_says_why(now, state):
    off = turned_off(now)

    assert (False, state, now.candidate, now.decision_id, {}) == (
        off.enabled, off.state, off.candidate, off.decision_id, off.overrides,
    )  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        {"override": Override("ben", "measured elsewhere")},
        {"override": Override("ana", "another reason")},
        {"flag": turned_off(ON)},
    ],
    ids=["author", "reason", "flag"],
)
def test_an_override_that_says_something_else_is_another_change(other):
    first = change()

    assert first.change_id != change(**other).change_id
    assert first.change_id != change(versions=(made_of(first),), **other).change_id


def test_an_override_that_a_later_trial_is_not_bound_by_is_made_anew():
    first = change()
    version = made_of(first)
    before, after = (TrialStarted(NOW + at, "arn:x-bert-docs-t2", known)
                     for at, known in ((-60, 0), (60, 1)))  # fmt: skip

    assert first.change_id == change(versions=(version,), trials=(before,)).change_id
    assert first.change_id != change(versions=(version,), trials=(after,), now=NOW + 90).change_id


def test_an_override_after_a_machines_change_is_a_new_one():
    first = change()
    machine = made_of(first, version=2, change_id="review#1#revert", by="train")

    assert first.change_id != change(versions=(made_of(first), machine)).change_id

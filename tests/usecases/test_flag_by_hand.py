"""A person's word on a flag: what is said once more, and what merely runs again."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import ledger_keys
from compilegate.usecases.flag.change_flag import change_flag, latest_flag
from compilegate.usecases.flag.override import AGAIN_SECONDS, Override, revert_by_hand
from tests import fakes
from tests.usecases.flag_changes import WORKLOAD, assert_sound, history, wanted

FREEZE = Override("ana", "code freeze")


@pytest.fixture
def services() -> Any:
    """The flag is on."""
    services = fakes.services("prod")
    change_flag(WORKLOAD, wanted("enable"), services=services)
    return services


def say(services: Any, after: int) -> int:
    """Ana's word, so many seconds later; the version that it is recorded as."""
    services.clock.seconds += after
    return revert_by_hand(WORKLOAD, FREEZE, services=services).version


def begin_trial(services: Any, trial: str, after: int) -> int:
    """When it began."""
    services.clock.seconds += after
    now = int(services.clock.now())
    entry = {"kind": "started", "execution": f"arn:{WORKLOAD}-{trial}", "at": now}
    services.ledger.put_once(WORKLOAD, ledger_keys.started_entry(trial), entry)
    return now


def test_a_command_that_runs_again_soon_is_one_word(services: Any) -> None:
    assert [2, 2] == [say(services, 10), say(services, AGAIN_SECONDS)]


def test_the_same_word_later_is_said_once_more(services: Any) -> None:
    assert [2, 3] == [say(services, 10), say(services, AGAIN_SECONDS + 1)]


def test_a_word_that_is_said_again_binds_a_trial_that_began_in_between(services: Any) -> None:
    say(services, 10)
    began = begin_trial(services, "b", after=5)
    said_again = say(services, 5)

    promotion = wanted("enable", "trial#b#flag", decided_at=began)
    made = change_flag(WORKLOAD, promotion, services=services)

    assert (3, False) == (said_again, made.changed)
    assert made.held_by is not None
    assert not latest_flag(WORKLOAD, services)[0].enabled
    assert 3 == len(history(services))
    assert_sound(services)

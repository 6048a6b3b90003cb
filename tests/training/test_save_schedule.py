"""When a run saves: by time, for a small share of it, and in every process after the same step."""

import threading

import pytest
from compilegate_runtime.ranks import Ranks
from compilegate_runtime.saving import LARGEST_SHARE, AgreedSaves, SaveSchedule
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzzing import at_most
from tests.training.stand_ins import Clock, Store


def trained(seconds, step_seconds, save_seconds, minutes=5.0):
    """Train for so long; returns when each save began, and the time that all of them took."""
    clock = Clock()
    schedule, begun, spent = SaveSchedule(minutes, clock), [], 0.0
    while clock.now < seconds:
        clock.now += step_seconds
        if schedule.due():
            begun.append(clock.now)
            with schedule.saving():
                clock.now += save_seconds
            spent += save_seconds
    return begun, spent


def test_a_quick_save_is_made_every_few_minutes():
    begun, _ = trained(3600, step_seconds=1, save_seconds=2)

    assert len(begun) == 11
    assert begun[:3] == [300, 602, 904]


@at_most(50)
@given(st.floats(0.01, 1000), st.floats(0.1, 60), st.floats(0, 30))
def test_saving_after_the_first_time_takes_a_small_share_at_most(save_seconds, step, minutes):
    between = max(60 * minutes, save_seconds / LARGEST_SHARE)
    begun, spent = trained(min(100_000, 20 * max(between, step)), step, save_seconds, minutes)

    if len(begun) > 1:
        since_first = begun[-1] + save_seconds - begun[0]
        assert spent - save_seconds <= LARGEST_SHARE * since_first


def test_no_minutes_means_no_saves():
    assert ([], 0.0) == trained(100_000, 1, 1, minutes=0)


def processes(count, train, store=None):
    """Run ``train(ranks)`` in so many processes; returns what each one answered."""
    store, answers = store or Store(), [None] * count

    def run(rank):
        answers[rank] = train(Ranks(rank, count, store))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return answers


@pytest.mark.parametrize("steps_before", [0, 500])
def test_processes_with_clocks_of_their_own_save_after_the_same_steps(steps_before):
    def train(ranks):
        clock = Clock()
        saves = AgreedSaves(SaveSchedule(5.0, clock), ranks, clock)
        saves.begin(steps_before)
        collected = []
        for step in range(steps_before + 1, steps_before + 2001):
            clock.now += 1.0 + 0.2 * ranks.rank  # the others' clocks are of no account
            if saves.due(step):
                collected.append(step - steps_before)
                saves.schedule.saved(3.0)
        return collected

    first, *others = processes(3, train)

    assert others == [first] * 2
    assert 5 <= len(first) <= 7
    gaps = [later - earlier for earlier, later in zip([0, *first], first, strict=False)]
    assert all(300 <= gap <= 620 for gap in gaps)


def test_a_run_that_becomes_slower_is_met_again_in_time():
    def train(ranks):
        clock = Clock()
        saves = AgreedSaves(SaveSchedule(5.0, clock), ranks, clock)
        saves.begin(0)
        begun = []
        for step in range(1, 400):
            clock.now += 0.01 if step < 40 else 10.0
            if saves.due(step):
                begun.append(clock.now)
        return begun

    first, second = processes(2, train)

    assert len(first) == len(second)
    assert first[0] < 900


def test_processes_without_a_store_save_only_when_the_script_does(monkeypatch):
    monkeypatch.setattr("compilegate_runtime.ranks._store_of_torch", lambda: None)
    clock = Clock()
    saves = AgreedSaves(SaveSchedule(5.0, clock), Ranks(0, 2), clock)
    clock.now = 10_000.0

    assert not any(saves.due(step) for step in range(1, 100))


def test_the_first_process_knows_when_all_have_written_their_part():
    order = []

    def train(ranks):
        if ranks.rank:
            order.append(ranks.rank)
        here = ranks.all_here("saved/7")
        if not ranks.rank:
            order.append("first")
        return here

    assert [True] * 3 == processes(3, train)
    assert "first" == order[-1]


def test_a_part_that_never_came_is_missed():
    class Timeout(Store):
        def wait(self, _keys, _within):
            raise RuntimeError("timeout")

    assert [False] == processes(1, lambda ranks: Ranks(0, 2, ranks._store).all_here("saved/7"),
                                Timeout())  # fmt: skip

"""Which rows ``list`` shows, in which order, and that its figures are of all that were chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fleet.listing import COLUMNS, Filters, listing, state_of
from compilegate.domain.fleet.month import Amount, Estimate
from compilegate.domain.fleet.row import NEEDS, PHASES, DayOfRuns, LastRun, Need, Row, RowFlag

NOW = 1_790_000_000
DAY = NOW // 86_400


def row(name: str, state: str = "off", *needs: tuple[str, int], **fields: object) -> Row:
    """A registered workload; ``needs`` are codes and for how many seconds each is due."""
    made = Row(
        workload=name, registered=True, active=True,
        flag=RowFlag(state, state in ("probation", "permanent"), "compile", NOW - 50),
        needs=tuple(Need(code, NOW - since) for code, since in needs), upto={"flag": "flag#1"},
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


FLEET = [
    row("ads", "permanent", owner="ads", saved=Estimate(9, 7_000_000, 300_000, 2),
        instance="ml.g5.xlarge", days=(DayOfRuns(DAY, 4, 1), DayOfRuns(DAY - 7, 9, 9))),
    row("bert", "permanent", owner="nlp", saved=Estimate(9, 5_000_000, 400_000, 0),
        instance="ml.p4d.24xlarge", trials=Amount(1, 3_000_000),
        last_run=LastRun(NOW - 9, "c", True)),
    row("ctr", "stale", ("stale", 30), owner="ads", stale=("image",), instance="ml.g5.48xlarge"),
    row("gpt", "reverted", ("reverted", 10), ("failed", 500), owner="nlp"),
    row("lm", "off", ("approve", 0), phase="approval", trial="t", trials=Amount(1, 4_000_000)),
    row("old", "permanent", active=False, owner="ads"),
    row("rank", "reverted", ("reverted", 20), ("no_baseline", -60), owner="ads"),
    row("vit", "off", ("failed", -1), owner="nlp", phase="measuring", trial="t"),
    row("xgb", flag=None),
]  # fmt: skip
URGENT = ["lm", "rank", "gpt", "ctr", "vit", "ads", "bert", "xgb", "old"]


def names(**chosen: tuple[str, ...] | bool) -> list[str]:
    """The workloads that the filters take, in order of name."""
    filters = Filters(**chosen)  # type: ignore[arg-type]
    return [one.workload for one in listing(FLEET, filters, NOW, sort="workload").rows]


def test_what_needs_a_person_comes_first_then_trials_then_by_saving_and_retired_ones_last():
    for reverse, urgent in ((False, URGENT), (True, URGENT[::-1])):
        found = listing(FLEET[::-1], Filters(), NOW, reverse=reverse)
        assert urgent == [one.workload for one in found.rows]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"owner": ("ads",)}, ["ads", "ctr", "old", "rank"]),
        ({"owner": ("",)}, ["lm", "xgb"]),
        ({"state": ("stale", "reverted")}, ["ctr", "gpt", "rank"]),
        ({"state": ("retired",)}, ["old"]),
        ({"state": ("unreadable",)}, ["xgb"]),
        ({"phase": ("approval", "measuring")}, ["lm", "vit"]),
        ({"need": ("any",)}, ["ctr", "gpt", "lm", "rank"]),
        ({"instance": ("g5",)}, ["ads", "ctr"]),
        ({"instance": ("ml.g5.xlarge",)}, ["ads"]),
        ({"stale": True}, ["ctr"]),
        ({"owner": ("ads",), "need": ("any",)}, ["ctr", "rank"]),
        ({"need": ("failed", "approve")}, ["gpt", "lm"]),
    ],
)
def test_filters_take(chosen, expected):
    assert expected == names(**chosen)


@pytest.mark.parametrize(
    ("chosen", "field", "fix"),
    [
        ({"owner": ("NPL",)}, "--owner", "did you mean nlp?"),
        ({"owner": ("nobody",)}, "--owner", "there are ads, nlp"),
        ({"state": ("reverting",)}, "--state", "did you mean reverted?"),
        ({"instance": ("zzz",)}, "--instance",
         "there are g5, ml.g5, ml.g5.48xlarge, ml.g5.xlarge, ml.p4d, ml.p4d.24xlarge, p4d"),
        ({"phase": ("canari",)}, "--phase", "did you mean canary?"),
        ({"need": ("aprove",)}, "--need", "did you mean approve?"),
    ],
)  # fmt: skip
def test_an_unknown_word_is_refused_with_those_that_are_near(chosen, field, fix):
    with pytest.raises(InvalidInputError) as raised:
        names(**chosen)

    assert (field, chosen[field[2:]][0], fix) == (
        raised.value.field, raised.value.value, raised.value.fix,
    )  # fmt: skip


def test_each_of_several_words_is_checked():
    with pytest.raises(InvalidInputError, match="did you mean nlp"):
        names(owner=("ads", "NPL"))


def test_of_many_owners_a_few_are_named_and_the_others_counted():
    many = [row(f"w{number}", owner=f"team-{number:02}") for number in range(15)]

    with pytest.raises(InvalidInputError, match="team-11 and 3 more"):
        listing(many, Filters(owner=("x",)), NOW)
    with pytest.raises(InvalidInputError, match="there are none"):
        listing([], Filters(owner=("x",)), NOW)
    with pytest.raises(InvalidInputError, match=r"did you mean (team-\d\d or ){2}team-\d\d\?"):
        listing(many, Filters(owner=("team-0",)), NOW)


def test_figures_are_of_all_that_were_chosen_not_of_those_that_are_shown():
    found = listing(FLEET, Filters(), NOW, limit=2)
    of_ads = listing(FLEET, Filters(owner=("ads",)), NOW, limit=1)

    assert (["lm", "rank"], 7) == ([one.workload for one in found.rows], found.more)
    counts = found.counts
    assert (9, 4, 2, 4, 1) == (
        counts.workloads, counts.need_a_person, counts.in_a_trial, counts.runs, counts.failed,
    )  # fmt: skip
    assert {"reverted": 2, "off": 2, "permanent": 2, "stale": 1, "retired": 1, "unreadable": 1} == (
        counts.states
    )
    assert [("measuring", 1), ("approval", 1)] == list(counts.phases.items())
    assert [("approve", 1), ("reverted", 2), ("stale", 1), ("failed", 1)] == list(
        counts.needs.items()
    )
    assert Estimate(18, 12_000_000, 500_000, 2) == found.totals.saved
    assert Amount(2, 7_000_000) == found.totals.trials
    later = listing([row("w", "of_a_later_release")], Filters(), NOW).counts.states
    assert {"of_a_later_release": 1} == later
    assert (3, 4, Estimate(9, 7_000_000, 300_000, 2), Amount()) == (
        of_ads.more, of_ads.counts.workloads, of_ads.totals.saved, of_ads.totals.trials,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("column", "first", "reverse", "last"),
    [
        ("saved_usd", "ads", False, ["lm", "old", "rank", "vit", "xgb"]),
        ("saved_usd", "bert", True, ["lm", "old", "rank", "vit", "xgb"]),
        ("trial_usd", "lm", False, ["xgb"]),
        ("runs", "ads", False, ["xgb"]),
    ],
)
def test_numbers_are_sorted_the_largest_first_text_from_a_on_and_unknown_ones_stay_last(
    column, first, reverse, last
):
    found = listing(FLEET, Filters(), NOW, sort=column, reverse=reverse)
    ordered = [one.workload for one in found.rows]

    assert first == ordered[0]
    assert last == ordered[-len(last) :]


def test_each_column_has_its_value_or_none():
    whole = row(
        "w", "probation", ("stale", 9), ("failed", 4), owner="o", phase="canary", trial="t1",
        instance="ml.g5.xlarge", instances=2, image="pytorch 2.8", family="cnn", stale=("a", "b"),
        days=(DayOfRuns(DAY - 6, 3, 2),), last_run=LastRun(7, "c", False),
        saved=Estimate(1, 2_500_000), trials=Amount(1, 3_000_001),
    )  # fmt: skip
    empty = Row(workload="w")

    assert {
        "workload": "w", "owner": "o", "state": "probation", "candidate": "compile",
        "since": NOW - 50, "phase": "canary", "trial": "t1", "instance": "ml.g5.xlarge",
        "instances": 2, "image": "pytorch 2.8", "family": "cnn", "stale": "a b", "runs": 3,
        "failed": 2, "last_run": 7, "saved_usd": 2.5, "trial_usd": 3.000001,
        "needs": "stale failed", "needs_since": NOW - 9,
    } == {name: column(whole, NOW) for name, column in COLUMNS.items()}  # fmt: skip
    assert {"workload": "w", "state": "unreadable", "runs": 0, "failed": 0, "trial_usd": 0} == {
        name: column(empty, NOW)
        for name, column in COLUMNS.items()
        if column(empty, NOW) is not None
    }
    assert RowFlag("unreadable", enabled=False) == empty.known_flag
    unpriced = replace(empty, trials=Amount(unknown=3))
    assert COLUMNS["trial_usd"](unpriced, NOW) is None


def test_a_column_that_there_is_not_cannot_be_sorted_by():
    with pytest.raises(InvalidInputError, match="did you mean saved_usd"):
        listing(FLEET, Filters(), NOW, sort="saved")


rows = st.lists(
    st.builds(
        Row,
        workload=st.text("abc", min_size=1, max_size=3),
        owner=st.sampled_from([None, "a", "b"]),
        registered=st.booleans(),
        active=st.booleans(),
        flag=st.none() | st.builds(RowFlag, st.sampled_from(["off", "stale"]), st.booleans()),
        phase=st.sampled_from(PHASES),
        saved=st.builds(Estimate, st.integers(0, 3), st.integers(-9, 9), st.integers(0, 9)),
        needs=st.lists(st.sampled_from(NEEDS), max_size=2, unique=True).map(
            lambda codes: tuple(Need(code, NOW) for code in sorted(codes, key=NEEDS.index))
        ),
        last_run=st.none() | st.builds(LastRun, st.integers(0, NOW), st.just("c"), st.booleans()),
    ),
    max_size=8,
    unique_by=lambda one: one.workload,
)


@given(fleet=rows, sort=st.sampled_from(["urgency", *COLUMNS]), reverse=st.booleans())
def test_whatever_the_order_each_row_is_there_once(fleet, sort, reverse):
    found = listing(fleet, Filters(), NOW, sort=sort, reverse=reverse)

    assert sorted(one.workload for one in fleet) == sorted(one.workload for one in found.rows)
    assert found.rows == listing(fleet[::-1], Filters(), NOW, sort=sort, reverse=reverse).rows
    assert len(fleet) == sum(found.counts.states.values())
    assert found.counts.states.get("retired", 0) == sum(state_of(one) == "retired" for one in fleet)

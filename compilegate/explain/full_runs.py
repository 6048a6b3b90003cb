"""Do whole jobs bear the short blocks out?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.arithmetic import mean
from compilegate.domain.judging.evidence import Arm, Evidence, walls
from compilegate.domain.judging.full_runs import WALL_SD, WallClock, wall_clock
from compilegate.explain.item import Item, Section, Teller, share


def full_run_items(candidate: Arm, evidence: Evidence) -> Iterator[Item]:
    """The wall clock of whole jobs, start-up and evaluation included."""
    tell, clock = Teller(Section.FULL_RUNS, candidate.name), wall_clock(candidate, evidence)
    yield tell.answer(*_answer(clock), of=wall_clock)
    if clock.ratio is None:
        return
    ours = walls(candidate.quality)
    theirs = [*walls(evidence.baseline.quality), *evidence.history_wall_seconds]
    bar, price = evidence.policy.reject_speedup, evidence.price_ratio(candidate)
    yield tell(
        "speed-up of whole jobs", clock.ratio,
        "Start-up, data loading and evaluation included, on whatever machines they ran.",
        symbol="S_jobs", unit="x", formula="mean(T_B) / mean(T_C)",
        inputs={"mean(T_B)": mean(theirs), "jobs B": len(theirs), "mean(T_C)": mean(ours),
                "jobs C": len(ours)},
        of=wall_clock,
    )  # fmt: skip
    yield tell(
        "bar for whole jobs", bar * price,
        "Below it the short blocks are in doubt and nothing is promoted.",
        unit="x", formula="reject_speedup x price ratio",
        inputs={"reject_speedup": bar, "price ratio": price},
        of="judging.speed.toll",
    )  # fmt: skip
    cheaper = " or over 1" if price < 1 else ""
    yield tell(
        "too slow beyond doubt", clock.disproved,
        f"Machines of one kind differ by about {share(WALL_SD)}; only where three times that, "
        f"averaged over the jobs, would not lift it over the bar{cheaper} is it beyond doubt.",
        formula=f"S_jobs x e^(3 x {WALL_SD:g} x sqrt(1/n_C + 1/n_B)) < "
        + ("max(bar, 1)" if price < 1 else "bar"),
        inputs={"n_C": len(ours), "n_B": len(theirs)}, of=wall_clock,
    )  # fmt: skip


def _answer(clock: WallClock) -> tuple[str, str]:
    if clock.ratio is None:
        return "unmeasured", "not known: the wall clock of full runs is missing"
    if clock.disproved:
        return "disproved", "no: whole jobs are too slow, beyond what machines differ by"
    if clock.doubtful:
        return "doubtful", "not so far: whole jobs were slower than the short blocks promised"
    return "agrees", f"yes: whole jobs were {clock.ratio:.2f}x"

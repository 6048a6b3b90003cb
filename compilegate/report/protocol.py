"""How a trial was measured: its arms, rounds and thresholds."""

from __future__ import annotations

from compilegate.report.case import Case, named
from compilegate.report.formats import UNKNOWN, count, number, plural, ratio, shown, significant
from compilegate.report.tables import Table


def plan_table(case: Case) -> Table | None:
    """The arms as they were asked for."""
    arms = named(case.plan.get("arms"))
    if not arms:
        return None
    names = ("compiler", "instance_type", "instance_count", "precision", "batch_size",
             "learning_rate", "distribution", "usd_per_hour", "image")  # fmt: skip
    rows = [
        (name.replace("_", " ").replace("usd", "USD"),
         *(UNKNOWN if arm.get(name) is None else str(arm[name]) for arm in arms))
        for name in names
        if any(arm.get(name) is not None for arm in arms)
    ]  # fmt: skip
    marked = frozenset(place for place, row in enumerate(rows) if len(set(row[1:])) > 1)
    return Table(
        "plan", "The arms as planned", ("", *(str(arm["name"]) for arm in arms)), rows,
        note="Marked rows are what the candidates change." if marked else "", marked=marked,
    )  # fmt: skip


def protocol(case: Case) -> list[tuple[str, str]]:
    """How it was measured, as name and value; what never happened is left out."""
    policy, decision, context = case.policy, case.decision, case.source["context"]
    thresholds = (
        f"proven above {shown(policy.get('reject_speedup'), ratio)} and estimated at "
        f"{shown(policy.get('promote_speedup'), ratio)} or more"
    )
    rows = [
        ("Speed", _speed(case)),
        ("Quality", _quality(case)),
        ("Thresholds", thresholds if policy else ""),
        ("Error rate", f"at most {shown(policy.get('alpha'), significant)} per gate, one-sided"
         if policy else ""),
        ("Judge", str(decision.get("judge_version") or "")),
        ("Decision", str(decision.get("decision_id") or "")),
        ("Trial", context["trial"]),
        ("Stage", context["stage"]),
    ]  # fmt: skip
    return [(name, value) for name, value in rows if value]


def _speed(case: Case) -> str:
    if isinstance(case.measured, str) or not case.measured.has_speed:
        return ""
    blocks = len(case.measured.baseline.blocks)
    longest = max(len(b.run.step_seconds) for b in case.measured.baseline.blocks.values())
    most = number(case.plan.get("max_blocks"))
    text = f"{plural(blocks, 'block')} of {count(longest)} steps per arm"
    return text if most is None else f"{text}, at most {count(most)} blocks"


def _quality(case: Case) -> str:
    if isinstance(case.measured, str):
        return ""
    done = [run.seed for run in case.measured.baseline.quality]
    if done:
        return f"{plural(len(done), 'full run')} per arm, seeds {', '.join(map(str, done))}"
    return "no full run"

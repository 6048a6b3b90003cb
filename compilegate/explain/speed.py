"""Is the candidate faster? The speed gate, number by number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from compilegate.domain.arithmetic import deviation, mean, ratio
from compilegate.domain.formats import percent
from compilegate.domain.judging import statistics
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.judge import CandidateFinding
from compilegate.domain.judging.speed import (
    Segments,
    SpeedFinding,
    assumed_spread,
    best_case,
    block_log_speedups,
    judge_speed,
    log_price_ratio,
    lost_seconds,
    lower_bound,
)
from compilegate.domain.judging.statistics import SPEED_LOOKS, speed_look_at
from compilegate.explain.item import Item, Reporter, Section

LOG = "log ratio"


def speed_items(
    finding: CandidateFinding, evidence: Evidence, segments: Segments
) -> Iterator[Item]:
    """From the blocks to the gate, for one candidate."""
    item, speed = Reporter(Section.SPEED, finding.arm.name), finding.speed
    yield item.answer(str(speed.outcome), speed.reason, of=judge_speed)
    yield from _blocks(item, finding, evidence, segments)
    if not speed.logs:
        return
    yield from _estimate(item, speed)
    cost = log_price_ratio(finding.arm, evidence)
    if cost:
        more = "more per hour, so its speed-up must first pay for that"
        less = "less per hour, which counts for it unless it takes longer than the baseline"
        yield item(
            "price of the candidate's cluster", cost,
            f"It costs {more if cost > 0 else less}: c is subtracted from every block, and "
            "dollars per run are compared.",
            symbol="c", unit=LOG, formula="ln(candidate's USD per hour / baseline's)",
            inputs={"price ratio": evidence.price_ratio(finding.arm)}, of=log_price_ratio,
        )  # fmt: skip
    net = [log - cost for log in speed.logs]
    yield from _gate(item, net, speed, evidence)
    yield from _promote(item, net, evidence)
    logs = block_log_speedups(finding.arm, evidence, segments, calm=True)
    spread = {"alpha": evidence.policy.alpha, "assumed": assumed_spread(finding.arm, evidence)}
    required = evidence.policy.promote_speedup
    yield _hopeless(
        item, net, [log - cost for log in logs], **spread, required=required,
        words=f"{ratio(required)} (promote_speedup)",
    )  # fmt: skip
    if cost < 0:
        words = "1.00x, longer than the baseline,"
        yield _hopeless(item, speed.logs, logs, **spread, required=1.0, words=words)


def _blocks(
    item: Reporter, finding: CandidateFinding, evidence: Evidence, segments: Segments
) -> Iterator[Item]:
    ours, theirs = segments[finding.arm.name], segments[evidence.baseline.name]
    usable = [b for b in sorted(ours.keys() & theirs.keys()) if ours[b] and theirs[b]]
    steps = evidence.baseline.full_run_steps, finding.arm.full_run_steps
    lost = lost_seconds(finding.arm, evidence, segments)
    for block, log in zip(usable, finding.speed.logs, strict=True):
        base, mine = theirs[block], ours[block]
        if base is None or mine is None:
            continue
        yield item(
            "blocks",
            log,
            "B is the baseline, C the candidate. O: seconds that a run pays once (compilation, "
            "warm-up); m: seconds of a steady step; N: steps of a whole run; W: what rare "
            "slow steps add to a run of either arm. Above 0 the candidate is faster.",
            symbol=f"L_{block}",
            unit=LOG,
            formula="L = ln[(O_B + N_B m_B + W) / (O_C + N_C m_C + W)]",
            inputs={
                "O_B": base.overhead_seconds, "m_B": base.steady_step_seconds, "N_B": steps[0],
                "O_C": mine.overhead_seconds, "m_C": mine.steady_step_seconds, "N_C": steps[1],
                "W": lost,
            },
            of=block_log_speedups,
        )  # fmt: skip


def _estimate(item: Reporter, speed: SpeedFinding) -> Iterator[Item]:
    yield item(
        "speed-up that the blocks predict", speed.estimate,
        "Of a whole run, compilation included; start-up and unseen recompilations are not in it.",
        symbol="S_blocks", unit="x", formula="e^mean(L)",
        inputs={"mean(L)": mean(speed.logs), "blocks": speed.blocks}, of=judge_speed,
    )  # fmt: skip
    if speed.interval is None:
        return
    n = speed.blocks
    yield item(
        "its interval", list(speed.interval),
        f"By the spread of the blocks alone, {percent(speed.confidence)} confidence.",
        unit="x", formula="e^(mean(L) -+ t s / sqrt(R))",
        inputs={
            "mean(L)": mean(speed.logs), "s": deviation(speed.logs), "R": n,
            "t": statistics.quantile(0.5 + speed.confidence / 2, n - 1),
        },
        of=judge_speed,
    )  # fmt: skip


def _gate(
    item: Reporter, net: Sequence[float], speed: SpeedFinding, evidence: Evidence
) -> Iterator[Item]:
    yield item(
        "error of one look", speed.level,
        f"Chance of passing a slow candidate that one look may spend: the looks at {_listed()} "
        "blocks and the candidates share alpha.",
        symbol="a", formula=f"alpha / ({len(SPEED_LOOKS)} K)",
        inputs={"alpha": evidence.policy.alpha, "K": len(evidence.candidates)}, of=judge_speed,
    )  # fmt: skip
    look = speed_look_at(len(net))
    if not look:
        words = f"The gate looks at {_listed()} blocks."
        yield item("blocks so far", len(net), words, unit="blocks", of=speed_look_at)
        return
    seen, cost = net[:look], "" if net == list(speed.logs) else " - c"
    t, error = statistics.quantile(1 - speed.level, look - 1), deviation(seen) / math.sqrt(look)
    yield item(
        "standard error", error,
        "How far the mean of these blocks may be from the true one by chance.",
        symbol="se", unit=LOG, formula="s / sqrt(R)", inputs={"s": deviation(seen), "R": look},
        of=deviation,
    )  # fmt: skip
    yield item(
        "allowance for few blocks", t,
        "Standard errors to subtract for the permitted error: more for fewer blocks.",
        symbol="t", formula="t quantile at 1 - a, R - 1 degrees of freedom",
        inputs={"a": speed.level, "R": look}, of=statistics.quantile,
    )  # fmt: skip
    inputs = {f"mean(L){cost}": mean(seen), "t": t, "se": error}
    yield _bound(item, lower_bound(seen, speed.level), evidence, cost, inputs)


def _bound(
    item: Reporter, bound: float, evidence: Evidence, cost: str, inputs: Mapping[str, float]
) -> Item:
    bar = evidence.policy.reject_speedup
    passed = "passed" if bound > math.log(bar) else "not passed"
    copies = "" if math.isfinite(bound) else "Equal blocks are copies and prove nothing. "
    return item(
        "proven speed-up", math.exp(bound) if math.isfinite(bound) else None,
        f"{copies}By the short blocks alone. The gate requires more than {ratio(bar)} "
        f"(reject_speedup): {passed}.",
        symbol="LB", unit="x", formula=f"e^(mean(L){cost} - t se)",
        inputs={**inputs, "reject_speedup": bar}, of=lower_bound,
    )  # fmt: skip


def _promote(item: Reporter, net: Sequence[float], evidence: Evidence) -> Iterator[Item]:
    threshold = evidence.policy.promote_speedup
    reached = mean(net) >= math.log(threshold)
    yield item(
        "speed-up against the one asked", math.exp(mean(net)),
        f"The estimate must reach {ratio(threshold)} (promote_speedup): "
        f"{'reached' if reached else 'not reached'}.",
        unit="x", formula="e^mean(L) >= promote_speedup",
        inputs={"mean(L)": mean(net), "promote_speedup": threshold}, of=judge_speed,
    )  # fmt: skip


def _hopeless(
    item: Reporter,
    logs: Sequence[float],
    calm: Sequence[float],
    *,
    alpha: float,
    assumed: float,
    required: float,
    words: str,
) -> Item:
    """Whether the candidate can still reach ``required``; ``assumed`` is the spread of blocks."""
    n = len(logs)
    best = best_case(logs, alpha, calm, assumed)
    late = "" if calm == logs or n > 2 else " Late recompilations may not recur and count once."
    if n <= 2:
        formula = f"e^(mean(L) + 3 x {assumed:.2g} / sqrt(R))"
        inputs = {"mean(L)": mean(calm), "R": float(n)}
    else:
        formula, spread = "e^(mean(L) + t s / sqrt(R))", deviation(logs)
        inputs = {"mean(L)": mean(logs), "R": float(n), "s": spread}
        if spread:
            inputs["t"] = (best - mean(logs)) * math.sqrt(n) / spread
    return item(
        "best that it can still be", math.exp(min(best, 700.0)),
        f"Below {words} the candidate is dropped at once: "
        f"{'it is' if best < math.log(required) else 'it is not'}.{late}",
        unit="x", formula=formula, inputs=inputs, of=best_case,
    )  # fmt: skip


def _listed() -> str:
    return f"{', '.join(map(str, SPEED_LOOKS[:-1]))} and {SPEED_LOOKS[-1]}"

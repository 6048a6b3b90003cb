"""Whether the evidence compares like with like; what fails here can never promote.

The arms must run alike but for the change, and start from the same weights and first loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compilegate.domain.compilers import compiler_named
from compilegate.domain.judging.evaluation_sets import different_sets
from compilegate.domain.judging.evidence import (
    PROBATION,
    Arm,
    Evidence,
    FullRun,
    SpeedRun,
    data_of,
    may_run_apart,
)
from compilegate.domain.judging.run_work import (
    SAME_TOKENS,
    RunCheck,
    as_much,
    close,
    declares_steps,
    timed,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE

# Whether one arm's run goes on from what another arm has trained.
#
# A run whose initial weights are the final ones of an earlier run (``initial_weights_sha256`` and
# ``final_start_sha256``, which are taken alike) starts from that run's model. Where a run of the
# baseline starts from a candidate's model, or a candidate's from another candidate's, the arms are
# no longer what they are compared as: a loss is carried from one into the other. A candidate that
# starts from the baseline's model only begins its line there.
#
# Only what is recorded can be seen: a model that was saved in another precision has other weights.


def mixed_lines(evidence: Evidence) -> Iterator[Reason]:
    """Where a run starts from a model of another arm that is not the baseline; once per arm."""
    ends = {arm.name: _ends(arm) for arm in evidence.arms}
    for arm in evidence.arms:
        for run in arm.full_runs:
            owners = [name for name, own in ends.items() if run.initial_weights in own]
            # What the baseline or the arm itself has trained too is not another's.
            if not owners or BASELINE in owners or arm.name in owners:
                continue
            yield Reason(
                "arms_continue_each_other",
                f"{arm.name}: run {run.job or run.order} starts from the model that {owners[0]} "
                "has trained, so the arms are not compared independently",
                None if arm.name == BASELINE else arm.name,
            )
            break


def _ends(arm: Arm) -> frozenset[str]:
    return frozenset(end for run in arm.full_runs if (end := run.trained_weights) is not None)


# Fingerprint keys that a candidate's own change explains.
EXPLAINED = {
    "instance_type": {"gpu", "driver", "threads", "world_size", "global_batch"},
    "instance_count": {"world_size", "global_batch"},
    "batch_size": {"global_batch"},
    "precision": {"precision"},
    # Processes that were not started before, each with its own batch.
    "distribution": {"world_size", "global_batch"},
    "framework": {"image", "torch", "cuda", "transformers", "python"},
    # A script elsewhere in the bundle has other files beside it.
    "entry_point": {"code_sha256"},
}
# Of a compiler that exists only inside images of its own.
OWN_IMAGE_EXPLAINS = EXPLAINED["framework"]
# What production's own runs may change in between runs while both arms take turns: newer
# data of the same kind, and machines with a newer driver.
MOVES_ON = frozenset({"data_sha256", "driver"})
# Samples of a whole run: a last batch more or less is the same training.
SAME_WORK = 0.02
# Eager and compiled arithmetic round differently; anything larger is another model or batch.
INITIAL_LOSS_TOLERANCE = 1e-2
# Changes that give the first step another batch, or other arithmetic or random numbers.
OTHER_FIRST_LOSS = frozenset(
    {"batch_size", "precision", "instance_type", "instance_count", "distribution", "framework"}
)
# Changes that keep weights in another type of number, or split, order or draw them otherwise.
OTHER_WEIGHTS = (OTHER_FIRST_LOSS - {"batch_size"}) | {"entry_point"}


def invalid_reasons(evidence: Evidence) -> tuple[Reason, ...]:
    """Every reason why this evidence does not compare the arms fairly."""
    reasons: list[Reason] = []
    for candidate in evidence.candidates:
        if evidence.phase == PROBATION:
            # Production's image, driver and data move on; what is on is watched in any case.
            reasons += _repeated_in_production(candidate, evidence.baseline)
            continue
        reasons += _not_applied(candidate)
        reasons += _different_fingerprints(candidate, evidence.baseline)
        reasons += _contradictions(candidate, evidence.baseline)
        reasons += unequal_work(candidate, evidence)
        reasons += unequal_starts(candidate, evidence.baseline)
        reasons += different_sets(candidate, evidence.baseline)
    if evidence.phase != PROBATION:
        reasons += mixed_lines(evidence)
    return tuple(reasons)


def _not_applied(candidate: Arm) -> Iterator[Reason]:
    """A full run must prove a compiler; a change of another kind shows in the fingerprint."""
    for run in candidate.runs:
        if run.finished and is_unapplied(run, candidate):
            yield Reason(
                "treatment_not_applied",
                f"{candidate.name}: the change was requested but not applied, so the arms did "
                "not differ and nothing was measured",
                candidate.name,
            )
            return


def is_unapplied(run: SpeedRun | FullRun, candidate: Arm) -> bool:
    """Whether a run did without the change, or did not prove that it had it."""
    proves = not candidate.overrides or "compiler" in candidate.overrides
    return run.applied is False or (proves and isinstance(run, FullRun) and run.applied is None)


def _different_fingerprints(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Every finished run of both arms and stages against one reference, once any has one."""
    explained = _explained(candidate) | _explained_by_figures(candidate, baseline)
    everyone = [(run, frozenset[str]()) for run in baseline.runs]
    everyone += [(run, explained) for run in candidate.runs]
    reference = next((own for run, _ in everyone if (own := run.fingerprint)), None)
    if reference is None:
        return
    for run, allowed in everyone:
        own = run.fingerprint or {}
        extra = isinstance(run, SpeedRun) or run.mode == "shadow"
        may_differ = allowed if extra else allowed | MOVES_ON
        wrong = [key for key in _differing(own, reference) if key not in may_differ]
        unrecorded = not own and isinstance(run, FullRun) and run.mode == "production"
        if wrong and (own or run.finished) and not unrecorded:
            key = wrong[0]
            yield Reason(
                "arms_differ",
                f"{candidate.name}: runs differ in {', '.join(wrong)} "
                f"({reference.get(key)!r} and {own.get(key)!r}), not only in the change",
                candidate.name,
            )
            return


def _contradictions(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """What contradicts the runs' own records: copies, other nodes, other batches."""
    for arm in (baseline, candidate):
        blocks = [run.block for run in arm.speed]
        orders = [run.order for run in arm.quality]
        # Production may train every run with one seed; an extra run's seed is its own.
        results = [
            (run.seed, run.metric, run.wall_seconds)
            for run in arm.quality
            if run.seed is not None and run.finished and run.wall_seconds and run.mode == "shadow"
        ]
        if any(len(set(values)) < len(values) for values in (blocks, orders, results)):
            text = f"{arm.name}: two runs have the same block or order, or are copies"
            yield Reason("runs_repeated", text, arm.name)
    yield from _unlike_blocks(candidate, baseline)


def _repeated_in_production(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    orders = [run.order for arm in (baseline, candidate) for run in arm.probation]
    if len(set(orders)) < len(orders):
        text = f"{candidate.name}: two production runs have the same order"
        yield Reason("runs_repeated", text, candidate.name)


def _unlike_blocks(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Blocks whose arms ran on different nodes, or do different work in a whole run."""
    nodes = {run.block: run.node for run in baseline.speed}
    samples = {run.block: run.samples_per_step for run in baseline.speed}
    own_nodes = may_run_apart(candidate, baseline)
    for run in candidate.speed:
        node, size = nodes.get(run.block), samples.get(run.block)
        if run.node and node and run.node != node and not own_nodes:
            text = f"{candidate.name}: block {run.block} ran on two nodes, which differ in speed"
            yield Reason("arms_differ", text, candidate.name)
            return
        if not run.samples_per_step or not size:
            continue
        if run.samples_per_step == size and candidate.full_run_steps != baseline.full_run_steps:
            continue  # as recorded where one batch size counts for all arms
        ours = run.samples_per_step * (candidate.full_run_steps or 1)
        theirs = size * (baseline.full_run_steps or 1)
        if not math.isclose(ours, theirs, rel_tol=SAME_WORK):
            text = f"{candidate.name}: {ours:g} samples in a whole run against {theirs:g}"
            yield Reason("arms_differ", text, candidate.name)
            return


def _explained(candidate: Arm) -> frozenset[str]:
    names = {name for key in candidate.overrides for name in EXPLAINED.get(key, set())}
    if compiler_named(candidate.overrides.get("compiler")).own_image:
        names |= OWN_IMAGE_EXPLAINS
    return frozenset(names)


def _explained_by_figures(candidate: Arm, baseline: Arm) -> frozenset[str]:
    """What an arm's own figures say of its change where its overrides are not listed."""
    if candidate.overrides:
        return frozenset()
    names: set[str] = set()
    if (candidate.devices, candidate.usd_per_hour) != (baseline.devices, baseline.usd_per_hour):
        names |= EXPLAINED["instance_type"] | EXPLAINED["instance_count"]
    if candidate.full_run_steps != baseline.full_run_steps:
        names |= EXPLAINED["batch_size"]
    return frozenset(names)


def alike_but_for_time(own: Mapping[str, Any], reference: Mapping[str, Any]) -> bool:
    """Whether fingerprints differ in no more than production's may between runs."""
    return MOVES_ON.issuperset(_differing(own, reference))


def _differing(own: Mapping[str, Any], reference: Mapping[str, Any]) -> list[str]:
    return sorted(k for k in own.keys() | reference.keys() if own.get(k) != reference.get(k))


def unequal_starts(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Where two runs of one seed recorded another start in each arm."""
    for seed, ours, theirs in _pairs(candidate, baseline, _loss, OTHER_FIRST_LOSS):
        if not math.isclose(ours, theirs, rel_tol=INITIAL_LOSS_TOLERANCE):
            yield Reason(
                "unequal_initial_loss",
                f"{candidate.name}: seed {seed} starts at loss {ours:.4f}, the baseline at "
                f"{theirs:.4f}; the arms do not train the same model on the same data",
                candidate.name,
            )
            break
    for seed, mine, others in _pairs(candidate, baseline, _initial_weights, OTHER_WEIGHTS):
        if mine != others:
            yield Reason(
                "unequal_initial_weights",
                f"{candidate.name}: seed {seed} starts from different weights than the baseline; "
                "the script must draw them from its seed",
                candidate.name,
            )
            break


def unknown_start(candidate: Arm, baseline: Arm) -> Reason | None:
    """That an equal start of the arms is not proven.

    None where it is, where the change itself explains another start, and where no full run of
    the candidate recorded a fingerprint.
    """
    recorded = any(run.finished and run.record.get("fingerprint") for run in candidate.quality)
    explained = all(kind & candidate.overrides.keys() for kind in (OTHER_FIRST_LOSS, OTHER_WEIGHTS))
    if not recorded or explained:
        return None
    losses = _pairs(candidate, baseline, _loss, OTHER_FIRST_LOSS)
    weights = _pairs(candidate, baseline, _initial_weights, OTHER_WEIGHTS)
    if next(losses, None) or next(weights, None):
        return None
    return Reason(
        "start_unknown",
        f"{candidate.name}: no seed has a recorded first loss or weights in both arms, so an equal "
        "start is not proven",
        candidate.name,
    )


def _pairs(
    candidate: Arm,
    baseline: Arm,
    recorded: Callable[[FullRun], Any],
    explained_by: frozenset[str],
) -> Iterator[tuple[int, Any, Any]]:
    """(seed, candidate's, baseline's) where both arms recorded it and the change explains none."""
    if explained_by & candidate.overrides.keys():
        return
    base = {
        (run.seed, data_of(run)): value
        for run in baseline.quality
        if (value := recorded(run)) is not None
    }
    for run in candidate.quality:
        value, start = recorded(run), (run.seed, data_of(run))
        if value is not None and run.seed is not None and start in base:
            yield run.seed, value, base[start]


def _loss(run: FullRun) -> float | None:
    value = run.record.get("initial_loss")
    return float(value) if isinstance(value, int | float) else None


def _initial_weights(run: FullRun) -> str | None:
    return run.initial_weights


def unequal_work(candidate: Arm, evidence: Evidence) -> Iterator[Reason]:
    """The first sign that the arms' whole runs are not the same work."""
    baseline = evidence.baseline
    problems = [
        *_planned_steps(candidate, baseline),
        *_block_work(candidate, baseline),
        *(problem for arm in (candidate, baseline) for problem in _full_runs(arm, evidence)),
    ]
    if problems:
        yield Reason("unequal_work", f"{candidate.name}: {problems[0]}", candidate.name)


def _planned_steps(candidate: Arm, baseline: Arm) -> Iterator[str]:
    """What contradicts the steps that each arm plans for a whole run."""
    for arm in (candidate, baseline):
        plans = [run.full_run_steps for run in arm.speed if run.full_run_steps]
        if plans and not close(min(plans), max(plans)):
            yield (
                f"the speed blocks of {arm.name} plan from {min(plans):,} to {max(plans):,} steps "
                "for one whole run"
            )
    ours, theirs = candidate.full_run_steps, baseline.full_run_steps
    if ours and theirs and not close(ours, theirs) and not declares_steps(candidate):
        sizes = [
            next((run.samples_per_step for run in arm.speed if run.samples_per_step), 0.0)
            for arm in (candidate, baseline)
        ]
        if all(sizes) and close(sizes[0] * ours, sizes[1] * theirs):
            return  # more steps of fewer samples each
        yield (
            f"it plans {ours:,} steps for a whole run and the baseline {theirs:,}, which its "
            "change does not explain"
        )


def _block_work(candidate: Arm, baseline: Arm) -> Iterator[str]:
    """Blocks in which only one arm recorded its samples or tokens, or tokens are not equal."""
    theirs = {run.block: run for run in baseline.speed if run.finished}
    for run in candidate.speed:
        other = theirs.get(run.block)
        if other is None or not run.finished:
            continue
        if (run.samples_per_step is None) != (other.samples_per_step is None):
            yield f"in block {run.block} only one of the arms recorded its samples"
        if (run.tokens_per_step is None) != (other.tokens_per_step is None):
            yield f"in block {run.block} only one of the arms recorded its tokens"
        ours, other_tokens = run.tokens_per_step, other.tokens_per_step
        if (
            ours
            and other_tokens
            and not as_much((ours, candidate), (other_tokens, baseline), SAME_TOKENS)
        ):
            yield (
                f"block {run.block} took {ours:,.0f} tokens a step and the baseline's "
                f"{other_tokens:,.0f}"
            )


def _full_runs(arm: Arm, evidence: Evidence) -> Iterator[str]:
    check = RunCheck(arm, evidence)
    for run in timed(arm.full_runs):
        problem = check.problem(run)
        if problem is not None:
            yield problem

"""Whether the evidence compares like with like; what fails here can never promote.

The arms must run alike but for the change, and start from the same weights and first loss.

**One arm's run that goes on from another's model.** A run whose initial weights are the final ones
of an earlier run (``initial_weights_sha256`` and ``final_start_sha256``, which are taken alike)
starts from that run's model. Where a run of the baseline starts from a candidate's model, or a
candidate's from another candidate's, the arms are no longer what they are compared as: a loss is
carried from one into the other. A candidate that starts from the baseline's model only begins its
line there. Only what is recorded can be seen: a model that was saved in another precision has other
weights.

**Evaluation sets.** The recorder leaves the identity of the examples that a run was scored on
(outcomes.py). A set that changes from run to run, as with nightly data, moves both arms alike: its
sampling is part of the spread that the gate measures, and the evaluation's part cannot be separated
(``sets_vary``). A set of each arm's own is another matter: difficulty then looks like quality, in
either direction. Past runs that are known to be scored on another set, by ``quality.history_set``,
are no reference and do not count (evidence_file.py). Where neither is known, history counts as runs
that may have drifted (drift.py). Both rules depend on the sets alone, never on a metric, and
only take away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from compilegate.domain.compilers import compiler_named
from compilegate.domain.decision import SHADOW
from compilegate.domain.judging.evidence import (
    PROBATION,
    Arm,
    Evidence,
    FullRun,
    SpeedRun,
    may_run_apart,
)
from compilegate.domain.judging.run_work import (
    SAME_TOKENS,
    SAME_WORK,
    RunCheck,
    as_much,
    close,
    declares_steps,
    timed,
)
from compilegate.domain.optional import with_known
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE

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
# Runs that may each be of another night, with that night's data, and yet look like a set per arm.
FEW_RUNS = 2
# Eager and compiled arithmetic round differently; anything larger is another model or batch.
INITIAL_LOSS_TOLERANCE = 1e-2
# Changes that give the first step another batch, or other arithmetic or random numbers.
OTHER_FIRST_LOSS = frozenset(
    {"batch_size", "precision", "instance_type", "instance_count", "distribution", "framework"}
)
# Changes that keep weights in another type of number, or split, order or draw them otherwise.
OTHER_WEIGHTS = (OTHER_FIRST_LOSS - {"batch_size"}) | {"entry_point"}
# What a run records of its start, and the changes that explain another.
FIRST_LOSS = attrgetter("initial_loss"), OTHER_FIRST_LOSS
WEIGHTS = attrgetter("initial_weights"), OTHER_WEIGHTS


def invalid_reasons(evidence: Evidence) -> tuple[Reason, ...]:
    """Every reason why this evidence does not compare the arms fairly."""
    baseline = evidence.baseline
    if evidence.phase == PROBATION:
        # Production's image, driver and data move on; what is on is watched in any case.
        text = "two production runs have the same order"
        return tuple(
            Reason("runs_repeated", f"{arm.name}: {text}", arm.name)
            for arm in evidence.candidates
            if _repeats([run.order for run in (*baseline.probation, *arm.probation)])
        )
    reasons: list[Reason] = []
    for candidate in (arm for arm in evidence.arms if arm is not baseline):
        reasons += _not_applied(candidate)
        reasons += _different_fingerprints(candidate, baseline)
        reasons += _contradictions(candidate, baseline)
        reasons += unequal_work(candidate, evidence)
        reasons += unequal_starts(candidate, baseline)
        reasons += _different_sets(candidate, baseline)
    return (*reasons, *mixed_lines(evidence))


def _repeats(values: Sequence[object]) -> bool:
    return len(set(values)) < len(values)


def mixed_lines(evidence: Evidence) -> Iterator[Reason]:
    """Where a run starts from a model of another arm that is not the baseline; once per arm."""
    ends = {
        arm.name: {run.trained_weights for run in arm.full_runs} - {None} for arm in evidence.arms
    }
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


def _not_applied(candidate: Arm) -> Iterator[Reason]:
    """A full run must prove a compiler; a change of another kind shows in the fingerprint."""
    if any(run.finished and is_unapplied(run, candidate) for run in candidate.runs):
        text = (
            f"{candidate.name}: the change was requested but not applied, so the arms did not "
            "differ and nothing was measured"
        )
        yield Reason("treatment_not_applied", text, candidate.name)


def is_unapplied(run: SpeedRun | FullRun, candidate: Arm) -> bool:
    """Whether a run did without the change, or did not prove that it had it."""
    proves = not candidate.overrides or "compiler" in candidate.overrides
    return run.applied is False or (proves and isinstance(run, FullRun) and run.applied is None)


def _different_fingerprints(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Every finished run of both arms and stages against one reference, once any has one."""
    explained = _explained(candidate, baseline)
    everyone = [(run, frozenset[str]()) for run in baseline.runs]
    everyone += [(run, explained) for run in candidate.runs]
    reference = next((run.fingerprint for run, _ in everyone if run.fingerprint), None)
    if reference is None:
        return
    for run, allowed in everyone:
        own = run.fingerprint
        extra = isinstance(run, SpeedRun) or run.mode == SHADOW
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


def _explained(candidate: Arm, baseline: Arm) -> frozenset[str]:
    """Keys that the change explains; where overrides are not listed, by the arm's own figures."""
    changes, names = [*candidate.overrides], set[str]()
    if not changes and candidate.full_run_steps != baseline.full_run_steps:
        changes.append("batch_size")
    figures = (candidate.devices, candidate.usd_per_hour)
    if not candidate.overrides and figures != (baseline.devices, baseline.usd_per_hour):
        changes += "instance_type", "instance_count"
    if compiler_named(str(candidate.overrides.get("compiler"))).own_image:
        names |= OWN_IMAGE_EXPLAINS
    return frozenset(names.union(*(EXPLAINED.get(change, set()) for change in changes)))


def _contradictions(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """What contradicts the runs' own records: copies, other nodes, other batches."""
    for arm in (baseline, candidate):
        # Production may train every run with one seed; an extra run's seed is its own.
        results = [
            (run.seed, run.metric, run.wall_seconds)
            for run in arm.quality
            if run.seed is not None and run.finished and run.wall_seconds and run.mode == SHADOW
        ]
        blocks, orders = [run.block for run in arm.speed], [run.order for run in arm.quality]
        if _repeats(blocks) or _repeats(orders) or _repeats(results):
            text = f"{arm.name}: two runs have the same block or order, or are copies"
            yield Reason("runs_repeated", text, arm.name)
    unlike = next(_unlike_blocks(candidate, baseline), None)
    if unlike:
        yield Reason("arms_differ", f"{candidate.name}: {unlike}", candidate.name)


def _unlike_blocks(candidate: Arm, baseline: Arm) -> Iterator[str]:
    """Blocks whose arms ran on different nodes, or do different work in a whole run."""
    theirs = {run.block: run for run in baseline.speed}
    same_nodes = not may_run_apart(candidate, baseline)
    for run in candidate.speed:
        other = theirs.get(run.block)
        if other is None:
            continue
        if run.node and other.node and run.node != other.node and same_nodes:
            yield f"block {run.block} ran on two nodes, which differ in speed"
        ours, size = run.samples_per_step, other.samples_per_step
        if not ours or not size:
            continue
        if ours == size and candidate.full_run_steps != baseline.full_run_steps:
            continue  # as recorded where one batch size counts for all arms
        whole, reference = ours * candidate.steps_or_one, size * baseline.steps_or_one
        if not close(whole, reference, SAME_WORK):
            yield f"{whole:g} samples in a whole run against {reference:g}"


def _different_sets(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Arms that were each scored on one set of examples, but not on the same one.

    One run of each arm may be of two nights with data of their own.
    """
    ours, theirs = candidate.evaluation_sets, baseline.evaluation_sets
    each_on_one = len(set(ours)) == len(set(theirs)) == 1
    if each_on_one and ours[0] != theirs[0] and len([*ours, *theirs]) > FEW_RUNS:
        text = (
            f"{candidate.name}: its runs were scored on other evaluation examples "
            f"({ours[0][:12]}) than the baseline's ({theirs[0][:12]})"
        )
        yield Reason("evaluation_sets_differ", text, candidate.name)


def alike_but_for_time(own: Mapping[str, Any], reference: Mapping[str, Any]) -> bool:
    """Whether fingerprints differ in no more than production's may between runs."""
    return MOVES_ON.issuperset(_differing(own, reference))


def _differing(own: Mapping[str, Any], reference: Mapping[str, Any]) -> list[str]:
    return sorted(k for k in own.keys() | reference.keys() if own.get(k) != reference.get(k))


def unequal_starts(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Where two runs of one seed recorded another start in each arm, the first of each kind."""
    for seed, ours, theirs in _starts(candidate, baseline, *FIRST_LOSS):
        if not math.isclose(ours, theirs, rel_tol=INITIAL_LOSS_TOLERANCE):
            yield Reason(
                "unequal_initial_loss",
                f"{candidate.name}: seed {seed} starts at loss {ours:.4f}, the baseline at "
                f"{theirs:.4f}; the arms do not train the same model on the same data",
                candidate.name,
            )
            break
    for seed, ours, theirs in _starts(candidate, baseline, *WEIGHTS):
        if ours != theirs:
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
    pairs = [pair for kind in (FIRST_LOSS, WEIGHTS) for pair in _starts(candidate, baseline, *kind)]
    if not recorded or explained or pairs:
        return None
    text = (
        f"{candidate.name}: no seed has a recorded first loss or weights in both arms, so an equal "
        "start is not proven"
    )
    return Reason("start_unknown", text, candidate.name)


def _starts(
    candidate: Arm, baseline: Arm, recorded: Callable[[FullRun], Any], explained_by: frozenset[str]
) -> list[tuple[int, Any, Any]]:
    """(seed, candidate's, baseline's) where both arms recorded it and the change explains none."""
    if explained_by & candidate.overrides.keys():
        return []
    ours, theirs = (with_known(arm.quality, recorded) for arm in (candidate, baseline))
    base = {(run.seed, run.data): value for run, value in theirs}
    return [
        (run.seed, value, base[run.seed, run.data])
        for run, value in ours
        if run.seed is not None and (run.seed, run.data) in base
    ]


def unequal_work(candidate: Arm, evidence: Evidence) -> Iterator[Reason]:
    """The first sign that the arms' whole runs are not the same work."""
    baseline = evidence.baseline
    problems = [*_planned_steps(candidate, baseline), *_block_work(candidate, baseline)]
    for arm in (candidate, baseline):
        check = RunCheck(arm, evidence)
        problems += filter(None, map(check.problem, timed(arm.full_runs)))
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
        ours, its = run.tokens_per_step, other.tokens_per_step
        if (ours is None) != (its is None):
            yield f"in block {run.block} only one of the arms recorded its tokens"
        if ours and its and not as_much((ours, candidate), (its, baseline), SAME_TOKENS):
            yield f"block {run.block} took {ours:,.0f} tokens a step and the baseline's {its:,.0f}"

"""Is the comparison fair?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.decision import Reason
from compilegate.domain.judging.evidence import PROBATION, Arm, Evidence
from compilegate.domain.judging.validity import EXPLAINED, SAME_WORK, invalid_reasons
from compilegate.explain.item import Item, Section, Teller, share

FAIR = "the arms differ in the change and in nothing else that the runs recorded"
UNFAIR = "no verdict can rest on this"
SAME_CHANGE = "every run of the candidate had its change"


def fairness_items(evidence: Evidence) -> Iterator[Item]:
    """What was compared, and every objection."""
    objections = invalid_reasons(evidence)
    tell = Teller(Section.FAIRNESS)
    fair = SAME_CHANGE if evidence.phase == PROBATION else FAIR
    text = f"no: {UNFAIR}" if objections else f"yes: {fair}"
    yield tell.answer("unfair" if objections else "fair", text, of=invalid_reasons)
    for objection in objections:
        yield tell("objection", objection.code, objection.message, of=invalid_reasons)
    for candidate in evidence.candidates:
        yield _applied(candidate)
        if evidence.phase != PROBATION:
            yield from _same_runs(candidate, evidence.baseline)


def broken_contract(reasons: tuple[Reason, ...]) -> Iterator[Item]:
    """A document that could not be read at all."""
    tell = Teller(Section.FAIRNESS)
    yield tell.answer("unreadable", f"unknown: the document breaks its contract, so {UNFAIR}")
    for reason in reasons:
        yield tell(
            "objection", reason.code, reason.message, of="judging.evidence_file.parse_evidence"
        )


def _applied(candidate: Arm) -> Item:
    done = [run for run in candidate.runs if run.finished]
    proven = sum(run.applied is True for run in done)
    return Teller(Section.FAIRNESS, candidate.name)(
        "runs that prove the change",
        proven,
        "A run counts only if the compiler says it did compile. A full run must prove it, a "
        "short block must not deny it.",
        unit="runs",
        inputs={
            "finished": len(done),
            "denied": sum(run.applied is False for run in done),
            "silent": sum(run.applied is None for run in done),
        },
        of="judging.validity.invalid_reasons",
    )


def _same_runs(candidate: Arm, baseline: Arm) -> Iterator[Item]:
    tell = Teller(Section.FAIRNESS, candidate.name)
    runs = [*baseline.runs, *candidate.runs]
    found = [run.detail["fingerprint"] for run in runs if run.detail.get("fingerprint")]
    keys = sorted({str(key) for item in found if isinstance(item, dict) for key in item})
    free = sorted({name for key in candidate.overrides for name in EXPLAINED.get(key, ())})
    but = f", except for what the change explains ({', '.join(free)})" if free else ""
    yield tell(
        "runs with a fingerprint", len(found),
        f"Equal in both arms{but}: {', '.join(keys)}." if keys else "No run recorded one, so "
        "nothing tells whether GPU, code and data were the same.",
        unit="runs", inputs={"all runs": len(runs)}, of="judging.validity.invalid_reasons",
    )  # fmt: skip
    work = _work(candidate), _work(baseline)
    if work[0] and work[1]:
        yield tell(
            "work of a whole run",
            work[0] / work[1],
            f"Samples that it trains on; more than {share(SAME_WORK)} apart would be another job.",
            unit="times the baseline's",
            formula="samples a step x steps, candidate / baseline",
            inputs={"candidate": work[0], "baseline": work[1]},
            of="judging.validity.SAME_WORK",
        )


def _work(arm: Arm) -> float | None:
    size = next((run.samples_per_step for run in arm.speed if run.samples_per_step), None)
    return size * arm.full_run_steps if size and arm.full_run_steps else None

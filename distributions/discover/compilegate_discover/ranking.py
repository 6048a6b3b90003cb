"""What a compiler could save of each workload, by the rules of ``compilegate check``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compilegate.cli.check import first_stop
from compilegate.domain.economics import Range
from compilegate.domain.eligibility.check import Eligibility, EligibilityVerdict, check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.utc import iso
from compilegate.domain.workload.file import parse_workload
from compilegate.ports import Settings
from compilegate.usecases.records import facts_for_workload
from compilegate_discover.figures import Figures
from compilegate_discover.grouping import Group
from compilegate_discover.proposal import COMPUTED, Found, Proposal, compiles_today
from compilegate_init.proposal import OPEN, Value, document_of, places, with_cap

Document = dict[str, Any]
# Why there is nothing to save, where no rule of the eligibility says it.
ENDED, ALREADY, INVALID = "ended", "compiles_already", "not_a_workload"
BUILT_IN = "built_in_algorithm"
# Repositories of SageMaker's own algorithms (developer guide, built-in algorithms).
ALGORITHMS = (
    "blazingtext", "factorization-machines", "forecasting-deepar", "image-classification",
    "ipinsights", "kmeans", "knn", "lda", "linear-learner", "ntm", "object-detection",
    "object2vec", "pca", "randomcutforest", "semantic-segmentation", "seq2seq",
)  # fmt: skip


def capped(proposal: Proposal, settings: Settings) -> Proposal:
    """The proposal with a cap on its trial's cost; without one where there is no estimate."""
    try:
        policy = with_cap(proposal, settings)["policy"]
    except InvalidInputError:
        return proposal
    cap = policy["max_trial_usd"] if isinstance(policy, dict) else policy
    return {**proposal, "policy": {"max_trial_usd": replace(cap, origin=COMPUTED)}}


def row_of(found: Found, proposal: Proposal) -> Document:
    """What is known of a workload; USD a year as billed, None where it is not known."""
    group, figures = found.group, found.figures
    eligibility, problem = _eligibility(proposal, found.settings)
    newest = group.newest
    stop = _stop(group, figures, eligibility, problem)
    saving = None if stop else _saving(eligibility, figures)
    name = proposal["name"]
    kind, count = newest.instances[0]
    return {
        "name": name.value if isinstance(name, Value) else "",
        "region": newest.setup.region,
        "jobs": len(group.jobs),
        "runs": figures.runs,
        "failed": figures.failed,
        "first": iso(figures.first),
        "last": iso(figures.last),
        "ended": figures.ended,
        "newest_job": newest.name,
        "script": newest.setup.program or None,
        "image": newest.setup.image or None,
        "instance_type": kind or None,
        "instance_count": count,
        "spot": newest.spot,
        "runs_per_week": figures.runs_per_week,
        "starts": figures.starts or None,
        "run_hours": figures.run_hours,
        "usd_seen": figures.usd_seen,
        "unpriced": list(figures.unpriced),
        "usd_per_year": figures.usd_per_year,
        "gpu_utilization": found.measured.gpu_utilization,
        "compiles_already": compiles_today(newest.setup) or None,
        "verdict": str(eligibility.verdict) if eligibility else None,
        "plausible_annual_saving_usd": list(saving) if saving else None,
        "stopped_by": stop,
        "unknown": list(places(proposal, OPEN)),
        "signs": list(group.signs),
    }


def _eligibility(proposal: Proposal, settings: Settings) -> tuple[Eligibility | None, str]:
    """The answer of ``check`` with stand-ins for what is open, or why there is none."""
    try:
        workload = parse_workload(document_of(proposal, priced=True))
    except InvalidInputError as error:
        return None, str(error)
    facts = facts_for_workload(workload, settings)
    return check_eligibility(workload, facts, region=settings.region), ""


def _saving(eligibility: Eligibility | None, figures: Figures) -> Range | None:
    """The plausible saving of what is billed; the eligibility's is of whole runs at list prices."""
    economics = eligibility.economics if eligibility else None
    if economics is None or figures.usd_per_year is None or not economics.annual_training_usd:
        return None
    plausible = economics.plausible_annual_saving_usd
    share = min(figures.usd_per_year / economics.annual_training_usd, 1.0)
    return Range(plausible.low * share, plausible.high * share) if plausible else None


def _stop(
    group: Group, figures: Figures, eligibility: Eligibility | None, problem: str
) -> Mapping[str, str] | None:
    if figures.ended:
        return {"code": ENDED, "message": f"no run since {iso(figures.last)[:10]}"}
    setup = group.newest.setup
    if setup.repository.rpartition("/")[2] in ALGORITHMS or not setup.image:
        return {"code": BUILT_IN, "message": "an algorithm whose code is not yours to change"}
    compiler = compiles_today(setup)
    if compiler:
        return {"code": ALREADY, "message": f"{compiler} is on already"}
    if eligibility is None:
        return {"code": INVALID, "message": problem}
    if eligibility.verdict is EligibilityVerdict.INELIGIBLE:
        code, message = first_stop(eligibility)
        return {"code": code, "message": message}
    return None


def ranked(rows: Iterable[Document]) -> list[Document]:
    """The largest plausible saving first, then the dearest."""

    def worth(row: Document) -> tuple[float, float, float]:
        saving = row["plausible_annual_saving_usd"]
        return (saving[1] if saving else 0.0, row["usd_per_year"] or 0.0, row["usd_seen"])

    return sorted(rows, key=lambda row: (*(-one for one in worth(row)), str(row["name"])))


def unique_names(wanted: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Each name, with a number where another workload has it; at most 32 characters."""
    used, names = set(taken), []
    for name in wanted:
        number, fresh = 1, name
        while fresh in used:
            number += 1
            fresh = f"{name[: 31 - len(str(number))]}-{number}"
        used.add(fresh)
        names.append(fresh)
    return names


def file_of(folder: Path, name: str) -> Path:
    """The workload file of a name, which has nothing but letters, digits and hyphens."""
    return folder / f"{name}.yaml"

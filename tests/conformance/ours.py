"""What Compilegate would send for a case of the matrix, and what its check says of an invalid one.

From a workload file through the same parser, facts, check and builder that a trial uses.
"""

from __future__ import annotations

import json
from typing import Any

from compilegate.domain.eligibility.check import EligibilityVerdict, check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.production.job import with_overrides
from compilegate.domain.reasons import Severity
from compilegate.domain.request.build import JobContext, JobSite, quality_request
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Workload
from compilegate.facts import load_facts
from tests.conformance import cases as spec
from tests.conformance.cases import Case
from tests.conformance.invalid import Invalid
from tests.conformance.matrix import SMP_IMAGE


def built(case: Case, **overrides: Any) -> dict[str, Any]:
    """Our request for the case, a flag's overrides laid over its arm."""
    arm = with_overrides(_arm(case), spec.ARM, overrides, load_facts())
    return quality_request(
        _workload(case), arm, run=spec.RUN, replicate=spec.REPLICATE, seed=spec.SEED,
        context=_context(case), examined=False,
    )  # fmt: skip


def refusal(row: Invalid) -> list[str]:
    """Codes of what blocks the combination, none where it is let through."""
    try:
        workload = parse_workload(_refusable(row))
    except InvalidInputError as error:
        return [error.field]
    answer = check_eligibility(workload, load_facts(), region=row.region)
    candidate = answer.candidates[0]
    if candidate.verdict is not EligibilityVerdict.INELIGIBLE:
        return []
    reasons = [*answer.reasons, *candidate.reasons]
    return sorted({reason.code for reason in reasons if reason.severity is Severity.BLOCK})


def _framework(row: Case | Invalid) -> dict[str, str]:
    values = {
        "name": row.framework,
        "version": row.version,
        "transformers": row.transformers,
        "python": row.python,
    }
    return {name: value for name, value in values.items() if value}


def _document(row: Case | Invalid) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": spec.WORKLOAD,
        "owner": spec.OWNER,
        "framework": _framework(row),
        "model": {"family": "transformer", "name": "bert-base-cased"},
        "training": {
            "source_dir": "training",
            "entry_point": spec.PROGRAM,
            "instance_type": row.instance_type,
            "instance_count": row.instance_count,
            "distribution": row.distribution,
            "precision": "fp16",
            "batch_size": 48,
            "learning_rate": 7.5e-05,
            "max_runtime_hours": spec.HOURS,
            "hyperparameters": {
                "epochs": 3, "model_name_or_path": "bert-base-cased", "warmup": 0.06,
                "shuffle": True,
            },
        },
        "shapes": {"static": True},
        "schedule": {"runs_per_week": 5, "run_hours": 6.0},
        "quality": {"metric": "eval_accuracy", "goal": "maximize", "margin": 0.005},
    }  # fmt: skip


def _workload(case: Case) -> Workload:
    document = _document(case)
    training, options = document["training"], case.options
    if case.distribution == "smp":
        training["hyperparameters"]["mp_parameters"] = json.dumps(spec.PARTITIONING)
    if "spot" in options:
        training |= {"spot": True, "max_wait_hours": spec.WAIT_HOURS}
    if "volume" in options:
        training["volume_gb"] = spec.VOLUME_GB
    if "environment" in options:
        training["environment"] = dict(spec.OWN_ENVIRONMENT)
    if "inputs" in options:
        training["inputs"] = dict(spec.INPUTS)
    if "tags" in options:
        document["tags"] = dict(spec.OWN_TAGS)
    if "metric" in options:
        document["quality"]["metric"] = spec.OWN_METRIC
    if _brings_image(case):
        own = {**_framework(case), "framework": case.framework, "uri": SMP_IMAGE}
        document["facts"] = {"images": [{key: own[key] for key in own if key != "name"}]}
    return parse_workload(document)


def _brings_image(case: Case) -> bool:
    """The model-parallel library's own image is none of the framework images on file."""
    return (case.framework, case.distribution, case.version[0]) == ("pytorch", "smp", "2")


def _arm(case: Case) -> ArmPlan:
    workload = _workload(case)
    facts = load_facts().overridden(workload.facts)
    instance = facts.instance(case.instance_type)
    image = facts.image(
        workload.framework, compiler=case.compiler, region=case.region, instance=instance
    )
    if instance is None or not image.uri:
        raise AssertionError(f"no instance or image on file for {case.id}: {image.why}")
    training = workload.training
    return ArmPlan(
        name=spec.ARM,
        compiler=case.compiler,
        image=image.uri,
        instance_type=case.instance_type,
        instance_count=case.instance_count,
        devices=max(instance.gpus, 1) * case.instance_count,
        usd_per_hour=1.0,
        precision=training.precision,
        batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        distribution=case.distribution,
        overrides={},
    )


def _context(case: Case) -> JobContext:
    vpc = "vpc" in case.options
    site = JobSite(
        stage="prod",
        bucket=spec.BUCKET,
        region=case.region,
        job_roles="",
        kms_key_arn=spec.KMS_KEY if "kms" in case.options else None,
        subnet_ids=spec.SUBNETS if vpc else (),
        security_group_ids=spec.SECURITY_GROUPS if vpc else (),
    )
    return JobContext(site, spec.ROLE, spec.TRIAL, spec.EXECUTION, spec.SOURCE_KEY)


def _refusable(row: Invalid) -> dict[str, Any]:
    document = _document(row)
    # The launcher is the candidate's: what the job runs with today is a plain process.
    document["training"]["distribution"] = "none"
    if row.groups:
        document["training"]["instance_groups"] = [
            {"name": "gpu", "instance_type": row.instance_type, "instance_count": 1},
            {"name": "cpu", "instance_type": "ml.m6i.12xlarge", "instance_count": 1},
        ]
    change: dict[str, Any] = {
        "name": "candidate", "compiler": row.compiler, "distribution": row.distribution,
    }  # fmt: skip
    if (row.framework, row.version) == ("huggingface-pytorch", "1.11.0"):
        # No native image has these versions, so no job runs with them today.
        own = document["framework"]
        change["framework"] = own
        document["framework"] = {**own, "version": "2.1.0", "transformers": "4.36.0"}
        document["framework"]["python"] = "py310"
    return {**document, "candidates": [change]}

"""A trial on in-memory services, and what its jobs would have left."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

from compilegate.domain import naming
from compilegate.usecases.judge_arms import judge_arms
from compilegate.usecases.plan_trial import plan_trial
from compilegate.usecases.trial import to_json

TRIAL = "abcd1234"
SPEC = "workloads/bert-docs/specs/x.json"
EVENT = {
    "workload": "bert-docs",
    "trial": TRIAL,
    "spec_key": SPEC,
    "execution": "arn:aws:states:us-east-1:1:execution:m:bert-docs-abcd1234",
}
FLAG = "/compilegate/prod/workloads/bert-docs/compiler"


def put_spec(services: Any, workload: Any) -> None:
    document = {"workload": workload.to_dict(), "source_key": "workloads/bert-docs/s.tgz"}
    services.store.put(SPEC, to_json(document))


def first_round(services: Any) -> dict[str, Any]:
    plan_trial(EVENT, services=services)
    return judge_arms({**EVENT, "round": 0, "runs": []}, services=services)


def outcome(run: str, status: str = "Completed", **extra: Any) -> dict[str, Any]:
    job = f"{naming.job_base('bert-docs', TRIAL, run)}-r0"
    return {"run": run, "job": job, "status": status, "reason": None, **extra}


def put_output(services: Any, job: str, body: bytes) -> None:
    services.store.put(naming.job_output_key("bert-docs", TRIAL, job), body)


def evidence_tar(files: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, value in files.items():
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


def speed_output(blocks: range, *, speedup: float) -> bytes:
    files: dict[str, Any] = {}
    for block in blocks:
        for arm, step in (("baseline", 0.03), ("compile", 0.03 / speedup)):
            wobble = 1 + 0.001 * block
            lines = b"".join(
                json.dumps(
                    {"step": n, "seconds": step * wobble, "samples": 32, "loss": 3.0}
                ).encode()
                + b"\n"
                for n in range(160)
            )
            files[f"evidence/block-{block}/{arm}/steps.jsonl"] = lines
            files[f"evidence/block-{block}/{arm}/summary.json"] = {
                "schema": 1, "finished": True, "seed": block, "full_run_steps": 2000,
                "compiler": {"applied": True, "compile_seconds": 1.0 + 0.1 * block},
                "fingerprint": {"gpu": "g"}, "initial_loss": 3.0,
            }  # fmt: skip
    return evidence_tar(files)

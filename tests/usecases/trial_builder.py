"""A trial on in-memory services, the output of its jobs, and a judge with a scripted answer."""

from __future__ import annotations

import json
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import (
    Decision,
    NextStep,
    QualityStep,
    RequestedFullRun,
    SpeedStep,
    Verdict,
)
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Candidate
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.judge_arms import judge_arms
from tests.archives import tarball
from tests.domain.workload_builder import SOUND, change

TRIAL = "abcd1234"
SPEC = "workloads/bert-docs/specs/x.json"
EVENT = {
    "workload": "bert-docs",
    "trial": TRIAL,
    "spec_key": SPEC,
    "execution": "arn:aws:states:us-east-1:1:execution:m:bert-docs-abcd1234",
}
SCRIPTED = Reason("scripted", "as scripted")
FLAG = "/compilegate/prod/workloads/bert-docs/compiler"


def put_spec(services: Any, workload: Any) -> None:
    document = {"workload": workload.to_dict(), "source_key": "workloads/bert-docs/s.tgz"}
    services.store.put(SPEC, to_json(document))


def first_round(services: Any) -> dict[str, Any]:
    plan_trial(EVENT, services=services)
    return call_judge(services, 0, [], asks_speed())


def call_judge(
    services: Any, round_number: int, outcomes: list[dict[str, Any]], *says: Decision
) -> dict[str, Any]:
    """One call of JudgeArms with a judge that says this."""
    event = {**EVENT, "round": round_number, "runs": outcomes}
    return judge_arms(event, services=services, judge=ScriptedJudge(*says))


class ScriptedJudge:
    """Says one decision after the other, the last one again; keeps what it was shown."""

    def __init__(self, *decisions: Decision) -> None:
        self.decisions = list(decisions)
        self.shown: list[Evidence] = []

    def __call__(self, shown: Evidence) -> Decision:
        self.shown.append(shown)
        return self.decisions.pop(0) if len(self.decisions) > 1 else self.decisions[0]


def says(
    verdict: str,
    step: NextStep | None = None,
    candidate: str = "compile",
    why: Reason = SCRIPTED,
) -> Decision:
    return Decision(
        workload="bert-docs",
        decision_id="d1",
        judge_version="0",
        stage="quality",
        verdict=Verdict(verdict),
        candidate=candidate,
        reasons=(why,),
        next=step,
    )


def asks_speed(*arms: str, usd: float | None = 1.0, block: int = 0, blocks: int = 1) -> Decision:
    names = ("baseline", *(arms or ("compile",)))
    step = SpeedStep(block=block, blocks=blocks, steps=160, arms=names, usd=usd, why="")
    return says("continue", step)


def asks_full_runs(*runs: str, usd: float | None = 1.0, candidate: str = "compile") -> Decision:
    pairs = [run.split() for run in runs]
    planned_runs = tuple(RequestedFullRun(arm, int(seed)) for arm, seed in pairs)
    step = QualityStep(mode="shadow", runs=planned_runs, usd=usd, why="")
    return says("continue", step, candidate)


def evidence(services: Any) -> dict[str, Any]:
    """The trial's evidence document as recorded."""
    return load(services, "evidence")


def load(services: Any, document: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        services.store.get(naming.record_key("bert-docs", TRIAL, document))
    )
    return content


def outcome(run: str, status: str = "Completed", **extra: Any) -> dict[str, Any]:
    job = f"{naming.job_base('bert-docs', TRIAL, run)}-r0"
    return {"run": run, "job": job, "status": status, "reason": None, **extra}


def put_output(services: Any, job: str, body: bytes) -> None:
    services.store.put(naming.job_output_key("bert-docs", TRIAL, job), body)


def quality_output(seed: int, metric: float = 0.91, *, wall: float = 60.0, **changed: Any) -> bytes:
    summary = {
        "schema": 1, "finished": True, "seed": seed, "metrics": {"eval_accuracy": metric},
        "wall_seconds": wall, "compiler": {"applied": True, "compile_seconds": 1.0},
        "fingerprint": {"gpu": "g"}, "initial_loss": 3.0, **changed,
    }  # fmt: skip
    steps = steps_of(20, 0.03)
    return tarball({"evidence/summary.json": summary, "evidence/steps.jsonl": steps})


def steps_of(count: int, seconds: float) -> bytes:
    steps = [{"step": n, "seconds": seconds, "samples": 32, "loss": 3.0} for n in range(count)]
    return b"".join(json.dumps(step).encode() + b"\n" for step in steps)


def speed_output(block: int, arms: tuple[str, ...]) -> bytes:
    files: dict[str, Any] = {}
    for arm in arms:
        step = 0.03 if arm == "baseline" else 0.02
        wobble = 1 + 0.001 * block
        files[f"evidence/block-{block}/{arm}/steps.jsonl"] = steps_of(160, step * wobble)
        files[f"evidence/block-{block}/{arm}/summary.json"] = {
            "schema": 1, "finished": True, "seed": block, "full_run_steps": 2000,
            "compiler": {"applied": True, "compile_seconds": 1.0 + 0.1 * block},
            "fingerprint": {"gpu": "g"}, "initial_loss": 3.0,
        }  # fmt: skip
    return tarball(files)


def planned(services: Any, *candidates: Candidate, **changes: Any) -> None:
    put_spec(services, change(SOUND, candidates=candidates, **changes))
    answer = plan_trial(EVENT, services=services)
    assert "continue" == answer["verdict"], load(services, "decision")["reasons"]


def asked(services: Any, answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Requests by run id."""
    return {r["run"]: json.loads(services.store.get(r["request_key"])) for r in answer["runs"]}


def ended(services: Any, run: str, *arms: str, block: int = 0) -> Any:
    """A speed job that completed with one block of these arms."""
    done = outcome(run)
    put_output(services, done["job"], speed_output(block, arms))
    services.jobs.add(done["job"], "Completed", 1000.0, 1000.0 + 3600)
    return done


def damage_token(services: Any) -> None:
    """The one wait that the ledger has loses its token."""
    kept = services.ledger.raw.items
    (place,) = (key for key in kept if "#token#" in key[1])
    kept[place] = {name: value for name, value in kept[place].items() if name != "token"}

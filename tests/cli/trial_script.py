"""What the state machine would do to a trial in a cloud in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.cli.common.cloud import Cloud
from compilegate.domain import naming
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import Trial, save_decision, save_record
from compilegate.usecases.trial.apply_flag import apply_flag, record_decision
from tests.domain.evidence_builder import document, judge
from tests.fake_clouds import MACHINE, ScriptedExecutions


def planned(cloud: Cloud, payload: Mapping[str, Any]) -> Trial:
    """Plan the trial, as the state machine does first."""
    trial = Trial.from_event(payload)
    event = {**payload, "execution": MACHINE + naming.execution_name(trial.workload, trial.trial)}
    plan_trial(event, services=cloud.services)
    return trial


def decided(cloud: Cloud, payload: Mapping[str, Any], *, report: bool = True, **built: Any) -> None:
    """Take the trial to the decision on built evidence, flag and report included."""
    trial = planned(cloud, payload)
    evidence = {"plan": {}, **document(**built), "workload": trial.workload}
    save_record(cloud.services.store, trial, "evidence", evidence)
    key = save_decision(
        cloud.services.store, trial, judge(evidence), stage=cloud.services.settings.stage
    )
    event = {**payload, "decision_key": key}
    record_decision(event, services=cloud.services)
    apply_flag(event, services=cloud.services)
    if report:
        for extension in ("html", "md", "json"):
            body = json.dumps({"headline": "Turn the compiler on: because we say so"})
            place = naming.report_key(trial.workload, trial.trial, extension)
            cloud.services.store.put(place, body.encode())


def executions(cloud: Cloud) -> ScriptedExecutions:
    """The cloud's scripted executions."""
    assert isinstance(cloud.executions, ScriptedExecutions)
    return cloud.executions


def trial_of(cloud: Cloud) -> str:
    """The only trial that was started."""
    (payload,) = executions(cloud).started.values()
    return str(payload["trial"])

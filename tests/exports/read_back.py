"""Exports the example to real trackers and reads it back by their own packages; prints JSON.

Runs in the environment of requirements/exports.in: ``.venv-exports/bin/python -m
tests.exports.read_back FOLDER``.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from wandb.proto import wandb_internal_pb2

from compilegate_exports import mlflow_runs, wandb_runs
from compilegate_exports.arm_runs import arm_runs
from compilegate_exports.openmetrics import openmetrics
from tests.exports.example import AT, TRIAL, report

CURVE = "full_runs/eval_accuracy"
BLOCK, FULL, LAST = 32_768, 1, 4


def from_mlflow(folder: Path) -> dict[str, Any]:
    """Runs by arm, after an export that was repeated."""
    for _ in range(2):
        uri = mlflow_runs.write_runs(arm_runs(report(), trial=TRIAL, at=AT), folder)
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("compilegate/bert-docs")
    return {
        run.info.run_name: {
            "status": run.info.status, "start": run.info.start_time, "params": run.data.params,
            "tags": run.data.tags, "metrics": run.data.metrics,
            "curve": [
                (point.step, point.value)
                for point in client.get_metric_history(run.info.run_id, CURVE)
            ],
        }
        for run in client.search_runs([experiment.experiment_id])
    }  # fmt: skip


def log_records(log: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log, which an offline file is after seven bytes of its own.

    https://github.com/google/leveldb/blob/main/doc/log_format.md
    """
    at, parts = 7, b""
    while at + 7 <= len(log):
        left = BLOCK - at % BLOCK
        if left < 7:  # too short for a record's head: the block is filled up
            at += left
            continue
        length, kind = struct.unpack("<HB", log[at + 4 : at + 7])
        parts += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (FULL, LAST):
            yield parts
            parts = b""


def from_wandb(folder: Path) -> dict[str, Any]:
    """What the offline files of the runs hold, by the run's id."""
    wandb_runs.write_runs(arm_runs(report(), trial=TRIAL, at=AT), folder)
    found = {}
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        config, curve, summary, name = {}, [], {}, ""
        for data in log_records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            kind = record.WhichOneof("record_type")
            if kind == "run":
                name = record.run.run_id
                config |= {one.key: json.loads(one.value_json) for one in record.run.config.update}
            if kind == "summary":
                summary |= {
                    one.key or ".".join(one.nested_key): json.loads(one.value_json)
                    for one in record.summary.update
                }
            if kind == "history":
                row = {
                    one.key or "/".join(one.nested_key): json.loads(one.value_json)
                    for one in record.history.item
                }
                if CURVE in row:
                    curve.append((row["full_runs/step"], row[CURVE]))
        found[name] = {"config": config, "curve": curve, "summary": summary}
    return found


def from_openmetrics() -> dict[str, Any]:
    """Families by name, as the reference parser reads them; it refuses what breaks the format."""
    families = text_string_to_metric_families(openmetrics(report(), trial=TRIAL, at=AT))
    return {
        family.name: {
            "type": family.type, "unit": family.unit,
            "samples": [(sample.labels, sample.value) for sample in family.samples],
        }
        for family in families
    }  # fmt: skip


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    answers = {
        "mlflow": from_mlflow(folder / "mlruns"),
        "wandb": from_wandb(folder / "wandb"),
        "openmetrics": from_openmetrics(),
    }
    (folder / "answers.json").write_text(json.dumps(answers))

"""Exit codes and JSON of every command that needs no account of AWS, with sound and wrong input."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.frozen import workloads
from tests.frozen.entries import command, working_folder
from tests.frozen.machines import NAME, World
from tests.frozen.recording import DATA, Case
from tests.frozen.scenarios import (
    NO_CAPACITY,
    OUT_OF_MEMORY,
    only,
    production,
    promoted,
    workload,
)
from tests.frozen.workloads import in_project

COMPILERS = ("torch_compile", "sagemaker_training_compiler", "all")
YES = ("--reason", "because", "--yes")
LOCAL_DATA = "workloads/data/table/train"
TOPICS = (
    "images", "compiler", "instances", "models", "prices", "assumptions", "request-keys", "limits",
    "lifecycle", "failures", "gaps",
)  # fmt: skip
# On files: the folder holds w.yaml, other.yaml, wrong.yaml, e.json, p.json and train.py.
ON_FILES: tuple[tuple[str, ...], ...] = (
    ("check", "w.yaml"), ("check", "w.yaml", "other.yaml"), ("check", "w.yaml", "wrong.yaml"),
    ("check", "."), ("check", "gone.yaml"), ("check", "wrong.yaml"),
    ("check", "w.yaml", "--region", "nowhere"), ("check", "w.yaml", "--region", "eu-west-1"),
    ("plan", "w.yaml"), ("plan", "other.yaml"), ("plan", "wrong.yaml"), ("plan", "gone.yaml"),
    ("plan", "w.yaml", "--region", "eu-central-1"),
    ("judge", "e.json"), ("judge", "p.json"), ("judge", "e.json", "--explain"),
    ("judge", "p.json", "--explain"), ("judge", "gone.json"), ("judge", "w.yaml"), ("judge",),
    ("judge", "e.json", "--spread", "1"), ("judge", "--plan"), ("judge", "--plan", "e.json"),
    ("judge", "--plan", "w.yaml"), ("judge", "--plan", "other.yaml"),
    ("judge", "--plan", "--spread", "0.003", "--margin", "0.005", "--history", "10"),
    ("judge", "--plan", "--spread", "0.003", "--margin", "0.005", "--max-runs", "2"),
    ("judge", "--plan", "--spread", "0.05", "--margin", "0.005", "--candidates", "3"),
    ("judge", "--plan", "--spread", "0.05"), ("judge", "--plan", "--spread", "-1", "--margin", "1"),
    ("judge", "--plan", "--alpha", "0.01"), ("judge", "--replay", "abc"),
    ("judge", "e.json", "--replay", "abc"), ("judge", "e.json", "--local"),
    ("doctor", "train.py"), ("doctor", "."), ("doctor", "w.yaml"), ("doctor", "gone.py"),
    ("doctor", "train.py", "--compiler", "none"),
    ("register", "w.yaml", "--dry-run"), ("register", "gone.yaml"), ("run", "w.yaml"),
    ("run", "wrong.yaml"), ("train", NAME), ("status",), ("status", NAME), ("report",),
    ("report", NAME), ("digest",), ("drain", "--check"), ("flag", "show", NAME),
    ("flag", "history", NAME), ("flag", "revert", NAME, *YES), ("nonsense",),
    *(("facts", topic) for topic in TOPICS),
    ("facts", "images", "--framework", "pytorch", "--region", "eu-west-1"),
    ("facts", "images", "--framework", "nothing"), ("facts", "prices", "--region", "us-west-2"),
    ("facts", "compiler", "--framework", "huggingface-pytorch"), ("facts", "nonsense"),
)  # fmt: skip
# On a cloud in memory, one after the other.
SESSIONS: dict[str, tuple[Callable[[], World], Sequence[tuple[str, ...]]]] = {
    "flag by hand": (
        promoted,
        (
            ("flag", "show", NAME), ("flag", "history", NAME), ("flag", "revert", NAME, *YES),
            ("flag", "revert", NAME, *YES), ("flag", "show", NAME),
            ("flag", "set", NAME, "compile", *YES), ("flag", "set", NAME, "nobody", *YES),
            ("flag", "set", "nobody", "compile", *YES), ("flag", "set", NAME, *YES),
            ("flag", "set", NAME, "--candidate", "compile", *YES),
            ("flag", "repair", NAME, "--yes"), ("flag", "repair", NAME),
            ("flag", "approve", NAME, *YES), ("flag", "reject", NAME, *YES),
            ("flag", "revert", NAME, "--reason", "because"), ("flag", "history", NAME),
            ("status", NAME),
        ),
    ),
    "looking things up": (
        partial(production, 5),
        (
            ("digest",), ("digest", "--owner", "ml-platform"), ("digest", "--owner", "nobody"),
            ("report", NAME, "--out", "reports"), ("report", "--out", "reports"),
            ("report", NAME, "--trial", "gone", "--out", "reports"),
            ("report", "nobody", "--out", "reports"), ("flag", "history", NAME),
            ("flag", "history", "nobody"),
        ),
    ),
    "registering": (
        lambda: World(workload()),
        (
            ("register", "w.yaml", "--dry-run"), ("register", "w.yaml"), ("register", "w.yaml"),
            ("register", "w.yaml", "--repair"), ("register", "other.yaml"),
            ("register", "w.yaml", "other.yaml", "--dry-run"), ("register", "wrong.yaml"),
            ("register", "w.yaml", "wrong.yaml"), ("register", "gone.yaml"),
            ("register", "--remove", NAME), ("register", "--remove", NAME),
            ("register", "--remove", "nobody"), ("train", NAME), ("train", "nobody"),
            ("register", "w.yaml"), ("status",),
        ),
    ),
    "draining": (
        lambda: World(workload()),
        (
            ("register", "w.yaml"), ("drain", "--check"), ("drain", "--yes", "--timeout", "0"),
            ("drain", "--check"), ("drain", "--undo"), ("drain", "--undo", "--check"),
        ),
    ),
}  # fmt: skip

# Whole trials by ``run``; their ids are made from the time, so only the verdict is kept.
RUNS: dict[str, dict[str, Any]] = {
    "promote": {}, "too slow": {"speedup": 1.05}, "worse": {"loss": 0.02},
    "crashes": {"ends": only(OUT_OF_MEMORY, "speed")},
    "no machines": {"ends": only(NO_CAPACITY, "speed")},
}  # fmt: skip


def cases() -> list[Case]:
    """Every command line, every session of them, and every script for the doctor."""
    listed = [
        Case(f"{' '.join(line)}", partial(_on_files, line), whole=line[0] != "facts")
        for line in ON_FILES
    ]
    listed += [Case(f"session {name}", partial(_session, *SESSIONS[name])) for name in SESSIONS]
    listed += [Case(f"run {name}", partial(_run, world)) for name, world in RUNS.items()]
    return listed + [
        Case(f"doctor {name} {compiler}", partial(_examined, text, compiler), whole=False)
        for name, text in scripts().items()
        for compiler in COMPILERS
    ]


def scripts() -> dict[str, str]:
    """Training scripts that the doctor has something to say about, and look-alikes."""
    text = gzip.decompress((DATA / "scripts.jsonl.gz").read_bytes()).decode()
    return dict(json.loads(line) for line in text.splitlines())


def write_files() -> None:
    """Two workload files, a wrong one, evidence and a script, in the folder."""
    schedule = {**workloads.SOUND["schedule"], "cron": "rate(1 day)"}
    documents = {
        "w": {**workloads.SOUND, "schedule": schedule, "owner": "nlp"},
        "other": {**workloads.variant(3), "name": "other"},
        "wrong": {**workloads.SOUND, "shapes": 7},
    }
    for name, document in documents.items():
        document["training"] = {**document["training"], "inputs": {"train": LOCAL_DATA}}
        Path(f"{name}.yaml").write_text(workloads.text_of(document))
    for name, file in (("e.json", "evidence.json"), ("p.json", "probation.json")):
        Path(name).write_bytes((DATA / "evidence" / file).read_bytes())
    Path("train.py").write_text(scripts()["train"])


def _on_files(line: tuple[str, ...]) -> Any:
    def answer() -> Any:
        write_files()
        return command(*line, "--json")

    return in_project(b"", answer)


def _session(made: Callable[[], World], lines: Sequence[tuple[str, ...]]) -> Any:
    world = made()
    world.log.clear()

    def run() -> Any:
        write_files()
        for line in lines:
            world.command(*line)
        return world.log

    return in_project(b"", run)


def _run(changes: dict[str, Any]) -> Any:
    world = World(workload(), **changes)
    world.cloud.executions.on_start = lambda payload: world.evaluate(
        payload["trial"], spec_key=payload["spec_key"]
    )

    def run() -> Any:
        write_files()
        answer = world.command("run", "w.yaml", "--out", "reports")
        verdicts = [trial.get("verdict") for trial in _listed(answer["json"])]
        return {"exit": answer["exit"], "verdicts": verdicts}

    return in_project(b"", run)


def _listed(document: Any) -> list[dict[str, Any]]:
    return document if isinstance(document, list) else [document or {}]


def _examined(text: str, compiler: str) -> Any:
    with tempfile.TemporaryDirectory() as folder, working_folder(Path(folder)):
        Path("train.py").write_text(text)
        return command("doctor", "train.py", "--compiler", compiler, "--json")

"""What one arm of a try left behind: steps, metric, proof of its change, or why it failed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compilegate.cli.tryout.process import Ended
from compilegate.domain.naming import LAUNCHER

MOST_LINES = 12
# The class of an import's error.
MISSING_PACKAGE = ModuleNotFoundError.__name__
# What the launcher prints where it leaves out a compilation of the script's own.
LEFT_OUT = "compilegate script_compiles=left_out"
OK, FAILED, NOT_APPLIED, NO_METRIC, NOT_TRIED = (
    "ok", "failed", "not_applied", "no_metric", "not_tried",
)  # fmt: skip


@dataclass(frozen=True)
class ArmResult:
    """One arm; ``seconds_per_step`` is of its last step, ``seconds`` of the whole process.

    ``error`` is the class of the exception that ended it, where one is recorded.
    ``compiling_left_out``: the script compiles its model itself, and this arm trained without.
    """

    arm: str
    outcome: str
    why: str = ""
    steps: int = 0
    seconds_per_step: float | None = None
    samples_per_step: int | None = None
    compile_seconds: float | None = None
    metric: float | None = None
    reported: tuple[str, ...] = ()
    outcomes: bool = False
    initial_weights: str | None = None
    seconds: float = 0.0
    log: str = ""
    compiling_left_out: bool = False
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {**asdict(self), "reported": list(self.reported)}


def read_arm(arm: str, request: Mapping[str, Any], metric: str, ended: Ended) -> ArmResult:
    """What the arm's process left in its folder."""
    summary = _json(ended, "summary.json")
    steps = _steps(ended)
    compiler = summary.get("compiler") or {}
    metrics, values = summary.get("metrics") or {}, request["HyperParameters"]
    last = steps[-1] if steps else {}
    fields: dict[str, Any] = {
        "steps": len(steps),
        "seconds_per_step": last.get("seconds"),
        "samples_per_step": last.get("samples"),
        "compile_seconds": compiler.get("compile_seconds") or None,
        "metric": metrics.get(metric),
        "reported": tuple(sorted(metrics)),
        "outcomes": metric in (summary.get("outcomes") or {}),
        "initial_weights": summary.get("initial_weights_sha256"),
        "seconds": ended.seconds,
        "log": str(ended.log),
        "compiling_left_out": LEFT_OUT in _printed(ended),
        "error": _error(ended, summary),
    }
    launched = json.loads(values["sagemaker_program"]) == LAUNCHER
    outcome, why = _outcome(ended, summary, metric, whole=launched or "steps" in values)
    return ArmResult(arm, outcome, why, **fields)


def _outcome(
    ended: Ended, summary: Mapping[str, Any], metric: str, *, whole: bool
) -> tuple[str, str]:
    compiler = summary.get("compiler") or {}
    if ended.code is None:
        return FAILED, "its time was up; --minutes gives more"
    if ended.code or not summary.get("finished"):
        refused = compiler.get("requested") not in (None, "none") and not compiler.get("applied")
        done = bool(summary.get("steps"))
        return (NOT_APPLIED if refused and done else FAILED), _reason(ended, summary)
    if whole and metric not in (summary.get("metrics") or {}):
        names = ", ".join(sorted(summary.get("metrics") or {})) or "none"
        return NO_METRIC, (
            f"quality.metric {metric} was not reported; metrics that were: {names}. Name one of "
            "them, or the line that prints it in metric_patterns"
        )
    return OK, ""


def _reason(ended: Ended, summary: Mapping[str, Any]) -> str:
    """The launcher's own words; where it had none, the end of what the process printed."""
    failure = text_of(ended.folder / "output" / "failure")
    if failure is not None:
        return failure.strip()
    lines = last_lines(ended)
    return str(summary.get("reason") or (lines[-1] if lines else f"exit code {ended.code}"))


def _error(ended: Ended, summary: Mapping[str, Any]) -> str | None:
    """As the recorder caught it; without a recorder, as Python's traceback ends."""
    if summary.get("error"):
        return str(summary["error"])
    lines = last_lines(ended)
    return MISSING_PACKAGE if lines and lines[-1].startswith(f"{MISSING_PACKAGE}:") else None


def last_lines(ended: Ended) -> list[str]:
    """The last lines that the process printed."""
    return [line for line in _printed(ended).splitlines() if line.strip()][-MOST_LINES:]


def _printed(ended: Ended) -> str:
    return text_of(ended.log) or ""


def text_of(path: Path) -> str | None:
    """What a file says; None where there is none, because the script may do with it as it likes."""
    with contextlib.suppress(OSError):
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    return None


def _json(ended: Ended, name: str) -> dict[str, Any]:
    path = ended.folder / "output" / "data" / "evidence" / name
    try:
        document = json.loads(text_of(path) or "")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _steps(ended: Ended) -> list[dict[str, Any]]:
    path = ended.folder / "output" / "data" / "evidence" / "steps.jsonl"
    try:
        return [json.loads(line) for line in (text_of(path) or "").splitlines()]
    except ValueError:
        return []

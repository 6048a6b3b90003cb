"""A recorded decision, as the steps after the judge read it."""

from __future__ import annotations

from typing import Any

from compilegate.domain.decision import FLAG_ACTIONS, Verdict


def decision_document(verdict: str = "promote", **changes: Any) -> dict[str, Any]:
    """The decision d1 on the candidate ``compile``, with the flag's action of its verdict."""
    return {
        "schema": 1, "decision_id": "d1", "judge_version": "0", "stage": "quality",
        "verdict": verdict, "candidate": "compile",
        "reasons": [{"code": "speedup_proven", "message": "1.4 times as fast"}],
        "flag": {
            "name": "/compilegate/prod/bert-docs/flag",
            "action": str(FLAG_ACTIONS[Verdict(verdict)]),
        },
        **changes,
    }  # fmt: skip

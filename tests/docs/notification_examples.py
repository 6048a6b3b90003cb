"""The messages that docs/notifications.md shows, made by the code that makes the real ones.

``python -m tests.docs.notification_examples`` writes them into the page anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from compilegate.domain import naming
from compilegate.domain.notification import Notification
from compilegate.report.notifications.decision import DecisionText, decision_notification

PAGE = Path(__file__).parents[2] / "docs" / "notifications.md"
STAGE, NAME, OWNER, TRIAL = "prod", "bert-docs", "ml-platform", "0mabc123"
FLAG = naming.flag_parameter(STAGE, NAME)
SHOWN = re.compile(r"(?P<begin><!-- (?P<name>\S+) -->\n```json\n).*?(?P<end>```\n)", re.DOTALL)


def decision() -> Notification:
    """A trial that promotes."""
    document = {
        "verdict": "promote", "decision_id": "9f2c4d1e7ab0", "candidate": "compile",
        "reasons": [{"code": "speedup_proven", "message": "compile is 1.36x faster."}],
        "speedup": {"estimate": 1.36, "interval": [1.31, 1.41], "confidence": 0.95},
        "quality": {"estimate": -0.0004, "interval": [-0.002, 0.001], "margin": 0.005},
        "saving": {"usd_per_run": 216.0, "usd_per_year": 33700.0},
        "flag": {"name": FLAG, "action": "enable"},
    }  # fmt: skip
    text = "Turn the compiler on: 1.36x faster, quality held"
    message = DecisionText(
        f"[compilegate {STAGE}] {NAME}: {text}",
        f"{NAME}: {text}.\n",
        owner=OWNER,
        report=f"s3://data/reports/{NAME}/{TRIAL}/report.html",
        act=f"compilegate report {NAME} --trial {TRIAL}",
        flag_enabled=True,
    )
    return decision_notification(document, message, workload=NAME, stage=STAGE)


def text(name: str) -> str:
    """``decision`` is its body as the page shows it, ``chat`` what a channel gets of it."""
    message = decision()
    document = message.body() if name == "decision" else json.loads(_chat(message))
    fields = [f"  {json.dumps(key)}: {_inline(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _chat(message: Notification) -> str:
    envelope: dict[str, str] = json.loads(message.envelope())
    return envelope["https"]


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def refreshed(page: str) -> str:
    """The page with today's messages."""
    return SHOWN.sub(lambda m: f"{m['begin']}{text(m['name'])}{m['end']}", page)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text()))

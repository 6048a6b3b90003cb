"""One message of each kind for docs/notifications.md, made by the code that makes the real ones.

``python -m tests.docs.notification_examples`` writes them into the page anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compilegate.domain import naming
from compilegate.domain.notification import KINDS, Notification
from compilegate.usecases.approval_notice import approval_notice
from compilegate.usecases.by_hand_notice import by_hand_notice
from compilegate.usecases.change_flag import flag_history
from compilegate.usecases.digest import digests
from compilegate.usecases.flag_by_hand import Word, revert_by_hand
from compilegate.usecases.notify_decision import Told, decision_notification
from compilegate.usecases.trial import Trial
from tests.fakes import FixedClock, services
from tests.usecases.production_ledger import DAY, NOW, note, promote, ran, register

PAGE = Path(__file__).parents[2] / "docs" / "notifications.md"
STAGE, NAME, OWNER, TRIAL = "prod", "bert-docs", "ml-platform", "0mabc123"
FLAG = naming.flag_parameter(STAGE, NAME)
SHOWN = re.compile(r"(?P<begin><!-- (?P<name>\S+) -->\n```json\n).*?(?P<end>```\n)", re.DOTALL)


def _decision(verdict: str, action: str, code: str, message: str) -> dict[str, Any]:
    return {
        "verdict": verdict, "decision_id": "9f2c4d1e7ab0", "candidate": "compile",
        "reasons": [{"code": code, "message": message}],
        "speedup": {"estimate": 1.36, "interval": [1.31, 1.41], "confidence": 0.95},
        "quality": {"estimate": -0.0004, "interval": [-0.002, 0.001], "margin": 0.005},
        "saving": {"usd_per_run": 216.0, "usd_per_year": 33700.0},
        "flag": {"name": FLAG, "action": action},
    }  # fmt: skip


def _of(decision: Mapping[str, Any], text: str, **told: Any) -> Notification:
    values = {
        "owner": OWNER, "report": f"s3://data/reports/{NAME}/{TRIAL}/report.html",
        "act": f"compilegate report {NAME} --trial {TRIAL}", **told,
    }  # fmt: skip
    subject = f"[compilegate {STAGE}] {NAME}: {text.rstrip('.')}"
    words = Told(subject, f"{NAME}: {text}\n", **values)
    return decision_notification(decision, words, workload=NAME, stage=STAGE)


def decision() -> Notification:
    """A trial that promotes."""
    found = _decision("promote", "enable", "speedup_proven", "compile is 1.36x faster.")
    return _of(found, "Turn the compiler on: 1.36x faster, quality held.", flag_enabled=True)


def revert() -> Notification:
    """A regression in production."""
    found = _decision("revert", "disable", "quality_regressed", "eval_accuracy is 0.012 worse.")
    text = "Turned back off: eval_accuracy got worse in production."
    history = f"compilegate flag history {NAME}"
    return _of(found, text, flag_enabled=False, flag_state="reverted", act=history)


def permanent() -> Notification:
    """The end of a probation."""
    found = _decision("permanent", "enable", "probation_passed", "12 of 12 runs without an alarm.")
    text = "The compiler stays on for good: probation passed."
    return _of(found, text, flag_enabled=True, flag_state="permanent")


def stale() -> Notification:
    """A job that is no longer what was proven."""
    text = "compile: production is not what was proven."
    told = {"kind": "stale", "flag_enabled": False, "flag_state": "stale", "report": None}
    return _of({}, text, act=f"compilegate run workloads/{NAME}.yaml", **told)


def alarm() -> Notification:
    """A look that found something, before it is checked."""
    found = _decision("continue", "keep", "alarm", "eval_accuracy may have got worse.")
    text = "On probation: an alarm is being checked."
    return _of(found, text, kind="alarm", flag_enabled=True, flag_state="probation")


def waiting() -> Notification:
    """A production run without a machine."""
    text = "a production run waits for ml.p4d.24xlarge."
    return _of({}, text, kind="waiting", report=None, act="compilegate status")


def failed() -> Notification:
    """A step that did not work."""
    text = "a step of the production run failed (States.Timeout)."
    return _of({}, text, kind="failed", report=None, act="compilegate status")


def changed() -> Notification:
    """A person's word."""
    cloud = services(STAGE)
    register(cloud, NAME, OWNER)
    promote(cloud, NAME, NOW - DAY)
    word = Word("ada", "a data migration this week")
    made = revert_by_hand(NAME, word, services=cloud)
    entry = flag_history(NAME, cloud)[made.version - 1]
    return by_hand_notice(NAME, entry, cloud)


def approval() -> Notification:
    """A promotion that waits."""
    cloud = services(STAGE)
    register(cloud, NAME, OWNER)
    trial = Trial(NAME, TRIAL, naming.spec_key(NAME, "d1"))
    found = _decision("promote", "enable", "speedup_proven", "compile is 1.36x faster.")
    return approval_notice(found, {"until": NOW + 30 * DAY}, trial, cloud)


def digest() -> Notification:
    """A week."""
    cloud = replace(services(STAGE), clock=FixedClock(NOW))
    for name in (NAME, "gpt-notes"):
        register(cloud, name, OWNER, runs=12)
    promote(cloud, NAME, NOW - 10 * DAY)
    ran(cloud, NAME, NOW - 11 * DAY, "baseline")
    for day in (9, 6, 3):
        ran(cloud, NAME, NOW - day * DAY, "compile", usd=7.0)
    note(cloud, NAME, "watch#r", "watch", NOW - 3 * DAY, run="r", trial=TRIAL, runs=3)
    arn = f"arn:aws:states:us-east-1:1:execution:evaluate:gpt-notes-{TRIAL}"
    note(cloud, "gpt-notes", f"trial#{TRIAL}#started", "started", NOW - DAY, execution=arn)
    (found,) = digests(cloud)
    return found.notification


EXAMPLES: Mapping[str, Callable[[], Notification]] = {
    "decision": decision, "revert": revert, "permanent": permanent, "stale": stale,
    "alarm": alarm, "waiting": waiting, "failed": failed, "approval": approval,
    "changed": changed, "digest": digest,
}  # fmt: skip


def text(name: str) -> str:
    """A kind's body as the page shows it; ``chat`` is what a channel gets of a decision."""
    if name == "chat":
        document = json.loads(json.loads(decision().envelope())["https"])
    else:
        document = EXAMPLES[name]().body()
    fields = [f"  {json.dumps(key)}: {_inline(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def refreshed(page: str) -> str:
    """The page with today's messages."""
    return SHOWN.sub(lambda m: f"{m['begin']}{text(m['name'])}{m['end']}", page)


if __name__ == "__main__":
    assert set(KINDS) == set(EXAMPLES)
    PAGE.write_text(refreshed(PAGE.read_text()))

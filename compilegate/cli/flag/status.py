"""One workload's flag: parameter, ledger and latest override, and the words for its changes."""

from __future__ import annotations

from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.flag_change import agrees
from compilegate.domain.records.flags import HUMAN, Author, FlagVersion
from compilegate.domain.utc import minute
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import flag_versions

WHO = {"evaluate": "a trial (EVALUATE)", "train": "production monitoring (TRAIN)"}
HUMAN_KEYS = ("at", "by", "action", "reason")
CHANGE_KEYS = (
    *HUMAN_KEYS, "trial", "decision_key", "evidence_key", "overrode", "approved_by",
)  # fmt: skip


def flag_screen(workload: str, services: Services) -> tuple[dict[str, Any], dict[str, Any]]:
    """The flag as it stands, for programs, and what its screen shows beside that.

    A parameter that cannot be read is off, as TRAIN's next run takes it; ``problem`` is why the
    flag is not what the parameter says.
    """
    name = naming.flag_parameter(services.settings.stage, workload)
    raw, versions = services.flags.read(name), flag_versions(workload, services)
    fits, parameter, problem = agrees(raw, versions), None, None
    try:
        parameter = parse_flag(raw)
    except InvalidInputError as error:
        problem = str(error)
    if parameter is not None and parameter.enabled and not fits:
        problem = f"it is on ({parameter.candidate}), but no recorded change turned it on"
    flag = parameter if parameter is not None and problem is None else OFF
    last = versions[-1] if versions else None
    override = next((version for version in reversed(versions) if version.by_human), None)
    document = {
        "workload": workload,
        "name": name,
        "set": raw is not None,
        "enabled": flag.enabled,
        "state": flag.state,
        "candidate": flag.candidate,
        "overrides": dict(flag.overrides),
        "decision_id": flag.decision_id,
        "since": flag.since,
        "version": last.version if last else 0,
        "change": _keys(last, *CHANGE_KEYS),
        "human": _keys(override, *HUMAN_KEYS),
        "agrees": fits,
        "problem": problem,
    }
    return document, {
        "parameter": parameter, "flag": flag, "last": last, "override": override, **WORDS,
    }  # fmt: skip


def _keys(version: FlagVersion | None, *keys: str) -> dict[str, Any] | None:
    entry = version.to_entry() if version else {}
    return {key: entry.get(key) for key in keys} if entry else None


def change_line(version: FlagVersion) -> str:
    """``2026-11-20 10:00 UTC  off -> on (probation), candidate compile, by …: enable``."""
    before, after = version.previous, version.flag
    candidate = f", candidate {after.candidate}" if after.candidate else ""
    step = f"{_on(before)} -> {on_words(after)}"
    return f"{minute(version.at)}  {step}{candidate}, {version.action} by {who(version)}"


def who(author: FlagVersion | Author) -> str:
    """A person's name or the state machine's, and who approved the change."""
    by = author.by
    name = by.removeprefix(HUMAN) if by.startswith(HUMAN) else WHO.get(by, by)
    details = author.details if isinstance(author, FlagVersion) else {}
    approved_by = details.get("approved_by")
    return f"{name}, approved by {approved_by.removeprefix(HUMAN)}" if approved_by else name


def _on(flag: Flag) -> str:
    return "on" if flag.enabled else "off"


def on_words(flag: Flag) -> str:
    """``on (probation)``; a flag that is simply off is ``off``."""
    return _on(flag) if flag.state == OFF.state else f"{_on(flag)} ({flag.state})"


# What the flag's templates call.
WORDS = {"who": who, "change_line": change_line, "on_words": on_words}

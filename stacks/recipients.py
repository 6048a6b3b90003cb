"""Who is told, as the context names them; default nobody."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from compilegate.domain.fields import Fields

EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
# Of Amazon Q Developer in chat applications (its service model: SlackTeamId, SlackChannelId).
WORKSPACE = re.compile(r"[0-9A-Z]{1,255}")
CHANNEL = re.compile(r"[A-Za-z0-9]{1,255}")


@dataclass(frozen=True)
class Slack:
    """A channel of a workspace that Amazon Q Developer was let into."""

    workspace_id: str
    channel_id: str


@dataclass(frozen=True)
class Recipients:
    """``email`` is told everything, ``owner_emails`` what is about workloads of one owner."""

    email: str | None = None
    owner_emails: Mapping[str, str] = field(default_factory=dict)
    slack: Slack | None = None


def recipients(fields: Fields) -> Recipients:
    """Read them; raises InvalidInputError naming key, value and fix."""
    return Recipients(
        email=_email(fields, "notification_email", required=False),
        owner_emails=_owner_emails(fields),
        slack=_slack(fields.optional_section("slack")),
    )


def _owner_emails(fields: Fields) -> dict[str, str]:
    named: Mapping[str, object] = fields.mapping("owner_emails")
    section = Fields(named, fields.path("owner_emails"))
    return {owner: str(_email(section, owner)) for owner in named}


def _email(fields: Fields, key: str, *, required: bool = True) -> str | None:
    value: str | None = fields.text(key) if required else fields.text(key, None)
    if value is not None and not EMAIL.fullmatch(value):
        raise fields.wrong(key, "is no e-mail address", "give one such as team@example.com")
    return value


def _slack(fields: Fields | None) -> Slack | None:
    if fields is None:
        return None
    slack = Slack(fields.text("workspace_id"), fields.text("channel_id"))
    for key, value, pattern in (
        ("workspace_id", slack.workspace_id, WORKSPACE),
        ("channel_id", slack.channel_id, CHANNEL),
    ):
        if not pattern.fullmatch(value):
            fix = f"copy it from Slack; it must match {pattern.pattern}"
            raise fields.wrong(key, "is no id of Slack's", fix)
    fields.done()
    return slack

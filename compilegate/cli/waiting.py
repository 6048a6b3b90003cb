"""Promotions that wait for a person, with the commands that answer them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from compilegate.cli.cloud import Cloud
from compilegate.cli.output import say, say_line
from compilegate.domain.utc import minute
from compilegate.usecases.answer_approval import waiting_approvals


def waiting(cloud: Cloud, workloads: Collection[str]) -> list[dict[str, Any]]:
    """Every open question of these workloads, oldest first."""
    services = cloud.services
    where = "--local" if cloud.is_local else f"--stage {services.settings.stage}"
    found = [
        {
            "workload": name,
            "trial": one.trial,
            "candidate": one.asked["candidate"],
            "asked_at": one.asked["at"],
            "until": one.asked["until"],
            "approve": f'compilegate flag approve {name} --reason "..." {where}',
            "reject": f'compilegate flag reject {name} --reason "..." {where}',
        }
        for name in workloads
        for one in waiting_approvals(name, services)
    ]
    return sorted(found, key=lambda item: int(item["asked_at"]))


def show_waiting(items: Sequence[Mapping[str, Any]]) -> None:
    """Nothing where nothing waits."""
    if items:
        say("Waiting for approval:")
    for item in items:
        since, until = minute(item["asked_at"]), minute(item["until"])
        name = f"{item['workload']}-{item['trial']}"
        say(f"{name}: {item['candidate']}, since {since}, until {until}", indent=2)
        say_line(f"    {item['approve']}")
        say_line(f"    {item['reject']}")

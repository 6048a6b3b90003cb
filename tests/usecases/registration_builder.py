"""A workload to register in memory, and what registration touches."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Mapping
from typing import Any

from compilegate.domain.production.registration import Registration
from compilegate.domain.workload.model import Workload
from compilegate.usecases.registration import (
    InputFile,
    Package,
    RegisterOptions,
    RegistrationOutcome,
    RegistrationRequest,
    load_registration,
    register,
    retire,
)
from tests import fakes
from tests.domain.workload_builder import SOUND
from tests.fakes import MemorySchedules, MemoryStore

KEY = "workloads/bert-docs/registration.json"
NIGHTLY, WEEKLY = "cron(0 3 * * ? *)", "cron(0 3 ? * SUN *)"
ME = RegisterOptions(by="human:ada")


def scheduled(cron: str | None = NIGHTLY, **changes: Any) -> Workload:
    schedule = dataclasses.replace(SOUND.schedule, cron=cron)
    return dataclasses.replace(SOUND, **{"owner": "nlp", "schedule": schedule, **changes})


def asked(
    workload: Workload | None = None,
    source: bytes = b"code",
    origin: str = "workloads/bert-docs.yaml",
    verify: Callable[[Mapping[str, Any]], None] = lambda spec: None,
) -> RegistrationRequest:
    rows = InputFile("rows.csv", "0" * 64, lambda: io.BytesIO(b"1,2\n"))
    package = Package(workload or scheduled(), source, f"digest-{source.hex()}", {"train": (rows,)})
    return RegistrationRequest(package, origin, verify)


class Production:
    """Everything that registration touches, in memory."""

    def __init__(self) -> None:
        self.services = fakes.services()
        self.schedules = MemorySchedules()

    @property
    def store(self) -> MemoryStore:
        assert isinstance(self.services.store, MemoryStore)
        return self.services.store

    def register(
        self, wanted: RegistrationRequest | None = None, **changes: Any
    ) -> RegistrationOutcome:
        return register(
            wanted or asked(),
            services=self.services,
            schedules=self.schedules,
            options=dataclasses.replace(ME, **changes),
        )

    def retire(self, **changes: Any) -> RegistrationOutcome:
        return retire(
            "bert-docs",
            services=self.services,
            schedules=self.schedules,
            options=dataclasses.replace(ME, **changes),
        )

    def registered(self) -> Registration:
        return load_registration(self.store, "bert-docs")

    def history(self) -> list[tuple[str, int]]:
        entries = self.services.ledger.raw.entries("bert-docs")
        return [(entry["kind"], entry["revision"]) for entry in entries]

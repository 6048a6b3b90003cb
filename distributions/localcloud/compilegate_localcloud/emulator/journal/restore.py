"""What a killed emulator left, given to the services of the next one before it serves."""

from __future__ import annotations

import importlib.metadata
import json
import logging
from typing import Any

from compilegate_localcloud.emulator.journal import objects, states
from compilegate_localcloud.emulator.journal.file import Journal
from compilegate_localcloud.emulator.journal.recorder import STATE, Recorder
from compilegate_localcloud.emulator.sagemaker.job import TrainingJob
from compilegate_localcloud.emulator.sagemaker.service import TrainingService
from compilegate_localcloud.emulator.settings import Settings

JOB = "job"
_FORMAT = 1
log = logging.getLogger("compilegate.journal")


def open_recorder(settings: Settings) -> Recorder:
    """The recorder over the journal of the folder; raises UnusableError."""
    version = f"{_FORMAT} ministack {importlib.metadata.version('ministack')}"
    return Recorder(Journal(settings.journal, version))


def keep_job(recorder: Recorder, job: TrainingJob) -> None:
    """Write a training job's record."""
    name = json.dumps([job.account, job.region, job.name])
    document = {"request": job.request, "kept": job.to_keep()}
    recorder.put(JOB, name, json.dumps(document).encode())
    recorder.flush()


def restore(recorder: Recorder, service: TrainingService) -> bool:
    """Whether there was something; raises UnusableError."""
    journal = recorder.journal
    try:
        kept = journal.read(STATE)
        for name, content in kept.items():
            recorder.interrupted += states.restore(name, content)
        objects.restore(journal)
        for name, content in journal.read(JOB).items():
            account, region, _ = json.loads(name)
            document: dict[str, Any] = json.loads(content)
            service.restore((account, region), document["request"], document["kept"])
    except Exception as error:
        log.exception("what a killed local cloud left")
        journal.set_aside(error)
    recorder.begin()
    return bool(kept)

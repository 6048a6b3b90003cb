"""A workload's story on this machine: told anew from the ledger, or as it was saved before."""

from __future__ import annotations

from pathlib import Path

import typer

from compilegate.cli.doors import Doors, open_cloud
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.ports import Services
from compilegate.usecases.production.story import bodies, story_of

FOLDER, STEM = "{}-story", "story"


def find_story(doors: Doors, workload: str, out: Path, *, local: bool, stage: str) -> Path:
    """The page; with ``local`` and no local cloud running, the one that was saved before."""
    try:
        cloud = open_cloud(doors, local=local, stage=stage)
    except EnvironmentNotReadyError:
        saved = _page(workload, out)
        if not (local and saved.is_file()):
            raise
        typer.echo("The local cloud does not run; this story was saved before.", err=True)
        return saved
    return save_story(workload, cloud.services, out)


def save_story(workload: str, services: Services, out: Path) -> Path:
    """Tell the story as it stands now and save its files; raises NotFoundError without any."""
    page = _page(workload, out)
    files = bodies(story_of(workload, services))
    page.parent.mkdir(parents=True, exist_ok=True)
    for extension, body in files.items():
        page.with_suffix(f".{extension}").write_bytes(body)
    return page


def _page(workload: str, out: Path) -> Path:
    return out / FOLDER.format(workload) / f"{STEM}.html"

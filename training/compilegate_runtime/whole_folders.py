"""Folders that another process may find half written, or half copied: a list says what is whole."""

import json
import shutil

LIST = "whole.json"
# Checkpoints of a run that stay. SageMaker copies a folder to S3 file by file, and deletes there
# what was deleted here: the newest may be in S3 in part when a job is killed.
NEWEST_KEPT = 2


def publish(fresh, place):
    """Give the complete folder ``fresh`` its name, with a list of its files."""
    sizes = {
        path.relative_to(fresh).as_posix(): path.stat().st_size
        for path in fresh.rglob("*")
        if path.is_file()
    }
    (fresh / LIST).write_text(json.dumps(sizes))
    shutil.rmtree(place, ignore_errors=True)
    fresh.rename(place)


def is_whole(folder):
    """Whether all files of the list are there."""
    try:
        sizes = json.loads((folder / LIST).read_text())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False

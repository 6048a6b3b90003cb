"""Where a script's data comes from: a path of the project, or channels that a person must name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from compilegate.cli.init import names
from compilegate.cli.init.render import Value, to_write
from compilegate_doctor import Description, Option

CHANNEL, INPUTS = "train", "/opt/ml/input/data"
_SOURCE = "a path, which is uploaded, or s3://bucket/folder/"


@dataclass(frozen=True)
class Data:
    """A path of the project that ``option`` names by default, and its ``place`` in a job."""

    option: str
    path: str
    place: str


def data_of(script: Description, path: Path, folder: Path) -> Data | None:
    """A path of the project that the script reads its data from by default."""
    option = script.command_line.find(names.DATA)
    if option is None or not isinstance(option.default, str) or not option.default.strip("./"):
        return None
    for start in (Path.cwd(), path.parent):
        data = Path(os.path.normpath(start.resolve() / option.default))
        if data.exists() and data.is_relative_to(folder) and data != folder:
            place = f"{INPUTS}/{CHANNEL}"
            place += "" if data.is_dir() else f"/{data.name}"
            return Data(option.name, data.relative_to(folder).as_posix(), place)
    return None


def inputs_of(script: Description, data: Data | None) -> Value:
    """``training.inputs``: the project's own data, else what the script needs from elsewhere."""
    if data is not None:
        return Value({CHANNEL: data.path}, f"channels: {_SOURCE}")
    if script.channels:
        note = f"the script reads this channel: {_SOURCE}"
        return Value({channel: to_write(note) for channel in script.channels})
    option = script.command_line.find(names.DATA)
    if option is None:
        return Value({}, f"channels: {_SOURCE}")
    if _is_folder(option) and option.required:
        note = f"for {option.name}: {_SOURCE}; add a single file's name above"
        return Value({CHANNEL: to_write(note)})
    place = f"{INPUTS}/{CHANNEL}" + ("" if _is_folder(option) else "/FILE")
    return Value({}, f"data of its own: {{{CHANNEL}: PATH}}, and above {option.name}: {place}")


def place_of(option: Option, script: Description, data: Data | None) -> str | None:
    """Where in a job an option of the script finds its data; None where that is not known."""
    if data is not None:
        return data.place if option.name == data.option else None
    own = option == script.command_line.find(names.DATA) and not script.channels
    return f"{INPUTS}/{CHANNEL}" if own and option.required and _is_folder(option) else None


def _is_folder(option: Option) -> bool:
    return not option.plain.endswith("file")

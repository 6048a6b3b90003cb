"""Adds the files that `pyproject.toml` lists: beside this one in a source archive, else above."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SharedFiles(BuildHookInterface[Any]):
    """Files that a checkout keeps with the rest of the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Called by hatchling before it builds a wheel or a source archive."""
        folder = Path(self.root)
        source = folder if (folder / "compilegate").is_dir() else folder.parents[1]
        files: list[str] = self.config["files"]
        build_data["force_include"] |= {str(source / name): name for name in files}

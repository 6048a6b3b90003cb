"""The page's own files, and plotly.js from wherever it is installed."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from compilegate.domain.errors import EnvironmentNotReadyError

FOLDER = Path(__file__).parent
PLOTLY = "plotly.min.js"


@cache
def plotly_javascript() -> str:
    """plotly.js: the copy bundled here, else the installed plotly package's.

    Raises EnvironmentNotReadyError when there is neither.
    """
    for candidate in (FOLDER / PLOTLY, _installed()):
        if candidate is not None and candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    raise EnvironmentNotReadyError(
        f"the report needs {PLOTLY}: it is neither at {FOLDER / PLOTLY} nor in an installed "
        "plotly package. Fix: bundle the file there, or install plotly"
    )


def asset(name: str) -> str:
    """The text of one of the page's own files."""
    return (FOLDER / name).read_text(encoding="utf-8")


def _installed() -> Path | None:
    # find_spec on the top package does not import it: plotly takes a second to import.
    spec = importlib.util.find_spec("plotly")
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / "package_data" / PLOTLY if places else None

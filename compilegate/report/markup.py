"""What pages and Markdown are put together from: templates, scripts, downloads, safe text."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.outside import visible
from compilegate.report.charts.base import DARK_OF_LIGHT, Chart

ASSETS = Path(__file__).parent / "assets"
PLOTLY = "plotly.min.js"
TONE_MARKS = {"good": "✅", "off": "⏹️", "open": "❔", "bad": "⚠️"}
# Each could end the script element, open a comment, or end a line in old parsers.
UNSAFE = str.maketrans({c: f"\\u{ord(c):04x}" for c in ("<", ">", "&", "\u2028", "\u2029")})


@dataclass(frozen=True)
class Download:
    """A document to keep, as a link that needs no server."""

    name: str
    file: str
    uri: Markup

    @classmethod
    def of_json(cls, name: str, file: str, text: str) -> Download:
        """A download of JSON text."""
        body = base64.b64encode(text.encode()).decode()
        uri = Markup(f"data:application/json;base64,{body}")  # noqa: S704 - base64 needs no escapes
        return cls(name, file, uri)


def render_page(template: str, drawn: Sequence[Chart], values: Mapping[str, Any]) -> str:
    """The page of a template with its charts, style and scripts inside.

    Raises EnvironmentNotReadyError when there are charts and plotly.js is not to be found.
    """
    # plotly.js only where there is something to draw: it is most of the page's size.
    scripts = [_inline((ASSETS / "report.js").read_text(encoding="utf-8"))]
    if any(chart.views for chart in drawn):
        scripts.insert(0, _inline(plotly_javascript()))
    figures = {chart.id: [view.figure for view in chart.views] for chart in drawn}
    return _environment().get_template(template).render(
        **values,
        charts=drawn,
        style=Markup((ASSETS / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - our file
        figures=_script_json(figures),
        palette=_script_json(DARK_OF_LIGHT),
        scripts=scripts,
        script_policy=" ".join(map(_script_hash, scripts)),
    )  # fmt: skip


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A percent sign never stands alone at the start of a line.
    environment.filters["unbroken"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")
    return environment


def _visible(value: Any) -> Any:
    """What a template shows; text of a job or a file may be in it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def plotly_javascript() -> str:
    """plotly.js: the copy bundled here, else the installed plotly package's.

    Raises EnvironmentNotReadyError when there is neither.
    """
    for candidate in (ASSETS / PLOTLY, _installed_plotly()):
        if candidate is not None and candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    raise EnvironmentNotReadyError(
        f"the report needs {PLOTLY}: it is neither at {ASSETS / PLOTLY} nor in an installed "
        "plotly package. Fix: bundle the file there, or install plotly"
    )


def _installed_plotly() -> Path | None:
    # find_spec on the top package does not import it: plotly takes a second to import.
    spec = importlib.util.find_spec("plotly")
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / "package_data" / PLOTLY if places else None


@cache
def _inline(source: str) -> Markup:
    """JavaScript of ours, or plotly.js, that may stand in a script element."""
    text = source.replace("\r\n", "\n").replace("</script", "<\\/script")
    return Markup(text.replace("<!--", "<\\!--"))  # noqa: S704 - not from a document


@cache
def _script_hash(text: str) -> str:
    """The source expression that lets exactly this script run (Content Security Policy 3)."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _script_json(document: Any) -> Markup:
    """JSON that cannot leave its script element, whatever strings it contains."""
    text = stable_json(document, indent=None).translate(UNSAFE)
    return Markup(text)  # noqa: S704 - escaped for a script


def stable_json(document: Any, *, indent: int | None = 2) -> str:
    """JSON with sorted keys, the same text for the same document; NaN and infinities are null."""
    separators = None if indent else (",", ":")
    return json.dumps(
        _finite(document), sort_keys=True, indent=indent, separators=separators,
        ensure_ascii=False, allow_nan=False, default=str,
    )  # fmt: skip


def _finite(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {visible(str(key)): _finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_finite(item) for item in value]
    return value


def markdown_text(text: str) -> str:
    """Text without markup, HTML, mentions or line breaks."""
    flat = " ".join(visible(str(text)).split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", flat)
    return flat.replace("@", "@\u200b").replace("://", ":\u200b//")


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; the cells' contents stay text."""
    align = ["---", *("---:" for _ in columns[1:])]
    lines = [
        "| " + " | ".join(markdown_text(cell) for cell in row) + " |" for row in (columns, *rows)
    ]
    return [lines[0], "| " + " | ".join(align) + " |", *lines[1:], ""]

"""What every page of this package is put together from: templates, scripts, downloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compilegate.report import embed
from compilegate.report.assets import FOLDER, asset, plotly_javascript
from compilegate.report.charts.base import Chart
from compilegate.report.charts.palette import DARK_OF_LIGHT


@dataclass(frozen=True)
class Download:
    """A document to keep, as a link that needs no server."""

    name: str
    file: str
    uri: Markup

    @classmethod
    def of_text(cls, name: str, file: str, text: str) -> Download:
        """A download of JSON text."""
        uri = Markup(embed.data_uri(text))  # noqa: S704 - base64 has nothing to escape
        return cls(name, file, uri)


@dataclass(frozen=True)
class Script:
    """JavaScript and the expression that allows it to run."""

    source: Markup
    allowed_as: str


def render_page(template: str, drawn: Sequence[Chart], values: Mapping[str, Any]) -> str:
    """The page of a template with its charts, style and scripts inside."""
    found = _scripts(drawn)
    return _environment().get_template(template).render(
        **values,
        charts=drawn,
        style=Markup(asset("style.css")),  # noqa: S704 - a file of this package
        figures=Markup(embed.script_json(_figures(drawn))),  # noqa: S704 - escaped for a script
        palette=Markup(embed.script_json(DARK_OF_LIGHT)),  # noqa: S704 - colours of this package
        scripts=[script.source for script in found],
        script_policy=" ".join(script.allowed_as for script in found),
    )  # fmt: skip


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = _unbroken
    return environment


def _unbroken(text: str) -> str:
    """A percent sign never alone at the start of a line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _scripts(drawn: Sequence[Chart]) -> list[Script]:
    """plotly.js only where there is something to draw: it is most of the page's size."""
    own = _script(embed.script_source(asset("report.js")))
    return [_plotly(), own] if any(chart.views for chart in drawn) else [own]


@cache
def _plotly() -> Script:
    return _script(embed.script_source(plotly_javascript()))


def _script(text: str) -> Script:
    return Script(Markup(text), embed.script_hash(text))  # noqa: S704 - our own file, or plotly.js


def _figures(drawn: Sequence[Chart]) -> dict[str, list[Any]]:
    return {chart.id: [view.figure for view in chart.views] for chart in drawn}

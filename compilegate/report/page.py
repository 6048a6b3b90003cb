"""The HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compilegate.report import embed, words
from compilegate.report.assets import FOLDER, asset, plotly_javascript
from compilegate.report.carried import carried_table
from compilegate.report.case import Case
from compilegate.report.charts import Chart, charts
from compilegate.report.charts.palette import DARK_OF_LIGHT
from compilegate.report.controls import control_sentences
from compilegate.report.evidence_tables import (
    blocks_table,
    failures_table,
    fingerprint_table,
    runs_table,
)
from compilegate.report.headline import headline
from compilegate.report.model import Document
from compilegate.report.protocol import plan_table, protocol
from compilegate.report.settle import what_would_change
from compilegate.report.tables import Table, arms_table, eligibility_table  # fmt: skip
from compilegate.report.tiles import tiles

# An evidence document beyond this is linked by its place in the bucket, not carried along.
EMBEDDED_EVIDENCE_MAX = 4_000_000


@dataclass(frozen=True)
class Download:
    """A document to keep, as a link that needs no server."""

    name: str
    file: str
    uri: Markup


@dataclass(frozen=True)
class Script:
    """JavaScript and the expression that allows it to run."""

    source: Markup
    allowed_as: str


def page(case: Case, summary: Document) -> str:
    """The page of one trial; ``summary`` is the report's own JSON."""
    drawn = charts(case.decision, case.source["evidence"], case.measured)
    scripts = _scripts(drawn)
    context = case.source["context"]
    return _environment().get_template("report.html.j2").render(
        workload=case.workload,
        trial=context["trial"],
        stage=context["stage"],
        simulated=context.get("simulated"),
        label=words.label(case),
        tone=words.tone(case),
        headline=headline(case),
        lede=words.lede(case),
        reasons=case.reasons,
        controls=control_sentences(case.decision),
        tiles=tiles(case),
        charts=drawn,
        not_measured=case.measured if isinstance(case.measured, str) else None,
        changes=what_would_change(case),
        arms=arms_table(case),
        eligibility=eligibility_table(case),
        eligibility_verdict=case.eligibility.get("verdict"),
        protocol=protocol(case),
        details=_details(case),
        downloads=_downloads(case, summary),
        style=Markup(asset("style.css")),  # noqa: S704 - a file of this package
        figures=Markup(embed.script_json(_figures(drawn))),  # noqa: S704 - escaped for a script
        palette=Markup(embed.script_json(DARK_OF_LIGHT)),  # noqa: S704 - colours of this package
        scripts=[script.source for script in scripts],
        script_policy=" ".join(script.allowed_as for script in scripts),
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


def _figures(drawn: Sequence[Chart]) -> dict[str, list[Document]]:
    return {chart.id: [view.figure for view in chart.views] for chart in drawn}


def _details(case: Case) -> list[Table]:
    found = [plan_table(case)]
    if not isinstance(case.measured, str):
        measured = case.measured
        found += [
            fingerprint_table(measured), blocks_table(measured), runs_table(measured),
            carried_table(case), failures_table(measured),
        ]  # fmt: skip
    return [table for table in found if table is not None]


def _downloads(case: Case, summary: Document) -> list[Download]:
    stem = f"{case.workload}-{case.source['context']['trial']}"
    found = [
        Download("Decision and context", f"{stem}-report.json", _uri(embed.stable_json(summary)))
    ]
    evidence = case.source["evidence"]
    text = "" if evidence is None else embed.stable_json(evidence, indent=None)
    if text and len(text) <= EMBEDDED_EVIDENCE_MAX:
        found.append(Download("Evidence, to judge it again", f"{stem}-evidence.json", _uri(text)))
    return found


def _uri(text: str) -> Markup:
    return Markup(embed.data_uri(text))  # noqa: S704 - base64 has nothing to escape

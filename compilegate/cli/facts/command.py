"""``compilegate facts``: facts with their source and age."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any

import typer

from compilegate.cli.common import project
from compilegate.cli.common.help import CommandGroup
from compilegate.cli.common.output import emit_json
from compilegate.cli.common.session import JsonOption
from compilegate.cli.facts.refresh import check_known_region, refresh
from compilegate.cli.facts.screen import show_overview, show_topic
from compilegate.domain.compilers import COMPILERS, has_own_image
from compilegate.domain.facts import Facts
from compilegate.facts import load_facts
from compilegate.facts.topics import TOPICS, Row, chosen, overview, with_age

app = typer.Typer(cls=CommandGroup, rich_markup_mode=None)
app.command("refresh")(refresh)

# Help of each option; all but --region and --managed-compiler filter the rows by their values.
OPTIONS = {
    "framework": "For example pytorch.",
    "version": "The framework's; 2.1 is every 2.1.x.",
    "compiler": f"{' or '.join(['none', *filter(has_own_image, COMPILERS)])}.",
    "instance": "A type or a family: ml.g5.xlarge or g5.",
    "model": "Part of its name, for example bert.",
    "confidence": "given, list, high, medium or low.",
    "switches": "What it turns on, for example pytorchxla.",
    "service": "For example CreateTrainingJob.",
    "subject": "For example PyTorch.",
    "where": "container, training or api.",
    "kind": "accepted, rejected or documentation.",
    "region": "An AWS region. Default: the environment's, else the one in cdk.json.",
    "managed_compiler": "Only types that it accepts.",
}


@dataclass(frozen=True)
class TopicCommand:
    """One topic's command; ``requires`` is the column that an option's rows must have."""

    help: str
    options: Sequence[str] = ()
    requires: tuple[str, str] | None = None


COMMANDS = {
    "images": TopicCommand(
        """Show training images, your own first.

        With --region, shows their URIs in that region.

        \b
        compilegate facts images --framework huggingface-pytorch
        compilegate facts images --framework pytorch --region eu-west-1
        """,
        ("framework", "version", "compiler", "region"),
        requires=("region", "uri"),
    ),
    "compiler": TopicCommand(
        """Show versions with SageMaker Training Compiler.

        With --region, shows only those in that region.

        \b
        compilegate facts compiler --framework pytorch
        compilegate facts compiler --region us-gov-west-1
        """,
        ("framework", "version", "region"),
        requires=("region", "in_region"),
    ),
    "instances": TopicCommand(
        """Show instance types: GPUs, memory, precisions, quotas.

        Also EFA and retirement. Quotas appear once `refresh` has read them.

        \b
        compilegate facts instances --instance g5
        compilegate facts instances --managed-compiler
        """,
        ("instance", "managed_compiler", "region"),
        requires=("managed_compiler", "managed_compiler"),
    ),
    "models": TopicCommand(
        """Show the largest batches tested with the managed compiler.

        Batches that AWS tested, not speeds: a ratio below 1 means that the compiled model fits
        fewer samples.

        \b
        compilegate facts models --model bert-base --instance g5
        compilegate facts models --framework huggingface-tensorflow --json
        """,
        ("framework", "version", "model", "instance"),
    ),
    "prices": TopicCommand(
        """Show prices per hour on demand, with their confidence.

        US dollars per instance. given = in cdk.json; list = AWS's price list, read by `refresh`;
        high = two public sources agree; medium = one; low = old, inferred or of a retired type.

        \b
        compilegate facts prices --instance p4d
        compilegate facts prices --confidence low
        """,
        ("instance", "confidence", "region"),
    ),
    "assumptions": TopicCommand(
        """Show what is assumed of a compiler before a trial.

        What a workload's own trial measures replaces the assumption.

        \b
        compilegate facts assumptions --json
        """
    ),
    "request-keys": TopicCommand(
        """Show the request keys that turn on compiler and launchers.

        The keys are those of CreateTrainingJob.

        \b
        compilegate facts request-keys --switches smddp
        """,
        ("switches",),
    ),
    "limits": TopicCommand(
        """Show limits of the services used.

        \b
        compilegate facts limits --service "Step Functions"
        """,
        ("service",),
    ),
    "lifecycle": TopicCommand(
        """Show what is frozen, unpatched, retired or removed.

        \b
        compilegate facts lifecycle --subject "managed compiler"
        """,
        ("subject",),
    ),
    "failures": TopicCommand(
        """Show how jobs with the managed compiler fail, and why.

        \b
        compilegate facts failures --where container
        """,
        ("where",),
    ),
    "gaps": TopicCommand(
        """Show what the SageMaker SDK or its documentation gets wrong.

        What the SDK accepts or rejects wrongly, and errors of the documentation.

        \b
        compilegate facts gaps --kind accepted
        """,
        ("kind",),
    ),
}


@app.callback(invoke_without_command=True)
def facts(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """Show dated facts: images, instances, prices, limits.

    Every row has a source and a date. Needs no account. Without a topic, shows an overview.
    `refresh` reads prices, images and quotas from an AWS account.

    \b
    compilegate facts
    compilegate facts images --framework pytorch --version 2.8 --region eu-west-1
    compilegate facts models --model bert --instance g5
    compilegate facts prices --json
    compilegate facts refresh --dry-run
    """
    if ctx.invoked_subcommand is not None:
        return
    here = load_region_facts(None)
    rows = [overview(name, here.rows(name), here.today) for name in TOPICS]
    if as_json:
        emit_json({"region": here.region, "today": str(here.today), "topics": rows})
    else:
        show_overview(rows)


def _topic_command(topic: str, described: TopicCommand) -> Callable[..., None]:
    """A function with the topic's options as parameters, for Typer to read."""

    def command(*, region: str | None = None, as_json: bool, **options: Any) -> None:
        required = described.requires
        column = None
        if required is not None and {"region": region, **options}[required[0]]:
            column = required[1]
        filters = {name: value for name, value in options.items() if name != "managed_compiler"}
        _show(topic, filters, region, as_json=as_json, column=column)

    parameters = []
    for name in described.options:
        option = typer.Option(f"--{name.replace('_', '-')}", help=OPTIONS[name])
        if name == "managed_compiler":
            parameters.append(_parameter(name, Annotated[bool, option], default=False))
        else:
            parameters.append(_parameter(name, Annotated[str | None, option], default=None))
    parameters.append(_parameter("as_json", JsonOption, default=False))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameter(name: str, annotation: Any, *, default: bool | None) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


for _name, _described in COMMANDS.items():
    app.command(_name, help=_described.help)(_topic_command(_name, _described))


@dataclass(frozen=True)
class RegionFacts:
    """The facts of a region as of today, with what cdk.json gives laid over them."""

    facts: Facts
    region: str
    today: date

    def rows(self, topic: str) -> list[Row]:
        """A topic's rows with their age."""
        return with_age(TOPICS[topic].rows(self.facts, self.region), self.today)


def load_region_facts(region: str | None) -> RegionFacts:
    """The facts of a region, by default the environment's or cdk.json's.

    Raises InvalidInputError for a region that no registry of images serves.
    """
    settings = project.settings()
    where = check_known_region(region) if region else settings.region
    overridden = load_facts(where).overridden(settings.facts)
    return RegionFacts(overridden, where, datetime.now(tz=UTC).date())


def _show(
    topic: str,
    filters: Mapping[str, str | None],
    region: str | None,
    *,
    as_json: bool,
    column: str | None,
) -> None:
    """Show a topic's rows that match the filters and have a value in ``column``."""
    here = load_region_facts(region)
    rows = chosen(here.rows(topic), filters)
    if column is not None:
        rows = [row for row in rows if row[column]]
    document = {
        "topic": topic, "region": here.region, "today": str(here.today), "rows": rows,
    }  # fmt: skip
    if as_json:
        emit_json(document)
    else:
        show_topic(document, region, addresses=column == "uri")

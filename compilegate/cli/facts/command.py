"""``compilegate facts``: what is known, from where, and how old it is."""

from __future__ import annotations

from typing import Annotated

import typer

from compilegate.cli.common.options import JsonOption
from compilegate.cli.common.output import emit_json
from compilegate.cli.facts import refresh as facts_refresh
from compilegate.cli.facts import screen as facts_screen
from compilegate.cli.facts.region_facts import load_region_facts, show
from compilegate.facts.topics import TOPICS, overview

app = typer.Typer(rich_markup_mode=None)
app.command("refresh")(facts_refresh.refresh)

FrameworkOption = Annotated[str | None, typer.Option("--framework", help="For example pytorch.")]
VersionOption = Annotated[
    str | None, typer.Option("--version", help="The framework's; 2.1 is every 2.1.x.")
]
InstanceOption = Annotated[
    str | None, typer.Option("--instance", help="A type or a family: ml.g5.xlarge or g5.")
]
RegionOption = Annotated[
    str | None,
    typer.Option("--region", help="An AWS region; without it the environment's or cdk.json's."),
]


@app.callback(invoke_without_command=True)
def facts(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """Show what compilegate knows of images, instances, prices and limits, and how old it is.

    Every row has a source and a date; needs no account. Without a topic: how much there is of
    each and how old. `refresh` reads what an AWS account can tell.

    \b
    compilegate facts
    compilegate facts images --framework pytorch --version 2.8 --region eu-west-1
    compilegate facts models --model bert --instance g5
    compilegate facts prices --json
    compilegate facts refresh --dry-run
    """
    if ctx.invoked_subcommand is not None:
        return
    facts_ = load_region_facts(None)
    rows = [overview(name, facts_.rows(name), facts_.today) for name in TOPICS]
    if as_json:
        emit_json({"region": facts_.region, "today": str(facts_.today), "topics": rows})
    else:
        facts_screen.show_overview(rows)


@app.command("images")
def images(
    framework: FrameworkOption = None,
    version: VersionOption = None,
    compiler: Annotated[
        str | None,
        typer.Option("--compiler", help="none or sagemaker_training_compiler."),
    ] = None,
    *,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show training images, yours before AWS's; with --region those that are there, with address.

    \b
    compilegate facts images --framework huggingface-pytorch
    compilegate facts images --framework pytorch --region eu-west-1
    """
    filters = {"framework": framework, "version": version, "compiler": compiler}
    where = None if region is None else "uri"
    show("images", filters, region, as_json=as_json, having=where)


@app.command("compiler")
def compiler(
    framework: FrameworkOption = None,
    version: VersionOption = None,
    *,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what SageMaker Training Compiler exists for; with --region only what is there.

    \b
    compilegate facts compiler --framework pytorch
    compilegate facts compiler --region us-gov-west-1
    """
    filters = {"framework": framework, "version": version}
    where = None if region is None else "in_region"
    show("compiler", filters, region, as_json=as_json, having=where)


@app.command("instances")
def instances(
    instance: InstanceOption = None,
    *,
    managed_compiler: Annotated[
        bool, typer.Option("--managed-compiler", help="Only types that it accepts.")
    ] = False,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show instance types: GPUs, memory, precisions, EFA, retired or not, quotas once read.

    \b
    compilegate facts instances --instance g5
    compilegate facts instances --managed-compiler
    """
    fits = "managed_compiler" if managed_compiler else None
    show("instances", {"instance": instance}, region, as_json=as_json, having=fits)


@app.command("models")
def models(
    framework: FrameworkOption = None,
    version: VersionOption = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Part of its name, for example bert.")
    ] = None,
    instance: InstanceOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the largest batches that AWS tested the managed compiler with.

    Batches, not speeds: a ratio below 1 means that the compiled model fits fewer samples.

    \b
    compilegate facts models --model bert-base --instance g5
    compilegate facts models --framework huggingface-tensorflow --json
    """
    filters = {"framework": framework, "version": version, "model": model, "instance": instance}
    show("models", filters, None, as_json=as_json)


@app.command("prices")
def prices(
    instance: InstanceOption = None,
    confidence: Annotated[
        str | None, typer.Option("--confidence", help="given, list, high, medium or low.")
    ] = None,
    *,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show US dollars per hour of one instance on demand, and how sure each is.

    given = in cdk.json; list = AWS's price list, read by `refresh`; high = two public sources
    agree; medium = one; low = old, inferred or of a retired type.

    \b
    compilegate facts prices --instance p4d
    compilegate facts prices --confidence low
    """
    filters = {"instance": instance, "confidence": confidence}
    show("prices", filters, region, as_json=as_json)


@app.command("assumptions")
def assumptions(*, as_json: JsonOption = False) -> None:
    """Show what is assumed of a compiler until a workload's own trial has measured it.

    \b
    compilegate facts assumptions --json
    """
    show("assumptions", {}, None, as_json=as_json)


@app.command("request-keys")
def request_keys(
    switches: Annotated[
        str | None, typer.Option("--switches", help="What it turns on, for example pytorchxla.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show which keys of a CreateTrainingJob request turn the compiler and each launcher on.

    \b
    compilegate facts request-keys --switches smddp
    """
    show("request-keys", {"switches": switches}, None, as_json=as_json)


@app.command("limits")
def limits(
    service: Annotated[
        str | None, typer.Option("--service", help="For example CreateTrainingJob.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show limits of the services used.

    \b
    compilegate facts limits --service "Step Functions"
    """
    show("limits", {"service": service}, None, as_json=as_json)


@app.command("lifecycle")
def lifecycle(
    subject: Annotated[str | None, typer.Option("--subject", help="For example PyTorch.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what is frozen, unpatched, retired or removed.

    \b
    compilegate facts lifecycle --subject "managed compiler"
    """
    show("lifecycle", {"subject": subject}, None, as_json=as_json)


@app.command("failures")
def failures(
    where: Annotated[
        str | None, typer.Option("--where", help="container, training or api.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show how jobs with the managed compiler fail, and what each message means.

    \b
    compilegate facts failures --where container
    """
    show("failures", {"where": where}, None, as_json=as_json)


@app.command("gaps")
def gaps(
    kind: Annotated[
        str | None, typer.Option("--kind", help="accepted, rejected or documentation.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what the SageMaker SDK lets through or refuses, and where the documentation errs.

    \b
    compilegate facts gaps --kind accepted
    """
    show("gaps", {"kind": kind}, None, as_json=as_json)

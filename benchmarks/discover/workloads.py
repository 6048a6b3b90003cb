"""The workloads of a generated account, and what makes them hard to tell from their jobs.

What is one workload is what a person says who reads the jobs alone, with their tags: a program
that one owner trains. So a case is generated only where the records hold what decides it:

- one: the program under another name from some day on, a run again after a failure, a sweep whose
  values are in the name and among the hyperparameters, a name with a date that moves.
- two: two programs under one name, one program of two owners, names that are nearly equal, names
  that are equal after the SDK has cut them, two containers without a program's name of one image.
- unclear: one program, of a common name, under one name for each country; one whose name changes
  while nothing but the name says what it trains; the same jobs in another region. A truth of the
  form ``WORKLOAD/PART`` says so: the parts together are right, and so is each part alone.

Requests of the SDK's third version do not name the program, so that a new name is unclear there,
and two programs differ in the image or in where their data lies.

Search answers for one account, so an account has no copies of another's jobs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, product
from types import MappingProxyType
from typing import Any

from benchmarks.discover.scoring import whole

V2, V3, PIPELINES, HAND, MIXED = "sdk-v2", "sdk-v3", "pipelines", "hand", "mixed"
# By hand too, with names that were added once the grouping was good at the others.
OTHER = "other-hand"
STYLES = (V2, V3, PIPELINES, HAND, MIXED, OTHER)
# How people name jobs by hand: examples are in names.py.
SCHEMES = ("epoch", "airflow", "day", "compact", "execution", "hex", "build", "counter", "dated")
OTHER_SCHEMES = (
    "iso", "milliseconds", "ulid", "branch", "pipeline", "user", "version", "run", "month", "uuid8",
)  # fmt: skip
ONE_A_DAY = ("day", "dated", "user")
ACCOUNT, REGION, OTHER_REGION = "111122223333", "us-east-1", "eu-west-1"

_SUBJECTS = (
    "churn", "fraud", "ranker", "bert-base", "search", "pricing", "demand", "vision", "speech",
    "recsys", "ads-ctr", "intent", "toxicity", "ocr", "credit-risk", "eta", "routing", "translate",
    "summary", "embedding", "anomaly", "sentiment", "resnet50", "llama-8b", "forecast",
)  # fmt: skip
_PURPOSES = (
    "model", "train", "v3", "finetune", "nightly", "weekly", "prod", "mobile", "eu", "large",
    "distill", "pretrain", "baseline", "heads", "features", "2stage", "experiments", "daily",
)  # fmt: skip
_OWNERS = ("search", "risk", "ads", "platform", "nlp", "vision")
_DEEP_LEARNING = ("pytorch-training", "huggingface-pytorch-training", "tensorflow-training")
# Instance types with a price on file, from what many workloads use to what few do.
_MACHINES = (
    ("ml.m5.xlarge", 12), ("ml.g4dn.xlarge", 22), ("ml.g5.xlarge", 22), ("ml.g5.2xlarge", 14),
    ("ml.g4dn.12xlarge", 8), ("ml.g5.12xlarge", 10), ("ml.g6.12xlarge", 4), ("ml.g5.48xlarge", 4),
    ("ml.p4d.24xlarge", 3), ("ml.p5.48xlarge", 1),
)  # fmt: skip
# Days between runs, None where there are only two, and how many workloads of a hundred have it.
_FREQUENCIES = ((0.25, 2), (1.0, 24), (3.5, 14), (7.0, 38), (30.0, 8), (None, 14))
_LONG = "-with-hourly-features-and-all-markets-of-the-new-warehouse"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One program that somebody trains again and again.

    ``stem`` is what the names of its family begin with (in Pipelines the pipeline), ``every`` the
    days between its runs, ``renamed`` the name and truth that it has from half of its runs on.
    """

    truth: str
    base: str
    stem: str
    step: str
    program: str | None
    repository: str
    owner: str | None
    style: str
    scheme: str
    every: float | None
    hour: float
    hours: float
    instance: str
    count: int
    mixed_instances: bool
    spot: bool
    warm: bool
    image: str  # what moves in its image's name: "release", "tag" or "digest"
    hyperparameters: Mapping[str, Any]
    metric: str
    retries: str | None  # what the name of a repeated run has: "before", "after" its stamp
    region: str = REGION
    renamed: tuple[str, str] | None = None
    sweep: str = "lr"
    swept: tuple[str, ...] = ()
    moving: bool = False
    own_registry: bool = False
    owner_tag: str = "team"


def draw_workloads(draw: random.Random, style: str, workloads: int) -> list[Workload]:
    """So many workloads, each kind of family among the first 32 families."""
    names = [f"{subject}-{purpose}" for subject, purpose in product(_SUBJECTS, _PURPOSES)]
    draw.shuffle(names)
    plain = _plain(draw, style, names)
    families = cycle(_in_turn(draw))
    drawn: dict[str, list[Workload]] = {}
    while len(drawn) < workloads:
        for one in next(families)(next(plain), next(plain), draw):
            if len(drawn) < workloads or whole(one.truth) in drawn:
                drawn.setdefault(whole(one.truth), []).append(one)
    return [part for parts in drawn.values() for part in parts]


def _plain(draw: random.Random, style: str, names: list[str]) -> Iterator[Workload]:
    for number, name in enumerate(cycle(names)):
        base = name if number < len(names) else f"{name}-{number // len(names)}"
        yield _drawn(draw, f"w{number:04d}", base, style)


def _drawn(draw: random.Random, truth: str, base: str, style: str) -> Workload:
    own = draw.random() < 0.25
    subject = base.replace("-", "_")
    program = draw.choice(("train.py", "src/train.py", "main.py", *(f"train_{subject}.py",) * 3))
    mine = draw.choice((V2, V3, PIPELINES, HAND)) if style == MIXED else style
    mine, schemes = (HAND, OTHER_SCHEMES) if mine == OTHER else (mine, SCHEMES)
    machine = draw.choices(*zip(*_MACHINES, strict=True))[0]
    every = draw.choices(*zip(*_FREQUENCIES, strict=True))[0]
    longest = 60.0 if every is None else 0.8 * 24 * every
    return Workload(
        truth=truth, base=base, stem=base,
        step=draw.choice(("TrainModel", "Train", "train", f"Train-{base}")),
        program=program, repository=f"ml/{base}" if own else draw.choice(_DEEP_LEARNING),
        owner=draw.choice((*_OWNERS, None)), style=mine,
        scheme=_scheme(draw, every, schemes), every=every,
        hour=draw.choice((0, 1, 2, 2, 3, 4, 6, 13, 22)) + draw.choice((0, 0.25, 0.5)),
        hours=min(draw.lognormvariate(0.6, 1.1), longest), instance=machine,
        count=draw.choice((1, 1, 1, 1, 2, 4)) if machine.startswith(("ml.g", "ml.p")) else 1,
        mixed_instances=draw.random() < 0.03, spot=draw.random() < 0.15, warm=draw.random() < 0.08,
        image=draw.choice(("release", "tag", "digest")) if own else "release", own_registry=own,
        hyperparameters=_hyperparameters(draw, base),
        metric=draw.choice(("validation:accuracy", "eval_loss", "val_auc", "ndcg")),
        retries=draw.choice((None, "before", "after")),
        owner_tag="team" if schemes is SCHEMES else "Owner",
    )  # fmt: skip


def _scheme(draw: random.Random, every: float | None, schemes: tuple[str, ...]) -> str:
    """How its jobs are named by hand; a day names one run only."""
    often = every is not None and every < 1
    return draw.choice([one for one in schemes if not (often and one in ONE_A_DAY)])


def _hyperparameters(draw: random.Random, base: str) -> Mapping[str, Any]:
    learning = draw.choice((0.1, 0.01, 3e-4, 5e-5))
    batch, epochs = draw.choice((16, 32, 64, 256)), draw.choice((1, 3, 10, 50))
    kinds: tuple[dict[str, Any], ...] = (
        {"epochs": epochs, "lr": learning, "batch-size": batch, "amp": draw.random() < 0.5},
        {
            "num_train_epochs": epochs, "learning_rate": learning, "fp16": draw.random() < 0.5,
            "per_device_train_batch_size": batch, "model_name_or_path": f"{base}-uncased",
        },
        {"config": f"conf/{base}.yaml", "max_steps": 1000 * epochs},
        {},
    )  # fmt: skip
    return MappingProxyType(draw.choice(kinds))


def _own_program(one: Workload, name: str | None = None) -> str:
    return f"train_{(name or one.base).replace('-', '_')}.py"


def _stamped(one: Workload) -> str:
    """A scheme by which two workloads of one name have no job of one name."""
    return "iso" if one.scheme in OTHER_SCHEMES else "compact"


def _simple(one: Workload, _other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    return (one,)


def _renamed(one: Workload, other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    """One workload, if its program has a name of its own."""
    if one.style == V3:
        return _renamed_unclear(one, other, _draw)
    return (replace(one, program=_own_program(one), renamed=(other.base, one.truth)),)


def _unclear(one: Workload) -> Workload:
    """Of a common name, and not dear: most of what is measured must be clear."""
    return replace(one, program="train.py", instance="ml.g5.xlarge", count=1)


def _renamed_unclear(one: Workload, other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    parts = (f"{one.truth}/before", f"{one.truth}/after")
    return (replace(_unclear(one), truth=parts[0], renamed=(other.base, parts[1])),)


def _siblings(one: Workload, other: Workload, draw: random.Random) -> tuple[Workload, ...]:
    """Two programs whose names are nearly equal."""
    base = one.base + draw.choice(("-2", "2", "-12", "-v2", "s"))
    sibling = replace(
        other, base=base, stem=base if one.style == V3 else one.stem, style=one.style,
        program=_own_program(one, base), step=f"Train-{base}", owner=one.owner,
        repository=one.repository, own_registry=one.own_registry,
    )  # fmt: skip
    return (replace(one, program=_own_program(one), step=f"Train-{one.base}"), sibling)


def _countries(one: Workload, other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    """Unclear: one program of a common name, under a name for each country."""
    shared = _unclear(one)
    return tuple(
        replace(
            shared, truth=f"{one.truth}/{country}", base=f"{one.base}-{country}",
            step=f"Train-{country}", hour=hour,
        )
        for country, hour in (("de", one.hour), ("us", other.hour))
    )  # fmt: skip


def _dated(one: Workload, _other: Workload, draw: random.Random) -> tuple[Workload, ...]:
    date = draw.choice(("2024-06-30", "20250101", "2023-q4", "2025"))
    return (replace(one, base=f"{one.base}-{date}", stem=f"{one.base}-{date}"),)


def _moving(one: Workload, _other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    """The month of its data is in its name."""
    return (replace(one, moving=True, program=_own_program(one)),)


def _long(one: Workload, _other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    base = f"{one.base}{_LONG}"[:50]
    return (replace(one, base=base, stem=base, step=f"Train-{base}"),)


def _cut(one: Workload, other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    """Two programs whose names differ only behind what the SDK keeps of them."""
    return tuple(
        replace(
            each, base=f"{one.base}{_LONG}"[:42] + end, style=one.style,
            stem=one.base + end if one.style == V3 else one.stem,
            step=f"Train-{one.base}{_LONG}"[:24] + end, program=_own_program(one, one.base + end),
            repository=one.repository, own_registry=one.own_registry, owner=one.owner,
        )
        for each, end in ((one, "-first"), (other, "-second"))
    )  # fmt: skip


def _two_owners(one: Workload, other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    mine = replace(one, owner="search", stem=f"{one.base}-search", scheme=_stamped(one))
    return (
        mine,
        replace(
            mine, truth=other.truth, owner="risk", stem=f"{one.base}-risk", hour=other.hour,
            hours=other.hours, instance=other.instance, count=other.count,
        ),
    )  # fmt: skip


def _one_name(one: Workload, other: Workload, draw: random.Random) -> tuple[Workload, ...]:
    """Two programs under one name, which may be the one that the SDK makes of the image's."""
    repository = draw.choice(_DEEP_LEARNING)
    base = repository if one.style == V2 and draw.random() < 0.5 else one.base
    shared = {"base": base, "style": one.style, "owner": one.owner, "step": "TrainModel"}
    shared["scheme"] = _stamped(one)
    if one.style == V3:
        return (
            replace(one, **shared, repository=f"ml/{one.base}", own_registry=True),
            replace(other, **shared, repository=f"ml/{other.base}", own_registry=True),
        )
    shared |= {"repository": repository, "own_registry": False, "image": "release"}
    return tuple(replace(each, **shared, program=_own_program(each)) for each in (one, other))


def _swept(one: Workload, _other: Workload, draw: random.Random) -> tuple[Workload, ...]:
    """Each run has what is swept in its name and among its hyperparameters."""
    if one.scheme in OTHER_SCHEMES:
        return (replace(one, sweep=draw.choice(("seed", "bs")), swept=("1", "2", "16", "64")),)
    values = draw.sample(("0-1", "0-03", "0-01", "0-003", "0-001", "3e-4", "1e-5"), 4)
    return (replace(one, swept=tuple(values)),)


def _containers(one: Workload, other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    """Two of one image, whose jobs do not name a program."""
    return tuple(
        replace(
            each, program=None, repository="ml/trainers", own_registry=True, owner=one.owner,
            style=HAND if each.style != PIPELINES else PIPELINES, step=f"Train-{each.base}",
        )
        for each in (one, other)
    )  # fmt: skip


def _copied(one: Workload, other: Workload, _draw: random.Random) -> tuple[Workload, ...]:
    """Unclear: the same jobs in another region."""
    return tuple(
        replace(_unclear(one), truth=f"{one.truth}/{region}", region=region, hour=hour)
        for region, hour in ((REGION, one.hour), (OTHER_REGION, other.hour))
    )


Family = Callable[[Workload, Workload, random.Random], tuple[Workload, ...]]
_HARD: tuple[Family, ...] = (
    _renamed, _renamed_unclear, _siblings, _siblings, _countries, _dated, _moving, _long, _cut,
    _two_owners, _one_name, _one_name, _swept, _containers, _copied,
)  # fmt: skip


def _in_turn(draw: random.Random) -> list[Family]:
    """Each hard one and as many plain ones, in any order."""
    families = [*_HARD, *(_simple,) * (len(_HARD) + 2)]
    draw.shuffle(families)
    return families

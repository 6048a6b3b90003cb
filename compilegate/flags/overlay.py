"""Applies a flag to a team's job, or leaves the job as it is and says why.

A job with a flag gets the hyperparameters that a job of Compilegate's own gets
(domain/request/build.py), so that the launcher and the recorder read the same names.

During a probation some jobs are left on the baseline, as by TRAIN (domain/production/begin.py):
without baselines of today, a change of the data would be blamed on the candidate. Here it is by
chance, because no run knows of those before it. Once the flag is permanent its own share of jobs is
left there, which shows what the candidate saves: drawn by the job's name and the day, where the job
has a name, so that the draw can be repeated.
"""

from __future__ import annotations

import copy
import json
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import for_launcher, json_object, survives
from compilegate.domain.compilers import compiler_named
from compilegate.domain.followers import REFRESH_EVERY, chance
from compilegate.flags.reading import Choice, choose, stage_name

logger = logging.getLogger("compilegate.flags")

# Overrides that reach the script as hyperparameters.
SCRIPT_ARGUMENTS = ("compiler", "compile_mode", "precision", "batch_size", "learning_rate")
# What scripts call two of them; with one of these beside ours it would be open which one counts.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "batch_size": (
        "per_device_train_batch_size", "train_batch_size", "batch-size", "train-batch-size", "bs",
    ),
    "learning_rate": ("lr", "learning-rate"),
}  # fmt: skip
# The settings of SageMaker's model-parallel library, JSON text in a flag.
PARTITIONING = "mp_parameters"
# CreateTrainingJob takes no more (its service model).
MOST_HYPERPARAMETERS, MOST_VARIABLES, MOST_TAGS = 100, 100, 50


Job = dict[str, Any]


@dataclass(frozen=True)
class FlagLookup:
    """Whose flag, and the script's own names for our hyperparameters."""

    name: str
    stage: str | None = None
    client: Any = None
    names: Mapping[str, str] = field(default_factory=dict)
    chance: Callable[[], float] = random.SystemRandom().random
    now: Callable[[], float] = time.time

    @property
    def deployment(self) -> str:
        """The stage whose flag is read."""
        return stage_name(self.stage)


@dataclass(frozen=True)
class Form:
    """How a team writes a job: where its tags, variables, image and name are.

    ``overridden`` applies the flag's changes; it may raise any error.
    """

    overridden: Callable[[Job, Choice, FlagLookup], Job]
    image: Callable[[Job], Any]
    tags: str = "tags"
    environment: str = "environment"
    tag_keys: tuple[str, str] = ("Key", "Value")
    name: str = ""


class CannotCarryError(Exception):
    """This job cannot be changed as the flag says; its message says why and what would help."""


def carry(job: Mapping[str, Any], form: Form, lookup: FlagLookup) -> Job:
    """The job as production should run it today; unchanged where anything fails."""
    original = dict(job)
    try:
        choice = choose(lookup.name, stage=lookup.stage, client=lookup.client)
    except Exception as error:  # noqa: BLE001 - a run never fails because of a flag
        choice = _baseline(lookup, "its flag cannot be read", error)
    if choice.watched and lookup.chance() * REFRESH_EVERY < 1:
        logger.info(
            "%s: a baseline run, like one in %d during a probation", lookup.name, REFRESH_EVERY
        )
        choice = Choice(decision_id=choice.decision_id)
    elif choice.held_back and _drawn(job, form, lookup) < choice.held_back:
        logger.info(
            "%s: a baseline run, like %.3g of all, to tell what is saved",
            lookup.name,
            choice.held_back,
        )
        choice = Choice(decision_id=choice.decision_id)
    if choice.overrides:
        try:
            _check(choice.overrides)
            return _marked(form.overridden(original, choice, lookup), form, choice, lookup)
        except Exception as error:  # noqa: BLE001 - as above
            choice = _baseline(lookup, "the flag cannot be applied to its job", error)
    try:
        return _marked(original, form, choice, lookup)
    except Exception as error:  # noqa: BLE001 - as above
        _baseline(lookup, "its run will not be recorded", error)
    return original


def _drawn(job: Mapping[str, Any], form: Form, lookup: FlagLookup) -> float:
    """From 0 up to 1; a name that a pipeline gives every job draws anew each day."""
    name = job.get(form.name)
    if not isinstance(name, str):
        return lookup.chance()
    return chance(lookup.name, name, time.strftime("%Y-%m-%d", time.gmtime(lookup.now())))


def _baseline(lookup: FlagLookup, what: str, error: Exception) -> Choice:
    logger.warning("%s: %s, training with the baseline: %s", lookup.name, what, error)
    return Choice(problem=f"{type(error).__name__}: {error}")


def _check(overrides: Mapping[str, Any]) -> None:
    """Raises CannotCarryError for what no form of a job can carry."""
    if "framework" in overrides and "image" not in overrides:
        raise CannotCarryError("the flag names another framework without its image")
    if compiler_named(str(overrides.get("compiler"))).own_image:
        raise CannotCarryError(
            f"{overrides['compiler']} changes image and launcher together: let a registered "
            "schedule train this workload"
        )


def hyperparameters(
    job_values: Mapping[str, Any] | None,
    choice: Choice,
    names: Mapping[str, str],
    *,
    script: object,
) -> dict[str, Any]:
    """The script's values with the flag's laid over; ``names`` are the script's own for ours.

    ``script`` is the job's entry point: the launcher reads what a shell would change encoded.
    """
    own = dict(job_values or {})
    changes = {key: choice.overrides[key] for key in SCRIPT_ARGUMENTS if key in choice.overrides}
    for key in changes:
        other = [name for name in ALIASES.get(key, ()) if name in own]
        if other and key not in own and key not in names:
            raise CannotCarryError(
                f"the hyperparameter {other[0]} looks like {key}: "
                f"pass names={{{key!r}: {other[0]!r}}} if it is"
            )
    renamed = {names.get(key, key): value for key, value in changes.items()}
    candidates = _readable(choice.overrides.get("hyperparameters", {}), script)
    merged = {**own, **candidates, "arm": choice.arm, **renamed}
    return _limited(merged, MOST_HYPERPARAMETERS, "hyperparameters")


def _readable(values: Mapping[str, Any], script: object) -> dict[str, Any]:
    """The candidate's hyperparameters in words that survive the container's toolkit."""
    launcher = isinstance(script, str) and PurePosixPath(script).name == naming.LAUNCHER
    readable = {key: for_launcher(value) if launcher else value for key, value in values.items()}
    if PARTITIONING in values:  # the model-parallel library reads an object
        readable[PARTITIONING] = json_object(values[PARTITIONING])
        if readable[PARTITIONING] is None:
            raise CannotCarryError(f"{PARTITIONING} of the flag is not a JSON object in quotes")
    for key, value in readable.items():
        if not survives(value):
            raise CannotCarryError(
                f"a shell in the training container would change the hyperparameter {key}: "
                f"start the script with {naming.LAUNCHER}, which passes on any text"
            )
    return readable


def machines(overrides: Mapping[str, Any], groups: object) -> dict[str, Any]:
    """The flag's instance type and count; ``groups`` are the instance groups of the job."""
    changes = {
        key: overrides[key] for key in ("instance_type", "instance_count") if key in overrides
    }
    if changes and groups:
        raise CannotCarryError("the job has instance groups, the flag one kind of instance")
    return changes


def script(name: str, entry_point: str, source: object) -> str:
    """The candidate's entry point, where it is known to be in the job's source.

    ``source`` is a local folder, or the place of the bundle that was registered.
    """
    if isinstance(source, str) and f"/{naming.WORKLOADS_PREFIX}{name}/source/" in source:
        return entry_point
    if isinstance(source, str) and "://" not in source and Path(source, entry_point).is_file():
        return entry_point
    raise CannotCarryError(
        f"the candidate starts {entry_point}, which is not in the job's source folder ({source})"
    )


def field_of(settings: Any, key: str) -> Any:
    """One field of an object of the SDK's, or of a mapping."""
    return settings.get(key) if isinstance(settings, Mapping) else getattr(settings, key, None)


def _marked(job: Job, form: Form, choice: Choice, lookup: FlagLookup) -> Job:
    """The job with tags and variables that say its arm, so that its script need not read it."""
    image = form.image(job)
    variables = {
        **(job.get(form.environment) or {}),
        "COMPILEGATE_ARM": choice.arm,
        "COMPILEGATE_STAGE": lookup.deployment,
        **({"COMPILEGATE_IMAGE": image} if isinstance(image, str) else {}),
    }
    return {
        **job,
        form.tags: _tags(job.get(form.tags), form, choice, lookup),
        form.environment: _limited(variables, MOST_VARIABLES, "environment variables"),
    }


def _tags(
    team: Mapping[str, str] | Sequence[Any] | None, form: Form, choice: Choice, lookup: FlagLookup
) -> list[Any]:
    """The team's tags as a list, ours last; entries that are not ours stay as they are.

    By ours the job's end is recorded in its deployment's ledger (stacks/train).
    """
    own = {
        naming.TAG_WORKLOAD: lookup.name,
        naming.TAG_STAGE: naming.TEAM_STAGE,
        naming.TAG_DEPLOYMENT: lookup.deployment,
        naming.TAG_ARM: choice.arm,
        **({naming.TAG_DECISION: choice.decision_id} if choice.decision_id else {}),
    }
    key, value = form.tag_keys
    if isinstance(team, Mapping):
        team = [{key: name, value: text} for name, text in team.items()]
    kept = [tag for tag in team or () if field_of(tag, key) not in own]
    merged = [*kept, *({key: name, value: text} for name, text in own.items())]
    if len(merged) > MOST_TAGS:
        raise CannotCarryError(f"a job may have {MOST_TAGS} tags, with ours it has {len(merged)}")
    return merged


def _limited(values: dict[str, Any], most: int, what: str) -> dict[str, Any]:
    """Raises CannotCarryError for more values than the service takes."""
    if len(values) > most:
        raise CannotCarryError(f"a job may have {most} {what}, with ours it has {len(values)}")
    return values


# A team's job: of the SageMaker SDK (v2, v3), as CreateTrainingJob takes it, or single values.
#
# Requests are for boto3, Step Functions and anything that writes them; values for a request that
# is written before anybody knows what the flag will say.

# By these a framework's estimator chooses more than the image: what it lets through, how it starts.
VERSIONS = (
    "framework_version", "transformers_version", "pytorch_version", "tensorflow_version",
)  # fmt: skip
_ON = {"enabled": True}
# As the SDK writes our launchers (sagemaker 2.257.7, documentation of `distribution`).
DISTRIBUTIONS: Mapping[str, Mapping[str, Any]] = {
    "torch_distributed": {"torch_distributed": _ON},
    "pytorchddp": {"pytorchddp": _ON},
    "pytorchxla": {"pytorchxla": _ON},
    "smddp": {"smdistributed": {"dataparallel": _ON}},
}


def estimator_arguments(
    name: str,
    *,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Keyword arguments of HuggingFace, PyTorch, TensorFlow or Estimator with the flag applied.

    ``arguments`` are those of today's job, the baseline's. ``names`` are the script's own names
    for our hyperparameters, such as ``{"batch_size": "per_device_train_batch_size"}``. A flag that
    cannot be read or applied leaves the job as it is, logged and tagged as a baseline run.
    """
    return carry(arguments, ESTIMATOR, FlagLookup(name, stage, client, names or {}))


def model_trainer_arguments(
    name: str,
    *,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Keyword arguments of ModelTrainer with the flag applied.

    ``compute`` and ``source_code`` may be the SDK's own objects or mappings; ours are copies.
    ``names`` and failures as in ``estimator_arguments``.
    """
    return carry(arguments, MODEL_TRAINER, FlagLookup(name, stage, client, names or {}))


def _estimator(job: Job, choice: Choice, lookup: FlagLookup) -> Job:
    overrides, changed = choice.overrides, dict(job)
    if job.get("compiler_config") is not None:
        raise CannotCarryError("compiler_config is set, and the flag sets a compiler too")
    versions = [name for name in VERSIONS if job.get(name)]
    if "framework" in overrides and versions:
        raise CannotCarryError(f"{versions[0]} names one framework, the flag another")
    entry_point = overrides.get("entry_point", job.get("entry_point"))
    changed["hyperparameters"] = hyperparameters(
        job.get("hyperparameters"), choice, lookup.names, script=entry_point
    )
    if "image" in overrides:
        changed["image_uri"] = overrides["image"]
    changed |= machines(overrides, job.get("instance_groups"))
    distribution = overrides.get("distribution")
    if distribution is not None:
        changed.pop("distribution", None)
        if distribution not in (*DISTRIBUTIONS, "none"):
            raise CannotCarryError(f"distribution {distribution} needs settings that a flag lacks")
        if distribution != "none":
            changed["distribution"] = copy.deepcopy(DISTRIBUTIONS[distribution])
    if "entry_point" in overrides:
        changed["entry_point"] = script(lookup.name, entry_point, job.get("source_dir"))
    return changed


def _model_trainer(job: Job, choice: Choice, lookup: FlagLookup) -> Job:
    overrides, changed, source = choice.overrides, dict(job), job.get("source_code")
    own = job.get("hyperparameters")
    if own is not None and not isinstance(own, Mapping):
        raise CannotCarryError("hyperparameters are in a file: pass them as a mapping")
    if "distribution" in overrides:
        raise CannotCarryError("another distribution needs an object of the SDK")
    entry_point = overrides.get("entry_point", field_of(source, "entry_script"))
    changed["hyperparameters"] = hyperparameters(own, choice, lookup.names, script=entry_point)
    if "image" in overrides:
        if job.get("algorithm_name"):
            raise CannotCarryError("the job names an algorithm, the flag an image")
        changed["training_image"] = overrides["image"]
    changes = machines(overrides, field_of(job.get("compute"), "instance_groups"))
    if changes:
        changed["compute"] = _with(job.get("compute"), changes)
    if "entry_point" in overrides:
        entry = script(lookup.name, entry_point, field_of(source, "source_dir"))
        if field_of(source, "command"):
            raise CannotCarryError("the job starts a command, the flag an entry script")
        changed["source_code"] = _with(source, {"entry_script": entry})
    return changed


def _with(settings: Any, changes: Mapping[str, Any]) -> Any:
    """A copy with other fields: of the SDK's own (pydantic) object, or of a mapping."""
    if settings is None or isinstance(settings, Mapping):
        return {**(settings or {}), **changes}
    return settings.model_copy(update=dict(changes))


ESTIMATOR = Form(_estimator, image=lambda job: job.get("image_uri"))
MODEL_TRAINER = Form(
    _model_trainer, image=lambda job: job.get("training_image"), tag_keys=("key", "value")
)


# Of the values of a request, what is not a hyperparameter.
_MACHINE = ("image", "instance_count", "instance_type")
# What the SDK's estimators add for the toolkit in the image.
_PROGRAM, _SOURCE, _INSTANCE = (
    "sagemaker_program", "sagemaker_submit_directory", "sagemaker_instance_type",
)  # fmt: skip


def training_job_request(
    name: str,
    request: Mapping[str, Any],
    *,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The request with the flag applied, as a new mapping.

    Values are written as JSON text into ``HyperParameters``, as the SDK does and as the trial's
    own jobs had them. ``names`` and failures as in ``estimator_arguments``.
    """
    return carry(request, REQUEST, FlagLookup(name, stage, client, names or {}))


def pipeline_values(
    name: str,
    values: Mapping[str, Any],
    *,
    entry_point: str | None = None,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Values of a request that is written already, under their names, and the ``arm`` they make.

    ``values`` are today's: hyperparameters by name, and where the request takes them from here
    ``image``, ``instance_type``, ``instance_count``. Hyperparameters come back as JSON text. A flag
    that sets anything else is not followed, because the request could not carry all of it.
    ``entry_point`` is the script that the job starts: launcher and others take other texts.
    """
    lookup = FlagLookup(name, stage, client, names or {})
    job = carry({"values": dict(values), "entry_point": entry_point}, _VALUES, lookup)
    texts = {
        key: value if key in _MACHINE else json.dumps(value) for key, value in job["values"].items()
    }
    return {**texts, "arm": job["environment"]["COMPILEGATE_ARM"]}


def _followed(job: Job, choice: Choice, lookup: FlagLookup) -> Job:
    today, overrides = job["values"], choice.overrides
    if "distribution" in overrides or "entry_point" in overrides:
        raise CannotCarryError("the flag sets how the script starts, which single values cannot")
    own = {key: value for key, value in today.items() if key not in _MACHINE}
    merged = hyperparameters(own, choice, lookup.names, script=job["entry_point"])
    merged |= {key: overrides[key] for key in _MACHINE if key in overrides}
    missing = sorted(merged.keys() - {*today, "arm"})
    if missing:
        raise CannotCarryError(
            f"the flag sets {', '.join(missing)} too: take it from this step as well, and pass "
            "what the job has today"
        )
    return {**job, "values": {key: merged.get(key, today[key]) for key in today}}


def _overridden(job: Job, choice: Choice, lookup: FlagLookup) -> Job:
    overrides, own = choice.overrides, dict(job.get("HyperParameters") or {})
    if "distribution" in overrides:
        raise CannotCarryError("another distribution needs an estimator: use the SDK's")
    if "entry_point" in overrides:
        script(lookup.name, overrides["entry_point"], _decoded(own.get(_SOURCE)))
        own[_PROGRAM] = json.dumps(overrides["entry_point"])
    if "instance_type" in overrides and _INSTANCE in own:
        own[_INSTANCE] = json.dumps(overrides["instance_type"])
    merged = hyperparameters(own, choice, lookup.names, script=_decoded(own.get(_PROGRAM)))
    changes = {key: value for key, value in merged.items() if value is not own.get(key)}
    texts = {key: json.dumps(value) for key, value in changes.items()}
    changed = {**job, "HyperParameters": {**own, **texts}}
    if "image" in overrides:
        algorithm = job.get("AlgorithmSpecification") or {}
        if "TrainingImage" not in algorithm:
            raise CannotCarryError("the job names no TrainingImage that the flag's could replace")
        changed["AlgorithmSpecification"] = {**algorithm, "TrainingImage": overrides["image"]}
    cluster = job.get("ResourceConfig") or {}
    fields = {"instance_type": "InstanceType", "instance_count": "InstanceCount"}
    named = machines(overrides, cluster.get("InstanceGroups"))
    if named:
        laid = {fields[key]: value for key, value in named.items()}
        changed["ResourceConfig"] = {**cluster, **laid}
    return changed


def _decoded(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


REQUEST = Form(
    _overridden,
    image=lambda job: (job.get("AlgorithmSpecification") or {}).get("TrainingImage"),
    tags="Tags",
    environment="Environment",
    name="TrainingJobName",
)
_VALUES = Form(_followed, image=lambda _: None)

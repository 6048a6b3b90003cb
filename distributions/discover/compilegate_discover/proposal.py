"""The workload file of a group: what its jobs say, what follows from it, what is left to write.

The file names the launcher, which starts the job's script unchanged, as ``compilegate init``
proposes it. What a script says of itself comes from there, where its code was read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from compilegate.adapters.yaml_document import plain_value
from compilegate.domain.errors import printable
from compilegate.domain.facts import Facts, age
from compilegate.domain.formats import plural
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.workload.model import MOST_HOURS
from compilegate.domain.workload.names import (
    IMAGE,
    INSTANCE,
    METRIC,
    environment_problems,
    hyperparameter_problems,
    input_problems,
    tag_problems,
)
from compilegate.ports import Settings
from compilegate_discover.figures import HOUR, Figures, Metric, metric_of
from compilegate_discover.grouping import OWNER_TAG, Group
from compilegate_discover.job import Setup
from compilegate_doctor import SPELLED, Description
from compilegate_init.proposal import (
    ASSUMED,
    NAMES,
    OPEN,
    READ,
    RUNTIME_MARGIN,
    Answers,
    Section,
    Value,
)
from compilegate_init.proposal import propose as propose_for_script

COMPUTED = "computed"
# The words of a comment by where the value beside it is from.
MARKS = {READ: "read", COMPUTED: "computed", ASSUMED: "computed"}
Proposal = dict[str, Value | Section]
_TAG = re.compile(r"(?P<version>\d+(\.\d+)+(-\d(?![\w.]))?)")
_TRANSFORMERS = re.compile(r"transformers(\d+(?:\.\d+)*)")
_PYTHON = re.compile(r"py[23]\d{1,2}")
_SECRET = re.compile(r"token|secret|passw|credential|api_?key|access_?key", re.IGNORECASE)
# What the launcher takes for itself.
OF_LAUNCHER = (
    "script", "script_kind", "argument_names", "argument_style", "precision_names", "positional",
    "metric_patterns", "full_run_samples", "full_run_steps",
)  # fmt: skip
# A batch of all GPUs is not the one of a GPU.
_OF_ALL = "global_"
_ON = ("true", "1", "yes", "on")
_COMPILES = ("torch_compile", "use_compile", "compile_model", "use_torch_compile", "compile")
# Words in a model's name by its family.
_FAMILIES = {
    "diffusion": ("diffusion", "unet", "sdxl", "flux", "dit-"),
    "vision": ("resnet", "vit", "yolo", "efficientnet", "convnext", "mobilenet", "swin", "unet"),
    "recsys": ("dlrm", "deepfm", "two-tower", "recommend"),
    "transformer": ("bert", "gpt", "llama", "t5", "mistral", "qwen", "whisper", "bart", "opt-"),
}
_FAMILY_OF_FRAMEWORK = {
    "xgboost": "gbt", "sklearn": "classical", "huggingface-pytorch": "transformer",
    "huggingface-tensorflow": "transformer",
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """What CloudWatch says of some of the newest runs; shares of one and GiB of one GPU."""

    gpu_utilization: float | None = None
    peak_memory_gib: float | None = None
    runs: int = 0


@dataclass(frozen=True)
class Code:
    """The code of the newest job, unpacked into ``folder``, and what its ``program`` says."""

    folder: str
    program: str
    script: Description


def read_(value: Any, note: str) -> Value:
    """A value as the jobs have it."""
    return Value(value, note, READ)


def computed(value: Any, note: str) -> Value:
    """A value that follows from several that were read."""
    return Value(value, note, COMPUTED)


def to_write(note: str, stand_in: Any) -> Value:
    """A value that a person writes; ``stand_in`` takes its place in an estimate."""
    return Value("TODO", note, OPEN, stand_in)


def compiles_today(setup: Setup) -> str:
    """By what the job's settings say that it compiles already, empty where they do not."""
    if setup.managed_compiler or "trcomp" in setup.repository:
        return "SageMaker Training Compiler"
    stated = setup.setting(*_COMPILES)
    return stated[0] if stated and stated[1].lower() in _ON else ""


@dataclass(frozen=True)
class Found:
    """A workload with what is known of it, and the settings of its region."""

    group: Group
    figures: Figures
    settings: Settings
    measured: Measured = Measured()
    code: Code | None = None


def propose(found: Found, name: str, facts: Facts) -> Proposal:
    """The whole file but the cap on a trial's cost, in order."""
    group, code = found.group, found.code
    setup = group.newest.setup
    instance = facts.instance(group.newest.instances[0][0])
    framework = _framework(setup, facts, has_gpu=instance is None or instance.gpus > 0)
    owner = next((value for key, value in setup.tags if OWNER_TAG.fullmatch(key)), "")
    tags = {
        key: read_(value, "a tag")
        for key, value in setup.tags
        if not [*tag_problems([key])] and (key + value).isprintable()
    }
    proposal: Proposal = {
        "schema": computed(1, "the version of this format"),
        "name": computed(name, f"the names of {plural(len(group.jobs), 'job')}"),
        **({"owner": read_(owner, "a tag")} if owner and owner.isprintable() else {}),
        "framework": framework,
        "model": {"family": _family(setup, framework, code), "name": _model(setup, name)},
        "training": _training(found, facts),
        "shapes": {
            "static": to_write("whether every step has the same tensor shapes", stand_in=True)
        },
        "schedule": _schedule(found.figures),
        **_profile(found.measured),
        "quality": _quality(metric_of(group)),
        **({"tags": tags} if tags else {}),
    }
    if framework["name"].origin == OPEN and IMAGE.pattern.fullmatch(setup.image):
        proposal["facts"] = _own_image(setup)
    return _laid_over(code, proposal, name) if code else proposal


def _training(found: Found, facts: Facts) -> Section:
    job, code = found.group.newest, found.code
    setup, (kind, count) = job.setup, job.instances[0]
    instance, hours = facts.instance(kind), found.figures.run_hours or 1.0
    longest = min((setup.max_runtime or 0.0) / HOUR, MOST_HOURS)
    return {
        "source_dir": read_(code.folder, "unpacked from the job's bundle")
        if code
        else to_write("folder of the code, beside this file; --with-source fetches it", "."),
        "entry_point": computed(LAUNCHER, "starts the script below, unchanged"),
        "instance_type": read_(kind, job.name)
        if INSTANCE.pattern.fullmatch(kind)
        else to_write("where production trains", "ml.g5.xlarge"),
        "instance_count": read_(count, job.name),
        "distribution": _distribution(setup, instance.devices(count) if instance else count),
        "precision": _precision(setup),
        "batch_size": _number_of(setup, "batch_size", "samples per GPU and step", 1),
        "learning_rate": _number_of(setup, "learning_rate", "the optimizer's first", 0.001),
        "hyperparameters": Value(dict(_hyperparameters(setup, code)), "of the script"),
        "inputs": Value(dict(_inputs(setup)), "by channel"),
        "max_runtime_hours": read_(longest, "the job's own limit")
        if longest
        else computed(min(hours * RUNTIME_MARGIN, MOST_HOURS), "twice a run"),
        **({"volume_gb": read_(setup.volume_gb, job.name)} if setup.volume_gb else {}),
        **_environment(setup),
        **_spot(job.spot, setup, longest),
    }


def _schedule(figures: Figures) -> Section:
    runs = f"{plural(figures.runs, 'run')} that completed"
    starts = f", most start at {figures.starts}" if figures.starts else ""
    rate, hours = figures.runs_per_week, figures.run_hours
    return {
        "runs_per_week": computed(round(rate, 3), runs + starts)
        if rate
        else to_write(f"of production; seen: {runs}", 1),
        "run_hours": computed(round(hours, 4), f"the median of {runs}")
        if hours
        else to_write("hours of a whole run", 1.0),
    }


def _laid_over(code: Code, of_job: Proposal, name: str) -> Proposal:
    """What the jobs say, and in the place of what is open what the script says."""
    answers = Answers(name, code.folder, code.program, {"version": "1"})
    of_script = propose_for_script(code.script, answers)
    filled = dict(of_job)
    for section in ("training", "shapes", "quality"):
        own, other = of_job[section], of_script[section]
        if isinstance(own, dict) and isinstance(other, dict):
            # A training's other keys have defaults; those of a script's shapes are its own.
            keys = own if section == "training" else {**own, **other}
            filled[section] = {key: _filled(own.get(key), other.get(key)) for key in keys}
    return filled


def _filled(own: Value | None, other: Value | None) -> Any:
    if own is not None and isinstance(own.value, dict):
        mine = own.value
        theirs = other.value if other is not None else {}
        return replace(own, value={k: _filled(mine.get(k), theirs.get(k)) for k in mine | theirs})
    if other is None or other.origin == OPEN or (own is not None and own.origin != OPEN):
        return other if own is None else own
    if other.origin == ASSUMED:
        return other
    return replace(other, note=f"in the code{f', {other.note}' if other.note else ''}")


def _framework(setup: Setup, facts: Facts, *, has_gpu: bool) -> Section:
    account, _, path = setup.repository.partition("/")
    known = {row.repository: row.framework for row in facts.images}
    known |= {row.repository: row.framework for row in facts.managed.images}
    theirs = {number for one in facts.registries.values() for number in one.accounts.values()}
    tag = setup.image.rpartition(":")[2]
    version = _TAG.match(tag)
    if path in known and account in theirs and version:
        transformers, python = _TRANSFORMERS.search(tag), _PYTHON.search(tag)
        section = {
            "name": read_(known[path], "the image"),
            "version": read_(version["version"], "the image"),
        }
        if transformers and path.startswith("huggingface"):
            section["transformers"] = read_(transformers[1], "the image")
        if python:
            section["python"] = read_(python[0], "the image")
        return section
    newest = max((row for row in facts.images if row.framework == "pytorch"), key=age)
    name, version_ = ("pytorch", newest.version) if has_gpu else ("other", "1.0")
    return {
        "name": to_write("of the job's own image: pytorch, tensorflow or other", name),
        "version": to_write("of that framework in the image", version_),
    }


def _own_image(setup: Setup) -> Section:
    row = {"framework": "TODO", "version": "TODO", "uri": setup.image}
    return {"images": Value([row], "the job's own image", OPEN, [])}


def _family(setup: Setup, framework: Section, code: Code | None) -> Value:
    named = setup.setting(*NAMES["model"])
    low = (named[1] if named else setup.program).lower()
    stated = next(
        (family for family, words in _FAMILIES.items() if any(word in low for word in words)), None
    ) or _FAMILY_OF_FRAMEWORK.get(framework["name"].value)
    if stated:
        return computed(stated, "by the name of model or image")
    if code:
        families = NAMES["families"].items()
        own = (kind for package, kind in families if package in code.script.packages)
        return computed(next(own, "custom"), "by what the code imports")
    return to_write("transformer, diffusion, vision, recsys, gbt, classical or custom", "custom")


def _model(setup: Setup, name: str) -> Value:
    named = setup.setting(*NAMES["model"])
    if named and named[1].isprintable() and named[1].strip():
        return read_(named[1], named[0])
    return computed(name, "as the workload")


def _distribution(setup: Setup, devices: int) -> Value:
    if setup.launcher:
        return read_(setup.launcher, "a hyperparameter of the SDK")
    if devices == 1 or setup.program:
        return read_("none", "no hyperparameter of the SDK starts more")
    return to_write("what starts a process on every GPU", "torch_distributed")


def _precision(setup: Setup) -> Value:
    for switch in ("bf16", "fp16"):
        stated = setup.setting(switch)
        if stated and stated[1].lower() in _ON:
            return read_(switch, stated[0])
    stated = setup.setting(*NAMES["precision"])
    for precision, spelled in SPELLED.items():
        if stated and stated[1].lower() in spelled:
            return read_(precision, stated[0])
    if setup.setting("amp") and setup.setting("amp")[1].lower() in _ON:  # type: ignore[index]
        return to_write("fp16 or bf16: amp is on", "fp16")
    return to_write("in which the job trains today: fp32, tf32, fp16, bf16 or fp8", "fp32")


def _number_of(setup: Setup, key: str, meaning: str, stand_in: float) -> Value:
    stated = setup.setting(*(name for name in NAMES[key] if not name.startswith(_OF_ALL)))
    try:
        number = plain_value(stated[1]) if stated and stated[1] else None
    except ValueError:
        number = None
    if stated and isinstance(number, int | float) and not isinstance(number, bool) and number > 0:
        whole = int(number) if key == "batch_size" and number == int(number) else number
        return read_(whole, stated[0])
    return to_write(meaning, stand_in)


def _hyperparameters(setup: Setup, code: Code | None) -> Iterator[tuple[str, Value]]:
    """The launcher's own, then the script's that no trial sets itself."""
    passed = {key: setup.setting(*NAMES[key]) for key in ("batch_size", "learning_rate", "seed")}
    if setup.program.endswith(".py"):
        yield "script", read_(setup.program, "of the job")
    else:
        yield "script", to_write("the Python file that the job starts", "train.py")
    names = {key: stated[0] if stated else None for key, stated in passed.items()}
    precise = setup.setting(*NAMES["precision"])
    names |= {"precision": precise[0]} if precise else {}
    if code is None and any(names.values()):
        yield "argument_names", computed(json.dumps(names), "null: the job was started without it")
    elif code is None:
        text = "what the script calls batch_size, learning_rate and seed, as JSON"
        yield "argument_names", to_write(text, "{}")
    if code is None:
        text = "training samples times epochs; remove it for a Trainer, which counts itself"
        yield "full_run_samples", to_write(text, 1)
    switches = (setup.setting(switch) for switch in ("bf16", "fp16"))
    trials = {stated[0] for stated in (*passed.values(), precise, *switches) if stated}
    for name, value in setup.settings:
        is_set = name in trials or name in OF_LAUNCHER
        unusable = is_set or [*hyperparameter_problems({name: value})]
        if not unusable and value and value.isprintable() and not _SECRET.search(name):
            yield name, read_(_plain(value), "of the newest run")


def _plain(text: str) -> Any:
    """The text as a number or a word of YAML, where it is one that documents take."""
    try:
        value = plain_value(text)
    except ValueError:
        return text
    is_odd = value is None or (isinstance(value, float) and not math.isfinite(value))
    return text if is_odd else value


def _inputs(setup: Setup) -> Iterator[tuple[str, Value]]:
    for channel, uri in setup.channels:
        if uri.startswith("s3://") and uri.isprintable() and not [*input_problems({channel: uri})]:
            yield channel, read_(uri, "of the newest run")
        else:
            yield (
                channel,
                to_write(f"an s3:// URI in place of {printable(uri)}", "s3://any-bucket/"),
            )


def _environment(setup: Setup) -> dict[str, Value]:
    kept = {
        name: read_(value, "of the newest run")
        for name, value in setup.environment
        if not [*environment_problems([name])]
        and not _SECRET.search(name)
        and value.isprintable()
        and name.isprintable()
    }
    return {"environment": Value(kept, "without what looks secret")} if kept else {}


def _spot(spot: bool, setup: Setup, longest: float) -> dict[str, Value]:
    if not spot:
        return {}
    wait = (setup.max_wait or 0.0) / HOUR
    waits = {"max_wait_hours": read_(wait, "of the newest run")} if wait >= longest > 0 else {}
    return {"spot": read_(True, "of the newest run"), **waits}


def _profile(measured: Measured) -> Proposal:
    of = f"{plural(measured.runs, 'run')}, CloudWatch"
    section = {
        key: computed(value, of)
        for key, value in (
            ("gpu_utilization", measured.gpu_utilization),
            ("peak_memory_gib", measured.peak_memory_gib),
        )
        if value is not None
    }
    return {"profile": section} if section else {}


def _quality(metric: Metric | None) -> Section:
    margin = to_write("the largest loss that you accept, in the metric's unit", 0.01)
    if metric is None or METRIC.pattern.fullmatch(metric.name) is None:
        return {
            "metric": to_write("what it reports of held-out data, such as eval_loss", "metric"),
            "goal": to_write("maximize or minimize", "minimize"),
            "margin": margin,
        }
    goal = computed(metric.goal, "a guess by its name") if metric.goal else None
    guess = "a guess: twice the spread of the runs below; fix it before any trial"
    return {
        "metric": read_(metric.name, "the first of the newest run's that looks held out"),
        "goal": goal or to_write("maximize or minimize", "minimize"),
        "margin": computed(metric.margin, guess) if metric.margin else margin,
        "history": read_(list(metric.history), "of runs with the newest image and settings"),
    }

"""A trial's settings as the arguments of a script that does not know Compilegate."""

import ast
import json
import os
import re
import shlex
from pathlib import Path

from compilegate_runtime import environment, hyperparameters, scratch
from compilegate_runtime.compilers import backend_named
from compilegate_runtime.device import PRECISIONS
from compilegate_runtime.errors import HyperparameterError
from compilegate_runtime.saving import EVERY_MINUTES

SETTINGS = ("seed", "batch_size", "learning_rate", "precision", "full_run_steps")
KINDS = ("auto", "trainer", "accelerate", "lightning", "plain")
STYLES = ("words", "equals", "hydra")  # --name value, --name=value, or name=value

# The launcher's own hyperparameters; all others are the script's.
KNOBS = {
    "script": "",  # the file to run, in the source folder
    "script_kind": KINDS,  # how it trains; auto reads its imports
    "argument_names": "{}",  # JSON: what the script calls seed, batch_size, …; null: not passed
    "precision_names": "{}",  # JSON: what the script calls each precision: {"bf16": "bfloat16"}
    "argument_style": STYLES,
    "positional": "",  # words before the arguments: a subcommand such as fit, values without a name
    "flags": "",  # names of switches without a value, passed when they are true: cpu,do_eval
    "metric_patterns": "{}",  # JSON: {"eval_loss": "val loss ([0-9.]+)"}; the last match counts
    # Length of a whole run where no Trainer counts it; samples do not depend on the batch.
    "full_run_steps": 0,  # optimizer steps
    "full_run_samples": 0,
    # Between checkpoints of a Trainer, Hugging Face's or Lightning's; 0: as the script asks for.
    "checkpoint_minutes": EVERY_MINUTES,
    "precision": PRECISIONS,
    "batch_size": 0,
    "learning_rate": 0.0,
}
# What a script of each kind calls a trial's settings, unless argument_names says otherwise.
TRAINER = {
    "batch_size": "per_device_train_batch_size",
    "learning_rate": "learning_rate",
    "seed": "seed",
}
NAMES = {
    "trainer": {**TRAINER, "full_run_steps": "max_steps"},
    "accelerate": {**TRAINER, "full_run_steps": "max_train_steps"},
    "lightning": {"batch_size": "batch_size", "learning_rate": "learning_rate", "seed": "seed"},
    "plain": {"batch_size": "batch_size", "learning_rate": "learning_rate", "seed": "seed"},
}
INSTEAD = {
    "batch_size": " and write training.batch_size",
    "learning_rate": " and write training.learning_rate",
    "precision": " and write training.precision",
    "full_run_steps": ", full_run_steps sets it",
}
IMPORTS = (
    ("lightning", {"lightning", "pytorch_lightning"}),
    ("accelerate", {"accelerate"}),
)
TRAINERS = {"Trainer", "Seq2SeqTrainer", "SFTTrainer"}


def parse(words):
    """The launcher's settings, and the script's own hyperparameters in order.

    Raises HyperparameterError naming what is wrong.
    """
    own, others = [], {}
    words = list(words)
    while words:
        word = words.pop(0)
        dashes = _dashes(word)
        if not dashes:
            raise HyperparameterError(f"{word} belongs to no hyperparameter: write --name value")
        name, equals, value = word[len(dashes) :].partition("=")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("--") else "true"
        value = hyperparameters.decoded(name, value)
        if name in hyperparameters.COMMON or name in KNOBS:
            own.append(f"--{name}={value}")
        else:
            others[name] = value
    settings = hyperparameters.parse(KNOBS, own)
    for name in ("argument_names", "precision_names", "metric_patterns"):
        setattr(settings, name, _mapping(name, getattr(settings, name)))
    _check_patterns(settings.metric_patterns)
    settings.script = _script(settings.script)
    if settings.script_kind == "auto":
        settings.script_kind = kind_of(settings.script)
    return settings, others


def _dashes(word):
    """What a hyperparameter's name begins with; the toolkit gives a single letter one dash."""
    if word.startswith("--"):
        return "--"
    return "-" if word.startswith("-") and len(word) == 2 else ""


def _mapping(name, text):
    try:
        mapping = json.loads(text)
    except ValueError:
        mapping = None
    if not isinstance(mapping, dict):
        raise HyperparameterError(f"{name} must be a JSON object, got {text!r}")
    return mapping


def _check_patterns(patterns):
    for name, pattern in patterns.items():
        try:
            groups = re.compile(pattern).groups
        except (re.error, TypeError) as error:
            raise HyperparameterError(
                f"metric_patterns {name} is not a regular expression: {error}"
            ) from error
        if not groups:
            raise HyperparameterError(
                f"metric_patterns {name} must have the number in brackets, such as "
                f"'val loss ([0-9.]+)', got {pattern!r}"
            )


def _script(name):
    path = Path(name)
    if not name or not path.is_file():
        raise HyperparameterError(
            f"script {name!r} is not in the source folder: name the file that trains, such as "
            "script: run_glue.py"
        )
    return path.resolve()


def kind_of(path):
    """How a script trains, by what it imports."""
    modules, names = imports(path)
    if names & TRAINERS and modules & {"transformers", "trl"}:
        return "trainer"
    return next((kind for kind, roots in IMPORTS if roots & modules), "plain")


def imports(path):
    """The packages that a script imports, and the names that it imports from modules."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules, names = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module.split(".")[0])
            names |= {alias.name for alias in node.names}
    return modules, names


def script_words(settings, others):
    """The script's command line for this arm."""
    values = {**_settings(settings, others), **others}
    if settings.script_kind == "trainer":
        values = {**_trainer_defaults(settings, others), **values}
        if settings.max_steps:  # a segment must neither find nor leave another one's checkpoints
            values["output_dir"] = str(scratch.folder("segment"))
    flags = {name for name in settings.flags.split(",") if name}
    words = [environment.own_path(word) for word in shlex.split(settings.positional)]
    for name, any_value in values.items():
        value = environment.own_path(any_value)
        option = ("--" if len(name) > 1 else "-") + name
        if name in flags:
            words += [option] * (value.lower() in ("true", "1"))
        elif settings.argument_style == "equals":
            words.append(f"--{name}={value}")
        elif settings.argument_style == "hydra":
            words.append(f"{name}={value}")
        else:
            words += [option, value]
    return words


def _settings(settings, others):
    """Compilegate's settings under the script's own names, which ``others`` must not hold too."""
    names = {**NAMES[settings.script_kind], **settings.argument_names}
    for name in names:
        if name not in SETTINGS:
            raise HyperparameterError(
                f"argument_names: {name!r} is not a setting of a trial ({', '.join(SETTINGS)})"
            )
    values = {key: getattr(settings, key) for key in SETTINGS}
    values["precision"] = settings.precision_names.get(settings.precision, settings.precision)
    passed = {
        names[key]: value
        for key, value in values.items()
        if names.get(key) and (value or key == "seed")
    }
    for key, name in names.items():
        if name in passed and name in others:
            raise HyperparameterError(
                f"hyperparameter {name} would override the trial's {key}, so that no arm could "
                f"change it: remove it{INSTEAD.get(key, '')}"
            )
    return passed


def takes_steps(settings):
    """Whether the script is told how many steps a whole run has, or may be."""
    named = settings.argument_names.get("full_run_steps") or settings.full_run_steps
    return bool(named) or settings.script_kind == "trainer"


def _trainer_defaults(settings, others):
    """The Trainer's own arguments for the arm's settings."""
    values = {"disable_tqdm": "True"}  # a progress bar would run into the lines of metrics
    if "output_dir" not in others:
        folder = environment.model_folder() or scratch.result_folder("model")
        values["output_dir"] = str(folder)
    if settings.precision in ("fp16", "bf16", "tf32"):
        values[settings.precision] = "True"
    backend = backend_named(settings.compiler)
    if backend.compiles_modules and not (settings.compile_regions or backend.regions_alone):
        values["torch_compile"] = "True"
        values["torch_compile_mode"] = settings.compile_mode
    return values


def set_environment(settings):
    """What accelerate reads from the environment."""
    if settings.script_kind in ("accelerate", "trainer"):
        mixed = {"fp16": "fp16", "bf16": "bf16", "fp8": "fp8"}.get(settings.precision, "no")
        os.environ.setdefault("ACCELERATE_MIXED_PRECISION", mixed)

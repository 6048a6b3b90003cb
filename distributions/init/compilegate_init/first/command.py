"""``compilegate first``: a workload file and a first answer from a script that is run briefly."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.adapters.workload_files import PYTHON, write_whole
from compilegate.cli.common import project
from compilegate.cli.common.output import (
    UNKNOWN,
    answer,
    busy_note,
    is_interactive,
    say,
    waiting,
)
from compilegate.cli.common.session import JsonOption
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import LARGEST
from compilegate.domain.formats import clock, duration, plural
from compilegate.place import INSTALLED, PROJECT
from compilegate_doctor import Description
from compilegate_init import questions
from compilegate_init.first.answer import Gain, gain
from compilegate_init.first.bounded import Ended, memory_limit, run_bounded
from compilegate_init.first.causes import why_no_gain, why_not
from compilegate_init.first.seen import Seen
from compilegate_init.first.written import (
    corrected,
    margin_for,
    proposed,
    requirements_of,
    seed_words,
    spread_of,
)
from compilegate_init.project import (
    IN_IMAGES,
    data_of,
    described,
    file_of,
    head_of,
    name_of,
    newest_image,
    project_of,
)
from compilegate_init.proposal import (
    ASSUMED,
    OPEN,
    Answers,
    document_of,
    find,
    lines,
    places,
    with_cap,
)

STEPS, MINUTES = 40, 5.0
# Share of a run's time in which it makes steps; the rest is for its start and its evaluation.
STEPPING = 0.4
SEED, OTHER_SEED = 17, 18
REQUIREMENTS = "requirements.txt"
OBSERVER = PROJECT / "training" / "observe.py"
TEMPLATES = Path(__file__).parents[1] / "templates"
# Of a production run, whose hours are not known.
AN_HOUR = 3600.0
# What a script might wait for, or leave somewhere else.
QUIET = {
    "PYTHONUNBUFFERED": "1", "WANDB_MODE": "disabled", "MPLBACKEND": "Agg",
    "HF_HUB_DISABLE_TELEMETRY": "1", "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run of the script: whether it was compiled, with which seed, and how it ended."""

    name: str
    compiled: bool
    seed: int
    seen: Seen
    ended: Ended

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        pace = self.seen.pace()
        compiler = self.seen.facts.get("compiler") or {}
        return {
            "run": self.name, "seed": self.seed, "compiled": self.compiled,
            "seconds": round(self.ended.seconds, 2), "steps": len(self.seen.steps),
            "step_seconds": pace.step_seconds if pace else None,
            "compile_seconds": compiler.get("compile_seconds"),
            "graphs": compiler.get("graphs"), "graph_breaks": compiler.get("graph_breaks"),
            "recompiles": compiler.get("recompiles"),
            "peak_memory_gib": self.seen.facts.get("peak_memory_gib"),
            "cut": self.ended.cut, "ended": self.seen.ended or None,
        }  # fmt: skip


def first(
    script: questions.ScriptArgument,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]", help="The script's own arguments.")
    ] = None,
    *,
    output: questions.OutputOption = None,
    name: questions.NameOption = None,
    python: Annotated[
        Path | None,
        typer.Option("--python", help="Default: what `make setup` made, else this one."),
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", min=5, max=1000, help="Of each run, about.")
    ] = STEPS,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0.05, max=120.0, help="Of each run, at most.")
    ] = MINUTES,
    instance_type: questions.InstanceTypeOption = None,
    run_hours: questions.RunHoursOption = None,
    runs_per_week: questions.RunsPerWeekOption = None,
    margin: Annotated[
        float | None,
        typer.Option("--margin", max=LARGEST, help="Largest loss of quality that you accept."),
    ] = None,
    force: questions.ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a script briefly, write its workload file, and say what compiling would gain.

    The unchanged script runs up to four times in this folder: as it is and compiled, with two
    seeds, each for a few steps. The workload file says beside each value how it was seen. What
    cannot be seen is asked on a terminal, or given by an option, else it is TODO in the file.

    \b
    compilegate first train.py
    compilegate first train.py -- --data-dir data/small --epochs 1
    compilegate first train.py --instance-type ml.g5.xlarge --run-hours 6

    A script may do here whatever it does otherwise: what it writes stays. Each run ends after
    --steps or --minutes, or where it takes most of the free memory, with every process that it
    has started.

    Exit code 0, 2 where the script shows no training step.
    """
    read = described(script)
    file = file_of(output, name_of(script, name), force=force)
    folder, source_dir = project_of(script, file)
    interpreter, settings = _interpreter(python), project.settings()
    if not as_json:
        _announce(script, steps, 60 * minutes)
    place = Path(tempfile.mkdtemp(prefix="compilegate-first-"))
    try:
        watch = Watch(script, interpreter, place, steps, 60 * minutes)
        words = [*_switched_on(read, words or []), *(words or [])]
        runs, read = _runs(watch, read, words)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    seen = runs[0].seen
    spread = _spread(runs, read)
    answers = Answers(
        name_of(script, name), source_dir, script.name, newest_image(read), instance_type,
        run_hours, runs_per_week, margin=margin, data=data_of(read, script, folder),
    )  # fmt: skip
    if not as_json and is_interactive():
        answers = _asked(answers, read, seen, spread)
    seeds = _seeds(runs)
    compiled = [one.seen for one in _of(runs, compiled=True)]
    proposal = with_cap(
        proposed(
            read, seen, answers, words, spread, compiled=compiled, follows_seed=seeds["another"]
        ),
        settings,
    )
    sentence = (
        f"{script.name}, as compilegate first saw it here: {plural(len(seen.steps), 'step')} on "
        f"{seen.facts['device_name']}, Python {seen.facts['python']}, torch {seen.facts['torch']}."
    )
    text = [*head_of(file, sentence), *(line for one in proposal.items() for line in lines(*one))]
    write_whole(file, ("\n".join(text) + "\n").encode())
    required = _write_requirements(script, seen)
    gained = _gain(runs, answers, read)
    document = {
        "file": str(file), "requirements": required, "workload": document_of(proposal),
        "todo": list(places(proposal, OPEN)), "assumed": list(places(proposal, ASSUMED)),
        "gain": gained.to_dict() if gained else None,
        "no_gain_because": None if gained else _why_no_gain(runs),
        "whole_run_seconds": _whole_run(runs, read), "spread": spread,
        "seeds": seeds, "runs": [one.to_dict() for one in runs],
        "seen": _facts(seen, read), "wrote": _wrote(runs, script, place),
    }  # fmt: skip
    hours = answers.run_hours
    rows = [_row(one) for one in runs]
    answer(document, TEMPLATES / "first", as_json=as_json, run_hours=hours, rows=rows)


def _announce(script: Path, steps: int, seconds: float) -> None:
    say(
        f"Runs {script} in {Path.cwd()} up to four times, each for about {plural(steps, 'step')}, "
        f"at most {duration(seconds)}. It may do whatever it does otherwise; what it writes stays."
    )
    if busy := busy_note():
        say(f"{busy}: the figures may be of its load, not of the compiler.")


class Watch:
    """Runs a script under observation with one Python; ``place`` is removed afterwards."""

    def __init__(self, script: Path, python: Path, place: Path, steps: int, seconds: float) -> None:
        self.script, self.python, self._place = script, python, place
        self._steps, self._seconds = steps, seconds

    def run(
        self, name: str, words: Sequence[str], *, compiled: bool, seed: int, shift: int = 0
    ) -> Run:
        """One run; what it leaves of itself is read, also where it was ended."""
        out = self._place / f"{name.replace(' ', '-')}.json"
        temporary = self._place / "tmp"
        temporary.mkdir(exist_ok=True)
        settings = {
            "out": str(out), "steps": self._steps, "seconds": self._seconds * STEPPING,
            "seed": seed, "shift": shift, "compiler": "torch_compile" if compiled else "none",
        }  # fmt: skip
        environment = {
            **QUIET, **os.environ, "TMPDIR": str(temporary),
            "TORCHINDUCTOR_CACHE_DIR": str(self._place / "compiled"),
        }  # fmt: skip
        command = [str(self.python), str(OBSERVER), json.dumps(settings), str(self.script), *words]
        with waiting(name) as update:
            ended = run_bounded(
                command, environment, self._seconds, memory_bytes=memory_limit(),
                update=lambda spent, line: update(f"{name}, {clock(spent)}: {line}"),
            )  # fmt: skip
        facts: Mapping[str, Any] = {}
        with suppress(OSError, ValueError):
            facts = json.loads(out.read_text(encoding="utf-8"))
        return Run(name, compiled, seed, Seen(facts), ended)


def _interpreter(python: Path | None) -> Path:
    chosen = python or (Path(sys.executable) if INSTALLED else PROJECT / PYTHON)
    path = shutil.which(str(chosen))
    if path is None:
        fix = "name one with --python, or " + (
            "pip install 'compilegate[local]'" if INSTALLED else "run `make setup`"
        )
        raise InvalidInputError("is not a Python", field="--python", value=str(chosen), fix=fix)
    return Path(path)


def _switched_on(read: Description, words: Sequence[str]) -> list[str]:
    """The switches of a Trainer's script without which it neither trains nor evaluates."""
    named = {word.lstrip("-").partition("=")[0] for word in words}
    return [f"--{name}" for name in read.asks if name not in named]


def _runs(watch: Watch, read: Description, words: Sequence[str]) -> tuple[list[Run], Description]:
    """As it is, compiled, and both with another seed; the description with what was seen."""
    eager = watch.run("as it is", words, compiled=False, seed=SEED)
    if not eager.seen.steps:
        raise why_not(watch.script, eager.seen, eager.ended, watch.python)
    read = corrected(read, eager.seen, words)
    runs = [eager, watch.run("compiled", words, compiled=True, seed=SEED)]
    own = seed_words(read, OTHER_SEED)
    other, shift = [*words, *(own or ())], 0 if own else 1
    for one in list(runs):
        if one.seen.steps:
            name = f"{one.name}, another seed"
            runs.append(watch.run(name, other, compiled=one.compiled, seed=OTHER_SEED, shift=shift))
    return runs, read


def _row(run: Run) -> tuple[str, ...]:
    """Name, steps, seconds, milliseconds of a step; what was compiled."""
    one = run.to_dict()
    step, compiled = one["step_seconds"], run.compiled
    return (
        run.name, str(one["steps"]), duration(one["seconds"]),
        UNKNOWN if step is None else f"{1000 * step:.3g}",
        *(str(one[key]) if compiled else "" for key in ("graphs", "graph_breaks", "recompiles")),
        duration(one["compile_seconds"]) if compiled and one["compile_seconds"] else "",
    )  # fmt: skip


def _of(runs: Sequence[Run], *, compiled: bool) -> list[Run]:
    return [one for one in runs if one.compiled == compiled]


def _gain(runs: Sequence[Run], answers: Answers, read: Description) -> Gain | None:
    pairs = [(base.seen, mine.seen) for mine in _of(runs, compiled=True)
             for base in _of(runs, compiled=False) if base.seed == mine.seed]  # fmt: skip
    whole = _whole_run(runs, read)
    asked = AN_HOUR if answers.run_hours is None else 3600 * answers.run_hours
    return gain(pairs, [asked, *([whole] if whole else [])])


def _why_no_gain(runs: Sequence[Run]) -> str:
    short = next((one for one in runs if one.seen.pace() is None), runs[0])
    return why_no_gain(short.name, short.seen, short.ended, compiled=short.compiled)


def _whole_run(runs: Sequence[Run], read: Description) -> float | None:
    """Seconds of the run that the script's own settings ask for, on this machine."""
    seen = runs[0].seen
    pace, planned = seen.pace(), seen.facts.get("planned_steps")
    option, batches = find(read, "epochs"), seen.loader.get("batches")
    times = option.default if option else read.constants.get("epochs")
    if not planned and batches and isinstance(times, int | float):
        planned = batches * times
    return pace.step_seconds * planned if pace and planned else None


def _spread(runs: Sequence[Run], read: Description) -> float | None:
    eager = _of(runs, compiled=False)
    reported = eager[0].seen.reported(read.metrics)
    if len(eager) < 2 or not reported:
        return None
    return spread_of(reported[0].metric.name, eager[0].seen, eager[1].seen, read)


def _seeds(runs: Sequence[Run]) -> dict[str, bool | None]:
    """Whether the same seed gives the same start, and another one another; None if not known."""
    starts = {(one.compiled, one.seed): one.seen.facts.get("initial_weights") for one in runs}
    runs_of = ((False, SEED), (False, OTHER_SEED), (True, SEED))
    eager, other, compiled = map(starts.get, runs_of)
    return {
        "same": None if eager is None or compiled is None else eager == compiled,
        "another": None if eager is None or other is None else eager != other,
    }


def _facts(seen: Seen, read: Description) -> dict[str, Any]:
    facts = seen.facts
    reported = seen.reported(read.metrics)
    return {
        "packages": facts.get("packages"), "python": facts.get("python"),
        "torch": facts.get("torch"), "device": facts.get("device"),
        "arguments": read.command_line.reader, "models": facts.get("models"),
        "parameters": facts.get("parameters"), "precision": seen.precision[0],
        "batch_size": seen.batch_size, "shapes": seen.first_shapes(), "moving": seen.moving(),
        "loader": facts.get("loader"), "managed": facts.get("managed"),
        "compiles": facts.get("compiles"), "peak_memory_gib": facts.get("peak_memory_gib"),
        "metrics": {one.metric.name: one.value for one in reported},
    }  # fmt: skip


def _wrote(runs: Sequence[Run], script: Path, place: Path) -> list[str]:
    """Files outside of the script's folder and this one that were opened to write."""
    inside = (Path.cwd().resolve(), script.resolve().parent, place)
    places = {Path(one) for run in runs for one in run.seen.facts.get("wrote") or ()}
    return sorted(str(one) for one in places if not any(one.is_relative_to(at) for at in inside))


def _write_requirements(script: Path, seen: Seen) -> str | None:
    """The file that was written beside the script; None where there is one, or none is needed."""
    place, rows = script.parent / REQUIREMENTS, requirements_of(seen, IN_IMAGES)
    if place.exists() or not rows:
        return None
    write_whole(place, ("\n".join(rows) + "\n").encode())
    return str(place)


def _asked(answers: Answers, read: Description, seen: Seen, spread: float | None) -> Answers:
    """The answers with what a person says; an empty line takes the default."""
    answers = questions.with_schedule(answers)
    reported = seen.reported(read.metrics)
    if reported and answers.margin is None:
        one = reported[0]
        apart = "" if spread is None else f", two seeds differ by {spread:.2g}"
        question = f"Largest loss of {one.metric.name} that you accept (here {one.value:g}{apart})"
        margin = typer.prompt(
            question, default=margin_for(one, spread), value_proc=questions.up_to(LARGEST)
        )
        answers = replace(answers, margin=margin)
    return answers

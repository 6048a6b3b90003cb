"""Runs a training script that does not know Compilegate as one arm, and records it.

    python launch.py --script run_glue.py --compiler torch_compile --batch_size 32 …

What the trial sets is passed on under the script's own names, every other hyperparameter as it
is. docs/training.md says what is measured how.
"""

import contextlib
import runpy
import sys
from pathlib import Path

from compilegate_runtime import compile_cache, environment, job
from compilegate_runtime.compilers import backend_named
from compilegate_runtime.device import ScriptsDevice
from compilegate_runtime.errors import (
    CompilerUnavailableError,
    HyperparameterError,
    StoppedError,
    TrainingError,
)
from compilegate_runtime.evidence import Reported
from compilegate_runtime.fingerprint import fingerprint
from compilegate_runtime.launching import arguments, evaluations, frameworks, models
from compilegate_runtime.launching.checkpoints import KeptEvidence, OwnCheckpoints
from compilegate_runtime.launching.shortened import Shortened
from compilegate_runtime.launching.steps import Enough, Steps
from compilegate_runtime.launching.subject import subject_of
from compilegate_runtime.launching.trainer_checkpoints import (
    LightningCheckpoints,
    TrainerCheckpoints,
)
from compilegate_runtime.progress import write_line
from compilegate_runtime.ranks import Ranks, stay_in_process_group
from compilegate_runtime.sampler import sampler_for
from compilegate_runtime.saving import AgreedSaves, SaveSchedule
from compilegate_runtime.seeds import seed_everything, shift_seeds

BAD_LOSSES_ALLOWED = 10  # in a row: loss scaling skips a few steps at first
USAGE = 2  # what argparse ends with


class Launch:
    """One run of a script with an open recorder."""

    def __init__(self, settings, others, recorder):
        self.settings, self.others, self.recorder = settings, others, recorder
        self.source = Path(sys.argv[0]).resolve().parent
        self.metrics, self.full_run_steps = Reported(recorder.evaluated), settings.full_run_steps
        self.watched = None  # the script's models
        self.few, self.shortened = environment.try_steps(), None
        # A segment would fail for it, which a try does not run.
        counted = settings.script_kind in ("trainer", "lightning")
        length = counted or settings.full_run_steps or settings.full_run_samples
        self.length_unknown = bool(self.few and not length)
        if self.few:
            recorder.steps_planned = self.few
        recorder.bad_losses_allowed = BAD_LOSSES_ALLOWED

    def run(self):
        """Run the script to its end, or until a segment has its steps."""
        words = self._prepare()
        with self._printed(), self.recorder.training():
            self._run_script(words)
        if not self.recorder.steps_done:
            raise TrainingError(
                "no training step was seen: a step is a call of a model (a torch.nn.Module in "
                "training mode) followed by an optimizer's step"
            )
        if not self.settings.max_steps:
            saved = frameworks.without_counts(frameworks.saved(_output_folder(words)))
            for name, value in sorted({**self.metrics, **saved}.items()):
                self.recorder.metric(name, value)
            self.recorder.ended_with(*self.watched.models)
        self.recorder.finish()
        self.recorder.keep_bundle()
        self.recorder.examine()

    def _prepare(self):
        settings = self.settings
        if self.few and arguments.takes_steps(settings):
            settings.full_run_steps = self.full_run_steps = self.few
        words = arguments.script_words(settings, self.others)
        arguments.set_environment(settings)
        backend = backend_named(settings.compiler)
        takes_it = backend.compiles_modules or backend.takes_any_script
        if settings.compiler != "none" and not takes_it:
            raise CompilerUnavailableError(
                f"compiler {settings.compiler} was requested but not applied: a script has to be "
                "ported to it, see training/causal_lm.py"
            )
        import torch  # noqa: PLC0415 — not before the environment is as it should be

        device, compiler = ScriptsDevice(settings.precision), job.compiler_of(settings)
        self.recorder.use(compiler, device, sampler_for(device))
        self.recorder.fingerprint = fingerprint(device, settings, self.source)
        self.recorder.prepare_bundle()
        self._hook(torch, compiler)
        seed_everything(settings.seed)  # for a script that sets none of its own
        if "seed" in settings.argument_names and not settings.argument_names["seed"]:
            shift_seeds(settings.seed)
        return words

    def _hook(self, torch, compiler):
        settings = self.settings
        self.watched = watched = models.Models(torch, compiler)
        if self.few:
            self.shortened = Shortened(self.few, self.recorder, lambda: bool(self.metrics))
        steps = Steps(torch, self.recorder, watched, settings.max_steps, self.shortened)
        steps.checks.append(lambda _: models.check_precision(settings, watched.types))
        steps.checks.append(self._count_full_run)
        watched.fed = steps.fed
        steps.install()
        if watched.kept.asked:
            stay_in_process_group(torch.distributed)
            self.recorder.subject = lambda: subject_of(
                torch, watched, settings.precision, compiler.compiles_regions, steps.training_loader
            )
        checkpoints = self._checkpoints(torch, steps)
        models.leave_compiling_to_the_arm(torch, compiler, watched, settings.script.parent)
        if settings.script_kind == "trainer":
            frameworks.listen_to_trainer(self.metrics, self._planned, checkpoints)
            evaluations.listen_to_trainer(torch)
        elif settings.script_kind == "lightning":
            frameworks.listen_to_lightning(
                self.metrics,
                self._planned,
                checkpoints,
                lambda pl: [
                    evaluations.lightning_callback(torch, pl),
                    *([self.shortened.lightning_callback(pl)] if self.shortened else []),
                    *([frameworks.endless_epochs(pl)] if settings.max_steps else []),
                ],
                arguments.imports(settings.script)[0],
            )
        watched.watch()

    def _checkpoints(self, torch, steps):
        """Let a whole run continue from what an earlier process of its job saved."""
        place, settings = environment.checkpoint_folder(), self.settings
        if place is None or settings.max_steps:
            return None
        kept = KeptEvidence(self.recorder, place / "progress", {**vars(settings), **self.others})
        steps.checks.append(lambda _: self._began(kept))
        kinds = {"trainer": TrainerCheckpoints, "lightning": LightningCheckpoints}
        if settings.script_kind not in kinds:
            OwnCheckpoints(torch, self.recorder, kept, place).install()
            return None
        ranks = Ranks()
        saves = AgreedSaves(SaveSchedule(settings.checkpoint_minutes), ranks)
        return kinds[settings.script_kind](self.recorder, kept, place, saves, ranks)

    def _began(self, kept):
        """Called at this process's first step: a restart if an earlier process has begun too."""
        if kept.begun_before and not self.recorder.resumed:
            self.recorder.identify(restarted=True)
        kept.begin()

    def _count_full_run(self, samples):
        """Take the length of a whole run from its samples unless its steps are set."""
        settings = self.settings
        if settings.full_run_samples and samples:
            per_step = samples * environment.world_size()
            self._planned(max(1, round(settings.full_run_samples / per_step)))
        if (settings.max_steps and not self.full_run_steps) or self.length_unknown:
            raise HyperparameterError(
                "the number of steps of a whole run is unknown, so a segment says nothing about "
                "it: give full_run_samples (training samples times epochs) or full_run_steps"
            )

    def _planned(self, steps):
        """The script's framework has counted the steps of a whole run."""
        if steps > 0 and not self.settings.full_run_steps:
            self.full_run_steps = steps
            self.recorder.identify(full_run_steps=steps)
            self.recorder.steps_planned = self.settings.max_steps or self.few or steps

    @contextlib.contextmanager
    def _printed(self):
        """Read metrics from what the script prints."""
        patterns, streams = self.settings.metric_patterns, (sys.stdout, sys.stderr)
        watched = [frameworks.Printed(stream, patterns, self.metrics) for stream in streams]
        if patterns:
            sys.stdout, sys.stderr = watched
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams
            for process in watched:
                process.finish()

    def _run_script(self, words):
        script = str(self.settings.script)
        sys.argv = [script, *words]
        sys.path.insert(0, str(Path(script).parent))
        write_line(" ".join(["compilegate script=" + Path(script).name, *words]))
        try:
            runpy.run_path(script, run_name="__main__")
        except Enough:
            return
        except StoppedError:
            raise
        except Exception as error:
            if self.shortened is None or not self.shortened.over:
                raise  # else of a script that found no more data
            write_line(f"compilegate try ended_by={type(error).__name__}")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise TrainingError(_why_it_ended(end.code, words)) from end


def _why_it_ended(code, words):
    if code != USAGE:
        return f"the script ended with exit code {code}"
    return (
        f"the script ended with exit code {USAGE}, as it does on unknown arguments; its arguments "
        f"were {' '.join(words)}. argument_names says what the script calls a trial's settings, "
        "and null passes none: '{\"seed\": null}'"
    )


def _output_folder(words):
    """The folder that the command line names for the script's results, None without one."""
    for index, word in enumerate(words):
        if word.startswith("--output_dir="):
            return word.partition("=")[2]
        if word == "--output_dir" and index + 1 < len(words):
            return words[index + 1]
    return None


def main():
    """Run the script of the command line; exit 1 with the reason in the failure file."""
    with job.explained():
        settings, others = arguments.parse(sys.argv[1:])
        whole, steps = settings.full_run_steps or None, settings.max_steps or None
        with compile_cache.preserved(), job.recorded(settings, whole, steps or whole) as recorder:
            Launch(settings, others, recorder).run()

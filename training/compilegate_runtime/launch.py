"""Runs a training script that knows nothing of Compilegate as one arm, and records it.

    python launch.py --script run_glue.py --compiler torch_compile --batch_size 32 …

What the trial sets is passed on under the script's own names, every other hyperparameter as it
is. docs/training.md says what is measured how.
"""

import contextlib
import runpy
import sys
import traceback
from pathlib import Path

from compilegate_runtime import compile_cache, environment, job
from compilegate_runtime.compilers import MANAGED, NoCompiler
from compilegate_runtime.device import Processor, ScriptsDevice
from compilegate_runtime.errors import (
    CompilerUnavailableError,
    HyperparameterError,
    StoppedError,
    TrainingError,
)
from compilegate_runtime.fingerprint import fingerprint
from compilegate_runtime.launching import arguments, frameworks, metrics
from compilegate_runtime.launching.kept_evidence import KeptEvidence
from compilegate_runtime.launching.lightning_checkpoints import LightningCheckpoints
from compilegate_runtime.launching.models import Models
from compilegate_runtime.launching.resuming import OwnCheckpoints
from compilegate_runtime.launching.steps import Enough, Steps
from compilegate_runtime.launching.trainer_checkpoints import TrainerCheckpoints
from compilegate_runtime.progress import write_line
from compilegate_runtime.ranks import Ranks, leave_process_group
from compilegate_runtime.recorder import Recorder
from compilegate_runtime.sampler import sampler_for
from compilegate_runtime.save_schedule import AgreedSaves, SaveSchedule
from compilegate_runtime.seeds import seed_everything, shift_seeds

BAD_LOSSES_ALLOWED = 10  # in a row: loss scaling skips a few steps before it has settled

USAGE = 2  # what argparse ends with


class Launch:
    """One run of somebody's script."""

    def __init__(self, settings, others):
        self.settings, self.others = settings, others
        self.source = Path(sys.argv[0]).resolve().parent
        self.metrics, self.full_run_steps = {}, settings.full_run_steps
        identity = {
            "job": environment.job_name(),
            "arm": settings.arm,
            "replicate": settings.replicate,
            "seed": settings.seed,
            "full_run_steps": settings.full_run_steps or None,
        }
        self.recorder = Recorder(
            environment.evidence_folder(),
            identity,
            steps=settings.max_steps or settings.full_run_steps or None,
            compiler=NoCompiler(settings.compiler),
            device=Processor(),
        )
        self.recorder.bad_losses_allowed = BAD_LOSSES_ALLOWED

    def run(self):
        """Run the script to its end, or until a segment has its steps."""
        job.record_termination(self.recorder)
        try:
            words = self._prepare()
            with self._printed():
                self._run_script(words)
            self._finish(words)
        except (Exception, KeyboardInterrupt) as error:
            self.recorder.fail(str(error) or type(error).__name__)
            raise
        finally:
            self.recorder.close()
        leave_process_group()

    def _prepare(self):
        settings = self.settings
        words = arguments.script_words(settings, self.others)
        arguments.set_environment(settings)
        if settings.compiler == MANAGED:
            raise CompilerUnavailableError(
                f"compiler {settings.compiler} was asked for and not applied: a script has to be "
                "ported to it, see training/causal_lm.py"
            )
        import torch  # noqa: PLC0415 — not before the environment is as it should be

        device, compiler = ScriptsDevice(settings.precision), job.compiler_of(settings)
        self.recorder.use(compiler, device, sampler_for(device))
        self.recorder.fingerprint = fingerprint(device, settings, self.source)
        self._hook(torch, compiler)
        seed_everything(settings.seed)  # for a script that sets none of its own
        if "seed" in settings.argument_names and not settings.argument_names["seed"]:
            shift_seeds(settings.seed)
        return words

    def _hook(self, torch, compiler):
        settings = self.settings
        models = Models(torch, compiler)
        steps = Steps(torch, self.recorder, models, settings.max_steps)
        steps.checks.append(lambda _: frameworks.check_precision(settings, models.types))
        steps.checks.append(self._count_full_run)
        models.fed = steps.fed
        steps.install()
        checkpoints = self._checkpoints(torch, steps)
        frameworks.leave_compiling_to_the_arm(torch, compiler, models, settings.script.parent)
        if settings.script_kind == "trainer":
            frameworks.listen_to_trainer(self.metrics, self._planned, checkpoints)
        elif settings.script_kind == "lightning":
            frameworks.listen_to_lightning(self.metrics, self._planned, checkpoints)
        models.watch()

    def _checkpoints(self, torch, steps):
        """Let a whole run go on from what an earlier process of its job left."""
        place, settings = environment.checkpoint_folder(), self.settings
        if place is None or settings.max_steps:
            return None
        run = {**vars(settings), **self.others}
        kept = KeptEvidence(self.recorder, place / "progress", run)
        steps.checks.append(lambda _: self._began(kept))
        kinds = {"trainer": TrainerCheckpoints, "lightning": LightningCheckpoints}
        if settings.script_kind not in kinds:
            OwnCheckpoints(torch, self.recorder, kept, place).install()
            return None
        ranks = Ranks()
        saves = AgreedSaves(SaveSchedule(settings.checkpoint_minutes), ranks)
        return kinds[settings.script_kind](self.recorder, kept, place, saves, ranks)

    def _began(self, kept):
        """The first step is done; it is the first of all where no earlier process has begun."""
        if kept.begun_before and not self.recorder.resumed:
            self.recorder.identify(restarted=True)
        kept.begin()

    def _count_full_run(self, samples):
        """Know how long a whole run is, by its samples unless its steps are known."""
        settings = self.settings
        if settings.full_run_samples and samples:
            per_step = samples * environment.world_size()
            self._planned(max(1, round(settings.full_run_samples / per_step)))
        if settings.max_steps and not self.full_run_steps:
            raise HyperparameterError(
                "nobody knows how many steps a whole run takes, so a segment says nothing about "
                "it: give full_run_samples (training samples times epochs) or full_run_steps"
            )

    def _planned(self, steps):
        """The script's framework has counted the steps of a whole run."""
        if steps > 0 and not self.settings.full_run_steps:
            self.full_run_steps = steps
            self.recorder.identify(full_run_steps=steps)
            self.recorder.steps_planned = self.settings.max_steps or steps

    @contextlib.contextmanager
    def _printed(self):
        """Read metrics off what the script prints."""
        patterns, kept = self.settings.metric_patterns, (sys.stdout, sys.stderr)
        watched = [metrics.Printed(stream, patterns, self.metrics) for stream in kept]
        if patterns:
            sys.stdout, sys.stderr = watched
        try:
            yield
        finally:
            sys.stdout, sys.stderr = kept
            for one in watched:
                one.finish()

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
        except SystemExit as end:
            if end.code not in (None, 0):
                raise TrainingError(_why_it_ended(end.code, words)) from end

    def _finish(self, words):
        if not self.recorder.steps_done:
            raise TrainingError(
                "no training step was seen: a step is a call of a model (a torch.nn.Module in "
                "training mode) followed by an optimizer's step"
            )
        if not self.settings.max_steps:
            found = dict(self.metrics)
            found.update(metrics.telling(metrics.saved(_output_folder(words))))
            for name, value in sorted(found.items()):
                self.recorder.metric(name, value)
        self.recorder.finish()


def _why_it_ended(code, words):
    if code != USAGE:
        return f"the script ended by itself: exit code {code}"
    return (
        f"the script ended with exit code {USAGE}, as it does on arguments that it does not know; "
        f"it was given {' '.join(words)}. argument_names says what the script calls a trial's "
        "settings, and null passes none: '{\"seed\": null}'"
    )


def _output_folder(words):
    """The folder that the script was told to leave its results in, if it was told."""
    for index, word in enumerate(words):
        if word.startswith("--output_dir="):
            return word.partition("=")[2]
        if word == "--output_dir" and index + 1 < len(words):
            return words[index + 1]
    return None


def main():
    """Run the script of the command line; exit 1 with the reason in the failure file."""
    try:
        settings, others = arguments.parse(sys.argv[1:])
        with compile_cache.carried():
            Launch(settings, others).run()
    except TrainingError as error:
        job.end(str(error))
    except Exception as error:  # noqa: BLE001 — whatever went wrong has to reach the failure file
        traceback.print_exc()
        job.end(f"{type(error).__name__}: {error}")

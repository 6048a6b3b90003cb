"""Runs a training script as a job: settings in, evidence and a readable failure out."""

import contextlib
import signal
import sys
import traceback
from collections import namedtuple

from compilegate_runtime import compile_cache, environment, outcomes
from compilegate_runtime.compilers import NoCompiler, backend_named, compiler_for
from compilegate_runtime.compilers.xla import identify_process
from compilegate_runtime.device import PRECISIONS, Processor, TorchDevice, XlaDevice
from compilegate_runtime.errors import CompilerUnavailableError, StoppedError, TrainingError
from compilegate_runtime.fingerprint import fingerprint
from compilegate_runtime.hyperparameters import parse
from compilegate_runtime.progress import write_line
from compilegate_runtime.ranks import leave_process_group
from compilegate_runtime.recorder import Recorder
from compilegate_runtime.sampler import sampler_for
from compilegate_runtime.seeds import seed_everything


class Job(namedtuple("Job", "settings device compiler recorder")):
    """What a training script gets: its settings, the device, the compiler, the recorder."""

    @property
    def evaluates(self):
        """A full run evaluates and saves its model; a speed segment stops after its steps."""
        return not self.settings.max_steps


def run(train, knobs, uses_torch=True, index=None):
    """Run ``train(job)`` and end the process with 0, or 1 and the reason in the failure file.

    ``index`` is what PyTorch/XLA's launcher hands to each process that it starts.
    """
    with explained():
        if index is not None:
            identify_process()
        settings = parse({"precision": PRECISIONS, **knobs}, sys.argv[1:])
        steps = min(settings.steps, settings.max_steps or settings.steps)
        with compile_cache.preserved(), recorded(settings, settings.steps, steps) as recorder:
            device, compiler = _device(settings, uses_torch), _compiler(settings, uses_torch)
            recorder.use(compiler, device, sampler_for(device))
            recorder.fingerprint = fingerprint(device, settings)
            recorder.prepare_bundle()
            if uses_torch:
                seed_everything(settings.seed)
            with recorder.training():
                train(Job(settings, device, compiler, recorder))
            recorder.finish()
            recorder.keep_bundle()
            recorder.examine()


@contextlib.contextmanager
def explained():
    """End the process with 1 and the reason where SageMaker reads it if the block fails."""
    try:
        yield
    except TrainingError as error:
        _end(str(error))
    except Exception as error:  # noqa: BLE001 — every reason has to reach the failure file
        traceback.print_exc()
        _end(f"{type(error).__name__}: {error}")


def _end(reason):
    write_line(f"compilegate failed: {reason}", sys.stderr)
    environment.write_failure(reason)
    sys.exit(1)


@contextlib.contextmanager
def recorded(settings, full_run_steps, steps):
    """The run's Recorder, without compiler and device at first; it keeps why the block failed.

    ``steps`` are those that this job plans, of the ``full_run_steps`` that a speed segment stands
    for.
    """
    identity = {
        "job": environment.job_name(),
        "arm": settings.arm,
        "replicate": settings.replicate,
        "seed": settings.seed,
        "full_run_steps": full_run_steps,
    }
    recorder = Recorder(
        environment.evidence_folder(),
        identity,
        steps=steps,
        compiler=NoCompiler(settings.compiler),
        device=Processor(),
    )

    def stop(_signal, _frame):
        recorder.fail("stopped by SIGTERM before it finished")
        raise StoppedError

    signal.signal(signal.SIGTERM, stop)
    outcomes.opened(recorder)
    try:
        yield recorder
    except (Exception, KeyboardInterrupt) as error:
        recorder.fail(str(error) or type(error).__name__, error=type(error).__name__)
        raise
    except SystemExit as end:
        if end.code == 0:  # in the equivalence check, after the run
            leave_process_group()
        raise
    finally:
        outcomes.closed()
        recorder.close()
    leave_process_group()


def _device(settings, uses_torch):
    if not uses_torch:
        return Processor(settings.precision)
    kind = XlaDevice if backend_named(settings.compiler).on_xla else TorchDevice
    return kind(settings.precision)


def _compiler(settings, uses_torch):
    if not uses_torch and settings.compiler != "none":
        raise CompilerUnavailableError(
            f"compiler {settings.compiler} was requested; this script has no graph to compile"
        )
    return compiler_of(settings) if uses_torch else NoCompiler()


def compiler_of(settings):
    """The compiler's backend that the hyperparameters ask for."""
    return compiler_for(
        settings.compiler,
        settings.compile_mode,
        settings.compile_dynamic,
        optimizer=settings.compile_optimizer,
        regions=settings.compile_regions,
    )

"""What each training framework says by itself, and what it is asked whether it was done."""

import inspect
import sys
from pathlib import Path

from compilegate_runtime.errors import NotAppliedError
from compilegate_runtime.launching.metrics import numbers, telling
from compilegate_runtime.launching.models import IMMEDIATE
from compilegate_runtime.progress import write_line


def listen_to_trainer(metrics, planned, checkpoints=None):
    """Take the metrics of every Trainer made from now on, and how many steps it plans.

    ``checkpoints`` keeps those that it saves, if the job has a place for them. The list of default
    callbacks stands in the module of the Trainer, in every release since 4.0.
    """
    from transformers import TrainerCallback, trainer  # noqa: PLC0415 — only scripts that have it

    class Listener(TrainerCallback):
        """Hands on what the Trainer says."""

        def on_train_begin(self, args, state, control, **kwargs):  # noqa: ARG002 — their signature
            """The Trainer has counted its steps."""
            planned(state.max_steps)
            if checkpoints:
                checkpoints.begins(state.global_step)

        def on_step_end(self, args, state, control, **kwargs):  # noqa: ARG002 — as above
            """A step is over; it may be time for a checkpoint."""
            if checkpoints:
                checkpoints.step_ended(args, state, control)

        def on_save(self, args, state, control, **kwargs):  # noqa: ARG002 — as above
            """A checkpoint is complete."""
            if checkpoints:
                checkpoints.saved(args, state)

        def on_train_end(self, args, state, control, **kwargs):  # noqa: ARG002 — as above
            """There are no more steps."""
            if checkpoints:
                checkpoints.ends()

        def on_evaluate(self, args, state, control, metrics=None, **kwargs):  # noqa: ARG002
            """An evaluation is over."""
            found.update(telling(numbers(metrics or {})))
            if checkpoints:
                checkpoints.evaluated()

    found = metrics
    trainer.DEFAULT_CALLBACKS.append(Listener)
    if checkpoints:
        checkpoints.install(trainer.Trainer)


def listen_to_lightning(metrics, planned, checkpoints=None):
    """Take the metrics of every Lightning Trainer made from now on, and how many steps it plans.

    ``checkpoints`` saves and loads them, if the job has a place for them.
    """
    try:
        import lightning.pytorch as pl  # noqa: PLC0415 — only scripts that have it
    except ImportError:
        import pytorch_lightning as pl  # noqa: PLC0415 — its older name

    class Listener(pl.Callback):
        """Hands on what the Trainer says."""

        def on_train_start(self, trainer, pl_module):  # noqa: ARG002 — their signature
            """The Trainer has counted its steps, unless they have no end."""
            steps = trainer.estimated_stepping_batches
            planned(int(steps) if steps != float("inf") else 0)
            if checkpoints:
                checkpoints.begins(trainer.global_step)

        def on_train_batch_end(self, trainer, *_args, **_kwargs):
            """A batch is over; it may be time for a checkpoint."""
            if checkpoints:
                checkpoints.batch_ended(trainer)

        def on_validation_end(self, trainer, pl_module):  # noqa: ARG002 — as above
            """A validation is over; its first one is a trial before training."""
            if not trainer.sanity_checking:
                values = {key: value.item() for key, value in trainer.callback_metrics.items()}
                metrics.update(numbers(values))

        def on_save_checkpoint(self, trainer, pl_module, checkpoint):  # noqa: ARG002 — as above
            """A checkpoint is about to be saved."""
            if checkpoints:
                checkpoints.saving(checkpoint)

        def on_load_checkpoint(self, trainer, pl_module, checkpoint):  # noqa: ARG002 — as above
            """A checkpoint was read."""
            if checkpoints:
                checkpoints.loaded(checkpoint)

    original = pl.Trainer.__init__

    def initialise(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.callbacks.append(Listener())

    pl.Trainer.__init__ = initialise
    if checkpoints:
        checkpoints.install(pl.Trainer)


def leave_compiling_to_the_arm(torch, compiler, models, source):
    """Let torch.compile of a model do what the arm says and nothing else, whoever calls it.

    Without a compiler the model stays as it is; with torch.compile it is compiled the arm's way.
    The script's own functions, whose code lies in the folder ``source``, and methods of models
    are left as they are in both: the models that they call are compiled. Functions that
    libraries compile for themselves belong to both arms and are left alone.
    """
    original = torch.compile

    def compile_model(model=None, **kwargs):
        if model is None:
            return lambda decorated: compile_model(decorated, **kwargs)
        of_a_model = isinstance(model, torch.nn.Module)
        if not of_a_model and not _is_the_scripts(torch, model, source):
            return original(model, **kwargs)
        if not of_a_model or not compiler.compiles_modules:
            write_line("compilegate script_compiles=left_out")
            return model
        with models.unwatched():
            return compiler.compiled(model)

    torch.compile = compile_model
    if hasattr(torch.nn.Module, "compile"):

        def compile_in_place(self, *_args, **_kwargs):
            if compiler.compiles_modules:
                self.__dict__[IMMEDIATE] = compiler.compiled(self._call_impl)

        torch.nn.Module.compile = compile_in_place


def _is_the_scripts(torch, function, source):
    """Whether a function is the script's own, or a model's method."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = code is not None and source in Path(code.co_filename).resolve().parents
    return own or isinstance(getattr(function, "__self__", None), torch.nn.Module)


def check_precision(settings, seen):
    """Raise NotAppliedError unless the script trains in the precision that the arm asks for.

    ``seen`` are the types of number in which the model was called and its weights are kept.
    """
    wanted = {"fp16": "float16", "bf16": "bfloat16"}.get(settings.precision)
    state = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
    mixed = getattr(state, "_shared_state", {}).get("_mixed_precision") if state else None
    if settings.precision == "fp8":
        done = mixed == "fp8"
    else:
        done = wanted is None or wanted in seen or mixed == settings.precision
    if not done:
        raise NotAppliedError(
            f"precision {settings.precision} was asked for and not applied: the script trains in "
            f"{', '.join(sorted(seen))}. Name the script's own argument for it: argument_names: "
            '\'{"precision": "dtype"}\''
        )

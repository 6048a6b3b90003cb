"""Trains as written: the baseline, and what every other compiler's backend builds on."""

from compilegate_runtime import environment


class NoCompiler:
    """No compiler; one that was ``requested`` counts as not applied."""

    # The hyperparameter's value, and the values of compile_mode.
    name, modes = "none", ()
    # Whether the arm compiles what a script hands to torch.compile.
    compiles_modules = False
    # Whether a script may be any, though the arm compiles nothing of it.
    takes_any_script = False
    # Whether it compiles repeated blocks of a model alone.
    compiles_regions = regions_alone = False
    # Whether models live on PyTorch/XLA's device, whose processes know each other.
    on_xla = False
    # How it compiles, as data.
    how = None

    def __init__(self, requested=None):
        self.requested = requested or self.name

    @classmethod
    def create(cls, _settings):
        """The backend of a job's ``Settings``."""
        return cls()

    # ---- what a training script calls -----------------------------------------------------

    def apply(self, module):
        """Return what to call instead of ``module``; its parameters stay those of ``module``."""
        return module

    def reduce(self, optimizer):
        """Make gradients those of the whole batch; where DDP wraps the model, they are."""

    def step(self, optimizer, scaler=None):
        """Let the optimizer take its step, through fp16's gradient scaler where there is one."""
        if scaler is None:
            optimizer.step()
            return
        scaler.step(optimizer)
        scaler.update()

    def save(self, state, path):
        """Write ``state`` from the first process; every process calls this."""
        import torch  # noqa: PLC0415 — jobs without torch use this module too

        if not environment.rank():
            torch.save(state, str(path))

    def before_compiling(self, begin):
        """Let ``begin()`` be called once before anything is compiled; this one compiles nothing."""

    # ---- what the recorder asks -----------------------------------------------------------

    def compilations(self):
        """A number that changes whenever something was compiled; asked in every step."""
        return 0

    def compile_seconds(self):
        """Seconds spent compiling so far."""
        return 0.0

    def verify(self):
        """Raise NotAppliedError unless the compiler did its work; nothing was asked of this one."""

    def evidence(self):
        """The ``compiler`` part of a run's summary."""
        nothing_asked = self.requested == "none"
        return {
            "requested": self.requested,
            "applied": None if nothing_asked else False,
            "proof": "no compiler was requested" if nothing_asked else "none was applied",
            "compile_seconds": 0.0,
            "graphs": 0,
            "recompiles": 0,
            "graph_breaks": 0,
        }

"""The managed compiler: PyTorch/XLA, or TensorFlow's XLA, in AWS's own images.

Written against the API of PyTorch/XLA 1.10 to 1.13 (https://docs.pytorch.org/xla/release/1.13/),
which the managed compiler's images carry, and TensorFlow's documented API, and tested with
stand-ins for both. It has not been run in one of those images: they exist on AWS only.
"""

import importlib.util
import os

from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.errors import CompilerUnavailableError, NotAppliedError

NAME = "sagemaker_training_compiler"


def modules():
    """torch_xla's module of device functions, and that of its counters."""
    try:
        import torch_xla.core.xla_model as model  # noqa: PLC0415 — exists in few images
        from torch_xla.debug import metrics  # noqa: PLC0415 — as above
    except ImportError as error:
        raise CompilerUnavailableError(
            f"compiler {NAME} was requested but not applied: it exists only inside its AWS "
            "training images (PyTorch/XLA); use such an image and a script ported to it, or "
            "torch_compile"
        ) from error
    return model, metrics


class XlaCompiler(NoCompiler):
    """Steps end with ``mark_step``, which compiles and runs what was collected."""

    name, on_xla = NAME, True

    def __init__(self):
        super().__init__()
        self._model, self._metrics = modules()
        self._reduced = False

    def reduce(self, optimizer):
        """Average gradients over the processes, before anything looks at them (clipping, say)."""
        self._model.reduce_gradients(optimizer)
        self._reduced = True

    def step(self, optimizer, scaler=None):
        """Average gradients unless that is done, let the optimizer step, run the graph."""
        if not self._reduced:
            self.reduce(optimizer)
        super().step(optimizer, scaler)
        self._reduced = False
        self._model.mark_step()

    def save(self, state, path):
        """Write ``state`` from the first process, moved off the device.

        Every process calls this: in these versions each of them waits for the others in it.
        """
        self._model.save(state, str(path), global_master=True)

    def compilations(self):
        """Graphs compiled so far."""
        return self._compile_time()[0]

    def compile_seconds(self):
        """Seconds spent compiling so far."""
        return self._compile_time()[1] / 1e9

    def verify(self):
        """Raise NotAppliedError unless PyTorch/XLA compiled a graph."""
        if not self.compilations():
            raise NotAppliedError(
                f"compiler {NAME} was requested but not applied: PyTorch/XLA compiled no "
                "graph. Is the model on the XLA device, and does each step end with mark_step?"
            )

    def evidence(self):
        """The ``compiler`` part of a summary; a graph break is an operation left to the CPU."""
        graphs = self.compilations()
        fallen_back = {
            name: self._metrics.counter_value(name)
            for name in self._metrics.counter_names()
            if name.startswith("aten::")
        }
        return {
            "requested": self.requested,
            "applied": bool(graphs),
            "proof": f"PyTorch/XLA counts {graphs} compiled graphs (CompileTime)",
            "compile_seconds": round(self.compile_seconds(), 3),
            "graphs": graphs,
            "recompiles": None,  # PyTorch/XLA does not tell new graphs from other versions of one
            "graph_breaks": sum(fallen_back.values()),
            "graph_break_reasons": sorted(fallen_back),
        }

    def _compile_time(self):
        """(graphs, nanoseconds) of PyTorch/XLA's metric CompileTime."""
        data = self._metrics.metric_data("CompileTime")
        return (0, 0.0) if data is None else (data[0], data[1])


class TensorFlowXla(NoCompiler):
    """TensorFlow's XLA; ``apply`` takes the function that trains one step, or a Keras model.

    The image switches XLA on itself when the job asks for it; a Keras model needs no change, and
    any other script must put its step under ``tf.function``. Source:
    https://docs.aws.amazon.com/sagemaker/latest/dg/training-compiler-tensorflow.html.
    """

    name = NAME

    def __init__(self):
        super().__init__()
        try:
            import tensorflow  # noqa: PLC0415 — exists in few images
        except ImportError as error:
            raise CompilerUnavailableError(f"this image has no TensorFlow: {error}") from error
        self._tensorflow = tensorflow
        self._steps = []

    def apply(self, module):
        """Return the step under ``tf.function``; of a Keras model, the model itself."""
        if hasattr(module, "make_train_function"):
            self._steps.append(lambda: getattr(module, "train_function", None))
            return module
        step = self._tensorflow.function(module)
        self._steps.append(lambda: step)
        return step

    def save(self, state, path):
        """Write a model as TensorFlow does."""
        state.save(str(path))

    def compilations(self):
        """Graphs traced so far."""
        made = (step() for step in self._steps)
        counts = (getattr(one, "experimental_get_tracing_count", None) for one in made)
        return sum(count() for count in counts if count is not None)

    def compile_seconds(self):
        """Unknown to TensorFlow; the first steps are longer by it."""
        return 0.0

    def verify(self):
        """Raise NotAppliedError unless XLA is on and the step was traced to a graph."""
        if not self._switched_on() or not self.compilations():
            raise NotAppliedError(
                f"compiler {NAME} was requested but not applied: {self._proof()}. The job "
                "must ask for it when it starts, and the step must run under tf.function"
            )

    def evidence(self):
        """The ``compiler`` part of a run's summary."""
        graphs = self.compilations()
        return {
            **super().evidence(),
            "applied": bool(self._switched_on() and graphs),
            "proof": self._proof(),
            "compile_seconds": None,
            "graphs": graphs,
            "recompiles": max(0, graphs - 1),
        }

    def _switched_on(self):
        flags = os.environ.get("TF_XLA_FLAGS", "")
        return bool(self._tensorflow.config.optimizer.get_jit()) or "tf_xla_auto_jit" in flags

    def _proof(self):
        state = "on" if self._switched_on() else "off"
        version = self._tensorflow.__version__
        return f"XLA is {state}, {self.compilations()} graphs traced, TensorFlow {version}"


def _installed(package):
    return importlib.util.find_spec(package) is not None


# The class of this image's framework.
COMPILER = TensorFlowXla if _installed("tensorflow") and not _installed("torch") else XlaCompiler


def identify_process():
    """Tell the environment which process of how many this is, as other launchers do."""
    model, _ = modules()
    os.environ["RANK"] = str(model.get_ordinal())
    os.environ["WORLD_SIZE"] = str(model.xrt_world_size())

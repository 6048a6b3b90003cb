"""The managed compiler's TensorFlow: XLA inside the ordinary training image.

The image switches XLA on by itself when the job asks for it; a Keras model needs no change, and
any other script must put its step under ``tf.function``. Source:
https://docs.aws.amazon.com/sagemaker/latest/dg/training-compiler-tensorflow.html. Written against
TensorFlow's documented API and tested with a stand-in for it. It has not been run in one of those
images.
"""

import os

from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.compilers.xla import REQUESTED
from compilegate_runtime.errors import CompilerUnavailableError, NotAppliedError


class TensorFlowXla(NoCompiler):
    """``apply`` takes the function that trains one step, or a compiled Keras model."""

    def __init__(self):
        super().__init__(REQUESTED)
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
        """TensorFlow does not tell; the first steps' own time shows it."""
        return 0.0

    def verify(self):
        """Raise NotAppliedError unless XLA is on and the step was traced to a graph."""
        if not self._switched_on() or not self.compilations():
            raise NotAppliedError(
                f"compiler {REQUESTED} was asked for and not applied: {self._proof()}. The job "
                "must ask for it when it starts, and the step must run under tf.function"
            )

    def evidence(self):
        """The ``compiler`` part of a run's summary."""
        graphs = self.compilations()
        return {
            "requested": self.requested,
            "applied": bool(self._switched_on() and graphs),
            "proof": self._proof(),
            "compile_seconds": None,
            "graphs": graphs,
            "recompiles": max(0, graphs - 1),
            "graph_breaks": 0,
        }

    def _switched_on(self):
        flags = os.environ.get("TF_XLA_FLAGS", "")
        return bool(self._tensorflow.config.optimizer.get_jit()) or "tf_xla_auto_jit" in flags

    def _proof(self):
        state = "on" if self._switched_on() else "off"
        version = self._tensorflow.__version__
        return f"XLA is {state}, {self.compilations()} graphs traced, TensorFlow {version}"

"""Why a training job ends early; each message is written for the job's failure file."""


class TrainingError(Exception):
    """Base of every failure that a training script can explain by itself."""


class HyperparameterError(TrainingError):
    """A hyperparameter is unknown or has a value that cannot be used."""


class CompilerUnavailableError(TrainingError):
    """The requested compiler does not exist in this environment."""


class NotAppliedError(TrainingError):
    """A compiler or precision was requested and not applied."""


class DivergedError(TrainingError):
    """The loss or a metric stopped being a finite number."""


class DataError(TrainingError):
    """An input channel is missing or holds something unreadable."""


class StoppedError(SystemExit):
    """SIGTERM stopped the job; its exit code is that of an unhandled signal."""

    def __init__(self):
        super().__init__(143)

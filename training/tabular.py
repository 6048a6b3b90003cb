"""Gradient-boosted trees on a table, by XGBoost: is a biopsy benign?

Reads the CSV (no header) and parquet files of the channels ``train`` and ``validation``, label
first, and reports ``eval_logloss``. Trees are not a tensor graph: a graph compiler has nothing to
compile here, and requesting one fails.
"""

import numpy
import xgboost
from compilegate_runtime import environment, outcomes
from compilegate_runtime.errors import DataError
from compilegate_runtime.job import run

# Hyperparameters: each can be given as --name value.
KNOBS = {
    "steps": 300,  # boosting rounds
    "batch_size": 1,  # unused: every round sees the whole table
    "learning_rate": 0.1,
    "max_depth": 4,
    "subsample": 0.8,  # share of rows a round sees; what the seed decides
    "colsample_bytree": 0.8,
}


def read_csv(path):
    """A CSV file's rows."""
    return numpy.loadtxt(path, delimiter=",", ndmin=2)


def read_parquet(path):
    """A parquet file's rows."""
    from pyarrow import parquet  # noqa: PLC0415 — only parquet channels need it

    columns = parquet.read_table(str(path)).columns
    return numpy.column_stack([column.to_numpy() for column in columns]).astype(float)


READERS = {".csv": read_csv, ".parquet": read_parquet}


def load(channel):
    """A channel's rows, label first."""
    folder = environment.channel(channel)
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in READERS]
    if not files:
        raise DataError(f"input channel {channel!r} ({folder}) holds no .csv or .parquet file")
    return numpy.concatenate([READERS[path.suffix](path) for path in files])


def matrix(rows):
    """Rows as XGBoost has them."""
    return xgboost.DMatrix(rows[:, 1:], label=rows[:, 0])


def losses(booster, held_out, labels):
    """The log loss of each row, clipped as XGBoost's own is in float32."""
    chances = booster.predict(held_out).astype(float)
    chances = numpy.clip(numpy.where(labels == 1, chances, 1 - chances), 1e-16, 1)
    return -numpy.log(chances)


class Rounds(xgboost.callback.TrainingCallback):
    """Tells the recorder when a boosting round begins and ends."""

    def __init__(self, recorder, samples, learning_rate):
        super().__init__()
        self.recorder = recorder
        self.samples = samples
        self.learning_rate = learning_rate

    def before_iteration(self, model, epoch, evals_log):  # noqa: ARG002 — XGBoost's signature
        """Start the step's clock."""
        self.recorder.begin_step()
        return False

    def after_iteration(self, model, epoch, evals_log):  # noqa: ARG002 — XGBoost's signature
        """Record the round with its training loss."""
        loss = evals_log["train"]["logloss"][-1]
        self.recorder.end_step(loss, self.samples, learning_rate=self.learning_rate)
        return False


def train(job):
    """One run."""
    knobs = job.settings
    rows = load("validation")
    table, held_out = matrix(load("train")), matrix(rows)
    results = {}
    booster = xgboost.train(
        {
            "objective": "binary:logistic",
            "eval_metric": "logloss",
            "tree_method": "hist",
            "eta": knobs.learning_rate,
            "max_depth": knobs.max_depth,
            "subsample": knobs.subsample,
            "colsample_bytree": knobs.colsample_bytree,
            "seed": knobs.seed,
            "nthread": job.device.threads,
        },
        table,
        num_boost_round=job.recorder.steps_planned,
        evals=[(table, "train"), (held_out, "validation")],
        evals_result=results,
        verbose_eval=False,
        callbacks=[Rounds(job.recorder, table.num_row(), knobs.learning_rate)],
    )
    if job.evaluates:
        each = losses(booster, held_out, rows[:, 0])
        outcomes.record("eval_logloss", each, [row.tobytes() for row in rows])
        job.recorder.metric("eval_logloss", results["validation"]["logloss"][-1])
        folder = environment.model_folder()
        if folder is not None:
            booster.save_model(folder / "model.json")


if __name__ == "__main__":
    run(train, KNOBS, uses_torch=False)

"""Evaluations as Lightning makes them, by a stand-in of it; prints the outcomes that were kept."""

import json
import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])

import torch
from compilegate_runtime import outcomes
from compilegate_runtime.launching import evaluations

INPUTS, LABELS = torch.randn(10, 3), torch.arange(10) % 2
RIGHT = torch.tensor([True] * 7 + [False] * 3)
LOSSES = torch.rand(10)


class Module(torch.nn.Module):
    """As much of a LightningModule as logging needs."""

    def log(self, name, value, **_):
        self.logged = (name, value)


def validated(step, metrics, size=4, **trainer):
    """What one validation leaves; ``step`` stands for the module's own."""
    kept = {}
    outcomes.opened(SimpleNamespace(outcomes=kept.__setitem__))
    callback = evaluations.lightning_callback(torch, SimpleNamespace(Callback=object))
    module = Module()
    owner = SimpleNamespace(
        sanity_checking=False,
        callback_metrics={k: torch.tensor(v) for k, v in metrics.items()},
    )
    vars(owner).update(trainer)
    callback.on_validation_start(owner, module)
    for number, begin in enumerate(range(0, 10, size)):
        rows = slice(begin, begin + size)
        returned = step(module, rows)
        callback.on_validation_batch_end(
            owner, module, returned, (INPUTS[rows], LABELS[rows]), number
        )
    callback.on_validation_end(owner, module)
    assert "log" not in module.__dict__
    return kept


def logs(module, rows):
    module.log("val_loss", LOSSES[rows].mean(), on_epoch=True)


def returns(_, rows):
    return {"right": RIGHT[rows].float(), "loss": LOSSES[rows].mean()}


def breaks(module, rows):
    logs(module, rows)
    return {"loss": torch.tensor(float("nan")), 3: object()}


def identity(mask, words):
    batch = {"input_ids": torch.tensor(words), "attention_mask": torch.tensor(mask)}
    return [row.hex() for row in evaluations.rows_of(torch, batch)]


loss = float(LOSSES.mean())
print(
    json.dumps(
        {
            "logged": validated(logs, {"val_loss": loss, "other": 5.0}),
            "returned": validated(returns, {"val_accuracy": 0.7}, size=3),
            "sanity": validated(logs, {"val_loss": loss}, sanity_checking=True),
            "no_mean": validated(logs, {"val_loss": loss * 1.01}),
            "broken": validated(breaks, {"val_loss": float("nan")}),
            "padded": identity([[1, 1, 0, 0], [1, 1, 1, 0]], [[5, 6, 0, 0], [7, 8, 9, 0]]),
            "unpadded": identity([[1, 1], [1, 1]], [[5, 6], [7, 8]])[:1]
            + identity([[1, 1, 1]], [[7, 8, 9]]),
        }
    )
)

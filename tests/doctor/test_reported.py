"""The metric of held-out data that a script prints, and the pattern that finds it again."""

from __future__ import annotations

import re

import pytest

from compilegate.doctor import describe

# A statement, what it prints, the metric's name and the number of it that the pattern must find.
PRINTED = [
    ('print(f"epoch {e}: val loss {x:.4f}, lr {r}")', "epoch 3: val loss 0.5000, lr 1", "eval_loss",
     "0.5000"),
    ('print("Epoch: %d, validation accuracy = %.3f" % (e, a))',
     "Epoch: 3, validation accuracy = 0.912", "eval_accuracy", "0.912"),
    ('print("Test set: loss {:.4f}, Accuracy: {}/{} ({:.0f}%)".format(a, b, c, d))',
     "Test set: loss 0.1000, Accuracy: 98/100 (98%)", "eval_accuracy", "98"),
    ('logger.info("Val loss: %.4f", loss)', "Val loss: 1e-05", "eval_loss", "1e-05"),
    ('print("val acc", a, "train loss", b)', "val acc 0.5 train loss 7", "eval_accuracy", "0.5"),
    ('def evaluate():\n    print(f"perplexity {p}")', "perplexity 12.5", "eval_perplexity", "12.5"),
    ('print(f"step {i}: train loss {a:.4f}, val loss {b:.4f}")',
     "step 9: train loss 4.1, val loss 4.2", "eval_loss", "4.2"),
    ('print(f"epoch {e}: accuracy {a}")', "epoch 1: accuracy 0.75", "eval_accuracy", "0.75"),
]  # fmt: skip
NOT_HELD_OUT = ['print(f"step {i}: loss {a}")', 'print("done")', 'print(f"train accuracy {a}")']


@pytest.mark.parametrize(("statement", "line", "name", "number"), PRINTED)
def test_a_printed_metric_is_found_again(statement: str, line: str, name: str, number: str) -> None:
    metric = describe(f"import torch\n{statement}\n".encode(), "train.py").metrics[0]

    assert name == metric.name
    assert [number] == re.findall(metric.pattern or "", line)


@pytest.mark.parametrize("statement", NOT_HELD_OUT)
def test_what_training_prints_is_no_metric(statement: str) -> None:
    assert () == describe(f"import torch\n{statement}\n".encode(), "train.py").metrics

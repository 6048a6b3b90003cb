"""The metric of held-out data that a script prints, and the pattern that finds it again."""

from __future__ import annotations

import re
import textwrap

import pytest

from compilegate_doctor import describe, metrics_in_line

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
    # timm's train.py: of a batch, and in brackets the mean up to it.
    ('print(f"Test: [{i}/{n}] Loss: {l.val:>7.3f} ({l.avg:>6.3f})  "\n      '
     'f"Acc@1: {t.val:>7.3f} ({t.avg:>7.3f})")',
     "Test: [9/9] Loss:   1.000 ( 2.000)  Acc@1:  70.000 ( 65.500)", "eval_accuracy", "65.500"),
    ('print("Test: Acc@1: {top1.val:>7.4f} ({top1.avg:>7.4f})".format(top1=t))',
     "Test: Acc@1: 70.0000 (65.5000)", "eval_accuracy", "65.5000"),
    ('print("Test: Acc@1: {:.1f} ({:.1f})".format(t.val, t.avg))', "Test: Acc@1: 70.0 (65.5)",
     "eval_accuracy", "65.5"),
    ('logger.info("Test: loss %.4f (%.4f)", t.val, t.avg)', "Test: loss -1e-4 (-0.5)", "eval_loss",
     "-0.5"),
    ('print(f"Test: accuracy {a} ({seconds:.1f})")', "Test: accuracy 0.5 (3.1)", "eval_accuracy",
     "0.5"),
    ("print('Accuracy of the network on the 10000 test images: {} %'.format(100 * a / n))",
     "Accuracy of the network on the 10000 test images: 63.5 %", "eval_accuracy", "63.5"),
    ('print(f"Accuracy of the network on the {n} test images: {a:.1f}%")',
     "Accuracy of the network on the 10000 test images: 63.5%", "eval_accuracy", "63.5"),
    ('print("Test accuracy at epoch {} of {}: {:.1f}%".format(e, n, a))',
     "Test accuracy at epoch 3 of 90: 63.5%", "eval_accuracy", "63.5"),
    ("def test():\n    progress_bar(i, n, 'Loss: %.3f | Acc: %.3f%% (%d/%d)' % (l, a, c, t))",
     "Loss: 0.100 | Acc: 98.000% (98/100)", "eval_accuracy", "98.000"),
    ('print(f"Epoch: {e:03d}, Loss: {loss:.4f}, Train: {train_acc:.4f}, Test: {test_acc:.4f}")',
     "Epoch: 003, Loss: 0.1000, Train: 0.9900, Test: 0.8100", "eval_accuracy", "0.8100"),
    ('print("val: %.4f" % val_loss)', "val: 0.1000", "eval_loss", "0.1000"),
    # pytorch/examples' imagenet: what its meters sum up after an evaluation.
    ("def display_summary(): ...\nm = AverageMeter('Acc@1', ':6.2f', Summary.AVERAGE)",
     " *   Acc@1 71.500 Acc@5 90.000", "eval_accuracy", "71.500"),
]  # fmt: skip
# Other ways to print: of click, typer, loguru and tqdm.
WAYS = [
    ('click.echo(f"test accuracy {a:.3f}")', "test accuracy 0.912"),
    ('typer.echo("test accuracy %.3f" % a)', "test accuracy 0.912"),
    ('click.secho("test accuracy {:.3f}".format(a), fg="green")', "test accuracy 0.912"),
    ('logger.success("epoch {}: test accuracy {:.3f}", e, a)', "epoch 3: test accuracy 0.912"),
    ('tqdm.write(f"test accuracy {a:.3f}")', "test accuracy 0.912"),
    ('bar.set_description(f"test acc {a:.3f}")', "test acc 0.912:  50%|##   | 1/2 [00:01<00:01]"),
    ('def test():\n    bar.set_postfix_str(f"acc={a:.3f}")', " 50%|## | 1/2 [00:01, acc=0.912]"),
]
# A statement that prints a share as a percentage, what it prints and the number of it.
PERCENTAGES = [
    ('print(f"Epoch {e}: test accuracy {a:.2%}")', "Epoch 3: test accuracy 50.00%", "50.00"),
    ('print(f"test accuracy {a:.{digits}%} of {n}")', "test accuracy 50.0% of 9", "50.0"),
    ('print("test accuracy {:.2%}".format(a))', "test accuracy 50.00%", "50.00"),
    ('print("test accuracy {a:.2%}".format(a=a))', "test accuracy 50.00%", "50.00"),
    ('print(f"Test: acc {t.val:.1%} ({t.avg:.1%})")', "Test: acc 70.0% (65.5%)", "65.5"),
    ('print("test accuracy {:.0f}%".format(100 * a))', "test accuracy 50%", "50"),
]
NOT_HELD_OUT = [
    'print(f"step {i}: loss {a}")', 'print("done")', 'print(f"train accuracy {a}")',
    'bar.set_description(f"acc {a}")',
]  # fmt: skip


@pytest.mark.parametrize(("statement", "line", "name", "number"), PRINTED)
def test_a_printed_metric_is_found_again(statement: str, line: str, name: str, number: str) -> None:
    metric = describe(f"import torch\n{statement}\n".encode(), "train.py").metrics[0]

    assert name == metric.name
    assert [number] == re.findall(metric.pattern or "", line)


@pytest.mark.parametrize(("statement", "line"), WAYS)
def test_other_ways_to_print_are_read(statement: str, line: str) -> None:
    metric = describe(f"import torch\n{statement}\n".encode(), "train.py").metrics[0]

    assert metric.name == "eval_accuracy"
    assert ["0.912"] == re.findall(metric.pattern or "", line)


@pytest.mark.parametrize(("statement", "line", "number"), PERCENTAGES)
def test_a_share_printed_as_a_percentage_is_one(statement: str, line: str, number: str) -> None:
    metric = describe(f"import torch\n{statement}\n".encode(), "train.py").metrics[0]

    assert metric.percent
    assert [number] == re.findall(metric.pattern or "", line)


def test_a_share_printed_as_it_is_is_no_percentage() -> None:
    statement = 'print(f"test accuracy {a:.2f}, {n:.0%} done")'

    assert not describe(f"import torch\n{statement}\n".encode(), "train.py").metrics[0].percent


@pytest.mark.parametrize("statement", NOT_HELD_OUT)
def test_what_training_prints_is_no_metric(statement: str) -> None:
    assert () == describe(f"import torch\n{statement}\n".encode(), "train.py").metrics


ACCELERATE = """
import evaluate, torch
from torch.optim import AdamW
from torch.utils.data import DataLoader
EVAL_BATCH_SIZE = 32
def loaders(data, batch_size=16):
    train = DataLoader(data, shuffle=True, batch_size=batch_size)
    eval_dataloader = DataLoader(data, batch_size=EVAL_BATCH_SIZE)
    return train, eval_dataloader
def run(config, model, accelerator):
    optimizer = AdamW(model.parameters(), lr=config["lr"])
    metric = evaluate.load("glue", "mrpc")
    accelerator.print(f"epoch {0}:", metric.compute())
run({"lr": 2e-5, "num_epochs": 3, "batch_size": 16}, None, None)
"""


def test_settings_in_a_dictionary_and_a_loaded_metric_are_found() -> None:
    found = describe(ACCELERATE.encode(), "train.py")

    assert {"batch_size": 16, "learning_rate": 2e-5, "epochs": 3} == found.constants
    assert ["0.7"] == re.findall(
        found.metrics[0].pattern or "", "epoch 0: {'accuracy': 0.7, 'f1': 1}"
    )


TRAINER = """
from dataclasses import dataclass, field
from transformers import HfArgumentParser, Trainer, TrainingArguments
@dataclass
class Own(TrainingArguments):
    {field}
def macro_f1(prediction):
    return {{"accuracy": 1.0, "f1": 1.0}}
(args,) = HfArgumentParser(Own).parse_args_into_dataclasses()
{setting}
Trainer(args=args, compute_metrics=macro_f1).train()
"""


@pytest.mark.parametrize(
    ("field", "setting", "names", "goal"),
    [
        ("...", "", ["eval_accuracy", "eval_f1", "eval_loss"], "maximize"),
        ('metric_for_best_model: str = "f1"', "", ["eval_f1", "eval_accuracy", "eval_loss"],
         "maximize"),
        ('metric_for_best_model: str = field(default="eval_f1")', "",
         ["eval_f1", "eval_accuracy", "eval_loss"], "maximize"),
        ("...", 'args.metric_for_best_model = "eval_loss"',
         ["eval_loss", "eval_accuracy", "eval_f1"], "minimize"),
        ("...", 'TrainingArguments("out", metric_for_best_model="kappa")',
         ["eval_kappa", "eval_accuracy", "eval_f1", "eval_loss"], "maximize"),
        ("greater_is_better: bool = False", 'args.metric_for_best_model = "ter"',
         ["eval_ter", "eval_accuracy", "eval_f1", "eval_loss"], "minimize"),
        ("metric_for_best_model: str | None = None", "",
         ["eval_accuracy", "eval_f1", "eval_loss"], "maximize"),
    ],
)  # fmt: skip
def test_a_trainers_metrics_are_what_its_function_returns_and_its_best_models_first(
    field: str, setting: str, names: list[str], goal: str
) -> None:
    script = TRAINER.format(field=field, setting=setting)

    metrics = describe(script.encode(), "train.py").metrics

    assert names == [metric.name for metric in metrics]
    assert goal == metrics[0].goal


def test_what_validation_logs_is_held_out_by_whatever_name() -> None:
    script = """
        import lightning as L
        class Net(L.LightningModule):
            def training_step(self, batch, index):
                self.log("loss", self.loss(batch))
            def validation_step(self, batch, index):
                self.log("acc", self.accuracy(batch))
            def on_validation_epoch_end(self):
                self.log_dict({"f1": self.f1()})
    """
    read = describe(textwrap.dedent(script).encode(), "net.py")

    assert ["acc", "f1"] == [one.name for one in read.metrics]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Test set: loss: 0.0123, Accuracy: 98/100 (98%)", ["eval_accuracy", "eval_loss"]),
        ("| time:  3.2s | valid loss  6.01 | valid ppl   410.5", ["eval_loss", "eval_perplexity"]),
        ("epoch 3 of 90, lr 0.1", []),
        ("train loss 0.5", []),
    ],
)
def test_a_line_that_was_printed_shows_its_metrics(line: str, names: list[str]) -> None:
    metrics = metrics_in_line(line)

    assert names == [one.name for one in metrics]
    for metric in metrics:
        assert re.search(str(metric.pattern), line)


@pytest.mark.parametrize(
    ("loaders", "size"),
    [
        (
            "train = DataLoader(d, batch_size=8)\nval = DataLoader(d, batch_size=4)",
            {"batch_size": 8},
        ),
        (
            "val = DataLoader(d, batch_size=4)\ntrain = DataLoader(d, batch_size=8)",
            {"batch_size": 8},
        ),
        ("train = DataLoader(d, batch_size=size())\nother = DataLoader(d, batch_size=4)", {}),
    ],
)
def test_the_batch_size_is_the_training_loaders(loaders: str, size: dict[str, int]) -> None:
    script = f"import torch\nfrom torch.utils.data import DataLoader\n{loaders}\n"

    assert size == describe(script.encode(), "train.py").constants

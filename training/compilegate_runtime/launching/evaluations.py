"""Outcomes per example of a script's own evaluation, through the hooks of its framework.

Nothing of the script is changed and nothing is computed anew: what the evaluation hands over in
passing (losses, scores and labels) is kept, and counts as the outcomes behind a metric only where
its mean is that metric. Of an evaluation that shares its batches out over processes, each process
sees its part, whose mean is another one, so there are none.
"""

import collections
import functools
import hashlib
import math

from compilegate_runtime import outcomes
from compilegate_runtime.launching.frameworks import numbers

# A metric is the mean itself, a percentage, or the share of errors; scripts round to four digits.
LINES = ((0.0, 1.0), (0.0, 100.0), (1.0, -1.0), (100.0, -100.0))
ROUNDED = 2e-4
LABELS = ("labels", "label", "target", "targets", "y")
IGNORED = -100  # a label that transformers does not score
FEW = 32  # values of a row of numbers that identify it


class Evaluation:
    """What one pass over held-out batches showed: outcomes of examples, and means of batches."""

    def __init__(self, torch):
        self._torch = torch
        self._examples, self._sizes, self._failed = [], [], False
        self._each, self._means = collections.defaultdict(list), collections.defaultdict(list)

    def add(self, batch, means, scores=None, values=None):
        """One batch: ``means`` and ``values`` of its examples by name, ``scores`` of its labels."""
        try:
            with self._torch.no_grad():
                self._add(batch, means, scores, values or {})
        except Exception:  # noqa: BLE001 — whatever a script's batch is, its evaluation goes on
            self._failed = True

    def _add(self, batch, means, scores, values):
        torch, rows = self._torch, rows_of(self._torch, batch)
        self._examples += rows
        self._sizes.append(len(rows))
        labels, by_name = labels_in(torch, batch), dict(values)
        if labels is not None and torch.is_tensor(scores):
            by_name.update(_judged(torch, scores.detach(), labels.detach()))
        for name, tensor in by_name.items():
            if tensor.ndim == 1 and len(tensor) == len(rows):
                self._each[name].append(tensor.detach().float())
        for name, mean in means.items():
            if torch.is_tensor(mean) and mean.numel() == 1:
                self._means[name].append(mean.detach().float().reshape(()))
            elif isinstance(mean, (int, float)):
                self._means[name].append(torch.tensor(float(mean)))

    def record(self, metrics):
        """Hand over the outcomes that the metrics of this pass are means of."""
        if self._failed or not self._examples:
            return
        recordable = list(self._of_examples()) + list(self._of_batches())
        for name, metric in metrics.items():
            for values, mean, examples, size in recordable:
                if math.isfinite(metric) and _is_behind(metric, mean):
                    outcomes.record(name, values, examples, size, mean)
                    break

    def _of_examples(self):
        for parts in self._each.values():
            values = self._torch.cat(parts).tolist()
            if len(values) == len(self._examples):
                yield values, math.fsum(values) / len(values), self._examples, 1

    def _of_batches(self):
        sizes, count, end, batches = self._sizes, sum(self._sizes), 0, []
        for size in sizes:
            batches.append(b"".join(self._examples[end : end + size]))
            end += size
        for means in self._means.values():
            values = self._torch.stack(means).tolist()
            if len(values) == len(sizes):
                pairs = zip(values, sizes)  # noqa: B905 — Python 3.8 has no strict
                mean = math.fsum(value * size for value, size in pairs) / count
                yield values, mean, batches, max(sizes)


def _is_behind(metric, mean):
    return any(
        math.isclose(metric, start + slope * mean, rel_tol=ROUNDED, abs_tol=ROUNDED**2)
        for start, slope in LINES
    )


def _judged(torch, scores, labels):
    """Right or wrong, and the cross-entropy, of each example with one label."""
    one_each = labels.ndim == 1 and not labels.is_floating_point()
    if not one_each or scores.ndim != 2 or len(scores) != len(labels):
        return {}
    labels = labels.to(scores.device).long()
    by_name = {"right": scores.argmax(-1) == labels}
    if int(labels.min()) >= 0 and int(labels.max()) < scores.shape[1]:
        loss = torch.nn.functional.cross_entropy(scores.float(), labels, reduction="none")
        by_name["cross_entropy"] = loss
    return by_name


def tensors_in(torch, batch, name=""):
    """(name, tensor) of a batch: a tensor, or a mapping or list of such."""
    if isinstance(batch, torch.Tensor):
        yield name, batch
    elif isinstance(batch, (list, tuple)):
        for index, part in enumerate(batch):
            yield from tensors_in(torch, part, str(index))
    elif hasattr(batch, "items"):
        for key, part in batch.items():
            yield from tensors_in(torch, part, str(key))


def labels_in(torch, batch):
    """The labels of a batch: by name, or the last of its tensors."""
    tensors = list(tensors_in(torch, batch))
    named = [tensor for name, tensor in tensors if name in LABELS]
    if named or not isinstance(batch, (list, tuple)):
        return named[0] if named else None
    return tensors[-1][1] if len(tensors) > 1 else None


def rows_of(torch, batch):
    """What identifies each example: its whole numbers without padding, else its first values."""
    tensors = [(name, t.detach()) for name, t in tensors_in(torch, batch) if t.ndim]
    if not tensors:
        return []
    size = len(tensors[0][1])
    arrays = {
        name: (t.float() if t.is_floating_point() else t.long()).cpu().numpy()
        for name, t in tensors
        if len(t) == size
    }
    mask = arrays.pop("attention_mask", None)
    made = [hashlib.sha256() for _ in range(size)]
    for name, array in sorted(arrays.items()):
        padded = mask is not None and mask.shape == array.shape
        for index in range(size):
            row = array[index].ravel()
            if array.dtype.kind == "f":  # rounded, and few: they are pictures and the like
                row = row[:FEW].astype("float16")
            else:
                row = row[mask[index] > 0] if padded else row
                row = row[row != IGNORED]
            made[index].update(name.encode() + row.tobytes())
    return [one.digest() for one in made]


def listen_to_trainer(torch):
    """Keep the outcomes of every evaluation of a Hugging Face Trainer."""
    from transformers import Trainer  # noqa: PLC0415 — only scripts that have it

    original = getattr(Trainer, "evaluation_loop", None)
    if original is None:  # before 4.1
        return

    @functools.wraps(original)
    def evaluation_loop(instance, *args, **kwargs):
        evaluation, own = Evaluation(torch), instance.__dict__.get("prediction_step")
        step = instance.prediction_step

        def prediction_step(model, inputs, *args, **kwargs):
            loss, scores, labels = step(model, inputs, *args, **kwargs)
            evaluation.add(inputs, {} if loss is None else {"loss": loss}, scores)
            return loss, scores, labels

        instance.prediction_step = prediction_step
        try:
            output = original(instance, *args, **kwargs)
        finally:
            del instance.prediction_step
            if own is not None:
                instance.prediction_step = own
        evaluation.record(numbers(output.metrics or {}))
        return output

    Trainer.evaluation_loop = evaluation_loop


def lightning_callback(torch, pl):
    """A callback that keeps the outcomes of every validation of a Lightning Trainer.

    They are what the validation step logs or returns for each batch, or returns for each example.
    """

    class Outcomes(pl.Callback):
        def on_validation_start(self, trainer, module):
            self._evaluation = None if trainer.sanity_checking else Evaluation(torch)
            self._logged = {}
            if self._evaluation is not None:
                module.__dict__["log"] = self._noting(module.log)

        def _noting(self, log):
            @functools.wraps(log)
            def noting(name, value, *args, **kwargs):
                self._logged[name] = value
                return log(name, value, *args, **kwargs)

            return noting

        def on_validation_batch_end(self, _trainer, _module, outputs, batch, *_, **__):
            if self._evaluation is not None:
                means, values = _returned(torch, outputs)
                self._evaluation.add(batch, {**means, **self._logged}, values=values)
            self._logged = {}

        def on_validation_end(self, trainer, module):
            module.__dict__.pop("log", None)
            if self._evaluation is not None:
                metrics = trainer.callback_metrics.items()
                self._evaluation.record(numbers({key: value.item() for key, value in metrics}))
            self._evaluation = None

    return Outcomes()


def _returned(torch, outputs):
    """Means of a batch and values of its examples among what a validation step returned."""
    if torch.is_tensor(outputs):
        outputs = {"returned": outputs}
    tensors = {k: v for k, v in outputs.items() if torch.is_tensor(v)} if outputs else {}
    means = {name: tensor for name, tensor in tensors.items() if tensor.numel() == 1}
    return means, {name: tensor for name, tensor in tensors.items() if tensor.ndim == 1}

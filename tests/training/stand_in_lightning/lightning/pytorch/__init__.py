"""Module, data module, callback and a trainer of one epoch, with Lightning's order of hooks.

As Lightning's, it validates once an epoch has had as many batches as its loader says it has.
"""

import torch
from torch import nn


class LightningModule(nn.Module):
    """Keeps what it logs until the end of a validation."""

    def log(self, name, value):
        self.__dict__.setdefault("logged", {}).setdefault(name, []).append(torch.as_tensor(value))


class LightningDataModule:
    """Data of a job."""


class Callback:
    """Any hook that a subclass does not define does nothing."""

    def setup(self, *_args, **_kwargs):
        """Before anything of a fit."""

    def __getattr__(self, name):
        if name.startswith("on_"):
            return lambda *_args, **_kwargs: None
        raise AttributeError(name)


class Trainer:
    """Trains an epoch, or so many steps, then validates."""

    def __init__(self, max_steps=-1, max_epochs=1, precision="32-true", callbacks=None):
        self.max_steps, self.max_epochs = int(max_steps), int(max_epochs)
        self.precision, self.callbacks = precision, list(callbacks or [])
        self.sanity_checking, self.global_step, self.callback_metrics = False, 0, {}
        self.estimated_stepping_batches = 0
        self.limit_train_batches, self.accumulate_grad_batches = None, 1

    def fit(self, model, datamodule=None, ckpt_path=None):
        self._call("setup", model, "fit")
        loader = datamodule.train_dataloader()
        planned = len(loader) * self.max_epochs
        self.estimated_stepping_batches = planned if self.max_steps < 0 else self.max_steps
        optimizer = model.configure_optimizers()
        self._call("on_train_start", model)
        for _ in range(self.max_epochs):
            if self._epoch(model, loader, optimizer) == (self.limit_train_batches or len(loader)):
                self._validate(model, datamodule.val_dataloader())

    def _epoch(self, model, loader, optimizer):
        model.train()
        seen = 0
        for index, batch in enumerate(loader):
            if 0 <= self.max_steps <= self.global_step:
                break
            seen += 1
            optimizer.zero_grad()
            model.training_step(batch, index).backward()
            optimizer.step()
            self.global_step += 1
            self._call("on_train_batch_end", model, None, batch, index)
        return seen

    def _validate(self, model, loader):
        model.eval()
        model.__dict__["logged"] = {}
        self._call("on_validation_start", model)
        with torch.no_grad():
            for index, batch in enumerate(loader):
                outputs = model.validation_step(batch, index)
                self._call("on_validation_batch_end", model, outputs, batch, index)
        self.callback_metrics = {
            name: torch.stack([one.float() for one in values]).mean()
            for name, values in model.__dict__["logged"].items()
        }
        self._call("on_validation_end", model)

    def _call(self, hook, *arguments):
        for callback in self.callbacks:
            getattr(callback, hook)(self, *arguments)

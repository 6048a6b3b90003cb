"""A training step behind the loss: gradients, the optimiser, its schedule, its checkpoints.

All of it is the same in every arm. The same seed gives the same order of samples and the same
initial weights; the batch is the whole job's, so more processes share it out and change nothing
else; a run of so many ``epochs`` sees as many samples at any batch size, and its warm-up grows
and shrinks with it.
"""

import collections
import contextlib
import inspect
import itertools
import math
from concurrent import futures

import torch
from compilegate_runtime import equivalence, profiled, seeds
from compilegate_runtime.errors import HyperparameterError
from compilegate_runtime.fingerprint import InitialWeights
from compilegate_runtime.kept import Kept
from compilegate_runtime.saving import EVERY_MINUTES

from families import faults
from families.checkpoints import Checkpoints

# Hyperparameters of every family that trains a network.
KNOBS = {
    "epochs": 0.0,  # passes over the data; 0: as many optimiser steps as ``steps`` says
    "batch_size": 8,  # samples of one optimiser step, per device
    "micro_batches": 1,  # parts that a batch is worked through in, to fit into memory
    "learning_rate": 5e-4,  # peak, after warm-up
    "warmup_share": 0.1,  # of all steps
    "schedule": ("linear", "cosine"),  # from the peak down to zero
    "weight_decay": 0.01,  # of matrices; scales and biases decay in no family
    "clip_norm": 1.0,
    "checkpoint_minutes": EVERY_MINUTES,  # between checkpoints; 0: only at SIGTERM
}


class Training:
    """Trains ``model``, whose forward returns the loss of a batch, on ``count`` samples."""

    def __init__(self, job, processes, model, count, betas=(0.9, 0.999)):
        self._job, self._knobs, self._device = job, job.settings, job.device
        self._processes, self._count = processes, count
        self._plan_steps()
        self.model = job.device.convert(model.to(job.device.kind))
        self._optimizer = torch.optim.AdamW(
            parameter_groups(self.model, self._knobs.weight_decay),
            lr=self._knobs.learning_rate * faults.learning_rate_share(job.compiler),
            betas=betas,
            **_fused(job.device),
        )
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimizer, self._share_of_peak)
        self._scaler = self._gradient_scaler()
        self._kept = Kept(torch, job.compiler)
        self._checkpoints = None
        if job.evaluates and not job.compiler.on_xla:  # whose tensors are not torch's
            minutes = self._knobs.checkpoint_minutes
            self._checkpoints = Checkpoints(job.recorder, processes.rank, minutes)
            self._resume()
        self._sharing = processes.wrap(self.model)
        self._forward = self._compiled()
        if processes.rank:  # dropout of its own in each process
            torch.manual_seed(self._knobs.seed + processes.rank + job.recorder.steps_done)

    # ---- before the first step ------------------------------------------------------------

    def _plan_steps(self):
        knobs, recorder = self._knobs, self._job.recorder
        batch = knobs.batch_size * self._processes.count
        if knobs.batch_size % knobs.micro_batches:
            raise HyperparameterError(
                f"batch_size {knobs.batch_size} cannot be worked through in {knobs.micro_batches} "
                "equal parts; let micro_batches divide it"
            )
        if batch > self._count:
            raise HyperparameterError(
                f"a step takes {batch} samples and the data has {self._count}; lower batch_size"
            )
        in_epochs = max(1, round(knobs.epochs * self._count / batch))
        self._steps = in_epochs if knobs.epochs else knobs.steps
        recorder.steps_planned = min(self._steps, knobs.max_steps or self._steps)
        recorder.identify(full_run_steps=self._steps)

    def _share_of_peak(self, step):
        """Linear warm-up, then linear or cosine down to zero."""
        warmup = round(self._knobs.warmup_share * self._steps)
        if step < warmup:
            return (step + 1) / warmup
        done = min(1.0, (step - warmup) / max(1, self._steps - warmup))
        return (
            1 - done if self._knobs.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done))
        )

    def _gradient_scaler(self):
        if self._knobs.precision != "fp16":
            return None
        if self._knobs.compile_optimizer:
            raise HyperparameterError(
                "compile_optimizer does not go with precision fp16, whose optimizer's step depends "
                "on the gradients; use bf16"
            )
        if self._job.compiler.on_xla:
            from torch_xla.amp import GradScaler  # noqa: PLC0415 — exists in few images

            return GradScaler()
        return getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)()

    def _compiled(self):
        compiler = self._job.compiler
        if compiler.compiles_regions:  # the blocks are the model's own
            compiler.apply(self.model)
            return self._sharing
        return compiler.apply(self._sharing)

    # ---- the steps ------------------------------------------------------------------------

    def batches(self, make, workers=0):
        """Yield what ``make(indices, step)`` makes of this process's samples, for each step left.

        The recorder times the steps. ``workers`` threads make batches before they are asked for.
        """
        knobs, recorder = self._knobs, self._job.recorder
        size = knobs.batch_size * self._processes.count
        chosen = (
            self._processes.share(indices)
            for indices in seeds.batches(knobs.seed, self._count, size)
        )
        left = itertools.islice(zip(chosen, itertools.count()), recorder.steps_done, None)
        first = next(left)
        if not recorder.steps_done:
            self._measure_initial_loss(make(*first))
            if not self._job.compiler.on_xla:  # whose graphs it would add to
                weights = InitialWeights()
                weights.add(self.model)
                recorder.initial_weights = weights.sha256()
        steps = recorder.steps_planned + profiled.steps_asked_for()
        left = itertools.islice(itertools.chain([first], left), steps)
        made = itertools.starmap(make, left) if not workers else _ahead(make, left, workers)
        return recorder.steps(made)

    def _measure_initial_loss(self, batch):
        """Loss of the untrained model as written, on the first batch, which arms must share.

        Dropout is off: eager and compiled code draw different random numbers for it.
        """
        self.model.eval()
        with torch.no_grad(), self._device.autocast():
            loss = float(self.model(*self._moved(batch)))
        self.model.train()
        total, count = self._processes.summed(loss, 1)
        self._job.recorder.initial_loss = total / count

    def step(self, batch):
        """Train on one batch; returns its loss and the norm of its gradient."""
        count = self._knobs.micro_batches
        chunks = [tensor.chunk(count) for tensor in self._moved(batch)]
        total = 0.0
        for number in range(count):
            part = [chunk[number] for chunk in chunks]
            self._kept.training(part)
            with self._alone_until_last(number), self._device.autocast():
                loss = self._forward(*part) / count
            with self._alone_until_last(number):
                (self._scaler.scale(loss) if self._scaler else loss).backward()
            total = total + loss.detach()
        self._kept.note_compilations()
        compiler = self._job.compiler
        compiler.reduce(self._optimizer)
        if self._scaler:
            self._scaler.unscale_(self._optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._knobs.clip_norm)
        compiler.step(self._optimizer, self._scaler)
        self._optimizer.zero_grad(set_to_none=True)
        return total, norm

    def end_step(self, loss, norm, samples, tokens=None):
        """Record the step, move the schedule on, save a checkpoint when it is time to."""
        rate = self._schedule.get_last_lr()[0]
        self._schedule.step()
        self._job.recorder.end_step(
            loss, samples=samples, tokens=tokens, learning_rate=rate, gradient_norm=norm
        )
        if self._checkpoints:
            self._checkpoints.after_step(self._state, vars(self._knobs))

    def _moved(self, batch):
        return [tensor.to(self._device.kind, non_blocking=True) for tensor in batch]

    def _alone_until_last(self, number):
        """Gradients are averaged with the last part of a batch only."""
        last = number == self._knobs.micro_batches - 1
        waits = not last and hasattr(self._sharing, "no_sync")
        return self._sharing.no_sync() if waits else contextlib.nullcontext()

    # ---- after the last step --------------------------------------------------------------

    def finish(self):
        """All steps are done."""
        if self._checkpoints:
            self._checkpoints.done()
        if self._job.evaluates and not self._job.compiler.on_xla:
            self._job.recorder.ended_with(self.model)
        if self._kept.asked:
            self._kept.done()
            self._job.recorder.subject = self._subject

    def _subject(self):
        """What the equivalence check examines; evaluation runs the model as written in any arm."""
        model, compiler, knobs = self.model, self._job.compiler, self._knobs
        model.to(self._device.kind).train()  # as it trained, wherever it was saved from
        of_optimizer = {}
        if knobs.compile_optimizer:
            of_optimizer = {
                "optimizer": self._optimizer,
                "compiled_step": lambda: compiler.step(self._optimizer),
            }
        return equivalence.Subject(
            model,
            lambda batch: self._forward(*batch),
            self._kept.batches(),
            precision=knobs.precision,
            autocast=self._device.autocast,
            compiled=self._forward,
            compile_anew=compiler.anew,
            recompiled=self._kept.further(),
            missed=self._kept.missed,
            accumulation=knobs.micro_batches,
            shared=None if self._sharing is model else self._sharing,
            **of_optimizer,
        )

    # ---- going on -------------------------------------------------------------------------

    def _state(self):
        """What the next process needs beside the evidence; the data's place is its steps."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "scaler": self._scaler.state_dict() if self._scaler else None,
            "random": torch.get_rng_state(),
            "random_gpu": torch.cuda.get_rng_state() if self._device.is_gpu else None,
        }

    def _resume(self):
        newest = self._checkpoints.newest(vars(self._knobs))
        if newest is None:
            return
        state, evidence, steps_file = newest
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        if self._scaler:
            self._scaler.load_state_dict(state["scaler"])
        torch.set_rng_state(state["random"])
        if self._device.is_gpu:
            torch.cuda.set_rng_state(state["random_gpu"])
        self._job.recorder.resume(evidence, steps_file)


def _fused(device):
    """AdamW in one kernel, where torch (2.0 and later) and the device have it."""
    parameters = inspect.signature(torch.optim.AdamW).parameters
    return {"fused": True} if device.fuses_optimizer and "fused" in parameters else {}


def _ahead(make, jobs, workers):
    """What ``make`` makes of each job, in order, some of it before it is asked for."""
    with futures.ThreadPoolExecutor(workers) as pool:
        waiting = collections.deque()
        for job in jobs:
            waiting.append(pool.submit(make, *job))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def parameter_groups(model, weight_decay):
    """Matrices decay; scales and biases do not."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in trained if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
    ]

"""Finds the steps of a script's own training loop.

A step begins when the training data is asked for its batch, or when the model is called, and ends
with the optimizer's step. Evaluation, checkpoints and logging lie between steps. A script that has
made no optimizer of torch.optim updates its weights by hand: its step goes on from the backward
pass until data are asked for, or the model is called, again.
"""

import functools
import importlib
import types
import weakref

# In the place of an optimizer, for a script that updates its weights by hand.
BY_HAND = types.SimpleNamespace(param_groups=[])


class Enough(BaseException):
    """The segment has its steps; not an Exception, which scripts catch."""


class Steps:
    """Records each step of a script; ``limit`` steps end a segment when it is not 0."""

    def __init__(self, torch, recorder, models, limit, shortened=None):
        self._torch, self._recorder, self._models = torch, recorder, models
        self._limit, self._shortened = limit, shortened
        self.checks = []  # called once, when the first step is over, with its samples
        self._main = None  # of several optimizers the first one's steps count
        self._beside = weakref.WeakSet()  # those that train other weights than it
        self._backward = self.has_optimizer = False
        self._training_loader = self._last_loader = None
        self._begun = self._called = False
        self._forget()

    def _forget(self):
        self._fed, self._loss, self._norm, self._went_backward = {}, None, None, False

    @property
    def training_loader(self):
        """The loader of the training data, None until a model was called or where there is none."""
        return self._training_loader

    # ---- what happens in a step -----------------------------------------------------------

    def fetching(self, loader):
        """A data loader is asked for a batch."""
        self._end_by_hand()
        self._last_loader = loader
        if self._called:  # another part of the same step
            return
        if loader is self._training_loader or self._training_loader is None:
            if not self._begun or self._training_loader is None:
                self._begin()
        else:  # evaluation between two steps
            self._begun = False

    def fetched(self):
        """The batch is there."""
        if self._begun and not self._called:
            self._recorder.got_batch()

    def fed(self, samples, tokens, model=None):
        """A model is called with so much; of several that see the same samples one counts."""
        self._end_by_hand()
        if not self._begun:
            self._begin()
        if not self._called and self._training_loader is None:
            self._training_loader = self._last_loader
        self._called = True
        before, words = self._fed.get(model, (0, None))
        if tokens is not None:
            words = tokens if words is None else words + tokens
        self._fed[model] = before + (samples or 0), words

    def lost(self, loss):
        """A loss goes backward; those of one step add up."""
        if not self._called or loss.numel() != 1:
            return
        value = loss.detach().reshape(()).clone()  # a compiled graph may reuse its memory
        self._loss = value if self._loss is None else self._loss + value

    def _end_by_hand(self):
        if self._went_backward and not self.has_optimizer:
            self.stepped(BY_HAND)

    def clipped(self, norm):
        """The gradients were clipped from this norm."""
        self._norm = norm.detach() if hasattr(norm, "detach") else norm

    def stepped(self, optimizer):
        """An optimizer took its step."""
        if not self._called:
            return
        if self._main is None:
            self._main = optimizer
            self._models.stop_watching()
            self._record_start()
            for check in self.checks:
                check(self._most_fed()[0])
        if optimizer is not self._main:
            if not self._succeeds(optimizer):
                return
            self._main = optimizer
        rate = optimizer.param_groups[0].get("lr") if optimizer.param_groups else None
        self._recorder.end_step(
            self._loss,
            *self._most_fed(),
            learning_rate=None if getattr(rate, "is_cuda", False) else rate,
            gradient_norm=self._norm,
        )
        self._begun = self._called = False
        self._forget()
        if self._limit and not self._recorder.goes_on():
            raise Enough
        if self._shortened:
            self._shortened.stepped(self)

    def _succeeds(self, optimizer):
        """Whether it trains weights of the main optimizer, as a replacement does."""
        if optimizer in self._beside:
            return False
        weights = set(map(id, _weights(self._main)))
        if weights.isdisjoint(map(id, _weights(optimizer))):
            self._beside.add(optimizer)
            return False
        return True

    def _most_fed(self):
        """Samples and tokens of the model that saw most samples in this step."""
        return max(self._fed.values(), key=lambda fed: fed[0])

    def _record_start(self):
        if self._recorder.resumed:
            return  # of the first process's evidence
        self._recorder.initial_loss = self._models.initial_loss
        self._recorder.first_loss_is_initial = self._models.initial_loss_known
        self._recorder.initial_weights = self._models.initial_weights.sha256()

    def _begin(self):
        self._begun = True
        self._recorder.begin_step()

    # ---- hooks --------------------------------------------------------------

    def install(self):
        """Hook optimizers, data loaders, backward passes and the clipping of gradients."""
        self._replace(self._torch.optim.Optimizer, "__init__", self._making)
        self._hook_optimizers()
        self._replace(self._torch.utils.data.DataLoader, "__iter__", self._iterating)
        self._replace(self._torch.autograd, "backward", self._going_backward)  # Tensor's calls it
        for place in (self._torch.nn.utils, self._torch.nn.utils.clip_grad):
            self._replace(place, "clip_grad_norm_", self._clipping)
        for scaler in _scalers(self._torch):
            self._replace(scaler, "scale", _keeping_the_unscaled)

    def _replace(self, owner, name, wrapping):
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(wrapping(original)))

    def _hook_optimizers(self):
        module = importlib.import_module("torch.optim.optimizer")  # torch.optim hides it
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is not None:
            register(lambda optimizer, *_: self.stepped(optimizer))
            return
        self._replace(self._torch.optim.Optimizer, "__init__", self._initialising)  # before 2.1

    def _making(self, original):
        def make(optimizer, *args, **kwargs):
            self.has_optimizer = True
            original(optimizer, *args, **kwargs)

        return make

    def _initialising(self, original):
        def initialise(optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            step = optimizer.step

            def stepping(_, *args, **kwargs):
                result = step(*args, **kwargs)
                self.stepped(optimizer)
                return result

            optimizer.step = types.MethodType(stepping, optimizer)

        return initialise

    def _iterating(self, original):
        def iterate(loader):
            source = original(loader)
            if self._shortened:
                source = self._shortened.batches(source, self, loader)
            while True:
                self.fetching(loader)
                try:
                    batch = next(source)
                except StopIteration:
                    return
                self.fetched()
                yield batch

        return iterate

    def _going_backward(self, original):
        def backward(tensors, *args, **kwargs):
            if self._backward:  # recomputing a part of the graph that is gone through
                return original(tensors, *args, **kwargs)
            self._backward = True
            try:
                for loss in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
                    self.lost(getattr(loss, "compilegate_unscaled", loss))
                result = original(tensors, *args, **kwargs)
                self._went_backward = self._called
                return result
            finally:
                self._backward = False

        return backward

    def _clipping(self, original):
        def clip(*args, **kwargs):
            norm = original(*args, **kwargs)
            self.clipped(norm)
            return norm

        return clip


def _weights(optimizer):
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def _scalers(torch):
    """The classes that scale a loss for fp16; newer ones inherit from torch.amp's."""
    newer = getattr(torch.amp, "GradScaler", None)
    return [newer or torch.cuda.amp.GradScaler]


def _keeping_the_unscaled(original):
    def scale(scaler, outputs):
        scaled = original(scaler, outputs)
        if hasattr(scaled, "detach"):
            scaled.compilegate_unscaled = outputs.detach()
        return scaled

    return scale

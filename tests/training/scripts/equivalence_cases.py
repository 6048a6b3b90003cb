"""Models and faults on which the equivalence check is tried; run in the training environment.

A fault is planted where a compiler could make it: a backend that rewrites the graph, or code that
differs while it is compiled. ``examined`` says what a check finds of a case, and whether it left
everything as it was.
"""

import contextlib
import copy
import functools
import json
import random
import types

import numpy
import torch
from compilegate_runtime import equivalence
from compilegate_runtime.equivalence import conditions as _conditions
from compilegate_runtime.equivalence import large as _large
from compilegate_runtime.equivalence import unseen as _unseen
from torch.nn import functional

SEED = 7


class Model(torch.nn.Module):
    """Every kind of weight once: normalised, with dropout, and a head."""

    def __init__(self, dropout=0.0, activation=torch.nn.GELU):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), activation(),
            torch.nn.Dropout(dropout), torch.nn.Linear(32, 32), torch.nn.LayerNorm(32),
        )  # fmt: skip
        self.head = torch.nn.Linear(32, 8)

    def forward(self, rows, labels):
        return functional.cross_entropy(self.head(self.body(rows)), labels)


def batch(size=12):
    return [torch.randn(size, 16), torch.randint(0, 8, (size,))]


def changed(target, change, where=lambda graph, inputs: True, runs="aot_eager"):
    """A backend that changes the calls of a function in the graphs for which ``where`` holds."""

    def backend(module, inputs):
        for node in module.graph.nodes if where(module, inputs) else []:
            if node.target is target:
                change(node)
        module.recompile()
        return torch._dynamo.lookup_backend(runs)(module, inputs)

    return backend


planted = functools.partial(changed, runs="eager")  # half the time: each case compiles often


def detached(node):
    with node.graph.inserting_after(node):
        cut = node.graph.call_method("detach", (node,))
    node.replace_all_uses_with(cut, lambda user: user is not cut)


def of_rows(count):
    return lambda _, inputs: any(
        isinstance(one, torch.Tensor) and one.shape == (count, 16) for one in inputs
    )


def training(_graph, _inputs):
    return torch.is_grad_enabled()


def keyword(name, value):
    return lambda node: node.update_kwarg(name, value)


def argument(place, value):
    return lambda node: node.update_arg(place, value)


FUSED = torch._C._nn
BACKENDS = {
    "none": "aot_eager",
    "cut": changed(FUSED.gelu, detached),
    "gelu": planted(FUSED.gelu, keyword("approximate", "tanh")),
    "epsilon": planted(functional.layer_norm, argument(4, 1e-3)),
    "momentum": planted(functional.batch_norm, argument(6, 0.11)),
    "mean": planted(functional.cross_entropy, keyword("reduction", "sum")),
    "last": planted(FUSED.gelu, keyword("approximate", "tanh"), of_rows(5)),
    "other": planted(FUSED.gelu, keyword("approximate", "tanh"), of_rows(9)),
    "evaluation": planted(
        functional.batch_norm, argument(7, 1e-3), lambda *which: not training(*which)
    ),
}


def subject(backend="none", precision="fp32", model=None, **more):
    torch.manual_seed(SEED)
    torch._dynamo.reset()
    model = model or Model()
    backend = BACKENDS.get(backend, backend)
    compiled = torch.compile(model, backend=backend, dynamic=False)
    autocast = contextlib.nullcontext
    if precision == "bf16":
        autocast = functools.partial(torch.autocast, "cpu", torch.bfloat16)
    how = {
        "batches": [batch() for _ in range(equivalence.STEPS)],
        "call": lambda kept: compiled(*kept),
        "compiled": compiled,
        "compile_anew": lambda model: torch.compile(model, backend=backend, dynamic=False),
        "autocast": autocast,
    }
    return equivalence.Subject(model, precision=precision, **{**how, **more})


def whole(backend="none", precision="fp32", **more):
    """A subject to which every part applies."""
    torch.manual_seed(SEED)
    return subject(
        backend, precision, last_batch=batch(5), recompiled=[batch(9)], accumulation=2,
        evaluation=[batch()], evaluate=lambda function, kept: function(*kept), **more,
    )  # fmt: skip


class Clearing:
    """A call that clears what other calls have added up, once it is compiled."""

    def __init__(self, made):
        self._made, self._call = made, made.call

    def __call__(self, kept):
        if not torch._dynamo.is_compiling() and self._compiled():
            self._made.model.zero_grad()
        return self._call(kept)

    @staticmethod
    def _compiled():
        return torch._dynamo.eval_frame._stance.stance == "default"


def clearing():
    made = whole()
    made.call = Clearing(made)
    return made


class Baked(torch.nn.Module):
    """A weight that is what it was when it was compiled."""

    def __init__(self):
        super().__init__()
        self.inner = Model()
        self.first = None

    def forward(self, rows, labels):
        bias = self.first if torch.compiler.is_compiling() else self.inner.head.bias
        scores = functional.linear(self.inner.body(rows), self.inner.head.weight, bias)
        return functional.cross_entropy(scores, labels)


def baked():
    model = Baked()
    model.first = model.inner.head.bias.detach().clone()
    return subject(model=model)


def rare():
    """Wrong in one of the batches: where a value is beyond all others, as of a row that pads."""

    def tripled(model, rows, labels):
        if torch.compiler.is_compiling():
            rows = torch.where((rows > 9).any(), 3 * rows, rows)
        return loss(model, rows, labels)

    made = subject(model=Of(tripled))
    made.batches[2][0][0, 0] = 10.0
    return made


class OfItsOwnKind(torch.nn.Parameter):
    """As quantised weights are."""


def teacher(rate):
    """A frozen weight follows another one, compiled at a ``rate`` of its own."""

    def following(model, rows, labels):
        with torch.no_grad():
            model.mean.lerp_(model.body.bias, rate if torch.compiler.is_compiling() else 0.1)
        return loss(model, rows, labels)

    parts = {
        name: kind(torch.ones(16), requires_grad=False)
        for name, kind in (
            ("odd", OfItsOwnKind), ("mean", torch.nn.Parameter), ("still", torch.nn.Parameter),
        )
    }  # fmt: skip
    return subject(model=Of(following, **parts))


def lost():
    """Without a gradient where the compiler draws random numbers by itself."""

    def losing(model, rows, labels):
        made = loss(model, functional.dropout(rows, 0.3), labels)
        own = torch.compiler.is_compiling() and not torch._inductor.config.fallback_random
        return made - made + made.detach() if own else made

    return subject(model=Of(losing))


def optimizer(factor=1.0):
    made = subject()
    adam = torch.optim.AdamW(made.model.parameters(), lr=1e-2)
    adam.called = []
    adam.register_step_post_hook(lambda *_: adam.called.append(1))
    for _ in range(2):
        made.call(made.batches[0]).backward()
        adam.step()

    def step():
        rates = [group["lr"] for group in adam.param_groups]
        for group in adam.param_groups:
            group["lr"] *= factor
        type(adam).step(adam)
        for group, rate in zip(adam.param_groups, rates, strict=True):
            group["lr"] = rate

    made.optimizer, made.compiled_step = adam, step
    return made


def of_another_rate(rows, p, training, inplace):
    return functional.dropout(rows, p * 1.2, training, inplace)


def of_another_scale(rows, *how):
    return functional.dropout(rows, *how) * 1.01


def standing_still(rows, p, training, inplace):
    mask = torch.arange(rows.numel(), device=rows.device) * 7919 % 1000 >= 1000 * p
    return rows * mask.view_as(rows) / (1 - p)


def of_another_backward(rows, *how):
    return functional.dropout(rows, *how).detach() + rows - rows.detach()


def drawing_its_own(_graph, _inputs):
    return not torch._inductor.config.fallback_random


def replaced(function):
    """Only where the compiler draws random numbers by itself."""
    target = functional.dropout
    return changed(target, lambda node: setattr(node, "target", function), drawing_its_own)


def dropping(backend="aot_eager", precision="fp32"):
    torch.manual_seed(SEED)
    batches = [batch(64) for _ in range(equivalence.STEPS)]
    return subject(backend, precision, Model(0.3), batches=batches)


def by_inductor():
    """The compiler that jobs have, on a network with kinks and dropout."""
    torch.manual_seed(SEED)
    batches = [batch(64) for _ in range(equivalence.STEPS)]
    return subject("inductor", "bf16", Model(0.3, torch.nn.ReLU), batches=batches)


DROPOUTS = (of_another_rate, of_another_scale, standing_still, of_another_backward)
CASES = {
    "fp32": whole,
    **{name: functools.partial(whole, name, "bf16") for name in BACKENDS},
    "clearing": clearing, "baked": baked, "optimizer": optimizer, "rare": rare, "lost": lost,
    "teacher": functools.partial(teacher, 0.1), "fast teacher": functools.partial(teacher, 0.2),
    "rate of the optimizer": functools.partial(optimizer, 1.01),
    "dropout": functools.partial(dropping, precision="bf16"),
    "inductor": by_inductor,
    **{one.__name__: functools.partial(dropping, replaced(one)) for one in DROPOUTS},
    "a fault of one batch": lambda: with_one_batch("mean"),
}  # fmt: skip


# Models and batches that people have.


class Of(torch.nn.Module):
    """A model whose forward is a function of it, ``rows`` and ``labels``."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.body, self.head = torch.nn.Linear(16, 16), torch.nn.Linear(16, 8)
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, rows, labels):
        return self.function(self, rows, labels)


def loss(model, rows, labels):
    return functional.cross_entropy(model.head(torch.tanh(model.body(rows))), labels)


def in_place(model, rows, labels):
    rows.add_(1.0)
    return loss(model, rows, labels)


def noisy(model, rows, labels):
    return loss(model, rows + torch.randn_like(rows), labels)


def of_fewer_bits(model, rows, labels):
    with torch.autocast("cpu", torch.bfloat16):
        return loss(model, rows, labels)


def remembering(model, rows, labels):
    """In plain containers and a tensor, which cool down, count and average."""
    model.plain["scale"] *= 0.9
    model.plain["seen"].append(len(rows))
    model.mean.mul_(0.9).add_(rows.detach().mean(0), alpha=0.1)
    return loss(model, model.plain["scale"] * rows - model.mean, labels)


def with_memory(model):
    model.plain, model.mean = {"scale": 1.0, "seen": []}, torch.zeros(16)


def with_tensors(model):
    model.plain = {
        "every other": torch.ones(32)[::2], "expanded": torch.ones(1).expand(16),
        "conjugate": torch.ones(16, dtype=torch.complex64).conj(), "longer": torch.ones(3),
    }  # fmt: skip
    with torch.inference_mode():
        model.plain["of inference"] = torch.ones(16)
    model.register_buffer("mask", torch.ones(1, 16).expand(16, 16))


def changing_tensors(model, rows, labels):
    with torch.no_grad():
        model.plain["every other"].mul_(0.9)
        model.plain["longer"].resize_(5)
        if not torch.compiler.is_compiling():  # which cannot
            with torch.inference_mode():
                model.plain["of inference"].mul_(0.9)
        rows = rows * model.plain["expanded"] * model.plain["conjugate"].real
    return loss(model, torch.nn.functional.linear(rows, model.mask) + rows, labels)


def seldom(model, rows, labels):
    return loss(model, rows, labels) * (rows[0, 0] == model.first)


def with_one_batch(backend):
    made = subject(backend, model=Of(seldom, first=0.0))
    made.model.first = float(made.batches[0][0][0, 0])
    return made


def flat(model, rows, labels):
    return (loss(model, functional.dropout(rows, 0.3), labels) - 1e6).relu()


def freezing(model, rows, labels):
    model.head.requires_grad_(False)
    return loss(model, rows, labels)


def uncertain(model, rows, labels):
    noise = torch.from_numpy(model.numbers.normal(size=rows.shape)).to(rows.dtype)
    return loss(model, rows + noise, labels)


def of_numpy():
    return subject(model=Of(uncertain, numbers=numpy.random.default_rng(1)))


class Cooling:
    """A state that no check knows."""

    scale = 1.0

    def __call__(self, model, rows, labels):
        self.scale *= 0.9
        return loss(model, self.scale * rows, labels)


def closed():
    made = of()
    made.optimizer = torch.optim.LBFGS(made.model.parameters())
    made.compiled_step = made.optimizer.step
    return made


def in_double():
    batches = [[rows.double(), labels] for rows, labels in (batch() for _ in range(4))]
    return of(change=torch.nn.Module.double, batches=batches)


def embedded(model, rows, labels):
    return loss(model, rows + model.table(labels), labels)


def of_integers(model, rows, labels):
    return loss(model, rows * model.scale, labels)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context, rows):
        return rows * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


def tied():
    model = Of(lambda self, rows, labels: loss(self, functional.linear(rows, self.own), labels))
    model.own = model.body.weight
    return subject(model=model)


def views():
    whole = torch.randn(512) / 4
    model = Of(lambda self, rows, labels: loss(self, functional.linear(rows, self.own), labels))
    model.body.weight = torch.nn.Parameter(whole[:256].view(16, 16))
    model.own = torch.nn.Parameter(whole[128:384].view(16, 16))
    return subject(model=model)


def of(forward=loss, precision="fp32", *, change=None, **more):
    model = Of(forward)
    if change:
        change(model)
    made = subject(precision=precision, model=model)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def frozen(model):
    model.requires_grad_(False)


def undefined(model):
    model.head.bias.data[0] = float("nan")


def in_sparse(model):
    model.odd = torch.nn.Parameter(torch.eye(3).to_sparse())


def with_table(model):
    model.table = torch.nn.Embedding(8, 16, sparse=True)


def with_integers(model):
    whole = torch.ones(16, dtype=torch.int8)
    model.scale = torch.nn.Parameter(whole, requires_grad=False)


def failing(_model):
    raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")


# By name: how it is made, and the code that it ends with, None where it is compared.
INPUTS = {
    "without weights": (functools.partial(of, change=frozen), "no_parameters"),
    "nan": (functools.partial(of, change=undefined), "eager_not_finite"),
    "sparse weights": (functools.partial(of, change=in_sparse), "sparse_weights"),
    "a consumed batch": (lambda: of(batches=[iter(batch()) for _ in range(4)]), "batch_consumed"),
    "two batches": (lambda: of(batches=[batch(), batch()]), "too_few_batches"),
    "no loss": (functools.partial(of, lambda *how: {"labels": how[2]}), "no_loss"),
    "a loss that moves nothing": (
        functools.partial(of, lambda *how: loss(*how).detach()), "no_gradient",
    ),
    "a loss that is flat": (
        functools.partial(of, lambda *how: (loss(*how) - 1e6).relu()), "no_gradient",
    ),
    "a loss that is flat for every mask": (functools.partial(of, flat), "no_gradient"),
    "no way to compile": (lambda: of(precision="bf16", compile_anew=None), "cannot_compile"),
    "never compiled": (
        lambda: of(precision="bf16", compile_anew=lambda model: model), "not_compiled",
    ),
    "bf16 inside": (functools.partial(of, of_fewer_bits), "autocast_inside"),
    "no memory": (lambda: of(precision="bf16", compile_anew=failing), "out_of_memory"),
    "a call that raises": (lambda: of(call=None), "failed"),
    "a state of its own": (lambda: of(Cooling()), "state_outside"),
    "a step that computes the loss": (closed, "needs_closure"),
    "a memory": (functools.partial(of, remembering, change=with_memory), None),
    "a gradient of one batch": (functools.partial(with_one_batch, "none"), "no_gradient"),
    "tensors of every kind": (
        functools.partial(of, changing_tensors, change=with_tensors), None,
    ),
    "weights that a step freezes": (functools.partial(of, freezing), None),
    "numbers of NumPy": (of_numpy, "state_outside"),
    "an evaluation of integers": (
        lambda: of(
            evaluation=[batch()],
            evaluate=lambda function, kept: function(*kept).argmax(),
        ), "no_output",
    ),
    "double precision": (in_double, None),
    "a loss in a dict": (functools.partial(of, lambda *how: {"loss": loss(*how)}), None),
    "outputs of a class": (
        lambda: of(
            lambda *how: types.SimpleNamespace(loss=loss(*how)), evaluation=[batch()],
            evaluate=lambda function, kept: function(*kept),
        ), None,
    ),
    "trained inputs": (
        lambda: of(left_out=_unseen.Unseen("input_gradients", share=0.5)), "input_gradients",
    ),
    "a loss of each sample": (
        functools.partial(of, lambda *how: loss(*how) * torch.ones(3)), None,
    ),
    "a batch that is changed": (functools.partial(of, in_place), None),
    "noise": (functools.partial(of, noisy), None),
    "sparse gradients": (functools.partial(of, embedded, change=with_table), None),
    "integer weights": (functools.partial(of, of_integers, change=with_integers), None),
    "tied weights": (tied, None), "weights that are views": (views, None),
    "a function of its own": (
        functools.partial(of, lambda self, rows, labels: loss(self, Doubled.apply(rows), labels)),
        None,
    ),
}  # fmt: skip


def state(made):
    """Everything that a check has to leave as it was."""
    model = made.model
    return [
        *[one.detach().clone() for one in model.state_dict().values()],
        *[one.grad for one in model.parameters()],
        *[one.training for one in model.modules()],
        *[one.requires_grad for one in model.parameters()],
        copy.deepcopy([vars(model).get(name) for name in ("plain", "mean")]),
        torch.get_rng_state(), random.getstate(), torch.get_default_dtype(),
        torch.get_num_threads(), torch.is_autocast_enabled("cpu"),
        torch._dynamo.config.fail_on_recompile_limit_hit, torch._inductor.config.fallback_random,
        torch._dynamo.eval_frame._stance.stance,
        json.dumps(made.optimizer.state_dict(), default=str) if made.optimizer else None,
        list(getattr(made.optimizer, "called", [])),
    ]  # fmt: skip


@contextlib.contextmanager
def replacing(module, **values):
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


def large(backend="none", precision="bf16", of_a_block=1800):
    """As a model too large to be looked at whole; its body and its head are blocks."""
    with replacing(_large, LARGEST=1900, OF_A_BLOCK=of_a_block):
        return examined(lambda: whole(backend, precision))


def slow(backend="none", precision="bf16"):
    """On a device that takes its time for double precision."""
    with replacing(_conditions, is_slow_in_double=lambda *_: True):
        return examined(lambda: whole(backend, precision))


def equal(one, other):
    if getattr(one, "is_sparse", False):
        one, other = one.to_dense(), other.to_dense()
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        same = one.shape == other.shape
        return same and bool(((one == other) | (one.isnan() & other.isnan())).all())
    if isinstance(one, torch.Generator):
        return torch.equal(one.get_state(), other.get_state())
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and equal([*one.values()], [*other.values()])
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one is other or one == other


def examined(make, **how):
    made = make()
    before = state(made)
    figures = equivalence.examine(made, **how)
    after = state(made)
    return {
        **figures, "untouched": all(map(equal, before, after)) and len(before) == len(after),
    }  # fmt: skip

"""Models and faults on which the equivalence check is tried; run in the training environment.

A fault is planted where a compiler could make it: a backend that rewrites the graph, or code that
differs while it is compiled. ``made(names)`` examines the cases of these names.
"""

import contextlib
import functools
import json
import random
import sys

import torch
from compilegate_runtime import equivalence
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


def changed(target, change, where=lambda graph, inputs: True):
    """A backend that changes the calls of a function in the graphs for which ``where`` holds."""

    def backend(module, inputs):
        for node in module.graph.nodes if where(module, inputs) else []:
            if node.target is target:
                change(node)
        module.recompile()
        return torch._dynamo.lookup_backend("aot_eager")(module, inputs)

    return backend


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
    "gelu": changed(FUSED.gelu, keyword("approximate", "tanh")),
    "epsilon": changed(functional.layer_norm, argument(4, 1e-3)),
    "momentum": changed(functional.batch_norm, argument(6, 0.11)),
    "mean": changed(functional.cross_entropy, keyword("reduction", "sum")),
    "last": changed(FUSED.gelu, keyword("approximate", "tanh"), of_rows(5)),
    "other": changed(FUSED.gelu, keyword("approximate", "tanh"), of_rows(9)),
    "evaluation": changed(
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
        if torch.compiler.is_compiling():
            bias = self.first
        else:
            bias = self.inner.head.bias
        scores = functional.linear(self.inner.body(rows), self.inner.head.weight, bias)
        return functional.cross_entropy(scores, labels)


def baked():
    model = Baked()
    model.first = model.inner.head.bias.detach().clone()
    return subject(model=model)


def optimizer(factor=1.0):
    made = subject()
    adam = torch.optim.AdamW(made.model.parameters(), lr=1e-2)
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


class Dropping(torch.nn.Dropout):
    """Dropout with a fault while it is compiled."""

    fault = None

    def forward(self, rows):
        fault = self.fault if torch.compiler.is_compiling() else None
        if fault == "rate":
            return functional.dropout(rows, self.p * 1.2, self.training)
        if fault == "scale":
            return super().forward(rows) * 1.01
        if fault == "still":
            return rows * self.mask / (1 - self.p)
        if fault == "backward":
            kept = super().forward(rows)
            return (kept - rows * 0.7).detach() + rows * 0.7
        return super().forward(rows)


def dropping(fault=None, precision="fp32"):
    torch.manual_seed(SEED)
    model = Model(0.3)
    torch.nn.Dropout.forward, plain = Dropping.forward, torch.nn.Dropout.forward
    model.body[3].fault = fault
    model.body[3].mask = (torch.rand(64, 32) > 0.3).float()
    made = subject(precision=precision, model=model, batches=[batch(64) for _ in range(4)])
    return made


CASES = {
    **{f"{name} {precision}": functools.partial(whole, name, precision)
       for name in BACKENDS for precision in ("fp32", "bf16")},
    "clearing": clearing, "baked": baked, "optimizer": optimizer,
    "rate of the optimizer": functools.partial(optimizer, 1.01),
}  # fmt: skip


def state(made):
    """Everything that a check has to leave as it was."""
    model = made.model
    return [
        *[one.detach().clone() for one in model.state_dict().values()],
        *[one.grad for one in model.parameters()],
        *[one.training for one in model.modules()],
        torch.get_rng_state(), random.getstate(), torch.get_default_dtype(),
        torch.get_num_threads(), torch.is_autocast_enabled("cpu"),
        torch._dynamo.config.fail_on_recompile_limit_hit, torch._inductor.config.fallback_random,
        torch._dynamo.eval_frame._stance.stance,
        json.dumps(made.optimizer.state_dict(), default=str) if made.optimizer else None,
    ]  # fmt: skip


def equal(one, other):
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    return one is other or one == other


def examined(make, **how):
    made = make()
    before = state(made)
    figures = equivalence.examine(made, **how)
    after = state(made)
    return {
        **figures, "untouched": all(map(equal, before, after)) and len(before) == len(after),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps({name: examined(CASES[name]) for name in sys.argv[1:] or CASES}))

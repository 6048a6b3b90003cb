"""What lies beside the loss and its gradients: other outputs, masks, generators, hooks, banks."""

import functools

import torch
from equivalence_cases import Model, Of, batch, loss, of, subject
from torch.nn import functional


def with_outputs(model, rows, labels):
    """A loss, one beside it, and logits as a script has them: huge, or masked."""
    wrong = model.wrong if torch.compiler.is_compiling() else None
    logits = model.head(torch.tanh(model.body(rows))) * model.scale
    beside = model.body(rows).square().mean()
    if wrong == "beside":
        beside = beside * 30
    low = torch.zeros(8, dtype=logits.dtype).index_fill(0, torch.tensor(7), model.masked)
    low = torch.finfo(logits.dtype).min * low if model.masked == 1.0 else low
    outputs = {"beside": beside, "logits": logits + low, "none": logits[:0]}
    if model.wrong == "overflowing":
        outputs["steep"] = ((logits - logits.detach()) * 3e38).sum()
    if wrong == "logits":
        outputs["logits"] = outputs["logits"] + 0.01
    smooth = 0.01 if wrong == "loss" else 0.0
    loss = functional.cross_entropy(logits / model.scale, labels, label_smoothing=smooth)
    return {**outputs, "loss": loss}


def beside(wrong=None, scale=1.0, masked=0.0, precision="fp32"):
    model = Of(with_outputs, wrong=wrong, scale=scale, masked=masked)
    return subject(precision=precision, model=model)


OUTPUTS = {
    "of the loss": {"wrong": "loss", "scale": 1e4},
    "of logits": {"wrong": "logits"},
    "beside masked logits": {"wrong": "beside", "masked": -1e4, "precision": "bf16"},
    "none": {},
    "none, masked": {"masked": 1.0},
    "none, masked by infinity": {"masked": -float("inf")},
    "none, not finite": {"wrong": "overflowing"},
}


class Masked(Model):
    """With what masks, observers and counters hold beside other buffers, and in the outputs."""

    def __init__(self):
        super().__init__()
        lowest, infinite = torch.finfo(torch.float32).min, float("inf")
        for number, value in enumerate((-infinite, infinite, lowest, -1e9, float("nan"))):
            self.register_buffer(f"mask{number}", torch.full((3,), value))
        self.register_buffer("count", torch.tensor(10**9))

    def forward(self, rows, labels):
        self.count += 1
        made = super().forward(rows, labels)
        if self.training:
            return made
        lowest = torch.full((4,), torch.finfo(rows.dtype).min)
        return made + self.head(self.body(rows)), torch.stack([self.mask0, self.mask4]), lowest


def beside_masks(backend="none"):
    return subject(
        backend, model=Masked(), evaluation=[batch()],
        evaluate=lambda function, kept: function(*kept),
    )  # fmt: skip


def wrong_if(wrong, value):
    return value * 3 if wrong and torch.compiler.is_compiling() else value


def with_generator(model, rows, labels):
    noise = torch.randn(rows.shape, generator=model.plain["generator"])
    return loss(model, wrong_if(model.wrong, rows) + noise.to(rows.dtype), labels)


def with_a_generator(wrong):
    plain = {"generator": torch.Generator().manual_seed(3)}
    return subject(model=Of(with_generator, wrong=wrong, plain=plain))


def hooked():
    made = of()
    made.model.head.weight.register_hook(lambda gradient: gradient * 0.5)
    return made


def priced(model, rows, labels):
    return {
        "loss": loss(model, rows, labels),
        "price": wrong_if(model.wrong, model.cost(rows)) + 2e5,
    }


def with_price(wrong):
    return subject(model=Of(priced, wrong=wrong, cost=torch.nn.Linear(16, 1)))


def taught(model, rows, labels):
    taught = wrong_if(model.wrong == "taught", model.body(rows).detach())
    best = model.head(rows).argmax(1) + 1
    return {
        "loss": loss(model, rows, labels), "taught": taught,
        "best": wrong_if(model.wrong == "best", best),
    }  # fmt: skip


def with_teacher(wrong):
    return subject(model=Of(taught, wrong=wrong))


def remembered(model, rows, labels):
    made = model.body(rows)
    model.bank.copy_(wrong_if(model.wrong, made.detach()))
    return loss(model, rows, labels)


def with_bank(wrong):
    made = subject(model=Of(remembered, wrong=wrong))
    made.model.register_buffer("bank", torch.zeros(12, 16))
    return made


CASES = {
    **{f"fault {name}": functools.partial(beside, **how) for name, how in OUTPUTS.items()},
    "beside masks": beside_masks, "a hook": hooked,
    "momentum beside masks": functools.partial(beside_masks, "momentum"),
    "evaluation beside masks": functools.partial(beside_masks, "evaluation"),
    "a generator of its own": lambda: with_a_generator(False),
    "a fault beside a generator": lambda: with_a_generator(True),
    "a price": lambda: with_price(False), "a wrong price": lambda: with_price(True),
    "a teacher's output": lambda: with_teacher(None),
    "a wrong output of a teacher": lambda: with_teacher("taught"),
    "fault of integers": lambda: with_teacher("best"),
    "a bank by sample": lambda: with_bank(False), "a wrong bank": lambda: with_bank(True),
}  # fmt: skip

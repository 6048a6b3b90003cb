"""The equivalence check in two processes, one of which may compile wrongly; prints documents."""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "training"))

import equivalence_cases as cases
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

distributed.init_process_group("gloo")
RANK = distributed.get_rank()


def examined(backend="none", dropout=0.0, **how):
    made = cases.subject(backend, model=cases.Model(dropout))
    torch.manual_seed(RANK)
    made.shared = DistributedDataParallel(made.model)
    made.compiled = torch.compile(made.shared, backend=cases.BACKENDS[backend])
    made.call = lambda kept: made.compiled(*kept)
    made.batches = [cases.batch() for _ in range(4)]
    for name, value in how.items():
        setattr(made, name, value)
    figures = cases.examined(lambda: made)
    made.call(cases.batch()).backward()  # the run could go on
    gradient = made.model.head.bias.grad.clone()
    distributed.broadcast(gradient, 0)
    return {**figures, "together": torch.equal(gradient, made.model.head.bias.grad)}


made = {
    "sound": examined(),
    "dropout": examined(dropout=0.3),
    "one is wrong": examined("cut" if RANK else "none"),
    "one has no batches": examined(**({"batches": []} if RANK else {})),
}
if RANK == 0:
    print("\n" + json.dumps(made))
distributed.destroy_process_group()

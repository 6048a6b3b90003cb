"""Processes that average their gradients themselves, started by torchrun or mpirun.

torch's own optimizers and DistributedDataParallel import its compiler: twice this script's time.
"""

import argparse
import os
import signal
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=4)
parser.add_argument("--learning_rate", type=float, default=0.1)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--kill", default="nobody", help="the process that is killed in step 2")
parser.add_argument("--use_mpi", type=int, default=0, help="1: exchange something by MPI first")
args = parser.parse_args()


class Descent(torch.optim.Optimizer):
    """Goes down the gradient that all processes have on average."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weights in group["params"]:
                distributed.all_reduce(weights.grad)
                weights.sub_(weights.grad, alpha=group["lr"] / distributed.get_world_size())
                weights.grad = None


# What the decorator of this method looks for before it imports the compiler.
add_group = torch.optim.Optimizer.add_param_group.__wrapped__
add_group.__dynamo_disable = add_group
if args.use_mpi:
    from mpi4py import MPI

    assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.size > 1
if "OMPI_COMM_WORLD_RANK" in os.environ:  # mpirun names them its own way
    os.environ["RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]
    os.environ["WORLD_SIZE"] = os.environ["OMPI_COMM_WORLD_SIZE"]
distributed.init_process_group("gloo")
sys.stdout.write(f"process {os.environ['RANK']} has {os.environ.get('GIVEN')}\n")
torch.manual_seed(args.seed)
inputs = torch.randn(40, 8)
rows = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(rows, shuffle=False, drop_last=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = Descent(model.parameters(), lr=args.learning_rate)
for step, (inputs, labels) in enumerate(DataLoader(rows, args.batch_size, sampler=sampler), 1):
    if (step, args.kill) == (2, os.environ["RANK"]):
        os.kill(os.getpid(), signal.SIGKILL)
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
distributed.destroy_process_group()

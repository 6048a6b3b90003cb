"""A training script that several processes run together, started by torchrun or mpirun."""

import argparse
import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=4)
parser.add_argument("--learning_rate", type=float, default=0.1)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()

if "OMPI_COMM_WORLD_RANK" in os.environ:  # mpirun names them its own way
    os.environ["RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]
    os.environ["WORLD_SIZE"] = os.environ["OMPI_COMM_WORLD_SIZE"]
distributed.init_process_group("gloo")
sys.stdout.write(f"process {os.environ['RANK']} has {os.environ.get('GIVEN')}\n")
torch.manual_seed(args.seed)
inputs = torch.randn(40, 8)
rows = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(rows, seed=args.seed, drop_last=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
for inputs, labels in DataLoader(rows, args.batch_size, sampler=sampler):
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
distributed.destroy_process_group()

"""A training script with habits that a compiler does not like; for `compilegate doctor`."""

import argparse

import torch
from my_data import load_texts
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--log_every", type=int, default=100)
args = parser.parse_args()


class Classifier(nn.Module):
    """Two layers; scales itself down when its output grows."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(256, 512)
        self.out = nn.Linear(512, 8)

    def forward(self, x):
        y = self.hidden(x).relu()
        if y.max() > 10:
            y = y / y.max()
        return self.out(y)


train_loader = DataLoader(load_texts("train"), args.batch_size, shuffle=True, num_workers=4)
model = Classifier().cuda()
torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
total = 0.0

for step, (inputs, labels) in enumerate(train_loader):
    loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.item()
    if step % args.log_every == 0:
        print(f"step {step}: loss {loss.item():.3f}")  # now and then: fine

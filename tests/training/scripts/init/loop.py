"""A plain loop: constants in the code, no arguments at all."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3
torch.manual_seed(0)
rows = torch.randn(96, 6)
labels = (rows[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(rows, labels), batch_size=12, shuffle=True)
val_loader = DataLoader(TensorDataset(rows, labels), batch_size=32)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(EPOCHS):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"Epoch {epoch + 1}/{EPOCHS} - val accuracy: {correct / len(rows):.3f}")

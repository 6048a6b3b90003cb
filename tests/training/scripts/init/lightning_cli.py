"""A Lightning module and data module behind Lightning's own command line."""

import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(LightningModule):
    """Two layers."""

    def __init__(self, learning_rate: float = 0.05, width: int = 16):
        super().__init__()
        self.learning_rate = learning_rate
        self.layers = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, rows):
        return self.layers(rows)

    def training_step(self, batch, _index):
        rows, labels = batch
        loss = nn.functional.cross_entropy(self(rows), labels)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _index):
        rows, labels = batch
        self.log("val_acc", (self(rows).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.learning_rate)


class Rows(LightningDataModule):
    """Random rows whose sign is the label."""

    def __init__(self, batch_size: int = 16):
        super().__init__()
        self.batch_size = batch_size
        rows = torch.randn(128, 8, generator=torch.Generator().manual_seed(1))
        self.rows = TensorDataset(rows, (rows.sum(1) > 0).long())

    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.rows, batch_size=self.batch_size)


if __name__ == "__main__":
    LightningCLI(Classifier, Rows)

"""How many samples the public data sets have that scripts load by name."""

from __future__ import annotations

from compilegate.doctor.source import Source

# Training samples, by torchvision's class (https://pytorch.org/vision/stable/datasets.html, and
# the page of each data set that it links; ImageNet: ILSVRC 2012, https://www.image-net.org/).
TRAINING_SAMPLES = {
    "MNIST": 60_000, "FashionMNIST": 60_000, "KMNIST": 60_000, "QMNIST": 60_000,
    "CIFAR10": 50_000, "CIFAR100": 50_000, "ImageNet": 1_281_167,
}  # fmt: skip
# What takes a part of one.
SPLITS = ("random_split", "Subset", "SubsetRandomSampler", "train_test_split")


def public_data(source: Source) -> tuple[str, int] | None:
    """The one data set of torchvision that a file trains on as a whole, and its samples."""
    called = {source.called(call) for call in source.calls}
    data_sets = {name.rpartition(".")[2] for name in called
             if name.startswith("torchvision.datasets.")} & set(TRAINING_SAMPLES)  # fmt: skip
    if len(data_sets) != 1 or any(name.rpartition(".")[2] in SPLITS for name in called):
        return None
    name = data_sets.pop()
    return name, TRAINING_SAMPLES[name]

"""By which names scripts take what a trial sets, and what else matters of their arguments.

In the order in which they are looked for. Taken from the examples of transformers, accelerate,
Lightning, timm and nanoGPT.
"""

from __future__ import annotations

BATCH_SIZE = (
    "per_device_train_batch_size", "train_batch_size", "batch_size", "micro_batch_size",
    "device_batch_size", "batch", "bs", "batchsize",
)  # fmt: skip
LEARNING_RATE = ("learning_rate", "lr", "base_lr", "peak_lr", "max_lr")
SEED = ("seed", "random_seed", "manual_seed", "seed_everything", "rng_seed")
STEPS = (
    "max_train_steps", "max_steps", "max_iters", "total_steps", "num_steps", "train_steps",
    "num_train_steps", "num_iterations", "iterations", "iters", "steps", "n_steps",
)  # fmt: skip
EPOCHS = ("num_train_epochs", "epochs", "num_epochs", "max_epochs", "n_epochs")
DATA = (
    "data_dir", "data_path", "data", "dataset_dir", "train_file", "train_data", "train_dir",
    "train_path", "dataset_path", "data_root", "root",
)  # fmt: skip
PRECISION = ("precision", "dtype", "amp_dtype", "mixed_precision", "torch_dtype")
MODEL = ("model_name_or_path", "model_name", "model", "model_type", "arch")
# Packages by which the kind of model is known, the first that is imported.
FAMILIES = (
    ("diffusers", "diffusion"), ("timm", "vision"), ("torchvision", "vision"),
    ("transformers", "transformer"), ("trl", "transformer"), ("torchrec", "recsys"),
)  # fmt: skip

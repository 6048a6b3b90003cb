"""By which names scripts take what a trial sets, and what else matters of their arguments.

In the order in which they are looked for. Taken from the examples of transformers, accelerate,
Lightning, timm, pytorch/examples, DiT, DLRM and nanoGPT.
"""

from __future__ import annotations

BATCH_SIZE = (
    "per_device_train_batch_size", "train_batch_size", "batch_size", "micro_batch_size",
    "device_batch_size", "batch", "bs", "batchsize", "mini_batch_size", "minibatch_size",
    "train_batch", "global_batch_size", "bsz",
)  # fmt: skip
LEARNING_RATE = (
    "learning_rate", "lr", "base_lr", "peak_lr", "max_lr", "init_lr", "initial_lr",
)  # fmt: skip
SEED = (
    "seed", "random_seed", "manual_seed", "seed_everything", "rng_seed", "global_seed",
    "manualseed", "rand_seed", "numpy_rand_seed",
)  # fmt: skip
STEPS = (
    "max_train_steps", "max_steps", "max_iters", "total_steps", "num_steps", "train_steps",
    "num_train_steps", "num_iterations", "iterations", "iters", "steps", "n_steps", "max_iter",
    "n_iter", "n_iters", "num_iter", "num_iters", "total_iters", "max_iterations", "train_iters",
    "training_steps",
)  # fmt: skip
# "niter" are epochs in PyTorch's dcgan and what was made of it.
EPOCHS = (
    "num_train_epochs", "epochs", "num_epochs", "max_epochs", "n_epochs", "epoch", "max_epoch",
    "num_epoch", "n_epoch", "nepochs", "nepoch", "train_epochs", "total_epochs", "niter",
)  # fmt: skip
DATA = (
    "data_dir", "data_path", "data", "dataset_dir", "train_file", "train_data", "train_dir",
    "train_path", "dataset_path", "data_root", "root", "dataroot", "datadir", "dataset_root",
)  # fmt: skip
PRECISION = ("precision", "dtype", "amp_dtype", "mixed_precision", "torch_dtype")
MODEL = ("model_name_or_path", "model_name", "model", "model_type", "arch")
# Packages by which the kind of model is known, the first that is imported.
FAMILIES = (
    ("diffusers", "diffusion"), ("timm", "vision"), ("torchvision", "vision"),
    ("transformers", "transformer"), ("trl", "transformer"), ("torchrec", "recsys"),
)  # fmt: skip
# Packages whose name in a requirements.txt is not the one that a script imports.
INSTALLED_AS = {
    "PIL": "pillow", "cv2": "opencv-python", "skimage": "scikit-image", "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}  # fmt: skip

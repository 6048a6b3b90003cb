"""A diffusion model's UNet, as Stable Diffusion is fine-tuned: which noise was added?

Reads the channels ``train`` and ``validation``, folders of images, and reports ``eval_loss``: the
mean squared error of the noise predicted in held-out images, under the same noise and timesteps in
every run. With the weights of the channel ``model`` or of a hub name (laid out as diffusers
saves Stable Diffusion) the frozen autoencoder turns images into latents and the frozen text
encoder reads what they show. Without weights there is neither: the UNet learns, from its
architecture alone, on the pixels of small images and on one learnt vector for each thing shown.

    torchrun --nproc_per_node 4 diffusion.py --weights stabilityai/stable-diffusion-2-1-base
"""

import torch
from compilegate_runtime import environment, outcomes
from compilegate_runtime.job import run
from families import optimisation, weights
from families.images import Images
from families.processes import Processes
from torch import nn
from torch.nn import functional

# Hyperparameters: each can be given as --name value.
KNOBS = {
    **optimisation.KNOBS,
    # model
    "model": ("tiny", "stable_diffusion"),
    "weights": "",  # hub name of weights to start from
    # images
    "size": 0,  # side of what the UNet sees; 0 is the model's own; pixels are 8 times with weights
    # fixed: every image is cut to a square; variable: each batch has the proportions of its first
    # image, so shapes change from step to step
    "sizes": ("fixed", "variable"),
    "workers": 2,  # threads that read images while the device trains
    # training
    "steps": 400,  # optimiser steps of a full run
    "batch_size": 4,  # images of one step, per device
    "learning_rate": 1e-4,
    "warmup_share": 0.05,
    # evaluation
    "eval_images": 256,  # held-out ones at the end; each at several timesteps
}
SIZE = {"tiny": 32, "stable_diffusion": 64}  # 64 is what 512 pixels are to Stable Diffusion
TINY = {
    "block_out_channels": (32, 64),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "layers_per_block": 1,
    "norm_num_groups": 8,
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
}
STABLE_DIFFUSION = {"cross_attention_dim": 768}  # all else is diffusers' default: version 1's
MULTIPLE = 8  # a UNet halves its images three times
TIMESTEPS = 1000
EVAL_TIMESTEPS = (50, 250, 500, 750)
EVAL_BATCH = 8
EVAL_SEED = 0  # of the held-out noise in every run


# ---- model --------------------------------------------------------------------------------


class NoisePredictor(nn.Module):
    """The UNet; returns the mean squared error of the noise that it predicts."""

    def __init__(self, unet, things):
        super().__init__()
        self.unet = unet
        # Stable Diffusion's own schedule: the square root of the noise's variance grows evenly.
        betas = torch.linspace(0.00085**0.5, 0.012**0.5, TIMESTEPS) ** 2
        self.register_buffer("kept", torch.cumprod(1 - betas, 0), persistent=False)
        self.thing = nn.Embedding(things, unet.config.cross_attention_dim) if things else None

    def forward(self, clean, noise, timesteps, shown):
        """The loss is the error of the predicted noise."""
        return functional.mse_loss(self.predicted(clean, noise, timesteps, shown), noise)

    def predicted(self, clean, noise, timesteps, shown):
        """Add noise; what the UNet takes it for."""
        kept = self.kept[timesteps].view(-1, 1, 1, 1)
        noisy = kept.sqrt() * clean + (1 - kept).sqrt() * noise
        if self.thing is not None:
            shown = self.thing(shown)[:, None]
        return self.unet(noisy, timesteps, encoder_hidden_states=shown).sample.float()


class Pretrained:
    """The frozen parts of a Stable Diffusion: images to latents, words to vectors."""

    pixels_per_side = 8

    def __init__(self, start, device):
        from diffusers import AutoencoderKL, UNet2DConditionModel  # noqa: PLC0415 — slow to import
        from transformers import CLIPTextModel, CLIPTokenizer  # noqa: PLC0415 — as above

        self.unet = UNet2DConditionModel.from_pretrained(start, subfolder="unet")
        self.tokenizer = CLIPTokenizer.from_pretrained(start, subfolder="tokenizer")
        self.text = CLIPTextModel.from_pretrained(start, subfolder="text_encoder")
        self.autoencoder = AutoencoderKL.from_pretrained(start, subfolder="vae")
        for part in (self.text, self.autoencoder):
            part.requires_grad_(False).eval().to(device.kind)
        self._kind, self.things = device.kind, 0

    @torch.no_grad()
    def latents(self, pixels):
        """What the UNet sees of the images."""
        encoded = self.autoencoder.encode(pixels.to(self._kind)).latent_dist.mode()
        return encoded * self.autoencoder.config.scaling_factor

    @torch.no_grad()
    def shown(self, words):
        """The images' descriptions as the UNet reads them."""
        numbers = self.tokenizer(
            words, padding="max_length", truncation=True, return_tensors="pt"
        ).input_ids
        return self.text(numbers.to(self._kind))[0]


class FromScratch:
    """A UNet from its architecture alone, which sees pixels and the number of the thing shown."""

    pixels_per_side = 1

    def __init__(self, knobs, things):
        from diffusers import UNet2DConditionModel  # noqa: PLC0415 — slow to import

        shape = TINY if knobs.model == "tiny" else STABLE_DIFFUSION
        self.unet = UNet2DConditionModel(in_channels=3, out_channels=3, **shape)
        self._names, self.things = things, len(things) + 1

    def latents(self, pixels):
        """What the UNet sees of the images: themselves."""
        return pixels

    def shown(self, words):
        """The number of each thing shown; the last one stands for all that training never saw."""
        numbers = {name: number for number, name in enumerate(self._names)}
        return torch.tensor([numbers.get(word, len(numbers)) for word in words])


# ---- data ---------------------------------------------------------------------------------


class Batches:
    """Images with the noise that is added to them; the same noise in every arm."""

    def __init__(self, knobs, images, parts):
        self._images, self._parts = images, parts
        self._side = (knobs.size or SIZE[knobs.model]) * parts.pixels_per_side
        self._multiple = MULTIPLE * parts.pixels_per_side
        self._varies = knobs.sizes == "variable"

    def read(self, indices):
        """Pixels of the images and what they show."""
        side = (self._side, self._side)
        if self._varies:
            side = self._images.shape(indices[0], self._side, self._multiple)
        return self._images.pixels(indices, side), [self._images.shows[i] for i in indices]

    def names(self, count):
        """What identifies each of the first images."""
        return [self._images.name(index) for index in range(count)]

    def noised(self, pixels, words, seed, timesteps=None):
        """A batch for the model. Noise and timesteps follow from ``seed`` alone."""
        clean = self._parts.latents(pixels)
        random = torch.Generator().manual_seed(seed)
        noise = torch.randn(clean.shape, generator=random)
        if timesteps is None:
            timesteps = torch.randint(0, TIMESTEPS, (len(clean),), generator=random)
        return clean, noise, timesteps, self._parts.shown(words)


# ---- training -----------------------------------------------------------------------------


def train(job):
    """One run: the recorder times each step, the compiler is what the arm says."""
    knobs = job.settings
    start = weights.source(knobs.weights)
    processes = Processes(job)
    images = Images("train")
    parts = (
        Pretrained(start, job.device) if start else FromScratch(knobs, sorted(set(images.shows)))
    )
    batches = Batches(knobs, images, parts)
    model = NoisePredictor(parts.unet, parts.things)
    training = optimisation.Training(job, processes, model, len(images))

    def batch_of(chosen, step):
        seed = (knobs.seed * 1_000_003 + step) * processes.count + processes.rank
        return batches.noised(*batches.read(chosen), seed)

    for batch in training.batches(batch_of, workers=knobs.workers):
        loss, norm = training.step(batch)
        training.end_step(loss, norm, samples=len(batch[0]))
    training.finish()
    if job.evaluates:
        held_out = Batches(knobs, Images("validation"), parts)
        loss = evaluate(job, processes, training.model, held_out, len(Images("validation")))
        job.recorder.metric("eval_loss", loss)
        save(training.model)


@torch.no_grad()
def evaluate(job, processes, model, batches, count):
    """Mean error on held-out images at fixed timesteps, by the model as written in both arms."""
    count = min(count, job.settings.eval_images)
    starts = processes.part(list(range(0, count, EVAL_BATCH)))
    model.eval()
    places, errors = [], []
    for begin in starts:
        indices = list(range(begin, min(begin + EVAL_BATCH, count)))
        pixels, words = batches.read(indices)
        error = torch.zeros(len(indices), dtype=torch.float64)
        for timestep in EVAL_TIMESTEPS:
            steps = torch.full((len(indices),), timestep)
            batch = batches.noised(pixels, words, EVAL_SEED + begin * TIMESTEPS + timestep, steps)
            clean, noise, steps, shown = (part.to(job.device.kind) for part in batch)
            with job.device.autocast():
                predicted = model.predicted(clean, noise, steps, shown)
            error += (predicted - noise).square().flatten(1).mean(1).cpu() / len(EVAL_TIMESTEPS)
        places += indices
        errors += error.tolist()
    errors = processes.together(errors, places, count)
    outcomes.record("eval_loss", errors, batches.names(count))
    return sum(errors) / count


def save(model):
    """Leave the weights where the job's model artifact is made from."""
    folder = environment.model_folder()
    if folder is not None and not environment.rank():
        # PyTorch/XLA's tensors have no storage to read.
        model.unet.cpu().save_pretrained(folder / "unet")


def _mp_fn(index):
    """Where the managed compiler's launcher starts each of its processes."""
    run(train, KNOBS, index=index)


if __name__ == "__main__":
    run(train, KNOBS)

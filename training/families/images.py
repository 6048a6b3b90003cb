"""Images of a channel: a folder of files, as Hugging Face's image folders are laid out.

What an image shows is in ``metadata.jsonl`` (``file_name`` and ``text``), or else is the
name of the folder it lies in. Files are opened when a batch needs them.
"""

import json

import numpy
import torch
from compilegate_runtime import environment
from compilegate_runtime.errors import DataError

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


class Images:
    """The image files of a channel and what each shows."""

    def __init__(self, channel):
        folder = environment.channel(channel)
        self._folder = folder
        self._files = [f for f in sorted(folder.rglob("*")) if f.suffix.lower() in ENDINGS]
        if not self._files:
            raise DataError(
                f"input channel {channel!r} ({folder}) holds no file ending in {', '.join(ENDINGS)}"
            )
        texts = {}
        for path in sorted(folder.rglob("metadata.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                texts[path.parent / row["file_name"]] = row["text"]
        self.shows = [
            texts.get(file, "" if file.parent == folder else file.parent.name)
            for file in self._files
        ]

    def __len__(self):
        """Number of images."""
        return len(self._files)

    def name(self, index):
        """Where an image lies in the channel, its size in bytes and what it shows."""
        file = self._files[index]
        return f"{file.relative_to(self._folder)} {file.stat().st_size} {self.shows[index]}"

    def shape(self, index, side, multiple):
        """(height, width) as near as may be to an image's own proportions.

        As many pixels as a square of ``side``, both a multiple of ``multiple``.
        """
        with _opened(self._files[index]) as image:
            width, height = image.size
        stretch = (width / height) ** 0.5
        nearest = [max(1, round(side * by / multiple)) * multiple for by in (1 / stretch, stretch)]
        return nearest[0], nearest[1]

    def pixels(self, indices, shape):
        """The images as one tensor from -1 to 1, each cut to the proportions of ``shape``."""
        return torch.stack([_pixels(self._files[index], shape) for index in indices])


def _opened(path):
    from PIL import Image  # noqa: PLC0415 — only jobs on images need it

    return Image.open(path)


def _pixels(path, shape):
    from PIL import Image, ImageOps  # noqa: PLC0415 — as above

    height, width = shape
    with _opened(path) as image:
        fitted = ImageOps.fit(image.convert("RGB"), (width, height), Image.BICUBIC)
    array = numpy.asarray(fitted, dtype=numpy.float32) / 127.5 - 1
    return torch.from_numpy(array).permute(2, 0, 1)

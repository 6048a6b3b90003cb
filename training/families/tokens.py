"""Text as numbers: a tokenizer, and a channel's tokens cached beside the data.

A tokenizer comes with the weights that are fine-tuned. Where there are none, byte-level BPE is
trained on the channel ``train``, for BERT on lower-case text and with its signs. The same text
gives the same tokenizer, which cannot be said of WordPiece: its trainer (tokenizers 0.23) numbers
the parts of words again each time.
"""

import hashlib
import itertools
import json
import os
import tempfile
from pathlib import Path

import numpy
from compilegate_runtime import environment

from families import records

ROWS_AT_ONCE = 1024  # as many texts are tokenised in parallel, by as many threads as there are
TRAINED_ON_ROWS = 200_000  # more text than this changes a vocabulary no more
END = "<|endoftext|>"
PADDING, _, FIRST, SEPARATOR, _ = BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class Tokens:
    """Texts of a channel as token numbers, one array and where each text begins in it."""

    def __init__(self, folder):
        self.numbers = numpy.load(folder / "numbers.npy", mmap_mode="r")
        self.begins = numpy.load(folder / "begins.npy")
        self.labels = json.loads((folder / "labels.json").read_text())

    def __len__(self):
        """Number of texts."""
        return len(self.begins) - 1

    def __getitem__(self, index):
        """The token numbers of one text."""
        return self.numbers[self.begins[index] : self.begins[index + 1]]


class Cache:
    """A folder beside the channels, or wherever this machine lets us write.

    Beside and not inside: what a channel holds is hashed for the fingerprint.
    """

    def __init__(self, data_digest):
        self._digest = data_digest
        chosen = os.environ.get("COMPILEGATE_DATA_CACHE")
        beside = environment.channel("train").resolve().parent
        writable = os.access(beside, os.W_OK)
        place = beside if writable else Path(tempfile.gettempdir())
        self._folder = Path(chosen) if chosen else place / "compilegate-cache"

    def folder(self, what, make):
        """The folder that ``make(folder)`` filled for ``what``, a dictionary; filled once."""
        key = json.dumps([self._digest, what], sort_keys=True)
        folder = self._folder / hashlib.sha256(key.encode()).hexdigest()[:24]
        if not folder.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(dir=self._folder))
            make(fresh)
            try:
                fresh.rename(folder)
            except OSError:  # another process was faster
                if not folder.exists():
                    raise
        return folder


def tokenised(cache, tokenizer, channel, text, label=None):
    """The Tokens of a channel; ``tokenizer`` takes texts and returns the numbers of each.

    Its ``identity`` tells it from others. ``text`` and ``label`` are a column and the
    hyperparameter that names it.
    """
    what = {"tokens": tokenizer.identity, "channel": channel, "columns": [text, label]}
    made = cache.folder(
        what, lambda folder: _write(folder, tokenizer, records.rows(channel), text, label)
    )
    return Tokens(made)


def _write(folder, tokenizer, source, text, label):
    """Stream the channel through ``encode`` to disk; only lengths and labels stay in memory."""
    lengths, labels = [], []
    raw = folder / "numbers.raw"
    with raw.open("wb") as file:
        for some in iter(lambda: list(itertools.islice(source, ROWS_AT_ONCE)), []):
            for numbers in tokenizer([str(records.column(row, *text)) for row in some]):
                lengths.append(len(numbers))
                file.write(numpy.asarray(numbers, dtype=numpy.uint32).tobytes())
            if label is not None:
                labels += [str(records.column(row, *label)) for row in some]
    numbers = numpy.memmap(raw, dtype=numpy.uint32, mode="r") if sum(lengths) else []
    numpy.save(folder / "numbers.npy", numbers)
    numpy.save(folder / "begins.npy", numpy.cumsum([0, *lengths]))
    (folder / "labels.json").write_text(json.dumps(labels))
    raw.unlink()


# ---- tokenizers ---------------------------------------------------------------------------


def of_weights(source):
    """The tokenizer of a model that transformers knows, by hub name or folder."""
    from transformers import AutoTokenizer  # noqa: PLC0415 — slow to import

    return AutoTokenizer.from_pretrained(source)


def trained(cache, kind, vocabulary, text):
    """A tokenizer of the channel ``train`` for the ``kind`` of model: gpt2 or bert."""
    from tokenizers import Tokenizer  # noqa: PLC0415 — the small models do without

    what = {"tokenizer": kind, "vocabulary": vocabulary, "column": text}
    made = cache.folder(what, lambda folder: _train(folder, kind, vocabulary, text))
    return Tokenizer.from_file(str(made / "tokenizer.json"))


def save(tokenizer, folder):
    """Leave a tokenizer beside the weights it belongs to, as transformers finds it."""
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 — slow to import

    if not hasattr(tokenizer, "save_pretrained"):  # one that was trained here
        signs = {"eos_token": END}
        if tokenizer.token_to_id(END) is None:
            names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
            signs = dict(zip(names, BERT))  # noqa: B905 — Python 3.8 has no strict
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **signs)
    tokenizer.save_pretrained(str(folder))


def _train(folder, kind, vocabulary, text):
    from tokenizers import Tokenizer, decoders, models, normalizers, processors  # noqa: PLC0415
    from tokenizers import pre_tokenizers as cuts  # noqa: PLC0415 — as above
    from tokenizers.trainers import BpeTrainer  # noqa: PLC0415 — as above

    source = itertools.islice(records.rows("train"), TRAINED_ON_ROWS)
    texts = (str(records.column(row, *text)) for row in source)
    signs = list(BERT) if kind == "bert" else [END]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = cuts.ByteLevel(False), decoders.ByteLevel()
    if kind == "bert":
        made.normalizer = normalizers.BertNormalizer()
    trainer = BpeTrainer(
        vocab_size=vocabulary, special_tokens=signs, show_progress=False,
        initial_alphabet=cuts.ByteLevel.alphabet(),
    )  # fmt: skip
    made.train_from_iterator(texts, trainer)
    if kind == "bert":  # it reads a text between these two
        numbers = [(sign, made.token_to_id(sign)) for sign in (FIRST, SEPARATOR)]
        made.post_processor = processors.TemplateProcessing(
            single=f"{FIRST} $A {SEPARATOR}", special_tokens=numbers
        )
    made.save(str(folder / "tokenizer.json"))

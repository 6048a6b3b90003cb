"""A causal language model: GPT-2 as transformers has it, or a tiny byte-level decoder.

Reads the channels ``train`` and ``validation`` (parquet, JSON lines, CSV or plain text) and
reports ``eval_loss``, in nats per token, and ``eval_perplexity``. GPT-2 starts from the weights
of the channel ``model`` or of a hub name, or from its architecture alone. The tiny model, whose
tokens are bytes, trains in minutes on a processor.

    torchrun --nproc_per_node 8 causal_lm.py --model gpt2 --batch_size 16 --precision bf16
"""

import math

import numpy
import torch
from compilegate_runtime import outcomes
from compilegate_runtime.errors import DataError
from compilegate_runtime.job import run
from families import optimisation, tiny, tokens, weights
from families.processes import Processes
from torch import nn
from torch.nn import functional

# Hyperparameters: each can be given as --name value.
KNOBS = {
    **optimisation.KNOBS,
    # model; 0 is the model's own (OWN)
    "model": ("tiny", "gpt2"),
    "weights": "",  # hub name of weights to start from, of any causal language model
    "width": 0,
    "layers": 0,
    "heads": 0,
    "block": 0,  # tokens of context; every sample has exactly this length: static shapes
    "dropout": 0.0,  # GPT-2's
    # text
    "text_column": "text",
    "vocabulary": 50257,  # GPT-2's: size of the byte-level BPE trained where weights bring none
    # training
    "steps": 2000,  # optimiser steps of a full run
    "batch_size": 4,  # blocks of one step, per device
    "learning_rate": 6e-3,
    "warmup_share": 0.025,
    "schedule": ("cosine", "linear"),
    "weight_decay": 0.1,
    # evaluation
    "eval_blocks": 512,  # held-out blocks at the end, the same ones in every run
}
OWN = {
    "tiny": {"width": 64, "layers": 6, "heads": 4, "block": 64},
    "gpt2": {"width": 768, "layers": 12, "heads": 12, "block": 1024},
}
BETAS = (0.9, 0.95)
EVAL_BATCH = 16
VOCABULARY_MULTIPLE = 64  # sizes that a GPU multiplies well; the numbers above are never used


# ---- data ---------------------------------------------------------------------------------


class Tokenizer:
    """Texts as token numbers with an end after each, and what makes it the one it is."""

    def __init__(self, knobs, cache, start):
        self.library = None  # transformers' or tokenizers' own
        if knobs.model == "tiny":
            self.identity, self.size = "bytes", tiny.BYTES
            self._encode = lambda texts: [list(text.encode()) for text in texts]
            self._end = 0
        elif start:
            self.library = own = tokens.of_weights(start)
            self.identity, self.size, self._end = ["weights", start], len(own), own.eos_token_id
            self._encode = lambda texts: own(texts, verbose=False)["input_ids"]
        else:
            column = (knobs.text_column, "text_column")
            self.library = own = tokens.trained(cache, "gpt2", knobs.vocabulary, column)
            self.identity, self.size = ["bpe", knobs.vocabulary], knobs.vocabulary
            self._end = own.token_to_id(tokens.END)
            self._encode = lambda texts: [one.ids for one in own.encode_batch(texts)]

    def __call__(self, texts):
        """The token numbers of each text."""
        return [[*numbers, self._end] for numbers in self._encode(texts)]


def blocks_at(numbers, starts, block):
    """Inputs and next-token targets of the blocks that begin at ``starts``."""
    rows = numpy.stack([numbers[start : start + block + 1] for start in starts])
    rows = torch.from_numpy(rows.astype(numpy.int64))
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


# ---- model --------------------------------------------------------------------------------


class Transformers(nn.Module):
    """A causal language model of transformers; returns the mean loss of the next token."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        network.config.use_cache = False  # needed to generate text, not to train

    def forward(self, inputs, targets):
        """Loss of predicting ``targets`` from ``inputs``."""
        logits = self.logits(inputs)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    def logits(self, inputs):
        """A score of every token at every place."""
        return self.network(input_ids=inputs).logits


def build(knobs, sizes, start, vocabulary):
    """The model, from weights or from its architecture."""
    if knobs.model == "tiny":
        return tiny.LanguageModel(**sizes)
    import transformers  # noqa: PLC0415 — slow to import, and the tiny model does without

    if start:
        return Transformers(transformers.AutoModelForCausalLM.from_pretrained(start))
    config = transformers.GPT2Config(
        vocab_size=math.ceil(vocabulary / VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE,
        n_positions=sizes["block"],
        n_embd=sizes["width"],
        n_layer=sizes["layers"],
        n_head=sizes["heads"],
        resid_pdrop=knobs.dropout,
        embd_pdrop=knobs.dropout,
        attn_pdrop=knobs.dropout,
        bos_token_id=None,
        eos_token_id=None,
    )
    return Transformers(transformers.GPT2LMHeadModel(config))


# ---- training -----------------------------------------------------------------------------


def train(job):
    """One run: the recorder times each step, the compiler is what the arm says."""
    knobs = job.settings
    sizes = weights.own(vars(knobs), OWN[knobs.model])
    block, start = sizes["block"], weights.source(knobs.weights)
    processes = Processes(job)
    with processes.first_of_machine():
        cache = tokens.Cache(job.recorder.fingerprint["data_sha256"])
        tokenizer = Tokenizer(knobs, cache, start)
        text = (knobs.text_column, "text_column")
        numbers = tokens.tokenised(cache, tokenizer, "train", text).numbers
        held_out = tokens.tokenised(cache, tokenizer, "validation", text).numbers
    starts = range(0, len(numbers) - block - 1, block)

    model = build(knobs, sizes, start, tokenizer.size)
    training = optimisation.Training(job, processes, model, len(starts), betas=BETAS)
    batches = training.batches(
        lambda chosen, _: blocks_at(numbers, [starts[index] for index in chosen], block)
    )
    for batch in batches:
        loss, norm = training.step(batch)
        training.end_step(loss, norm, samples=len(batch[0]), tokens=batch[0].numel())
    training.finish()
    if job.evaluates:
        loss = evaluate(job, processes, training.model, held_out, block)
        job.recorder.metric("eval_loss", loss)
        job.recorder.metric("eval_perplexity", math.exp(min(loss, 700.0)))
        network = training.model if knobs.model == "tiny" else training.model.network
        weights.save(job, network, tokenizer.library)


@torch.no_grad()
def evaluate(job, processes, model, numbers, block):
    """Mean loss over evenly spaced held-out blocks, by the model as written in both arms."""
    count, last = job.settings.eval_blocks, len(numbers) - block - 1
    if last < 0:
        raise DataError(f"channel validation has {len(numbers)} tokens; a block takes {block + 1}")
    starts = [last * i // max(1, count - 1) for i in range(count)]
    own = processes.part(list(range(count)))
    model.eval()
    losses = []
    for begin in range(0, len(own), EVAL_BATCH):
        some = [starts[index] for index in own[begin : begin + EVAL_BATCH]]
        inputs, targets = (rows.to(job.device.kind) for rows in blocks_at(numbers, some, block))
        with job.device.autocast():
            logits = model.logits(inputs)
        flat = logits.flatten(0, 1).float()
        each = functional.cross_entropy(flat, targets.flatten(), reduction="none")
        losses += each.view(len(some), block).mean(1).tolist()
    losses = processes.together(losses, own, count)
    blocks = [numbers[start : start + block + 1].tobytes() for start in starts]
    outcomes.record("eval_loss", losses, blocks)
    return sum(losses) / count


def _mp_fn(index):
    """Where the managed compiler's launcher starts each of its processes."""
    run(train, KNOBS, index=index)


if __name__ == "__main__":
    run(train, KNOBS)

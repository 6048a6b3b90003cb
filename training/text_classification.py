"""A BERT-family text classifier, trained from scratch: what is a documentation string about?

Reads every ``*.jsonl`` of the channels ``train`` and ``validation`` (keys ``text`` and
``topic``), runs on a GPU or a CPU, and reports ``eval_accuracy``. The encoder is BERT's own:
learned positions, normalisation after each block, GELU, dropout, a pooled first token.
"""

import itertools
import json
import re
from collections import Counter

import torch
from compilegate_runtime import environment, job, seeds
from torch import nn
from torch.nn import functional

# Hyperparameters: each can be given as --name value.
KNOBS = {
    # model
    "width": 96,
    "layers": 2,
    "heads": 4,
    "dropout": 0.1,
    "activation": ("gelu", "gelu_tanh"),  # BERT's own, or ALBERT's cheaper approximation
    # text
    "vocabulary": 4096,  # most frequent words of the training channel; others are unknown
    "max_length": 192,  # words kept of a text
    # longest: each batch as long as its longest text, so shapes change from step to step;
    # max_length: every batch equally long, mostly padding, and the shapes stay
    "padding": ("longest", "max_length"),
    # training
    "steps": 600,  # optimiser steps of a full run
    "batch_size": 8,
    "learning_rate": 5e-4,  # peak, after warm-up, then linear to zero
    "warmup_steps": 60,
    "weight_decay": 0.01,
    "clip_norm": 1.0,
}
PADDING, UNKNOWN, FIRST = 0, 1, 2  # reserved word numbers
EVAL_BATCH = 32


# ---- data ---------------------------------------------------------------------------------


def load(channel):
    """Texts and topics of a channel."""
    rows = [
        json.loads(line)
        for path in sorted(environment.channel(channel).glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [row["text"] for row in rows], [row["topic"] for row in rows]


def words(text):
    """Lower-case words, numbers and single signs."""
    return re.findall(r"[a-z]+|[0-9]+|[^\sa-z0-9]", text.lower())


def build_vocabulary(texts, size):
    """Number of each of the most frequent words; ties are broken by spelling."""
    counts = Counter(word for text in texts for word in words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: FIRST + 1 + rank for rank, word in enumerate(ranked[: size - FIRST - 1])}


def encode(texts, vocabulary, max_length):
    """Each text as word numbers behind the token that the classifier reads."""
    return [
        [FIRST] + [vocabulary.get(word, UNKNOWN) for word in words(text)[: max_length - 1]]
        for text in texts
    ]


def collate(rows, length):
    """Pad word numbers to ``length``, or to the longest row when it is None."""
    length = length or max(len(row) for row in rows)
    return torch.tensor([row + [PADDING] * (length - len(row)) for row in rows])


# ---- model --------------------------------------------------------------------------------


class Layer(nn.Module):
    """Self-attention and feed-forward, each added and then normalised."""

    def __init__(self, knobs):
        super().__init__()
        width = knobs.width
        self.heads = knobs.heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width)
        self.feed_in = nn.Linear(width, 4 * width)
        self.feed_out = nn.Linear(4 * width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(knobs.dropout)
        self.approximate = "tanh" if knobs.activation == "gelu_tanh" else "none"

    def forward(self, x, mask):
        """Mix each position with all that are not padding."""
        batch, length, width = x.shape
        q, k, v = (
            self.project_in(x)
            .view(batch, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        x = self.attention_norm(x + self.dropout(self.project_out(mixed)))
        hidden = functional.gelu(self.feed_in(x), approximate=self.approximate)
        return self.feed_norm(x + self.dropout(self.feed_out(hidden)))


class Classifier(nn.Module):
    """Encoder and pooled first token; returns one score per topic."""

    def __init__(self, knobs, topics):
        super().__init__()
        self.word = nn.Embedding(knobs.vocabulary, knobs.width, padding_idx=PADDING)
        self.position = nn.Embedding(knobs.max_length, knobs.width)
        self.norm = nn.LayerNorm(knobs.width)
        self.dropout = nn.Dropout(knobs.dropout)
        self.layers = nn.ModuleList(Layer(knobs) for _ in range(knobs.layers))
        self.pooler = nn.Linear(knobs.width, knobs.width)
        self.head = nn.Linear(knobs.width, topics)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens):
        """Score the topics of each row of word numbers."""
        mask = (tokens != PADDING)[:, None, None, :]
        positions = self.position.weight[: tokens.shape[1]]
        x = self.dropout(self.norm(self.word(tokens) + positions))
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.dropout(torch.tanh(self.pooler(x[:, 0]))))


# ---- training -----------------------------------------------------------------------------


def learning_rate_at(step, knobs):
    """Share of the peak learning rate: linear up, linear down to zero."""
    if step < knobs.warmup_steps:
        return (step + 1) / knobs.warmup_steps
    return max(0.0, (knobs.steps - step) / max(1, knobs.steps - knobs.warmup_steps))


def train(this):
    """One run: the recorder times each step, the compiler is what the arm says."""
    knobs, device = this.settings, this.device
    texts, topics = load("train")
    names = sorted(set(topics))
    vocabulary = build_vocabulary(texts, knobs.vocabulary)
    rows = encode(texts, vocabulary, knobs.max_length)
    labels = torch.tensor([names.index(topic) for topic in topics])
    length = knobs.max_length if knobs.padding == "max_length" else None

    model = device.convert(Classifier(knobs, len(names)).to(device.kind))
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=knobs.learning_rate,
        weight_decay=knobs.weight_decay,
        fused=device.fuses_optimizer,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate_at(step, knobs)
    )
    forward = this.compiler.apply(model)
    batches = (
        (collate([rows[index] for index in chosen], length), labels[chosen])
        for chosen in seeds.batches(knobs.seed, len(rows), knobs.batch_size)
    )
    first = next(batches)
    this.recorder.initial_loss = loss_without_dropout(model, first, device)
    for tokens, targets in this.recorder.steps(itertools.chain([first], batches)):
        with device.autocast():
            scores = forward(tokens.to(device.kind))
            loss = functional.cross_entropy(scores, targets.to(device.kind))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), knobs.clip_norm)
        this.compiler.step(optimizer)
        rate = schedule.get_last_lr()[0]
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        this.recorder.end_step(
            loss,
            samples=len(targets),
            tokens=int((tokens != PADDING).sum()),
            learning_rate=rate,
            gradient_norm=norm,
        )
    if this.evaluates:
        accuracy = evaluate(model, vocabulary, names, knobs, device)
        this.recorder.metric("eval_accuracy", accuracy)
        save(model, this.compiler)


@torch.no_grad()
def loss_without_dropout(model, batch, device):
    """Loss of the untrained model on the first batch, which both arms must share.

    Dropout is off: eager and compiled code draw different random numbers for it.
    """
    model.eval()
    with device.autocast():
        scores = model(batch[0].to(device.kind))
        loss = functional.cross_entropy(scores, batch[1].to(device.kind))
    model.train()
    return float(loss)


@torch.no_grad()
def evaluate(model, vocabulary, names, knobs, device):
    """Share of held-out texts whose topic is found, by the model as written in both arms."""
    texts, topics = load("validation")
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))  # little padding
    rows = encode([texts[index] for index in order], vocabulary, knobs.max_length)
    truth = [names.index(topics[index]) if topics[index] in names else -1 for index in order]
    model.eval()
    right = 0
    for begin in range(0, len(rows), EVAL_BATCH):
        tokens = collate(rows[begin : begin + EVAL_BATCH], None)
        with device.autocast():
            found = model(tokens.to(device.kind)).argmax(-1).cpu()
        right += int((found == torch.tensor(truth[begin : begin + EVAL_BATCH])).sum())
    return right / len(rows)


def save(model, compiler):
    """Leave the weights where the job's model artifact is made from."""
    folder = environment.model_folder()
    if folder is not None:
        compiler.save(model.state_dict(), folder / "model.pt")


def _mp_fn(index):
    """Where the managed compiler's launcher starts each of its processes."""
    job.run(train, KNOBS, index=index)


if __name__ == "__main__":
    job.run(train, KNOBS)

"""A BERT-family text classifier: what is a text about?

Reads the channels ``train`` and ``validation`` (parquet, JSON lines or CSV with a text and a
label) and reports ``eval_accuracy``. BERT is transformers' own and starts from the weights of
the channel ``model`` or of a hub name (of any model that classifies sequences, GPT-2 among
them), or from its architecture alone. The tiny model trains in half a minute on a processor.

    torchrun --nproc_per_node 8 text_classification.py --model bert --weights bert-base-cased
"""

import json
from types import SimpleNamespace

import torch
from compilegate_runtime import outcomes
from compilegate_runtime.job import run
from families import optimisation, records, tiny, tokens, weights
from families.processes import Processes
from torch import nn
from torch.nn import functional

# Hyperparameters: each can be given as --name value.
KNOBS = {
    **optimisation.KNOBS,
    # model; 0 is the model's own (OWN)
    "model": ("tiny", "bert"),
    "weights": "",  # hub name of weights to start from
    "width": 0,
    "layers": 0,
    "heads": 0,
    "dropout": 0.1,
    "activation": ("gelu", "gelu_tanh"),  # BERT's own, or ALBERT's cheaper approximation
    # text; 0 is the model's own
    "text_column": "text",
    "label_column": "topic",
    "vocabulary": 0,  # words, or parts of words, learnt from the channel where weights bring none
    "max_length": 0,  # tokens kept of a text
    # longest: each batch as long as its longest text, so shapes change from step to step;
    # max_length: every batch equally long, mostly padding, and the shapes stay
    "padding": ("longest", "max_length"),
    # training
    "steps": 600,  # optimiser steps of a full run
    "batch_size": 8,  # texts of one step, per device
    "learning_rate": 5e-4,
    "warmup_share": 0.1,
}
OWN = {
    "tiny": {"width": 96, "layers": 2, "heads": 4, "vocabulary": 4096, "max_length": 192},
    "bert": {"width": 768, "layers": 12, "heads": 12, "vocabulary": 30522, "max_length": 128},
}
EVAL_BATCH = 32


# ---- data ---------------------------------------------------------------------------------


class Tokenizer:
    """Texts as token numbers, cut to a length, and what makes it the one it is."""

    def __init__(self, knobs, sizes, cache, start):
        text, length = (knobs.text_column, "text_column"), sizes["max_length"]
        size = self.size = sizes["vocabulary"]
        self.padding = tiny.PADDING
        self.library = None  # transformers' or tokenizers' own
        if knobs.model == "tiny":
            what = {"words": size, "column": text}
            numbered = cache.folder(what, lambda folder: write_words(folder, size, text))
            self.identity = ["words", size, length]
            numbers = json.loads((numbered / "words.json").read_text())
            self._encode = lambda texts: [tiny.encode(numbers, one, length) for one in texts]
        elif start:
            self.library = own = tokens.of_weights(start)
            if own.pad_token is None:  # GPT-2 has none
                own.pad_token = own.eos_token
            self.identity = ["weights", start, length]
            self.size, self.padding = len(own), own.pad_token_id
            cut = {"truncation": True, "max_length": length}
            self._encode = lambda texts: own(texts, **cut)["input_ids"]
        else:
            self.library = own = tokens.trained(cache, "bert", size, text)
            own.enable_truncation(length)
            self.identity = ["bpe", size, length]
            self.padding = own.token_to_id(tokens.PADDING)
            self._encode = lambda texts: [one.ids for one in own.encode_batch(texts)]

    def __call__(self, texts):
        """The token numbers of each text."""
        return self._encode(texts)


def write_words(folder, size, text):
    """Number the most frequent words of the training channel."""
    texts = (records.column(row, *text) for row in records.rows("train"))
    (folder / "words.json").write_text(json.dumps(tiny.build_vocabulary(texts, size)))


def collate(rows, padding, length=None):
    """Pad token numbers to ``length``, or to the longest row when it is None."""
    length = length or max(len(row) for row in rows)
    return torch.tensor([[*row.tolist(), *[padding] * (length - len(row))] for row in rows])


# ---- model --------------------------------------------------------------------------------


class Classifier(nn.Module):
    """A network that scores topics; returns the loss of a batch."""

    def __init__(self, network, padding):
        super().__init__()
        self.network, self.padding = network, padding

    def scores(self, rows):
        """One score per topic for each row of token numbers."""
        scored = self.network(rows, attention_mask=rows != self.padding)
        return getattr(scored, "logits", scored)

    def forward(self, rows, topics):
        """Cross-entropy of the rows' topics."""
        return functional.cross_entropy(self.scores(rows).float(), topics)


def build(knobs, sizes, start, tokenizer, topics):
    """The network, from weights or from its architecture."""
    if knobs.model == "tiny":
        how = {"gelu": "none", "gelu_tanh": "tanh"}[knobs.activation]
        return tiny.Encoder(
            topics, SimpleNamespace(**sizes), dropout=knobs.dropout, approximate=how
        )
    import transformers  # noqa: PLC0415 — slow to import, and the tiny model does without

    if start:
        return transformers.AutoModelForSequenceClassification.from_pretrained(
            start, num_labels=topics, pad_token_id=tokenizer.padding
        )
    config = transformers.BertConfig(
        vocab_size=sizes["vocabulary"],
        hidden_size=sizes["width"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=4 * sizes["width"],
        max_position_embeddings=max(512, sizes["max_length"]),
        hidden_act={"gelu": "gelu", "gelu_tanh": "gelu_new"}[knobs.activation],
        hidden_dropout_prob=knobs.dropout,
        attention_probs_dropout_prob=knobs.dropout,
        pad_token_id=tokenizer.padding,
        num_labels=topics,
    )
    return transformers.BertForSequenceClassification(config)


# ---- training -----------------------------------------------------------------------------


def train(job):
    """One run: the recorder times each step, the compiler is what the arm says."""
    knobs = job.settings
    sizes = weights.own(vars(knobs), OWN[knobs.model])
    start = weights.source(knobs.weights)
    processes = Processes(job)
    columns = (knobs.text_column, "text_column"), (knobs.label_column, "label_column")
    with processes.first_of_machine():
        cache = tokens.Cache(job.recorder.fingerprint["data_sha256"])
        tokenizer = Tokenizer(knobs, sizes, cache, start)
        texts = tokens.tokenised(cache, tokenizer, "train", *columns)
        held_out = tokens.tokenised(cache, tokenizer, "validation", *columns)
    names = sorted(set(texts.labels))
    labels = torch.tensor([names.index(label) for label in texts.labels])
    length = sizes["max_length"] if knobs.padding == "max_length" else None

    network = build(knobs, sizes, start, tokenizer, len(names))
    model = Classifier(network, tokenizer.padding)
    training = optimisation.Training(job, processes, model, len(texts))
    batches = training.batches(
        lambda chosen, _: (
            collate([texts[index] for index in chosen], tokenizer.padding, length),
            labels[chosen],
        )
    )
    for batch in batches:
        loss, norm = training.step(batch)
        words = int((batch[0] != tokenizer.padding).sum())
        training.end_step(loss, norm, samples=len(batch[0]), tokens=words)
    training.finish()
    if job.evaluates:
        accuracy = evaluate(job, processes, training.model, held_out, names)
        job.recorder.metric("eval_accuracy", accuracy)
        weights.save(job, training.model.network, tokenizer.library)


@torch.no_grad()
def evaluate(job, processes, model, texts, names):
    """Share of held-out texts with the right topic, by the model as written in both arms."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))  # little padding
    order = processes.part(order)
    truth = [names.index(texts.labels[i]) if texts.labels[i] in names else -1 for i in order]
    model.eval()
    right = []
    for begin in range(0, len(order), EVAL_BATCH):
        rows = [texts[index] for index in order[begin : begin + EVAL_BATCH]]
        with job.device.autocast():
            scores = model.scores(collate(rows, model.padding).to(job.device.kind))
        topics = torch.tensor(truth[begin : begin + EVAL_BATCH])
        right += (scores.argmax(-1).cpu() == topics).tolist()
    right = processes.together(right, order, len(texts))
    examples = [texts[i].tobytes() + texts.labels[i].encode() for i in range(len(texts))]
    outcomes.record("eval_accuracy", right, examples)
    return sum(right) / len(right)


def _mp_fn(index):
    """Where the managed compiler's launcher starts each of its processes."""
    run(train, KNOBS, index=index)


if __name__ == "__main__":
    run(train, KNOBS)

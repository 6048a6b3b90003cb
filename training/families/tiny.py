"""Two small models of our own, for processors: a byte-level decoder and a BERT in miniature.

The decoder's architecture is that of current models (RMSNorm before and after each block, rotary
positions, normalised queries and keys, gated tanh-GELU), the encoder's is BERT's own. Both are
written out in plain PyTorch: no fused kernel hides in the baseline, and none is taken from it
(attention is PyTorch's own fused one).
"""

import re
from collections import Counter

import torch
from torch import nn
from torch.nn import functional

BYTES = 256  # the decoder's vocabulary
PADDING, UNKNOWN, FIRST = 0, 1, 2  # the encoder's reserved word numbers


# ---- words --------------------------------------------------------------------------------


def words(text):
    """Lower-case words, numbers and single signs."""
    return re.findall(r"[a-z]+|[0-9]+|[^\sa-z0-9]", text.lower())


def build_vocabulary(texts, size):
    """Number of each of the most frequent words; ties are broken by spelling."""
    counts = Counter(word for text in texts for word in words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: FIRST + 1 + rank for rank, word in enumerate(ranked[: size - FIRST - 1])}


def encode(numbers, text, length):
    """A text as at most ``length`` word numbers, behind the token that the classifier reads."""
    return [FIRST] + [numbers.get(word, UNKNOWN) for word in words(text)[: length - 1]]


# ---- decoder ------------------------------------------------------------------------------


class Norm(nn.Module):
    """Root-mean-square normalisation with a learned scale."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        """Scale each vector to unit root mean square."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale


def rotate(x, cosine, sine):
    """Turn pairs of features by an angle that grows with the position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)


def by_head(projected, heads):
    """Queries, keys and values out of one projection, each batch x heads x length x width."""
    batch, length, width = projected.shape
    split = projected.view(batch, length, 3, heads, width // (3 * heads))
    return split.permute(2, 0, 3, 1, 4).unbind(0)


class Attention(nn.Module):
    """Causal self-attention with normalised, rotated queries and keys."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project_in = nn.Linear(width, 3 * width, bias=False)
        self.project_out = nn.Linear(width, width, bias=False)
        self.query_norm = Norm(width // heads)
        self.key_norm = Norm(width // heads)

    def forward(self, x, cosine, sine):
        """Mix each position with those before it."""
        batch, length, width = x.shape
        q, k, v = by_head(self.project_in(x), self.heads)
        q = rotate(self.query_norm(q), cosine, sine)
        k = rotate(self.key_norm(k), cosine, sine)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project_out(mixed.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    """Gated feed-forward layer, tanh-GELU gate."""

    def __init__(self, width):
        super().__init__()
        hidden = width * 8 // 3 // 16 * 16
        self.project_in = nn.Linear(width, 2 * hidden, bias=False)
        self.project_out = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        """Transform each position by itself."""
        gate, value = self.project_in(x).chunk(2, dim=-1)
        return self.project_out(functional.gelu(gate, approximate="tanh") * value)


class Block(nn.Module):
    """One layer: attention and feed-forward, each normalised before and after."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.feed_forward = FeedForward(width)
        self.norms = nn.ModuleList(Norm(width) for _ in range(4))

    def forward(self, x, cosine, sine):
        """Add what the two parts compute to the residual stream."""
        x = x + self.norms[1](self.attention(self.norms[0](x), cosine, sine))
        return x + self.norms[3](self.feed_forward(self.norms[2](x)))


class LanguageModel(nn.Module):
    """Byte-level decoder; returns the mean cross-entropy of the next byte."""

    def __init__(self, width, layers, heads, block):
        super().__init__()
        self.embedding = nn.Embedding(BYTES, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = Norm(width)
        self.head = nn.Linear(width, BYTES, bias=False)
        for module in self.modules():  # every layer starts with outputs of unit size
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
        nn.init.normal_(self.embedding.weight)
        size = width // heads
        frequency = 10000.0 ** (-torch.arange(0, size, 2) / size)
        angle = torch.arange(block)[:, None] * frequency[None]
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)

    def forward(self, inputs, targets):
        """Loss of predicting ``targets`` from ``inputs``."""
        logits = self.logits(inputs)
        return functional.cross_entropy(logits.view(-1, BYTES), targets.view(-1))

    def logits(self, inputs):
        """A score of every byte at every place."""
        x = self.embedding(inputs)
        for layer in self.layers:
            x = layer(x, self.cosine, self.sine)
        return self.head(self.norm(x))


# ---- encoder ------------------------------------------------------------------------------


class Layer(nn.Module):
    """Self-attention and feed-forward, each added and then normalised."""

    def __init__(self, width, heads, dropout, approximate):
        super().__init__()
        self.heads = heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width)
        self.feed_in = nn.Linear(width, 4 * width)
        self.feed_out = nn.Linear(4 * width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.approximate = approximate

    def forward(self, x, mask):
        """Mix each position with all that are not padding."""
        batch, length, width = x.shape
        q, k, v = by_head(self.project_in(x), self.heads)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        x = self.attention_norm(x + self.dropout(self.project_out(mixed)))
        hidden = functional.gelu(self.feed_in(x), approximate=self.approximate)
        return self.feed_norm(x + self.dropout(self.feed_out(hidden)))


class Encoder(nn.Module):
    """BERT in miniature with a pooled first token; returns one score per topic."""

    def __init__(self, topics, sizes, *, dropout, approximate):
        super().__init__()
        width = sizes.width
        self.word = nn.Embedding(sizes.vocabulary, width, padding_idx=PADDING)
        self.position = nn.Embedding(sizes.max_length, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            Layer(width, sizes.heads, dropout, approximate) for _ in range(sizes.layers)
        )
        self.pooler = nn.Linear(width, width)
        self.head = nn.Linear(width, topics)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens, attention_mask):
        """Score the topics of each row of word numbers."""
        mask = attention_mask[:, None, None, :]
        positions = self.position.weight[: tokens.shape[1]]
        x = self.dropout(self.norm(self.word(tokens) + positions))
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.dropout(torch.tanh(self.pooler(x[:, 0]))))

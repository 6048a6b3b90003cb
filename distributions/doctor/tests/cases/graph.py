"""Each found one cuts the graph, each quiet one does not: torch.compile itself is asked."""

from distributions.doctor.tests.scripts import loop, model


def switched(body: str, more: str = "") -> str:
    """A model with a switch of its constructor that is off by default."""
    switch = "def __init__(self, noisy=False):\n        super().__init__()\n"
    off = f"{switch}        self.noisy = noisy\n"
    plain = "def __init__(self):\n        super().__init__()\n"
    return model(body).replace(plain, off + more)


def unsure(body: str) -> str:
    """A model with a setting that its own file does not say."""
    return model(body).replace("self.calls = 0", "self.kind = len(type(self).__name__)")


CASES = {
    "branch-on-tensor": (
        [
            model("if y.sum() > 0:\n    y = y * 2"),
            model("while y.norm() > 1:\n    y = y / 2"),
            model("y = y * 2 if (y > -9).all() else y"),
            model("if self.sized(y):\n    y = y * 2",
                  after="\n    def sized(self, y):\n        return y.mean() > -9\n"),
        ],
        [
            model("if y.shape[0] > 2:\n    y = y * 2"),
            model("if mask is not None:\n    y = y * mask"),
            model("if mask is None and y.dim() == 2:\n    y = y * 2"),
            model("if self.training:\n    y = y * 2"),
            model("if mask and y.sum() > 0:\n    y = y * 2").replace("mask=None", "mask=False"),
            model("if self.depth is None:\n    self.depth = 2 if y.sum() > 0 else 1"),
            model("if isinstance(mask, int):\n    if mask > 9:\n        mask = None\n"
                  "elif mask is not None:\n    y = nn.functional.relu(mask)"),
            model("if self.depth > 2:\n    y = y * 2"),
            model("if scale > 0.5:\n    y = y * scale"),
            model("if isinstance(y, tuple) or len(y) > 9:\n    y = y[0]"),
            model("states = ()\nstates = states + (y,)\nif states:\n    y = states[0]"),
            model("if not self.training and y.sum() > 0:\n    y = y * 2"),
            model("if not torch.compiler.is_compiling() and y.sum() > 0:\n    y = y * 2"),
            model("y = torch.where(y > 0, y, y * 2)"),
            model("past = None\nif past is not None and y.sum() > 0:\n    y = y + past"),
            model("if self.extra:\n    y = y + self.extra")
            .replace("self.calls = 0", "self.register_buffer('extra', None)"),
            model("B, y = self.layer(y).shape[0], y\nif B > 9:\n    y = y * 2"),
            model("y, pad = self.padded(y)\nif pad > 0:\n    y = y * 2",
                  after="\n    def padded(self, y):\n        return y, y.shape[1] - 2\n"),
            model("assert y.sum() == y.sum(), 'not a number'"),
            model("if mask:\n    mask = mask.unsqueeze(1)\n    y = y + mask.mean()"),
            model("if self.training or (y > 0).any():\n    y = y * 2"),
            model("if y.type() == x.type():\n    y = y * 2"),
            model("y = self.cut(y, 9)", after="\n    def cut(self, y, most):\n"
                  "        return y if y.shape[0] <= most else y[:most.sum()]\n"),
        ],
    ),
    "fetch-in-model": (
        [
            model("y = y * y.sum().item()"),
            model("y = y + float(y.mean())"),
            model("y = y + sum(y[0].tolist())"),
            model("print(y.mean())"),
            model("labels = y\nif labels is not None:\n    y = y + labels.mean().item()"),
        ],
        [
            unsure("if self.kind > 9:\n    y = y * y.sum().item()"),
            unsure("if self.kind > 9:\n    pass\nelif self.kind > 8:\n    print(y.mean())"),
            model("y = y * y.sum()"),
            model("y = y * float(scale)"),
            model("y = y.float() * int(y.shape[0])"),
            model("y = y.cpu() + 1"),
        ],
    ),
    "changing-shape": (
        [
            model("y = y[y > 0]"),
            model("y = torch.nonzero(y)"),
            model("y = y.masked_select(y > 0)"),
            model("y = torch.where(y > 0)[0]"),
            model("y = torch.unique(y)"),
            model("y = y if mask is not None else y[y > 0]"),
        ],
        [
            model("y = y * (y > 0)"),
            model("y = y.clone()\ny[y > 0] = 0"),
            model("y = torch.where(y > 0, y, y * 2)"),
            model("y = y[:, 1:]"),
            model("y = y.masked_fill(y > 0, 0.0)"),
        ],
    ),
    "random-in-model": (
        [
            model("y = y * random.random()"),
            model("if random.random() < 0.5:\n    y = y * 2"),
            model("y = y * np.random.rand()"),
            model("if self.depth is None:\n    depth = 1\nelse:\n    y = y * random.random()"),
            switched("if not self.noisy and random.random() < 0.5:\n    y = y * 2"),
        ],
        [
            switched("if self.noisy and random.random() < 0.5:\n    y = y * 2"),
            switched("if not self.noisy or random.random() < 0.5:\n    y = y * 2"),
            switched("if self.noisy:\n    y = y * random.random()"),
            unsure("if self.kind > 9 and random.random() < 0.5:\n    y = y * 2"),
            model("y = y * torch.rand(1)"),
            model("y = nn.functional.dropout(y, 0.1)"),
        ],
    ),
    "counter-in-model": (
        [
            model("self.calls += 1\ny = y * 2"),
            model("self.seen.append(y.shape[0])"),
        ],
        [
            model("calls = 0\ncalls += 1\ny = y * calls"),
            model("seen = []\nseen.append(y)\ny = seen[0]"),
            model("y += 1"),
            loop("model.calls += 1"),
        ],
    ),
}  # fmt: skip

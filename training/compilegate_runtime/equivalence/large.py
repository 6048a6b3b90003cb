"""A model too large for a reference in double precision: its blocks, one by one.

In the job's own precision the whole model is held against single precision, which is some thousand
times as exact. In single precision, blocks are: each is compiled by itself, with the inputs that it
had and the gradients that came back to it in a step of the whole. Of blocks of one kind (a class,
the same shapes) the first and the last are looked at. What lies outside of blocks is not: the share
of the weights that are in none is said, and a share for code without weights where no whole was.
"""

from compilegate_runtime.equivalence.arithmetic import OWN, SINGLE, Arithmetic
from compilegate_runtime.equivalence.batches import leaves, mapped
from compilegate_runtime.equivalence.compare import worst
from compilegate_runtime.equivalence.parts import gradients
from compilegate_runtime.equivalence.subject import Subject
from compilegate_runtime.equivalence.unseen import Unseen
from compilegate_runtime.equivalence.weights import Weights

LARGEST = 5 * 10**8  # weights; a reference takes 16 bytes for each
OF_A_BLOCK = LARGEST // 8
BETWEEN = 0.1  # what counts for the code between blocks, which has no weights


def is_large(model):
    """Whether it is looked at block by block."""
    return weights_of(model) > LARGEST


def weights_of(module):
    """Their number."""
    return sum(one.numel() for one in module.parameters())


def by_blocks(torch, case):
    """Figures of the gradients in single precision; what was left out is raised at the end."""
    eager = Arithmetic(case, OWN, {}).eager
    kinds = {}
    for name, block in _blocks(case.subject.model):
        shapes = tuple(one.shape for one in block.parameters())
        kinds.setdefault((type(block), shapes), []).append((name, block))
    chosen = dict(one for kind in kinds.values() for one in (kind[0], kind[-1]))
    seen = sum(weights_of(block) for kind in kinds.values() for _, block in kind)
    with eager.placed():
        watched = {name: _Watched(torch, block) for name, block in chosen.items()}
        try:
            eager.gradients(case.subject.batches[0])
        finally:
            for one in watched.values():
                one.release()
    blocks = [
        figures
        for name, one in watched.items()
        for figures in _examined(torch, case, name, one)
        if figures["part"] == "gradients"
    ]
    if blocks:
        yield {**worst(blocks), "compared": sum(one["compared"] for one in blocks)}
    share = 1 - seen / weights_of(case.subject.model)
    if not case.subject.is_of_few_bits:  # otherwise the whole is compared, in the job's precision
        share = max(share, BETWEEN)
    raise Unseen("too_large", f"{len(blocks)} blocks, {len(kinds)} kinds", share)


def _blocks(module, path=""):
    """The outermost modules of few enough weights, and larger ones without parts."""
    for name, child in module.named_children():
        whole, inner = weights_of(child), list(child.children())
        if 0 < whole <= (OF_A_BLOCK if inner else LARGEST):
            yield path + name, child
        elif whole:
            yield from _blocks(child, f"{path}{name}.")


def _examined(torch, case, name, watched):
    held = watched.held()
    subject = Subject(
        held, None, [watched.gradients] * len(case.subject.batches), precision=SINGLE,
        call_with=_against, compile_anew=case.subject.compile_anew,
    )  # fmt: skip
    own = case._replace(subject=subject, weights=Weights(torch, held))
    arithmetic = Arithmetic(own, SINGLE, {})
    try:
        for figures in gradients(subject, arithmetic):
            yield {**figures, "where": f"{name}.{figures['where']}"}
    finally:
        arithmetic.compiled_anew.forget()
        own.weights.restore()


def _against(function, gradients_back):
    """A loss with these gradients of a block's outputs."""
    made = [one for one in leaves([function()]) if hasattr(one, "requires_grad")]
    pairs = zip(made, gradients_back)  # noqa: B905 - Python 3.8
    return sum((own * back).sum() for own, back in pairs if back is not None)


class _Watched:
    """What goes into a block and comes back to it, in the last call."""

    def __init__(self, torch, block):
        self._torch, self._block = torch, block
        self.inputs, self.gradients = None, []
        self._hooks = [
            block.register_forward_pre_hook(self._before, with_kwargs=True),
            block.register_forward_hook(self._after),
        ]

    def release(self):
        for hook in self._hooks:
            hook.remove()

    def held(self):
        """A module that calls the block with the inputs that it had."""
        if self.inputs is None or not any(one is not None for one in self.gradients):
            raise Unseen("too_large", f"{type(self._block).__name__} was not called in training")
        return _held(self._torch, self._block, self.inputs)

    def _before(self, _block, args, kwargs):
        self.inputs = mapped(self._torch, self._kept, [list(args), dict(kwargs)])

    def _kept(self, tensor):
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    def _after(self, _block, _args, output):
        made = [one for one in leaves([output]) if isinstance(one, self._torch.Tensor)]
        self.gradients = [None] * len(made)
        for place, one in enumerate(made):
            if one.requires_grad:
                one.register_hook(lambda back, at=place: self._keep(at, back))

    def _keep(self, place, back):
        self.gradients[place] = back.detach().clone()


def _held(torch, block, inputs):
    class Held(torch.nn.Module):
        """A block whose inputs are weights, so that their gradients are compared too."""

        def __init__(self):
            super().__init__()
            self.block, self.inputs = block, torch.nn.ParameterList()
            self.args = [self._moved(one) for one in inputs[0]]
            self.kwargs = {name: self._moved(one) for name, one in inputs[1].items()}

        def _moved(self, value):
            """(its place among the inputs, or None; the value itself where it is none of them)."""
            if not isinstance(value, torch.Tensor) or not value.requires_grad:
                return None, value
            self.inputs.append(torch.nn.Parameter(value.detach()))
            return len(self.inputs) - 1, None

        def _value(self, place, value):
            return value if place is None else self.inputs[place]

        def forward(self):
            args = [self._value(*one) for one in self.args]
            return self.block(*args, **{key: self._value(*one) for key, one in self.kwargs.items()})

    return Held()

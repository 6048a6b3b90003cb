"""The model's weights as they were, in their own type or in a wider one, and what goes with them.

In a wider type, other parameters take the places of the model's own, which stay what they are for
optimizers, hooks and compiled code. Weights that share memory, tied ones or views of one buffer,
share it in the wider type too.
"""

import contextlib

from compilegate_runtime.equivalence.attributes import Contents, is_equal, unexpanded, writing

RATE = 1e-3  # by which weights move between steps, of their length
NO_LENGTH = 1e-2  # that of weights which are all zero
ROUNDINGS = 4  # by which a variation rounds otherwise, at most
CONTAINERS = ("_parameters", "_buffers", "_modules")


class Weights:
    """Places the weights from which every side of a check begins.

    Raises Unseen where a reference cannot be made of them.
    """

    def __init__(self, torch, model):
        self._torch = torch
        self._modules = list(model.modules())
        self._own = [*model.parameters(), *model.buffers()]
        self._start = [unexpanded(one).detach().clone() for one in self._own]
        places = (*model.named_parameters(), *model.named_buffers())
        starts = {
            name: start if start.shape == own.shape else start.expand_as(own)
            for (name, own), start in zip(places, self._start)  # noqa: B905 - Python 3.8
        }
        self._beside = [(name, starts[name]) for name in names_of(model, "buffers")]
        self._gradients = [(one, one.grad, one.requires_grad) for one in model.parameters()]
        self._attributes = [dict(one.__dict__) for one in self._modules]
        self._members = [[dict(one.__dict__[name]) for name in CONTAINERS] for one in self._modules]
        inner = [
            value
            for attributes in self._attributes
            for name, value in attributes.items()
            if name not in CONTAINERS
        ]
        self._contents = Contents(torch, inner, self._own)
        self._trained = [
            (own, start)
            for own, start in zip(self._own, self._start)  # noqa: B905 - Python 3.8
            if own.requires_grad
        ]
        self._wide, self._placed = {}, {}

    @contextlib.contextmanager
    def placed(self, dtype=None):
        """The starting weights in the model, in ``dtype`` or the model's own type.

        Afterwards the model is as it was when it was given, gradients included.
        """
        self.restore()
        try:
            self._placed = {} if dtype is None else self._in_type(dtype)
            self._swap(self._placed)
            for weight, *_ in self._gradients:
                weight.grad = None
            yield
        finally:
            self._placed = {}
            self.restore()

    def move(self, number, variation=0):
        """Let weights be those of a step: the starting ones, and after the first near to them.

        They are the same numbers in every type. In a ``variation`` each is some roundings away.
        """
        torch = self._torch
        with torch.no_grad():
            for place, (own, start) in enumerate(self._trained):
                value = start
                if number:
                    length = float(start.abs().float().square().mean().sqrt()) or NO_LENGTH
                    noise = _noise(torch, start, number, place)
                    value = (start + noise * (RATE * length)).to(start.dtype)
                now = self._placed.get(id(own), own)
                if variation:
                    noise = _noise(torch, start, -variation, place)
                    epsilon = torch.finfo(now.dtype).eps
                    value = value.to(now.dtype) * (1 + ROUNDINGS * epsilon * noise)
                now.copy_(value)

    def trained(self):
        """The weights that train, as they are placed."""
        return [self._placed.get(id(own), own) for own, _ in self._trained]

    def moved(self):
        """The value of each buffer and each ``frozen`` weight, None where it is what it was."""
        model = self._modules[0]
        now = dict((*model.named_parameters(), *model.named_buffers()))
        values = [(now.get(name), start) for name, start in self._beside]
        return [
            None if one is None or is_equal(self._torch, one, start) else one
            for one, start in values
        ]

    def changes(self):
        """What has become another attribute of a module since it was placed."""
        return [
            (module, {name: value for name, value in module.__dict__.items()
                      if name not in CONTAINERS and before.get(name, self) is not value})
            for module, before in zip(self._modules, self._attributes)  # noqa: B905 - Python 3.8
        ]  # fmt: skip

    @staticmethod
    def apply(changes):
        """Make them again."""
        for module, attributes in changes:
            module.__dict__.update(attributes)

    def restore(self):
        """Make the model what it was."""
        for module, attributes, members in zip(self._modules, self._attributes, self._members):  # noqa: B905 - Python 3.8
            for name, content in zip(CONTAINERS, members):  # noqa: B905 - as above
                self._put_back(module, name, content)
            for name in [name for name in module.__dict__ if name not in attributes]:
                del module.__dict__[name]
            module.__dict__.update(attributes)
        for own, start in zip(self._own, self._start):  # noqa: B905 - as above
            with writing(self._torch, own):
                unexpanded(own).copy_(start)  # where it lies, which a captured graph knows
        for weight, gradient, trains in self._gradients:
            weight.requires_grad_(trains)
            weight.grad = gradient
        self._contents.restore()

    @staticmethod
    def _put_back(module, name, content):
        now = module.__dict__[name]
        for key in [key for key in now if key not in content]:
            del now[key]
        for key, value in content.items():
            if now.get(key) is not value:
                setattr(module, key, value)  # recurrent layers keep a list of their weights

    def _swap(self, wide):
        for module, members in zip(self._modules, self._members):  # noqa: B905 - as above
            for content in members[:2]:
                for name, tensor in content.items():
                    if id(tensor) in wide:
                        setattr(module, name, wide[id(tensor)])

    def _in_type(self, dtype):
        """Tensors of the wider type by the id of the model's own, with the starting values."""
        torch = self._torch
        floating = [
            one
            for one in self._own
            if (one.is_floating_point() or one.is_complex()) and one.layout is torch.strided
        ]
        if dtype not in self._wide:
            bases = _bases(torch, floating, dtype)
            self._wide[dtype] = {id(one): _twin(torch, one, bases, dtype) for one in floating}
        wide = self._wide[dtype]
        with torch.no_grad():
            for own in floating:
                unexpanded(wide[id(own)]).copy_(unexpanded(own))
                wide[id(own)].grad = None
                wide[id(own)].requires_grad_(own.requires_grad)
        return wide


def frozen(model):
    """(name, weight) of those that do not train, but that a step may change: an average, a teacher.

    Weights of a class of their own, such as quantised ones, are left out: they have no values to
    be compared.
    """
    return [
        (name, one)
        for name, one in model.named_parameters()
        if not one.requires_grad and one.is_floating_point() and type(one).__name__ == "Parameter"
    ]


def names_of(model, kind):
    """Names of what a step leaves of a kind, in its order."""
    if kind == "gradients":
        return [name for name, one in model.named_parameters() if one.requires_grad]
    return [name for name, _ in (*model.named_buffers(), *frozen(model))]


def _noise(torch, tensor, number, place):
    """Numbers between -1 and 1, the same ones whenever they are asked for."""
    generator = torch.Generator(tensor.device)
    generator.manual_seed((number % 1009) * 100003 + place)
    drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device)
    return drawn * 2 - 1


def _bases(torch, tensors, dtype):
    """Memory in the wider type by that which several tensors share."""
    shared = {}
    for one in tensors:
        shared.setdefault((_place(one), one.dtype), []).append(one)
    return {
        key: _whole(torch, ones[0]).to(_wider(torch, ones[0], dtype))
        for key, ones in shared.items()
        if len(ones) > 1
    }


def _place(tensor):
    return tensor.untyped_storage().data_ptr()


def _whole(torch, tensor):
    """All the memory that a tensor is a view of."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return torch.as_strided(tensor.detach(), (count,), (1,), 0)


def _wider(torch, tensor, dtype):
    """The type of these bits; complex numbers stay complex."""
    return torch.promote_types(dtype, torch.complex32) if tensor.is_complex() else dtype


def _twin(torch, own, bases, dtype):
    base = bases.get((_place(own), own.dtype))
    if base is None:
        value = own.detach().to(_wider(torch, own, dtype), copy=True)
    else:
        value = torch.as_strided(base, own.shape, own.stride(), own.storage_offset())
    if not isinstance(own, torch.nn.Parameter):
        return value
    twin = torch.nn.Parameter(value, requires_grad=own.requires_grad)
    twin.__dict__.update(own.__dict__)
    if own._backward_hooks:
        twin._backward_hooks = own._backward_hooks
    return twin

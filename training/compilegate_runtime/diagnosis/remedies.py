"""What helps against an error, tried: eager rounding, or a region that is left uncompiled."""

import contextlib

from compilegate_runtime.diagnosis.probe import of_layers

STRICT, EXCLUDE = "torch_compile_strict", "exclude"


@contextlib.contextmanager
def left_out(torch, subject, names):
    """Whatever compiles the model in this context leaves out the modules of these names.

    They run eagerly, as ``torch.compiler.disable`` makes them. The check restores the model.
    """
    original = subject.compile_anew

    def compile_anew(model):
        modules = dict(model.named_modules(remove_duplicate=False))
        for name in names:
            modules[name].forward = torch.compiler.disable(modules[name].forward)
        return original(model)

    subject.compile_anew = compile_anew
    try:
        yield
    finally:
        subject.compile_anew = original


def alike(model, path):
    """The names of the modules that are at the same place of every layer."""
    place = of_layers(path)
    return [
        name for name, _ in model.named_modules(remove_duplicate=False) if of_layers(name) == place
    ]


def region(torch, model, helps):
    """The names of the innermost modules without whose compilation the error is gone.

    ``helps(names)`` says whether it is. None where leaving out no kind of module helps.
    """
    best = None
    inside = _children(torch, model, "")
    while inside:
        better = next((names for names in inside if helps(names)), None)
        if better is None:
            break
        best, inside = better, _children(torch, model, better[0])
    return best


def _children(torch, model, path):
    """The kinds of modules right inside of one, lists of layers taken apart."""
    kinds = {}
    for name, child in model.get_submodule(path).named_children():
        full = "{}.{}".format(path, name).lstrip(".")
        if type(child).forward is torch.nn.Module.forward:  # a list of layers is never called
            kinds.update((tuple(one), one) for one in _children(torch, model, full))
        else:
            names = alike(model, full)
            kinds[tuple(names)] = names
    return list(kinds.values())

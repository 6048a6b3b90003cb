"""The repeated blocks of a deep model, which one compilation of a block can serve."""

from compilegate_runtime.errors import NotAppliedError

ALL = "auto"


def repeated_blocks(module, where=ALL):
    """Blocks that ``module`` holds in lists of equals; ``where`` names one list, or is ``auto``.

    Lists inside of a block belong to it. Raises NotAppliedError when there is none.
    """
    lists = [
        (name, blocks)
        for name, blocks in _lists(module)
        if where in (ALL, name) and len(blocks) > 1 and len(set(map(type, blocks))) == 1
    ]
    outer = [
        blocks
        for name, blocks in lists
        if not any(name.startswith(other + ".") for other, _ in lists if other != name)
    ]
    if not outer:
        raise NotAppliedError(
            f"compile_regions {where} was asked for and not applied: the model has no such list "
            "of equal blocks; name the attribute that holds them, or compile it whole"
        )
    return [block for blocks in outer for block in blocks]


def _lists(module):
    import torch  # noqa: PLC0415 — only compiled jobs pay for it

    kinds = (torch.nn.ModuleList, torch.nn.Sequential)
    for name, child in module.named_modules():
        if isinstance(child, kinds):
            yield name, list(child)

"""fp8 matrix multiplications in a model's linear layers, by torchao.

torchao swaps ``nn.Linear`` in place, keeps the weights in their own precision, and is compiled
together with the rest by torch.compile, without which it is slower than bf16. Transformer Engine
needs a model written with its own layers, so it cannot serve a script as it is. Source:
https://docs.pytorch.org/ao/stable/workflows/training.html.
"""

from compilegate_runtime.errors import NotAppliedError

# Hopper's tensor cores, and Ada's, multiply fp8; https://docs.nvidia.com/cuda/parallel-thread-execution
LOWEST_CAPABILITY = (8, 9)
MULTIPLE_OF = 16  # what fp8 matrix multiplication asks of both dimensions


def check(torch):
    """Raise NotAppliedError unless this machine can multiply fp8."""
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < LOWEST_CAPABILITY:
        raise _not_applied("it needs a GPU with fp8 tensor cores (H100, L40S or newer)")
    _torchao()


def convert(module):
    """Give ``module`` fp8 linear layers and return how many.

    Raises NotAppliedError when no layer can have them.
    """
    float8 = _torchao()
    config = float8.Float8LinearConfig.from_recipe_name("tensorwise")
    float8.convert_to_float8_training(module, config=config, module_filter_fn=_fits)
    count = sum(type(child).__name__ == "Float8Linear" for child in module.modules())
    if not count:
        raise _not_applied(f"no linear layer has both sizes a multiple of {MULTIPLE_OF}")
    return count


def _fits(module, name):  # noqa: ARG001 — torchao's signature
    """Whether fp8 multiplication can do this layer."""
    sizes = (getattr(module, "in_features", 1), getattr(module, "out_features", 1))
    return all(size % MULTIPLE_OF == 0 for size in sizes)


def _torchao():
    try:
        from torchao import float8  # noqa: PLC0415 — only jobs that ask for fp8 need it
    except ImportError as error:
        why = f"torchao is not installed ({error}); add it to requirements.txt"
        raise _not_applied(why) from error
    return float8


def _not_applied(why):
    return NotAppliedError(f"precision fp8 was requested but not applied: {why}")

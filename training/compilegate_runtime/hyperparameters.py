"""Reads SageMaker-style hyperparameters (``--key value``) over a script's own defaults."""

import argparse
import base64
import binascii

from compilegate_runtime.compilers import MODES, NAMES
from compilegate_runtime.errors import HyperparameterError

# Hyperparameters that every training script understands; a tuple lists the allowed words,
# its first one is the default.
COMMON = {
    "compiler": NAMES,
    "compile_mode": MODES,
    "compile_dynamic": ("auto", "false", "true"),  # torch.compile's dynamic: None, False, True
    "compile_optimizer": False,  # compile the optimizer's step as well
    "compile_regions": "",  # compile repeated blocks only: auto, or the name of their list
    "seed": 17,
    "arm": "baseline",
    "replicate": 0,
    "max_steps": 0,  # stop after so many steps and skip evaluation; 0 runs to the end
}

# Of values that were encoded to pass through the shell of a training container; why is said in
# compilegate/domain/argument_text.py. Text without it stands for itself.
ENCODED = "base64:"


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise HyperparameterError(message)


def parse(knobs, arguments):
    """Return a namespace of ``knobs`` overridden by ``arguments``.

    Types follow the defaults. Raises HyperparameterError naming the key and the fix.
    """
    defaults = {**COMMON, **knobs}
    parser = _Parser(add_help=False, allow_abbrev=False)
    for name, default in defaults.items():
        if isinstance(default, tuple):
            parser.add_argument("--" + name, choices=default, default=default[0])
        else:
            parser.add_argument("--" + name, type=_converter(default), default=default)
    values, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        raise HyperparameterError(
            "unknown hyperparameter {}; this script knows {}".format(
                unknown[0], ", ".join(sorted(defaults))
            )
        )
    return values


def _converter(default):
    if isinstance(default, bool):
        return _boolean
    if isinstance(default, int):
        return _whole_number
    return type(default)


def _whole_number(text):
    """Parse an integer that may have passed through JSON as 3.0."""
    number = float(text)
    if number != int(number):
        raise ValueError(text)
    return int(number)


def _boolean(text):
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return words[text.lower()]


def decoded(name, text):
    """The value of hyperparameter ``name``. Raises HyperparameterError for broken base64."""
    if not text.startswith(ENCODED):
        return text
    try:
        return base64.urlsafe_b64decode(text[len(ENCODED) :]).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise HyperparameterError(
            f"{name} is not urlsafe base64 of UTF-8 text: {text!r}"
        ) from error

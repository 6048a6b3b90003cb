"""Reads hyperparameters that were encoded to pass through the shell of a training container.

The other half is compilegate/domain/argument_text.py, which says why. Text without the prefix
stands for itself: plans made before there was an encoding hold plain JSON.
"""

import base64
import binascii

from compilegate_runtime.errors import HyperparameterError

PREFIX = "base64:"


def decoded(name, text):
    """The value of hyperparameter ``name``. Raises HyperparameterError for broken base64."""
    if not text.startswith(PREFIX):
        return text
    try:
        return base64.urlsafe_b64decode(text[len(PREFIX) :]).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise HyperparameterError(
            f"{name} is not urlsafe base64 of UTF-8 text: {text!r}"
        ) from error

"""A fault injected on purpose, which production's watch has to detect; off by default.

``INJECTED_FAULT=learning_rate:0.1`` in a job's environment lets an arm with a compiler train with
a tenth of its learning rate, as a silent bug in a compiled optimizer would. The baseline never has
it, and no job has it whose workload file does not say so under ``training.environment``.
"""

import os

from compilegate_runtime.errors import HyperparameterError

VARIABLE = "INJECTED_FAULT"
LEARNING_RATE = "learning_rate"


def learning_rate_share(compiler):
    """What is left of the learning rate: 1.0 without a fault, and without a compiler.

    Raises HyperparameterError for an unknown fault.
    """
    fault = os.environ.get(VARIABLE)
    if not fault:
        return 1.0
    name, _, amount = fault.partition(":")
    try:
        share = float(amount)
    except ValueError:
        share = -1.0
    if name != LEARNING_RATE or not 0 <= share < 1:
        raise HyperparameterError(
            "{}={!r} is not a known fault; use {}:SHARE with a share from 0 up to 1, "
            "or leave the variable out".format(VARIABLE, fault, LEARNING_RATE)
        )
    if compiler.requested == "none":
        return 1.0
    print(
        "fault injected on purpose: {} is {} of what it should be".format(name, share), flush=True
    )
    return share

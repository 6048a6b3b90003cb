"""Where a model starts from: weights that the user has, or its architecture alone."""

import os

from compilegate_runtime import environment

CHANNEL = "model"


def source(hub_name):
    """Folder or hub name of the weights to start from, None to train from scratch.

    The channel ``model`` comes first, so that weights in S3 need no other setting. Without a hub
    name nothing is looked for on the network.
    """
    if CHANNEL in environment.channels():
        return str(environment.channel(CHANNEL))
    if not hub_name:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return hub_name or None


def own(values, defaults):
    """``values`` with what is 0 replaced by the model's own."""
    return {name: values[name] or default for name, default in defaults.items()}

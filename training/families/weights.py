"""Where a model's weights come from and where trained ones go."""

import os

from compilegate_runtime import environment

from families import tokens

CHANNEL = "model"


def source(hub_name):
    """Folder or hub name of the weights to start from, None to train from scratch.

    The channel ``model`` comes first, so that weights in S3 need no other setting. Without a hub
    name nothing is searched on the network.
    """
    if CHANNEL in environment.channels():
        return str(environment.channel(CHANNEL))
    if not hub_name:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return hub_name or None


def own(values, defaults):
    """``values`` with what is 0 replaced by the model's own."""
    return {name: values[name] or default for name, default in defaults.items()}


def save(job, network, tokenizer):
    """Leave the weights, and the tokenizer if they need one, where the model artifact is made.

    Every process calls this.
    """
    folder = environment.model_folder()
    if folder is None:
        return
    if job.settings.model == "tiny":
        job.compiler.save(network.state_dict(), folder / "model.pt")
    elif not environment.rank():
        network.cpu().save_pretrained(folder)  # PyTorch/XLA's tensors have no storage to read
        tokens.save(tokenizer, folder)

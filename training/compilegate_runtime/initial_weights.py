"""A fingerprint of the weights that a run starts from, which the arms of one seed must share."""

import array
import hashlib

SAMPLED = 4096  # values of a tensor; a smaller one counts whole


class InitialWeights:
    """SHA-256 over the weights of the models that are added, before they train.

    A large tensor is told by some thousand values spread evenly over it: another seed, another
    pretrained file or a layer begun afresh changes them all, and a model of a billion weights
    takes a fraction of a second. Names are left out, so what wraps a model (torch.compile, DDP)
    does not matter; values are read as float32 on the processor, so a device does not either.
    """

    def __init__(self):
        self._digest, self._models, self._unknown = hashlib.sha256(), 0, False

    def add(self, model):
        """Count in a model's weights as they are now."""
        self._models += 1
        try:
            for weight in model.parameters():
                self._digest.update(str(tuple(weight.shape)).encode())
                self._digest.update(_sample(weight))
        except (RuntimeError, TypeError, ValueError):
            self._unknown = True  # no values yet, or of a kind that a processor cannot read

    def sha256(self):
        """The fingerprint, None without a model or where a weight could not be read."""
        return self._digest.hexdigest() if self._models and not self._unknown else None


def _sample(weight):
    flat = weight.detach().reshape(-1)
    # An odd step meets every column of a matrix whose width is a power of two.
    step = -(-flat.numel() // SAMPLED) | 1
    return array.array("f", flat[::step].float().cpu().tolist()).tobytes()

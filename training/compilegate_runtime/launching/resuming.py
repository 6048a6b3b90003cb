"""Lets a script's own checkpoints carry a stopped job on, and its evidence with them.

A script without a Trainer has to save and load its own: its evidence goes on where it loads an
optimizer's state from a checkpoint that an earlier process of the job saved.
"""

import functools
import os
from pathlib import Path

from compilegate_runtime.fingerprint import file_digest

KEY_LENGTH = 16


class OwnCheckpoints:
    """What a script saves and loads by torch.save and torch.load, in the checkpoint folder."""

    def __init__(self, torch, recorder, kept, place):
        self._torch, self._recorder, self._kept, self._place = torch, recorder, kept, place
        self._loaded = None  # the key of what was loaded last

    def install(self):
        """Watch torch.save, torch.load and the loading of optimizers."""
        torch = self._torch
        torch.save = self._saving(torch.save)
        torch.load = self._loading(torch.load)
        optimizer = torch.optim.Optimizer
        optimizer.load_state_dict = self._restoring(optimizer.load_state_dict)

    def _saving(self, original):
        @functools.wraps(original)
        def save(obj, f, *args, **kwargs):
            result = original(obj, f, *args, **kwargs)
            if self._recorder.steps_done and self._is_here(f) and _holds_optimizer(obj):
                self._kept.keep(_key(f))
            return result

        return save

    def _loading(self, original):
        @functools.wraps(original)
        def load(f, *args, **kwargs):
            result = original(f, *args, **kwargs)
            if not self._recorder.steps_done and self._is_here(f) and _holds_optimizer(result):
                self._loaded = _key(f)
            return result

        return load

    def _restoring(self, original):
        @functools.wraps(original)
        def load_state_dict(optimizer, *args, **kwargs):
            key, self._loaded = self._loaded, None
            if key:
                self._kept.go_on(key)
            return original(optimizer, *args, **kwargs)

        return load_state_dict

    def _is_here(self, file):
        return isinstance(file, (str, os.PathLike)) and self._place in Path(file).resolve().parents


def _holds_optimizer(saved):
    """Whether there is an optimizer's state in it: training can go on from nothing less."""
    if not isinstance(saved, dict):
        return False
    values = [saved, *saved.values()]
    values += [one for value in saved.values() if isinstance(value, (list, tuple)) for one in value]
    return any(isinstance(value, dict) and "param_groups" in value for value in values)


def _key(file):
    """What the file holds, whatever it is called by now."""
    return file_digest(Path(file))[:KEY_LENGTH]

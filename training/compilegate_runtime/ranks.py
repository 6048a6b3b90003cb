"""What every process of a job did, so that the first one's evidence speaks for all of them.

The processes report to each other through the store of torch.distributed. No
collective operation is added to the training; only ``decided``, ``gathered``, ``voted`` and
``all_here`` wait for another process: between steps, or before anything is compiled.
"""

import datetime
import functools
import json
import sys
import time

from compilegate_runtime import environment

FINISHED_WITHIN_SECONDS = 60.0
ASK_EVERY_SECONDS = 0.1
VOTED_WITHIN_SECONDS = 120.0
HERE_WITHIN = datetime.timedelta(minutes=10)  # the last process has written its part of a save


def leave_process_group():
    """End the group that a job has left open, once its evidence is complete.

    A gloo thread that still frees tensors while the interpreter shuts down aborts the process.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        leave = distributed.destroy_process_group
        getattr(leave, "compilegate_original", leave)()


def stay_in_process_group(distributed):
    """Let the group that a script leaves at its end live until ``leave_process_group``."""
    if not distributed.is_available():
        return
    leave, join, left = distributed.destroy_process_group, distributed.init_process_group, []

    @functools.wraps(leave)
    def destroy_process_group(group=None):
        if group in (None, distributed.group.WORLD):
            left.append(group)
        else:
            leave(group)

    @functools.wraps(join)
    def init_process_group(*args, **kwargs):
        if left:
            left.clear()
            leave()
        return join(*args, **kwargs)

    destroy_process_group.compilegate_original = leave
    distributed.destroy_process_group = destroy_process_group
    distributed.init_process_group = init_process_group


class Ranks:
    """Reports what this process did and, in the first one, reads what the others reported."""

    def __init__(self, rank=None, count=None, store=None):
        self.rank = environment.rank() if rank is None else rank
        self.count = environment.world_size() if count is None else count
        self._store = store

    def report(self, **state):
        """Say how far this process has come; without effect where the processes have no store."""
        store = self._shared() if self.count > 1 else None
        if store is not None:
            try:
                store.set(_key(self.rank), json.dumps(state))
            except (RuntimeError, OSError):
                self._store = None  # the process that keeps the store is gone

    def reports(self):
        """What each process reported last, None for those that did not."""
        states = [None] * self.count
        store = self._shared() if self.count > 1 else None
        if store is None:
            return states
        try:
            for number in range(self.count):
                if store.check([_key(number)]):
                    states[number] = json.loads(store.get(_key(number)))
        except (RuntimeError, OSError, ValueError):
            pass  # gone with its process: what was read until then stands
        return states

    def all_finished(self, within_seconds=FINISHED_WITHIN_SECONDS):
        """What each process reported, once all have finished or the time is over."""
        deadline = time.monotonic() + within_seconds
        while True:
            states = self.reports()
            waits = [s for s in states if s is None or not (s["finished"] or s["reason"])]
            alone = self.count == 1 or self._shared() is None
            if alone or not waits or time.monotonic() > deadline:
                return states
            time.sleep(ASK_EVERY_SECONDS)

    def decided(self, name, decide):
        """What ``decide()`` says in the first process, in every process; the others wait for it.

        None where the processes have no store. Raises RuntimeError when the first process is gone.
        """
        if self.count == 1:
            return decide()
        store = self._shared()
        if store is None:
            return None
        key = f"compilegate/decided/{name}"
        if self.rank:
            return json.loads(store.get(key))
        decision = decide()
        store.set(key, json.dumps(decision))
        return decision

    def all_here(self, name, within=HERE_WITHIN):
        """Say that this process has come to ``name``; in the first one, wait for the others.

        False where not all of them came.
        """
        store = self._shared() if self.count > 1 else None
        if store is None:
            return self.count == 1
        keys = [f"compilegate/here/{name}/{rank}" for rank in range(self.count)]
        try:
            store.set(keys[self.rank], "1")
            if not self.rank:
                store.wait(keys, within)
        except (RuntimeError, OSError):
            return False
        return True

    def gathered(self, name, value, within_seconds):
        """What every process says, as the first one reads it once all have; None in the others.

        None as well where not all say anything in that time.
        """
        if self.count == 1:
            return [value]
        store = self._shared()
        if store is None:
            return None
        keys = [f"compilegate/gathered/{name}/{rank}" for rank in range(self.count)]
        try:
            store.set(keys[self.rank], json.dumps(value))
            if self.rank:
                return None
            store.wait(keys, datetime.timedelta(seconds=within_seconds))
            return [json.loads(store.get(key)) for key in keys]
        except (RuntimeError, OSError):
            return None

    def voted(self, name, word, within_seconds=VOTED_WITHIN_SECONDS):
        """Each process's word, the same list in all of them; None for one that came too late.

        None where the processes have no store, or lost it. Whichever process first has all words,
        or waits no longer, writes the list down, and it stands: no two of them can act on
        different ones.
        """
        if self.count == 1:
            return [word]
        store = self._shared()
        if store is None:
            return None
        keys = [f"compilegate/voted/{name}/{rank}" for rank in range(self.count)]
        deadline = time.monotonic() + within_seconds
        try:
            store.set(keys[self.rank], json.dumps(word))
            while time.monotonic() < deadline and not all(store.check([key]) for key in keys):
                time.sleep(ASK_EVERY_SECONDS)
            words = [json.loads(store.get(key)) if store.check([key]) else None for key in keys]
            stands = store.compare_set(f"compilegate/voted/{name}", "", json.dumps(words))
            return json.loads(stands)
        except (RuntimeError, OSError):
            return None

    def _shared(self):
        if self._store is None:
            self._store = _store_of_torch()
        return self._store


def unfinished(states):
    """Why a process did not reach its end; None if all did or none reported."""
    if all(state is None for state in states):
        return None
    for number, state in enumerate(states):
        if state is None:
            return f"process {number} of {len(states)} reported nothing"
        if not state["finished"]:
            why = state["reason"] or "without a reason"
            return f"process {number} of {len(states)} stopped after step {state['steps']}: {why}"
    return None


def account(states, own):
    """The ``ranks`` part of a summary; ``own`` is what the first process did itself."""
    states = [own, *states[1:]]
    reported = [state for state in states if state is not None]
    complete = len(reported) == len(states)
    return {
        "expected": len(states),
        "reported": len(reported),
        "silent": [number for number, state in enumerate(states) if state is None],
        "steps": [None if state is None else state["steps"] for state in states],
        "samples": sum(state["samples"] for state in reported) if complete else None,
        "tokens": _total(reported, "tokens") if complete else None,
        "failed": {
            str(number): state["reason"]
            for number, state in enumerate(states)
            if state is not None and state.get("reason")
        },
    }


def _total(states, key):
    values = [state[key] for state in states]
    return None if any(value is None for value in values) else sum(values)


def _key(rank):
    return f"compilegate/rank/{rank}"


def _store_of_torch():
    """The store of the default process group, None without one.

    torch keeps it behind a private name, the same since 1.13; older ones have none to give.
    """
    try:
        from torch.distributed import distributed_c10d, is_initialized  # noqa: PLC0415 — only there

        return distributed_c10d._get_default_store() if is_initialized() else None
    except (ImportError, AttributeError, RuntimeError):
        return None

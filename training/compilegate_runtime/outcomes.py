"""Outcomes per example of a final evaluation: one bit or one loss each, packed into the summary.

    from compilegate_runtime import outcomes

    outcomes.record("eval_accuracy", predicted == labels, examples=texts)

A metric that is a mean over held-out examples varies with the choice of examples; their outcomes
tell how much. A run keeps at most 512 bytes of bits (4,096 examples) or 1,024 bytes of losses (512
examples, as float16) for each of four metrics. Of more examples the same ones are kept in every
run: those with the smallest digests. The set's identity is the digest of all of its examples, in
whatever order they come.
"""

import base64
import collections
import hashlib
import math
import struct

from compilegate_runtime.progress import write_line

BITS, LOSSES = "bits", "losses"
BOUNDS = {BITS: 4096, LOSSES: 512}
MOST_METRICS = 4
LARGEST = 65504.0  # of a float16

_recorders = []  # the one of this process's run, if it is being recorded


def opened(recorder):
    """From here on the run of ``recorder`` gets what is recorded."""
    _recorders[:] = [recorder]


def closed():
    """No run is being recorded any more."""
    _recorders.clear()


def record(metric, outcomes, examples, per_outcome=1, mean=None):
    """Keep the outcomes behind the metric of that name; without a run to record, do nothing.

    ``outcomes``: right or wrong, or a loss, of each example, as a list or a tensor. ``examples``
    identifies them in the same order: texts, numbers, rows of a tensor. A later call for the same
    metric counts instead. What cannot be kept is said and ends no run.
    """
    for recorder in _recorders:
        try:
            recorder.outcomes(metric, packed(outcomes, examples, per_outcome, mean))
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            write_line(f"compilegate outcomes={metric} kept=no reason={error}")


def packed(outcomes, examples, per_outcome=1, mean=None):
    """The outcomes as the summary has them; raises ValueError for what are none."""
    values, identities = [float(value) for value in plain(outcomes)], digests(plain(examples))
    count = len(values)
    if count != len(identities):
        raise ValueError(f"{count} outcomes of {len(identities)} examples")
    if count <= 1 or not all(map(math.isfinite, values)):
        raise ValueError("at least two finite outcomes are needed")
    kind = BITS if set(values) <= {0.0, 1.0} else LOSSES
    chosen = sorted(range(count), key=identities.__getitem__)[: BOUNDS[kind]]
    kept = [values[index] for index in chosen]
    return {
        "kind": kind,
        "examples": count,
        "per_outcome": per_outcome,
        "set_sha256": hashlib.sha256(b"".join(sorted(identities))).hexdigest(),
        "mean": math.fsum(values) / count if mean is None else float(mean),
        "data": base64.b64encode(_bits(kept) if kind == BITS else _losses(kept)).decode(),
    }


def digests(examples):
    """A digest of each example; equal examples differ by how often they came before."""
    seen, made = collections.Counter(), []
    for example in examples:
        own = hashlib.sha256(_bytes(example)).digest()
        made.append(hashlib.sha256(own + seen[own].to_bytes(8, "big")).digest())
        seen[own] += 1
    return made


def plain(values):
    """Python's own values of a tensor or an array."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _bytes(example):
    if isinstance(example, bytes):
        return example
    if isinstance(example, str):
        return example.encode()
    return repr(example.tolist() if hasattr(example, "tolist") else example).encode()


def _bits(values):
    text = "".join("1" if value else "0" for value in values)
    text += "0" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big")


def _losses(values):
    clipped = [max(-LARGEST, min(LARGEST, value)) for value in values]
    return struct.pack("<{}e".format(len(clipped)), *clipped)

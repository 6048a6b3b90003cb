"""The flag that production training reads (docs/contracts.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError
from compilegate.domain.expected import Form
from compilegate.domain.fields import Fields
from compilegate.domain.outside import once

STATES = ("off", "probation", "permanent", "reverted", "stale")
# States in which a flag is never on: one that is on nevertheless was written by no deployment.
NEVER_ON = ("off", "reverted")
MAX_BYTES = 4096
FIX = "set it through compilegate"
DIGEST = Form(re.compile("[0-9a-f]{64}"), "is no SHA-256 in hexadecimal digits", FIX)
OVERRIDE_KEYS = (
    "compiler", "compile_mode", "batch_size", "learning_rate", "precision", "instance_type",
    "instance_count", "distribution", "entry_point", "hyperparameters", "framework",
)  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """One candidate of a stack: the decision that put it on, and how many times faster it made it.

    What it gained is against what was on before, as that trial measured it.
    """

    candidate: str
    decision_id: str
    speedup: float


@dataclass(frozen=True)
class CompileBundle:
    """Code that a run of the candidate compiled in the trial: its manifest's key, and its digest.

    Production restores exactly this one (training/compilegate_runtime/compile_bundle.py).
    """

    place: str
    sha256: str


@dataclass(frozen=True)
class Flag:
    """Whether production trains with a candidate's overrides; ``since`` is UTC, ISO 8601.

    ``holdback`` is the share of a team's jobs that stay on the baseline once it is permanent, None
    where an earlier release has written the flag. ``layers`` are what a stack (planning/plan.py)
    consists of, the bottom first; ``overrides`` are all of theirs together. It is empty where one
    candidate alone is on. ``compile_bundle`` is there where the trial recorded one.
    """

    enabled: bool
    state: str
    candidate: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    decision_id: str | None = None
    since: str | None = None
    holdback: float | None = None
    layers: tuple[Layer, ...] = ()
    compile_bundle: CompileBundle | None = None

    def to_json(self) -> str:
        """The parameter's value; raises InvalidInputError above 4 KB.

        Where there is no room for the compile bundle, it is left out.
        """
        document = {"schema": 1, **asdict(self)}
        if self.holdback is None:
            del document["holdback"]
        for name in ("layers", "compile_bundle"):
            if not document[name]:
                del document[name]
        text = json.dumps(document, sort_keys=True)
        if len(text.encode()) > MAX_BYTES:
            if self.compile_bundle:
                return replace(self, compile_bundle=None).to_json()
            raise InvalidInputError(
                f"is larger than {MAX_BYTES} bytes", field="overrides", fix="change fewer keys"
            )
        return text


OFF = Flag(enabled=False, state="off")


def parse_flag(text: str | None) -> Flag:
    """Read a parameter's value; absent is off. Raises InvalidInputError when malformed."""
    if text is None:
        return OFF
    try:
        fields = Fields(json.loads(text, object_pairs_hook=once), "flag")
    except InvalidEvidenceError as error:
        raise InvalidInputError(f"cannot be followed: {error}", field="flag", fix=FIX) from error
    except (ValueError, RecursionError) as error:  # RecursionError: brackets within brackets
        raise InvalidInputError("is not JSON", field="flag", value=text, fix=FIX) from error
    if fields.integer("schema", "schema version") != 1:
        raise fields.wrong("schema", "is a version this release cannot read", "update compilegate")
    enabled, state = fields.flag("enabled"), fields.choice("state", STATES)
    if enabled and state in NEVER_ON:
        raise fields.wrong("state", "is of a flag that is off, and it is on", FIX)
    bundle = fields.optional_section("compile_bundle")
    return Flag(
        enabled=enabled,
        state=state,
        candidate=fields.text("candidate", None),
        overrides=fields.mapping("overrides", nested=True),
        decision_id=fields.text("decision_id", None),
        since=fields.text("since", None),
        holdback=fields.number("holdback", "share of 1", low=0, high=1, default=None),
        layers=tuple(
            Layer(
                candidate=layer.text("candidate"),
                decision_id=layer.text("decision_id"),
                speedup=layer.number("speedup", "times what was on", above=0.0),
            )
            for layer in fields.sections("layers")
        ),
        compile_bundle=CompileBundle(
            place=bundle.text("place"), sha256=bundle.text("sha256", form=DIGEST)
        )
        if bundle
        else None,
    )

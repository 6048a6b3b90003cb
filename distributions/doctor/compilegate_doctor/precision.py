"""In which precision a script computes, where its code says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilegate_doctor.script import Script
from compilegate_doctor.syntax import called, keyword, last_name

# How scripts spell a precision.
SPELLED = {
    "fp32": ("fp32", "float32", "32", "32-true", "no", "full", "single"),
    "bf16": ("bf16", "bfloat16", "bf16-mixed", "bf16_mixed", "amp_bf16"),
    "fp16": ("fp16", "float16", "half", "16-mixed", "16", "amp_fp16"),
}
# Which keyword of what says it by name: accelerate, Lightning.
NAMED = {"Accelerator": "mixed_precision", "Trainer": "precision", "Fabric": "precision"}
# Switches of transformers' TrainingArguments and of the configurations that trl derives from it.
SWITCHES, SWITCHED = ("bf16", "fp16"), ("TrainingArguments", "Config")


def precision_of(script: Script) -> str | None:
    """The precision that the script always computes in, None where it does not say one."""
    return next(_said(script), None)


def _said(script: Script) -> Iterator[str]:
    for call in script.calls:
        words: list[Any] = []
        name = called(call)
        if name == "autocast" and not any(word.arg == "enabled" for word in call.keywords):
            words = [last_name(word.value) for word in call.keywords if word.arg == "dtype"]
            words += [last_name(item) for item in call.args]
        elif name in NAMED:
            words = [script.options.value(keyword(call, NAMED[name]))]
        elif name.endswith(SWITCHED):
            words = [word for word in SWITCHES if script.options.value(keyword(call, word)) is True]
        for precision, spelled in SPELLED.items():
            if any(str(word).lower() in spelled for word in words):
                yield precision

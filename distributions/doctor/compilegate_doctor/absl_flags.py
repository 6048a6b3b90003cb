"""Flags that absl reads: ``flags.DEFINE_integer("batch_size", 32, "…")``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate_doctor.argument import Option, is_unread, value_of, words_of
from compilegate_doctor.source import Source
from compilegate_doctor.syntax import argument, called, constant, keyword

ABSL = "absl"
DEFINES = "DEFINE_"
# Which define something else than one value of the program's own.
NO_FLAGS = ("DEFINE_alias", "DEFINE_flag", "DEFINE_multi_flag")
MARKS = ("mark_flag_as_required", "mark_flags_as_required")


def of_absl(source: Source) -> Iterator[Option]:
    """The flags that a file defines (https://abseil.io/docs/python/guides/flags)."""
    required = set(_required(source))
    for call in source.calls:
        if not called(call).startswith(DEFINES) or called(call) in NO_FLAGS:
            continue
        name = constant(argument(call, 0, "name"))
        if isinstance(name, str):
            default = argument(call, 1, "default")
            yield Option(
                name=name,
                default=value_of(default),
                unread=is_unread(default),
                required=name in required or constant(keyword(call, "required")) is True,
                choices=words_of(argument(call, 2, "enum_values"))
                if called(call) == "DEFINE_enum"
                else (),
            )


def _required(source: Source) -> Iterator[str]:
    for call in source.calls:
        if called(call) in MARKS and call.args:
            for node in ast.walk(call.args[0]):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value

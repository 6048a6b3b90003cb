"""What is declared of each key of a document, and what was wrong with the document that was read.

A key is declared once, as the field of a dataclass: the field's type says how the key is read, its
default whether it may be absent, and ``key`` says the rest.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, replace
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from compilegate.domain.errors import InvalidInputError, together

# Stands for the default of a key that must be there.
REQUIRED = object()
# A key, or an item of one; what is wrong with it, and the fix.
Problem = tuple[str, str, str]
# Apart from the codec's "key": a section is stored under the names of its fields.
_KEY = "declared"


@dataclass(frozen=True)
class Form:
    """What all of a text must look like; ``longest`` is in characters."""

    pattern: re.Pattern[str]
    problem: str
    fix: str
    longest: int | None = None

    def problem_of(self, text: str) -> tuple[str, str] | None:
        """What is wrong with a text, and the fix; None for a sound one."""
        fits = self.longest is None or len(text) <= self.longest
        return None if fits and self.pattern.fullmatch(text) else (self.problem, self.fix)


@dataclass(frozen=True)
class Key:
    """One key of a document; ``about`` says what it means.

    Bounds are in ``unit``; ``above`` is one that is not allowed itself. ``form`` is of a text or
    of each of several, ``example`` an item of a mapping as people write it; ``check`` finds what is
    wrong with items of a mapping. ``kind``, ``default`` and, of a section, its dataclass ``inner``
    are those of the field. ``formerly`` is a name that is refused with the present one.
    """

    about: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf
    allowed: tuple[str, ...] = ()
    form: Form | None = None
    example: str = ""
    check: Callable[[Any], Iterable[Problem]] | None = None
    kind: str = ""
    default: object = REQUIRED
    inner: Any = None
    formerly: str = ""


class Section:
    """A mapping of a document as a dataclass, whose fields are the keys."""

    @classmethod
    @cache
    def keys(cls) -> Mapping[str, Key]:
        """Every key by its name, in the order in which they are read."""
        hints = get_type_hints(cls)
        declared = dataclasses.fields(cls)  # type: ignore[arg-type]  # of subclasses alone
        return {one.name: _complete(one, hints[one.name]) for one in declared}

    def problems(self) -> Iterable[Problem]:
        """What is wrong although each key is sound by itself."""
        return ()


def key(
    key: str | Key, unit: str = "", *, default: Any = MISSING, factory: Any = MISSING, **rules: Any
) -> Any:
    """A dataclass's field that is a key: a ``Key``, or what one is made of."""
    declared = key if isinstance(key, Key) else Key(key, unit, **rules)
    return field(default=default, default_factory=factory, metadata={_KEY: declared})


_KINDS = {
    str: "text", float: "number", int: "integer", bool: "flag", tuple[float, ...]: "numbers",
    tuple[str, ...]: "texts", Mapping[str, Any]: "mapping", Mapping[str, str]: "words",
    Mapping[str, float]: "figures",
}  # fmt: skip


def _complete(declared: dataclasses.Field[Any], hint: Any) -> Key:
    default = declared.default
    if default is MISSING:
        factory = declared.default_factory
        default = REQUIRED if factory is MISSING else factory()
    completed: Key = replace(declared.metadata[_KEY], default=default)
    if isinstance(hint, UnionType):  # of something and None
        hint = get_args(hint)[0]
    inner = get_args(hint)[0] if get_origin(hint) is tuple else hint
    if dataclasses.is_dataclass(inner):
        return replace(completed, kind="section" if inner is hint else "sections", inner=inner)
    return replace(completed, kind="choice" if completed.allowed else _KINDS[hint])


@dataclass
class Reading:
    """``errors`` are all that is wrong with one document."""

    errors: list[InvalidInputError] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Go on after the block where it raises InvalidInputError, which counts."""
        try:
            yield
        except InvalidInputError as error:
            self.errors.extend(error.each)

    def end(self) -> None:
        """Raise InvalidInputError with everything that is wrong, if anything is."""
        if self.errors:
            raise together(self.errors)

"""Reads values out of a parsed document and rejects what does not belong.

Every error names the field by its dotted path, the value and the fix. The first one is raised,
unless a Reading collects them: then reading goes on, and what was wrong is read as None.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import REQUIRED, Form, Key, Reading, Section

S = TypeVar("S", bound=Section)
# No quantity of a training job comes near; above it, sums and squares start to overflow.
LARGEST = 1e15
# The longest text that means anything to SageMaker is an S3 URI of this many characters.
LONGEST_TEXT = 1024
# Most readers of JSON keep whole numbers up to here only.
LARGEST_WHOLE = 2**64


class Fields:
    """One mapping of a document; call ``done()`` once every expected key was read."""

    def __init__(self, value: object, path: str = "", reading: Reading | None = None) -> None:
        self._path, self._reading, self._sound = path, reading, True
        self._read: list[str] = []
        self._renamed: dict[str, str] = {}
        if not isinstance(value, Mapping):
            if value is not REQUIRED:  # a section that is missing has been noted
                self._note(
                    InvalidInputError(
                        "must be a mapping of keys to values",
                        field=path or "document",
                        value=value,
                        fix="write it as `key: value` lines",
                    )
                )
            value, self._reading, self._sound = {}, Reading(), False
        self._data: Mapping[Any, Any] = value

    def path(self, key: str) -> str:
        """Dotted path of a key, as shown in errors."""
        key = key or "''"
        return f"{self._path}.{key}" if self._path else key

    def _get(self, key: str, default: object) -> Any:
        self._read.append(key)
        value = self._data.get(key, REQUIRED)
        if value is REQUIRED or (value is None and default is not REQUIRED):
            if default is REQUIRED:
                fix = f"add `{key}:` with a value"
                self._note(InvalidInputError("is missing", field=self.path(key), fix=fix))
            return default
        return value

    def text(self, key: str, default: Any = REQUIRED, *, form: Form | None = None) -> Any:
        """A string; numbers that YAML read as such are refused, because 2.10 is not 2.1."""
        value = self._get(key, default)
        if value is default:
            return value
        if not isinstance(value, str):
            fix = f'put it in quotes: {key}: "…"'
            return self.refuse(key, "must be text", fix)
        problem = _not_plain_text(value) or (form.problem_of(value) if form else None)
        return self.refuse(key, *problem) if problem else value

    def choice(self, key: str, allowed: Sequence[str], default: Any = REQUIRED) -> Any:
        """One of a closed set of words."""
        value = self._get(key, default)
        if value is default or value in allowed:
            return value
        near = _nearest(value, allowed)
        hint = f"did you mean {near}? " if near else ""
        return self.refuse(key, "is not a valid value", f"{hint}use one of {', '.join(allowed)}")

    def number(
        self,
        key: str,
        unit: str,
        *,
        low: float = -math.inf,
        high: float = math.inf,
        above: float = -math.inf,
        default: Any = REQUIRED,
    ) -> Any:
        """A finite number in ``unit`` with ``low <= value <= high`` and ``value > above``."""
        value = self._get(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self.refuse(
                key, "must be a number", f"write the number only; the unit is {unit}"
            )
        if not abs(value) <= LARGEST or value < low or value > high or value <= above:
            bounds = [f"above {above:g}"] if above > -math.inf else []
            bounds += [f"at least {low:g}"] if low > -math.inf else []
            bounds += [f"at most {min(high, LARGEST):g}"]
            return self.refuse(key, f"is out of range for {unit}", "use " + ", ".join(bounds))
        return float(value)

    def integer(
        self,
        key: str,
        unit: str,
        *,
        low: float = 0,
        high: float = 10**9,
        default: Any = REQUIRED,
    ) -> Any:
        """A whole number in ``unit`` within bounds."""
        value = self._get(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            example = f"for example {key}: {max(low, 1)}"
            return self.refuse(key, f"must be a whole number ({unit})", example)
        if not low <= value <= high:
            return self.refuse(key, f"is out of range for {unit}", f"use {low} to {high}")
        return value

    def flag(self, key: str, default: Any = REQUIRED) -> Any:
        """True or false."""
        value = self._get(key, default)
        if value is default or isinstance(value, bool):
            return value
        return self.refuse(key, "must be true or false", f"write {key}: true or {key}: false")

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of finite numbers, empty when absent."""
        values = self._get(key, ())
        if not isinstance(values, Sequence) or isinstance(values, str):
            fix = f"for example {key}: [0.91, 0.92]"
            self.refuse(key, "must be a list of numbers", fix)
            return ()
        for value in values:
            # Evidence brings step times by the million: the common case is decided first.
            if type(value) is float and -LARGEST <= value <= LARGEST:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                fix = "remove what is not a number"
                self.refuse(key, "must contain only numbers", fix)
                return ()
            if not abs(value) <= LARGEST:
                self.refuse(key, "must contain only finite numbers", "remove it")
                return ()
        return tuple(map(float, values))

    def texts(self, key: str, *, form: Form | None = None) -> tuple[str, ...]:
        """A list of strings, empty when absent; the problem of ``form`` follows the wrong item."""
        values = self._get(key, ())
        if isinstance(values, str) or not isinstance(values, Sequence):
            self.refuse(key, "must be a list", f'for example {key}: ["a", "b"]')
            return ()
        if not all(isinstance(value, str) and value for value in values):
            self.refuse(key, "must contain only text", "put each item in quotes")
            return ()
        for value in values:
            if form and not form.pattern.fullmatch(value):
                self.refuse(key, f"holds {value!r}{form.problem}", form.fix)
        return tuple(values)

    def mapping(self, key: str, *, nested: bool = False) -> dict[str, Any]:
        """A mapping with text keys and plain values, empty when absent.

        ``nested`` lets a value be such a mapping itself.
        """
        value = self._get(key, {})
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            self.refuse(key, "must map names to values", f"for example {key}: {{epochs: 3}}")
            return {}
        sound = {}
        for name, item in value.items():
            if nested and isinstance(item, Mapping):
                Fields(value, self.path(key), self._reading).mapping(name)
            elif not isinstance(item, str | int | float | bool) or not _is_sound(item):
                fix = "use text, a number, or true/false"
                self.refuse_item(key, name, "must be one plain value", fix)
                continue
            sound[name] = item
        return sound

    def words(self, key: str, example: str) -> dict[str, str]:
        """A mapping of names to text, empty when absent; of numbers only whole ones are text too.

        What YAML reads as 1.1 or true may have been written 1.10 or yes.
        """
        sound = {}
        for name, item in self.mapping(key).items():
            problem = _not_plain_text(str(item), least=0)
            if not isinstance(item, str | int) or isinstance(item, bool):
                self.refuse_item(key, name, "must be text", f'put it in quotes: {name}: "…"')
            elif problem or not name:
                problem = problem or ("has no name", f"write {example}")
                self.refuse_item(key, name, *problem)
            else:
                sound[name] = str(item)
        return sound

    def section(self, key: str) -> Fields:
        """A nested mapping that must be there."""
        return Fields(self._get(key, REQUIRED), self.path(key), self._reading)

    def optional_section(self, key: str) -> Fields | None:
        """A nested mapping, or None when absent."""
        value = self._get(key, None)
        return None if value is None else Fields(value, self.path(key), self._reading)

    def sections(self, key: str) -> Iterator[Fields]:
        """The items of a list of mappings, nothing when absent."""
        values = self._get(key, ())
        if not isinstance(values, Sequence) or isinstance(values, str):
            self.refuse(key, "must be a list", f"start each item of {key} with `- `")
            return
        for index, value in enumerate(values):
            yield Fields(value, self.path(f"{key}[{index}]"), self._reading)

    def read(self, section: type[S]) -> S:
        """This mapping, and nothing else in it, as a section whose own rules hold."""
        value = self.values(section)
        if self.done():
            for key, problem, fix in value.problems():
                self.refuse(key, problem, fix)
        return value

    def values(self, section: type[S]) -> S:
        """The keys of a section; there may be others beside them."""
        return section(**{name: self.value(name, key) for name, key in section.keys().items()})

    def value(self, name: str, key: Key) -> Any:
        """What stands under a key, as it is declared; a tuple for several sections."""
        if key.formerly:
            self._renamed[key.formerly] = name
        if key.kind == "sections":
            return tuple(item.read(key.inner) for item in self.sections(name))
        if key.kind == "section":
            absent = key.default is not REQUIRED and self._get(name, None) is None
            return key.default if absent else self.section(name).read(key.inner)
        value = self._plain_value(name, key)
        if key.check and value:
            for item, problem, fix in key.check(value):
                self.refuse_item(name, item, problem, fix)
        return value

    def _plain_value(self, name: str, key: Key) -> Any:
        value: Any
        match key.kind:
            case "text":
                value = self.text(name, key.default, form=key.form)
            case "choice":
                value = self.choice(name, key.allowed, key.default)
            case "number":
                bounds = {"low": key.low, "high": key.high, "above": key.above}
                value = self.number(name, key.unit, **bounds, default=key.default)
            case "integer":
                bounds = {"low": key.low, "high": key.high}
                value = self.integer(name, key.unit, **bounds, default=key.default)
            case "flag":
                value = self.flag(name, key.default)
            case "numbers":
                value = self.numbers(name)
            case "texts":
                value = self.texts(name, form=key.form)
            case "words":
                value = self.words(name, key.example)
            case "figures":
                items = self.mapping(name).items()
                value = {item: float(one) if type(one) is int else one for item, one in items}
            case _:
                value = self.mapping(name)
        return value

    @property
    def record(self) -> Mapping[str, Any]:
        """The mapping itself, of a document that may hold more than is read."""
        return self._data

    def wrong(self, key: str, problem: str, fix: str) -> InvalidInputError:
        """The error for a key of this mapping, with its value."""
        return InvalidInputError(problem, field=self.path(key), value=self._data.get(key), fix=fix)

    def refuse(self, key: str, problem: str, fix: str) -> Any:
        """Raise the error for a key of this mapping; where errors are collected, return None."""
        return self._note(self.wrong(key, problem, fix))

    def refuse_item(self, key: str, name: str, problem: str, fix: str) -> Any:
        """As ``refuse``, for an item of a mapping."""
        value, field = self._data[key][name], self.path(f"{key}.{name}")
        return self._note(InvalidInputError(problem, field=field, value=value, fix=fix))

    def _note(self, error: InvalidInputError) -> None:
        if self._reading is None:
            raise error
        self._reading.errors.append(error)
        self._sound = False

    def done(self) -> bool:
        """Refuse keys that were not read; whether nothing in this mapping was refused."""
        for key in self._data:
            if key not in self._read:
                near = self._renamed.get(key) or _nearest(key, self._read)
                fix = f"did you mean `{near}`?" if near else "remove it."
                keys = ", ".join(sorted(set(self._read)))
                self._note(
                    InvalidInputError(
                        "is not a known key",
                        field=self.path(str(key)),
                        value=self._data[key],
                        fix=f"{fix} Known keys here: {keys}",
                    )
                )
        return self._sound


def _not_plain_text(value: str, *, least: int = 1) -> tuple[str, str] | None:
    """What is wrong with a text, and the fix."""
    if len(value) < least:
        return "is empty", "write what it should be, or leave the key out if it is optional"
    if len(value) > LONGEST_TEXT:
        return f"has {len(value):,} characters", f"write at most {LONGEST_TEXT:,}"
    if not value.isprintable():
        return "has line breaks or control characters", "write it on one line, without them"
    return None


def _is_sound(value: float | str) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) or abs(value) <= LARGEST_WHOLE


def _nearest(value: object, allowed: Sequence[str]) -> str | None:
    """The word that was probably meant; None for long text, where the search would be slow."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return None
    return next(iter(difflib.get_close_matches(value, allowed, n=1)), None)

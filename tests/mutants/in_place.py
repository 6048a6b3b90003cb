"""Puts a mutant in the place of its module, in a process that is thrown away afterwards.

In a process that has imported everything, functions get the code of the mutant's, and names the
values of its constants: that takes no time, but does not reach what was made of either before. Else
the module is still to be imported, and the mutant is what is found.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

PLAIN = (bool, int, float, str, tuple, list, dict, set, frozenset, type(None))
Live = Mapping[tuple[str, int], Sequence[FunctionType]]


class Done(Enum):
    """How much of a mutant a process has."""

    NOTHING, IN_PART, WHOLE = range(3)


def live_functions(path: str) -> Live:
    """The functions of a file that this process has made, by their name and line."""
    live: dict[tuple[str, int], list[FunctionType]] = {}
    for function in gc.get_objects():
        # Not isinstance: it asks a proxy of what is gone for its class, which raises.
        if type(function) is FunctionType and function.__code__.co_filename == path:
            code = function.__code__
            live.setdefault((code.co_qualname, code.co_firstlineno), []).append(function)
    return live


def swap(path: str, original: str, mutated: str, live: Live) -> Done:
    """Puts the mistake into this process; where it is outside functions, as far as it goes."""
    pairs = _functions(compile(original, path, "exec"), compile(mutated, path, "exec"))
    if pairs is None:
        return Done.IN_PART if _put_values(path, mutated) else Done.NOTHING
    changed = [
        (function, new)
        for old, new in pairs
        for function in live.get((old.co_qualname, old.co_firstlineno), ())
        if old != new and function.__code__.co_freevars == new.co_freevars
    ]
    for function, new in changed:
        function.__code__ = new
    return Done.WHOLE if changed else Done.NOTHING


@contextmanager
def swapped(path: str, original: str, mutated: str, live: Live) -> Iterator[Done]:
    """The mistake for as long as this lasts."""
    before = [(one, one.__code__) for functions in live.values() for one in functions]
    done = swap(path, original, mutated, live)
    try:
        yield done
    finally:
        for function, code in before:
            if function.__code__ is not code:
                function.__code__ = code
        if done is Done.IN_PART:
            _put_values(path, original)


def caches() -> list[Any]:
    """The functions, ours and the tests', that remember earlier calls."""
    ours, kind = ("compilegate", "tests"), type(cache(swap))
    return [
        one for one in gc.get_objects()
        if type(one) is kind and str(one.__module__).startswith(ours)
    ]  # fmt: skip


def _put_values(path: str, mutated: str) -> bool:
    """Whether a constant, a default or a class's plain attribute has its mutated value now."""
    (module,) = (m for m in sys.modules.values() if getattr(m, "__file__", None) == path)
    again = ModuleType(module.__name__)
    again.__dict__.update(__file__=path, __package__=module.__package__)
    sys.modules[module.__name__] = again  # a dataclass looks its module up
    exec(compile(mutated, path, "exec", dont_inherit=True), again.__dict__)
    sys.modules[module.__name__] = module
    ours = [m for name, m in sys.modules.items() if name.startswith(("compilegate", "tests"))]
    put = False
    for name, new in vars(again).items():
        old = vars(module).get(name)
        if isinstance(new, PLAIN) and type(new) is type(old) and new != old:
            for other in ours:
                if vars(other).get(name) is old:
                    setattr(other, name, new)
            put = True
        elif isinstance(new, type) and new.__module__ == module.__name__ and type(old) is type:
            for attribute, value in vars(new).items():
                if attribute in {"__dataclass_fields__", "__annotations__"}:
                    continue
                before = vars(old).get(attribute)
                if isinstance(value, PLAIN) and type(before) is type(value) and value != before:
                    setattr(old, attribute, value)
                    put = True
                put |= _put_defaults(before, value)
        else:
            put |= _put_defaults(old, new)
    return put


def _put_defaults(old: object, new: object) -> bool:
    if not isinstance(old, FunctionType) or not isinstance(new, FunctionType):
        return False
    before = (old.__defaults__, old.__kwdefaults__)
    plain = [*(new.__defaults__ or ()), *(new.__kwdefaults__ or {}).values()]
    if before == (new.__defaults__, new.__kwdefaults__) or not all(
        isinstance(one, PLAIN) for one in plain
    ):
        return False
    old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return True


def _functions(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """The functions of two modules or classes in pairs; None where more than they differs."""
    if _without_inner(old) != _without_inner(new):
        return None
    pairs: list[tuple[CodeType, CodeType]] = []
    for one, other in zip(_inner(old), _inner(new), strict=True):
        if _is_function(one):
            pairs += _with_inner(one, other)
        elif (inside := _functions(one, other)) is not None:
            pairs += inside
        else:
            return None
    return pairs


def _with_inner(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]]:
    """A function's pair, and those of the functions in it: a process may have made them before."""
    both = list(_inner(old)), list(_inner(new))
    pairs = zip(*both, strict=True) if len(both[0]) == len(both[1]) else ()
    return [(old, new), *(pair for one, other in pairs for pair in _with_inner(one, other))]


def _is_function(code: CodeType) -> bool:
    return "__module__" not in code.co_names or "__qualname__" not in code.co_names


def _inner(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def _without_inner(code: CodeType) -> CodeType:
    """What a module or class does itself, wherever in a line its functions end."""
    constants = (0 if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_consts=tuple(constants), co_linetable=b"")


class Mutated(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds the mutant where the module is imported."""

    def __init__(self, module: str, path: str, source: str) -> None:
        super().__init__(module, path)
        self.source = source

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        package = [str(Path(self.path).parent)] if self.path.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=package
        )

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)

    def install(self) -> None:
        assert self.name not in sys.modules, f"{self.name} is imported already"
        sys.meta_path.insert(0, self)

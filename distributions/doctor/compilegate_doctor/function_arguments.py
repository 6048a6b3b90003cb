"""Arguments that click, typer and fire take from a function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from compilegate_doctor.argument import (
    Option,
    is_unread,
    literal_words,
    value_of,
    words_of,
)
from compilegate_doctor.source import Source
from compilegate_doctor.syntax import (
    Function,
    argument,
    called,
    constant,
    dotted,
    keyword,
    last_name,
    with_defaults,
)

CLICK, TYPER, FIRE = "click", "typer", "fire"
FUNCTION_READERS = (CLICK, "rich_click", TYPER, FIRE)
# What makes of an option's default another value, or asks for one.
CHANGES = frozenset((
    "callback", "prompt", "flag_value", "count", "multiple", "nargs", "parser", "click_type", "cls",
    None,
))  # fmt: skip
# What gives a function, or a program of several, to typer or fire.
STARTERS = {"typer.run": TYPER, "fire.Fire": FIRE}


@dataclass(frozen=True)
class Taken:
    """What a function takes; ``command`` is its name on the command line, where it has one.

    ``kept`` are the parameters that have their option's default unless it is passed.
    """

    reader: str
    options: tuple[Option, ...] = ()
    positional: tuple[str, ...] = ()
    command: str = ""
    kept: Mapping[ast.arg, Option] = field(default_factory=dict)


def of_functions(source: Source) -> tuple[Taken, ...] | None:
    """What each command takes; empty where its function is not in the file, None without any."""
    commands = [*_of_decorators(source), *_of_calls(source)]
    if commands:
        return tuple(commands)
    return () if reader_of(source) else None


def reader_of(source: Source) -> str:
    """Which of the three reads the arguments, empty where none does."""
    made = {source.called(call) for call in source.calls}
    started = (reader for name, reader in STARTERS.items() if name in made)
    return next(started, "") or (TYPER if "typer.Typer" in made else "")


def _of_decorators(source: Source) -> Iterator[Taken]:
    for function in source.functions:
        for decorator in function.decorator_list:
            on = getattr(decorator, "func", decorator)
            name = source.meaning(on)
            if last_name(on) != "command" and not name.endswith("click.command"):
                continue
            # @click.command() is a program; @cli.command() is one command of several.
            single = name in ("click.command", "rich_click.command")
            word = "" if single else _command_name(decorator, function)
            if source.uses("click", "rich_click"):
                yield _click(function, word)
            elif source.uses("typer"):
                yield _parameters(TYPER, function, word)


def _command_name(decorator: ast.expr, function: Function) -> str:
    first = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
    word = constant(first)
    return word if isinstance(word, str) else function.name.replace("_", "-")


def _of_calls(source: Source) -> Iterator[Taken]:
    for call in source.calls:
        reader = STARTERS.get(source.called(call))
        if not reader or not call.args:
            continue
        target = dotted(call.args[0])
        for function in source.functions:
            if function.name == target:
                yield _parameters(reader, function, "")


def _click(function: Function, command: str) -> Taken:
    options, positional, changed = [], [], set()
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        words = [word for word in map(constant, decorator.args) if isinstance(word, str)]
        if not words:
            continue
        if called(decorator) == "argument":
            positional += [words[0]] if _needed(decorator) else []
        elif called(decorator) == "option":
            options.append(_click_option(decorator, words))
            default = keyword(decorator, "default")
            changed |= {options[-1].name} if _changes(decorator, default) else set()
    kept = dict(_kept(function, (one for one in options if one.name not in changed)))
    return Taken(CLICK, tuple(options), tuple(positional), command, kept)


def _click_option(decorator: ast.Call, words: list[str]) -> Option:
    name = next((word for word in words if word.startswith("--")), words[0])
    both = "/" in name  # --cache/--no-cache
    choices = keyword(decorator, "type")
    default = keyword(decorator, "default")
    return Option(
        name=name.partition("/")[0].lstrip("-"),
        default=value_of(default),
        unread=is_unread(default),
        required=constant(keyword(decorator, "required")) is True,
        switch=both or constant(keyword(decorator, "is_flag")) is True,
        choices=words_of(choices.args[0]) if isinstance(choices, ast.Call) and choices.args else (),
        also=tuple(word for word in words if word.isidentifier() and word != name),
    )


def _changes(said: ast.Call | None, default: ast.expr | None) -> bool:
    """Whether a parameter may be another value than the default that is written."""
    if not isinstance(default, ast.Constant | None):
        return True
    kind = None if said is None else keyword(said, "type")
    boolean = kind is not None and last_name(kind).lower() == "bool"
    converted = boolean and isinstance(constant(default), str)
    return converted or any(item.arg in CHANGES for item in (said.keywords if said else ()))


def _kept(function: Function, options: Iterable[Option]) -> Iterator[tuple[ast.arg, Option]]:
    by_name = {name: one for one in options for name in one.known_as}
    for item in (*function.args.args, *function.args.kwonlyargs):
        option = by_name.get(item.arg.lower())
        if option is not None and not option.required:
            yield item, option


def _needed(positional: ast.Call) -> bool:
    """Whether one of click's positional arguments must be given."""
    said = constant(keyword(positional, "required"))
    if isinstance(said, bool):
        return said
    return keyword(positional, "default") is None and value_of(keyword(positional, "nargs")) != -1


def _parameters(reader: str, function: Function, command: str) -> Taken:
    """Typer and fire take a function's parameters; typer writes them with hyphens.

    Fire takes each by its name, typer those without a default by their place.
    """
    defaults = {item.arg: value for item, value in with_defaults(function.args)}
    options, positional, changed = [], [], set()
    for item in (*function.args.args, *function.args.kwonlyargs):
        default, said = defaults.get(item.arg), _said(item, defaults.get(item.arg))
        if said is not None and default is said:
            default = argument(said, 0, "default") or keyword(said, "default_factory")
        value = value_of(default)
        required = default is None or value is ...
        kind = last_name(said.func) if said is not None else ""
        if kind == "Argument" or (default is None and kind != "Option" and reader == TYPER):
            positional += [item.arg] if required else []
            continue
        words = [constant(word) for word in said.args] if said is not None else []
        named = [w for w in words if isinstance(w, str) and w.startswith("--")]
        plain = item.arg.replace("_", "-") if reader == TYPER else item.arg
        options.append(
            Option(
                name=named[0].partition("/")[0].lstrip("-") if named else plain,
                default=None if value is ... else value,
                required=required,
                unread=is_unread(default),
                switch=reader == TYPER and isinstance(value, bool),
                choices=literal_words(item.annotation) if item.annotation else (),
                also=(item.arg,) if named else (),
            )
        )
        changed |= {options[-1].name} if _changes(said, default) else set()
    kept = dict(_kept(function, (one for one in options if one.name not in changed)))
    return Taken(reader, tuple(options), tuple(positional), command, kept)


def _said(item: ast.arg, default: ast.expr | None) -> ast.Call | None:
    """The ``typer.Option(...)`` or ``typer.Argument(...)`` of a parameter."""
    places = [default, *(ast.walk(item.annotation) if item.annotation else ())]
    for node in places:
        if isinstance(node, ast.Call) and last_name(node.func) in ("Option", "Argument"):
            return node
    return None

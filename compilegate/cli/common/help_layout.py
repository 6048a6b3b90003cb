"""Help of the commands, for terminals of any width."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

WIDEST = 80
OTHERS = "Commands"  # the title above those that no section names
LONGEST_SUMMARY = 1000  # a first sentence is shorter
# Below this a meaning stands under its name, for beside it words would be broken.
BESIDE = 60
# typer names an option's value by the type in the code.
TYPE = re.compile(r"(?P<option>^-.*)?<(?P<kind>[^>|]+)>")
TYPES = {
    "str": "TEXT", "list[str]": "TEXT", "path": "PATH", "dir": "FOLDER",
    **dict.fromkeys(("int", "float", "int range", "float range"), "NUMBER"),
}  # fmt: skip
NUMBER = r"\d+(?:\.\d+)?"
RANGE = re.compile(rf"(?:(?P<low>{NUMBER})<=)?x(?:<=(?P<high>{NUMBER})|>=(?P<from>{NUMBER}))(?=\])")
LONGEST_BOUND = 15  # digits


class _Formatter(typer.Context.formatter_class):  # type: ignore[misc,valid-type]
    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Kinds and ranges in words: ``--run-hours NUMBER``, ``FILE`` alone, ``[at least 1]``."""
        rows = [(TYPE.sub(_kind, name).rstrip(), RANGE.sub(_range, text)) for name, text in rows]
        if self.width >= BESIDE:
            super().write_dl(rows, col_max, col_spacing)
        else:
            super().write_dl(rows, 2, 0)


def _kind(name: re.Match[str]) -> str:
    """An option's value; an argument is named alone."""
    kind = TYPES.get(name["kind"], f"<{name['kind']}>")
    return f"{name['option']}{kind}" if name["option"] else ""


def _range(bounds: re.Match[str]) -> str:
    """A bound too long to be read is left out."""
    low = (bounds["low"] or bounds["from"] or "").removesuffix(".0")
    high = (bounds["high"] or "").removesuffix(".0")
    if len(high) > LONGEST_BOUND:
        high = ""
    if low and high:
        return f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}"


class _Context(typer.Context):
    formatter_class = _Formatter


class CommandGroup(TyperGroup):
    """Lists its commands with the whole first sentence of each, however narrow the screen is."""

    context_class = _Context
    # Names of commands by the title above them. The others follow.
    sections: Mapping[str, Collection[str]] = {}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, whose help then fits the screen as well."""
        command = super().get_command(ctx, cmd_name)
        if command:
            command.context_class = _Context
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Instead of typer's, which cuts a sentence where the line ends; by ``sections``."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        listed = {
            name: command.get_short_help_str(LONGEST_SUMMARY)
            for name, command in commands.items()
            if command and not command.hidden
        }
        in_sections = {name for names in self.sections.values() for name in names}
        others = [name for name in listed if name not in in_sections]
        longest = max(map(len, listed))
        for title, names in [*self.sections.items(), (OTHERS, others)]:
            if rows := [(name, listed[name]) for name in names if name in listed]:
                beside = longest - max(len(name) for name, _ in rows)
                with formatter.section(title):
                    formatter.write_dl(rows, col_spacing=2 + beside)

"""Help of commands that have commands of their own."""

from __future__ import annotations

import shutil
from typing import Any

from typer.core import TyperGroup

WIDEST = 80
LONGEST_SUMMARY = 1000  # a first sentence is shorter


def help_width() -> int:
    """Columns of help: the terminal's, at most 78; typer itself takes 48 at least."""
    return min(shutil.get_terminal_size().columns, WIDEST) - 2


class CommandGroup(TyperGroup):
    """Lists its commands with the whole first sentence of each, however narrow the screen is."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Instead of typer's, which cuts a sentence where the line ends."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(LONGEST_SUMMARY))
                    for name, command in commands
                    if command is not None and not command.hidden
                ]
            )

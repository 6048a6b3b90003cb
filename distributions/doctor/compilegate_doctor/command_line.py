"""Which arguments a script takes, by whatever it reads them with.

Read from its code: argparse, dataclasses of ``HfArgumentParser``, click, typer, fire, absl,
Lightning's command line, and constants that ``exec`` of a configurator overrides (nanoGPT). Hydra's
arguments are keys of YAML files, which are not read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from compilegate_doctor.absl_flags import ABSL, DEFINES, of_absl
from compilegate_doctor.argument import Option, is_unread, value_of, words_of
from compilegate_doctor.dataclass_arguments import PARSERS, of_dataclasses, of_trl
from compilegate_doctor.function_arguments import (
    FUNCTION_READERS,
    TYPER,
    Taken,
    of_functions,
    reader_of,
)
from compilegate_doctor.lightning_arguments import lightning_call, of_lightning, subcommand
from compilegate_doctor.project import Project
from compilegate_doctor.source import Source
from compilegate_doctor.syntax import (
    called,
    constant,
    dotted,
    keyword,
    last_name,
    receiver,
)

ARGPARSE, DATACLASSES, LIGHTNING, CONSTANTS, HYDRA, ELSEWHERE, NONE = (
    "argparse",
    "dataclasses",
    "lightning",
    "constants",
    "hydra",
    "elsewhere",
    "none",
)
TRAINS = re.compile(r"(pre|fine)?-?_?(train|fit|tun)\w*", re.IGNORECASE)
READS_ARGUMENTS = re.compile(
    r"_?(parse|get|make|build|create|add|read|load)_?\w*?(args?|arguments|argparse|parser|opts?|"
    r"options|flags)(_parser)?",
    re.IGNORECASE,
)
# Names under which a module holds what it has read; what reads them.
HELD = ("args", "opt", "opts", "FLAGS")
PARSES = ("parse_args", "parse_known_args")
ARGV = "sys.argv"
# What else reads arguments, and keeps their names where this module does not look.
OTHER_READERS = (
    "tyro", "simple_parsing", "jsonargparse", "docopt", "cyclopts",
    "plac", "tap", "pydantic_settings", "draccus", "pyrallis",
)  # fmt: skip
SWITCHES = ("store_true", "store_false")
# Words of an option's help by which it is known where its name is a single letter.
SAID = {"batch size": "batch_size", "batchsize": "batch_size", "learning rate": "learning_rate",
        "epochs": "epochs"}  # fmt: skip


@dataclass(frozen=True)
class CommandLine:
    """A script's arguments; ``positional`` are those without a name, which no hyperparameter is.

    ``subcommand`` is the word that makes it train, such as ``fit``. ``partly``: it takes others,
    whose names are put together as it runs. ``lost``: it takes those of a function that was not
    found.
    """

    reader: str
    options: tuple[Option, ...] = ()
    positional: tuple[str, ...] = field(default=())
    subcommand: str = ""
    partly: bool = False
    lost: bool = False

    @property
    def unread(self) -> bool:
        """Whether it takes arguments whose names its code does not say."""
        return self.lost or self.reader in (HYDRA, ELSEWHERE, ARGV, *OTHER_READERS)

    def find(self, names: Sequence[str]) -> Option | None:
        """The option with the first of these names that there is one with."""
        backwards = [*reversed(self.options)]
        also = {name: option for option in backwards for name in option.known_as[1:]}
        by_name = also | {option.known_as[0]: option for option in backwards}
        return next((by_name[name] for name in names if name in by_name), None)


def command_line(project: Project) -> CommandLine:
    """What the script reads its arguments with, and which it takes."""
    arguments = _by_classes(project)
    for reader in _READERS:
        arguments = reader(project.script) if arguments is None else arguments
    return arguments or CommandLine(_other_reader(project.script))


def _by_classes(project: Project) -> CommandLine | None:
    """Lightning's command line, and dataclasses, which other files may define."""
    source, cli = project.script, lightning_call(project)
    if cli is not None:
        return CommandLine(LIGHTNING, tuple(of_lightning(project, cli)), subcommand=subcommand(cli))
    if any(called(call) in PARSERS for call in source.calls):
        return CommandLine(DATACLASSES, (*of_dataclasses(project), *of_trl(source)))
    return None


def _by_functions(source: Source) -> CommandLine | None:
    taken = of_functions(source) if source.uses(*FUNCTION_READERS) else None
    return None if taken is None else _one_of(taken, reader_of(source))


def _by_argparse(source: Source) -> CommandLine | None:
    added = [call for call in source.calls if called(call) == "add_argument"]
    return _argparse(source, added) if added else None


def _by_absl(source: Source) -> CommandLine | None:
    defined = any(called(call).startswith(DEFINES) for call in source.calls)
    return CommandLine(ABSL, tuple(of_absl(source))) if defined else None


def _by_configurator(source: Source) -> CommandLine | None:
    if any(called(call) == "exec" and "configurator" in ast.unparse(call) for call in source.calls):
        return CommandLine(CONSTANTS, tuple(_constants(source.tree)))
    return None


def _by_hydra(source: Source) -> CommandLine | None:
    started = any(
        source.meaning(getattr(decorator, "func", decorator)) == "hydra.main"
        for function in source.functions for decorator in function.decorator_list
    )  # fmt: skip
    return CommandLine(HYDRA) if started else None


def _one_of(taken: Sequence[Taken], reader: str) -> CommandLine:
    """The arguments of the command that trains, by its name, or of the only one."""
    if not taken:
        return CommandLine(reader, lost=True)
    alone = len(taken) == 1
    chosen = taken[0] if alone else next((one for one in taken if TRAINS.match(one.command)), None)
    if chosen is None:
        choice = "|".join(one.command for one in taken)
        return CommandLine(taken[0].reader, positional=(choice,), lost=True)
    # Typer runs an only command without its name.
    command = "" if alone and chosen.reader == TYPER else chosen.command
    return CommandLine(chosen.reader, chosen.options, chosen.positional, subcommand=command)


def _other_reader(source: Source) -> str:
    """What reads arguments that are not read here, if anything does."""
    if module_of_arguments(source) is not None:
        return ELSEWHERE
    reader = next((name for name in OTHER_READERS if source.uses(name)), NONE)
    looks = any(source.meaning(node) == "sys.argv" for node in source.nodes
                if isinstance(node, ast.Attribute | ast.Name))  # fmt: skip
    return ARGV if reader == NONE and looks else reader


def module_of_arguments(source: Source) -> str | None:
    """The module that a function which reads the arguments is imported from, dots and all."""
    for call in source.calls:
        if isinstance(call.func, ast.Name) and READS_ARGUMENTS.fullmatch(call.func.id):
            module = source.called(call).rpartition(".")[0]
            if module:
                return module
    return None


def takes_of_others(source: Source) -> bool:
    """Whether a script asks another file for its arguments, or takes them from one by name."""
    asked = any(
        READS_ARGUMENTS.fullmatch(called(call)) or called(call) == "parse" for call in source.calls
    )
    return asked or any(name.rpartition(".")[2] in HELD for name in source.imports.named)


def read_together(modules: Sequence[Source]) -> CommandLine | None:
    """What several files of a project add to a parser, None where none of them parses."""
    calls = [(one, call) for one in modules for call in one.calls]
    if not any(called(call) in PARSES and not _if_started(one, call) for one, call in calls):
        return None
    added = [call for one, call in calls
             if called(call) == "add_argument" and not _if_started(one, call)]  # fmt: skip
    arguments = _arguments(added)
    options = {option.name: option for option in reversed(arguments.options)}
    return replace(arguments, options=tuple(reversed(options.values())))


def _if_started(source: Source, node: ast.AST) -> bool:
    """Whether a file does it only where it is itself the program."""
    return any(
        isinstance(outer, ast.If) and "__main__" in ast.unparse(outer.test)
        for outer in source.parents_of(node)
    )


def _argparse(source: Source, added: Sequence[ast.Call]) -> CommandLine:
    commands = {name: constant(call.args[0]) for name, call in _made(source, "add_parser")
                if call.args}  # fmt: skip
    if not commands:
        return _arguments(added)
    groups = {name: dotted(receiver(call)) for name, call in _made(source, "add_argument_group")}
    for name, word in commands.items():
        if isinstance(word, str) and TRAINS.match(word):
            own = [dotted(receiver(call)) for call in added]
            mine = [call for call, of in zip(added, own, strict=True)
                    if groups.get(of, of) == name]  # fmt: skip
            return replace(_arguments(mine), subcommand=word)
    arguments = _arguments([call for call in added if dotted(receiver(call)) not in commands])
    choice = "|".join(map(str, commands.values()))
    return replace(arguments, positional=(choice, *arguments.positional))


def _made(source: Source, method: str) -> Iterator[tuple[str, ast.Call]]:
    """``name = parser.METHOD(…)``, for each."""
    for node in source.nodes:
        call = node.value if isinstance(node, ast.Assign) else None
        if isinstance(call, ast.Call) and isinstance(node, ast.Assign) and called(call) == method:
            yield dotted(node.targets[0]), call


def _arguments(added: Sequence[ast.Call]) -> CommandLine:
    options, positional, partly = [], [], False
    for call in added:
        words = [str(item.value) for item in call.args if isinstance(item, ast.Constant)]
        long = [word for word in words if word.startswith("--")] or words[:1]
        if not long:
            partly = True
            continue
        if not long[0].startswith("-"):
            if constant(keyword(call, "nargs")) not in ("?", "*"):
                positional.append(long[0])
            continue
        action = keyword(call, "action")
        options.append(
            Option(
                name=long[0].lstrip("-"),
                default=value_of(keyword(call, "default")),
                unread=is_unread(keyword(call, "default")),
                required=constant(keyword(call, "required")) is True,
                switch=constant(action) in SWITCHES
                or (action is not None and last_name(action) == "BooleanOptionalAction"),
                choices=words_of(keyword(call, "choices")),
                also=tuple(_other_names(call, words, long[0])),
            )
        )
    return CommandLine(ARGPARSE, tuple(options), tuple(positional), partly=partly)


def _other_names(call: ast.Call, words: Sequence[str], name: str) -> Iterator[str]:
    """Its other spellings, its name in the code, and what the help of a single letter says."""
    yield from (word.lstrip("-") for word in words if word != name)
    destination = constant(keyword(call, "dest"))
    if isinstance(destination, str):
        yield destination
    if len(name.lstrip("-")) == 1:
        said = str(constant(keyword(call, "help")) or "").lower()
        yield from (name for word, name in SAID.items() if word in said)


def _constants(tree: ast.Module) -> Iterator[Option]:
    """Constants at the top of a file, which its configurator lets the command line override."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            name = dotted(node.targets[0])
            value = value_of(node.value)
            if name and not name.startswith("_") and isinstance(value, bool | int | float | str):
                yield Option(name, value)


# In the order in which they are asked.
_READERS = (
    _by_hydra, _by_functions, _by_argparse, _by_absl,
    _by_configurator,
)  # fmt: skip

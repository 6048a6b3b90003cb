"""Arguments that a parser of dataclasses reads: ``HfArgumentParser`` and trl's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate_doctor.argument import Option, is_unread, literal_words, value_of
from compilegate_doctor.project import Project
from compilegate_doctor.source import Source
from compilegate_doctor.syntax import called, keyword, last_name

PARSERS = ("HfArgumentParser", "TrlParser")
# What the dataclasses of trl ask for and have no default of.
OF_TRL = {"trl.ScriptArguments": "dataset_name", "trl.ModelConfig": "model_name_or_path"}


def of_dataclasses(project: Project) -> Iterator[Option]:
    """The fields of the dataclasses that the parser is given, of its own and what they inherit.

    Where it is not seen which those are, of all in the file. A Trainer's own fields are its own.
    """
    parsed = list(_parsed_classes(project.script))
    made = [item for node in parsed for item in _with_bases(project, node)]
    every = [node for node in project.script.nodes if isinstance(node, ast.ClassDef)]
    for node in dict.fromkeys(made if parsed else every):
        if "dataclass" not in [last_name(getattr(one, "func", one)) for one in node.decorator_list]:
            continue
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                default = _field_default(item.value)
                yield Option(
                    name=item.target.id,
                    default=value_of(default),
                    unread=is_unread(default),
                    required=_lacks_default(item.value),
                    choices=literal_words(item.annotation),
                )


def _with_bases(project: Project, node: ast.expr) -> Iterator[ast.ClassDef]:
    definition = project.class_named(node)
    if definition is not None:
        source, made = definition
        for base in made.bases:
            yield from _with_bases(Project(source, project.read), base)
        yield made


def _lacks_default(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call) and called(value) == "field":
        return not {item.arg for item in value.keywords} & {"default", "default_factory"}
    return value is None


def _field_default(value: ast.expr | None) -> ast.expr | None:
    if isinstance(value, ast.Call) and called(value) == "field":
        return keyword(value, "default") or keyword(value, "default_factory")
    return (keyword(value, "default") or value) if isinstance(value, ast.Call) else value


def of_trl(source: Source) -> Iterator[Option]:
    """What trl's own dataclasses ask for."""
    for node in _parsed_classes(source):
        name = OF_TRL.get(source.meaning(node))
        if name is not None:
            yield Option(name, required=True)


def sets_up_trainer(source: Source) -> bool:
    """Whether a Trainer's own settings are read from the command line."""
    return any(_of_trainer(source, node) for node in _parsed_classes(source))


def _parsed_classes(source: Source) -> Iterator[ast.expr]:
    """The classes that a parser of dataclasses is given."""
    for call in source.calls:
        arguments = [*call.args, *(item.value for item in call.keywords)]
        for item in arguments if called(call) in PARSERS else ():
            named = source.options.assigned(item.id) if isinstance(item, ast.Name) else None
            parts = named if isinstance(named, ast.Tuple | ast.List) else item
            yield from parts.elts if isinstance(parts, ast.Tuple | ast.List) else [parts]


def _of_trainer(source: Source, node: ast.expr) -> bool:
    """Whether a class holds a Trainer's settings: ``TrainingArguments``, or trl's for its own."""
    name = source.meaning(node)
    own = [one for one in source.nodes if isinstance(one, ast.ClassDef) and one.name == name]
    if own:
        return any(_of_trainer(source, base) for one in own for base in one.bases)
    of_trl = name.startswith("trl.") and name.endswith("Config") and name not in OF_TRL
    return of_trl or "TrainingArguments" in name

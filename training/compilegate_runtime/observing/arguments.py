"""Which arguments a script takes: what its parser was given, when it parses."""

import argparse
import functools
import sys

PLAIN = (bool, int, float, str, type(None))


class Arguments:
    """The parsers that were asked to parse, in order; ``asked`` is called after each."""

    def __init__(self, asked):
        self.parsers, self._asked, self._seen = [], asked, set()
        self._clicks = set()

    def install(self):
        """Hook argparse, whose parser those of other libraries inherit from."""
        original = argparse.ArgumentParser._parse_known_args

        @functools.wraps(original)
        def parse(parser, *args, **kwargs):
            self._note(parser, list(args[0]) if args else [])
            return original(parser, *args, **kwargs)

        argparse.ArgumentParser._parse_known_args = parse

    def _note(self, parser, words):
        if id(parser) in self._seen:
            return
        self._seen.add(id(parser))
        kind = type(parser)
        options, positional, subcommand = [], [], ""
        for action in parser._actions:
            if "--help" in action.option_strings or "--version" in action.option_strings:
                continue
            if isinstance(action, argparse._SubParsersAction):
                subcommand = next((word for word in words if word in action.choices), "")
            elif action.option_strings:
                options.append(_option(action))
            elif action.nargs not in ("?", "*"):
                positional.append(action.dest)
        self.parsers.append(
            {
                "reader": f"{kind.__module__.partition('.')[0]}.{kind.__name__}",
                "options": options,
                "positional": positional,
                "subcommand": subcommand,
                "words": [str(word) for word in words],
            }
        )
        self._asked(self.parsers)

    def look_for_click(self):
        """Hook click once it is imported: its own, or the one that typer carries."""
        for name in ("click.core", "typer._click.core"):
            module = sys.modules.get(name)
            command = getattr(module, "Command", None)
            if command is None or name in self._clicks:
                continue
            self._clicks.add(name)
            self._hook_click(command, "typer" if "typer" in sys.modules else "click")

    def _hook_click(self, command, reader):
        original = command.parse_args

        @functools.wraps(original)
        def parse_args(command_, context, args):
            words = [str(word) for word in args]
            options = [_of_click(one) for one in command_.params if one.param_type_name == "option"]
            arguments = [one for one in command_.params if one.param_type_name == "argument"]
            names = getattr(command_, "commands", None) or {}
            self.parsers.append(
                {
                    "reader": reader,
                    "options": options,
                    "positional": [one.name for one in arguments if one.required],
                    "subcommand": next((word for word in words if word in names), ""),
                    "words": words,
                }
            )
            self._asked(self.parsers)
            return original(command_, context, args)

        command.parse_args = parse_args


def _option(action):
    long = [word for word in action.option_strings if word.startswith("--")]
    words = long or list(action.option_strings)
    return {
        "name": words[0].lstrip("-"),
        "also": sorted({word.lstrip("-") for word in action.option_strings} | {action.dest}),
        "default": _plain(action.default),
        "required": bool(action.required),
        "switch": action.nargs == 0,
        "choices": [str(one) for one in action.choices or ()][:50],
    }


def _of_click(option):
    words = [word for word in option.opts if word.startswith("--")] or list(option.opts)
    default = option.default() if callable(option.default) else option.default
    return {
        "name": words[0].lstrip("-"),
        "also": sorted({word.lstrip("-") for word in option.opts} | {option.name}),
        "default": _plain(default),
        "required": bool(option.required),
        "switch": bool(option.is_flag),
        "choices": [str(one) for one in getattr(option.type, "choices", None) or ()][:50],
    }


def _plain(value):
    if isinstance(value, PLAIN):
        return value
    value = getattr(value, "value", value)  # of an enumeration, as TrainingArguments have them
    return value if isinstance(value, PLAIN) else None

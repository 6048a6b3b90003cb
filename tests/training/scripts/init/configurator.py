"""Overrides the globals of the script that executes this by ``--name=value``."""

import sys
from ast import literal_eval

for word in sys.argv[1:]:
    key, _, value = word.removeprefix("--").partition("=")
    if key not in globals():
        raise ValueError(f"Unknown config key: {key}")
    try:
        globals()[key] = literal_eval(value)
    except (SyntaxError, ValueError):
        globals()[key] = value

"""The stand-in under another name, as a script ported to a compiler would be."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).with_name("train.py")), run_name="__main__")

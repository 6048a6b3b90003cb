"""A Python of a job's own, over an environment that it shares with others and leaves as it is."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_DESCRIBE = """
import json, os, sys, sysconfig
purelib = sysconfig.get_path("purelib")
print(json.dumps({"base": sys._base_executable, "packages": purelib,
                  "inside": os.path.relpath(purelib, sys.prefix)}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python, and the folder of the packages that it alone has."""

    python: Path
    packages: Path


@dataclass(frozen=True)
class _Described:
    """The executable below a virtual environment, and where its packages lie."""

    base: str
    packages: str
    inside: str


def own_interpreter(python: Path, folder: Path) -> Interpreter:
    """Make a virtual environment in ``folder`` over that of ``python``.

    The toolkit installs a bundle's ``requirements.txt`` with pip into the environment that it runs
    in. Here later jobs would use that environment too, so each job has one of its own, whose
    packages come before the shared ones.
    """
    shared = _described(python)
    own = folder / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.symlink_to(shared.base)
    home = Path(shared.base).parent
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    packages = folder / shared.inside
    packages.mkdir(parents=True)
    # addsitedir reads the .pth files there too, which a line with the folder alone would not.
    line = f"import site; site.addsitedir({shared.packages!r})\n"
    (packages / "shared.pth").write_text(line)
    # The shared environment's own command would start the shared environment's Python.
    torchrun = own.with_name("torchrun")
    torchrun.write_text(f'#!/bin/sh\nexec {shlex.quote(str(own))} -m torch.distributed.run "$@"\n')
    torchrun.chmod(0o755)
    return Interpreter(own, packages)


@cache
def _described(python: Path) -> _Described:
    answer = subprocess.run(
        [str(python), "-I", "-c", _DESCRIBE], check=True, capture_output=True, text=True
    )
    return _Described(**json.loads(answer.stdout))

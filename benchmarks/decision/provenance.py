"""What decides: the judge's own code and all that it loads, and the name of it beside results."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from compilegate.judges import digest

REPOSITORY = Path(__file__).resolve().parents[2]
SHOWN = 8
# In a process of its own, where nothing else has been loaded.
LOADED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import compilegate.domain.judging.evidence_file, compilegate.domain.judging.judge
from compilegate.domain.decision import JUDGE_VERSION
files = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "compilegate"]
print(json.dumps([JUDGE_VERSION, files]))
"""


def judge_of(checkout: Path) -> tuple[str, dict[str, bytes]]:
    """The version of a checkout's judge, and every file that it loads by its place there."""
    checkout = checkout.resolve()
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", LOADED, str(checkout)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    version, files = json.loads(ran.stdout)
    paths = [Path(file) for file in files]
    return version, {path.relative_to(checkout).as_posix(): path.read_bytes() for path in paths}


@cache
def judge_name(checkout: Path = REPOSITORY) -> str:
    """The judge's version, and a digest of the code that decides: results name what they are of."""
    version, files = judge_of(checkout)
    return f"{version} ({digest(files)[:SHOWN]})"

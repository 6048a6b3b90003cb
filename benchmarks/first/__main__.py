"""How many training scripts of public repositories reach an answer of ``compilegate first``.

    python -m benchmarks.first --python PYTHON [--repositories DIR] [--only TEXT] [--again]

scripts.toml names the scripts: repository, commit, path and arguments. None of them is copied or
edited; data.py makes small data in the format that each expects. Each script is laid out in a
folder of its own, and results.json is written after each, so that a run that was stopped goes on.
PYTHON is a Python that has the newest packages that the scripts import. A script that needs
others, or older releases, names them as `packages`; it gets an environment of its own, which has
these and behind them those of PYTHON, and which is kept in DIR. DIR has clones by their names as
well, such as karpathy+nanoGPT; others are cloned into it.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.first import page

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
FIRST = Path(sys.executable).with_name("compilegate")
# What `first` asks on a terminal, where the file then has no TODO.
ASKED = (
    "training.instance_type", "schedule.run_hours", "schedule.runs_per_week", "quality.margin",
)  # fmt: skip
MINUTES = 8.0
# On a small machine: one thread, no processes that compile beside it, no trial of the processor's
# vectors.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Script:
    """One row of scripts.toml; ``folder`` is the one that it is started in."""

    repository: str
    commit: str
    kind: str
    path: str
    folder: str
    words: list[str]
    data: list[str]
    environment: Mapping[str, str]
    minutes: float
    long: list[str]  # arguments for a long run, none for a script that is given none
    packages: list[str]  # beside or instead of what the Python has

    @property
    def name(self) -> str:
        """Unique, also where one script is run in two ways."""
        return " ".join([self.repository, self.path, *self.words])


def scripts() -> Iterator[Script]:
    """All of scripts.toml."""
    for repository in tomllib.loads((HERE / "scripts.toml").read_text())["repository"]:
        for row in repository["script"]:
            yield Script(
                repository["name"], repository["commit"], row["kind"], row["path"],
                row.get("folder", str(Path(row["path"]).parent)), row.get("words", "").split(),
                row.get("data", []), row.get("environment", {}), row.get("minutes", MINUTES),
                row.get("long", "").split(), row.get("packages", repository.get("packages", [])),
            )  # fmt: skip


def python_for(script: Script, clones: Path, python: Path) -> Path:
    """A Python that has the script's packages, and behind them those of ``python``."""
    if not script.packages:
        return python
    digest = hashlib.sha256("\n".join([str(python), *script.packages]).encode()).hexdigest()
    place = clones / "environments" / digest[:12]
    own = place / "bin" / "python"
    if not (place / "packages.txt").exists():
        subprocess.run([str(python), "-m", "venv", "--clear", str(place)], check=True)
        (_site_packages(own) / "behind.pth").write_text(f"{_site_packages(python)}\n")
        install = [str(own), "-m", "pip", "install", "--quiet", *script.packages]
        subprocess.run(install, check=True)
        (place / "packages.txt").write_text("\n".join(script.packages) + "\n")
    return own


def _site_packages(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


def laid_out(script: Script, clones: Path, python: Path, place: Path) -> Path:
    """The folder to start in, with the repository's files and small data."""
    clone = clones / script.repository.replace("/", "+")
    if not clone.exists():
        address = f"https://github.com/{script.repository}"
        subprocess.run(["git", "clone", "--quiet", "--bare", address, str(clone)], check=True)
    _check_out(["git", "--git-dir", str(clone)], script.commit, place)
    folder = place / script.folder
    for line in script.data:
        maker = [str(python), str(HERE / "data.py"), *line.split()]
        subprocess.run(maker, cwd=folder, check=True, env={**os.environ, "HOME": str(place)})
    return folder


def _check_out(git: list[str], commit: str, place: Path) -> None:
    """The files of a commit, but those that a partial clone lacks."""
    rows = subprocess.run([*git, "ls-tree", "-r", "-z", commit], check=True, capture_output=True)
    files = [row.split("\t", 1) for row in rows.stdout.decode().split("\0") if row]
    names = "".join(f"{head.split()[2]}\n" for head, _ in files).encode()
    batch = [*git, "cat-file", "--batch"]
    done = subprocess.run(batch, input=names, check=True, capture_output=True)
    contents = io.BytesIO(done.stdout)
    for _, name in files:
        _, kind, *size = contents.readline().split()
        if kind != b"missing":
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(contents.read(int(size[0])))
            contents.read(1)


def ran(script: Script, clones: Path, python: Path) -> dict[str, Any]:
    """What came of one script."""
    with tempfile.TemporaryDirectory() as place:
        folder = laid_out(script, clones, python, Path(place))
        path = os.path.relpath(Path(place) / script.path, folder)
        command = [
            str(FIRST), "first", path, "--python", str(python), "--json", "--force",
            "--minutes", str(script.minutes), "--", *script.words,
        ]  # fmt: skip
        environment = {
            **os.environ, **ENVIRONMENT, "HOME": place, "PYTHONPATH": place, **script.environment,
        }  # fmt: skip
        began, worked = time.monotonic(), _worked()
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        took = {"minutes": time.monotonic() - began, "cpu_minutes": _worked() - worked}
    minutes = {name: round(seconds / 60, 2) for name, seconds in took.items()}
    outcome = _outcome(done, place, python)
    return {"kind": script.kind, "nice": os.nice(0), **minutes, **outcome}


def _worked() -> float:
    """Processor seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _outcome(done: subprocess.CompletedProcess[str], place: str, python: Path) -> dict[str, Any]:
    """What ``first`` said, without the places of this machine."""
    text = done.stdout or done.stderr
    for here, name in ((place, "."), (str(python), "python"), (str(python.parents[1]), "python")):
        text = text.replace(here, name)
    try:
        document = json.loads(text)
    except ValueError:
        return {"outcome": "error", "problem": text[-2000:]}
    if done.returncode:
        error = document["error"]
        return {"outcome": "no answer", "problem": error["problem"], "fix": error["fix"]}
    runs, gain = document["runs"], document["gain"]
    for run in runs:  # its message may be long, and names places
        run["ended"] = (run["ended"] or {}).get("how")
    return {
        "outcome": "answer" if gain else "not compiled" if _compiler_fails(runs) else "file",
        "problem": document["no_gain_because"],
        "questions": sum(one in ASKED for one in document["todo"]),
        "open": [one for one in document["todo"] if one not in ASKED],
        "gain": gain,
        "runs": runs,
        "seen": {key: document["seen"][key] for key in ("managed", "precision", "compiles")},
    }


def _compiler_fails(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an error ended a compiled run, and none the run as it is."""
    return all(run["compiled"] == (run["ended"] == "error") for run in runs[:2])


def main() -> None:
    """Run those that have no result yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, default=Path("build/repositories"))
    parser.add_argument("--only", default="", help="of those whose name has this text")
    parser.add_argument("--again", action="store_true", help="also those with a result")
    arguments = parser.parse_args()
    for script in scripts():
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        if arguments.only not in script.name or (script.name in results and not arguments.again):
            continue
        print(script.name, flush=True)
        clones = arguments.repositories.resolve()
        python = python_for(script, clones, arguments.python.absolute())
        result = ran(script, clones, python)
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results[script.name] = result
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        page.write()
        print(f"  {result['outcome']}, {result['minutes']} min: {result['problem']}", flush=True)


if __name__ == "__main__":
    main()

"""The tutorial: its page is what is run, and what that printed is kept as data.

``python -m tools.docs.tutorial`` (``make tutorial``) goes through docs/tutorial.md in a new folder:
it writes the script, changes the file as each ``diff`` says, runs each command, and keeps every
output with its date in ``docs/examples/tutorial.json``, beside the first also the file that it
wrote. From there it gets into the page, but for what ``check`` prints, which only reads files: that
is today's.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools.docs.examples import EXAMPLES, ROOT, output_of
from tools.docs.markdown import between

PAGE, RECORDED = ROOT / "docs" / "tutorial.md", EXAMPLES / "tutorial.json"
SCRIPT, FILE = "src/forecast.py", "forecast.yaml"
SHOWN = "/home/you/tutorial"  # in place of the folder's own name
BLOCK = re.compile(
    r"(?P<start>^```(?P<kind>python|diff|console)\n)(?P<text>.*?)(?P<end>^```$)", re.M | re.S
)
AT_ONCE = re.compile(r"compilegate (?P<words>check [^|>]*)")
HINT = "the page has another command than its recording: make tutorial"


def parts(page: str) -> list[tuple[str, str]]:
    """Each block's kind and text in order; of a console its command alone."""
    return [
        (match["kind"], command_of(match["text"]) if match["kind"] == "console" else match["text"])
        for match in BLOCK.finditer(page)
    ]


def command_of(text: str) -> str:
    """The command of a console block, which has one, in its first line."""
    return text.partition("\n")[0].removeprefix("$ ")


def change(text: str, difference: str) -> str:
    """The text with a difference applied, whose old lines must be in it once."""
    for hunk in re.split(r"^@@.*\n", difference, flags=re.MULTILINE):
        old, new = (
            "".join(f"{line[1:]}\n" for line in hunk.splitlines() if line[0] in marks)
            for marks in (" -", " +")
        )
        if text.count(old) != 1:
            raise ValueError(f"{text.count(old)} times in {FILE}, not once:\n{old}")
        text = text.replace(old, new)
    return text


def go_through(page: str, folder: Path, run: Callable[[str], str]) -> list[str]:
    """What each command gives, after what the page has before it was done in the folder."""
    outputs = []
    for kind, text in parts(page):
        if kind == "python":
            (folder / SCRIPT).parent.mkdir(exist_ok=True)
            (folder / SCRIPT).write_text(text)
        elif kind == "diff":
            (folder / FILE).write_text(change((folder / FILE).read_text(), text))
        else:
            outputs.append(run(text))
    return outputs


def with_recording(page: str) -> str:
    """The page with each command's output."""
    recorded = json.loads(RECORDED.read_text())
    commands = iter(recorded["commands"])

    def output(command: str) -> str:
        kept = next(commands)
        if kept["command"] != command:
            raise ValueError(f"{command}: {HINT}")
        if "file" in kept:
            Path(FILE).write_text(kept["file"])
        quick = AT_ONCE.fullmatch(command)
        return output_of(quick["words"], None, None) if quick else kept["output"]

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        outputs = iter(go_through(page, Path(folder), output))

    def block(match: re.Match[str]) -> str:
        if match["kind"] != "console":
            return match[0]
        return f"{match['start']}$ {command_of(match['text'])}\n{next(outputs)}{match['end']}"

    return between(BLOCK.sub(block, page), "recorded", _when(recorded))


def _when(recorded: dict[str, Any]) -> str:
    minutes = sum(one["seconds"] for one in recorded["commands"]) / 60
    text = (
        f"All outputs are from one run, on {recorded['date']} with Python {recorded['python']} and "
        f"PyTorch {recorded['torch']} on {recorded['cores']} cores with a load of "
        f"{recorded['load'][0]:.0f} to {recorded['load'][1]:.0f}. The commands took {minutes:.0f} "
        "minutes."
    )
    return textwrap.fill(text, 119) + "\n"


def in_a_shell(folder: Path) -> Callable[[str], dict[str, Any]]:
    """Runs a command as a reader does; gives it with its output, exit code and seconds."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "AWS_REGION": "us-east-1"}

    def run(command: str) -> dict[str, Any]:
        began = time.monotonic()
        done = subprocess.run(  # noqa: S603 - the page's own commands
            ["/bin/bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        printed = done.stdout.replace(str(folder), SHOWN)
        lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
        seconds = round(time.monotonic() - began, 1)
        return {
            "command": command, "exit_code": done.returncode, "seconds": seconds, "output": lines,
        }  # fmt: skip

    return run


def record(page: str, folder: Path) -> dict[str, Any]:
    """Go through the page for real; each command's end is also printed as it comes."""
    before, run = os.getloadavg()[0], in_a_shell(folder)

    def shown(command: str) -> Any:
        done = run(command)
        if command.startswith("compilegate first "):
            done["file"] = (folder / FILE).read_text()
        print(f"$ {command}  # {done['seconds']:.0f} s, exit code {done['exit_code']}")  # noqa: T201
        print(done["output"], flush=True)  # noqa: T201
        return done

    try:
        commands: list[Any] = go_through(page, folder, shown)
    finally:
        run("compilegate local down")
    loads = sorted((before, os.getloadavg()[0]))
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}", "python": platform.python_version(),
        "torch": _torch(), "cores": os.cpu_count(), "load": [round(load, 1) for load in loads],
        "compilegate": version("compilegate"), "commands": commands,
    }  # fmt: skip


def _torch() -> str:
    python = ROOT / ".venv-training" / "bin" / "python"
    asked = [str(python), "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def main() -> None:
    """Run everything, and write recording and page anew."""
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory(prefix="tutorial-") as folder:
        document = record(page, Path(folder))
        (report,) = Path(folder).glob("compilegate-reports/*/report.html")
        (ROOT / "build" / "tutorial.html").write_bytes(report.read_bytes())
    RECORDED.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(with_recording(page))


if __name__ == "__main__":
    main()

"""Why a script gave no answer, and what helps: one cause for each way in which it can end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.formats import duration, plural
from compilegate_init.first.bounded import Cut, Ended
from compilegate_init.first.seen import Seen
from compilegate_init.proposal import NAMES

NO_TORCH = 3  # training/compilegate_runtime/observing/run.py
# Calls of a model without a step; one alone may take long, as it does where it is compiled.
FEWEST_CALLS = 10
USAGE = 2  # what argparse ends with
_GPU = re.compile(
    r"CUDA|NVIDIA|no kernel image|\bGPU\b|invalid device ordinal|expected a cuda|nccl", re.I
)
_NO_DATA = (
    "FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "LocalEntryNotFoundError",
    "DatasetNotFoundError", "RepositoryNotFoundError", "GatedRepoError",
)  # fmt: skip
_NETWORK = (
    "URLError", "HTTPError", "ConnectionError", "ConnectError", "gaierror", "Timeout",
    "OfflineModeIsEnabled", "MaxRetryError", "ReadTimeout", "ConnectTimeout",
)  # fmt: skip
_MISSING_DATA = re.compile(
    r"dataset not found|not found or corrupted|no such file|couldn't find|can't load|"
    r"cannot find the requested|does not exist", re.I,
)  # fmt: skip
_RELEASE = re.compile(r"^cannot import name|was removed in")
_WHOLE_OBJECT = re.compile(r"^Weights only load failed")  # torch.load, since PyTorch 2.6
_DOWNLOAD = re.compile(r"download|could not resolve|name resolution", re.I)
# What TorchDynamo says below the first line of its message.
_EXPLAINED = re.compile(r"^ *Explanation: *(.+)$", re.M)
_OWN_LIMITS = ("MemoryError", "OutOfMemoryError")
_UNCOMPILED = "it cannot be compiled as it is: torch.compiler.disable leaves a part uncompiled"
_OTHERWISE = "ended by an error that the run as it is did not have,"
LONGEST_TEXT = 300
# The last line of a traceback.
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Exit|NotFound)): ?(.*)$")


def why_not(script: Path, seen: Seen, ended: Ended, python: Path) -> InvalidInputError:
    """Why a run has shown no training step."""
    problem, fix = _without_optimizer(seen) or _why(seen, ended, python)
    return InvalidInputError(problem, file=str(script), fix=fix)


def why_no_gain(run: str, seen: Seen, ended: Ended, *, compiled: bool) -> str:
    """Why one run shows no steady steps, of a script that makes steps as it is, and what helps."""
    error, made = seen.ended.get("error"), plural(len(seen.steps), "step")
    if seen.ended.get("how") == "error" and error not in _OWN_LIMITS:
        if seen.ended.get("by_compiler"):
            whose, helps = "the compiler fails on this script", f"; {_UNCOMPILED}"
        else:
            whose, helps = _OTHERWISE if compiled else "ended by an error", ""
        return f"{run}: {whose} after {made}: {_error_text(seen)}{helps}"
    ran_on = ended.code in (None, 0) and ended.cut in (None, Cut.TIME)
    if seen.steps and ran_on and error not in _OWN_LIMITS:
        return f"{run}: {made} are too few to be steady; --minutes or --steps gives more"
    if compiled and ended.cut is Cut.TIME:
        return f"{run}: still compiled after {duration(ended.seconds)}; --minutes gives more"
    return f"{run}: {'; '.join(_without_optimizer(seen) or _why(seen, ended, Path('python')))}"


def _error_text(seen: Seen) -> str:
    """Class, first line and explanation of an error, with the script's own line."""
    message = str(seen.ended.get("message") or "")
    lines = [message.partition("\n")[0], *_EXPLAINED.findall(message)[:1]]
    at = f" ({seen.ended['at']})" if seen.ended.get("at") else ""
    return f"{seen.ended['error']}: {': '.join(lines)}"[:LONGEST_TEXT] + at


def _without_optimizer(seen: Seen) -> tuple[str, str] | None:
    """Of a script that trains by itself; None of any other."""
    calls = seen.facts.get("calls") or 0
    if calls >= FEWEST_CALLS and not seen.ended.get("error"):
        return (
            f"calls its model for training ({calls} times) without a training step: no optimizer "
            "of torch.optim steps, and without one no loss goes backward",
            "give the argument with which it trains after --, or more --minutes where it trains "
            "later",
        )
    return None


def _why(seen: Seen, ended: Ended, python: Path) -> tuple[str, str]:
    if ended.cut is not None:
        return _cut(ended)
    if ended.code == NO_TORCH and not seen.facts:
        return ("cannot be watched: its Python has no torch",
                f"name one that has what it imports with --python (tried {python})")  # fmt: skip
    if ended.code is not None and ended.code < 0:
        return (
            f"was ended by signal {-ended.code}, as by a crash in native code or a lack of memory",
            "run it by itself to see why; a smaller batch after -- needs less",
        )
    for is_so, problem, fix in (*_of_errors(seen, ended, python), *_of_exits(seen, ended)):
        if is_so:
            return problem, fix
    if ended.code:
        return f"ended with exit code {ended.code}: {_last(ended.tail)}", "run it by itself first"
    return (
        "ended without a training step: a step is a call of a torch.nn.Module in training mode "
        "followed by the step of an optimizer of torch.optim",
        "name the file that trains, or give the arguments with which it does after --",
    )


Cause = tuple[bool, str, str]  # whether it is so, the problem, and the fix


def _of_errors(seen: Seen, ended: Ended, python: Path) -> tuple[Cause, ...]:
    """What the class and the message of an exception say, the surest first."""
    error, message = str(seen.ended.get("error") or ""), str(seen.ended.get("message") or "")
    if not error and not seen.ended.get("how"):
        error, message = _raised(ended.tail)
    at = f" ({seen.ended['at']})" if seen.ended.get("at") else ""
    text = f"{error}: {message}".rstrip(": ").split("\n")[0][:LONGEST_TEXT]
    return (
        (error == "ModuleNotFoundError", f"imports a package that its Python lacks: {text}{at}",
         _install(seen, message, python)),
        (bool(_WHOLE_OBJECT.search(message)),
         f"loads a file that its torch takes for weights alone: {error}: Weights only load "
         f"failed{at}",
         "where you trust the file, set TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 in the environment"),
        (bool(_RELEASE.search(message)),
         f"needs another release of a package: {text}{at}",
         f"install the one that it was written for, as its requirements may say ({python} -m pip), "
         "or name a Python that has it with --python"),
        (bool(seen.facts.get("asks_terminal")) and bool(error),
         f"asks a terminal for its size (stty), and neither a job nor this run has one: {text}{at}",
         "take it from shutil.get_terminal_size() in the code"),
        (error == "EOFError", f"reads from a terminal, and there is none here: {text}{at}",
         "give its answer as an argument after --, or as its default in the code"),
        (bool(error) and bool(_GPU.search(text)), f"asks for a GPU, which is not here: {text}{at}",
         "run compilegate first on a machine that has one, or give the script's own argument for "
         "the processor after --, such as --device cpu"),
        (error in _NO_DATA or bool(_MISSING_DATA.search(message)),
         f"does not find its data: {text}{at}",
         "give its place by the script's own argument after --, from the folder that you are in"),
        (error in _NETWORK or bool(_DOWNLOAD.search(message)),
         f"could not download what it needs: {text}{at}",
         "bring it here first and name its place after --"),
        (error in ("MemoryError", "OutOfMemoryError"), f"ran out of memory: {text}{at}",
         "give a smaller batch after --"),
        (bool(error), f"ended before its first training step: {text}{at}",
         "run it by itself until it trains; compilegate first runs it in the folder that you are "
         "in, with the arguments after --"),
    )  # fmt: skip


def _of_exits(seen: Seen, ended: Ended) -> tuple[Cause, ...]:
    """What the code says with which a script ended itself."""
    return (
        (seen.ended.get("how") == "exit" and seen.ended.get("code") == USAGE,
         f"ended with exit code {USAGE}: {_last(ended.tail)}",
         "give the arguments that it requires after --, as on its own command line"),
        (isinstance(seen.ended.get("code"), str),
         f"ended before its first training step: {seen.ended.get('code')}",
         "give what it asks for after --"),
        (seen.ended.get("how") == "exit",
         f"ended with exit code {seen.ended.get('code')} before its first training step: "
         f"{_last(ended.tail)}", "run it by itself until it trains"),
    )  # fmt: skip


def _cut(ended: Ended) -> tuple[str, str]:
    spent = duration(ended.seconds)
    return {
        Cut.TIME: (
            f"made no training step in {spent}, and was ended",
            "give it less to prepare after --, such as a smaller data set, or more --minutes",
        ),
        Cut.MEMORY: (
            f"took most of this machine's free memory after {spent}, and was ended",
            "give a smaller batch or model after --, or use a machine with more",
        ),
        Cut.PROCESSES: (
            f"started processes without end, and was ended after {spent}",
            "set the workers of its data loaders after --",
        ),
    }[ended.cut or Cut.TIME]


def _install(seen: Seen, message: str, python: Path) -> str:
    quoted = re.findall("'([^']+)'", message) or [message]  # or a requirement, with its release
    name = str(seen.ended.get("module") or "").partition(".")[0] or quoted[0]
    package = shlex.quote(NAMES["installed_as"].get(name, name))
    return (
        f"install it ({python} -m pip install {package}), or name a Python that has it with "
        "--python"
    )


def _raised(tail: str) -> tuple[str, str]:
    """Class and message of the last traceback of a process that left nothing else."""
    for line in reversed(tail.splitlines()):
        if raised := _RAISED.match(line.strip()):
            return raised[1], raised[2]
    return "", ""


def _last(tail: str) -> str:
    lines: Sequence[str] = [line.strip() for line in tail.splitlines() if line.strip()]
    return "".join(mark for mark in lines[-1] if mark.isprintable())[:300] if lines else "no output"

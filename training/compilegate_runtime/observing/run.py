"""Runs the script under observation; the settings are one JSON object.

    {"out": file, "steps": 40, "seconds": 60, "seed": 17, "shift": 0, "compiler": "none"}

``shift`` moves the seeds that the script sets itself, as the launcher does for a script that takes
none.
"""

import contextlib
import json
import os
import platform
import runpy
import sys
import traceback
from pathlib import Path

from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.device import ScriptsDevice
from compilegate_runtime.launching import frameworks, models
from compilegate_runtime.launching.steps import Enough, Steps
from compilegate_runtime.observing.arguments import PLAIN, Arguments
from compilegate_runtime.observing.few import REPORTS_WITHIN_SECONDS, Few, SeenModels, loader_facts
from compilegate_runtime.observing.imports import Imports
from compilegate_runtime.observing.observation import Observation
from compilegate_runtime.seeds import seed_everything, shift_seeds

NO_TORCH = 3  # exit code
MOST_WRITTEN = 100
# Without an optimizer and a backward pass.
CALLS_WITHOUT_STEP = 100
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
LONGEST_MESSAGE = 1000
# Modules of torch.compile.
COMPILER = ("torch._dynamo", "torch._inductor", "torch._functorch")


class Watch:
    """One run of a script that is watched."""

    def __init__(self, settings, script, words):
        import torch  # noqa: PLC0415 — main() has looked for it

        self._torch, self._settings = torch, settings
        self._script, self._words = script.resolve(), words
        device = ScriptsDevice("fp32")
        self._compiler = compiler_for(settings["compiler"])
        self._seen = Observation(settings["out"], device, self._compiler)
        self._seen.facts.update(
            python=platform.python_version(),
            torch=torch.__version__,
            device="cuda" if device.is_gpu else "cpu",
            device_name=getattr(device, "name", None),
            threads=torch.get_num_threads(),
            planned_steps=None,
            managed=None,
            compiles=[],
            wrote=[],
        )
        self._few = self._models = self._steps = None
        self._listening = set()

    def run(self):
        """Run the script to its end, or until it has been seen long enough."""
        self._hook()
        seed_everything(self._settings["seed"])
        if self._settings["shift"]:
            shift_seeds(self._settings["shift"])
        sys.argv = [str(self._script), *self._words]
        sys.path[0] = str(self._script.parent)
        with self._printed():
            self._seen.facts["ended"] = self._run_script()
        self._describe()
        self._seen.write()

    def _run_script(self):
        try:
            runpy.run_path(str(self._script), run_name="__main__")
        except Enough:
            return {"how": "enough"}
        except SystemExit as end:
            failed = end.code not in (None, 0)
            return {"how": "exit", "code": end.code} if failed else {"how": "finished"}
        except BaseException as error:  # noqa: BLE001 — whatever ends a script is what was seen
            shortened = self._few.over and isinstance(error, Exception)
            if not shortened:
                traceback.print_exc()
            return {
                "how": "shortened" if shortened else "error",
                "error": type(error).__name__,
                "message": str(error)[:LONGEST_MESSAGE],
                "file": getattr(error, "filename", None),
                "module": getattr(error, "name", None),
                "at": _place(error, self._script.parent),
                "by_compiler": _is_by_compiler(error),
            }
        return {"how": "finished"}

    def _hook(self):
        torch, seen = self._torch, self._seen
        self._watch_files()
        arguments = Arguments(lambda parsers: seen.facts.update(parsers=parsers))
        arguments.install()
        self._imports = Imports(self._script.parent, lambda: self._imported(arguments))
        self._few = Few(self._settings["steps"], self._settings["seconds"], seen, self._reported)
        self._models = SeenModels(torch, self._compiler)
        self._models.called = seen.called
        self._models.is_stuck = self._is_stuck
        self._steps = Steps(torch, seen, self._models, 0, self._few)
        self._steps.checks.append(lambda _: self._first_step())
        self._models.fed = self._steps.fed
        self._steps.install()
        self._count_compiling()
        self._models.watch()
        self._imports.install()

    def _is_stuck(self):
        without = not self._seen.steps and not self._steps.has_optimizer
        return without and self._seen.calls >= CALLS_WITHOUT_STEP

    def _reported(self):
        """Whether it has reported a metric: to its framework, or in a line since its data ended.

        A script that evaluates once, after all of its epochs, has a few seconds to get there.
        """
        if self._few.seconds_over < REPORTS_WITHIN_SECONDS:
            return False
        return bool(self._seen.metrics) or any(
            step >= self._few.steps_until_end for step, _ in self._seen.lines[-5:]
        )

    def _imported(self, arguments):
        """Hook what has been imported in the meantime."""
        arguments.look_for_click()
        trainer = sys.modules.get("transformers.trainer")
        if "trainer" not in self._listening and hasattr(trainer, "Trainer"):
            self._listening.add("trainer")
            frameworks.listen_to_trainer(self._seen.metrics, lambda n: self._planned("trainer", n))
        for name in ("lightning", "pytorch_lightning"):
            module = sys.modules.get("lightning.pytorch" if name == "lightning" else name)
            if name not in self._listening and hasattr(module, "Trainer"):
                self._listening.add(name)
                frameworks.listen_to_lightning(
                    self._seen.metrics,
                    lambda n: self._planned("lightning", n),
                    None,
                    lambda pl: [self._few.lightning_callback(pl)],
                    {name},
                )

    def _planned(self, by, steps):
        whole = steps if steps > 0 and by == "trainer" else None  # Lightning counts the few
        self._seen.facts.update(managed=by, planned_steps=whole)

    def _count_compiling(self):
        """Leave compiling to this run, and note where the script compiles itself."""
        torch, models_ = self._torch, self._models
        models.leave_compiling_to_the_arm(torch, self._compiler, models_, self._script.parent)
        compile_, in_place = torch.compile, getattr(torch.nn.Module, "compile", None)

        def compiling(model=None, **kwargs):
            self._note_compiling(model)
            return compile_(model, **kwargs)

        def compiling_in_place(module, *args, **kwargs):
            self._note_compiling(module)
            return in_place(module, *args, **kwargs)

        torch.compile = compiling
        if in_place is not None:
            torch.nn.Module.compile = compiling_in_place

    def _note_compiling(self, what):
        frame = sys._getframe(2)
        file = Path(frame.f_code.co_filename)
        if self._script.parent in file.resolve().parents:
            name = type(what).__name__ if isinstance(what, self._torch.nn.Module) else str(what)
            self._seen.facts["compiles"].append([name[:80], f"{file.name}:{frame.f_lineno}"])

    def _first_step(self):
        """The script's plain globals, which a file of settings may have set, and all else."""
        own = vars(sys.modules["__main__"]).items()
        self._seen.facts["globals"] = {
            name: value for name, value in own if isinstance(value, PLAIN) and name[0] != "_"
        }
        self._describe()

    def _describe(self):
        """What is known once a step is over."""
        torch, seen = self._torch, self._seen
        loader = self._steps.training_loader
        seen.facts.update(
            packages=self._imports.packages(),
            types=sorted(self._models.types),
            weights=sorted({str(p.dtype).rpartition(".")[2]
                            for one in self._models.models for p in one.parameters()}),
            autocast=sorted(self._models._cast_to()),
            matmul=getattr(torch, "get_float32_matmul_precision", lambda: None)(),
            models=[type(one).__name__ for one in self._models.models],
            parameters=sum(p.numel() for one in self._models.models for p in one.parameters()),
            loader=None if loader is None else loader_facts(loader),
            loaders=len(self._few.loaders),
        )  # fmt: skip

    def _watch_files(self):
        """Note what the script opens to write, and whether it asks for a terminal's size."""
        wrote, out = self._seen.facts["wrote"], str(self._settings["out"])

        def audit(event, arguments):
            if event == "subprocess.Popen" and "stty" in str(arguments[1]):
                self._seen.facts["asks_terminal"] = True
            if event != "open" or len(wrote) >= MOST_WRITTEN:
                return
            path, _, flags = arguments
            if isinstance(path, str) and isinstance(flags, int) and flags & WRITES:
                place = os.path.abspath(path)  # noqa: PTH100 — a hook of every file: no object
                if not place.startswith((out[:-5], "/dev/", "/proc/")) and place not in wrote:
                    wrote.append(place)

        sys.addaudithook(audit)

    @contextlib.contextmanager
    def _printed(self):
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (_Lines(stream, self._seen.printed) for stream in streams)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams


class _Lines:
    """A text stream that passes all on and hands over each line; a bar's states are lines too."""

    def __init__(self, stream, seen_line):
        self._stream, self._seen_line, self._rest = stream, seen_line, ""

    def write(self, text):
        """Pass ``text`` on."""
        lines = (self._rest + text[-100_000:]).replace("\r", "\n").split("\n")
        self._rest = lines.pop()[-4096:]
        for line in lines[-100:]:
            self._seen_line(line)
        return self._stream.write(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


def _is_by_compiler(error):
    """Whether the compiler raised it, or code that the compiler wrote."""
    if type(error).__module__.startswith(COMPILER):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1].filename.replace(os.sep, ".") if frames else ""
    return any(name in last for name in (*COMPILER, "torchinductor_"))


def _place(error, folder):
    """file:line of the innermost of the script's own files, None where none is in it.

    TorchDynamo raises far from the code that it has read, and keeps the lines of that.
    """
    read = getattr(error, "real_stack", None) or ()
    places = [
        "{}:{}".format(Path(frame.filename).name, frame.lineno)
        for frame in (*traceback.extract_tb(error.__traceback__), *read)
        if str(folder) in frame.filename
    ]
    return places[-1] if places else None


def main():
    """Watch the script of the command line."""
    settings, script, words = json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    try:
        import torch  # noqa: PLC0415, F401 — a Python may lack it
    except ImportError:
        sys.exit(NO_TORCH)
    Watch(settings, script, words).run()

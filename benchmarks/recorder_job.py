"""The runs behind recorder.py, in the training environment's Python.

``steps FOLDER COUNT`` times the recorder's own calls. Each step hands over a loss, a gradient norm
and counts as a real one does, and keeps the processor busy for 10 ms; lines and summaries that fall
due are included. The longest hundredth of the steps is left out: other programs interrupted them.
``outcomes COUNT`` evaluates so many texts and times what keeping their outcomes adds.
``saves ARGUMENT...`` trains the language model and prints when it saved.
"""

import json
import runpy
import sys
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import torch
from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.device import TorchDevice
from compilegate_runtime.outcomes import packed
from compilegate_runtime.recorder import Recorder
from compilegate_runtime.saving import SaveSchedule
from families import tiny

SCRIPT = Path(sys.path[0]) / "causal_lm.py"
STEP_SECONDS = 0.01


def steps(folder: str, count: int) -> None:
    """Print the recorder's time per step, and its share of the steps."""
    torch.set_num_threads(1)
    compiler = compiler_for("torch_compile")
    model = compiler.apply(torch.nn.Linear(4, 1))
    device = TorchDevice("fp32")
    recorder = Recorder(folder, {}, steps=count, compiler=compiler, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    rows, spent, lasted = torch.randn(8, 4), [], []
    for _ in range(count):
        start = begin = time.perf_counter()
        recorder.begin_step()
        recorder.got_batch()
        before = time.perf_counter() - begin
        loss = model(rows).square().mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        work(rows, begin + STEP_SECONDS)
        begin = time.perf_counter()
        recorder.end_step(loss, 8, tokens=512, learning_rate=0.001, gradient_norm=norm)
        spent.append(before + time.perf_counter() - begin)
        lasted.append(time.perf_counter() - start)
    recorder.finish()
    recorder.close()
    # The first step compiles, waits, and writes the first summary.
    steady = sorted(zip(spent[1:], lasted[1:], strict=True))[: int(0.99 * count)]
    own, whole = (sum(times) for times in zip(*steady, strict=True))
    middle = steady[len(steady) // 2][0]
    print(
        json.dumps(
            {
                "steps": len(steady),
                "mean_us": round(own / len(steady) * 1e6, 1),
                "median_us": round(middle * 1e6, 1),
                "step_ms": round(whole / len(steady) * 1000, 2),
                "share_of_the_steps": round(own / whole, 5),
                "torch": torch.__version__,
            }
        )
    )


def outcomes(count: int) -> None:
    """Print what keeping the outcomes of so many texts adds to their evaluation.

    The model is the small classifier of ``training/text_classification.py``, on texts of 128 words.
    """
    torch.set_num_threads(1)
    sizes = SimpleNamespace(width=96, layers=2, heads=4, vocabulary=4096, max_length=128)
    model = tiny.Encoder(4, sizes, dropout=0.0, approximate="none").eval()
    texts, right = torch.randint(1, 4096, (count, 128), dtype=torch.int32), []
    began = time.perf_counter()
    with torch.no_grad():
        for some in texts.split(32):
            right += (model(some, some > 0).argmax(-1) == 1).tolist()
    evaluated = time.perf_counter()
    packed(right, [text.tobytes() for text in texts.numpy()])
    kept = time.perf_counter()
    print(
        json.dumps(
            {
                "examples": count,
                "us_per_example": round((kept - evaluated) / count * 1e6, 2),
                "share_of_the_evaluation": round((kept - evaluated) / (evaluated - began), 5),
            }
        )
    )


def work(rows: torch.Tensor, until: float) -> None:
    """Keep the processor as busy as a step of 10 ms does."""
    while time.perf_counter() < until:
        rows.mm(rows.T)


def saves(*words: str) -> None:
    """Train; the last line of output is a list of saves, each with step, end and seconds."""
    made: list[dict[str, float]] = []
    taken = [0]
    saved, ended = SaveSchedule.saved, Recorder.end_step

    def note_save(schedule: SaveSchedule, seconds: float = 0.0) -> None:
        made.append({"step": taken[0], "at": time.monotonic(), "seconds": seconds})
        saved(schedule, seconds)

    def note_step(recorder: Recorder, *args: object, **kwargs: object) -> None:
        ended(recorder, *args, **kwargs)
        taken[0] = recorder.steps_done

    SaveSchedule.saved, Recorder.end_step = note_save, note_step
    sys.argv = [str(SCRIPT), *words]
    runpy.run_path(str(SCRIPT), run_name="__main__")
    print(json.dumps(made))


if __name__ == "__main__":
    if sys.argv[1] == "steps":
        steps(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "outcomes":
        outcomes(int(sys.argv[2]))
    else:
        saves(*sys.argv[2:])

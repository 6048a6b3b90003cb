"""Trains the language model and prints when it saved; run by the training environment's Python."""

import json
import runpy
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from compilegate_runtime.recorder import Recorder
from compilegate_runtime.save_schedule import SaveSchedule

SCRIPT = Path(__file__).resolve().parents[1] / "training" / "causal_lm.py"


def main(words: list[str]) -> None:
    """Train; the last line of output is a list of saves, each with step, end and seconds."""
    saves: list[dict[str, float]] = []
    steps = [0]
    saved, ended = SaveSchedule.saved, Recorder.end_step

    def note_save(schedule: SaveSchedule, seconds: float = 0.0) -> None:
        saves.append({"step": steps[0], "at": time.monotonic(), "seconds": seconds})
        saved(schedule, seconds)

    def note_step(recorder: Recorder, *args: object, **kwargs: object) -> None:
        ended(recorder, *args, **kwargs)
        steps[0] = recorder.steps_done

    SaveSchedule.saved, Recorder.end_step = note_save, note_step
    sys.argv = [str(SCRIPT), *words]
    runpy.run_path(str(SCRIPT), run_name="__main__")
    print(json.dumps(saves))


if __name__ == "__main__":
    main(sys.argv[1:])

"""A stand-in for a training script: writes the requested evidence, at once.

Knobs (hyperparameters): speedup of the compiled arms, loss_shift of the compiled arms,
production_shift of their loss in production's runs alone, noise of the loss; speeds of arms by name
(`p4d=1.1,two=1.5`), whatever compiles; and arms by name: behind (its speed-up is 0.1 less), crash,
hang, nan (it diverges), slow (its full runs take seconds; slow_seed: only the one of that seed);
wait_for (full runs of compiled arms wait until this file exists). With INJECTED_FAULT in its
environment a compiled arm loses 0.2.
"""

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser()
ARMS = ("behind", "crash", "hang", "nan", "slow")
for name in ("arm", "compiler", "compile_mode", "precision", "speeds", *ARMS):
    parser.add_argument(f"--{name}", default="")
for name in ("batch_size", "seed", "replicate", "max_steps", "slow_seed"):
    parser.add_argument(f"--{name}", type=int, default=0)
for name in ("learning_rate", "speedup", "loss_shift", "noise"):
    parser.add_argument(f"--{name}", type=float, default=1.0)
parser.add_argument("--production_shift", type=float, default=0.0)
parser.add_argument("--wait_for", default="")
args = parser.parse_args()

FULL_STEPS = 2000
# Of a step, of a run's start-up and of compilation: a run says that it took under a minute, which
# fits into what the service takes for rounding.
STEP_SECONDS, STARTING, COMPILING = 0.01, 1.6, 0.7
compiled = args.compiler != "none"
full_run = args.max_steps == 0

if args.hang == args.arm and full_run:
    print("compilegate step=1 steps=2000 seconds=0.03 samples_per_second=1.0 loss=3.0", flush=True)
    time.sleep(600)
if args.slow == args.arm and full_run and args.slow_seed in (0, args.seed):
    time.sleep(4)
while compiled and full_run and args.wait_for and not Path(args.wait_for).exists():
    time.sleep(0.05)
if args.crash == args.arm and full_run:
    Path(os.environ["SM_OUTPUT_DIR"], "failure").write_text("RuntimeError: CUDA out of memory")
    sys.exit(1)

rng = random.Random(f"{args.arm}-{args.seed}-{os.getpid()}")
speedup = args.speedup - 0.1 * (args.behind == args.arm)
speeds = dict(item.split("=") for item in args.speeds.split(",") if item)
step_seconds = STEP_SECONDS / float(speeds.get(args.arm, speedup if compiled else 1.0))
steps = FULL_STEPS if full_run else args.max_steps
samples = 32
out = Path(
    os.environ.get("COMPILEGATE_EVIDENCE_DIR") or Path(os.environ["SM_OUTPUT_DATA_DIR"], "evidence")
)
out.mkdir(parents=True, exist_ok=True)
with (out / "steps.jsonl").open("w") as lines:
    for step in range(1, steps + 1):
        seconds = step_seconds * (1 + 0.01 * rng.gauss(0, 1))
        line = {"step": step, "seconds": seconds, "samples": samples, "tokens": None,
                "loss": 3.0 - step / 1e4, "data_wait_seconds": 0.0}  # fmt: skip
        lines.write(json.dumps(line) + "\n")
# The same for an arm and seed wherever it runs, so that a trial's verdict is no chance.
chance = random.Random(f"{args.arm}-{args.seed}").gauss(0, 1)
shift = args.loss_shift + args.production_shift * ("COMPILEGATE_RUN" in os.environ)
shift += 0.2 * ("INJECTED_FAULT" in os.environ)
loss = 2.5 + (shift if compiled else 0.0) + args.noise * chance
finished = not (args.nan == args.arm and full_run)
summary = {
    "schema": 1,
    "job": os.environ.get("TRAINING_JOB_NAME", ""),
    "arm": args.arm,
    "replicate": args.replicate,
    "seed": args.seed,
    "compiler": {
        "requested": args.compiler, "applied": True, "proof": "told so",
        "compile_seconds": COMPILING if compiled else 0.0, "graphs": 1, "recompiles": 0,
        "graph_breaks": 0,
    },
    "metrics": {"eval_loss": loss} if finished else {},
    "loss_curve": [[1, 3.0], [steps, 2.8]],
    "peak_memory_gib": 1.0,
    "devices": 1,
    "fingerprint": {
        "gpu": os.environ["SM_CURRENT_INSTANCE_TYPE"], "image": os.environ["COMPILEGATE_IMAGE"],
        "code_sha256": "c", "data_sha256": "d",
    },
    "initial_loss": 3.0,
    "finished": finished,
    "reason": None if finished else "loss is NaN",
    "full_run_steps": FULL_STEPS,
    "wall_seconds": STARTING + FULL_STEPS * step_seconds,
}  # fmt: skip
(out / "summary.json").write_text(json.dumps(summary))
print(f"compilegate step={steps} steps={steps} seconds={step_seconds} loss=2.8", flush=True)

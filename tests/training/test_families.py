"""The model families, tiny, on every kind of file; arms that must not differ do not."""

import csv
import json
import subprocess
from pathlib import Path

import pytest

from compilegate.domain.judging.evidence import read_outcomes
from tests.training.jobs import AFRESH, PYTHON, SCRIPTS

pytestmark = pytest.mark.training

GPT2 = {
    "model": "gpt2", "width": 16, "layers": 1, "heads": 2, "block": 16, "vocabulary": 300,
    "steps": 4, "batch_size": 4, "learning_rate": 1e-3, "eval_blocks": 4,
}  # fmt: skip
BERT = {
    "model": "bert", "width": 16, "layers": 1, "heads": 2, "max_length": 24, "vocabulary": 300,
    "steps": 4, "batch_size": 4, "learning_rate": 1e-3,
}  # fmt: skip
TINY = {"width": 16, "layers": 1, "heads": 2, "max_length": 24}
UNET = {"size": 16, "steps": 2, "batch_size": 2, "eval_images": 2}
SLOW = (
    "diffusers.models.unets.unet_2d_condition",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
    "tokenizers",
)
WRITE_OTHERS = """
import json, pathlib, sys
import numpy, pyarrow, pyarrow.parquet
from PIL import Image
rows = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
out = pathlib.Path(sys.argv[2])
for channel in ("train", "validation"):
    (out / "parquet" / channel).mkdir(parents=True)
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(rows), out / "parquet" / channel / "rows.parquet"
    )
from sklearn.datasets import load_sample_images
images = load_sample_images()
for channel, left in (("train", 0), ("validation", 400)):
    for name, photograph in zip(images.filenames, images.images):
        folder = out / "pictures" / channel / pathlib.Path(name).stem
        folder.mkdir(parents=True)
        for number, (height, width) in enumerate([(48, 48), (32, 64), (64, 32)]):
            piece = numpy.ascontiguousarray(photograph[100:100 + height, left:left + width])
            Image.fromarray(piece).save(folder / f"{number}.png")
"""


def channels(folder):
    return {
        f"SM_CHANNEL_{channel.upper()}": str(folder / channel)
        for channel in ("train", "validation")
    }


@pytest.fixture(scope="module")
def other_files(jobs):
    """The same rows as parquet, CSV and text, and pictures."""
    source = jobs.channels["train"] / "text.jsonl"
    folder = jobs.folder / "others"
    subprocess.run([PYTHON, "-c", WRITE_OTHERS, source, folder], check=True)
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    for channel in ("train", "validation"):
        place = folder / "csv" / channel
        place.mkdir(parents=True)
        with (place / "rows.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["sentence", "label"])
            writer.writeheader()
            writer.writerows({"sentence": row["text"], "label": row["topic"]} for row in rows)
        place = folder / "text" / channel
        place.mkdir(parents=True)
        (place / "rows.txt").write_text("".join(row["text"] + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def done(jobs, other_files):
    """Every run that the tests below look at, made from one warm process."""
    parquet, table, text, pictures = (
        channels(other_files / name) for name in ("parquet", "csv", "text", "pictures")
    )
    named = {**BERT, "text_column": "sentence", "label_column": "label"}
    weights = jobs.folder / "gpt2"
    weights.mkdir()
    start = {"SM_CHANNEL_MODEL": str(weights)}
    jobs.warm(*SLOW)
    return jobs.run_all(
        {
            "gpt2": ("causal_lm.py", {"SM_MODEL_DIR": str(weights)}, GPT2),
            "gpt2-parquet": ("causal_lm.py", {**parquet, **AFRESH}, GPT2),
            "gpt2-text": ("causal_lm.py", text, GPT2),
            "gpt2-tuned": ("causal_lm.py", start, GPT2),
            "gpt2-classifies": ("text_classification.py", start, {**BERT, "max_length": 16}),
            "epoch": ("text_classification.py", {}, {**TINY, "epochs": 1, "batch_size": 4}),
            "bert": ("text_classification.py", {}, BERT),
            "bert-csv": ("text_classification.py", table, named),
            "bert-static": ("text_classification.py", {}, {**BERT, "padding": "max_length"}),
            "unet": ("diffusion.py", pictures, UNET),
            "unet-parts": ("diffusion.py", pictures, {**UNET, "micro_batches": 2, "workers": 0}),
            "unet-sizes": ("diffusion.py", pictures, {**UNET, "sizes": "variable"}),
        }
    )


def losses(run):
    assert 0 == run.status, run.output

    return [step["loss"] for step in run.steps()]


@pytest.mark.parametrize(
    ("name", "metrics", "counts_tokens"),
    [
        ("gpt2", {"eval_loss", "eval_perplexity"}, True),
        ("bert", {"eval_accuracy"}, True),
        ("unet", {"eval_loss"}, False),
    ],
)
def test_a_family_leaves_its_metric_and_counts_its_work(done, name, metrics, counts_tokens):
    losses(done[name])
    summary = done[name].summary()

    assert metrics == summary["metrics"].keys()
    assert summary["finished"] is True
    (metric,) = metrics & summary["outcomes"].keys()
    kept = read_outcomes(summary["outcomes"][metric])
    assert summary["metrics"][metric] == pytest.approx(kept.mean, rel=1e-6)
    assert counts_tokens == all(step["tokens"] for step in done[name].steps())


@pytest.mark.parametrize(("ours", "theirs"), [("gpt2-parquet", "gpt2"), ("bert-csv", "bert")])
def test_a_seed_gives_the_same_run_in_a_fresh_process_whatever_the_files(done, ours, theirs):
    assert losses(done[theirs]) == losses(done[ours])
    for key in ("metrics", "outcomes"):
        assert done[theirs].summary()[key] == done[ours].summary()[key]


def test_a_batch_worked_through_in_parts_is_the_same_batch(done):
    assert losses(done["unet-parts"]) == pytest.approx(losses(done["unet"]), rel=1e-4)


@pytest.mark.parametrize(("ours", "theirs"), [("bert-static", "bert"), ("unet-parts", "unet")])
def test_arms_start_from_the_same_weights_and_the_same_batch(done, ours, theirs):
    losses(done[ours])
    expected = done[theirs].summary()["initial_loss"]

    assert done[ours].summary()["initial_loss"] == pytest.approx(expected, rel=1e-5)


def test_weights_of_the_channel_model_are_where_a_run_starts(done):
    ours, theirs = done["gpt2-tuned"], done["gpt2"]

    assert losses(ours)
    assert ours.summary()["initial_loss"] < theirs.summary()["initial_loss"]
    tokens = [[step["tokens"] for step in one.steps()] for one in (ours, theirs)]
    assert tokens[0] == tokens[1]
    losses(done["gpt2-classifies"])
    assert {"eval_accuracy"} == done["gpt2-classifies"].summary()["metrics"].keys()


def test_plain_text_trains_a_language_model(done):
    assert losses(done["gpt2-text"])[-1] < done["gpt2-text"].summary()["initial_loss"]


def test_epochs_take_the_steps_of_their_batches(done):
    assert (6, 6) == (len(losses(done["epoch"])), done["epoch"].summary()["full_run_steps"])


def test_padding_is_no_work(done):
    padded = [step["tokens"] for step in done["bert-static"].steps()]

    assert [step["tokens"] for step in done["bert"].steps()] == padded
    assert max(padded) < 4 * 24 + 1


def test_images_of_any_size_change_the_shape_and_not_the_order(done):
    assert len(losses(done["unet"])) == len(losses(done["unet-sizes"]))
    assert losses(done["unet"]) != losses(done["unet-sizes"])


def test_tokens_are_cached_beside_the_channel_and_not_in_it(done, jobs):
    losses(done["gpt2"])
    cache = jobs.channels["train"].parent / "compilegate-cache"
    names = sorted(path.name for path in cache.iterdir())

    assert ["text.jsonl"] == [path.name for path in jobs.channels["train"].iterdir()]
    assert names
    assert not [name for name in names if name.startswith("tmp")]


@pytest.mark.slow
def test_a_stable_diffusion_is_tuned_on_the_latents_of_its_images(jobs, other_files, tmp_path):
    jobs.warm(*SLOW)
    made = jobs.run(Path(__file__).with_name("miniature_diffusion.py"), folder=tmp_path)
    assert 0 == made.status, made.output
    there = {**channels(other_files / "pictures"), "SM_CHANNEL_MODEL": str(tmp_path)}
    done = jobs.run("diffusion.py", there, **{**UNET, "size": 8, "sizes": "variable"})

    assert 2 == len(losses(done))
    assert {"eval_loss"} == done.summary()["metrics"].keys()


@pytest.mark.slow
def test_a_compiled_unet_starts_where_its_baseline_does(jobs, other_files):
    there, script = channels(other_files / "pictures"), SCRIPTS / "small_unet.py"
    arm = {"compiler": "torch_compile", "arm": "compile"}
    baseline = jobs.run(script, there, **UNET)
    compiled = jobs.run_in_few_files(script, there, **arm, **UNET)
    assert len(losses(baseline)) == len(losses(compiled))
    ours, theirs = compiled.summary(), baseline.summary()

    assert (True, 0) == (ours["compiler"]["applied"], ours["compiler"]["graph_breaks"])
    assert ours["initial_loss"] == pytest.approx(theirs["initial_loss"], rel=1e-6)
    assert ours["fingerprint"] == theirs["fingerprint"]
    assert ours["metrics"]["eval_loss"] == pytest.approx(theirs["metrics"]["eval_loss"], rel=0.02)


LOADED = """
import json, os, sys, torch
from families.checkpoints import saved_state

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"

class Acts:
    def __reduce__(self):
        return open, (sys.argv[1] + "/acted", "w")

file = sys.argv[1] + "/state.pt"
torch.save({"random": torch.get_rng_state(), "schedule": {"last_epoch": 3}, "scaler": None}, file)
sound = saved_state(file)
of_2, asked = torch.load, []
torch.load = lambda f, map_location=None, **others: asked.append(others)
saved_state(file)
torch.load = of_2
torch.save(Acts(), file)
try:
    saved_state(file)
except Exception as error:
    said = [sound["schedule"], str(sound["random"].dtype), asked, type(error).__name__]
    print(json.dumps(said))
"""


def test_a_checkpoint_is_read_without_running_what_is_in_it(jobs, tmp_path):
    """Whatever the release of PyTorch does by itself; one before 1.13 knows no other way."""
    said = [{"last_epoch": 3}, "torch.uint8", [{}], "UnpicklingError"]

    assert said == jobs.run_code(LOADED, str(tmp_path))
    assert not (tmp_path / "acted").exists()

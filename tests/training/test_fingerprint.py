"""What identifies a run: its code, its data and their columns, the weights it starts from."""

import json

import pytest
from compilegate_runtime import fingerprint

COLUMNS = {"text": "a film", "label": 1, "score": 0.5}


def digest(folder, name, text, channel="train"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return fingerprint.data_schema_digest({channel: folder})


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("name", "before", "same", "other"),
    [
        ("a.jsonl", lines(COLUMNS), lines({**COLUMNS, "text": "b"}), lines({**COLUMNS, "id": 1})),
        ("a.jsonl", lines(COLUMNS), lines({**COLUMNS, "score": 1}),
         lines({**COLUMNS, "label": "1"})),
        ("a.jsonl", lines(COLUMNS), lines({**COLUMNS, "score": None}, COLUMNS),
         lines({"text": "a"})),
        ("a.csv", "text,label\na,1\n", "text,label\nb,0\n", "text,stars\na,1\n"),
        ("a.csv", "1.5,2,3\n", "0,0,1\n", "1.5,2\n"),
    ],
)  # fmt: skip
def test_rows_do_not_matter_and_columns_do(tmp_path, name, before, same, other):
    first = digest(tmp_path, name, before)

    assert first is not None
    assert first == digest(tmp_path, name, same)
    assert first != digest(tmp_path, name, other)


def test_parquet_is_known_by_its_schema(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    collected = []
    for columns in (
        {"a": [1], "b": ["x"]},
        {"a": [2, 3], "b": ["y", "z"]},
        {"a": [1.0], "b": ["x"]},
    ):
        parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
        collected.append(fingerprint.data_schema_digest({"train": tmp_path}))

    assert collected[0] == collected[1] != collected[2]


def test_a_channel_moved_or_without_tables_is_distinguished(tmp_path):
    table = digest(tmp_path / "tables", "a.csv", "a,b\n")

    assert table != digest(tmp_path / "tables", "a.csv", "a,b\n", channel="validation")
    assert None is digest(tmp_path / "plain", "a.txt", "no columns")
    assert None is fingerprint.data_schema_digest({})


def test_a_broken_file_makes_it_unknown_and_stops_no_job(tmp_path):
    assert None is digest(tmp_path, "a.jsonl", "{broken")


def test_the_data_digest_changes_with_any_byte_of_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1,2\n")
    before = fingerprint.data_digest({"train": tmp_path})
    path.write_text("1,3\n")

    assert before != fingerprint.data_digest({"train": tmp_path})
    assert fingerprint.data_digest({}) is None


def test_the_recorder_is_no_part_of_the_code_that_a_run_names(tmp_path):
    (tmp_path / "train.py").write_text("train")
    before = fingerprint.code_digest(tmp_path)
    (tmp_path / "compilegate_runtime").mkdir()
    (tmp_path / "compilegate_runtime" / "recorder.py").write_text("recorder")
    with_recorder = fingerprint.code_digest(tmp_path)
    (tmp_path / "train.py").write_text("trains otherwise")

    assert before == with_recorder != fingerprint.code_digest(tmp_path)


FINGERPRINTS = """
import json
import torch
from compilegate_runtime.fingerprint import InitialWeights
from torch import nn

def of(*models):
    weights = InitialWeights()
    for model in models:
        weights.add(model)
    return weights.sha256()

class Wrapper(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

def model(seed, width=300):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(width, 300), nn.LayerNorm(300), nn.Linear(300, 2))

changed = model(1)
with torch.no_grad():
    changed[2].bias[0] += 1
pinned = model(1)
with torch.no_grad():
    pinned[0].weight[1:].zero_()
print(json.dumps({
    "same": of(model(1)), "again": of(model(1)),
    "compiled": of(torch.compile(model(1))), "wrapped": of(Wrapper(model(1))),
    "double": of(model(1).double()),
    "seed": of(model(2)), "width": of(model(1, 299)), "half": of(model(1).bfloat16()),
    "bias": of(changed), "most of one": of(pinned), "two": of(model(1), model(1)),
    "none": of(), "lazy": of(nn.LazyLinear(3)), "meta": of(nn.Linear(3, 3, device="meta")),
}))
"""


@pytest.mark.training
def test_weights_have_a_fingerprint_of_their_own_however_they_are_wrapped(jobs):
    weights = jobs.run_code(FINGERPRINTS)
    same, others, unread = (
        {name: weights[name] for name in names}
        for names in (
            ("same", "again", "compiled", "wrapped", "double"),
            ("seed", "width", "half", "bias", "most of one", "two"),
            ("none", "lazy", "meta"),
        )
    )

    assert dict.fromkeys(same, weights["same"]) == same
    assert dict.fromkeys(others, 64) == {name: len(text) for name, text in others.items()}
    assert weights["same"] not in others.values()
    assert dict.fromkeys(unread) == unread

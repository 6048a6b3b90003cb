"""Small data in the formats that public scripts expect; started by the Python of the scripts.

    python data.py MAKER PATH [MORE…]

Everything is noise of a fixed seed: what matters are names, shapes and types.
"""

import gzip
import json
import pickle
import struct
import sys
import wave
from pathlib import Path

import numpy as np

NOISE = np.random.default_rng(0)
WORDS = (
    "the", "cat", "sat", "on", "a", "mat", "while", "many", "dogs", "ran", "over", "green", "hills",
    "and", "small", "birds", "sang",
)  # fmt: skip


def mnist(root, samples=2000, tested=500):
    """Handwritten digits, as torchvision keeps them below ``root``."""
    raw = Path(root, "MNIST", "raw")
    raw.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", int(samples)), ("t10k", int(tested))):
        images = NOISE.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = NOISE.integers(0, 10, count, dtype=np.uint8)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes()
        )
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 2049, count) + labels.tobytes()
        )


def picture(path, size, highest=255):
    """One picture of noise; ``highest`` is 1 for a mask."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    if highest == 1:
        Image.fromarray(NOISE.integers(0, 2, (size, size), dtype=np.uint8) * 255).save(path)
    else:
        Image.fromarray(NOISE.integers(0, 256, (size, size, 3), dtype=np.uint8)).save(path)


def pictures(root, parts="train,val", size=32, count=64, kinds=2):
    """A folder of pictures for each class of each part; no part, no class: one flat folder."""
    for part in parts.split(","):
        for kind in range(int(kinds)):
            for index in range(int(count) // int(kinds)):
                picture(Path(root, part, f"class{kind}", f"{index}.png"), int(size))


def flat(root, size=32, count=64):
    """One folder of pictures."""
    for index in range(int(count)):
        picture(Path(root, f"{index}.png"), int(size))


def masks(root, size=96, count=24):
    """Pictures and masks in two folders."""
    for index in range(int(count)):
        picture(Path(root, "imgs", f"{index}.png"), int(size))
        picture(Path(root, "masks", f"{index}.png"), int(size), highest=1)


def boxes(root, size=64, count=32):
    """Pictures with boxes in YOLO's form, lists of them, and data files of both dialects."""
    root = Path(root).absolute()
    for part in ("train", "val"):
        names = []
        for index in range(int(count)):
            image = root / "images" / part / f"{index}.png"
            picture(image, int(size))
            label = root / "labels" / part / f"{index}.txt"
            label.parent.mkdir(parents=True, exist_ok=True)
            label.write_text("0 0.5 0.5 0.4 0.4\n1 0.3 0.3 0.2 0.2\n")
            names.append(str(image))
        (root / f"{part}.txt").write_text("\n".join(names) + "\n")
    (root / "names").write_text("one\ntwo\n")
    (root / "data.yaml").write_text(
        f"path: {root}\ntrain: images/train\nval: images/val\nnc: 2\nnames: [one, two]\n"
    )
    (root / "small.data").write_text(
        f"classes=80\ntrain={root}/train.txt\nvalid={root}/val.txt\nnames={root}/names\n"
    )


def planetoid(root, nodes=1200, features=64, classes=7):
    """The raw files of Cora, as torch_geometric reads them."""
    import scipy.sparse as sp

    raw = Path(root, "Cora", "raw")
    raw.mkdir(parents=True, exist_ok=True)
    tested, labelled = 100, 140
    rest = nodes - tested

    def words(count):
        return sp.csr_matrix((NOISE.random((count, features)) < 0.1).astype(np.float32))

    def labels(count):
        return np.eye(classes, dtype=np.int32)[NOISE.integers(0, classes, count)]

    every, every_label = words(rest), labels(rest)
    contents = {
        "x": every[:labelled], "y": every_label[:labelled], "allx": every, "ally": every_label,
        "tx": words(tested), "ty": labels(tested),
        "graph": {one: [int(other) for other in NOISE.integers(0, nodes, 4)]
                  for one in range(nodes)},
    }  # fmt: skip
    for name, content in contents.items():
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(content))
    rows = "\n".join(str(one) for one in range(rest, nodes))
    (raw / "ind.cora.test.index").write_text(rows + "\n")


def cora(folder, nodes=1600, features=32):
    """Papers with their words and class, and which cites which."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    words = NOISE.integers(0, 2, (nodes, features))
    rows = [f"{one}\t" + "\t".join(map(str, words[one])) + f"\tclass{one % 7}"
            for one in range(nodes)]  # fmt: skip
    Path(folder, "cora.content").write_text("\n".join(rows) + "\n")
    cites = [f"{one}\t{other}" for one, other in NOISE.integers(0, nodes, (3 * nodes, 2))]
    Path(folder, "cora.cites").write_text("\n".join(cites) + "\n")


def series(path, rows=3000, columns="HUFL,HULL,MUFL,MULL,LUFL,LULL,OT"):
    """A table with an hourly date."""
    import pandas as pd

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    names = columns.split(",")
    table = pd.DataFrame(NOISE.normal(size=(int(rows), len(names))), columns=names)
    table.insert(0, "date", pd.date_range("2016-07-01", periods=int(rows), freq="h"))
    table.to_csv(path, index=False)


def waves(path):
    """What time_sequence_prediction's own generator writes: 100 sines of 1,000 values."""
    import torch

    phase = NOISE.integers(-80, 80, 100)[:, None]
    torch.save(np.sin((np.arange(1000) + phase) / 20.0).astype("float64"), path)


def tokens(folder, count=20_000, vocabulary=65):
    """Tokens of two bytes for training and validation, and their vocabulary."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for part in ("train", "val"):
        ids = NOISE.integers(0, int(vocabulary), int(count), dtype=np.uint16)
        Path(folder, f"{part}.bin").write_bytes(ids.tobytes())
    meta = {"vocab_size": int(vocabulary), "itos": {}, "stoi": {}}
    Path(folder, "meta.pkl").write_bytes(pickle.dumps(meta))


def sentence(words=12):
    """A few words."""
    return " ".join(NOISE.choice(WORDS, int(words)))


def text(path, lines=800):
    """Lines of words."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("\n".join(sentence() for _ in range(int(lines))) + "\n")


def packed_text(path, lines=800):
    """The same, compressed."""
    Path(path).write_bytes(gzip.compress("\n".join(sentence() for _ in range(int(lines))).encode()))


def instructions(path, count=64):
    """Questions with answers, as JSON."""
    rows = [{"instruction": sentence(), "input": "", "output": sentence()}
            for _ in range(int(count))]  # fmt: skip
    Path(path).write_text(json.dumps(rows))


def chats(folder, count=64):
    """A data set of conversations in JSON lines, for training and for evaluation."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        rows = [{"text": sentence(24)} for _ in range(int(count))]
        Path(folder, f"{part}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


def pairs(folder, count=96):
    """Pairs of sentences with a score, in JSON lines."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for part in ("train", "validation", "test"):
        rows = [{"sentence1": sentence(), "sentence2": sentence(), "score": float(NOISE.random())}
                for _ in range(int(count))]  # fmt: skip
        Path(folder, f"{part}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


def _tokenizer(special):
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: index for index, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=special[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def bert(folder):
    """A tiny BERT with first weights, and its tokenizer."""
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
    PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(special), unk_token="[UNK]", pad_token="[PAD]",
        cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", model_max_length=64,
    ).save_pretrained(folder)  # fmt: skip
    config = BertConfig(
        vocab_size=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=128, max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)


def llama(folder):
    """A tiny Llama with first weights, and its tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    special = ["<unk>", "<s>", "</s>", "<pad>"]
    PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(special), unk_token="<unk>", bos_token="<s>",
        eos_token="</s>", pad_token="<pad>", model_max_length=64,
    ).save_pretrained(folder)  # fmt: skip
    config = LlamaConfig(
        vocab_size=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, intermediate_size=128, max_position_embeddings=128,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def pretrained(name):
    """First weights of a timm model where its pretrained ones would be kept."""
    import os

    import timm
    from safetensors.torch import save_file

    model = timm.create_model(name)
    folder = Path(os.environ["HOME"], ".cache/huggingface/hub",
                  "models--" + model.pretrained_cfg["hf_hub_id"].replace("/", "--"))  # fmt: skip
    snapshot = folder / "snapshots" / "0"
    snapshot.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("0")
    save_file(model.state_dict(), snapshot / "model.safetensors")


def pets(folder, count=48):
    """Pictures whose names say their class."""
    for index in range(int(count)):
        picture(Path(folder, f"kind{index % 3}_{index}.jpg"), 64)


def mixtures(folder, count=24, seconds=2, rate=8000):
    """Recordings of two voices and of each of them, with lists of their lengths."""
    for part in ("tr", "cv"):
        for voice in ("mix", "s1", "s2"):
            rows = []
            for index in range(int(count)):
                path = Path(folder, part, voice, f"{index}.wav").absolute()
                path.parent.mkdir(parents=True, exist_ok=True)
                sound = NOISE.integers(-9000, 9000, int(seconds) * int(rate), dtype=np.int16)
                with wave.open(str(path), "wb") as file:
                    file.setparams((1, 2, int(rate), len(sound), "NONE", ""))
                    file.writeframes(sound.tobytes())
                rows.append([str(path), len(sound)])
            Path(folder, part, f"{voice}.json").write_text(json.dumps(rows))


def ratings(folder, users=200, items=100):
    """Ratings of films, as MovieLens writes them."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    rows = [f"{user}::{item}::{NOISE.integers(1, 6)}::0" for user in range(1, int(users) + 1)
            for item in NOISE.integers(1, int(items), 20)]  # fmt: skip
    Path(folder, "ratings.dat").write_text("\n".join(rows) + "\n")


def purchases(path, users=200, items=100):
    """Users and what they bought, in order."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{user} {item}" for user in range(1, int(users) + 1)
            for item in NOISE.integers(1, int(items), 12)]  # fmt: skip
    Path(path).write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

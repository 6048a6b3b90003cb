"""Writes the demo's input channels from what every machine with Python already has.

    python training/prepare_data.py workloads/data

``docstrings``: the documentation strings of the standard library, labelled with the chapter
of the library reference that their module belongs to. Only modules that every supported
Python has are read, from source, so the same Python version gives the same files.
``table``: the Wisconsin breast cancer biopsies that scikit-learn carries (569 real cases, 30
measurements each). ``pictures``: pieces of the two photographs that scikit-learn carries, of
different proportions; the held-out ones are cut from a part of each that training never sees.
Both need scikit-learn, so run this with the training environment's Python.
"""

import ast
import csv
import hashlib
import importlib.util
import io
import json
import os
import sys
import sysconfig
from pathlib import Path

TOPICS = {
    "text": "re string textwrap difflib json csv configparser html xml codecs encodings "
    "plistlib pprint reprlib tomllib locale gettext shlex optparse argparse getopt",
    "numbers": "_pydecimal fractions statistics random datetime _pydatetime calendar numbers "
    "heapq bisect colorsys ipaddress uuid zoneinfo graphlib operator",
    "files": "os posixpath ntpath genericpath pathlib shutil tempfile zipfile tarfile gzip bz2 "
    "lzma glob fnmatch fileinput filecmp stat linecache _pyio shelve dbm pickle copy zipapp",
    "concurrency": "asyncio threading multiprocessing concurrent queue sched subprocess "
    "selectors contextlib _threading_local signal weakref",
    "network": "email http urllib xmlrpc smtplib ftplib imaplib poplib socket socketserver ssl "
    "wsgiref mailbox mimetypes webbrowser base64 quopri hmac netrc secrets",
    "tools": "unittest doctest pdb bdb trace profile pstats timeit pydoc cProfile tracemalloc "
    "traceback logging warnings cmd code codeop venv site platform sysconfig",
    "language": "ast dis inspect importlib typing enum dataclasses collections functools abc "
    "_collections_abc types pickletools tokenize symtable pyclbr pkgutil runpy zipimport "
    "py_compile compileall ctypes modulefinder keyword copyreg",
}
VALIDATION_SHARE = 0.15
TABLE_VALIDATION_SHARE = 0.25
PIECE_SHAPES = ((96, 96), (72, 128), (128, 72))  # height, width
PIECE_STRIDE = 64
PICTURE_VALIDATION_SHARE = 0.25  # right of a photograph
SHORTEST = 40  # characters; shorter ones say too little to have a topic


def main(folder):
    """Write every channel below ``folder``."""
    rows = list(docstrings())
    for channel in ("train", "validation"):
        chosen = [row for row in rows if row["channel"] == channel]
        path = folder / "docstrings" / channel / "docstrings.jsonl"
        lines = [{key: row[key] for key in ("name", "topic", "text")} for row in chosen]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        put(path, text.encode(), folder)
        print(f"{path}: {len(chosen)} docstrings")
    write_table(folder / "table")
    write_pictures(folder / "pictures")


def put(path, body, folder):
    """Write a file of ``folder`` in one step: another demo may be reading it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{os.getpid()}.partial"  # in no channel
    partial.write_bytes(body)
    partial.replace(path)


def docstrings():
    """Yield every distinct docstring with its name, topic and channel, in a fixed order."""
    root = Path(sysconfig.get_paths()["stdlib"])
    seen = set()
    for topic, modules in TOPICS.items():
        for module in modules.split():
            for path in sources(root, module):
                for name, text in documented(path, root):
                    if len(text) >= SHORTEST and text not in seen:
                        seen.add(text)
                        channel = "validation" if fraction(name) < VALIDATION_SHARE else "train"
                        yield {"name": name, "topic": topic, "text": text, "channel": channel}
    if not seen:
        sys.exit(f"no standard library sources under {root}: this Python came without them")


def sources(root, module):
    """Source files of a module or package, tests left out; none where Python lacks it."""
    if (root / module).is_dir():
        files = (root / module).rglob("*.py")
        return sorted(p for p in files if not {"test", "tests"} & set(p.relative_to(root).parts))
    path = root / (module + ".py")
    return [path] if path.is_file() else []


def documented(path, root):
    """Yield qualified name and docstring of everything documented in one file."""
    module = ".".join(path.relative_to(root).with_suffix("").parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    stack = [(module, tree)]
    while stack:
        name, node = stack.pop()
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield name, text
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):  # nine nodes of ten, in which nothing is documented
                continue
            label = getattr(child, "name", None)
            stack.append((f"{name}.{label}" if isinstance(label, str) else name, child))


def fraction(name):
    """A number in [0, 1) that depends on ``name`` alone: the split never moves an example."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32


def write_table(folder):
    """Write the biopsies as CSV channels, label first, no header, as XGBoost reads them."""
    folder_of_data = datasets()
    if not folder_of_data:
        print("scikit-learn is not installed: no table written", file=sys.stderr)
        return
    with (folder_of_data / "data" / "breast_cancer.csv").open(newline="") as file:
        _, *cases = csv.reader(file)
    for channel in ("train", "validation"):
        path = folder / channel / "biopsies.csv"
        chosen = [
            [int(label), *map(float, measurements)]
            for index, (*measurements, label) in enumerate(cases)
            if (fraction(str(index)) < TABLE_VALIDATION_SHARE) == (channel == "validation")
        ]
        text = io.StringIO(newline="")
        csv.writer(text).writerows(chosen)
        put(path, text.getvalue().encode(), folder)
        print(f"{path}: {len(chosen)} rows")


def write_pictures(folder):
    """Cut the photographs into overlapping pieces, a folder for each as image folders have."""
    folder_of_data = datasets()
    try:
        from PIL import Image  # noqa: PLC0415 — text needs no such package
    except ImportError:
        folder_of_data = None
    if not folder_of_data:
        print("scikit-learn or Pillow is not installed: no pictures written", file=sys.stderr)
        return
    for file in sorted((folder_of_data / "images").glob("*.jpg")):
        photograph = Image.open(file)
        border = int(photograph.width * (1 - PICTURE_VALIDATION_SHARE))
        parts = {"train": (0, border), "validation": (border, photograph.width)}
        for channel, (left, right) in parts.items():
            path = folder / channel / file.stem
            made = list(pieces(photograph.crop((left, 0, right, photograph.height))))
            for number, piece in enumerate(made):
                picture = io.BytesIO()
                piece.save(picture, format="PNG", compress_level=1)
                put(path / f"{number:04d}.png", picture.getvalue(), folder)
            print(f"{path}: {len(made)} pictures")


def pieces(photograph):
    """Yield every piece of each shape, a stride apart."""
    for height, width in PIECE_SHAPES:
        for top in range(0, photograph.height - height + 1, PIECE_STRIDE):
            for left in range(0, photograph.width - width + 1, PIECE_STRIDE):
                yield photograph.crop((left, top, left + width, top + height))


def datasets():
    """The folder of what scikit-learn carries, None without it; its import would take seconds."""
    spec = importlib.util.find_spec("sklearn")
    return Path(spec.origin).parent / "datasets" if spec else None


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "workloads/data"))

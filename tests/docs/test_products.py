"""The READMEs of the house's products list the files that they are made of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PRODUCTS = Path(__file__).resolve().parents[2] / "compilegate"


@pytest.mark.parametrize(
    ("product", "folders"),
    [("doctor", [""]), ("localcloud", ["", "emulator"]), ("verify", [""])],
    ids=["doctor", "localcloud", "verify"],
)
def test_the_architecture_lists_every_file(product, folders) -> None:
    page = (PRODUCTS / product / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (listing,) = (text for language, text in blocks if not language)
    listed = set(re.findall(r"\b\w+\.py\b", listing))
    files = {
        path.name for folder in folders for path in (PRODUCTS / product / folder).glob("*.py")
        if not path.name.startswith("__")
    }  # fmt: skip

    assert [] == sorted(files - listed)
    assert listed <= {path.name for path in (PRODUCTS / product).rglob("*.py")}

"""``try`` installs what a bundle lists, over an environment that stays as it is."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from compilegate.adapters.workload_files import make_bundle
from compilegate.domain.errors import InvalidInputError
from compilegate_local.tryout import installed

LIMIT = 60.0
WHEEL = "small-1.0-py3-none-any.whl"


def bundle(folder, requirements):
    """A source folder with a wheel beside its requirements, as a job gets it."""
    folder.mkdir()
    (folder / "train.py").write_text("import small\n")
    (folder / "requirements.txt").write_text(f"--no-index\n{requirements}\n")
    about = "small-1.0.dist-info/"
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("small.py", "ANSWER = 42\n")
        wheel.writestr(f"{about}METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}WHEEL", tag)
        wheel.writestr(f"{about}RECORD", "")
    return make_bundle(folder).body


def answer(python, code):
    ended = subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, check=False, timeout=LIMIT
    )
    return ended.stdout.strip() or ended.stderr.strip().splitlines()[-1]


def test_what_is_listed_is_installed_over_what_there_is(tmp_path):
    python = Path(sys.executable)

    own = installed(bundle(tmp_path / "src", f"./{WHEEL}"), python, tmp_path / "place", LIMIT)

    assert "42 1" == answer(own, "import small, pytest; print(small.ANSWER, 1)")
    assert "No module named 'small'" in answer(python, "import small")


@pytest.mark.parametrize(
    ("requirements", "limit", "why"),
    [
        ("nowhere==1.0", LIMIT, "No matching distribution found for nowhere==1.0"),
        ("", 0.001, "its time was up; --minutes gives more"),
    ],
)
def test_what_cannot_be_installed_is_said_in_pips_words(requirements, limit, why, tmp_path):
    body = bundle(tmp_path / "src", requirements)

    with pytest.raises(InvalidInputError, match=r"requirements\.txt: cannot be installed") as error:
        installed(body, Path(sys.executable), tmp_path / "place", limit)

    assert why in str(error.value)

"""A hyperparameter reaches the script unchanged under every release, or is refused before."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.argument_text import PREFIX, argument, for_launcher, survives
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload.limits import check_script_arguments
from compilegate_localcloud.places import REPOSITORY
from distributions.localcloud.tests.helpers import eventually
from tests.domain.workload_builder import SOUND, change
from tests.fuzzing import at_most
from tests.toolkit.releases import INSTALLED, RELEASES, folder_of

DRIVER = Path(__file__).with_name("driver.py")
RUNTIME = REPOSITORY / "training"
# The arguments that a script gets; the launcher and the speed gate decode theirs.
SHOW = """
import json, os, sys
with open(os.path.join(os.environ["SAGEMAKER_BASE_DIR"], "answer.json"), "w") as answer:
    json.dump(words(sys.argv[1:]), answer)
"""
SCRIPTS = {
    "show.py": f"words = list\n{SHOW}",
    "launch.py": f"""
import sys
sys.path.insert(0, {str(RUNTIME)!r})
from compilegate_runtime.hyperparameters import decoded
def words(given):
    return [decoded("word", word) for word in given]
{SHOW}""",
    "waits.py": """
import os, pathlib, signal, time
base = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"])
signal.signal(signal.SIGTERM, lambda *_: (base / "signalled").touch())
(base / "waits").touch()
while not (base / "toolkit-ended").exists():
    time.sleep(0.01)
time.sleep(0.2)
(base / "ended").touch()
""",
}
HOST = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
# What a shell, a tokenizer or a decoder might take for its own.
NASTY = st.sampled_from(
    ["", " ", "'", '"', "\\", "\n", "$(id)", "`id`", "*", "~", "#", "!", "&", "|", ";", "<", ">",
     "(", ")", "[1, 2]", '{"a": 1}', "true", "null", "1e5", "-", "--", "-x", "\t", "\r", "größe",
     "日本", "\u2028", "\x7f", "=", "a=b", "%s", "{a,b}", "base64:", PREFIX + "x", "x" * 2500]
)  # fmt: skip
TEXT = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60),
    st.lists(NASTY, max_size=4).map("".join),
)
SCALARS = st.one_of(TEXT, st.booleans(), st.integers(), st.floats(allow_nan=False))
NAMES = st.lists(
    st.from_regex(r"[a-z_][a-z0-9_.-]{0,12}", fullmatch=True), min_size=1, max_size=6, unique=True
)


class Toolkit:
    """One release, ready to start scripts."""

    def __init__(self, release: str, scratch: Path) -> None:
        self.base, old = scratch / "opt-ml", scratch / "path"
        base = self.base
        for name in ("input/config", "code"):
            (base / name).mkdir(parents=True)
        old.mkdir()
        for name, text in SCRIPTS.items():
            (base / "code" / name).write_text(text)
        (base / "input/config/resourceconfig.json").write_text(json.dumps(HOST))
        (base / "input/config/inputdataconfig.json").write_text("{}")
        folder = folder_of(release, old)
        self._process = subprocess.Popen(
            [sys.executable, str(DRIVER), release],
            env={**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(folder or "")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def start(self, script: str, hyperparameters: dict[str, str]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps([script, hyperparameters]) + "\n")
        self._process.stdin.flush()

    def arguments(self, hyperparameters: dict[str, str], script: str = "show.py") -> Any:
        self.start(script, hyperparameters)
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def terminate(self) -> None:
        self._process.terminate()
        self._process.wait(20)

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(release, marks=[] if release == INSTALLED else pytest.mark.slow)
        for release in RELEASES
    ],
)
def toolkit(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Toolkit]:
    toolkit = Toolkit(request.param, tmp_path_factory.mktemp("toolkit"))
    with contextlib.closing(toolkit):
        yield toolkit


def words(values: dict[str, Any]) -> list[str]:
    """What the script should get."""
    pairs = ((("--" if len(k) > 1 else "-") + k, argument(values[k])) for k in sorted(values))
    return [word for pair in pairs for word in pair]


def is_long(value: Any) -> bool:
    """Whether a speed job may have no room for it."""
    return len(argument(value)) > 1000


def encoded(values: dict[str, Any]) -> dict[str, str]:
    """As a request has them."""
    return {name: json.dumps(value) for name, value in values.items()}


def accepted(values: dict[str, Any], entry_point: str = "train.py") -> bool:
    own = {"script": "train.py", **values} if entry_point == "launch.py" else values
    asked = change(SOUND, training__hyperparameters=own, training__entry_point=entry_point)
    try:
        check_script_arguments(asked)
    except InvalidInputError as error:
        assert error.field.startswith("training.hyperparameters.")
        assert error.fix
        return False
    return True


@pytest.mark.parametrize("value", [PREFIX, PREFIX + "x", "--other", "-x", "a=b", "true", "1e5"])
def test_a_teams_own_script_gets_its_words_as_they_are(toolkit: Toolkit, value: str) -> None:
    values = {"prompt": value}

    assert accepted(values)
    assert words(values) == toolkit.arguments(encoded(values))


@at_most(25)
@given(data=st.data())
def test_what_check_accepts_for_a_teams_own_script_arrives_unchanged(
    toolkit: Toolkit, data: st.DataObject
) -> None:
    values = {name: data.draw(SCALARS) for name in data.draw(NAMES)}
    kept = {name: value for name, value in values.items() if accepted({name: value})}

    assert words(kept) == toolkit.arguments(encoded(kept))
    refused = [value for name, value in values.items() if name not in kept]
    assert all(not survives(value) or is_long(value) for value in refused)


@at_most(25)
@given(data=st.data())
def test_any_text_arrives_unchanged_at_the_launcher(toolkit: Toolkit, data: st.DataObject) -> None:
    values = {name: data.draw(SCALARS) for name in data.draw(NAMES)}
    sent = {name: for_launcher(value) for name, value in values.items()}

    assert all(is_long(v) or accepted({name: v}, "launch.py") for name, v in values.items())
    assert words(values) == toolkit.arguments(encoded(sent), "launch.py")


@pytest.mark.parametrize("toolkit", [INSTALLED], indirect=True)
@pytest.mark.parametrize("value", ["it's", "two words", "$(echo ran)", "", "größe x", '{"a": 1}'])
def test_what_check_refuses_would_not_arrive_at_every_release(toolkit: Toolkit, value: str) -> None:
    """The rule is no stricter than the releases are: each of these is changed by one of them."""
    values = {"prompt": value}

    assert not accepted(values)
    answer = toolkit.arguments(encoded(values))
    assert words(values) != answer
    assert isinstance(answer, list) or "ExitCode 2" in answer["error"]  # the shell's own


def test_the_toolkit_passes_no_signal_on(tmp_path: Path) -> None:
    """It ends itself, and the script trains on until its container is gone."""
    with contextlib.closing(Toolkit(INSTALLED, tmp_path)) as toolkit:
        toolkit.start("waits.py", {})
        eventually((toolkit.base / "waits").exists, 20, "the script has not begun")
        toolkit.terminate()
        (toolkit.base / "toolkit-ended").touch()
        eventually((toolkit.base / "ended").exists, 20, "the script has ended with the toolkit")

        assert not (toolkit.base / "signalled").exists()

"""What holds for every test, wherever the tests are started."""

import functools
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import botocore.loaders
import botocore.session
import pytest
import typer.main
import typer.testing
from hypothesis import Phase, settings

# A background shell and nohup start programs that ignore Ctrl-C, and what those start does so too:
# tests that interrupt a process of theirs need the signal to arrive.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests start hundreds of interpreters; without bytecode each compiles all it imports again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Every run tries the same few examples. The longer tier tries many, other ones each time:
# pytest -m "slow or hypothesis" --hypothesis-profile deep.
settings.register_profile("quick", max_examples=20, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=100, deadline=None, print_blob=True)
# Mutants: that an example fails is enough.
WITHOUT_SHRINKING = (Phase.explicit, Phase.generate)
settings.register_profile("unshrunk", settings.get_profile("quick"), phases=WITHOUT_SHRINKING)
settings.load_profile("quick")

# Made once for each process: the command line with all its commands, and botocore's descriptions
# of the services.
typer.testing._get_command = functools.cache(typer.main.get_command)
botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)


ROOT = Path(__file__).parent
# Folders whose tests read the synthesised template or what makes it: the CDK starts once for all.
OF_THE_TEMPLATE = ("tests/asl/", "tests/stacks/", "tests/tools/")
# On so many processes, by turns, run the files that share a fixture of the session: `app`, a cloud
# with the deployed app, takes ten seconds of processor time until it and its functions have
# started; `jobs`, a process that has imported torch and what models need, nine seconds; `wheels`,
# of every distribution, eight; `cloud`, an empty one, five. None is to be the last one at work.
SHARED = {"app": 1, "app_of_its_own": 1, "jobs": 3, "wheels": 1, "cloud": 2}
TURNS: dict[str, dict[str, int]] = {name: {} for name in SHARED}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects without the garbage collector, and keeps what is there then from it for good.

    Modules and thousands of collected tests live until the end; each full collection during the
    tests would walk through all of them. Between collections more is made than usual: most tests
    end before one, at a fifteenth less processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Puts each test into its tier, and with those that share what it starts."""
    # Whatever starts the embedded cloud or trains is of the longer tier, the loop apart.
    trains = item.get_closest_marker("training")
    if (item.get_closest_marker("e2e") or trains) and item.path.name != "test_loop.py":
        item.add_marker(pytest.mark.slow)
    place = item.path.relative_to(ROOT).as_posix()
    group = "template" if place.startswith(OF_THE_TEMPLATE) else place
    shared = next((name for name in SHARED if _is_of_the_session(item, name)), None)
    if shared:
        turn = TURNS[shared].setdefault(place, len(TURNS[shared]))
        group = f"{shared}-{turn % SHARED[shared]}"
    elif place.startswith("tests/training/") and trains and not _shares(item):
        group = item.nodeid
    if item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest groups first: begun last, they would run on while other processes wait.

    Whole training jobs need the processor, what runs in an embedded cloud mostly waits: by turns.
    A test with a time limit of its own needs it.
    """
    place: dict[str, float] = {}
    for marker in ("e2e", "training", "timeout"):
        groups = {_group(item): None for item in items if item.get_closest_marker(marker)}
        place = {group: n / len(groups) for n, group in enumerate(groups)} | place
    items.sort(key=lambda item: place.get(_group(item), 1.0))


def _group(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker else ""


def _is_of_the_session(item: pytest.Item, name: str) -> bool:
    definitions = item._fixtureinfo.name2fixturedefs.get(name, ())
    return bool(definitions) and definitions[-1].scope == "session"


def _shares(item: pytest.Item) -> bool:
    """Whether the test uses what is made once for its file."""
    definitions = item._fixtureinfo.name2fixturedefs.values()
    return any(one.scope in ("module", "class") for several in definitions for one in several)

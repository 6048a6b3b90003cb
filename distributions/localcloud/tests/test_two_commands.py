"""Several commands on one local cloud: one starts it, the others join; nobody ends another's."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compilegate_localcloud import api
from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import REPOSITORY
from distributions.localcloud.tests.conftest import make_places
from distributions.localcloud.tests.helpers import wait_for_none

pytestmark = pytest.mark.e2e
# What `compilegate run --local` does around a trial.
COMMAND = """
import sys
from pathlib import Path
from distributions.localcloud.tests.conftest import make_places
from compilegate_localcloud import api
from compilegate_localcloud.lifecycle import LocalCloud
with api.started(keep=False, cloud=LocalCloud(places=make_places(Path(sys.argv[1])))) as up:
    outputs = api.stack_outputs(up.state, "compilegate-local")
    print(up.state.run_id, up.started_now, outputs == up.outputs, flush=True)
    sys.stdin.readline()
    try:
        up.state.client("sts").get_caller_identity()
    except Exception as error:
        print(error)
"""


@pytest.fixture
def undeployed(monkeypatch):
    monkeypatch.setattr(api, "assembly_of", lambda *_, **__: Path())
    monkeypatch.setattr(api, "deploy", lambda *_: ())


def test_of_two_that_start_at_once_one_starts_it_and_one_joins(tmp_path, undeployed):
    clouds = [LocalCloud(places=make_places(tmp_path)) for _ in range(2)]
    with clouds[0], clouds[1]:
        with ThreadPoolExecutor(2) as threads:
            made = list(threads.map(lambda cloud: api.up(attached=True, cloud=cloud), clouds))

        assert [False, True] == sorted(one.started_now for one in made)
        assert made[0].state == made[1].state == clouds[0].state()
    assert clouds[0].state() is None


def test_command_that_fails_ends_no_cloud_but_its_own(tmp_path, undeployed, monkeypatch):
    owner, other = (LocalCloud(places=make_places(tmp_path)) for _ in range(2))
    with owner:
        state = api.up(attached=True, cloud=owner).state

        def fail(*_):
            raise OSError("it cannot be deployed")

        monkeypatch.setattr(api, "deploy", fail)
        with pytest.raises(OSError, match="cannot be deployed"):
            api.up(attached=True, cloud=other)
        with (
            pytest.raises(OSError, match="cannot be deployed"),
            api.started(keep=True, cloud=other),
        ):
            pass

        assert state == owner.state()


@pytest.fixture
def commands(tmp_path):
    """Starter and joiner of one cloud, each with the id of its run."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", COMMAND, str(tmp_path)], cwd=REPOSITORY,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    lines = [command.stdout.readline().split() for command in started]
    assert lines[0][0] == lines[1][0]
    assert ["False", "True"] == sorted(line[1] for line in lines)
    assert ["True", "True"] == [line[2] for line in lines]
    starter = [line[1] for line in lines].index("True")
    yield started[starter], started[1 - starter]
    for command in started:
        command.kill()
        command.communicate()


def let_end(command):
    said, _ = command.communicate("\n", timeout=60)
    assert 0 == command.returncode
    return said


def test_the_last_of_two_commands_ends_the_cloud(tmp_path, commands):
    cloud, (starter, joiner) = LocalCloud(places=make_places(tmp_path)), commands
    starter.kill()
    starter.wait()
    time.sleep(2)  # in which an emulator that nobody uses notices it

    assert cloud.state() is not None
    assert "" == let_end(joiner)
    assert cloud.state() is None
    assert not cloud.places.work.exists()


def test_cloud_whose_last_user_is_killed_ends(tmp_path, commands):
    cloud, (starter, joiner) = LocalCloud(places=make_places(tmp_path)), commands
    run = cloud.state().run_id
    assert "" == let_end(joiner)
    time.sleep(2)

    assert run == cloud.state().run_id
    starter.kill()
    assert wait_for_none(run) == []
    assert cloud.state() is None


def test_of_a_command_that_comes_while_the_last_one_goes_nothing_is_lost(tmp_path, undeployed):
    """Whichever is first: it joins what runs on, or starts its own."""
    cloud = LocalCloud(places=make_places(tmp_path))
    with cloud:
        for turn in (0, 2):
            coming = LocalCloud(places=make_places(tmp_path))
            api.up(attached=True, cloud=cloud)
            with ThreadPoolExecutor(2) as threads:
                going = threads.submit(cloud.leave)
                time.sleep(turn / 50)
                state = threads.submit(api.up, attached=True, cloud=coming).result().state
                going.result()
            time.sleep(1.5)
            assert state == cloud.state()
            cloud = coming
        cloud.leave()
        assert cloud.state() is None

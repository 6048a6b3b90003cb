"""One local cloud for the whole run of these tests, and helpers that speak to it."""

import json
import sys
import uuid
from pathlib import Path

import pytest

from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import REPOSITORY, Places
from distributions.localcloud.tests.failures import Failure, inject
from distributions.localcloud.tests.helpers import Machines, Trainer, eventually, function_bundle

FAST = ("--stop-grace-seconds", "0.3", "--checkpoint-seconds", "0.3", "--slots", "2")


def make_places(home: Path) -> Places:
    """Jobs need no torch here, so this interpreter runs them."""
    return Places(
        repository=REPOSITORY,
        home=home,
        emulator_python=REPOSITORY / ".venv-localcloud" / "bin" / "python",
        training_python=Path(sys.executable),
    )


@pytest.fixture(scope="session")
def cloud(tmp_path_factory):
    home = tmp_path_factory.mktemp("localcloud")
    with LocalCloud(places=make_places(home)) as started:
        started.start(attached=True, inject_failures=True, extra_arguments=FAST)
        yield started


@pytest.fixture(scope="session")
def client(cloud):
    return cloud.running_state().client


@pytest.fixture(scope="session")
def trainer(client):
    return Trainer(client)


@pytest.fixture(scope="session")
def machines(client):
    return Machines(client)


@pytest.fixture
def failing(cloud):
    """Injects failures, and takes back what did not happen."""

    def ask(failure, count=1):
        inject(cloud.state(), failure, count=count)

    yield ask
    for failure in Failure:
        inject(cloud.state(), failure, count=0)


@pytest.fixture
def counter(tmp_path):
    """A file whose size says how often something ran."""
    return str(tmp_path / f"count-{uuid.uuid4().hex}")


@pytest.fixture(scope="session")
def make_function(client):
    """Creates a Lambda function from source text."""

    def make(source, name=None, timeout=30, files=None):
        name = name or f"fn-{uuid.uuid4().hex[:10]}"
        return client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.12",
            Handler="index.handler",
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": function_bundle(source, files)},
            Timeout=timeout,
        )["FunctionArn"]

    return make


@pytest.fixture
def events_of(client, make_function, tmp_path):
    """A rule on the default bus whose Lambda target writes each event to a file."""
    made = []

    def listen(pattern):
        target = tmp_path / f"events-{uuid.uuid4().hex}.jsonl"
        source = (
            "import json\n"
            f"def handler(event, context):\n    open({str(target)!r}, 'a')"
            ".write(json.dumps(event) + chr(10))\n"
        )
        rule = f"rule-{uuid.uuid4().hex[:8]}"
        client("events").put_rule(Name=rule, EventPattern=json.dumps(pattern))
        client("events").put_targets(Rule=rule, Targets=[{"Id": "t", "Arn": make_function(source)}])
        made.append(rule)

        def wait_for(count, seconds=10):
            def lines():
                every = target.read_text().splitlines() if target.exists() else []
                return len(every) >= count and every

            events = eventually(lines, seconds, f"fewer than {count} events came")
            return [json.loads(line) for line in events]

        return wait_for

    yield listen
    for rule in made:
        client("events").remove_targets(Rule=rule, Ids=["t"])
        client("events").delete_rule(Name=rule)

"""After ``run --local`` its cloud is gone; what the trials recorded can still be read."""

import json
from functools import partial
from pathlib import Path

import pytest

from compilegate.domain.utc import minute
from compilegate_localcloud.errors import CloudEndedError
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions, planned, trial_of
from tests.domain.evidence_builder import GOOD
from tests.fake_clouds import cloud

KEPT = Path(".compilegate/trials")
READERS = (
    ("status", "--json"),
    ("status", "bert-docs", "--json"),
    ("flag", "show", "bert-docs", "--json"),
    ("flag", "history", "bert-docs", "--json"),
    ("report", "bert-docs", "--json"),
    ("report", "bert-docs", "--history", "--json"),
)


def deciding(providers, **built):
    """A local cloud that decides at once, on this evidence."""
    local = providers.local_cloud = cloud("local", simulated="on a CPU")
    executions(local).on_start = partial(decided, local, **built)
    return local


@pytest.fixture
def ended(tmp_path, invoke, providers):
    """A trial in a local cloud of its own, which then is gone; both."""
    local = deciding(providers, metrics=GOOD)
    assert 0 == invoke("run", write_project(tmp_path), "--local").exit_code
    providers.local_cloud = None
    return local, trial_of(local)


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_what_reads_answers_as_the_cloud_did(command, invoke, providers, ended):
    afterwards = invoke(*command, "--local")
    providers.local_cloud, _ = ended
    executions(ended[0]).looks = 0  # its execution has ended
    at_that_time = invoke(*command, "--local")

    assert (0, 0) == (afterwards.exit_code, at_that_time.exit_code), afterwards.stderr
    assert without_clock(at_that_time.stdout) == without_clock(afterwards.stdout)
    assert "The local cloud does not run; shown is what trials left in" in afterwards.stderr
    assert "did not end" not in afterwards.stderr


def without_clock(text):
    document = json.loads(text)
    if isinstance(document, dict):
        rows = document.pop("list", {"rows": []})["rows"]
        return {**document, "running": [], "states": [one["state"] for one in rows]}
    return document


def test_its_decision_can_be_replayed_and_its_evidence_judged(invoke, ended):
    (decision,) = json.loads(invoke("status", "--local", "--json").stdout)["trials"]

    replayed = invoke("judge", "--replay", decision["decision_id"], "--local")
    evidence = KEPT / f"bert-docs-{ended[1]}/objects/decisions/bert-docs/{ended[1]}/evidence.json"
    judged = invoke("judge", evidence, "--json")

    assert (0, 0) == (replayed.exit_code, judged.exit_code)
    assert "is the same, field by field" in " ".join(replayed.stdout.split())
    assert decision["decision_id"] == json.loads(judged.stdout)["decision_id"]
    assert "*\n" == Path(".compilegate/.gitignore").read_text()  # nothing of it is committed


def test_a_trial_whose_cloud_is_killed_is_kept_as_it_was_last_seen(tmp_path, invoke, providers):
    """It can be read while it runs, and the command says since when records are lost."""
    local = providers.local_cloud = cloud("local", simulated="on a CPU")
    executions(local).on_start = partial(planned, local)
    ledger = local.services.ledger
    meanwhile = []

    def look(arn):
        if executions(local).looks == 1:
            meanwhile.extend(json.loads(path.read_text()) for path in KEPT.glob("*/records.json"))
            ledger.raw.entries = killed
            raise CloudEndedError("The local cloud has ended")

    def killed(*_):
        raise CloudEndedError("The local cloud has ended")

    executions(local).looks = 2
    executions(local).on_look = look
    result = invoke("run", write_project(tmp_path), "--local")
    providers.local_cloud = None

    (record,) = meanwhile
    (kept,) = KEPT.glob("*/records.json")
    assert 1 == result.exit_code
    assert record == json.loads(kept.read_text())
    assert record["trial"] in json.dumps([str(path) for path in kept.parent.rglob("plan.json")])
    said = " ".join(result.stderr.split())
    assert f"what the trial of bert-docs recorded after {minute(record['kept_at'])} was not" in said
    status = invoke("status", "--local")
    assert 0 == status.exit_code, status.stderr
    assert f"bert-docs-{record['trial']} did not end; it is kept in {KEPT}" in status.stderr


def test_where_it_cannot_be_kept_the_verdict_stands(tmp_path, invoke, providers):
    Path(".compilegate").write_text("a file in the way")
    deciding(providers, metrics=GOOD)

    result = invoke("run", write_project(tmp_path), "--local", "--json")

    assert (1, "promote") == (result.exit_code, json.loads(result.stdout)["verdict"])
    assert "what the trial of bert-docs recorded was not kept" in result.stderr

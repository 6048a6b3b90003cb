"""``export``: finds the decision, writes it to a file or standard output, names what is missing."""

import builtins
import json
from xml.etree import ElementTree

import pytest

from compilegate_exports import command
from tests.cli.trial_script import trial_of


@pytest.mark.parametrize("name", [None, "bert-docs", "bert-docs-TRIAL"])
def test_a_workload_a_trial_or_neither_is_the_decision(name, invoke, promoted):
    words = [] if name is None else [name.replace("TRIAL", trial_of(promoted))]

    result = invoke("export", *words, "--to", "junit")

    suite = ElementTree.fromstring(result.stdout.encode())
    values = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert (0, "promote", trial_of(promoted)) == (
        result.exit_code, values["verdict"], values["trial"],
    )  # fmt: skip


@pytest.mark.usefixtures("promoted")
def test_a_file_is_written_whole_and_named(invoke, asked, tmp_path):
    file = tmp_path / "new" / "compilegate.prom"

    export = ("export", "bert-docs", "--to", "openmetrics", "--out", file)

    assert f"{file}\n" == invoke(*export).stdout
    assert {"file": str(file), "text": file.read_text()} == asked(*export)
    assert file.read_text().endswith("# EOF\n")


@pytest.mark.usefixtures("promoted")
@pytest.mark.parametrize("name", ["other", "bert-docs-00000000", "bert"])
def test_what_is_no_trial_is_bad_input(name, invoke):
    result = invoke("export", name, "--to", "junit")

    assert (2, "") == (result.exit_code, result.stdout)
    assert "is no trial with a decision" in result.stderr


@pytest.mark.usefixtures("promoted")
@pytest.mark.parametrize(("to", "package"), [("mlflow", "mlflow-skinny"), ("wandb", "wandb")])
def test_a_client_that_is_missing_is_named_with_its_package(to, package, invoke, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == to:
            raise ImportError(f"No module named {to!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    result = invoke("export", "bert-docs", "--to", to)

    assert (1, "") == (result.exit_code, result.stdout)
    assert f"Fix: pip install {package}" in " ".join(result.stderr.split())


@pytest.mark.usefixtures("promoted")
def test_a_tracker_writes_the_runs(invoke, monkeypatch, tmp_path):
    written = []
    monkeypatch.setitem(
        command.TRACKERS, command.Target.WANDB, lambda *given: written.append(given) or "there"
    )

    result = invoke("export", "bert-docs", "--to", "wandb", "--out", tmp_path, "--json")

    ((runs, folder),) = written
    document = {"to": "there", "runs": [run.name for run in runs]}
    assert (document, tmp_path) == (json.loads(result.stdout), folder)

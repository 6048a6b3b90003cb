"""The log has what SARIF 2.1.0 asks for and nothing it does not know.

The format's own JSON schema is not part of any package here, so its required properties and the
names it allows are written out below, for the objects that are used.
"""

from __future__ import annotations

from typing import Any

import pytest

from compilegate_doctor import examine, to_sarif
from distributions.doctor.tests.scripts import loop, model

# object: (required, also allowed), sections 3.13 to 3.58 of the standard
OBJECTS = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"results", "columnKind", "originalUriBaseIds"}),
    "tool": ({"driver"}, set()),
    "driver": ({"name"}, {"semanticVersion", "rules"}),
    "rule": ({"id"}, {"name", "shortDescription", "fullDescription", "help", "helpUri",
                      "defaultConfiguration", "properties"}),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations",
                             "partialFingerprints"}),
    "artifact": (set(), {"uri", "uriBaseId"}),
    "region": (set(), {"startLine", "startColumn", "endLine", "endColumn"}),
}  # fmt: skip


def check(kind: str, object_: dict[str, Any]) -> None:
    required, allowed = OBJECTS[kind]
    assert required <= object_.keys() <= required | allowed


@pytest.fixture
def log() -> dict[str, Any]:
    scripts = {
        "src/train it.py": loop("total += loss.item()\nprint(loss)", after="model.cuda()"),
        "src/model.py": "# Grüße ☃\n" + model("y = y * y.sum().item()"),
    }
    examinations = [
        examine(text.encode(), file, compilers=("torch_compile", "sagemaker_training_compiler"))
        for file, text in scripts.items()
    ]
    return to_sarif(examinations, version="0.1.0")


def test_every_object_has_what_it_needs_and_nothing_unknown(log: dict[str, Any]) -> None:
    check("log", log)
    (run,) = log["runs"]
    check("run", run)
    check("tool", run["tool"])
    check("driver", run["tool"]["driver"])
    for rule in run["tool"]["driver"]["rules"]:
        check("rule", rule)
    for result in run["results"]:
        check("result", result)
        check("artifact", result["locations"][0]["physicalLocation"]["artifactLocation"])
        check("region", result["locations"][0]["physicalLocation"]["region"])


def test_a_finding_that_only_moves_keeps_its_fingerprint() -> None:
    script = loop("total += loss.item()")
    before, after = (
        to_sarif([examine(text.encode(), "t.py", compilers=("torch_compile",))], version="1")
        for text in (script, "# a new first line\n\n" + script)
    )
    (first,), (second,) = before["runs"][0]["results"], after["runs"][0]["results"]

    assert first["partialFingerprints"] == second["partialFingerprints"]
    assert first["locations"] != second["locations"]


def test_two_alike_findings_have_two_fingerprints() -> None:
    script = loop("keep(loss.item())\nkeep(loss.item())")
    log = to_sarif([examine(script.encode(), "t.py")], version="1")
    results = log["runs"][0]["results"]

    assert 2 == len(results) == len({str(item["partialFingerprints"]) for item in results})


def test_a_file_that_two_candidates_start_is_reported_once() -> None:
    examination = examine(loop("total += loss.item()").encode(), "t.py")

    assert 1 == len(to_sarif([examination, examination], version="1")["runs"][0]["results"])

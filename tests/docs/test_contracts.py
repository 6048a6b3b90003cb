"""docs/contracts.md shows formats that the code reads and writes as they stand there."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml

from compilegate.domain import codec, ledger_keys
from compilegate.domain.decision import EXIT_CODES, FLAG_ACTIONS
from compilegate.domain.eligibility.check import EligibilityVerdict
from compilegate.domain.flag import OVERRIDE_KEYS, STATES, parse_flag
from compilegate.domain.fleet.row import NEEDS, PHASES, Row
from compilegate.domain.judging.checks import read_check
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.ledger import ClassRestored, DrainMark
from compilegate.domain.records.production import (
    BegunRun,
    ProductionRun,
    RegistrationChange,
    Review,
)
from compilegate.domain.records.trials import ApprovalRequested, TrialStarted
from compilegate.domain.where_time_goes import read_profile
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Workload
from compilegate.domain.workload.quality import Metric
from compilegate_statement.statement import Statement
from tests.domain.evidence_builder import judge
from tests.domain.workload_builder import check

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contracts.md").read_text()
KEYS = (ROOT / "docs" / "workload-file.md").read_text()
FRAMEWORK = ("name", "version", "transformers", "python")
EXAMPLE = re.compile(r"<!-- (?P<name>\w+) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)
SHOWN = {match["name"]: match["text"] for match in EXAMPLE.finditer(PAGE)}


def keys(document: Any, prefix: str = "") -> set[str]:
    """Every key path of a document, ``[]`` standing for the items of a list."""
    if isinstance(document, list):
        return {path for item in document for path in keys(item, f"{prefix}[]")}
    if not isinstance(document, dict):
        return set()
    paths = {f"{prefix}.{key}" for key in document}
    return paths.union(*(keys(value, f"{prefix}.{key}") for key, value in document.items()))


def field_paths(kind: Any, prefix: str = "") -> set[str]:
    """Every field of a dataclass and of the dataclasses in it."""
    paths = set()
    for name, hint in get_type_hints(kind).items():
        paths.add(f"{prefix}.{name}")
        for part in (hint, *getattr(hint, "__args__", ())):
            if dataclasses.is_dataclass(part):
                paths |= field_paths(part, f"{prefix}.{name}")
    return paths


def test_workload_file_evidence_and_flag_are_read_as_they_are_shown():
    parse_workload(yaml.safe_load(SHOWN["workload"]))
    read_evidence(json.loads(SHOWN["evidence"]))
    assert parse_flag(SHOWN["flag"]).enabled


def test_the_page_of_the_workload_file_names_every_key():
    assert field_paths(Workload) - set(listed_keys()) == set()


def listed_keys() -> Iterator[str]:
    """The path of every key on the page, without marks of lists."""
    section = ""
    for line in KEYS.splitlines():
        if heading := re.match(r"### `?([\w.\[\]]+)", line):
            section = "" if heading[1] == "Top" else "." + heading[1].replace("[]", "")
        elif line.startswith("- "):
            for name in re.findall(r"`(\w+)`", re.split(r" \(|: ", line)[0]):
                yield f"{section}.{name}"
                if name == "framework" and "(#framework)" in line:
                    yield from (f"{section}.{name}.{key}" for key in FRAMEWORK)
                if "(#quality)" in line:
                    yield from field_paths(Metric, f"{section}.{name}")


def test_a_profile_is_read_as_it_is_shown():
    shown = json.loads(SHOWN["profile"])
    profile = read_profile(shown)

    assert profile.absent is None
    assert keys(codec.write(profile)) <= keys(shown)


def test_the_equivalence_checks_figures_and_table_are_read_as_they_are_shown():
    figures, table = (json.loads(SHOWN[name]) for name in ("equivalence", "table"))
    check, evidence = read_check(figures), json.loads(SHOWN["evidence"])
    judged = codec.write(read_evidence({**evidence, "equivalence": table}).equivalence)

    assert check is not None
    assert keys(codec.write(check)) <= keys(figures)
    assert judged == table


def test_the_decision_has_the_keys_that_the_judge_writes():
    document = json.loads((ROOT / "docs" / "examples" / "evidence.json").read_text())
    written, shown = judge(document).to_dict("flag"), json.loads(SHOWN["decision"])

    assert list(written) == list(shown)
    assert list(written["reasons"][0]) == list(shown["reasons"][0])
    for part in ("speedup", "quality", "flag"):
        assert set(written[part]) == set(shown[part])
    assert set(shown["saving"]) <= set(written["saving"])


def test_the_eligibility_result_has_the_keys_that_check_writes():
    document = yaml.safe_load((ROOT / "workloads" / "article-bert.yaml").read_text())
    written = check(parse_workload(document)).to_dict()
    shown = json.loads(SHOWN["eligibility"])

    assert {path for path in keys(shown) if not path.startswith(".left_out")} <= keys(written)
    assert set(written) == set(shown)
    assert set(written["economics"]) == set(shown["economics"])


def test_the_picture_of_places_has_every_folder_of_the_data_bucket():
    drawn = set(re.findall(r"\[([\w-]+)/:", SHOWN["places"]))
    rows = PAGE.partition("Keys are relative")[2].partition("\n## ")[0]

    assert drawn == set(re.findall(r"^\| `([\w-]+)/", rows, re.MULTILINE))


@pytest.mark.parametrize("verdict", EXIT_CODES)
def test_every_verdict_has_its_flag_action_and_exit_code(verdict):
    row = re.search(rf"^\| `{verdict}` \|.*\| `(\w+)` \| (\d+) \|$", PAGE, re.MULTILINE)

    assert row
    assert (FLAG_ACTIONS[verdict], EXIT_CODES[verdict]) == (row[1], int(row[2]))


@pytest.mark.parametrize("word", [*STATES, *OVERRIDE_KEYS, *EligibilityVerdict, "image"])
def test_every_word_of_the_flag_and_of_eligibility_is_on_the_page(word):
    assert f"`{word}`" in PAGE


@pytest.mark.parametrize(
    "key",
    [
        TrialStarted.key_of(trial="TRIAL"), FlagVersion.key_of(version=1),
        BegunRun.key_of(run="RUN"), ProductionRun.key_of(run="RUN", job="JOB"),
        ledger_keys.wait_entries("RUN"),
        Review.key_of(run="RUN"), ledger_keys.canary_entries("TRIAL"),
        ApprovalRequested.key_of(trial="TRIAL"), RegistrationChange.key_of(revision=1),
        DrainMark.key_of(version=1), ClassRestored.key_of(decision_id="DECISION_ID"),
        ledger_keys.DEPLOYMENT,
    ],
)  # fmt: skip
def test_every_ledger_key_is_on_the_page(key):
    assert key in PAGE


def test_the_statement_has_the_keys_that_the_command_writes_and_adds_up():
    shown = json.loads(SHOWN["statement"])
    total = shown["total"]

    assert keys(Statement("prod", "2026-11", None, 0, ()).document()) == keys(shown)
    for one in ("entries", "micro_usd", "unknown"):
        of_each = (total[name][one] for name in ("decided", "failed", "stopped"))
        assert total["spent"][one] == sum(of_each)
    assert total["entries"] == total["spent"]["entries"] + total["production"]["entries"]
    for end in ("micro_usd", "low_micro_usd", "high_micro_usd"):
        assert total["net"][end] == total["saved"][end] - total["spent"]["micro_usd"]


def test_a_row_is_shown_with_every_field_and_every_word_that_it_may_hold():
    shown = json.loads(SHOWN["row"])
    section = PAGE.partition("### Rows")[2].partition("## Statement")[0]

    assert shown == codec.write(codec.read(Row, shown))
    assert [] == [word for word in (*NEEDS, *PHASES) if f"`{word}`" not in section]

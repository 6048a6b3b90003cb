"""Whatever comes from outside: one kind of error, no hang, and nothing that was not proven."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from compilegate.adapters.job_outputs import read_output
from compilegate.adapters.yaml_document import load_yaml
from compilegate.cli.check import Totals, line, show_eligibility, show_totals
from compilegate.cli.plan import examples, show_plan
from compilegate.domain.decision import Verdict
from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError, InvalidInputError
from compilegate.domain.flag import OFF, parse_flag
from compilegate.domain.job_output import quality_run, speed_runs
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge
from compilegate.domain.planning.plan import Plan
from compilegate.domain.production.begin import read_flag
from compilegate.domain.production.history import history
from compilegate.domain.service_limits import problems
from compilegate.domain.workload.model import Workload
from compilegate.facts import read
from compilegate.ports import Settings
from compilegate.usecases.planning import plan_for
from compilegate.usecases.production.record_run import on_run_ended
from compilegate.usecases.records import facts_for_workload, read_document
from tests import fuzzing
from tests.domain.test_fuzz import TRUTHS, UNPROMOTABLE
from tests.domain.workload_builder import SOUND
from tests.domain.workload_strategies import FULL, faulty, sound
from tests.fuzzing import Target, at_most
from tests.usecases.production.runs import ON, Production

TESTS = Path(__file__).resolve().parents[1]
CORPUS = TESTS / "corpus"
EXAMPLES = [
    json.loads(file.read_text()) for file in sorted((TESTS.parent / "docs/examples").glob("*.json"))
]
LEDGERS = json.loads((TESTS / "domain/production/ledger.json").read_text())
ON_PURPOSE = (Verdict.PROMOTE, Verdict.PERMANENT)
MARGIN = frozenset(key for _, key in TRUTHS)


@cache
def stored(name: str) -> list[Any]:
    """Cases that once failed, or are known to be hard, of one kind."""
    cases: list[Any] = json.loads((CORPUS / f"{name}.json").read_text())
    return cases


@cache
def unpromotable() -> list[Any]:
    return [make() for make in UNPROMOTABLE.values()]


def evidence(chance: random.Random) -> None:
    """Refused, or judged; what was not proven before the faults is not proven by them."""
    unproven = chance.random() < 0.7
    doc = chance.choice(unpromotable() if unproven else [*EXAMPLES, *stored("evidence")])
    try:
        decision = judge(read_evidence(fuzzing.broken(doc, chance, MARGIN)))
    except InvalidEvidenceError:
        return
    json.dumps(decision.to_dict("/f"), ensure_ascii=False).encode()
    assert not (unproven and decision.verdict in ON_PURPOSE)


SUMMARY = {
    "schema": 1, "job": "j", "arm": "compile", "replicate": 0, "seed": 1, "finished": True,
    "compiler": {"requested": "torch_compile", "applied": True, "compile_seconds": 1.0},
    "metrics": {"eval_accuracy": 0.91}, "fingerprint": {"gpu": "g", "world_size": 8},
    "initial_loss": 2.5, "peak_memory_gib": 19.4, "wall_seconds": 60.0, "steps": 3, "seconds": 1.5,
    "full_run_steps": 2000, "reason": None, "numerics": {"checked": True},
    "outcomes": {"eval_accuracy": {"kind": "bits", "examples": 8, "set_sha256": "ab" * 32,
                                   "mean": 0.5, "data": "8A=="}},
}  # fmt: skip
STEPS = [{"step": n, "seconds": 0.5, "samples": 8, "loss": 2.0, "steps": 1} for n in range(1, 4)]
FOLDERS = ("evidence/", "evidence/block-0/compile/", "evidence/cold/compile/", "./evidence/", "x/")


def output(chance: random.Random) -> bytes:
    """A job's output with something wrong in it, or one of the corpus."""
    if chance.random() < 0.02:
        return gzip.compress(bytes.fromhex(chance.choice(stored("outputs"))["tar"]), 1)
    files = {}
    for folder in sorted({"evidence/", chance.choice(FOLDERS)}):
        summary = fuzzing.broken(SUMMARY, chance) if chance.random() < 0.7 else SUMMARY
        steps = fuzzing.broken(STEPS, chance) if chance.random() < 0.5 else STEPS
        lines = "".join(f"{json.dumps(line)}\n" for line in steps)
        for name, text in (("summary.json", json.dumps(summary)), ("steps.jsonl", lines)):
            body = text.encode()
            files[folder + name] = fuzzing.torn(body, chance) if chance.random() < 0.2 else body
    return fuzzing.archived(files, chance)


def job_output(chance: random.Random) -> None:
    """Read into runs that can be stored, or refused."""
    body = output(chance)
    try:
        read = read_output(io.BytesIO(body), len(body))
        runs = [run for _, run in speed_runs(read, job="j")]
        runs.append(quality_run(read, job="j", quality=SOUND.quality))
    except InvalidEvidenceError as error:
        assert str(error).isprintable()
        return
    for run in runs:
        json.dumps(run.record, ensure_ascii=False, allow_nan=False).encode()


def recorded(chance: random.Random) -> None:
    """Whatever the job left, its run is in the ledger."""
    production = Production()
    production.begin()
    production.ends("Completed", output=output(chance))
    answer = production.record()

    (run,) = production.runs()
    assert (run.job, run.counts) == (production.job, answer["counts"])
    json.dumps(answer, ensure_ascii=False).encode()


def ledger_entry(chance: random.Random) -> None:
    """Entries beside a damaged one are read; the flag is the ledger's or is not said."""
    entries = list(LEDGERS[chance.choice(sorted(LEDGERS))].values())
    damaged = fuzzing.broken(chance.choice([*entries, *stored("ledger")]), chance)
    if not isinstance(damaged, dict):
        return
    past = history([*entries, damaged])
    assert len(past.records) >= len(history(entries).records)
    [json.dumps(record.to_entry()) for record in past.records]
    reading = read_flag("/f", ON.to_json(), past)
    assert len(reading.explanation or "") < 2000


def flag_value(chance: random.Random) -> None:
    """A flag, or malformed; on only where it says so."""
    if chance.random() < 0.5:
        text = json.dumps(fuzzing.broken(json.loads(ON.to_json()), chance))
    else:
        value = chance.choice([ON.to_json(), OFF.to_json(), *stored("flags")])
        text = fuzzing.torn(value.encode(), chance).decode(errors="replace")
    try:
        flag = parse_flag(text)
    except InvalidInputError as error:
        assert str(error).isprintable()
        return
    assert flag.enabled == json.loads(text)["enabled"]


def event(chance: random.Random) -> None:
    """An event of EventBridge or of a team's job is answered, or refused in words."""
    production = Production()
    production.promote()
    production.begin()
    production.ends("Completed", output=None)
    given = json.loads(json.dumps(chance.choice(stored("events"))).replace("JOB", production.job))
    try:
        on_run_ended(fuzzing.broken(given, chance), services=production.services)
    except CompilegateError as error:
        assert len(str(error)) < 2000


@cache
def workload_files() -> list[bytes]:
    files = [*CORPUS.glob("*.yaml"), *(TESTS.parent / "workloads").glob("*.yaml")]
    return [file.read_bytes() for file in sorted(files)]


@cache
def scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def workload_file(chance: random.Random) -> None:
    """A workload, or an error that names the file and what is wrong with it."""
    file = Path(scratch().name) / "workload.yaml"
    file.write_bytes(fuzzing.torn(chance.choice(workload_files()), chance))
    try:
        read_document(load_yaml(file))
    except InvalidInputError as error:
        assert len(str(error)) < 50_000


TARGETS = {
    target.name: target
    for target in (
        Target("evidence", evidence, share=0.05, quick=60),
        Target("job output", job_output, share=0.45, quick=600),
        Target("recorded run", recorded, share=0.05, quick=60),
        Target("ledger entry", ledger_entry, share=0.2, quick=200),
        Target("flag value", flag_value, share=0.2, quick=1000),
        Target("event", event, share=0.03, quick=100),
        Target("workload file", workload_file, share=0.02, quick=60),
    )
}


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_from_outside_breaks_more_than_itself(name: str) -> None:
    print(fuzzing.run(TARGETS[name]))  # noqa: T201 - shown by -rP


# However a workload file is broken it is refused in one message; what is read can be planned.


SCREEN = Console(width=80, file=io.StringIO())

LONGEST_MESSAGE = 700
REGIONS = ("us-east-1", "eu-south-2", "cn-north-1", "us-gov-west-1", "xx-nowhere-9")
ROLE = "arn:aws:iam::123456789012:role/training-role"
much = at_most(120)


@cache
def create_training_job() -> Any:
    model = botocore.session.get_session().get_service_model("sagemaker")
    return model.operation_model("CreateTrainingJob").input_shape


def read_or_refused(document: Any) -> Workload | None:
    """None where it is refused as it should be; any other exception is a failure."""
    try:
        return read_document(document)
    except InvalidInputError as error:
        for one in error.each:
            message = str(one)
            assert one.field
            assert one.fix
            assert message.isprintable()
            assert len(message) < LONGEST_MESSAGE
        return None


def check_and_plan(workload: Workload, region: str) -> Plan | None:
    """Every request of the plan is one that SageMaker would take."""
    deployment = Settings(stage="prod", region=region, job_roles=ROLE)
    facts = facts_for_workload(workload, deployment)
    json.dumps(check_eligibility(workload, facts, region=region).to_dict(), allow_nan=False)
    plan = plan_for(workload, deployment)
    if not isinstance(plan, Plan):
        return None
    json.dumps(plan.to_dict(), allow_nan=False)
    for request in examples(workload, plan):
        assert [] == [str(problem) for problem in problems(request, read("create_training_job"))]
        assert "" == ParamValidator().validate(request, create_training_job()).generate_report()
    return plan


def test_the_document_that_faults_are_put_into_is_sound() -> None:
    assert read_or_refused(FULL) is not None


@given(document=faulty())
@much
def test_a_faulty_document_is_refused_or_can_be_checked_and_planned(document: Any) -> None:
    workload = read_or_refused(document)
    if workload is not None:
        check_and_plan(workload, REGIONS[0])


@given(document=sound(), region=st.sampled_from(REGIONS))
@much
def test_whatever_is_read_can_be_checked_and_planned(document: Any, region: str) -> None:
    workload = read_or_refused(document)
    if workload is not None:
        check_and_plan(workload, region)


@given(document=sound())
@at_most(60)
def test_whatever_is_read_can_be_shown(document: Any) -> None:
    workload = read_or_refused(document)
    if workload is None:
        return
    deployment = Settings(stage="prod", region=REGIONS[0], job_roles=ROLE)
    facts = facts_for_workload(workload, deployment)
    eligibility = check_eligibility(workload, facts, region=REGIONS[0])
    plan = plan_for(workload, deployment)
    totals = Totals()
    totals.add(eligibility)

    with contextlib.redirect_stdout(io.StringIO()) as shown:
        show_eligibility(eligibility)
        show_totals(totals)
        if isinstance(plan, Plan):
            show_plan(plan, workload, explain=True)

    assert workload.name in shown.getvalue()
    lines = line(eligibility, SCREEN).splitlines()
    assert max(map(len, lines)) <= max(SCREEN.width, len(workload.name) + SCREEN.width // 2)


@given(document=sound())
@much
def test_what_is_read_is_read_back_as_itself(document: Any) -> None:
    workload = read_or_refused(document)
    if workload is not None:
        assert workload == read_document(json.loads(json.dumps(workload.to_dict())))

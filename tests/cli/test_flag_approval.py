"""``flag approve`` and ``reject``, and where a person sees that something waits."""

import getpass
import json
from dataclasses import replace

import pytest

from compilegate.cli.common.outcome import flag_words
from compilegate.cli.trials import TrialWatcher
from compilegate.domain import naming
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.records.trials import WAIT_SECONDS, ApprovalAnswer, FlagOutcome
from compilegate.usecases.flag.approval import answer_once, ask_approval, await_approval
from compilegate.usecases.records import Trial, save_record, to_json
from tests.decision_builder import decision_document
from tests.domain.workload_builder import SOUND
from tests.fake_clouds import cloud
from tests.plan_builder import plan_record
from tests.usecases.trial_builder import SPEC, put_spec

TRIAL = "0abc1234"
ARM = ArmPlan("baseline", "none", "i", "ml.g5.xlarge", 1, 1, 1.0, "fp32", 32, 1e-3, "none", {})
EVENT = {"workload": "bert-docs", "trial": TRIAL, "spec_key": SPEC, "execution": "arn:x"}


@pytest.fixture
def pending(providers):
    """A cloud in which a promotion of bert-docs waits."""
    providers.aws_cloud = cloud()
    services = providers.aws_cloud.services
    key = naming.record_key("bert-docs", TRIAL, "decision")
    services.store.put(key, to_json(decision_document()))
    put_spec(services, SOUND)
    services.locks.acquire("bert-docs", EVENT["execution"], now=0, expires_at=1)
    ask_approval({**EVENT, "decision_key": key}, services=services)
    services.tokens.waiting.add("token")
    await_approval({**EVENT, "token": "token"}, services=services)
    return providers.aws_cloud


def answer_of(pending):
    key = ApprovalAnswer.key_of(trial=TRIAL)
    return dict(pending.services.ledger.raw.entries("bert-docs", key)[0])


@pytest.mark.parametrize(("word", "approved"), [("approve", True), ("reject", False)])
def test_a_persons_answer_is_recorded_and_wakes_the_trial(word, approved, invoke, pending):
    command = ("flag", word, "bert-docs", "--reason", "because", "--yes")
    first, again = invoke(*command), " ".join(invoke(*command).stdout.split())
    document = json.loads(invoke(*command, "--json").stdout)

    me = getpass.getuser()
    assert (f"human:{me}", approved, "because") == tuple(
        answer_of(pending)[key] for key in ("by", "approved", "reason")
    )
    assert "resumes" in first.stdout
    assert ("turns the flag on for candidate compile" in first.stdout) is approved
    outcome = "approved" if approved else "not approved"
    assert f"trial {TRIAL} (compile) was already answered: {outcome} by {me}." in again
    assert "turns the flag on" not in again
    assert (True, False, approved) == (
        document["repeated"], document["woken"], document["approved"],
    )  # fmt: skip


def test_the_other_answer_afterwards_says_what_to_do_instead(invoke, pending):
    unasked = invoke("flag", "reject", "bert-docs", "--reason", "no")
    assert (2, True) == (unasked.exit_code, "add --yes" in unasked.stderr)
    key = ApprovalAnswer.key_of(trial=TRIAL)
    assert 0 == len(pending.services.ledger.raw.entries("bert-docs", key))
    invoke("flag", "reject", "bert-docs", "--reason", "no", "--yes")
    result = invoke("flag", "approve", "bert-docs", "--reason", "yes", "--yes")

    assert 2 == result.exit_code
    assert "was already answered: not approved by" in result.stderr
    assert "compilegate flag set bert-docs --candidate NAME" in result.stderr
    assert "--stage dev" in result.stderr
    assert "turns the flag on" not in result.stdout


def test_status_shows_what_waits_until_it_is_answered(invoke, asked, pending):
    before, document = invoke("status").stdout, asked("status")
    pending.services.store.put(naming.registration_key("other"), b"{}")
    other = asked("status", "other")
    invoke("flag", "approve", "bert-docs", "--reason", "yes", "--yes")

    command = 'compilegate flag approve bert-docs --reason "..." --stage dev'
    since = f"bert-docs-{TRIAL}: compile, since 2026-09-21 14:13 UTC, until 2026-10-21"
    assert f"    {command}\n" in before
    assert since in " ".join(before.split())
    (waiting,) = document["approvals"]
    assert (command, WAIT_SECONDS) == (waiting["approve"], waiting["until"] - waiting["asked_at"])
    assert [[], []] == [other["approvals"], asked("status")["approvals"]]


def test_a_trial_that_is_watched_says_that_it_waits(pending):
    trial = Trial("bert-docs", TRIAL, "")
    jobs = pending.services.jobs
    jobs.add(f"{naming.job_base('bert-docs', TRIAL, 's0')}-r0", "Completed", 1.0, 2.0)
    plan = plan_record(ARM, replace(ARM, name="compile"))
    save_record(pending.services.store, trial, "plan", plan)
    pending.services.store.put(naming.request_key("bert-docs", TRIAL, "s0"), b"{}")
    arn = pending.executions.start(f"bert-docs-{TRIAL}", {"workload": "bert-docs"})

    before = TrialWatcher(trial, arn, pending).read().stage
    answer_once(trial, "human:ana", "go", approved=True, services=pending.services)
    pending.executions.looks = 1
    after = TrialWatcher(trial, arn, pending).read().stage

    assert ("waits for approval, see compilegate status", "judging") == (before, after)


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        (None, "on"),
        ({"approved": True}, "on"),
        ({"approved": False,
          "approval": {"approved": False, "by": "human:ana", "at": 1, "reason": "no"}},
         "unchanged: not approved (ana: no)"),
        ({"approved": False, "approval": None}, "unchanged: not approved (no approval requested)"),
        ({"approved": True, "held_by": {"by": "human:ana", "at": 1, "reason": "freeze"}},
         "unchanged: a manual override stands (ana: freeze)"),
        ({"approved": True, "held_by": {"by": "train", "at": 1, "reason": "worse"}},
         "unchanged: a proven regression stands (production monitoring: worse)"),
    ],
)  # fmt: skip
def test_the_end_of_a_trial_says_what_became_of_the_flag(applied, message):
    outcome = read(FlagOutcome, applied) if applied else None

    assert message == flag_words(read(Decision, decision_document()), outcome)

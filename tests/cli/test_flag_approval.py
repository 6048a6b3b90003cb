"""``flag approve`` and ``reject``, and where a person sees that something waits."""

import getpass
import json

import pytest

from compilegate.cli.common.outcome import flag_words
from compilegate.domain import naming
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision
from compilegate.domain.records.trials import ApprovalAnswer, FlagOutcome
from compilegate.usecases.flag.approval import ask_approval, await_approval
from compilegate.usecases.records import to_json
from tests.decision_builder import decision_document
from tests.domain.workload_builder import SOUND
from tests.fake_clouds import cloud
from tests.usecases.trial_builder import SPEC, put_spec

TRIAL = "0abc1234"
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


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        (None, "on"),
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

"""Which question a person answers, and answers that contradict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production.history import (
    Approval,
    answer_words,
    answerable,
    check_answer,
    unanswered,
)
from compilegate.domain.records.trials import ApprovalAnswer, ApprovalRequested

OPEN = Approval(ApprovalRequested(1, 2, "t1"))
YES = ApprovalAnswer(3, "t1", "human:ana", approved=True, reason="looks good")
NO = replace(YES, approved=False, reason="not before the release")
ANSWERED = replace(OPEN, answer=YES)


def later(approval: Approval, trial: str) -> Approval:
    return replace(approval, asked=replace(approval.asked, trial=trial))


@pytest.mark.parametrize(
    ("approvals", "trial"),
    [
        ((OPEN,), "t1"),
        ((OPEN, later(OPEN, "t2")), "t2"),
        ((OPEN, later(ANSWERED, "t2")), "t1"),
        ((ANSWERED, later(ANSWERED, "t2")), "t2"),
    ],
    ids=["one", "newest open", "open before answered", "newest answered"],
)
def test_a_person_answers_the_newest_open_question_else_the_newest(
    approvals: tuple[Approval, ...], trial: str
) -> None:
    assert trial == answerable(approvals, workload="bert-docs", stage="prod").trial


def test_without_a_question_there_is_nothing_to_answer() -> None:
    with pytest.raises(InvalidInputError, match=r"bert-docs.*compilegate status --stage dev"):
        answerable((), workload="bert-docs", stage="dev")


def test_open_questions_stay_in_their_order() -> None:
    second = later(OPEN, "t2")

    assert [OPEN, second] == unanswered([OPEN, later(ANSWERED, "t3"), second])


def test_repeating_an_answer_is_no_contradiction() -> None:
    check_answer(YES, approved=True, workload="bert-docs", stage="prod")
    check_answer(NO, approved=False, workload="bert-docs", stage="prod")


@pytest.mark.parametrize(
    ("answer", "command"), [(YES, "flag revert bert-docs"), (NO, "flag set bert-docs")]
)
def test_the_other_answer_is_refused_with_the_command_that_overrides_it(
    answer: ApprovalAnswer, command: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_answer(answer, approved=not answer.approved, workload="bert-docs", stage="prod")

    assert answer_words(answer) in str(refused.value)
    assert answer.reason in str(refused.value)
    assert command in str(refused.value)


def test_an_answer_names_the_person() -> None:
    assert ("approved by ana", "not approved by ana") == (answer_words(YES), answer_words(NO))

"""Answers to a question for approval, and those that contradict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production.history import answer_words, check_answer
from compilegate.domain.records.trials import ApprovalAnswer

YES = ApprovalAnswer(3, "t1", "human:ana", approved=True, reason="looks good")
NO = replace(YES, approved=False, reason="not before the release")


def test_repeating_an_answer_is_no_contradiction():
    check_answer(YES, approved=True, workload="bert-docs", stage="prod")
    check_answer(NO, approved=False, workload="bert-docs", stage="prod")


@pytest.mark.parametrize(
    ("answer", "command"), [(YES, "flag revert bert-docs"), (NO, "flag set bert-docs")]
)
def test_the_other_answer_is_refused_with_the_command_that_overrides_it(answer, command):
    with pytest.raises(InvalidInputError) as refused:
        check_answer(answer, approved=not answer.approved, workload="bert-docs", stage="prod")

    assert answer_words(answer) in str(refused.value)
    assert answer.reason in str(refused.value)
    assert command in str(refused.value)


def test_an_answer_names_the_person():
    assert ("approved by ana", "not approved by ana") == (answer_words(YES), answer_words(NO))

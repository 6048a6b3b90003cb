"""What reaches a script unchanged, and what is encoded or refused instead."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import argument_text as arguments
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload.limits import check_script_arguments
from tests.domain.workload_builder import SOUND, change


@given(text=st.text(max_size=200))
def test_only_words_that_need_no_quotes_survive(text):
    assert arguments.survives(text) == (shlex.quote(text) == text and text.isascii())


@given(text=st.text(max_size=200))
def test_encoded_text_survives_whatever_it_holds(text):
    assert arguments.survives(arguments.encoded(text))
    assert arguments.survives(arguments.for_launcher(text))


@given(document=st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_a_document_comes_back_as_it_went(document):
    assert document == arguments.decoded_document(arguments.encoded_document(document))


@pytest.mark.parametrize("value", ["plain", "1e-05", "a/b.c:1,2=x@y%+-", 3, 1e-5, True, -1])
def test_the_launcher_gets_what_survives_as_it_is(value):
    assert value == arguments.for_launcher(value)


@pytest.mark.parametrize("value", ["--other", "base64:abc"])
def test_what_the_launcher_would_misread_is_encoded_even_without_a_shell(value):
    assert arguments.encoded(value) == arguments.for_launcher(value, shell=False)


@pytest.mark.parametrize("path", ["./a.py", "-a.py", "/a.py", "a b.py", "a/../b.py", "a$.py", ""])
def test_a_path_that_a_shell_would_change_is_not_started(path):
    assert not arguments.entry_point_survives(path)


@pytest.mark.parametrize("text", ["it's", "two\nlines", "$(id)", "größe", " x ", "a" * 900 + " b"])
def test_with_the_launcher_a_team_may_pass_any_text(text):
    values = {"script": "train.py", "prompt": text}
    check_script_arguments(
        change(SOUND, training__entry_point="launch.py", training__hyperparameters=values)
    )

    with pytest.raises(InvalidInputError, match=r"start the script with launch\.py"):
        check_script_arguments(change(SOUND, training__hyperparameters={"prompt": text}))


@pytest.mark.parametrize(("name", "value"), [("NCCL_DEBUG", "WARN"), ("NCCL_IB_DISABLE", "1")])
def test_a_variable_that_asks_for_what_the_toolkit_sets_is_fine(name, value):
    check_script_arguments(change(SOUND, training__environment={name: value}))

"""Today's answers are the recorded ones; the whole of every part is in the longer tier."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.frozen.parts import PARTS
from tests.frozen.recording import compare, differences
from tests.frozen.wording import without_wording

# Every so many-th case is in the fast tier.
SAMPLE = {"judge": 12, "eligibility": 12, "requests": 12, "steps": 7, "commands": 9}


@pytest.mark.sample
@pytest.mark.parametrize("part", sorted(SAMPLE))
def test_a_sample_of_each_part_is_as_recorded(part: str) -> None:
    cases = PARTS[part]()[:: SAMPLE[part]]

    assert "" == listed(part, cases, all_cases=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        *sorted(PARTS.keys() - {"template"}),
        # Where the CDK has started, and has made one of the templates.
        pytest.param("template", marks=pytest.mark.xdist_group("template")),
    ],
)
def test_every_case_is_as_recorded(part: str) -> None:
    assert "" == listed(part, PARTS[part](), all_cases=True)


def listed(part: str, cases, *, all_cases: bool) -> str:
    return "\n".join(map(str, islice(compare(part, cases, all_cases=all_cases), 20)))


def test_differences_name_the_place_and_tell_numbers_apart() -> None:
    before = {"a": [1, {"b": None}], "c": "x", "d": 1}
    after = {"a": [1.0, {}, 2], "c": "x", "d": True}

    assert [
        ("a[0]", 1, 1.0),
        ("a[1].b", None, "(absent)"),
        ("a[2]", "(absent)", 2),
        ("d", 1, True),
    ] == list(differences(before, after))


def test_wording_is_kept_as_present_or_absent() -> None:
    document = {"code": "c", "message": "words", "fix": None, "why": "", "list": [{"note": "w"}]}

    assert {
        "code": "c", "message": "…", "fix": None, "why": "", "list": [{"note": "…"}],
    } == without_wording(document)  # fmt: skip

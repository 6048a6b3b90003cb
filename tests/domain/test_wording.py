"""A template and its values: what is shown, and what is left out."""

from __future__ import annotations

import pytest

from compilegate.domain.wording import fill, formats, names

TEMPLATE = "{name}: {usd:money}[ in {runs:plural run}][ ({share:percent}{sure:if})][, {note}]."


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"runs": 3, "share": 0.25, "sure": True, "note": "n"},
         "a: $12.50 in 3 runs (25%), n."),
        ({"runs": 0, "share": 0, "sure": 1, "note": "0"}, "a: $12.50 in 0 runs (0%), 0."),
        ({"runs": None, "share": 0.25, "sure": False, "note": ""}, "a: $12.50."),
        ({"runs": 1, "share": None, "sure": True, "note": "[{usd}]"},
         "a: $12.50 in 1 run, [{usd}]."),
    ],
)  # fmt: skip
def test_a_part_in_brackets_stands_only_with_all_of_its_values(values, expected):
    assert expected == fill(TEMPLATE, {"name": "a", "usd": 12.5, **values})


def test_a_template_names_its_values_and_lacks_none_silently():
    assert {"name", "usd", "runs", "share", "sure", "note"} == names(TEMPLATE)
    with pytest.raises(KeyError, match="usd"):
        fill("{usd:money}", {})


def test_a_unit_and_a_format_of_python_itself_are_no_names_of_ours():
    assert "2.50 and 7 further runs" == fill(
        "{a:.2f} and {b:plural further run}", {"a": 2.5, "b": 7}
    )
    assert set(formats()) & {"d", "f", "g", "s", ".2f"} == set()

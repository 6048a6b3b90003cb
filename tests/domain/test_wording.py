"""A template and its values: what is shown, and what is left out."""

from __future__ import annotations

import pytest

from compilegate.domain.wording import fill, names

TEMPLATE = "{name}: {usd:money}[ in {runs:plural run}][ ({share:percent}{sure:if})][, {note}]."


def test_a_template_names_its_values_and_lacks_none_silently():
    assert {"name", "usd", "runs", "share", "sure", "note"} == names(TEMPLATE)
    with pytest.raises(KeyError, match="usd"):
        fill("{usd:money}", {})

"""The descriptors of graph compilers: what is assumed of each has its basis and date."""

from __future__ import annotations

import re

import pytest

from compilegate.domain.compilers import COMPILERS

DATE = re.compile(r"20\d\d-\d\d-\d\d")


@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_what_is_assumed_of_a_compiler_has_its_basis_and_date(compiler):
    speedup = compiler.compute_speedup
    rows = [*compiler.overheads, *([speedup] if speedup else [])]

    assert rows or not compiler.compiles
    assert [] == [row for row in rows if not (row.basis and DATE.fullmatch(row.as_of))]

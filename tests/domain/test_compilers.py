"""The descriptors of graph compilers: what is assumed of each has its basis and date."""

from __future__ import annotations

import re

import pytest

from compilegate.domain.compilers import COMPILERS, NO_COMPILER, compiler_named

DATE = re.compile(r"20\d\d-\d\d-\d\d")


@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_what_is_assumed_of_a_compiler_has_its_basis_and_date(compiler):
    speedup = compiler.compute_speedup
    rows = [*compiler.overheads, *([speedup] if speedup else [])]

    assert rows or not compiler.compiles
    assert [] == [row for row in rows if not (row.basis and DATE.fullmatch(row.as_of))]


@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_a_compiler_that_a_library_brings_says_since_when_and_where_that_stands(
    compiler,
):
    assert compiler.proof
    assert compiler.own_image or all((compiler.kind, compiler.since, compiler.source))
    assert compiler.base in COMPILERS


def test_the_overhead_of_a_family_goes_before_the_general_one():
    general = compiler_named("torch_compile").overhead("transformer")
    own = compiler_named("torch_compile").overhead("diffusion")

    assert (None, "diffusion") == (general.family, own.family)


def test_nothing_is_assumed_without_a_compiler():
    assert NO_COMPILER is compiler_named("none") is compiler_named(None) is compiler_named("gcc")
    assert (None, None) == (NO_COMPILER.overhead("transformer"), NO_COMPILER.compute_speedup)
    assert (True, False) == (NO_COMPILER.keeps_cache, NO_COMPILER.own_image)

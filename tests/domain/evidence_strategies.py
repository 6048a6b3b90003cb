"""Evidence of every outcome, drawn by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.domain.evidence_builder import (
    CENTRE,
    PROBATION_MARGIN,
    add_candidate,
    document,
    probation_document,
    sample,
    watch,
)

MARGIN = 0.02


class Described(dict[str, Any]):
    """A document that a failure shows by what it was made from."""

    made_from = ""

    def __repr__(self) -> str:
        return self.made_from


def described(doc: dict[str, Any], **made_from: object) -> dict[str, Any]:
    described = Described(doc)
    described.made_from = ", ".join(f"{key}={value}" for key, value in made_from.items())
    return described


@st.composite
def trials(draw: st.DrawFn) -> dict[str, Any]:
    """Trials of every outcome."""
    sd = draw(st.sampled_from([0.001, 0.004, 0.02]))
    loss = draw(st.sampled_from([0.0, 0.5, 1.5])) * MARGIN
    ours, theirs = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    speedup, blocks = draw(st.sampled_from([0.8, 1.15, 1.25, 1.4])), draw(st.integers(1, 6))
    mode = draw(st.sampled_from(["shadow", "hybrid", "canary"]))
    past, second = draw(st.sampled_from([0, 3, 8])), draw(st.booleans())
    doc = document(
        speedup=speedup,
        blocks=blocks,
        metrics={"baseline": sample(theirs, 2.5, sd), "compile": sample(ours, 2.5 + loss, sd)},
        margin=MARGIN,
        policy={"quality_runs": mode},
    )
    doc["quality"]["history"] = sample(past, 2.5, sd)
    if second:
        add_candidate(doc, "other", speedup=1.5, metrics=sample(ours, 2.5, sd))
    return described(
        doc, sd=sd, loss=loss, ours=ours, theirs=theirs, speedup=speedup, blocks=blocks,
        mode=mode, past=past, second=second,
    )  # fmt: skip


@st.composite
def probations(draw: st.DrawFn) -> dict[str, Any]:
    """Probations of every outcome."""
    sd = draw(st.sampled_from([0.002, 0.01]))
    made = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["compile", "compile", "baseline"]),
                st.sampled_from([0.0, 0.0, 0.0, 2.0]),
                st.booleans(),
                st.sampled_from(["train", "team"]),
            ),
            max_size=14,
        )
    )
    doc = probation_document(sd=sd)
    for name, loss, confirm, who in made:
        metric = CENTRE - loss * PROBATION_MARGIN
        watch(doc, name, metric=metric, confirm=confirm, launched_by=who)
    return described(doc, sd=sd, made=made)


any_evidence = st.one_of(trials(), probations())

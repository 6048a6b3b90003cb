"""benchmarks/README.md shows the figures on file, and what they say of the code is so."""

from __future__ import annotations

import json

from compilegate.facts import load_facts
from compilegate.flags.backoff import Backoff
from tests.docs.flag_figures import PAGE, ROOT, refreshed

TEXT = " ".join(PAGE.read_text().split())
HINT = "write it anew: python -m tests.docs.flag_figures"


def test_the_tables_of_reads_are_the_figures_on_file() -> None:
    assert refreshed(PAGE.read_text()) == PAGE.read_text(), HINT


def test_the_client_waits_as_the_page_says() -> None:
    backoff, price = Backoff(), load_facts().price("ml.g5.2xlarge")

    assert f"from {backoff.first:.0f} to at most {backoff.most:.0f} seconds" in TEXT
    assert f"up to {backoff.seconds / 60:.0f} minutes" in TEXT
    assert price is not None
    assert f"two minutes: {124 / 3600 * price.usd_per_hour:.2f} USD" in TEXT


def test_the_weekly_summaries_are_those_on_file() -> None:
    stored = json.loads((ROOT / "benchmarks" / "digests.json").read_text())

    assert (
        f"read in {round(stored['seconds'])} seconds with {stored['peak_memory_mib']} MiB" in TEXT
    )

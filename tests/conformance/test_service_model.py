"""The limits on file are those of the installed botocore."""

from __future__ import annotations

from compilegate.facts import read
from tests.conformance.service_model import FILE, document, written


def test_the_limits_on_file_are_the_installed_botocores():
    """Otherwise: ``python -m tests.conformance.service_model``."""
    on_file = read("create_training_job")

    assert document(on_file["as_of"]) == on_file
    assert written(on_file) == FILE.read_text()

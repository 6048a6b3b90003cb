"""Where plotly.js comes from."""

from __future__ import annotations

import pytest

from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.report import markup


@pytest.fixture
def folder(tmp_path, monkeypatch):
    markup.plotly_javascript.cache_clear()
    monkeypatch.setattr(markup, "ASSETS", tmp_path)
    yield tmp_path
    markup.plotly_javascript.cache_clear()


def test_the_bundled_copy_comes_first(folder):
    (folder / "plotly.min.js").write_text("bundled")

    assert markup.plotly_javascript() == "bundled"


def test_without_a_bundled_copy_the_installed_package_serves(folder):
    assert "Plotly" in markup.plotly_javascript()


def test_without_either_the_error_names_both_places_and_the_fix(folder, monkeypatch):
    monkeypatch.setattr(markup, "_installed_plotly", lambda: None)

    with pytest.raises(EnvironmentNotReadyError, match="bundle the file there, or install plotly"):
        markup.plotly_javascript()

"""Templates of screens compile, and a name that is not there is an error."""

import pytest
from jinja2 import TemplateError

from compilegate.cli.common import output
from compilegate.cli.common.output import TEMPLATES, show
from tools.docs.folders import ROOT

LAYOUT = """\
- a point of {{ words }}
{{ hanging }}  name: {{ words }}
  key  {{ hang }}{{ words }}
"""
SCREEN = """\
- a point of words that need
  more than one line
  name: words that need more
    than one line
  key  words that need more
       than one line
"""


def test_what_is_wrapped_hangs_below_its_beginning(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    (tmp_path / "layout.txt.j2").write_text(LAYOUT)

    show(tmp_path / "layout", {"words": "words that need more than one line"})

    assert SCREEN == capsys.readouterr().out


EVERY = [*TEMPLATES.glob("*"), *ROOT.glob("distributions/*/compilegate_*/templates/*")]


@pytest.mark.parametrize(
    "text",
    ["{{ nothing }}", "% if nothing\n% endif", "{{ document.nothing }}", "{{ 1 | nothing }}"],
)
def test_a_name_that_is_not_there_is_an_error(text, tmp_path):
    (tmp_path / "wrong.txt.j2").write_text(text)

    with pytest.raises(TemplateError):
        show(tmp_path / "wrong", [])


@pytest.mark.parametrize("path", sorted(EVERY), ids=lambda path: path.name)
def test_every_template_compiles_and_fits_the_editor(path):
    name = path.name

    output._environment(path.parent).get_template(name)

    assert name.endswith(".txt.j2")
    assert [] == [line for line in path.read_text().splitlines() if len(line) > 100]

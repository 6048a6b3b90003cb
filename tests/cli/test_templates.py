"""Templates of screens: paragraphs, lines that stay whole, blocks, and names that are not there."""

import pytest
from jinja2 import TemplateError

from compilegate.cli.common import output
from compilegate.cli.common.output import TEMPLATES, show
from tools.docs.folders import ROOT

LAYOUT = """\
{{ bold }}Title of {{ name }}
% if words
  a paragraph of {{ words }}
\\, continued{% if more %} with more{% endif %}
{# a comment
   of two lines #}
% endif

- a point of {{ words }}
{{ hanging }}  name: {{ words }}
  key  {{ hang }}{{ words }}
{{ whole }}  path/of/{{ words }}
: first: 1
: none: {{ "" }}
: second:
\\ {{ words }}
{{ say_rows([("third", "3")]) }}

{{ usd | money }}, {{ at | minute }}
"""
WORDS = "words that\nneed more than one line"
SCREEN = """\
Title of x
  a paragraph of words that
  need more than one line,
  continued

- a point of words that need
  more than one line
  name: words that need more
    than one line
  key  words that need more
       than one line
  path/of/words that need more than one line
  first  1
  second words that need more
         than one line
  third 3

$1,200, 2023-11-14 22:13 UTC
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "TEMPLATES", tmp_path)
    monkeypatch.setenv("COLUMNS", "30")
    return tmp_path


def test_the_text_of_a_template_is_the_text_of_the_screen(folder, capsys):
    (folder / "layout.txt.j2").write_text(LAYOUT)
    document = {"name": "x", "words": WORDS, "more": False, "usd": 1200.4, "at": 1_700_000_000}

    show("layout", document)

    assert SCREEN == capsys.readouterr().out


EVERY = [*TEMPLATES.glob("*"), *ROOT.glob("distributions/*/compilegate_*/templates/*")]


@pytest.mark.parametrize(
    "text",
    ["{{ nothing }}", "% if nothing\n% endif", "{{ document.nothing }}", "{{ 1 | nothing }}"],
)
def test_a_name_that_is_not_there_is_an_error(folder, text):
    (folder / "wrong.txt.j2").write_text(text)

    with pytest.raises(TemplateError):
        show("wrong", [])


@pytest.mark.parametrize("path", sorted(EVERY), ids=lambda path: path.name)
def test_every_template_compiles_and_fits_the_editor(path):
    name = path.name

    output._environment(path.parent).get_template(name)

    assert name.endswith(".txt.j2")
    assert [] == [line for line in path.read_text().splitlines() if len(line) > 100]

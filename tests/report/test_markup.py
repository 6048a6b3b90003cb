"""What pages and texts are put together from: templates, downloads, tables, safe text."""

import base64
import math

import pytest

from compilegate.domain.console import s3_object
from compilegate.report import markup
from compilegate.report.markup import (
    EMBEDDED_MAX,
    Download,
    Page,
    command,
    csv_text,
    kept_at,
    link,
    markdown,
    markdown_table,
    paragraph,
    paragraphs,
    rows,
    stable_json,
    switch_style,
    unbroken,
)

LINKED = link(s3_object("eu-west-1", "data", "a/b"), "s3://data/a/b")


@pytest.mark.parametrize(
    ("more", "kept"),
    [(0, (f"data:text/csv;base64,{base64.b64encode(b'x' * EMBEDDED_MAX).decode()}", "")),
     (1, (None, "there"))],
)  # fmt: skip
def test_a_text_is_embedded_up_to_a_size_and_then_named_by_its_place(more, kept):
    made = Download.of("Runs", "runs.csv", "x" * (EMBEDDED_MAX + more), place="there")

    assert 120_000 == EMBEDDED_MAX
    assert ("Runs", "runs.csv", *kept) == (made.name, made.file, made.uri, made.place)
    assert "data:application/json;base64,e30=" == Download.of("D", "d.json", "{}", place="").uri
    assert {"html": "h", "md": "m", "json": "j"} == Page("h", "m", "j").texts


@pytest.mark.parametrize(
    ("region", "bucket", "shown"),
    [("eu-west-1", "data", LINKED), (None, "data", "s3://data/a/b"), ("eu-west-1", None, "a/b"),
     (None, None, "a/b")],
)  # fmt: skip
def test_an_object_is_linked_where_a_console_shows_it(region, bucket, shown):
    assert shown == kept_at("a/b", region=region, bucket=bucket)


@pytest.mark.parametrize(
    ("make", "given", "html"),
    [
        (link, ('x"y', "<b>"), '<a href="x&#34;y">&lt;b&gt;</a>'),
        (unbroken, ("5 % on 2026-11-20 <",),
         '5\N{NO-BREAK SPACE}% on <span class="whole">2026-11-20</span> &lt;'),
        (command, ("a --b <c>",), '<code>a <span class="whole">--b</span> &lt;c&gt;</code>'),
        (switch_style, (0,), ""),
        (switch_style, (2,), ".switch>input:nth-of-type(1):checked~.view:nth-of-type(1),.switch>"
         "input:nth-of-type(2):checked~.view:nth-of-type(2){display:block}\n"),
    ],
)  # fmt: skip
def test_text_in_a_page_is_escaped_and_what_belongs_together_stays_whole(make, given, html):
    assert html == make(*given)


def test_a_table_is_a_line_for_each_row_whose_cells_stay_text():
    table = [{"b": 1, "a": "=x"}, {"b": None, "a": "y,z"}]

    assert 'a,b\n\'=x,1\n"y,z",\n' == csv_text(["a", "b"], table)
    assert "" == csv_text(["a"], [])
    assert "| N | A\\* |\n| --- | ---: |\n| x | 1 |\n| y | 2 |\n" == markdown_table(
        ("N", "A*"), [("x", "1"), ("y", "2")]
    )


def test_json_is_the_same_text_for_the_same_document():
    document = {"b": (1.5, math.nan, [-math.inf]), "a": {2: "é\x1b"}, "c": {*()}, "d": b"x"}

    assert '{"a":{"2":"é\\\\x1b"},"b":[1.5,null,[null]],"c":"set()","d":"b\'x\'"}' == stable_json(
        document, indent=None
    )
    assert '{\n  "a": 1,\n  "b": [\n    2.5\n  ]\n}' == stable_json({"b": [2.5], "a": 1})


PARAGRAPHS = """\
% set many = 2
One line {{ value }}
goes on.

% if many > 1
   Two.
% endif

{{ "" }}

{{ row("kept", "x") }}{{ row("left out", "") }}{{ row("three", "", "x") }}
% call row("folded", 1)
a
  b {{ value }}
% endcall
"""
DOCUMENT = "# {{ value }}  \n\n\n\n% if value\n- it\n% endif\n\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(markup, "ASSETS", tmp_path)
    (tmp_path / "all.txt.j2").write_text(PARAGRAPHS)
    (tmp_path / "page.md.j2").write_text(DOCUMENT)
    return tmp_path / "all"


def test_lines_of_a_template_are_one_and_those_of_a_value_stay(written):
    def row(*cells, caller=None):
        return ""

    said = ["One line a\nb goes on.", "Two."]
    assert said == paragraphs("all", value="a\nb", row=row)
    assert said == paragraphs(written, value="a\nb", row=row)
    assert " ".join(said) == paragraph("all", value="a\nb", row=row)
    assert [("kept", "x"), ("three", "", "x"), ("folded", 1, "a b a\nb")] == rows(
        "all", value="a\nb"
    )
    lines = markup.lines("all", value="a\nb", row=row)
    assert ["One line a b", "goes on.", "", "Two."] == lines
    assert "# a\nb\n\n- it\n" == markdown("page", value="a\nb")

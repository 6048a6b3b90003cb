"""Text that is not ours does nothing in any medium, and can still be read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from compilegate.domain.escaping import (
    escape_cell,
    escape_chat,
    escape_chat_code,
    escape_line,
    escape_mail,
    escape_markdown,
)
from compilegate.domain.outside import visible
from tests.hostile_texts import ANY
from tests.report.readers import LOOKS, URL, acting, pages, shown, words

OWN = "https://us-east-1.console.aws.amazon.com/s3/object/data?region=us-east-1&prefix=a%2Fb"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[x](javascript:alert(1))", "a"),
        ("[x][y]\n\n[y]: http://evil.example", "a"),
        ("![x](http://evil.example/p.png)", "img"),
        ("<javascript:alert(1)>", "a"),
        ("see http://evil.example", "a"),
        ("www.evil.example", "a"),
        ("a@evil.example", "a"),
        ("<script>alert(1)</script>", "script"),
        ("<!-- hidden -->", "comment"),
        ("`x`", "code"),
        ("~~no~~", "del"),
        ("@octocat", "mention"),
        ("org/repo#123", "mention"),
        ("\\#123", "mention"),
        ("\u202egnp.exe", "direction"),
    ],
)
def test_the_readers_see_what_acts(text, seen):
    assert seen in [kind for kind, _ in acting(text)]


@given(ANY)
def test_in_markdown_nothing_of_it_acts_wherever_it_stands(text):
    safe = escape_markdown(text)

    for document in (
        safe, f"### {safe}", f"- {safe}\n- {safe}", f"**{safe}**, {safe}", f"> {safe}",
        f"| {safe} | b |\n| --- | ---: |\n| {safe} | {safe} |",
    ):  # fmt: skip
        assert [] == acting(document)


@given(ANY)
def test_in_markdown_all_of_it_can_be_read(text):
    assert shown(visible(text)) == words(f"x {escape_markdown(text)}").removeprefix("x").strip()


@given(ANY)
def test_a_cell_stays_one_cell(text):
    table = f"| a | b |\n| --- | --- |\n| {escape_markdown(text)} | 1 |"

    assert 2 == [tag for tag, _ in pages(table)[0].tags].count("td")


@given(ANY)
def test_in_a_chat_nothing_of_it_acts(text):
    safe = escape_chat(f"{text}\n- {text}")

    assert [] == acting(safe, LOOKS)
    assert not set("<>`") & set(safe)
    assert not re.search(r"&(?!amp;|lt;|gt;)", safe)
    assert not URL.search(safe)


@given(ANY)
def test_a_command_in_a_chat_stays_one_piece_of_code(text):
    command = escape_chat_code(f"compilegate digest --owner {text}")

    assert [["p", "code"]] * 2 == [[tag for tag, _ in page.tags] for page in pages(command)]
    assert not set("<>`") & set(command[1:-1])


@given(ANY)
def test_in_a_mail_nothing_becomes_a_link(text):
    mail = escape_mail(text)

    assert not URL.search(mail)
    assert not re.search(r"@\w", mail)
    assert mail.replace("\u200b", "") == text.replace("\u200b", "")


@given(ANY)
def test_a_line_of_ascii_holds_no_url(text):
    assert not URL.search(escape_line(text))


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t"])
def test_a_spreadsheet_computes_no_text(begins):
    assert "'" == str(escape_cell(f"{begins}HYPERLINK(1)"))[0]
    assert (-0.5, None, "a=b") == tuple(map(escape_cell, (-0.5, None, "a=b")))


@pytest.mark.parametrize("escape", [escape_chat, escape_mail])
def test_our_own_links_stay_and_what_only_looks_like_one_does_not(
    escape,
):
    text = f"See {OWN}\n{OWN}.evil.example {OWN}@evil.example x{OWN}"

    safe = escape(text, [OWN])

    assert 1 == len(URL.findall(safe))
    assert safe.splitlines()[0].replace("&amp;", "&") == f"See {OWN}"

"""Every screen at 40 and at 80 columns: no broken word, no line that could have been shorter."""

import re
from pathlib import Path

import pytest

from compilegate.cli.common.outcome import Outcome
from compilegate.cli.run import show_outcome
from compilegate_facts.topics import TOPICS

ROOT = Path(__file__).parents[2]
WIDE = 400
FILES = [f"workloads/article-{name}.yaml" for name in ("bert", "gpt2", "xgboost", "diffusion")]
SCREENS = (
    "facts",
    *(f"facts {topic}" for topic in TOPICS),
    f"check {FILES[0]}",
    f"check {' '.join(FILES)}",
    f"plan {FILES[0]} --explain",
    "judge docs/examples/evidence.json --explain",
    "judge docs/examples/probation.json",
    "judge --plan",
    "judge --plan --spread 0.003 --margin 0.005 --history 10",
    "doctor docs/examples",
)
CLOUD_SCREENS = (
    "status",
    "flag show bert-docs",
    "flag history bert-docs",
    "digest",
    "report bert-docs --history",
)


def check(narrow, wide, width):
    """Compares a screen with the same one where nothing is wrapped."""
    words, lines = set(wide.split()), set(wide.splitlines())
    broken = {word for word in set(narrow.split()) - words if not word.endswith("…")}
    # A line to copy stays whole, and so does a single word such as a path.
    long = [
        line for line in narrow.splitlines()
        if len(line) > width and line not in lines and len(line.split()) > 1
    ]  # fmt: skip

    assert (set(), []) == (broken, long)


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("command", SCREENS)
def test_no_screen_breaks_a_word(command, width, invoke, monkeypatch):
    monkeypatch.chdir(ROOT)

    check(*screens(command, width, invoke, monkeypatch), width)


@pytest.mark.usefixtures("promoted")
@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("command", CLOUD_SCREENS)
def test_no_screen_of_a_cloud_does(command, width, invoke, monkeypatch):
    check(*screens(command, width, invoke, monkeypatch), width)


def screens(command, width, invoke, monkeypatch):
    texts = []
    for columns in (width, WIDE):
        monkeypatch.setenv("COLUMNS", str(columns))
        texts.append(invoke(*command.split()).stdout)
    narrow, wide = (re.sub(r"for [\d:]+", "", text) for text in texts)
    assert narrow
    return narrow, wide


@pytest.mark.parametrize("headline", ["It failed", "It failed.", "It failed because of ..."])
def test_the_headline_of_an_outcome_ends_as_it_was_cut(headline, capsys):
    show_outcome(Outcome("bert-docs", "0mabc123", None, headline, headline, None))

    ended = headline if headline.endswith(".") else f"{headline}."
    assert f"  {ended}" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"FORCE_COLOR": "1"},
        {"NO_COLOR": "1"},
        {"NO_COLOR": "1", "FORCE_COLOR": "1"},
        {"TERM": "dumb", "FORCE_COLOR": ""},
    ],
    ids=str,
)
def test_a_pipe_has_colour_only_where_it_is_asked_for(variables, invoke, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    output = invoke("check", *FILES).stdout

    forced = bool(variables.get("FORCE_COLOR"))
    colours = re.findall(r"\x1b\[(?:1;)?[39][0-7]m", output)
    assert forced or "\x1b" not in output
    assert (forced and "NO_COLOR" not in variables) == bool(colours)
    assert not re.search(r"\x1b\[[\d?]*[A-KlhJ]", output)  # nothing moves

"""The documents tell the truth about what is there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from compilegate.cli.main import SECTIONS, app
from compilegate.cli.register import WORDS as OUTCOMES
from compilegate.domain.flag import STATES

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?P<page>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TRACKED = subprocess.run(
    ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split("\0")
PAGES = [ROOT / name for name in TRACKED if name.endswith(".md") and (ROOT / name).exists()]


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page):
    for target, anchor in LINK.findall(FENCE.sub("", page.read_text())):
        if not re.match(r"[a-z]+:", target):
            linked = page.parent / target if target else page
            assert linked.exists(), target
            assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them in links."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = [re.sub(r"\]\([^)]*\)", "", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-") for text in plain}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_and_shows_an_example(name):
    page = (ROOT / "docs" / "commands.md").read_text()
    topics = name.startswith("facts ") and "`facts [TOPIC]`" in page

    assert topics or re.search(rf"(^- |, |^  )`{name}[` ]", page, re.MULTILINE)
    assert f"compilegate {name}" in (COMMANDS[name].help or "")


def test_the_page_of_commands_has_the_sections_of_the_help():
    page = (ROOT / "docs" / "commands.md").read_text()
    listed = re.findall(r"^\*\*(.+)\*\*\n\n((?:- .*\n|  .*\n)+)", page, re.MULTILINE)
    documented = {
        title: list(dict.fromkeys(re.findall(r"^- `([\w-]+)", text, re.MULTILINE)))
        for title, text in listed
    }

    screen = CliRunner().invoke(app, ["--help"]).stdout

    assert {title: list(names) for title, names in SECTIONS.items()} == documented
    assert ["Options", *SECTIONS] == re.findall(r"^(\w.*):$", screen, re.MULTILINE)
    assert typer.main.get_command(app).list_commands(None) == list(chain(*documented.values()))


def test_the_picture_of_a_flag_has_every_state():
    page = (ROOT / "docs" / "flag.md").read_text()
    drawn = re.findall(r"^    (\S+) --> (\w+)", page, re.MULTILINE)

    assert set(STATES) == {state for way in drawn for state in way} - {"[*]"}


def test_the_page_on_registering_has_every_outcome():
    page = (ROOT / "docs" / "register.md").read_text()

    assert [] == [
        word for word in OUTCOMES.values() if f"- {word}" not in page and word != "failed"
    ]


def test_every_make_target_that_a_page_names_exists():
    for page in PAGES:
        for named in re.findall(r"(?:^\$ |`)make ([a-z-]+)", page.read_text(), re.MULTILINE):
            assert named in targets(), f"{page.name}: make {named}"


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_workflow_runs_targets_that_exist_from_the_oldest_python_on():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "fast-tier.yml").read_text())
    job = workflow["jobs"]["fast-tier"]
    oldest = job["strategy"]["matrix"]["python"][0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runs = " ".join(step.get("run", "") for step in job["steps"])

    assert project["requires-python"] == f">={oldest}"
    assert set(re.findall(r"[a-z-]+", re.sub(r"make|PYTHON=\w+", "", runs))) <= targets()


def test_every_decision_has_the_next_number_a_status_and_its_row_in_the_index():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    pages = sorted(folder.glob("0*.md"))

    assert [f"{number:04d}" for number in range(1, len(pages) + 1)] == [
        page.name[:4] for page in pages
    ]
    for page in pages:
        status = re.search(r"\n\nStatus: (.+)\. Decided on \d{4}-\d\d-\d\d\.\n\n", page.read_text())
        assert status, page.name
        assert re.search(rf"\({page.name}\) \| .+ \| {re.escape(status[1])} \|", index), page.name


def test_every_path_and_module_that_contributing_names_exists():
    """NAME stands for what is added: others like it are there."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    top = {path.name for path in ROOT.iterdir()}
    named = {text for text in re.findall(r"`([^`\n ]+)`", page) if text.split("/")[0] in top}
    modules = set(re.findall(r"`python -m ([\w.]+)`", page))

    assert len(named) > 40
    assert [] == [path for path in named if not list(ROOT.glob(path.replace("NAME", "*")))]
    assert all(importlib.util.find_spec(module) for module in modules)


@pytest.mark.parametrize(
    ("product", "folders"),
    [
        ("distributions/doctor", ["compilegate_doctor"]),
        (
            "distributions/localcloud",
            ["compilegate_localcloud", "compilegate_localcloud/emulator"],
        ),
        ("tools/verify_aws", [""]),
    ],
    ids=["doctor", "localcloud", "verify_aws"],
)
def test_the_readme_of_a_product_lists_every_file(product, folders):
    home = ROOT / product
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (home / "README.md").read_text(), re.M | re.S)
    (listing,) = (text for language, text in blocks if not language)
    listed = set(re.findall(r"\b\w+\.py\b", listing))
    files = {path.name for folder in folders for path in (home / folder).glob("*.py")}

    assert [] == sorted(file for file in files - listed if not file.startswith("__"))
    assert listed <= {path.name for path in home.rglob("*.py")}


def test_no_file_names_a_package_registrys_host():
    host = re.compile(r"https?://[a-z0-9.-]*(pypi|pythonhosted|npmjs|debian)\.")
    for name in filter(None, TRACKED):
        path = ROOT / name
        if path.is_file() and path.suffix != ".png":
            assert not host.search(path.read_text(errors="ignore")), name

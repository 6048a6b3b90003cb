"""``make release``: the same bytes wherever and whenever it is made, and what it consists of."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from compilegate import __version__
from tests.packages.conftest import DISTRIBUTIONS, ROOT, succeeded

pytestmark = pytest.mark.slow
COMMITTED = 1_764_000_000  # 2025-11-24 16:00:00 UTC


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two of the same files: in other folders, of other times, with other rights."""
    tracked = succeeded(
        "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=ROOT
    )
    made = []
    for name, rights, mask in (("one", 0o755, "022"), ("another/below", 0o700, "077")):
        checkout = tmp_path_factory.mktemp("checkout") / name
        for file in filter(None, tracked.split("\0")):
            if (ROOT / file).is_file():
                (checkout / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / file, checkout / file)
                (checkout / file).chmod((checkout / file).stat().st_mode & rights)
                os.utime(checkout / file, (rights, rights))
        succeeded(
            "sh", "-c", f'umask {mask}; exec "$@"', "sh", sys.executable, "-m", "tools.release",
            "made", folder=checkout, SOURCE_DATE_EPOCH=str(COMMITTED),
        )  # fmt: skip
        made.append(checkout / "made")
    return made


@pytest.fixture(scope="module")
def release(releases: list[Path]) -> Path:
    return releases[0]


def test_two_releases_of_one_commit_have_the_same_bytes(releases: list[Path]) -> None:
    first, second = ({file.name: file.read_bytes() for file in made.iterdir()} for made in releases)

    assert first.keys() == second.keys()
    assert [] == [name for name in first if first[name] != second[name]]


def test_it_has_both_files_of_every_distribution_with_its_checksum(release: Path) -> None:
    names = ["compilegate", *(f"compilegate_{path.name}" for path in DISTRIBUTIONS.iterdir())]
    files = {
        f"{name}-{__version__}{end}" for name in names for end in ("-py3-none-any.whl", ".tar.gz")
    } | {f"compilegate-{__version__}.cdx.json"}  # fmt: skip
    checked = succeeded("sha256sum", "--strict", "--check", "SHA256SUMS", folder=release)

    assert {"SHA256SUMS", *files} == {file.name for file in release.iterdir()}
    assert {f"{name}: OK" for name in files} == set(checked.splitlines())


def test_its_bill_of_materials_is_valid_and_leads_to_every_library(release: Path) -> None:
    text = (release / f"compilegate-{__version__}.cdx.json").read_text()
    bill = json.loads(text)
    below = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}
    reached: set[str] = set()
    waiting = {"release"}
    while waiting:
        new = set(below.get(waiting.pop(), ())) - reached
        reached |= new
        waiting |= new

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert {one["bom-ref"] for one in bill["components"]} == reached


@pytest.mark.skipif(".dev" in __version__, reason="is not released")
def test_the_changelog_has_a_section_of_this_release() -> None:
    assert f"\n## [{__version__}] - " in (ROOT / "CHANGELOG.md").read_text()

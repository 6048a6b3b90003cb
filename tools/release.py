"""What a release consists of: ``python -m tools.release FOLDER``, with SOURCE_DATE_EPOCH set.

A source archive of each distribution, the wheel that is built from it, a bill of materials and
checksums. Their bytes follow from the files of the checkout, the locks and that time.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PathDistribution
from pathlib import Path

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    XsUri,
)
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from compilegate import __version__

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"
# The locks with which the distributions are tested; those of a tuple are one resolution.
TRAINING = ("training", "torch")
LOCKS = {
    "compilegate": (("tool",), ("bootstrap",), ("lambdas",), TRAINING),
    "compilegate-exports": (("exports",),),
    "compilegate-flags": (("tool",),),
    "compilegate-localcloud": (("localcloud",), TRAINING),
}
NAME = re.compile(r"[\w.-]+")
PIN = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:.*\n[ ])*.*)", re.MULTILINE
)
SHA256 = re.compile(r"--hash=sha256:([0-9a-f]{64})")
# `# via a`, or `# via` with a line for each.
VIA = re.compile(r"# +(?:via )?([\w.-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Pinned:
    """A library of a lock, and the libraries that require it."""

    component: Component
    via: frozenset[str]


def main(folder: Path) -> None:
    """Make the release in a folder, which must be empty or not there."""
    build(folder)
    (folder / f"compilegate-{__version__}.cdx.json").write_text(f"{bill_of_materials(folder)}\n")
    (folder / SUMS).write_text(checksums(folder))


def build(folder: Path) -> None:
    """The source archive and, from that, the wheel of every distribution."""
    for project in (
        ROOT,
        *sorted(path.parent for path in ROOT.glob("distributions/*/pyproject.toml")),
    ):
        command = [sys.executable, "-m", "uv", "build", "--quiet", "--no-build-isolation"]
        command += ["--python", sys.executable, "--out-dir", str(folder), str(project)]
        subprocess.run(command, check=True)  # noqa: S603 - fixed words
    (folder / ".gitignore").unlink()


def checksums(folder: Path) -> str:
    """A line for each file, as ``sha256sum --check`` reads it."""
    return "".join(f"{sha256(file)}  {file.name}\n" for file in sorted(folder.iterdir()))


def sha256(file: Path) -> str:
    """The digest in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def bill_of_materials(folder: Path) -> str:
    """The files of a folder, and the libraries with which they were tested, as CycloneDX 1.6."""
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, checksums(folder)))
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    release = Component(
        name="Compilegate", version=__version__, type=ComponentType.APPLICATION, bom_ref="release"
    )
    bom.metadata.component = release
    own = [distribution(wheel) for wheel in sorted(folder.glob("*.whl"))]
    bom.register_dependency(release, [component for component, _ in own])
    for component, requires in own:
        bom.components.add(component)
        bom.register_dependency(component, [one for one, _ in own if one.name in requires])
        for locks in LOCKS.get(component.name, ()):
            register(bom, component, requires, pinned(locks))
    return JsonV1Dot6(bom).output_as_string(indent=1)


def distribution(wheel: Path) -> tuple[Component, frozenset[str]]:
    """One of ours with its two files, and the names of what it and its extras require."""
    stem = wheel.name.removesuffix("-py3-none-any.whl")
    files = [
        ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION,
            url=XsUri(file.name),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256(file))],
        )
        for file in (wheel, wheel.with_name(f"{stem}.tar.gz"))
    ]
    metadata = PathDistribution(zipfile.Path(wheel, f"{stem}.dist-info/"))
    component = Component(
        name=metadata.name, version=metadata.version, type=ComponentType.LIBRARY, bom_ref=stem,
        licenses=[DisjunctiveLicense(id="Apache-2.0")], external_references=files,
    )  # fmt: skip
    requires = (NAME.match(line) for line in metadata.requires or ())
    return component, frozenset(name[0].lower() for name in requires if name)


def pinned(locks: tuple[str, ...]) -> list[Pinned]:
    """The libraries of one resolution."""
    text = "\n".join((ROOT / "requirements" / f"{lock}.lock").read_text() for lock in locks)
    return [Pinned(library(pin), frozenset(VIA.findall(pin["rest"]))) for pin in PIN.finditer(text)]


def library(pin: re.Match[str]) -> Component:
    """One of the package index, with the hashes of its files."""
    url = PackageURL("pypi", name=pin["name"], version=pin["version"])
    digests = SHA256.findall(pin["rest"])
    return Component(
        name=pin["name"], version=pin["version"], type=ComponentType.LIBRARY, purl=url,
        bom_ref=str(url), hashes=[HashType(alg=HashAlgorithm.SHA_256, content=d) for d in digests],
    )  # fmt: skip


def register(bom: Bom, parent: Component, names: Set[str], libraries: Sequence[Pinned]) -> None:
    """Add the libraries of these names below the parent, each with what it requires itself."""
    seen: set[str] = set()
    waiting = [(parent, names)]
    while waiting:
        above, required = waiting.pop()
        for library in (one.component for one in libraries if one.component.name in required):
            bom.components.add(library)
            bom.register_dependency(above, [library])
            if library.name not in seen:
                seen.add(library.name)
                below = {other.component.name for other in libraries if library.name in other.via}
                waiting.append((library, below))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

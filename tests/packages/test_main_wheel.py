"""``pip install compilegate``: one package, and commands that need no checkout."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilegate import __version__
from tests.packages.conftest import (
    DISTRIBUTIONS,
    ROOT,
    environment,
    files_of,
    run,
    succeeded,
    wheel,
)

pytestmark = pytest.mark.slow
PRODUCTS = sorted(path.name for path in DISTRIBUTIONS.glob("*/compilegate_*"))
EXAMPLES = ROOT / "docs" / "examples"


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel alone, and a folder of a user's."""

    python: Path
    folder: Path

    @property
    def shipped(self) -> Path:
        return next(self.python.parents[1].glob("lib/*/site-packages/compilegate/shipped"))

    @property
    def command(self) -> Path:
        return self.python.with_name("compilegate")

    def __call__(self, *arguments: str | Path) -> str:
        cache = str(self.folder)
        return succeeded(self.command, *arguments, folder=self.folder, XDG_CACHE_HOME=cache)


@pytest.fixture(scope="module")
def compilegate(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("environment")
    python = environment(place / "venv", "3.11", wheels, "compilegate")
    return Installed(python, tmp_path_factory.mktemp("user"))


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_carries_its_package_and_no_test(wheels: Path, name: str) -> None:
    home = DISTRIBUTIONS / name.removeprefix("compilegate_")
    files = {
        path.relative_to(home).as_posix() for path in (home / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }  # fmt: skip

    assert files == files_of(wheel(wheels, name))


def test_the_two_carry_every_file_that_the_code_reads_and_none_twice(wheels: Path) -> None:
    folders = ("compilegate", "training", "workloads", "stacks", "lambdas")
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in folders for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }  # fmt: skip
    expected = {
        name if name.startswith("compilegate/") else f"compilegate/shipped/{name}"
        for name in files if not name.startswith("workloads/data/")
    } | {"compilegate/shipped/app.py", "compilegate/shipped/cdk.json"}  # fmt: skip
    main, flags = wheel(wheels, "compilegate"), wheel(wheels, "compilegate_flags")
    carried, shared = files_of(main), files_of(flags)

    assert not carried & shared
    assert not expected - carried - shared


def test_it_is_installed_with_what_it_requires_of_its_own_release(compilegate: Installed) -> None:
    code = "from importlib.metadata import distributions as every; import json; print(json.dumps("
    code += "{one.name: one.version for one in every() if one.name.startswith('compilegate')}))"
    installed = succeeded(compilegate.python, "-c", code, folder=compilegate.folder)

    own = {"compilegate", *(f"compilegate-{path.name}" for path in DISTRIBUTIONS.iterdir())}
    own -= {"compilegate-localcloud"}  # an extra brings it
    assert dict.fromkeys(own, __version__) == json.loads(installed)


def test_a_script_is_described_checked_and_planned(compilegate: Installed) -> None:
    script = compilegate.folder / "train.py"
    shutil.copy(compilegate.shipped / "training" / "causal_lm.py", script)

    written = json.loads(compilegate("init", "train.py", "--output", "job.yaml", "--json"))
    findings = json.loads(compilegate("doctor", "train.py", "--json"))
    shipped = compilegate.shipped / "workloads" / "article-bert.yaml"
    checked = json.loads(compilegate("check", shipped, "--json"))
    plan = compilegate("plan", compilegate.shipped / "workloads" / "demo-lm.yaml")

    assert "job.yaml" == written["file"]
    assert findings is not None
    assert "eligible" == checked["verdict"]
    assert "within the quotas" in plan.lower()


def test_it_judges_without_aws_and_shows_its_schema_and_commands(compilegate: Installed) -> None:
    decision = json.loads(compilegate("judge", EXAMPLES / "evidence.json", "--json"))
    published = json.loads((ROOT / "docs" / "workload.schema.json").read_text())
    commands = {"check", "init", "try", "doctor", "plan", "judge", "report", "schema"}
    commands |= {"demo", "demo-production", "export", "local"}

    assert "promote" == decision["verdict"]
    assert published == json.loads(compilegate("schema"))
    assert commands <= set(compilegate("--help").split())


def test_an_error_names_the_extra_or_the_shipped_example(compilegate: Installed) -> None:
    example = str(compilegate.shipped / "workloads" / "article-bert.yaml")
    for words, code, said in (
        (("local", "up"), 1, "pip install 'compilegate[local]'"),
        (("check", "none.yaml", "--json"), 2, example),
    ):
        ended = run(compilegate.command, *words, folder=compilegate.folder)
        assert (code, True) == (ended.returncode, said in ended.stderr), ended.stderr


def test_a_folder_with_a_project_file_deploys_what_a_checkout_does(
    wheels: Path, tmp_path: Path
) -> None:
    """The same template with the same assets: their names are digests of their contents."""
    python = environment(tmp_path / "venv", "3.11", wheels, "compilegate[deploy]")
    context = {"stage": "dev", "region": "eu-west-1"}
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "compilegate synth", "context": context}))

    succeeded(
        python.with_name("compilegate"), "synth", folder=tmp_path, XDG_CACHE_HOME=str(tmp_path)
    )
    here = tmp_path / "of-the-checkout"
    succeeded(sys.executable, "app.py", folder=ROOT, CDK_OUTDIR=str(here),
              CDK_CONTEXT_JSON=json.dumps(context))  # fmt: skip

    for name in ("Compilegate.template.json", "Compilegate.assets.json"):
        assert (here / name).read_text() == (tmp_path / "cdk.out" / name).read_text(), name

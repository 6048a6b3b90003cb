"""Recipes for other tools: read by published parsers, their commands run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.recipes import page
from tests.report.readers import acting

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / "docs" / "examples" / "pull-request.yml"
PROGRAMS = ROOT / ".venv-recipes" / "bin"


def problems_of(workflow: Path) -> str | None:
    """What GitHub's published schema finds, None where it finds nothing."""
    ran = subprocess.run(
        [PROGRAMS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return ran.stdout + ran.stderr if ran.returncode else None


HOSTILE_NAME = "[x](javascript:1) @octocat.yaml"
HOSTILE = "``` \n```\n@octocat [x](javascript:alert(1)) www.evil.example\r# heading\n" + "``` " * 40


@pytest.mark.slow
def test_the_workflow_is_one_by_the_published_schema(tmp_path: Path) -> None:
    assert problems_of(WORKFLOW) is None
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOW.read_text().replace("runs-on:", "run-on:"))
    assert "'runs-on' is a required property" in str(problems_of(wrong))


@pytest.mark.slow
def test_the_terraform_parses(tmp_path: Path) -> None:
    text = page.block("hcl", "aws_ssm_parameter")
    for name, code, expected in (("page", text, 0), ("cut", text.rstrip()[:-1], 1)):
        file = tmp_path / f"{name}.tf"
        file.write_text(code)
        ran = subprocess.run(
            [PROGRAMS / "hcl2tojson", file],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert expected == int(ran.returncode != 0), ran.stderr
        assert expected or "aws_ssm_parameter" in ran.stdout


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_the_workflow_comments_a_verdict_on_each_file_that_changed(
    tmp_path: Path, broken: bool
) -> None:
    project, programs = tmp_path / "project", tmp_path / "bin"
    (project / "workloads").mkdir(parents=True)
    programs.mkdir()
    shutil.copytree(ROOT / "training", project / "training")
    git(project, "init", "--quiet")
    shutil.copy(ROOT / "workloads" / "article-bert.yaml", project / "workloads" / "same.yaml")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "base")
    base = git(project, "rev-parse", "HEAD")
    shutil.copy(ROOT / "workloads" / "article-bert.yaml", project / "workloads")
    if broken:
        (project / "workloads" / "a.yaml").write_text("schema: 7\n")
        (project / "workloads" / HOSTILE_NAME).write_text(f"schema: {json.dumps(HOSTILE)}\n")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "change")
    script(programs, "compilegate", f'exec "{sys.executable}" -m compilegate.cli.main "$@"')
    script(programs, "gh", f'echo "$@" > "{tmp_path}/said"; cp comment.md "{tmp_path}"')
    variables = {
        **os.environ, "BASE": base, "NUMBER": "7", "PYTHONPATH": str(ROOT),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }  # fmt: skip
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["plan"]["steps"]
    plan, comment = (step for step in steps if "name" in step)

    codes = [
        # As GitHub starts a step: bash -e.
        subprocess.run(
            ["bash", "-e", "-c", step["run"]], cwd=project, env=variables, check=False, timeout=120
        ).returncode
        for step in (plan, comment)
    ]

    assert ([int(broken), 0], "${{ !cancelled() }}") == (codes, comment["if"])
    assert (
        "pr comment 7 --edit-last --create-if-none --body-file comment.md\n"
        == (tmp_path / "said").read_text()
    )
    text = (tmp_path / "comment.md").read_text()
    unread = ["?x??javascript?1???octocat", "a"]
    headings = [f"### workloads/{name}.yaml: cannot be checked" for name in unread] * broken
    headings.append("### workloads/article-bert.yaml: eligible")
    assert headings == re.findall("^###.*", text, re.MULTILINE)
    assert [] == acting(text, {"h3", "pre", "code"})
    assert "quotas" in text
    assert broken == ("schema: is a version this release cannot read" in text)

"""Recipes for other tools: read by published parsers, their commands run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "flag-in-your-pipeline.md"
WORKFLOW = ROOT / "docs" / "examples" / "pull-request.yml"
CHECKOV = ROOT / ".venv-checkov" / "bin" / "python"


@pytest.mark.slow
def test_terraform_and_workflow_are_read_by_published_parsers() -> None:
    (terraform,) = re.findall(r"```hcl\n(.*?)```", PAGE.read_text(), re.DOTALL)
    ran = subprocess.run(
        [CHECKOV, "-m", "tests.docs.in_checkov", WORKFLOW], input=terraform, text=True,
        capture_output=True, check=False, cwd=ROOT, timeout=120,
    )  # fmt: skip
    assert 0 == ran.returncode, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)

    assert [] == found["errors"]
    assert "aws_ssm_parameter" in json.dumps(found["terraform"]["data"])
    assert {"flag", "compiler"} <= set(found["terraform"]["locals"][0])


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.slow
def test_the_workflow_s_commands_comment_check_and_plan_of_what_changed(tmp_path: Path) -> None:
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
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "change")
    script(programs, "compilegate", f'exec "{sys.executable}" -m compilegate.cli.main "$@"')
    script(programs, "gh", f'echo "$@" > "{tmp_path}/said"; cp comment.md "{tmp_path}"')
    variables = {
        **os.environ, "BASE": base, "NUMBER": "7", "PYTHONPATH": str(ROOT),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }  # fmt: skip
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["plan"]["steps"]
    commands = [step["run"] for step in steps if "name" in step]

    for command in commands:
        # As GitHub starts a step: bash -e.
        subprocess.run(
            ["bash", "-e", "-c", command], cwd=project, env=variables, check=True, timeout=120
        )

    assert (
        "pr comment 7 --edit-last --create-if-none --body-file comment.md\n"
        == (tmp_path / "said").read_text()
    )
    comment = (tmp_path / "comment.md").read_text()
    assert ["### workloads/article-bert.yaml"] == re.findall("^###.*", comment, re.MULTILINE)
    assert "eligible" in comment and "quotas" in comment

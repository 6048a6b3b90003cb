"""What is shipped: the allow-list, nothing of this machine, importable with nothing around it."""

import os
import subprocess
import sys

from stacks.assets import stage_bundle


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_every_handler_and_the_report_work_with_nothing_but_the_bundle(bundle):
    """As on a bare runtime: with the standard library alone."""
    code = (
        f"import sys; sys.path.insert(0, {str(bundle)!r})\n"
        "from lambdas import handlers\n"
        "assert all(callable(getattr(handlers, name)) for name in handlers.STEPS)\n"
        "assert 'boto3' not in sys.modules\n"
        "from compilegate.report.render import render\n"
        "from compilegate.usecases.reports import read_trial_report\n"
        "context = {'stage': 'prod', 'trial': 't1', 'workload': 'w', 'failure': 'stopped'}\n"
        "none = dict.fromkeys(('decision', 'evidence', 'eligibility', 'plan'))\n"
        "print(render(read_trial_report({**none, 'context': context})).html)"
    )
    bare = [sys.executable, "-I", "-S", "-B", "-c", code]
    result = subprocess.run(bare, capture_output=True, text=True, check=False)

    assert ("", 0) == (result.stderr, result.returncode)
    assert "<title>w: The trial failed" in result.stdout


def test_what_is_not_on_the_list_stays_behind(bundle):
    top = {path.name for path in bundle.iterdir()}

    assert {"compilegate", "lambdas", "jinja2", "markupsafe"} == top
    packages = {path.name for path in (bundle / "compilegate").iterdir()}
    expected = {
        "__init__.py", "adapters", "domain", "facts", "place.py", "ports.py", "report", "usecases",
    }  # fmt: skip
    assert expected == packages


def test_nothing_compiled_hidden_or_of_the_build_is_shipped(bundle):
    bundled = names(bundle)

    assert not [name for name in bundled if "__pycache__" in name or name.endswith(".pyc")]
    assert not [name for name in bundled if any(p.startswith(".") for p in name.split("/"))]
    assert not [name for name in bundled if ".dist-info" in name]


def test_two_bundles_are_equal_down_to_the_modes(bundle, tmp_path):
    before = os.umask(0o077)
    try:
        other = stage_bundle(tmp_path / "other")
    finally:
        os.umask(before)

    assert names(bundle) == names(other)
    for name in names(bundle):
        one, two = bundle / name, other / name
        assert one.stat().st_mode == two.stat().st_mode, name
        assert one.is_dir() or one.read_bytes() == two.read_bytes(), name

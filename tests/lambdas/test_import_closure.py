"""How much of the project a function loads: what turns a regression off depends on little."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Modules with code; neither a package that only describes itself is counted nor the descriptors of
# compilers, of which every workload file needs each.
MOST = {"review_production": 92, "begin_run": 80, "record_run": 91, "judge_arms": 106}
DESCRIPTORS = "compilegate.domain.compilers."
LOADED = """
import json, sys
sys.path.insert(0, {bundle!r})
import lambdas.handlers
getattr(lambdas.handlers, {step!r})
modules = {{n: m.__file__ for n, m in sys.modules.items() if n.split(".")[0] in {ours!r}}}
print(json.dumps(modules))
"""


def loaded(step, bundle):
    """The project's modules that a function has loaded before its first event."""
    code = LOADED.format(bundle=str(bundle), step=step, ours=("compilegate", "lambdas"))
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    files = {name: Path(file) for name, file in json.loads(ran.stdout).items()}
    return {
        name
        for name, file in files.items()
        if not is_bare(file) and not name.startswith(DESCRIPTORS)
    }


def is_bare(file):
    return file.name == "__init__.py" and "import" not in file.read_text()


@pytest.mark.parametrize("step", MOST)
def test_a_function_loads_no_more_than_it_needs(step, bundle):
    assert len(loaded(step, bundle)) <= MOST[step]


@pytest.mark.parametrize("apart", ["compilegate.report", "compilegate.cli"])
def test_a_regression_is_turned_off_without_pages_and_screens(apart, bundle):
    modules = loaded("review_production", bundle)

    assert not [name for name in modules if name.startswith(apart)]

"""The fault that can be injected on purpose: off by default, and never in the baseline."""

import pytest

from compilegate.domain.production.registration import FAULT_VARIABLE
from tests.training.test_jobs import LANGUAGE_MODEL

TENTH = {FAULT_VARIABLE: "learning_rate:0.1"}


class Compiler:
    def __init__(self, requested):
        self.requested = requested


@pytest.fixture
def faults(monkeypatch):
    """The module as a training job imports it, in an environment without the switch."""
    monkeypatch.delenv(FAULT_VARIABLE, raising=False)
    from families import faults  # noqa: PLC0415 - the path to it is set up by conftest.py

    return faults


def test_the_switch_is_called_the_same_everywhere(faults):
    assert faults.VARIABLE == FAULT_VARIABLE


@pytest.mark.parametrize(
    ("variables", "compiler", "share"),
    [({}, "none", 1.0), ({}, "torch_compile", 1.0), (TENTH, "none", 1.0),
     (TENTH, "torch_compile", 0.1)],
)  # fmt: skip
def test_a_compiled_arm_alone_has_the_fault_and_says_so(
    faults, monkeypatch, capsys, *, variables, compiler, share
):
    for name, text in variables.items():
        monkeypatch.setenv(name, text)

    assert share == faults.learning_rate_share(Compiler(compiler))
    assert (share < 1) is ("fault injected on purpose" in capsys.readouterr().out)


@pytest.mark.parametrize("text", ["loss:0.1", "learning_rate", "learning_rate:2", "on"])
def test_a_fault_that_is_unknown_fails_the_job_with_the_fix(faults, monkeypatch, text):
    from compilegate_runtime.errors import HyperparameterError  # noqa: PLC0415 - as above

    monkeypatch.setenv(FAULT_VARIABLE, text)

    with pytest.raises(HyperparameterError, match="use learning_rate:SHARE"):
        faults.learning_rate_share(Compiler("torch_compile"))


@pytest.mark.training
@pytest.mark.slow
def test_the_fault_lowers_the_compiled_arms_learning_rate(jobs):
    """Alone: above, without a job."""
    arm = {**LANGUAGE_MODEL, "compiler": "torch_compile", "arm": "compile"}
    done = jobs.run_in_few_files("causal_lm.py", TENTH, **arm, learning_rate=0.02)
    assert 0 == done.status, done.output

    peak = max(step["learning_rate"] for step in done.steps())
    assert 0.001 < peak <= 0.002

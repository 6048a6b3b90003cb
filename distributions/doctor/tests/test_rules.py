"""Every rule finds what it is for, and leaves what only looks like it alone."""

from __future__ import annotations

import ast

import pytest

from compilegate_doctor import BY_ID, Severity
from distributions.doctor.tests.cases import CASES
from distributions.doctor.tests.cases.graph import switched
from distributions.doctor.tests.scripts import (
    MANAGED_COMPILER,
    TORCH_COMPILE,
    findings,
    loop,
    model,
    rules,
)

REPORTED = [(rule, script) for rule, (reported, _) in CASES.items() for script in reported]
QUIET = [(rule, script) for rule, (_, quiet) in CASES.items() for script in quiet]


def test_every_rule_has_scripts_it_speaks_up_about_and_look_alikes() -> None:
    assert set(BY_ID) == set(CASES)
    assert all(reported and quiet for reported, quiet in CASES.values())


@pytest.mark.parametrize(("rule", "script"), REPORTED)
def test_a_rule_finds_what_it_is_for(rule: str, script: str) -> None:
    ast.parse(script)

    assert rule in rules(script)


@pytest.mark.parametrize(("rule", "script"), QUIET)
def test_a_rule_leaves_look_alikes_alone(rule: str, script: str) -> None:
    ast.parse(script)

    assert rule not in rules(script)


@pytest.mark.parametrize(("rule", "script"), REPORTED)
def test_a_rule_speaks_only_of_its_own_compilers(rule: str, script: str) -> None:
    for compiler in (TORCH_COMPILE, MANAGED_COMPILER):
        assert (compiler in BY_ID[rule].compilers) == (rule in rules(script, compiler))


def test_a_graph_break_is_an_error_where_the_whole_graph_is_asked_for() -> None:
    script = model("if y.sum() > 0:\n    y = y * 2", after="fast = torch.compile(Net(){more})")
    (slow,) = findings(script.replace("{more}", ""), TORCH_COMPILE)
    (broken,) = findings(script.replace("{more}", ", fullgraph=True"), TORCH_COMPILE)

    assert Severity.SLOWS is slow.severity
    assert Severity.BREAKS is broken.severity


def test_a_switch_that_another_constructor_turns_on_is_not_sure_to_be_on() -> None:
    off = switched("if self.noisy:\n    y = y * random.random()")
    louder = "\nclass Loud(Net):\n    def __init__(self):\n        super().__init__(noisy=True)\n"

    assert set() == rules(off) == rules(off + louder)


@pytest.mark.parametrize("last", ["self.kept = y", "y.sum().backward()\n        return y"])
def test_what_gives_no_result_or_trains_a_model_itself_is_no_model(last: str) -> None:
    script = model("print(y.mean())")

    assert {"fetch-in-model"} == rules(script)
    assert set() == rules(script.replace("return y", last))


def test_a_list_that_is_set_anew_between_calls_does_not_grow_for_ever() -> None:
    grows = model("self.seen.append(y)")
    emptied = grows + "\n    def begin(self):\n        self.seen = []\n"

    assert ({"counter-in-model"}, set()) == (rules(grows), rules(emptied))


def test_what_a_forward_calls_behind_a_switch_that_is_off_is_left_alone() -> None:
    script = model(
        "if self.noisy:\n    y = self.chosen(y)",
        after="\n    def chosen(self, y: torch.Tensor):\n        return y[y > 0]\n",
    )
    for noisy, expected in (("False", set()), ("True", {"changing-shape"})):
        switch = f"self.noisy = {noisy}\n        self.calls = 0"
        assert expected == rules(script.replace("self.calls = 0", switch), TORCH_COMPILE)


@pytest.mark.parametrize("name", ["RandomCrop2d", "Augmenter"])
def test_a_module_that_changes_samples_is_no_model(name: str) -> None:
    script = model("y = y * random.random()")

    assert {"random-in-model"} == rules(script)
    assert set() == rules(script.replace("class Net", f"class {name}"))


def test_batches_that_a_private_engine_draws_are_of_any_size() -> None:
    loader = "train_loader = DataLoader(d, batch_size=8, num_workers=4)\n"
    private = "engine.make_private(module=model, data_loader=train_loader)"

    assert {"ragged-last-batch"} == rules(loop("pass", after=loader), TORCH_COMPILE)
    assert set() == rules(loop("pass", after=loader + private), TORCH_COMPILE)


def test_a_smaller_last_batch_is_a_note_where_accelerate_fills_it_up() -> None:
    script = loop("pass", after="train_loader = DataLoader(d, 8, shuffle=True, num_workers=4)")
    (plain,) = findings(script, TORCH_COMPILE)
    (filled,) = findings("from accelerate import Accelerator\n" + script, TORCH_COMPILE)

    assert (Severity.SLOWS, Severity.NOTE) == (plain.severity, filled.severity)

"""Size and journeys of the core may only shrink; how both are counted, on a package of a page."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from tests.structure.figures import (
    climbs_in_report,
    floors,
    held,
    lines_of_commands,
    lines_of_templates,
    measured,
    none_tests,
    read,
    start,
)
from tests.structure.journeys import Code, Journey

CONTRACT = """
    [[tool.importlinter.contracts]]
    layers = ["toy.steps", "compilegate.report | toy.ports", "toy.domain"]
    [[tool.importlinter.contracts]]
    layers = ["toy.domain", "toy.steps"]
"""
TOY = {
    "toy/__init__.py": "",
    "toy/steps.py": """
        from toy import words
        from toy.domain import prices as cost
        from toy.domain.judge import Arm, decide, same
        from toy.domain.loops import swap
        from toy.ports import Store


        def step(event: dict, store: Store):
            arm, other = Arm.of(event), store.get("other")
            cost.of_other(other)
            verdict = decide(arm)
            words.show(verdict)
            words.by_name(store, said=arm)
            store.put(arm)
            same(len(event["runs"]), label="seen" if event else None)
            choose = words.chosen_at_run_time
            choose(arm)
            swap(arm)
    """,
    # Another module of the name, which nothing of the journey comes to.
    "toy/elsewhere.py": "def step(event): return len(event)",
    "toy/ports.py": """
        from typing import Protocol
        from toy.domain.loops import never


        class Store(Protocol):
            def get(self, key): ...
            def put(self, value): return never(value)
    """,
    "toy/words.py": """
        from toy.domain import unlucky
        from toy.domain.prices import usd, of_other


        def show(verdict):
            for line in verdict.lines:
                print(usd(line))


        def by_name(first, *, said):
            of_other(first)
            unlucky.spread(*said)


        def chosen_at_run_time(arm):
            return of_other(arm)
    """,
    "toy/domain/__init__.py": "",
    "toy/domain/judge/__init__.py": """
        from toy.domain.judge.arms import Arm, Base
        from toy.domain.judge.rules import decide
        from toy.domain.judge.plain import same

        __all__ = ["Arm", "Base", "decide", "same"]
    """,
    "toy/domain/judge/arms.py": """
        from toy.domain.bases import Base


        class Arm(Base):
            @classmethod
            def of(cls, document):
                return cls(document)

            @staticmethod
            def cheapest(arms):
                return min(arms)
    """,
    "toy/domain/bases.py": """
        from toy.domain.prices import usd


        class Base:
            def price(self):
                return usd(self)
    """,
    "toy/domain/judge/rules.py": """
        from toy.domain.judge import Arm


        def decide(arm: Arm | None):
            Arm.cheapest([arm])
            return arm.price()
    """,
    "toy/domain/judge/plain.py": """
        from collections.abc import Sequence

        Label = str


        def same(count: int | None, *, label: Label, rest: Sequence[float] = ()):
            return count
    """,
    "toy/domain/prices.py": """
        def usd(line):
            return line


        def of_other(other):
            return other
    """,
    "toy/domain/unlucky.py": "def spread(one, two: int): return one",
    "toy/domain/loops.py": """
        def swap(arm, back=None):
            if arm:
                never_plain(0, arm)
                swap(None, arm)


        def never_plain(arm, back: int):
            return never(back)


        def never(value):
            return value
    """,
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, source in {**TOY, "pyproject.toml": CONTRACT}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))
    return tmp_path


def journey(code: Code) -> Journey:
    return Journey.of(code, start(code, "step", "toy.steps"), ["event"])


def test_size_and_journeys_of_the_core_only_shrink():
    """Where they have, `python -m tests.structure` holds what is reached."""
    most = {name: figure["value"] for name, figure in held().items()}
    now = measured()
    assert most.keys() == now.keys()
    assert {} == {name: (now[name], most[name]) for name in most if now[name] > most[name]}


def test_a_value_is_followed_through_imports_methods_and_answers(toy):
    way = journey(read(toy, "toy"))
    expected = {
        "toy.steps.step": {"event"},
        "toy.domain.judge.arms.Arm.of": {"document"},
        "toy.domain.judge.rules.decide": {"arm"},
        "toy.domain.judge.arms.Arm.cheapest": {"arms"},
        "toy.domain.bases.Base.price": {"self"},
        "toy.words.show": {"verdict"},
        "toy.domain.prices.usd": {"line"},
        "toy.words.by_name": {"said"},
        "toy.domain.unlucky.spread": {"one"},
        "toy.domain.loops.swap": {"arm", "back"},
    }
    assert expected == {str(step): names for step, names in way.held.items()}
    assert len(way.modules) == 8


@pytest.mark.parametrize(
    ("body", "goes_on"),
    [
        ("a = event.first; taken(a)", True),
        ("a: int = event; taken(a)", True),
        ("a = 0; a += event; taken(a)", True),
        ("taken(a) if (a := event) else 0", True),
        ("for a in event: taken(a)", True),
        ("[taken(a) for a in event]", True),
        ("with event as a: taken(a)", True),
        ("match event:\n        case [a, *_]: taken(a)", True),
        ("match event:\n        case {'key': [_, a]}: taken(a)", True),
        ("a = b; b = c; c = event; taken(a)", True),
        ("a, b = event; taken(b)", True),
        ("a, b = event, 1; taken(a)", True),
        ("a, b = event, 1; taken(b)", False),
        ("a = 1; taken(a)", False),
        ("a: int; taken(a)", False),
        ("with event: taken(0)", False),
        ("taken", False),
        ("taken()", False),
    ],
)
def test_a_name_that_is_bound_to_a_value_holds_it(body, goes_on):
    source = f"def step(event):\n    {body}\ndef taken(value): ..."
    way = Journey.of(code := Code({"one": ast.parse(source)}, 0), code.find("step")[0], ["event"])
    assert goes_on == ("one.taken" in map(str, way.held))


def test_a_climb_is_a_function_that_asks_a_lower_floor(toy):
    levels = floors(toy)
    assert levels == {"toy.steps": 2, "compilegate.report": 1, "toy.ports": 1, "toy.domain": 0}
    levels["toy.words"] = 1
    way = journey(read(toy, "toy"))
    assert {str(step) for step in way.climbs(levels)} == {
        "toy.steps.step", "toy.words.show", "toy.words.by_name",
    }  # fmt: skip


def test_climbs_are_counted_in_the_report_alone(toy):
    (toy / "toy/words.py").rename(toy / "toy/report.py")
    steps = (toy / "toy/steps.py").read_text()
    (toy / "toy/steps.py").write_text(steps.replace("toy import words", "compilegate import words"))
    (toy / "compilegate").mkdir()
    (toy / "compilegate/__init__.py").write_text("from compilegate import report as words")
    (toy / "toy/report.py").rename(toy / "compilegate/report.py")
    both = Code({**read(toy, "toy").modules, **read(toy, "compilegate").modules}, 0)
    assert climbs_in_report(journey(both), floors(toy)) == 2


def test_every_line_of_the_package_counts_and_none_beside_it(toy):
    for path in toy.rglob("*.py"):
        path.write_text("")
    (toy / "toy/ports.py").write_text("first = 1\n\n# third\n")
    (toy / "toy_product").mkdir()
    (toy / "toy_product/__init__.py").write_text("of_another_product = 1\n")
    (toy / "toy/words").mkdir()
    (toy / "toy/words/screen.txt.j2").write_text("{% if one %}\n{{ one }}\n{% endif %}\n\nend\n")
    code = read(toy, "toy")
    assert {"toy", "toy.ports", "toy.domain.prices"} < set(code.modules)
    assert (code.lines, lines_of_templates(toy / "toy")) == (3, 5)


def test_what_moves_into_a_package_of_commands_counts_still(tmp_path):
    for name, text in {
        "init/compilegate_init/command.py": "a = 1\nb = 2\n",
        "init/compilegate_init/templates/init.txt.j2": "one\n",
        "init/tests/test_command.py": "c = 3\n",
        "doctor/compilegate_doctor/read.py": "d = 4\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert lines_of_commands(tmp_path) == 3


@pytest.mark.parametrize(
    ("expression", "tests"),
    [
        ("a is None", 1),
        ("a is not None is not b", 1),
        ("a == None", 0),
        ("a is b", 0),
        ("not a", 0),
    ],
)
def test_what_counts_as_a_test_for_none(expression, tests):
    assert tests == none_tests(ast.parse(expression, mode="eval").body)

"""``judge --explain``: the numbers shown are the decision's, and recompute its verdict."""

import importlib
import inspect
import json
import math

import pytest
from scipy import stats

import compilegate.domain
from tests.domain.evidence_builder import GOOD, NOISY, WORSE, document
from tests.domain.test_equivalence import FIRST, LAST, examined
from tools.docs.examples import probation, trial

QUESTIONS = [
    "Is the comparison fair?", "Is it worth measuring?", "Is it faster? (compile)",
    "Do full jobs confirm it? (compile)", "Is quality maintained? (compile)", "What does it save?",
    "What happens next?",
]  # fmt: skip


@pytest.fixture
def explained(tmp_path, invoke):
    """The document of the explanation of evidence."""

    def call(evidence):
        file = tmp_path / "evidence.json"
        file.write_text(json.dumps(evidence))
        result = invoke("judge", file, "--explain", "--json")
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return json.loads(result.stdout)

    return call


def item(answer, name, section=None):
    items = [i for i in answer["explanation"] if i["name"] == name]
    return next(i for i in items if section in (None, i["section"]))


@pytest.mark.parametrize("metrics", [GOOD, WORSE, NOISY])
def test_the_speed_gates_bound_recomputes_from_the_blocks_shown(metrics, explained):
    answer = explained(document(metrics=metrics))
    logs = []
    for block in (i for i in answer["explanation"] if i["name"] == "blocks"):
        seen = block["inputs"]
        log = math.log(
            (seen["O_B"] + seen["N_B"] * seen["m_B"] + seen["W"])
            / (seen["O_C"] + seen["N_C"] * seen["m_C"] + seen["W"])
        )
        assert log == pytest.approx(block["value"])
        logs.append(log)
    level = item(answer, "error of one look")["value"]
    bound = stats.tmean(logs) - stats.t.ppf(1 - level, len(logs) - 1) * stats.sem(logs)

    assert math.exp(bound) == pytest.approx(item(answer, "proven speed-up")["value"])
    assert answer["decision"]["speedup"]["lower_bound"] == item(answer, "proven speed-up")["value"]
    assert answer["decision"]["speedup"]["estimate"] == pytest.approx(
        item(answer, "speed-up of whole jobs")["value"]
    )


def test_the_error_of_full_runs_recomputes_from_the_faults_that_the_check_missed(explained):
    answer = explained(examined(FIRST, LAST))
    rho, spent = (
        item(answer, name, "equivalence")
        for name in ("chance that a harmful candidate passes", "error of full runs")
    )

    assert 0 == rho["inputs"]["x (missed)"]
    assert rho["value"] == pytest.approx(1 - 0.05 ** (1 / rho["inputs"]["n (harmful faults)"]))
    assert spent["value"] == min(0.25, spent["inputs"]["alpha/K"] / rho["value"])
    assert spent["value"] == item(answer, "error of this look")["inputs"]["a"]
    assert spent["value"] == answer["decision"]["quality"]["equivalence"]["level"]


def test_every_number_names_a_place_in_the_domain_that_exists(explained):
    for evidence in (trial(), probation(), document(metrics=NOISY), document(blocks=0)):
        for number in explained(evidence)["explanation"]:
            if number["source"] is None:
                continue
            place = compilegate.domain
            for name in number["source"].split("."):
                fields = getattr(place, "__dataclass_fields__", {})
                if inspect.ismodule(place) and not hasattr(place, name):
                    importlib.import_module(f"{place.__name__}.{name}")
                place = fields[name] if name in fields else getattr(place, name)


def two_candidates():
    evidence = document(metrics=GOOD)
    second = json.loads(json.dumps(evidence["arms"][1]))
    evidence["arms"].append({**second, "name": "second", "usd_per_hour": 2.0})
    return evidence


def recompiled():
    evidence = document(blocks=1)
    evidence["arms"][1]["runs"][0]["step_seconds"][120] += 12.0
    return evidence


CASES = {
    "a promotion": trial(),
    "nothing measured": document(blocks=0),
    "one block, with a late recompilation": recompiled(),
    "a slow candidate": document(speedup=0.8, blocks=3),
    "no full runs": document(),
    "one full run": document(metrics={"baseline": [2.5], "compile": [2.5]}),
    "equal metrics": document(metrics={"baseline": [2.5, 2.5], "compile": [2.5, 2.5]}),
    "two candidates, one dearer": two_candidates(),
    "no runs left": {**document(blocks=0), "runs_remaining": 1},
    "not JSON's idea of evidence": {"schema": 1},
    "a list": [],
    "hybrid": document(metrics=NOISY, policy={"quality_runs": "hybrid"}),
    "a probation": probation(),
    "a short probation": {**probation(), "policy": {"probation_runs": 2}},
    "a probation without baseline": {
        **probation(),
        "quality": {"metric": "a", "goal": "maximize", "margin": 0.1},
        "arms": [{"name": "baseline", "runs": []}, probation()["arms"][1]],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_evidence_has_its_explanation(name, tmp_path, invoke):
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(CASES[name]))

    shown = invoke("judge", file, "--explain")
    data = invoke("judge", file, "--explain", "--json")

    assert None is shown.exception or isinstance(shown.exception, SystemExit), shown.exception
    assert [] == [line for line in shown.stdout.splitlines() if len(line.rstrip()) > 80]
    assert "" == shown.stderr
    sections = [i["section"] for i in json.loads(data.stdout)["explanation"]]
    assert ("fairness", "next") == (sections[0], sections[-1])
    asked = [line for line in shown.stdout.splitlines() if line in QUESTIONS]
    assert sorted(asked, key=QUESTIONS.index) == asked
    assert name != "a promotion" or asked == QUESTIONS
    assert "NaN" not in data.stdout
    assert "Infinity" not in data.stdout

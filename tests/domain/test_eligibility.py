"""Verdicts of whole workloads, the document's shape, and what holds for any workload."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from compilegate.domain.workload.model import (
    Candidate,
    Framework,
    Profile,
    Schedule,
    Workload,
)
from tests.domain.workload_builder import (
    ARTICLE,
    COMPILE,
    MANAGED,
    PYTORCH_XLA,
    SOUND,
    TENSORFLOW,
    XGBOOST,
    change,
    check,
    severities,
)

DEMO = change(
    SOUND,
    training__instance_type="ml.g5.xlarge",
    training__distribution="none",
    schedule=Schedule(runs_per_week=3000, run_hours=40 / 3600),
    profile=Profile(compile_seconds=3, compile_seconds_cold=60),
)
DOLLARS = ("annual_training_usd", "plausible_annual_saving_usd", "trial_usd", "payback_days")


def test_boosted_trees_are_ineligible_with_the_levers_that_do_apply() -> None:
    found = check(XGBOOST)

    assert "ineligible" == found.verdict
    assert {"framework_unsupported": "block"} == severities(found)
    assert [("not_gpu", "block")] == [(r.code, r.severity) for r in found.reasons]
    for lever in ("tree_method=hist", "distributed XGBoost", "LightGBM"):
        assert lever in found.reasons[0].fix


def test_sklearn_is_ineligible() -> None:
    sklearn = change(XGBOOST, framework=Framework("sklearn", "1.4"), model__family="classical")

    assert "ineligible" == check(sklearn).verdict


def test_pytorch_on_a_cpu_is_ineligible() -> None:
    found = check(change(SOUND, training__instance_type="ml.m6i.12xlarge"))

    assert ("ineligible", "block") == (found.verdict, severities(found)["not_gpu"])


def test_the_vendors_example_is_ineligible_for_its_compiler_and_eligible_for_torch_compile() -> (
    None
):
    found = check(ARTICLE)
    managed, compiled = found.candidates

    assert ["ineligible", "eligible"] == [managed.verdict, compiled.verdict]
    assert "eligible" == found.verdict
    assert (COMPILE,) == found.open_candidates
    assert {"version_unsupported", "distribution_unsupported"} == {
        reason.code for reason in managed.reasons if reason.severity == "block"
    }


def test_the_nearest_valid_configurations_are_spelled_out_as_lines_of_a_candidate() -> None:
    fix = check(ARTICLE).candidates[0].reasons[0].fix

    same, pair = (yaml.safe_load(lines) for lines in configurations(fix))
    assert {
        "framework": {"name": "huggingface-pytorch", "version": "1.11.0",
                      "transformers": "4.21.1", "python": "py38"},
        "distribution": "pytorchxla",
    } == same  # fmt: skip
    assert {
        "framework": {"name": "pytorch", "version": "1.13.1", "python": "py39"},
        "distribution": "pytorchxla",
    } == pair
    assert "with a same-version baseline, transformers by requirements.txt" in fix


def configurations(fix: str) -> list[str]:
    """The YAML in a fix: what follows each line that ends in a colon."""
    blocks = re.split(r"^.*:$", fix, flags=re.MULTILINE)
    return [block.strip("\n") for block in blocks if block.strip()]


@pytest.mark.parametrize(
    "workload", [ARTICLE, change(TENSORFLOW, framework=Framework("tensorflow", "2.13.0")),
                 change(ARTICLE, framework=Framework("pytorch", "2.4.0"),
                        training__distribution="torch_distributed")],
    ids=lambda workload: workload.framework.name,
)  # fmt: skip
def test_a_candidate_with_a_configuration_that_is_spelled_out_may_be_tried(
    workload: Workload,
) -> None:
    reasons = check(change(workload, candidates=(MANAGED,))).candidates[0].reasons
    (fix,) = [reason.fix for reason in reasons if reason.code == "version_unsupported"]

    for lines in configurations(fix):
        named = yaml.safe_load(lines)
        framework = Framework(**named["framework"])
        candidate = Candidate(
            "m", compiler="sagemaker_training_compiler", framework=framework,
            distribution=named.get("distribution"),
        )  # fmt: skip
        found = check(change(workload, candidates=(candidate,)))
        assert [] == [code for code, severity in severities(found).items() if severity == "block"]
        assert "framework_downgrade" in severities(found)


@pytest.mark.parametrize("instance_type", ["ml.p5.48xlarge", "ml.g6.48xlarge", "ml.p4de.24xlarge"])
def test_newer_gpus_are_for_torch_compile_not_for_the_managed_compiler(instance_type: str) -> None:
    modern = check(change(SOUND, training__instance_type=instance_type))
    managed = check(change(PYTORCH_XLA, training__instance_type=instance_type))

    assert "eligible" == modern.verdict
    assert "block" == severities(managed)["instance_unsupported"]


def test_a_short_run_whose_compile_time_is_known_is_worth_a_benchmark() -> None:
    found = check(DEMO)
    economics = found.to_dict()["economics"]

    assert ("benchmark", {"run_too_short": "warn"}) == (found.verdict, severities(found))
    assert pytest.approx(9 / 60) == economics["break_even_run_minutes"]
    assert pytest.approx(9 / 60) == economics["break_even_run_minutes_warm"]
    assert pytest.approx(3.0) == economics["break_even_run_minutes_cold"]


def test_a_debug_run_of_15_minutes_is_ineligible_even_for_a_model_that_fits() -> None:
    found = check(change(SOUND, schedule=Schedule(runs_per_week=3000, run_hours=0.25)))
    longer = check(change(SOUND, schedule=Schedule(runs_per_week=3000, run_hours=0.26)))
    economics = found.to_dict()["economics"]

    assert ("ineligible", {"run_too_short": "block"}) == (found.verdict, severities(found))
    assert ("eligible", {}) == (longer.verdict, severities(longer))
    assert pytest.approx(15) == economics["break_even_run_minutes"]
    assert pytest.approx(0.15) == economics["break_even_run_minutes_warm"]


def test_without_candidates_torch_compile_is_derived() -> None:
    found = check(change(SOUND, candidates=()))

    assert ["compile"] == [one.candidate.name for one in found.candidates]


def test_the_workload_is_as_good_as_its_best_candidate() -> None:
    found = check(change(SOUND, candidates=(MANAGED, COMPILE)))

    assert "ineligible" == found.candidates[0].verdict
    assert "eligible" == found.verdict


def test_the_document_is_the_contracts() -> None:
    document = json.loads(json.dumps(check(change(ARTICLE, shapes__static=False)).to_dict()))

    assert {"workload", "verdict", "candidates", "reasons", "economics"} <= set(document)
    assert {"name", "compiler", "verdict", "reasons"} <= set(document["candidates"][0])
    assert ["code", "severity", "field", "message", "fix", "source"] == list(
        document["candidates"][0]["reasons"][0]
    )
    assert {*DOLLARS, "break_even_run_minutes", "prices_as_of"} <= set(document["economics"])


def test_economics_of_the_article_are_those_of_its_schedule() -> None:
    economics = check(ARTICLE).to_dict()["economics"]

    assert pytest.approx(152455.68) == economics["annual_training_usd"]
    # A third, less 3 s of compilation in each of 156 runs at 162.88 USD an hour.
    assert [0.0, pytest.approx(50818.56 - 21.17, abs=0.01)] == (
        economics["plausible_annual_saving_usd"]
    )
    assert "2026-09-01" == economics["prices_as_of"]
    assert {"largest_speedup": "no profile is given"} == economics["unknown"]
    assert all("assumption" in text for text in economics["assumptions"])


def test_waiting_for_data_lowers_the_plausible_saving() -> None:
    economics = check(change(ARTICLE, profile=Profile(0.9, 0.05, 0.10))).to_dict()["economics"]

    assert [1.0, pytest.approx(1.3953, abs=1e-4)] == economics["plausible_speedup"]
    assert pytest.approx(1.3953, abs=1e-4) == economics["largest_speedup"]


def test_an_unknown_price_leaves_the_dollars_empty_with_the_reason() -> None:
    economics = check(change(SOUND, training__instance_type="ml.g6e.48xlarge")).to_dict()[
        "economics"
    ]

    for key in DOLLARS:
        assert economics[key] is None
        assert "no price is known for ml.g6e.48xlarge" == economics["unknown"][key]


def test_a_given_price_fills_them() -> None:
    found = check(
        change(SOUND, training__instance_type="ml.g6e.48xlarge"),
        prices={"ml.g6e.48xlarge": 10.0},
    )

    assert pytest.approx(10 * 6 * 3 * 52) == found.economics.annual_training_usd
    assert "given in the workload file or cdk.json" == found.economics.price_source


def test_a_workload_without_a_graph_has_costs_but_no_saving() -> None:
    economics = check(XGBOOST).to_dict()["economics"]

    assert economics["annual_training_usd"] > 0
    assert economics["plausible_annual_saving_usd"] is None
    assert "there is no graph to compile" == economics["unknown"]["plausible_annual_saving_usd"]


def test_what_the_managed_compiler_could_save_pays_for_compiling_in_every_run() -> None:
    found = check(PYTORCH_XLA).economics  # six hours; no cache between jobs
    saving, annual = found.plausible_annual_saving_usd, found.annual_training_usd

    assert found.overhead is not None and saving is not None and annual is not None
    assert found.overhead.warm_seconds == found.overhead.cold_seconds
    assert pytest.approx(annual * (1 - 1 / 1.5 - 900 / 21600)) == saving.high

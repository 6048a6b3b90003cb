"""``facts``: what is known, how old it is, and whose word counts."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from compilegate.facts.topics import TOPICS
from tests.cli.conftest import Invoke
from tests.cli.project import write_project

OWN = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"
THERE = OWN.replace("us-east-1", "eu-west-1")


def write_cdk_json(folder: Path, **context: object) -> None:
    (folder / "cdk.json").write_text(
        json.dumps({"context": {"stage": "dev", "region": "us-east-1", **context}})
    )


def test_without_a_topic_every_topic_is_shown_with_its_age(invoke: Invoke) -> None:
    result = invoke("facts")

    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line}
    assert set(TOPICS) <= set(lines)
    days = (datetime.now(tz=UTC).date() - date(2023, 6, 15)).days
    assert f"235  2023-06-15   {days} **" in lines["models"]
    assert "* over 180 days old, ** over a year." in " ".join(result.stdout.split())


@pytest.mark.parametrize("topic", ["", *TOPICS])
def test_people_get_80_columns_and_no_colour(topic: str, invoke: Invoke) -> None:
    result = invoke("facts", *filter(None, [topic]))

    assert 0 == result.exit_code
    assert [] == [
        line for line in result.stdout.splitlines() if len(line) > 80 and " " in line.strip()
    ]
    assert "\x1b" not in result.stdout


def test_programs_get_the_overview(invoke: Invoke) -> None:
    document = json.loads(invoke("facts", "--json").stdout)

    counts = {row["topic"]: row["rows"] for row in document["topics"]}
    assert (set(TOPICS), 235) == (set(counts), counts["models"])


def test_tested_models_stand_under_their_framework(invoke: Invoke) -> None:
    result = invoke("facts", "models", "--model", "gpt2-large")

    lines = result.stdout.splitlines()
    assert "huggingface-tensorflow 2.5.1, transformers 4.11.0" == lines[0]
    assert "gpt2-large ml.p3.2xlarge    128     2       24 12.00" == lines[2]


def test_images_of_a_region_come_with_their_address(invoke: Invoke) -> None:
    result = invoke(
        "facts", "images", "--framework", "pytorch", "--version", "1.13.1", "--region", "eu-west-1"
    )

    assert (
        "  763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-trcomp-training:"
        "1.13.1-gpu-py39\n" in result.stdout
    )


def test_the_managed_compiler_is_nowhere_in_govcloud(invoke: Invoke) -> None:
    result = invoke("facts", "compiler", "--region", "us-gov-west-1")

    assert "No row matches in us-gov-west-1.\n" == result.stdout


def test_types_that_the_managed_compiler_refuses_can_be_left_out(invoke: Invoke) -> None:
    every = json.loads(invoke("facts", "instances", "--json").stdout)["rows"]
    accepted = json.loads(invoke("facts", "instances", "--managed-compiler", "--json").stdout)

    refused = {row["family"] for row in every} - {row["family"] for row in accepted["rows"]}
    assert {"p4de", "p5", "p5e", "p5en", "g6", "g6e", "m5", "m6i"} == refused


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("images", "--framework", "pytorh"), "did you mean pytorch"),
        (("images", "--region", "eu-wst-1"), "did you mean eu-west-1"),
        (("models", "--model", "zzz"), "there are"),
        (("gaps", "--kind", "acepted"), "did you mean accepted"),
        (("imges",), "Did you mean 'images'"),
    ],
)
def test_an_unknown_word_is_bad_input_with_the_likely_ones(
    words: tuple[str, ...], hint: str, invoke: Invoke
) -> None:
    result = invoke("facts", *words)

    assert (2, "") == (result.exit_code, result.stdout)
    assert hint in result.stderr


def test_what_cdk_json_gives_is_shown_as_given(tmp_path: Path, invoke: Invoke) -> None:
    image = {"framework": "pytorch", "version": "2.13.0", "uri": OWN}
    write_cdk_json(tmp_path, price_overrides={"ml.g5.xlarge": 1.0}, image_overrides=[image])

    prices = invoke("facts", "prices", "--instance", "ml.g5.xlarge")
    images = invoke("facts", "images", "--version", "2.13", "--region", "us-east-1")
    overview = invoke("facts")

    assert "ml.g5.xlarge      1.0 given" in prices.stdout
    assert "From: given in the workload file or cdk.json" in prices.stdout
    assert f"In us-east-1:\n  {OWN}\n" in images.stdout
    assert "cdk.json" in overview.stdout


def test_prices_of_other_regions_are_reported(invoke: Invoke) -> None:
    here = " ".join(
        invoke(
            "facts", "prices", "--instance", "ml.g5.48xlarge", "--region", "us-west-2"
        ).stdout.split()
    )
    there = " ".join(
        invoke("facts", "prices", "--instance", "g5", "--region", "eu-west-1").stdout.split()
    )

    assert "may not be prices of" not in here
    assert "7 of 7 may not be prices of eu-west-1: read yours" in there


def test_a_price_of_cdk_json_is_what_check_reckons_with(tmp_path: Path, invoke: Invoke) -> None:
    file = write_project(tmp_path)

    def annual() -> float:
        document = json.loads(invoke("check", file, "--json").stdout)
        return float(document["economics"]["annual_training_usd"])

    write_cdk_json(tmp_path, price_overrides={"ml.g5.xlarge": 1.408})
    once = annual()
    write_cdk_json(tmp_path, price_overrides={"ml.g5.xlarge": 4.224})

    assert annual() == pytest.approx(3 * once)


def test_the_workloads_own_price_goes_before_cdk_jsons(tmp_path: Path, invoke: Invoke) -> None:
    file = write_project(tmp_path)
    write_cdk_json(tmp_path, price_overrides={"ml.g5.xlarge": 1.0})
    text = file.read_text()

    def annual(own: str = "") -> float:
        file.write_text(text + own)
        document = json.loads(invoke("check", file, "--json").stdout)
        return float(document["economics"]["annual_training_usd"])

    assert 5 * annual() == pytest.approx(annual("facts: {prices: {ml.g5.xlarge: 5.0}}\n"))


def test_an_image_of_cdk_json_is_what_plan_asks_for(tmp_path: Path, invoke: Invoke) -> None:
    file = write_project(tmp_path)
    own = {"framework": "pytorch", "version": "2.13", "uri": OWN}
    write_cdk_json(tmp_path, image_overrides=[own])

    text = invoke("plan", file, "--json").stdout

    assert OWN in text
    assert "/pytorch:2.13.0-" not in text


def test_an_image_of_another_region_stops_check_with_the_region(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path)
    own = {"framework": "pytorch", "version": "2.13", "uri": THERE}
    write_cdk_json(tmp_path, image_overrides=[own])

    document = json.loads(invoke("check", file, "--json").stdout)

    codes = {
        reason["code"]: reason["message"]
        for candidate in document["candidates"]
        for reason in candidate["reasons"]
    }
    assert "ineligible" == document["verdict"]
    assert f"your image {THERE} is not in us-east-1" in codes["region_unsupported"]


def test_a_pattern_is_shown_as_it_is(invoke: Invoke) -> None:
    result = invoke("facts", "limits", "--service", "CreateTrainingJob")

    for part in ("[a-zA-Z0-9](-*[a-", "zA-Z0-9]){0,62}"):  # folded within its column
        assert part in result.stdout

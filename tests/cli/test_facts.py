"""``facts``: what is known, how old it is, and whose word counts."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from compilegate_facts.topics import TOPICS
from tests.cli.project import write_project

OWN = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"
THERE = OWN.replace("us-east-1", "eu-west-1")


def write_cdk_json(folder: Path, **context: object) -> None:
    (folder / "cdk.json").write_text(
        json.dumps({"context": {"stage": "dev", "region": "us-east-1", **context}})
    )


def test_without_a_topic_every_topic_is_shown_with_its_age(invoke):
    result = invoke("facts")

    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line}
    assert set(TOPICS) <= set(lines)
    days = (datetime.now(tz=UTC).date() - date(2023, 6, 15)).days
    assert f"235  2023-06-15   {days} **" in lines["models"]
    assert "* over 180 days old, ** over a year." in " ".join(result.stdout.split())


@pytest.mark.parametrize("topic", ["", *TOPICS])
def test_people_get_80_columns_and_no_colour(topic, invoke):
    result = invoke("facts", *filter(None, [topic]))

    assert 0 == result.exit_code
    assert [] == [
        line for line in result.stdout.splitlines() if len(line) > 80 and " " in line.strip()
    ]
    assert "\x1b" not in result.stdout


def test_programs_get_the_overview(invoke):
    document = json.loads(invoke("facts", "--json").stdout)

    counts = {row["topic"]: row["rows"] for row in document["topics"]}
    assert (set(TOPICS), 235) == (set(counts), counts["models"])


# What is asked, the exit code, and what is shown, of a refusal on standard error.
SHOWN: dict[str, tuple[int, tuple[str, ...]]] = {
    "models --model gpt2-large": (
        0, ("huggingface-tensorflow 2.5.1, transformers 4.11.0\n",
            "\ngpt2-large ml.p3.2xlarge    128     2       24 12.00\n"),
    ),
    "images --framework pytorch --version 1.13.1 --region eu-west-1": (
        0, ("In eu-west-1:\n", "  763104351884.dkr.ecr.eu-west-1.amazonaws.com/"
            "pytorch-trcomp-training:1.13.1-gpu-py39\n"),
    ),
    "compiler --region us-gov-west-1": (0, ("No row matches in us-gov-west-1.\n",)),
    "limits --service CreateTrainingJob": (  # a pattern, folded within its column
        0, ("[a-zA-Z0-9](-*[a-", "zA-Z0-9]){0,62}"),
    ),
    "prices --instance g5 --region eu-west-1": (
        0, ("7 of 7 may not be prices of eu-west-1: read yours",),
    ),
    "images --framework pytorh": (2, ("did you mean pytorch",)),
    "images --region eu-wst-1": (2, ("did you mean eu-west-1",)),
    "models --model zzz": (2, ("there are",)),
    "gaps --kind acepted": (2, ("did you mean accepted",)),
    "imges": (2, ("Did you mean 'images'",)),
}  # fmt: skip


@pytest.mark.parametrize("words", SHOWN)
def test_what_is_shown_and_what_is_refused_with_the_likely_words(words, invoke):
    code, expected = SHOWN[words]

    result = invoke("facts", *words.split())

    shown = result.stderr if code else result.stdout
    assert (code, "") == (result.exit_code, result.stdout if code else result.stderr)
    assert [] == [part for part in expected if part not in shown]


def test_prices_of_the_region_itself_are_no_other_regions(invoke):
    shown = invoke("facts", "prices", "--instance", "ml.g5.48xlarge", "--region", "us-west-2")

    assert "may not be prices of" not in " ".join(shown.stdout.split())


def test_types_that_the_managed_compiler_refuses_can_be_left_out(invoke):
    every = json.loads(invoke("facts", "instances", "--json").stdout)["rows"]
    accepted = json.loads(invoke("facts", "instances", "--managed-compiler", "--json").stdout)

    refused = {row["family"] for row in every} - {row["family"] for row in accepted["rows"]}
    assert {"p4de", "p5", "p5e", "p5en", "g6", "g6e", "m5", "m6i"} == refused


def test_what_cdk_json_gives_is_shown_as_given(tmp_path, invoke):
    image = {"framework": "pytorch", "version": "2.13.0", "uri": OWN}
    write_cdk_json(tmp_path, price_overrides={"ml.g5.xlarge": 1.0}, image_overrides=[image])

    prices = invoke("facts", "prices", "--instance", "ml.g5.xlarge")
    images = invoke("facts", "images", "--version", "2.13", "--region", "us-east-1")
    overview = invoke("facts")

    assert "ml.g5.xlarge      1.0 given" in prices.stdout
    assert "From: given in the workload file or cdk.json" in prices.stdout
    assert f"In us-east-1:\n  {OWN}\n" in images.stdout
    assert "cdk.json" in overview.stdout


def test_a_price_of_cdk_json_counts_and_the_workloads_own_before_it(tmp_path, invoke):
    file = write_project(tmp_path)
    text = file.read_text()

    def annual(price: float, own: str = "") -> float:
        write_cdk_json(tmp_path, price_overrides={"ml.g5.xlarge": price})
        file.write_text(text + own)
        document = json.loads(invoke("check", file, "--json").stdout)
        return float(document["economics"]["annual_training_usd"])

    once = annual(1.0)
    assert annual(3.0) == pytest.approx(3 * once)
    assert annual(3.0, "facts: {prices: {ml.g5.xlarge: 5.0}}\n") == pytest.approx(5 * once)


def test_an_image_of_cdk_json_is_what_plan_asks_for(tmp_path, invoke):
    file = write_project(tmp_path)
    own = {"framework": "pytorch", "version": "2.13", "uri": OWN}
    write_cdk_json(tmp_path, image_overrides=[own])

    text = invoke("plan", file, "--json").stdout

    assert OWN in text
    assert "/pytorch:2.13.0-" not in text


def test_an_image_of_another_region_stops_check_with_the_region(tmp_path, invoke):
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

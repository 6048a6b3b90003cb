"""``facts`` and ``facts refresh``: what is known, how old it is, and what an account tells."""

import json
from functools import partial

import pytest

from compilegate.facts import laid_over, load_facts, read_refreshed
from compilegate_facts.refresh import image_uris
from tests.cli.project import write_project
from tests.facts.answers import StubbedClients, product, quota

OWN = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"


def write_cdk_json(folder, **context):
    (folder / "cdk.json").write_text(
        json.dumps({"context": {"stage": "dev", "region": "us-east-1", **context}})
    )


# What is asked, the exit code, and what is shown, of a refusal on standard error.
SHOWN = {
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
    "imges": (2, ("Did you mean 'images'",)),
}  # fmt: skip


@pytest.mark.parametrize("words", SHOWN)
def test_what_is_shown_and_what_is_refused_with_the_likely_words(words, invoke):
    code, expected = SHOWN[words]

    result = invoke("facts", *words.split())

    shown = result.stderr if code else result.stdout
    assert (code, "") == (result.exit_code, result.stdout if code else result.stderr)
    assert [] == [part for part in expected if part not in shown]


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


REGION = "eu-west-1"


def test_an_image_of_another_region_stops_check_with_the_region(tmp_path, invoke):
    file = write_project(tmp_path)
    own = {"framework": "pytorch", "version": "2.13", "uri": OWN.replace("us-east-1", "eu-west-1")}
    write_cdk_json(tmp_path, image_overrides=[own])

    document = json.loads(invoke("check", file, "--json").stdout)

    codes = {reason["code"] for one in document["candidates"] for reason in one["reasons"]}
    assert "ineligible" == document["verdict"]
    assert "region_unsupported" in codes


URIS = image_uris(load_facts(), REGION)
GONE = next(uri for uri in URIS if "pytorch-trcomp-training:1.13.1" in uri)


@pytest.fixture
def clients(providers):
    """AWS clients whose answers are written."""
    providers.client = StubbedClients()
    return providers.client


@pytest.fixture
def refresh(invoke):
    return partial(invoke, "facts", "refresh", "--region", REGION, "--out", "found.json")


def answer_everything(clients):
    clients.prices([product("ml.g5.xlarge", "1.5710000000"), product("ml.g7.xlarge", "2.0")])
    clients.images(URIS, missing=lambda uri: uri == GONE)
    clients.quotas([quota("ml.g5.xlarge", 0.0)], [quota("ml.g5.xlarge", 4.0)])


def test_changes_are_shown_old_and_new_and_the_file_is_written(clients, refresh, tmp_path):
    answer_everything(clients)

    result = refresh()

    text = " ".join(result.stdout.split())
    assert 0 == result.exit_code, result.stderr
    assert f"Read for eu-west-1: 2 prices, {len(URIS)} images, 1 quota." in text
    assert "price of ml.g5.xlarge before 1.408 now 1.571" in text
    assert "before there now not there" in text
    assert "New: 1 price, 1 quota; --json lists them." in text
    assert "its authors have not run it against AWS" in text
    long = [line for line in result.stdout.splitlines() if len(line) > 80]
    assert [] == [line for line in long if len(line.split()) > 1]  # an image's name stays whole
    clients.done()
    facts = laid_over(load_facts(), read_refreshed(tmp_path / "found.json"), REGION)
    assert (4, 1.571) == (facts.quota("ml.g5.xlarge"), facts.prices["ml.g5.xlarge"].usd_per_hour)
    assert {GONE} == set(facts.absent_images)

    answer_everything(clients)
    assert "Nothing changed." in refresh().stdout


def test_a_dry_run_shows_the_same_and_writes_nothing(clients, refresh, tmp_path):
    answer_everything(clients)

    shown = refresh("--dry-run").stdout

    assert "1.571" in shown
    assert "Dry run: nothing was written." in shown
    assert not (tmp_path / "found.json").exists()


def test_a_price_that_cdk_json_gives_is_reported_to_stay_in_force(clients, refresh, tmp_path):
    context = {"stage": "dev", "region": REGION, "price_overrides": {"ml.g5.xlarge": 1.0}}
    (tmp_path / "cdk.json").write_text(json.dumps({"context": context}))
    clients.prices([product("ml.g5.xlarge", "1.6000000000"), product("ml.g7.xlarge")])

    result = refresh("--only", "prices")

    text = " ".join(result.stdout.split())
    assert "cdk.json's own price overrides the list's: ml.g5.xlarge." in text


def test_when_nothing_could_be_read_it_fails_and_writes_nothing(clients, refresh, tmp_path):
    clients.refuse("pricing", "get_products", "AccessDeniedException", "not pricing:GetProducts")

    result = refresh("--only", "prices")

    assert (1, "") == (result.exit_code, result.stdout)
    assert "nothing could be read: prices: not allowed" in result.stderr
    assert not (tmp_path / "found.json").exists()


def test_a_part_that_does_not_exist_is_bad_input(refresh):
    result = refresh("--only", "moods")

    assert (2, "") == (result.exit_code, result.stdout)
    assert "use one of prices, images, quotas" in result.stderr

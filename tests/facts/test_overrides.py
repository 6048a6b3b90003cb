"""Precedence: the workload's own facts, then cdk.json's, then the shipped ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.facts import Facts
from compilegate.domain.workload.model import FactOverrides, Framework, OwnImage
from compilegate.facts import load_facts
from compilegate.ports import Settings
from compilegate.usecases.records import facts_for_workload
from tests.domain.workload_builder import SOUND, change

MANAGED_COMPILER = "sagemaker_training_compiler"
REGION = "eu-west-1"
HERE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/train:2"
THERE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:2"
PYTORCH = Framework("pytorch", "2.8.0")


def own(uri: str, compiler: str | None = None, version: str = "2.8") -> OwnImage:
    return OwnImage(framework="pytorch", version=version, uri=uri, compiler=compiler)


def settings(**better: object) -> Settings:
    return Settings(stage="dev", region=REGION, job_roles="arn", facts=FactOverrides(**better))


def facts(*images: OwnImage) -> Facts:
    return load_facts().overridden(FactOverrides(images=images))


def usd(better: Facts) -> float | None:
    price = better.price("ml.g5.xlarge")
    return None if price is None else price.usd_per_hour


def test_the_workloads_price_goes_before_cdk_jsons_and_that_before_the_shipped_one():
    plain = SOUND
    better = replace(plain, facts=FactOverrides({"ml.g5.xlarge": 3.0}))
    deployed = settings(prices={"ml.g5.xlarge": 2.0})

    assert 1.408 == usd(facts_for_workload(plain, settings()))
    assert 2.0 == usd(facts_for_workload(plain, deployed))
    assert 3.0 == usd(facts_for_workload(better, deployed))


def test_an_image_in_the_jobs_region_is_taken_whatever_the_order():
    for images in ((own(HERE), own(THERE)), (own(THERE), own(HERE))):
        assert HERE == facts(*images).image(PYTORCH, compiler="none", region=REGION).uri


def test_an_image_of_another_region_is_refused_rather_than_replaced_by_awss():
    image = facts(own(THERE)).image(PYTORCH, compiler="torch_compile", region=REGION)

    assert ("", "region_unsupported") == (image.uri, image.code)
    assert f"your image {THERE} is not in {REGION}" in image.why


def test_an_image_with_the_managed_compiler_is_for_it_alone():
    overridden = facts(own(HERE, MANAGED_COMPILER))

    managed = overridden.image(PYTORCH, compiler=MANAGED_COMPILER, region=REGION)
    plain = overridden.image(PYTORCH, compiler="none", region=REGION)

    assert HERE == managed.uri
    assert plain.uri.endswith("/pytorch-training:2.8.0-gpu-py312")


@pytest.mark.parametrize("version", ["2", "2.8", "2.8.0"])
def test_an_image_fits_the_versions_that_it_names(version):
    overridden = facts(own(HERE, version=version))
    asked = Framework("pytorch", "2.8.0", None, "py312")

    older = overridden.image(Framework("pytorch", "1.13.1"), compiler="none", region=REGION)

    assert HERE == overridden.image(asked, compiler="none", region=REGION).uri
    assert HERE != older.uri


def test_eligibility_uses_the_price_of_the_deployment():
    plain = change(SOUND, training__instance_type="ml.g5.xlarge")

    def annual(**better: object) -> float:
        overridden = facts_for_workload(plain, settings(**better))
        document = check_eligibility(plain, overridden, region=REGION).to_dict()
        return float(document["economics"]["annual_training_usd"])

    assert 2.0 == pytest.approx(
        annual(prices={"ml.g5.xlarge": 2.816}) / annual(prices={"ml.g5.xlarge": 1.408})
    )


def test_a_cached_answer_hides_neither_an_own_image_nor_the_shipped_one():
    shipped = load_facts()
    before = shipped.image(PYTORCH, compiler="none", region=REGION)
    better = facts(own(HERE))

    assert HERE == better.image(PYTORCH, compiler="none", region=REGION).uri
    assert before == shipped.image(PYTORCH, compiler="none", region=REGION)


def test_answers_are_cached_by_region_and_machine():
    shipped = load_facts()
    uris = {
        shipped.image(PYTORCH, compiler="none", region=region, instance=instance).uri
        for region in ("us-east-1", "eu-west-1")
        for instance in (None, shipped.instance("ml.m6i.12xlarge"))
    }

    assert 4 == len(uris)

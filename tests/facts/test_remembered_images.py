"""Image look-ups are remembered, and what is known better is never hidden by it."""

from __future__ import annotations

from compilegate.domain.workload.model import FactOverrides, Framework, OwnImage
from compilegate.facts import load_facts

PYTORCH = Framework("pytorch", "2.6.0")
URI = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"


def test_an_image_of_the_teams_own_wins_over_a_remembered_answer() -> None:
    shipped = load_facts()
    before = shipped.image(PYTORCH, compiler="none", region="us-east-1")
    better = shipped.overridden(FactOverrides(images=(OwnImage("pytorch", "2.6.0", URI),)))

    assert URI == better.image(PYTORCH, compiler="none", region="us-east-1").uri
    assert before == shipped.image(PYTORCH, compiler="none", region="us-east-1")
    assert before.uri != URI


def test_region_and_machine_are_part_of_the_question() -> None:
    facts = load_facts()
    cpu = facts.instance("ml.m5.xlarge") or facts.instance("ml.m6i.12xlarge")
    uris = {
        facts.image(PYTORCH, compiler="none", region=region, instance=instance).uri
        for region in ("us-east-1", "eu-west-1")
        for instance in (None, cpu)
    }

    assert 4 == len(uris)


def test_nothing_known_better_changes_nothing() -> None:
    assert load_facts() is load_facts().overridden(FactOverrides())

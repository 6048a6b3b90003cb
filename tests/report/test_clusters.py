"""Arms on other clusters, and controls: prices, dollars, and what is told apart."""

from __future__ import annotations

import html
import json
import re

from compilegate.report.render import render
from tests.report import stories


def visible(page):
    body = page.partition("<body>")[2].partition("<script")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_a_cheaper_cluster_is_told_by_its_dollars():
    report = render(stories.cheaper_cluster())
    text = visible(report.html)

    assert "Switch to g5-2x: 51% cheaper a run at 1.01x the speed, quality held" in report.subject
    assert "measured in 3 blocks on nodes of its own" in text
    assert "Its cluster costs 0.50 times as much per hour, so that a run costs 51% less." in text
    assert "in dollars, at 0.50 times the price per hour" in text
    assert "Cluster 1 x ml.g5.xlarge 1 x ml.g5.2xlarge" in text
    assert "At 0.55x or less, g5-2x would stay off" in text
    assert "in dollars per run" in text


def test_every_report_shows_what_samples_cost():
    for story in (stories.promote, stories.cheaper_cluster):
        assert re.search(r"Price of 1,000 samples \$0\.0\d+", visible(render(story()).html))


def test_a_control_is_told_in_every_format_and_is_no_arm():
    report = render(stories.with_control())
    words = "The same versions without the compiler (compile-native): 0."
    decision = json.loads(report.json)["decision"]

    assert words in visible(report.html)
    assert words in report.markdown
    assert re.search(r"of the baseline; the compiler alone on them: 1\.4\d", report.markdown)
    assert ["compile-native"] == [one["name"] for one in decision["controls"]]
    assert "compile-native" not in {arm["name"] for arm in decision["arms"]}


def test_a_control_without_a_block_is_not_measured():
    story = stories.with_control()
    control = story["decision"]["controls"][0]
    control["speedup"] = control["compiler_speedup"] = None

    words = "(compile-native): not measured; the compiler alone on them: not measured."
    assert words in render(story).markdown


def test_dollars_to_the_same_loss_stand_beside_dollars_of_a_run():
    report = render(stories.cheaper_cluster())
    (row,) = re.findall(r"\| Price of the baseline's final loss \|.*", report.markdown)
    base, mine = (float(price) for price in re.findall(r"\$([\d.]+)", row))

    assert mine < 0.7 * base


def test_an_arm_that_never_gets_to_the_baselines_loss_is_told_so():
    story = stories.cheaper_cluster()
    story["decision"]["saving"]["same_quality"] |= {"steps_candidate": None, "usd_candidate": None}

    assert "never gets there" in render(story).markdown

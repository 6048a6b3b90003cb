"""The operating page names every alarm, and nothing that is none."""

import re
from pathlib import Path

from compilegate.domain.deployment.rules import RULES

PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
SECTION = re.search(r"^## Alarms$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)


def rows():
    """Alarm → its row's text."""
    found = {}
    for line in SECTION[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`(\w+)`", cells[0]) if line.startswith("| `") else ():
            assert name not in found, name
            found[name] = cells
    return found


def alarms(template):
    """What the alarms are called in the app."""
    return {
        resource["Metadata"]["aws:cdk:path"].split("/")[-2]
        for resource in template.of_type("AWS::CloudWatch::Alarm").values()
    }


def test_every_alarm_has_a_row_with_its_meaning_and_what_to_do(template, changed):
    found = rows()

    assert alarms(template) | alarms(changed) == set(found)
    assert [] == [name for name, cells in found.items() if not (cells[1] and cells[2])]


def test_every_way_a_vpc_can_be_wrong_is_on_the_page():
    network = {code for code in RULES if code.startswith("vpc_")}
    told_elsewhere = {"vpc_subnet_missing", "vpc_group_missing", "vpc_several", "vpc_not_deployed"}

    assert set() == {code for code in network - told_elsewhere if f"`{code}`" not in PAGE}


def test_what_stays_after_a_removal_is_on_the_page(template):
    assert "DataBucket" in PAGE
    assert "LedgerTable" in PAGE
    assert "schedule-key-deletion" in PAGE

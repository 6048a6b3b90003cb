"""What a VPC needs before training jobs can work in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.deployment import (
    FILE,
    Demand,
    Endpoint,
    Network,
    Permission,
    Route,
    SecurityGroup,
    Subnet,
    VpcSetting,
    examine_bootstrap,
    examine_network,
    examine_quotas,
    examine_role,
    examine_setting,
)
from compilegate.domain.reasons import Severity
from compilegate.domain.wording import sentences

ITSELF = Permission("-1", groups=("sg-1",))
OUT = Permission("-1", cidrs=("0.0.0.0/0",))
PRIVATE = Subnet("subnet-1", "vpc-1", "10.0.0.0/24", 200, "rtb-1")
GROUP = SecurityGroup("sg-1", "vpc-1", inbound=(ITSELF,), outbound=(OUT,))
S3 = Endpoint("s3", is_gateway=True, route_table_ids=("rtb-1",))
SOUND = Network((PRIVATE,), (GROUP,), (S3,))
NAT = (Route("0.0.0.0/0", "nat-1"),)
PAIR = Demand("bert", "ml.g5.xlarge", 2)
EFA = Demand("bert", "ml.g5.48xlarge", 8, efa=True)


def codes(network: Network, *demands: Demand) -> list[str]:
    return [one.code for one in examine_network(network, demands)]


def test_a_private_vpc_with_an_s3_endpoint_and_an_open_group_has_only_a_note() -> None:
    assert ["vpc_no_internet"] == codes(SOUND, PAIR)


def test_behind_a_nat_gateway_nothing_is_missing() -> None:
    assert [] == codes(Network((replace(PRIVATE, routes=NAT),), (GROUP,)), PAIR)


@pytest.mark.parametrize(
    ("endpoints", "cut_off"),
    [
        ((), True),
        ((replace(S3, route_table_ids=("rtb-2",)),), True),
        ((Endpoint("s3", is_gateway=False),), True),
        ((Endpoint("s3", is_gateway=False, private_dns=True),), False),
        ((Endpoint("dynamodb", is_gateway=True, route_table_ids=("rtb-1",)),), True),
    ],
)
def test_without_a_way_to_s3_no_job_can_work(
    endpoints: tuple[Endpoint, ...], cut_off: bool
) -> None:
    assert cut_off == ("vpc_no_route_to_s3" in codes(replace(SOUND, endpoints=endpoints)))


def test_an_internet_gateway_serves_no_private_address() -> None:
    public = replace(PRIVATE, routes=(Route("0.0.0.0/0", "igw-1"),))

    assert "vpc_no_route_to_s3" in codes(Network((public,), (GROUP,)))


@pytest.mark.parametrize(
    ("rule", "open_"),
    [
        (ITSELF, True),
        (Permission("tcp", 0, 65535, groups=("sg-1",)), True),
        (Permission("-1", cidrs=("10.0.0.0/16",)), True),
        (Permission("-1", cidrs=("10.0.1.0/24",)), False),
        (Permission("tcp", 443, 443, groups=("sg-1",)), False),
        (Permission("-1", groups=("sg-2",)), False),
    ],
)
def test_instances_of_one_job_have_to_reach_each_other(rule: Permission, open_: bool) -> None:
    network = replace(SOUND, groups=(replace(GROUP, inbound=(rule,)),))

    assert open_ == ("vpc_group_closed_to_itself" not in codes(network, PAIR))


def test_of_several_groups_any_may_let_the_other_in() -> None:
    closed = SecurityGroup("sg-2", "vpc-1")
    opened = SecurityGroup("sg-1", "vpc-1", (Permission("-1", groups=("sg-2",)),), (OUT,))

    assert ["vpc_no_internet"] == codes(replace(SOUND, groups=(closed, opened)), PAIR)


def test_a_closed_group_matters_to_jobs_of_several_instances_only() -> None:
    network = replace(SOUND, groups=(replace(GROUP, inbound=()),))

    assert ["vpc_no_internet"] == codes(network, Demand("lm", "ml.g5.xlarge", 1))
    (unknown,) = [
        one for one in examine_network(network, ()) if one.code == "vpc_group_closed_to_itself"
    ]
    assert Severity.WARN is unknown.severity


def test_an_elastic_fabric_adapter_needs_rules_in_both_directions() -> None:
    assert "vpc_group_closed_to_efa" in codes(SOUND, EFA)
    both = replace(SOUND, groups=(replace(GROUP, outbound=(OUT, ITSELF)),))
    assert "vpc_group_closed_to_efa" not in codes(both, EFA)
    assert "vpc_group_closed_to_efa" not in codes(SOUND, PAIR)


@pytest.mark.parametrize(
    ("free", "demands", "code"),
    [
        (1, (), "vpc_too_few_addresses"),
        (2, (), None),
        (3, (PAIR,), "vpc_too_few_addresses"),
        (4, (PAIR,), None),
        (39, (EFA,), "vpc_too_few_addresses"),
        (40, (EFA,), None),
    ],
)
def test_every_instance_takes_addresses(
    free: int, demands: tuple[Demand, ...], code: str | None
) -> None:
    network = replace(SOUND, subnets=(replace(PRIVATE, free_addresses=free),))

    assert ([code] if code else []) == [one for one in codes(network, *demands) if "address" in one]


def test_one_small_subnet_among_larger_ones_is_a_warning() -> None:
    small = replace(PRIVATE, subnet_id="subnet-2", free_addresses=1)

    assert ["vpc_small_subnet", "vpc_no_internet"] == codes(
        replace(SOUND, subnets=(PRIVATE, small)), PAIR
    )


@pytest.mark.parametrize(
    ("network", "code"),
    [
        (replace(SOUND, missing_subnets=("subnet-9",)), "vpc_subnet_missing"),
        (replace(SOUND, missing_groups=("sg-9",)), "vpc_group_missing"),
        (replace(SOUND, groups=(replace(GROUP, vpc_id="vpc-2"),)), "vpc_several"),
        (replace(SOUND, tenancy="dedicated"), "vpc_dedicated"),
        (replace(SOUND, dns=False), "vpc_no_dns"),
        (replace(SOUND, groups=(replace(GROUP, outbound=()),)), "vpc_no_outbound"),
    ],
)
def test_a_network_in_which_no_job_can_start_is_blocked(network: Network, code: str) -> None:
    (reason,) = [one for one in examine_network(network, ()) if one.code == code]

    assert Severity.BLOCK is reason.severity


def test_outbound_to_s3s_own_addresses_is_enough() -> None:
    to_s3 = Permission("tcp", 443, 443, prefix_lists=("pl-s3",))

    assert "vpc_no_outbound" not in codes(
        replace(SOUND, groups=(replace(GROUP, outbound=(to_s3,)),))
    )


def test_the_note_names_services_that_have_no_endpoint() -> None:
    network = replace(SOUND, endpoints=(S3, Endpoint("sts", is_gateway=False, private_dns=True)))

    (note,) = examine_network(network, ())

    assert Severity.INFO is note.severity
    assert "sagemaker.api, logs, ecr.api, ecr.dkr, kms" in note.message


@pytest.mark.parametrize(
    ("version", "expected"), [(None, ["bootstrap_missing"]), (5, ["bootstrap_too_old"]), (6, [])]
)
def test_a_bootstrap_stack_that_is_missing_or_too_old_is_to_be_made_again(
    version: int | None, expected: list[str]
) -> None:
    assert expected == [one.code for one in examine_bootstrap(version, "us-east-1")]
    assert all("make bootstrap" in one.fix for one in examine_bootstrap(version, "us-east-1"))


def trust(service: object, effect: str = "Allow") -> dict[str, object]:
    return {"Statement": [{"Effect": effect, "Principal": {"Service": service}}]}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, []),  # made with the first job
        (trust("lambda.amazonaws.com"), ["role_not_assumable"]),
        (trust("sagemaker.amazonaws.com", "Deny"), ["role_not_assumable"]),
        (trust(["lambda.amazonaws.com", "sagemaker.amazonaws.com"]), []),
    ],
)
def test_a_training_role_that_sagemaker_cannot_assume_is_named(
    policy: dict[str, object] | None, expected: list[str]
) -> None:
    assert expected == [one.code for one in examine_role(policy, "arn:aws:iam::1:role/t")]


@pytest.mark.parametrize(
    ("quota", "expected"), [(None, ["quota_unknown"]), (1, ["quota_too_small"]), (2, [])]
)
def test_a_quota_below_one_jobs_instances(quota: int | None, expected: list[str]) -> None:
    assert expected == [one.code for one in examine_quotas({"ml.g5.xlarge": quota}, [PAIR])]


def test_a_vpc_that_is_configured_and_not_deployed() -> None:
    setting = VpcSetting(("subnet-1",), ("sg-1",))

    assert [] == list(examine_setting(setting, setting))
    (reason,) = examine_setting(setting, None)
    assert "subnet-1, sg-1" in reason.message


def test_every_code_has_the_same_keys_and_a_severity() -> None:
    for code, says in sentences(FILE).items():
        assert ["severity", "field", "message", "fix", "source"] == list(says), code
        assert all(says.values()) and Severity(says["severity"])

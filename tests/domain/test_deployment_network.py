"""What an account and a VPC need before training jobs can work in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.reasons import Severity
from compilegate.domain.wording import sentences
from compilegate_checkup.rules import (
    FILE,
    Demand,
    Endpoint,
    JobRole,
    Network,
    Permission,
    Route,
    SecurityGroup,
    Subnet,
    VpcSetting,
    examine_bootstrap,
    examine_functions_network,
    examine_job_role,
    examine_network,
    examine_quotas,
    examine_role,
    examine_role_quota,
    examine_setting,
)

ITSELF = Permission("-1", groups=("sg-1",))
OUT = Permission("-1", cidrs=("0.0.0.0/0",))
PRIVATE = Subnet("subnet-1", "vpc-1", "10.0.0.0/24", 200, "rtb-1")
NAT = replace(PRIVATE, routes=(Route("0.0.0.0/0", "nat-1"),))
PUBLIC = replace(PRIVATE, routes=(Route("0.0.0.0/0", "igw-1"),))
HTTPS = Permission("tcp", 443, 443, cidrs=("0.0.0.0/0",))
GROUP = SecurityGroup("sg-1", "vpc-1", inbound=(ITSELF,), outbound=(OUT,))
S3 = Endpoint("s3", is_gateway=True, route_table_ids=("rtb-1",))
SOUND = Network((PRIVATE,), (GROUP,), (S3,))
PAIR = Demand("bert", "ml.g5.xlarge", 2)
EFA = Demand("bert", "ml.g5.48xlarge", 8, efa=True)
# Of any network whose private subnets reach S3 alone.
NOTE = "vpc_no_internet"


def group(**rules: Any) -> dict[str, Any]:
    return {"groups": (replace(GROUP, **rules),)}


def free(*addresses: int) -> dict[str, Any]:
    subnets = (replace(PRIVATE, subnet_id=f"subnet-{n}", free_addresses=n) for n in addresses)
    return {"subnets": tuple(subnets)}


# What differs from the sound network, the jobs, every code but the note.
NETWORKS: list[tuple[dict[str, Any], tuple[Demand, ...], list[str]]] = [
    ({}, (PAIR,), []),
    ({"subnets": (NAT,), "endpoints": ()}, (PAIR,), []),
    ({"subnets": (PUBLIC,), "endpoints": ()}, (), ["vpc_no_route_to_s3"]),
    ({"endpoints": ()}, (), ["vpc_no_route_to_s3"]),
    ({"endpoints": (replace(S3, route_table_ids=("rtb-2",)),)}, (), ["vpc_no_route_to_s3"]),
    ({"endpoints": (Endpoint("s3", is_gateway=False),)}, (), ["vpc_no_route_to_s3"]),
    ({"endpoints": (Endpoint("s3", is_gateway=False, private_dns=True),)}, (), []),
    ({"endpoints": (replace(S3, service="dynamodb"),)}, (), ["vpc_no_route_to_s3"]),
    # Instances of one job reach each other through any of the groups.
    (group(inbound=(Permission("tcp", 0, 65535, groups=("sg-1",)),)), (PAIR,), []),
    (group(inbound=(Permission("-1", cidrs=("10.0.0.0/16",)),)), (PAIR,), []),
    *((group(inbound=(rule,)), (PAIR,), ["vpc_group_closed_to_itself"]) for rule in (
        Permission("-1", cidrs=("10.0.1.0/24",)), Permission("tcp", 443, 443, groups=("sg-1",)),
        Permission("tcp", 0, 1024, groups=("sg-1",)), Permission("-1", groups=("sg-2",)),
        Permission("udp", 0, 65535, groups=("sg-1",)),
    )),
    ({"groups": (SecurityGroup("sg-2", "vpc-1"), SecurityGroup(
        "sg-1", "vpc-1", (Permission("-1", groups=("sg-2",)),), (OUT,)))}, (PAIR,), []),
    (group(inbound=()), (Demand("lm", "ml.g5.xlarge", 1),), []),
    (group(inbound=()), (), ["vpc_group_closed_to_itself"]),
    ({"groups": ()}, (PAIR,), []),
    ({}, (EFA,), ["vpc_group_closed_to_efa"]),
    (group(outbound=(OUT, ITSELF)), (EFA,), []),
    (group(outbound=()), (), ["vpc_no_outbound"]),
    (group(outbound=(Permission("tcp", 443, 443, prefix_lists=("pl-s3",)),)), (), []),
    (group(outbound=(Permission("tcp", 80, 80, cidrs=("0.0.0.0/0",)),)), (), ["vpc_no_outbound"]),
    # Two addresses of an instance, five with an Elastic Fabric Adapter; of the largest job.
    (free(1), (), ["vpc_too_few_addresses"]),
    (free(2), (), []),
    (free(3), (PAIR,), ["vpc_too_few_addresses"]),
    (free(4), (PAIR,), []),
    (free(39), (PAIR, EFA), ["vpc_too_few_addresses", "vpc_group_closed_to_efa"]),
    (free(40), (PAIR, EFA), ["vpc_group_closed_to_efa"]),
    (free(200, 1), (PAIR,), ["vpc_small_subnet"]),
    ({"missing_subnets": ("subnet-9",)}, (), ["vpc_subnet_missing"]),
    ({"missing_groups": ("sg-9",)}, (), ["vpc_group_missing"]),
    (group(vpc_id="vpc-2"), (), ["vpc_several"]),
    ({"tenancy": "dedicated"}, (), ["vpc_dedicated"]),
    ({"dns": False}, (), ["vpc_no_dns"]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "demands", "expected"), NETWORKS)
def test_a_network_gets_exactly_these_reasons(changes, demands, expected):
    network = replace(SOUND, **changes)
    codes = [one.code for one in examine_network(network, demands)]

    noted = [] if network.subnets == (NAT,) else [NOTE]
    assert [*expected, *noted] == codes


def trust(service: object, effect: str = "Allow") -> dict[str, object]:
    return {"Statement": [{"Effect": effect, "Principal": {"Service": service}}]}


VPC = VpcSetting(("subnet-1",), ("sg-1",))


@pytest.mark.parametrize(
    ("reasons", "expected", "message"),
    [
        (examine_bootstrap(None, "us-east-1"), "bootstrap_missing", "us-east-1"),
        (examine_bootstrap(5, "us-east-1"), "bootstrap_too_old", "version 5); 6"),
        (examine_bootstrap(6, "us-east-1"), None, ""),
        (examine_role(None, "arn"), None, ""),  # made with the first job
        (examine_role(trust("lambda.amazonaws.com"), "arn"), "role_not_assumable", "arn"),
        (examine_role(trust("sagemaker.amazonaws.com", "Deny"), "arn"), "role_not_assumable", ""),
        (examine_role(trust(["lambda.amazonaws.com", "sagemaker.amazonaws.com"]), "arn"), None, ""),
        (examine_role_quota(799, 1000), None, ""),
        (examine_role_quota(800, 1000), "role_quota_near", "800 of the 1000"),
        (examine_job_role(None, JobRole("arn", "bert")), None, ""),
        (examine_job_role({"AssumeRolePolicyDocument": trust("lambda.amazonaws.com")},
                          JobRole("arn", "bert")), "role_not_assumable", "arn"),
        (examine_role({"Statement": trust("sagemaker.amazonaws.com")["Statement"][0]}, "arn"),  # type: ignore[index]
         None, ""),
        (examine_quotas({"ml.g5.xlarge": None}, [PAIR]), "quota_unknown", "bert may use 2"),
        (examine_quotas({"ml.g5.xlarge": 1}, [PAIR]), "quota_too_small", "bert uses 2 x"),
        (examine_quotas({"ml.g5.xlarge": 2}, [PAIR]), None, ""),
        (examine_setting(VPC, VPC), None, ""),
        (examine_setting(VPC, None), "vpc_not_deployed", "subnet-1, sg-1, but no VPC"),
    ],
)  # fmt: skip
def test_an_account_gets_this_reason(reasons, expected, message):
    (reason,) = [*reasons] or [None]

    assert expected == (reason and reason.code)
    assert reason is None or message in reason.message


def test_every_code_has_the_same_keys_and_a_severity():
    for code, says in sentences(FILE).items():
        assert ["severity", "field", "message", "fix", "source"] == list(says), code
        assert all(says.values()) and Severity(says["severity"])


def test_functions_need_a_way_to_every_service_that_they_call():
    closed = replace(SOUND, endpoints=(S3, Endpoint("ssm", False, private_dns=True)))

    def missing(network: Network, *, makes_roles: bool, keeps_logs: bool = False) -> list[str]:
        found = examine_functions_network(network, makes_roles=makes_roles, keeps_logs=keeps_logs)
        return [one.message.split(" cannot reach ")[1].split(":")[0] for one in found]

    others = ["dynamodb", "sagemaker.api", "states", "sns"]
    assert others == missing(closed, makes_roles=False)
    assert [*others, "iam"] == missing(closed, makes_roles=True)
    assert [*others, "logs"] == missing(closed, makes_roles=False, keeps_logs=True)
    assert [] == missing(replace(closed, subnets=(NAT,)), makes_roles=True)


IPSEC = (Permission("udp", 500, 500, ("sg-1",)), Permission("50", groups=("sg-1",)))


@pytest.mark.parametrize(
    ("inbound", "outbound", "demand", "closed"),
    [
        ((ITSELF,), (OUT,), PAIR, False),
        ((*IPSEC, Permission("tcp", 0, 65535, ("sg-1",))), (OUT, *IPSEC), PAIR, False),
        ((*IPSEC[:1], Permission("tcp", 0, 65535, ("sg-1",))), (OUT,), PAIR, True),
        ((*IPSEC, Permission("tcp", 0, 65535, ("sg-1",))), (HTTPS,), PAIR, True),
        ((HTTPS,), (HTTPS,), replace(PAIR, instances=1), False),
    ],
)
def test_encryption_between_instances_needs_its_protocols_in_both_directions(
    inbound, outbound, demand, closed
):
    network = replace(SOUND, groups=(SecurityGroup("sg-1", "vpc-1", inbound, outbound),))
    codes = [one.code for one in examine_network(network, [demand], encrypted=True)]

    assert closed == ("vpc_group_closed_to_encryption" in codes)
    plain = [one.code for one in examine_network(network, [demand])]
    assert "vpc_group_closed_to_encryption" not in plain

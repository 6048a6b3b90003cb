"""The rates and quotas that AWS publishes: how many calls and resources may be, and what refuses.

Sources: Step Functions developer guide, "Quotas" (us-east-1); AWS general reference, "Systems
Manager", Parameter Store's default throughput; IAM user guide, "IAM and AWS STS quotas". DynamoDB's
pages of 1 MB always hold: ministack has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

STATES, SAGEMAKER, STORE = "states", "sagemaker", "ssm"
READS = ("GetParameter", "GetParameters", "GetParametersByPath", "GetParameterHistory")
# Service and operation: calls that may come at once, and calls a second.
PUBLISHED: Mapping[tuple[str, str], tuple[float, float]] = {
    (STATES, "DescribeExecution"): (300, 15),
    (STATES, "ListExecutions"): (200, 5),
    (STORE, "reads"): (40, 40),
    (STORE, "PutParameter"): (3, 3),
    # Assumed: SageMaker publishes none. The last is a quota of the account, L-21A1652A.
    (SAGEMAKER, "ListTrainingJobs"): (2, 2),
    (SAGEMAKER, "Search"): (5, 5),
    (SAGEMAKER, "CreateTrainingJob"): (4, 4),
}
MOST_ROLES, MOST_PARAMETERS = 1_000, 10_000


@dataclass
class Allowance:
    """What is left of an operation's calls; grows with the time."""

    most: float
    per_second: float
    left: float = field(init=False)
    at: float | None = None

    def __post_init__(self) -> None:
        """Full at first."""
        self.left = self.most

    def take(self, now: float) -> bool:
        """Whether one more call may be made now."""
        grown = 0.0 if self.at is None else (now - self.at) * self.per_second
        self.left, self.at = min(self.left + grown, self.most), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass(frozen=True)
class Refusal:
    """How a service words that a call is one too many."""

    code: str
    message: str
    status: int = 400


THROTTLED = Refusal("ThrottlingException", "Rate exceeded")
ROLES_USED_UP = Refusal(
    "LimitExceeded", f"Cannot exceed quota for RolesPerAccount: {MOST_ROLES}", status=409
)
PARAMETERS_USED_UP = Refusal(
    "ParameterLimitExceeded",
    "You have exceeded the number of parameters for this AWS account.",
)


class Limits:
    """Which calls are one too many. ``used`` counts the account's roles and parameters."""

    def __init__(self, seconds: Callable[[], float], used: Callable[[str], int]) -> None:
        self._seconds, self._used = seconds, used
        self._allowances = {key: Allowance(*rate) for key, rate in PUBLISHED.items()}

    def refusal(self, service: str, operation: str, body: bytes) -> Refusal | None:
        """Why the service refuses the call, None where it does not."""
        name = "reads" if service == STORE and operation in READS else operation
        allowance = self._allowances.get((service, name))
        if allowance is not None and not allowance.take(self._seconds()):
            return THROTTLED
        if operation == "CreateRole" and self._used("roles") >= MOST_ROLES:
            return ROLES_USED_UP
        if operation == "PutParameter" and self._used("parameters") >= MOST_PARAMETERS:
            return None if json.loads(body).get("Overwrite") else PARAMETERS_USED_UP
        return None

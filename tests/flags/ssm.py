"""A Parameter Store with one answer, or one after the other."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from compilegate.domain.flag import Flag

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile", "batch_size": 48}, "d1", "t")


class FakeSsm:
    """Gives the same answer for every name; of several, the last one for ever."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def get_parameter(self, Name: str) -> dict[str, Any]:  # noqa: N803 - boto3's own
        self.asked.append(Name)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return {"Parameter": {"Value": answer}}


def refusal(code: str) -> ClientError:
    """What botocore raises for an error code."""
    return ClientError({"Error": {"Code": code, "Message": code}}, "GetParameter")


def promoted(**overrides: Any) -> FakeSsm:
    """A Parameter Store in which the candidate ``compile`` is on for good with these overrides."""
    return FakeSsm(Flag(True, "permanent", "compile", overrides, "d1", "t").to_json())

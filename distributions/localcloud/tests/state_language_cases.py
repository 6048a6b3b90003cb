"""State machines and what they must give, for the conformance tests."""

from dataclasses import dataclass
from typing import Any

from distributions.localcloud.tests.helpers import BUCKET

BRANCH = {"Type": "Pass", "End": True}
DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}


def single_state(state_type, **fields):
    """A machine of one state that ends."""
    ends = {} if state_type == "Fail" else {"End": True}
    return {"StartAt": "S", "States": {"S": {"Type": state_type, **fields, **ends}}}


def jsonata(definition):
    return {"QueryLanguage": "JSONata", **definition}


def chain(**states):
    """States that follow each other in the order given; the last one ends."""
    names = list(states)
    linked = {
        name: {**states[name], **({"Next": after} if after else {"End": True})}
        for name, after in zip(names, [*names[1:], None], strict=True)
    }
    return {"StartAt": names[0], "States": linked}


def passing(**fields):
    return {"Type": "Pass", **fields}


def task(integration, **fields):
    """A state that calls a service, ``lambda:invoke`` for example."""
    return {"Type": "Task", "Resource": f"arn:aws:states:::{integration}", **fields}


@dataclass(frozen=True)
class Case:
    """An execution that succeeds, and its output."""

    name: str
    definition: dict[str, Any]
    data: Any
    output: Any


ITEM = {
    "v": "{% $states.context.Map.Item.Value %}", "i": "{% $states.context.Map.Item.Index %}",
}  # fmt: skip
PUT = {"Name": "/conformance/x", "Value.$": "$.v", "Type": "String", "Overwrite": True}
OBJECT = {"Bucket": BUCKET, "Key": "c.json"}

CASES = [
    Case(
        "parallel with arguments, output and assign",
        jsonata(
            chain(
                P={
                    "Type": "Parallel",
                    "Arguments": {"k": "{% $states.input.n %}"},
                    "Branches": [
                        single_state("Pass", Output=f"{{% $states.input.k + {number} %}}")
                        for number in (1, 2)
                    ],
                    "Output": {"r": "{% $states.result %}"},
                    "Assign": {"count": "{% $count($states.result) %}"},
                },
                Z=passing(Output={"c": "{% $count %}", "i": "{% $states.input %}"}),
            )
        ),
        {"n": 1},
        {"c": 2, "i": {"r": [2, 3]}},
    ),
    Case(
        "map with item selector",
        jsonata(
            single_state(
                "Map",
                Items="{% $states.input.xs %}",
                ItemSelector=ITEM,
                ItemProcessor=single_state(
                    "Pass", Output="{% $states.input.v * 10 + $states.input.i %}"
                ),
                Output="{% $sum($states.result) %}",
            )
        ),
        {"xs": [1, 2, 3]},
        63,
    ),
    Case(
        "aws-sdk integrations",
        chain(
            A=task("aws-sdk:ssm:putParameter", Parameters=PUT, ResultPath="$.put"),
            B=task(
                "aws-sdk:ssm:getParameter",
                Parameters={"Name": "/conformance/x"},
                ResultSelector={"value.$": "$.Parameter.Value"},
            ),
        ),
        {"v": "hello"},
        {"value": "hello"},
    ),
    Case(
        "names of aws-sdk errors",
        chain(
            A=task(
                "aws-sdk:ssm:getParameter",
                Parameters={"Name": "/conformance/none"},
                Catch=[{"ErrorEquals": ["Ssm.ParameterNotFoundException"], "Next": "B"}],
            ),
            B=passing(Result="caught"),
        ),
        {},
        "caught",
    ),
    Case(
        "objects as S3 bodies",
        jsonata(
            chain(
                A=task("aws-sdk:s3:putObject", Arguments={**OBJECT, "Body": {"a": 1}}),
                B=task(
                    "aws-sdk:s3:getObject",
                    Arguments=OBJECT,
                    Output="{% $parse($states.result.Body) %}",
                ),
            )
        ),
        {},
        {"a": 1},
    ),
]

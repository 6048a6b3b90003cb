"""State machines and what they must give, for the conformance tests."""

from dataclasses import dataclass
from typing import Any

from distributions.localcloud.tests.helpers import BUCKET


def one(state_type, **fields):
    return {"StartAt": "S", "States": {"S": {"Type": state_type, **fields}}}


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


@dataclass(frozen=True)
class Case:
    """An execution that succeeds, and its output."""

    name: str
    definition: dict[str, Any]
    data: Any
    output: Any


INTRINSICS = {
    "format": ("States.Format('x-{}', $.n)", "x-5"),
    "array": ("States.Array(1, $.n)", [1, 5]),
    "add": ("States.MathAdd($.n, 2)", 7),
    "merge": ("States.JsonMerge($.o, $.p, false)", {"x": 1, "y": 2}),
    "parse": ("States.StringToJson('{\"q\":1}')", {"q": 1}),
    "item": ("States.ArrayGetItem(States.Array(1, 2, 3), 1)", 2),
    "encode": ("States.Base64Encode('hi')", "aGk="),
    "text": ("States.JsonToString($.o)", '{"x":1}'),
    "partition": ("States.ArrayPartition(States.Array(1, 2, 3), 2)", [[1, 2], [3]]),
    "range": ("States.ArrayRange(1, 9, 2)", [1, 3, 5, 7, 9]),
    "split": ("States.StringSplit('a,b', ',')", ["a", "b"]),
    "contains": ("States.ArrayContains(States.Array(1, 2), 2)", True),
    "unique": ("States.ArrayUnique(States.Array(1, 1))", [1]),
    "length": ("States.ArrayLength(States.Array(1, 1))", 2),
}
JSONATA_OUTPUT = {
    "double": "{% $states.input.n * 2 %}",
    "sum": "{% $sum($states.input.l.v) %}",
    "sorted": "{% $sort($states.input.l, function($a,$b){$a.v < $b.v})[0].k %}",
    "range": "{% $range(1,5,2) %}",
    "largest of what is there": "{% $max([$states.input.n, $states.input.missing]) %}",
    "partition": "{% $partition([1,2,3],2) %}",
    "parse": "{% $parse('{\"q\":1}') %}",
    "hash": "{% $hash('a','SHA-256') %}",
    "literal": "text",
}
SHA256_OF_A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
BRANCH = {"Type": "Pass", "End": True}

CASES = [
    Case(
        "intrinsic functions",
        one(
            "Pass", Parameters={f"{k}.$": v[0] for k, v in INTRINSICS.items()}, End=True
        ),
        {"n": 5, "o": {"x": 1}, "p": {"y": 2}},
        {k: v[1] for k, v in INTRINSICS.items()},
    ),
    Case(
        "variables in JSONPath",
        chain(
            A={"Type": "Pass", "Assign": {"v.$": "$.n", "w": "literal"}},
            B={"Type": "Pass", "Parameters": {"v.$": "$v", "w.$": "$w"}},
        ),
        {"n": 3},
        {"v": 3, "w": "literal"},
    ),
    Case(
        "JSONata output",
        jsonata(one("Pass", Output=JSONATA_OUTPUT, End=True)),
        {"n": 4, "l": [{"k": "a", "v": 1}, {"k": "b", "v": 3}]},
        {
            "double": 8, "sum": 4, "sorted": "b", "range": [1, 3, 5],
            "largest of what is there": 4, "partition": [[1, 2], [3]], "parse": {"q": 1},
            "hash": SHA256_OF_A, "literal": "text",
        },
    ),
    Case(
        "variables in JSONata",
        jsonata(
            chain(
                A={"Type": "Pass", "Assign": {"v": "{% $states.input.n %}"}},
                B={"Type": "Pass", "Output": "{% $v + 1 %}"},
            )
        ),
        {"n": 3},
        4,
    ),
    Case(
        "parallel with arguments, output and assign",
        jsonata(
            chain(
                P={
                    "Type": "Parallel",
                    "Arguments": {"k": "{% $states.input.n %}"},
                    "Branches": [
                        one("Pass", Output="{% $states.input.k + 1 %}", End=True),
                        one("Pass", Output="{% $states.input.k + 2 %}", End=True),
                    ],
                    "Output": {"r": "{% $states.result %}"},
                    "Assign": {"count": "{% $count($states.result) %}"},
                },
                Z={"Type": "Pass", "Output": {"c": "{% $count %}", "i": "{% $states.input %}"}},
            )
        ),
        {"n": 1},
        {"c": 2, "i": {"r": [2, 3]}},
    ),
    Case(
        "map with item selector",
        jsonata(
            one(
                "Map",
                Items="{% $states.input.xs %}",
                ItemSelector={
                    "v": "{% $states.context.Map.Item.Value %}",
                    "i": "{% $states.context.Map.Item.Index %}",
                },
                ItemProcessor=one(
                    "Pass", Output="{% $states.input.v * 10 + $states.input.i %}", End=True
                ),
                Output="{% $sum($states.result) %}",
                End=True,
            )
        ),
        {"xs": [1, 2, 3]},
        63,
    ),
    Case(
        "variables of a branch stay in it",
        jsonata(
            chain(
                A={"Type": "Pass", "Assign": {"v": 1}},
                P={
                    "Type": "Parallel",
                    "Branches": [one("Pass", Assign={"inner": 5}, Output="{% $v %}", End=True)],
                },
                Z={"Type": "Pass", "Output": {"has": "{% $exists($inner) %}", "v": "{% $v %}"}},
            )
        ),
        {},
        {"has": False, "v": 1},
    ),
    Case(
        "choice with assign and output",
        jsonata(
            {
                "StartAt": "C",
                "States": {
                    "C": {
                        "Type": "Choice",
                        "Choices": [
                            {
                                "Condition": "{% $states.input.n > 3 %}",
                                "Next": "Y",
                                "Output": {"o": 1},
                                "Assign": {"z": 2},
                            }
                        ],
                        "Default": "N",
                    },
                    "Y": {
                        "Type": "Pass",
                        "Output": {"z": "{% $z %}", "i": "{% $states.input %}"},
                        "End": True,
                    },
                    "N": {"Type": "Fail", "Error": "no"},
                },
            }
        ),
        {"n": 5},
        {"z": 2, "i": {"o": 1}},
    ),
    Case(
        "distributed map in JSONata",
        jsonata(
            one(
                "Map",
                Items="{% $states.input.xs %}",
                ItemProcessor={
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    **one("Pass", Output="{% $states.input + 1 %}", End=True),
                },
                End=True,
            )
        ),
        {"xs": [1, 2, 3]},
        [2, 3, 4],
    ),
    Case(
        "aws-sdk integrations",
        chain(
            A={
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:ssm:putParameter",
                "Parameters": {
                    "Name": "/conformance/x", "Value.$": "$.v", "Type": "String", "Overwrite": True,
                },
                "ResultPath": "$.put",
            },
            B={
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:ssm:getParameter",
                "Parameters": {"Name": "/conformance/x"},
                "ResultSelector": {"value.$": "$.Parameter.Value"},
            },
        ),
        {"v": "hello"},
        {"value": "hello"},
    ),
    Case(
        "names of aws-sdk errors",
        chain(
            A={
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:ssm:getParameter",
                "Parameters": {"Name": "/conformance/none"},
                "Catch": [{"ErrorEquals": ["Ssm.ParameterNotFoundException"], "Next": "B"}],
            },
            B={"Type": "Pass", "Result": "caught"},
        ),
        {},
        "caught",
    ),
    Case(
        "objects as S3 bodies",
        jsonata(
            chain(
                A={
                    "Type": "Task",
                    "Resource": "arn:aws:states:::aws-sdk:s3:putObject",
                    "Arguments": {"Bucket": BUCKET, "Key": "c.json", "Body": {"a": 1}},
                },
                B={
                    "Type": "Task",
                    "Resource": "arn:aws:states:::aws-sdk:s3:getObject",
                    "Arguments": {"Bucket": BUCKET, "Key": "c.json"},
                    "Output": "{% $parse($states.result.Body) %}",
                },
            )
        ),
        {},
        {"a": 1},
    ),
]  # fmt: skip

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
SHA256_OF_A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
JSONATA = {
    "double": ("{% $states.input.n * 2 %}", 8),
    "sum": ("{% $sum($states.input.l.v) %}", 4),
    "sorted": ("{% $sort($states.input.l, function($a,$b){$a.v < $b.v})[0].k %}", "b"),
    "range": ("{% $range(1,5,2) %}", [1, 3, 5]),
    "largest of what is there": ("{% $max([$states.input.n, $states.input.missing]) %}", 4),
    "partition": ("{% $partition([1,2,3],2) %}", [[1, 2], [3]]),
    "parse": ("{% $parse('{\"q\":1}') %}", {"q": 1}),
    "hash": ("{% $hash('a','SHA-256') %}", SHA256_OF_A),
    "literal": ("text", "text"),
}
CHOICE = {
    "Type": "Choice", "Default": "N",
    "Choices": [
        {"Condition": "{% $states.input.n > 3 %}", "Next": "Y", "Output": {"o": 1},
         "Assign": {"z": 2}},
    ],
}  # fmt: skip
ITEM = {
    "v": "{% $states.context.Map.Item.Value %}", "i": "{% $states.context.Map.Item.Index %}",
}  # fmt: skip
PUT = {"Name": "/conformance/x", "Value.$": "$.v", "Type": "String", "Overwrite": True}
OBJECT = {"Bucket": BUCKET, "Key": "c.json"}

CASES = [
    Case(
        "intrinsic functions",
        single_state(
            "Pass", Parameters={f"{name}.$": text for name, (text, _) in INTRINSICS.items()}
        ),
        {"n": 5, "o": {"x": 1}, "p": {"y": 2}},
        {name: value for name, (_, value) in INTRINSICS.items()},
    ),
    Case(
        "variables in JSONPath",
        chain(
            A=passing(Assign={"v.$": "$.n", "w": "literal"}),
            B=passing(Parameters={"v.$": "$v", "w.$": "$w"}),
        ),
        {"n": 3},
        {"v": 3, "w": "literal"},
    ),
    Case(
        "JSONata output",
        jsonata(single_state("Pass", Output={name: text for name, (text, _) in JSONATA.items()})),
        {"n": 4, "l": [{"k": "a", "v": 1}, {"k": "b", "v": 3}]},
        {name: value for name, (_, value) in JSONATA.items()},
    ),
    Case(
        "variables in JSONata",
        jsonata(
            chain(
                A=passing(Assign={"v": "{% $states.input.n %}"}),
                B=passing(Output="{% $v + 1 %}"),
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
        "variables of a branch stay in it",
        jsonata(
            chain(
                A=passing(Assign={"v": 1}),
                P={
                    "Type": "Parallel",
                    "Branches": [single_state("Pass", Assign={"inner": 5}, Output="{% $v %}")],
                },
                Z=passing(Output={"has": "{% $exists($inner) %}", "v": "{% $v %}"}),
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
                    "C": CHOICE,
                    "Y": {**BRANCH, "Output": {"z": "{% $z %}", "i": "{% $states.input %}"}},
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
            single_state(
                "Map",
                Items="{% $states.input.xs %}",
                ItemProcessor={
                    **DISTRIBUTED,
                    **single_state("Pass", Output="{% $states.input + 1 %}"),
                },
            )
        ),
        {"xs": [1, 2, 3]},
        [2, 3, 4],
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

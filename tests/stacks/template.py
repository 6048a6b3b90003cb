"""Reads a template by types and properties; logical ids are looked up, never written down."""

import atexit
import fnmatch
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import app

TEMPLATE = "Compilegate.template.json"
PARTITION, ACCOUNT, REGION = "aws", "123456789012", "us-east-1"
PSEUDO = {
    "AWS::Partition": PARTITION,
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::StackName": "stack",
    "AWS::URLSuffix": "amazonaws.com",
}

# Whose roles are neither a function's nor a machine's.
SERVICES = {
    "chatbot.amazonaws.com": "chatbot",
    "events.amazonaws.com": "events",
    "scheduler.amazonaws.com": "scheduler",
}


@cache
def shipped_assembly():
    """The cloud assembly of cdk.json's settings, synthesised once for each process."""
    folder = Path(tempfile.mkdtemp(prefix="compilegate-assembly-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    app.synthesise(app.default_context(), folder)
    return folder


def load(assembly):
    """The template of an assembly."""
    return Template(json.loads((assembly / TEMPLATE).read_text()))


def lint_template(text):
    """What cfn-lint has to say about a template."""
    from cfnlint import api  # noqa: PLC0415 - a second that all other tests need not wait for

    return api.lint(text, regions=["us-east-1"])


class Template:
    """One stack's template with its references resolved to readable text."""

    def __init__(self, document):
        self.document = document
        self.resources = document["Resources"]

    def of_type(self, kind):
        """Logical id → resource."""
        return {key: value for key, value in self.resources.items() if value["Type"] == kind}

    def one(self, kind):
        """The only resource of a type, resolved."""
        (resource,) = self.of_type(kind).values()
        return self.resolve(resource)

    def properties(self, kind):
        """The properties of every resource of a type, resolved."""
        return [self.resolve(item["Properties"]) for item in self.of_type(kind).values()]

    def resolve(self, value):
        """Text with ``<LogicalId>`` or ``<LogicalId.Attribute>`` where the template refers."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Ref"}:
            return PSEUDO.get(value["Ref"]) or f"<{value['Ref']}>"
        if set(value) == {"Fn::GetAtt"}:
            return f"<{'.'.join(value['Fn::GetAtt'])}>"
        if set(value) == {"Fn::Join"}:
            separator, parts = value["Fn::Join"]
            return separator.join(str(self.resolve(part)) for part in parts)
        return {key: self.resolve(item) for key, item in value.items()}

    def machines(self):
        """The state machines by what they do: ``evaluate``, ``train``."""
        return {
            machine["Properties"]["StateMachineName"].rpartition("-")[2]: (key, machine)
            for key, machine in self.of_type("AWS::StepFunctions::StateMachine").items()
        }

    def definition(self, name):
        """A state machine's definition, parsed."""
        _, machine = self.machines()[name]
        return json.loads(self.resolve(machine["Properties"]["DefinitionString"]))

    def function(self, name):
        """(logical id, resource) of a Lambda by its step's name."""
        handler = f"lambdas.handlers.{name}"
        return next(
            (key, value)
            for key, value in self.of_type("AWS::Lambda::Function").items()
            if value["Properties"]["Handler"] == handler
        )

    def live(self, function):
        """Logical id of the alias of a function, which is named by its own."""
        return next(
            key
            for key, alias in self.of_type("AWS::Lambda::Alias").items()
            if {"Ref": function} == alias["Properties"]["FunctionName"]
        )

    def role_owners(self):
        """Role's logical id → who runs as it: step, machine, events."""
        owners = {}
        for resource in self.of_type("AWS::Lambda::Function").values():
            properties = resource["Properties"]
            owners[self._role(properties["Role"])] = properties["Handler"].rpartition(".")[2]
        for name, (_, machine) in self.machines().items():
            owners[self._role(machine["Properties"]["RoleArn"])] = name
        for key, role in self.of_type("AWS::IAM::Role").items():
            (trusted,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
            service = trusted["Principal"].get("Service")
            if service in SERVICES:
                owners[key] = SERVICES[service]
        return owners

    def owners(self):
        """Who has permissions: owners of roles, and ``training``, whose roles functions make."""
        return [*self.role_owners().values(), "training"]

    def statements(self, owner):
        """Every statement of the policies of one owner's role, resolved."""
        if owner == "training":
            return self.one("AWS::IAM::ManagedPolicy")["Properties"]["PolicyDocument"]["Statement"]
        role = next(key for key, name in self.role_owners().items() if name == owner)
        return [
            self.resolve(statement)
            for policy in self.of_type("AWS::IAM::Policy").values()
            if {"Ref": role} in policy["Properties"]["Roles"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]

    def actions(self, owner):
        """Every action that one owner's role allows."""
        return {item for one in self.statements(owner) for item in as_list(one["Action"])}

    def allowed(self, action):
        """Owner → resources on which it may do ``action``."""
        grants = {}
        for owner in self.owners():
            for statement in self.statements(owner):
                patterns = as_list(statement["Action"])
                if any(fnmatch.fnmatchcase(action, pattern) for pattern in patterns):
                    assert "Allow" == statement["Effect"]
                    grants.setdefault(owner, []).extend(as_list(statement["Resource"]))
        return {owner: sorted(grants[owner]) for owner in sorted(grants)}

    @staticmethod
    def _role(reference):
        return reference["Fn::GetAtt"][0]


def as_list(value):
    return value if isinstance(value, list) else [value]


def refusals(policy):
    """The conditions under which a resource's policy refuses."""
    statements = policy["PolicyDocument"]["Statement"]
    return [one["Condition"] for one in statements if one["Effect"] == "Deny"]

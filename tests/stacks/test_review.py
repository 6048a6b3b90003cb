"""What cfn-lint, Checkov and AWS's own review find is fixed, or accepted with a reason."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import app
from compilegate.domain.deployment_settings import Settings
from stacks.assets import stage_bundle
from stacks.functions import STEPS
from tests.stacks.template import Template, lint_template

NAG, LINT, CHECKOV = "AwsSolutions", "W", "CKV"  # how their rules begin
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Accepted:
    """A finding that may stay: of these rules, on these constructs alone, for this reason."""

    finding: str
    constructs: str
    why: str

    def covers(self, finding, construct):
        """Whether it is this finding on one of these constructs."""
        matches = re.fullmatch(self.finding, finding), re.fullmatch(self.constructs, construct)
        return all(matches)


def wildcard(resource, constructs, why):
    """A pattern in a policy; test_permissions.py holds which actions it is for."""
    pattern = rf"AwsSolutions-IAM5\[Resource::{resource}\]"
    return Accepted(pattern, f"Compilegate/(?:{constructs})/Resource", why)


def roles(*functions):
    """The policies of these functions' roles."""
    return f"Functions/(?:{'|'.join(functions)})Role/DefaultPolicy"


def lambdas(rule, functions, why):
    """A rule of Checkov on these functions."""
    names = "|".join(functions)
    return Accepted(rule, rf"AWS::Lambda::Function\.Functions(?:{names})[0-9A-F]{{8}}", why)


BUCKET = r"<StorageData\w+\.Arn>"
TITLES = [step.name.title().replace("_", "") for step in STEPS]
FUNCTIONS = roles(*TITLES)
EVENTED = {"AbortTrial", "RecordRun", "WeeklyDigest", "Sweep"}  # called by rules
MACHINES = r"(?:Evaluate|Train)/Machine/Role/DefaultPolicy"
TRIALS = roles("CheckEligibility", "PlanTrial", "JudgeArms", "OnJobEnded", "OpenCanary",
               "RecordDecision", "AskApproval", "ApplyFlag", "ReleaseModels", "WriteReport",
               "BeginRun", "ReviewProduction", "WeeklyDigest")  # fmt: skip
JOBS = "Jobs/Policy"
MAKERS = roles("PlanTrial", "BuildRequest")
ACCOUNT = "<AWS::AccountId>"
ARN = f"arn:aws:[a-z]+:us-east-1:{ACCOUNT}"
OWN = "<aws:PrincipalTag/compilegate-workload>"
ACCEPTED = (
    wildcard(r"\*", rf"{FUNCTIONS}|{MACHINES}|{JOBS}",
             "actions that know no resources, each named in test_permissions.py"),
    wildcard(rf"{BUCKET}/(?:compile-cache|workloads|experiments|production)/{OWN}/.*", JOBS,
             "the objects of the job's own workload"),
    wildcard(r"arn:<AWS::Partition>:ecr:us-east-1:\*:repository/[a-z-]+(?:\*-training)?", JOBS,
             "AWS's images, whose registry has another account in each region"),
    wildcard(rf"{ARN}:log-group:/aws/sagemaker/TrainingJobs"
             rf"(?:\*|:log-stream:cg-{OWN}-\?{{8}}-[sqp]\*)", JOBS,
             "the log group of training jobs, and the streams of the workload's own"),
    wildcard(rf"{BUCKET}/decisions/\*", f"{TRIALS}|{roles('AcquireLock', 'AbortTrial', 'Sweep')}",
             "records of any trial"),
    wildcard(rf"{BUCKET}/workloads/\*/(?:specs/\*|registration\.json)",
             f"{TRIALS}|{roles('BuildRequest', 'RecordRun', 'Sweep', 'Project')}",
             "what any workload trains"),
    wildcard(rf"{BUCKET}/experiments/\*/(?:requests|stopped|ended)/\*",
             f"{roles('JudgeArms', 'OnJobEnded')}|Evaluate/Machine/Role/DefaultPolicy",
             "requests, stops and ends of any trial"),
    wildcard(rf"{BUCKET}/production/\*/\*/requests/\*",
             f"{roles('BuildRequest')}|Train/Machine/Role/DefaultPolicy", "requests of any run"),
    wildcard(rf"{BUCKET}/(?:experiments|production)/\*/\*/jobs/\*/output/output\.tar\.gz",
             roles("JudgeArms", "OnJobEnded", "RecordRun", "Sweep"), "results of any job"),
    wildcard(rf"{BUCKET}/reports/\*", roles("WriteReport", "ReviewProduction"), "any report"),
    wildcard(rf"{ARN}:execution:compilegate-prod-(?:evaluate|train):\*",
             roles("AcquireLock", "Sweep"), "any execution of the deployment's own machines"),
    wildcard(rf"{ARN}:training-job/cg-\*",
             f"{MACHINES}|" + roles("AcquireLock", "JudgeArms", "OnJobEnded", "ReleaseModels",
                                    "AbortTrial", "RecordRun", "Sweep"),
             "the deployment's own jobs"),
    wildcard(rf"{ARN}:training-job/\*", roles("RecordRun"),
             "a team names its jobs as it likes; they are read only"),
    wildcard(rf"{ARN}:parameter/compilegate/prod/workloads/\*/compiler",
             roles("ApplyFlag", "BeginRun", "RecordRun", "ReviewProduction"), "the flags"),
    wildcard(rf"arn:<AWS::Partition>:iam::{ACCOUNT}:role/(?:compilegate/)?prod-us-east-1-\*",
             f"{MACHINES}|{MAKERS}", "roles of jobs, made for any workload"),
    wildcard(r"<Functions\w+\.Arn>:\*", MACHINES,
             "every version: a running execution calls those that it began with"),
    Accepted("AwsSolutions-L1", rf"Compilegate/Functions/(?:{'|'.join(TITLES)})/Resource",
             "Python 3.12 is what the packages of the bundle are locked for"),
    Accepted("AwsSolutions-S1", "Compilegate/Storage/Data/Resource",
             "docs/decisions/0005-storage-that-stays.md"),
    Accepted("AwsSolutions-SQS3", "Compilegate/DeadLetters/Queue/Resource",
             "it is itself the dead-letter queue of rules and functions"),
    Accepted("CKV_AWS_18", r"AWS::S3::Bucket\.StorageData\w+",
             "docs/decisions/0005-storage-that-stays.md"),
    Accepted("CKV_AWS_27", r"AWS::SQS::Queue\.DeadLettersQueue\w+",
             "a key of SQS encrypts it; the rule knows keys of KMS only"),
    lambdas("CKV_AWS_115", TITLES,
            "a reservation is taken from the account's other functions"),
    lambdas("CKV_AWS_116", sorted({*TITLES} - EVENTED), "state machines call it, and get errors"),
    lambdas("CKV_AWS_116", sorted(EVENTED),
            "its EventInvokeConfig names the dead letters; the rule does not read it"),
    lambdas("CKV_AWS_117", TITLES, "it calls AWS's public APIs and nothing in a network"),
    lambdas("CKV_AWS_173", TITLES, "names of resources, encrypted by Lambda's own key"),
    Accepted(r"CKV_AWS_(?:109|111)", r"AWS::IAM::ManagedPolicy\.JobsPolicy\w+",
             "with a vpc only: the network interfaces that SageMaker makes, as it documents them"),
    # cfn-lint. The CDK writes it for every function and machine whose role has a policy.
    Accepted("W3005", r"Resources/(?:Functions\w+|(?:Evaluate|Train)Machine\w+)/DependsOn/\d",
             "a dependency that CloudFormation would find as well"),
)  # fmt: skip


def unaccepted(findings):
    """Findings that no entry covers."""
    return [one for one in findings if not any(each.covers(*one) for each in ACCEPTED)]


def unused(findings, rules):
    """Entries of rules that begin so, which cover nothing any more."""
    return [
        one
        for one in ACCEPTED
        if one.finding.startswith(rules) and not any(one.covers(*finding) for finding in findings)
    ]


@pytest.mark.slow
def test_the_review_finds_nothing_that_is_not_accepted_with_a_reason(tmp_path):
    import cdk_nag  # noqa: PLC0415 - starts the CDK
    from aws_cdk import App, Validations  # noqa: PLC0415 - as above

    from stacks.stack import CompilegateStack  # noqa: PLC0415 - as above

    context = app.default_context()
    cdk = App(context=context, outdir=str(tmp_path / "assembly"))
    Validations.of(cdk).add_plugins(cdk_nag.AwsSolutionsChecks())
    bundle = stage_bundle(tmp_path / "bundle")
    CompilegateStack(cdk, settings=Settings.from_context(context), bundle=bundle)
    with pytest.raises(RuntimeError, match="ValidationFailed"):  # the accepted findings
        cdk.synth()

    (review,) = json.loads((tmp_path / "assembly" / "validation-report.json").read_text())[
        "pluginReports"
    ]
    findings = [
        (violation["ruleName"], construct["constructPath"])
        for violation in review["violations"]
        for construct in violation["violatingConstructs"]
    ]
    assert [] == unaccepted(findings)
    assert [] == unused(findings, NAG)


@pytest.mark.parametrize(
    ("finding", "construct"),
    [
        # Each of a rule that is accepted elsewhere.
        ("AwsSolutions-S1", "Compilegate/Storage/Another/Resource"),
        ("AwsSolutions-IAM5[Resource::<StorageData6BB23F4E.Arn>/*]",
         "Compilegate/Functions/JudgeArmsRole/DefaultPolicy/Resource"),
        ("AwsSolutions-IAM5[Resource::<StorageData6BB23F4E.Arn>/decisions/*]",
         "Compilegate/Jobs/Policy/Resource"),
        ("AwsSolutions-IAM5[Action::s3:*]", "Compilegate/Jobs/Policy/Resource"),
        ("AwsSolutions-IAM5[Resource::*]", "Compilegate/Schedules/Role/DefaultPolicy/Resource"),
        ("CKV_AWS_18", "AWS::S3::Bucket.Another6BB23F4E"),
        ("CKV_AWS_111", "AWS::IAM::Policy.FunctionsSweepRoleDefaultPolicy0FF0870B"),
        ("W3005", "Resources/StorageData6BB23F4E/DependsOn/0"),
    ],
)  # fmt: skip
def test_a_new_finding_of_an_accepted_rule_is_not_accepted(finding, construct):
    assert [(finding, construct)] == unaccepted([(finding, construct)])


def linted(template):
    """What cfn-lint finds: rule and place."""
    return [
        (match.rule.id, "/".join(map(str, match.path)))
        for match in lint_template(json.dumps(template.document))
    ]


@pytest.mark.parametrize("name", [pytest.param("template", marks=pytest.mark.slow), "changed"])
def test_the_linter_finds_nothing_that_is_not_accepted_with_a_reason(request, name):
    findings = linted(request.getfixturevalue(name))

    assert [] == unaccepted(findings)
    assert [] == unused(findings, LINT)


def checked(*templates, folder):
    """What Checkov finds in these templates: rule and resource."""
    files = [folder / f"{number}.template.json" for number in range(len(templates))]
    for file, template in zip(files, templates, strict=True):
        file.write_text(json.dumps(template.document))
    done = subprocess.run(
        [REPOSITORY / ".venv-checkov" / "bin" / "python", "-m", "tests.stacks.in_checkov", *files],
        capture_output=True, check=True, cwd=REPOSITORY, text=True, timeout=250,
    )  # fmt: skip
    return [(rule, resource) for rule, resource in json.loads(done.stdout)]


@pytest.mark.slow
def test_checkov_finds_nothing_that_is_not_accepted_with_a_reason(template, changed, tmp_path):
    (key,) = template.of_type("AWS::SNS::Topic")
    seeded = Template({"Resources": {"Seeded": {"Type": "AWS::SNS::Topic"}}})
    assert "KmsMasterKeyId" in template.resources[key]["Properties"]

    # What both have alike is looked at once.
    same = changed.resources
    own = {name: one for name, one in template.resources.items() if same.get(name) != one}
    findings = checked(Template({"Resources": own}), changed, seeded, folder=tmp_path)

    assert [("CKV_AWS_26", "AWS::SNS::Topic.Seeded")] == unaccepted(findings)
    assert [] == unused(findings, CHECKOV)

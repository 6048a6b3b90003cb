"""Deploying an assembly: what CDK would upload and create, and words for what went wrong."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from compilegate_localcloud.assembly import assembly_of, read_stacks, synthesise, zip_folder
from compilegate_localcloud.deploy import deploy, stack_outputs
from compilegate_localcloud.errors import DeployError, NotReadyError

e2e = pytest.mark.e2e
ASSETS = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"


def write_assembly(folder, template, *, name="tiny", docker=None):
    """What ``cdk synth`` would write for one stack with one Lambda bundle."""
    bundle = folder / "asset.bundle"
    bundle.mkdir(parents=True, exist_ok=True)
    (bundle / "index.py").write_text("def handler(event, context):\n    return event\n")
    asset = {
        "source": {"path": "asset.bundle", "packaging": "zip"},
        "destinations": {"here": {"bucketName": ASSETS, "objectKey": "bundle.zip"}},
    }
    documents = {
        "manifest.json": {
            "artifacts": {
                f"{name}.assets": {"type": "cdk:asset-manifest"},
                name: {
                    "type": "aws:cloudformation:stack",
                    "dependencies": [f"{name}.assets"],
                    "properties": {"templateFile": f"{name}.template.json", "stackName": name},
                },
            }
        },
        f"{name}.assets.json": {"files": {"b": asset}, "dockerImages": docker or {}},
        f"{name}.template.json": template,
    }
    for file, document in documents.items():
        (folder / file).write_text(json.dumps(document))
    return folder


def template(**resources):
    return {"Resources": resources}


TRUST = {
    "Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole",
}  # fmt: skip
ROLE = {
    "Type": "AWS::IAM::Role",
    "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [TRUST]}},
}
FUNCTION = {
    "Type": "AWS::Lambda::Function",
    "Properties": {
        "Runtime": "python3.12",
        "Handler": "index.handler",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Code": {"S3Bucket": {"Fn::Sub": ASSETS}, "S3Key": "bundle.zip"},
    },
}


def parameter(value):
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}}


def machine(definition):
    properties = {"DefinitionString": definition, "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]}}
    return {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}


@e2e
def test_stack_is_deployed_and_its_function_runs(cloud, client, tmp_path):
    full = template(Role=ROLE, Function=FUNCTION, Parameter=parameter("1"))
    full["Outputs"] = {"Name": {"Value": {"Ref": "Function"}}}
    (stack,) = deploy(cloud.state(), write_assembly(tmp_path, full, name="function"))
    answer = client("lambda").invoke(FunctionName=stack.outputs["Name"], Payload=b'{"a": 1}')

    assert stack.status == "CREATE_COMPLETE"
    assert json.loads(answer["Payload"].read()) == {"a": 1}
    assert stack_outputs(cloud.state(), "function") == stack.outputs


@e2e
def test_deploying_again_changes_only_what_changed(cloud, client, tmp_path):
    first = template(Parameter=parameter("old"))
    first["Outputs"] = {"Name": {"Value": {"Ref": "Parameter"}}}
    second = {**first, **template(Parameter=parameter("new"))}
    (created,) = deploy(cloud.state(), write_assembly(tmp_path, first, name="again"))
    (same,) = deploy(cloud.state(), write_assembly(tmp_path, first, name="again"))
    (updated,) = deploy(cloud.state(), write_assembly(tmp_path, second, name="again"))
    value = client("ssm").get_parameter(Name=updated.outputs["Name"])["Parameter"]["Value"]

    statuses = [created.status, same.status, updated.status]
    assert statuses == ["CREATE_COMPLETE", "CREATE_COMPLETE", "UPDATE_COMPLETE"]
    assert created.outputs == updated.outputs
    assert value == "new"


@e2e
def test_error_names_the_resource_and_the_reason(cloud, tmp_path):
    broken = template(Role=ROLE, Machine=machine('{"StartAt": "A", "States": {"B": {}}}'))
    with pytest.raises(DeployError) as caught:
        deploy(cloud.state(), write_assembly(tmp_path, broken, name="broken"))

    assert "Stack broken did not come up" in str(caught.value)
    assert "Machine (AWS::StepFunctions::StateMachine)" in str(caught.value)
    assert "Invalid State Machine Definition" in str(caught.value)


def test_docker_images_are_refused_before_anything_is_deployed(tmp_path):
    assembly = write_assembly(tmp_path, template(), docker={"image": {}})

    with pytest.raises(NotReadyError, match="no Docker"):
        read_stacks(assembly)


def test_same_files_make_the_same_zip(tmp_path):
    for name in ("a.py", "deep/b.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    first = zip_folder(tmp_path)
    os.utime(tmp_path / "a.py", (time.time(), time.time() - 1e6))

    assert zip_folder(tmp_path) == first


def test_synthesis_hands_the_app_its_context_and_its_folder(tmp_path):
    (tmp_path / "app.py").write_text(
        "import os, pathlib\n"
        "place = pathlib.Path(os.environ['CDK_OUTDIR'], 'seen.json')\n"
        "place.write_text(os.environ['CDK_CONTEXT_JSON'])\n"
    )
    output = synthesise(tmp_path, tmp_path / "out", context={"stage": "local"})

    assert {"stage": "local"} == json.loads((output / "seen.json").read_text())


@pytest.fixture
def counted(tmp_path):
    """A project whose synthesis is counted; asks for its assembly."""
    (tmp_path / "cdk.json").write_text("{}")
    (tmp_path / "app.py").write_text(
        "import os, pathlib\npathlib.Path('runs').open('a').write('x')\n"
        "pathlib.Path(os.environ['CDK_OUTDIR'], 'manifest.json').write_text('{}')\n"
    )
    return lambda: assembly_of(tmp_path, tmp_path / ".compilegate", context={"stage": "local"})


def test_assembly_is_made_again_only_when_a_source_changed(counted, tmp_path):
    first, same = counted(), counted()
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "storage.py").write_text("# changed")
    changed = counted()

    assert first == same != changed
    assert (tmp_path / "runs").read_text() == "xx"


def test_an_assembly_that_several_need_at_once_is_made_by_one_of_them(counted, tmp_path):
    with ThreadPoolExecutor() as several:
        asked = [several.submit(counted) for _ in range(3)]

    assert 1 == len({one.result() for one in asked})
    assert "x" == (tmp_path / "runs").read_text()


def test_failed_synthesis_is_quoted_and_not_kept(tmp_path):
    (tmp_path / "cdk.json").write_text("{}")
    (tmp_path / "app.py").write_text("raise SystemExit('context stage: must be lower case')")
    with pytest.raises(NotReadyError, match="context stage: must be lower case"):
        assembly_of(tmp_path, tmp_path / "cache", context={})

    assert list((tmp_path / "cache").iterdir()) == []

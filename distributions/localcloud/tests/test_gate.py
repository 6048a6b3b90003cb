"""Who gets into the local cloud: those who sign with a key of its run, and nobody else."""

import datetime
import json
import stat
import urllib.error
import urllib.request
from pathlib import Path

import boto3
import botocore.auth
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from compilegate_localcloud.connection import call_emulator
from compilegate_localcloud.names import ACCOUNT
from distributions.localcloud.tests.helpers import marked_processes
from distributions.localcloud.tests.raw_requests import exchange, stored
from distributions.localcloud.tests.signed_requests import send, signed

pytestmark = pytest.mark.e2e
STACK = "?Action=CreateStack&StackName=owned&TemplateBody={}&Version=2010-05-15"
JSON_TARGET = {"X-Amz-Target": "DynamoDB_20120810.ListTables"}
QUERY, JSON, REST = "<ErrorResponse", '"__type"', "<Error>"


@pytest.fixture(scope="module")
def state(cloud):
    cloud.client("s3").create_bucket(Bucket="gate")
    cloud.client("s3").put_object(Bucket="gate", Key="a b/ü+c", Body=b"held")
    return cloud.running_state()


@pytest.mark.parametrize(
    ("request_line", "headers", "shape", "refusal"),
    [
        (f"GET /{STACK}", {}, QUERY, (403, "MissingAuthenticationToken")),
        ("POST /", JSON_TARGET, JSON, (400, "MissingAuthenticationTokenException")),
        ("POST /2015-03-31/functions", {}, JSON, (403, "MissingAuthenticationTokenException")),
        ("GET /gate", {}, REST, (403, "AccessDenied")),
        ("GET /_compilegate/health", {}, "", (403, "")),
        ("POST /_compilegate/failures", {}, "", (403, "")),
        ("POST /_ministack/reset", {}, "", (403, "")),
        ("OPTIONS /", {"Access-Control-Request-Method": "POST"}, "", (403, "")),
        (
            "GET /gate?AWSAccessKeyId=000000000000&Signature=x&Expires=9",
            {},
            REST,
            (400, "InvalidReq"),
        ),
        ("GET /", {"Authorization": "AWS 000000000000:x"}, REST, (400, "InvalidRequest")),
        ("GET /", {"Authorization": "AWS4-HMAC-SHA256 Credential=x"}, REST, (400, "Malformed")),
    ],
)
def test_unsigned_request_is_refused_as_its_service_would(
    state, request_line, headers, shape, refusal
):
    status, answered, body = send(state, *request_line.split(), headers=headers)

    assert refusal[0] == status
    assert shape in body
    assert refusal[1] in body
    assert not [name for name in answered if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    ("service", "call", "status", "code"),
    [
        ("s3", "list_buckets", 403, "SignatureDoesNotMatch"),
        ("dynamodb", "list_tables", 400, "InvalidSignatureException"),
        ("lambda", "list_functions", 403, "InvalidSignatureException"),
        ("sts", "get_caller_identity", 403, "SignatureDoesNotMatch"),
        ("sagemaker", "list_training_jobs", 400, "InvalidSignatureException"),
    ],
)
def test_sdk_understands_the_refusal_of_a_wrong_key(state, service, call, status, code):
    session = boto3.Session(ACCOUNT, "local", region_name="us-east-1")
    stranger = session.client(service, endpoint_url=state.endpoint)
    with pytest.raises(ClientError) as caught:
        getattr(stranger, call)()

    assert status == caught.value.response["ResponseMetadata"]["HTTPStatusCode"]
    assert code == caught.value.response["Error"]["Code"]


@pytest.mark.parametrize("key", ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"])
def test_unknown_key_is_refused(state, key):
    session = boto3.Session(key, state.secret, "a-token", region_name="us-east-1")
    with pytest.raises(ClientError) as caught:
        session.client("sts", endpoint_url=state.endpoint).get_caller_identity()

    assert "InvalidClientTokenId" == caught.value.response["Error"]["Code"]


@pytest.mark.parametrize("minutes", [-16, 16])
def test_signature_of_another_time_is_refused(state, monkeypatch, minutes):
    now = datetime.datetime.now(datetime.UTC)
    moment = now + datetime.timedelta(minutes=minutes)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: moment)
    status, _, body = send(state, headers=signed(state))

    assert (403, True) == (status, "RequestTimeTooSkewed" in body)


@pytest.mark.parametrize("name", ["Host", "X-Amz-Date", "X-Amz-Content-SHA256"])
def test_part_that_must_be_signed_is_missed(state, name):
    headers = signed(state)
    headers["Authorization"] = headers["Authorization"].replace(f"{name.lower()};", "")
    headers["Authorization"] = headers["Authorization"].replace(f";{name.lower()}", "")

    assert 403 == send(state, headers=headers)[0]


@pytest.mark.parametrize(
    "host", ["example.com:{port}", "127.0.0.1", "127.0.0.1:1", "a.127.0.0.1:{port}"]
)
def test_name_that_a_page_gave_this_machine_is_refused(state, host):
    headers = signed(state, headers={"Host": host.format(port=state.port)})

    assert 403 == send(state, headers=headers)[0]


def test_both_names_of_this_machine_are_taken(state):
    headers = signed(state, headers={"Host": f"localhost:{state.port}"})

    assert 200 == send(state, headers=headers)[0]
    assert 200 == send(state, headers=signed(state))[0]


def test_page_with_a_key_is_refused_and_no_answer_lets_pages_read_it(state):
    headers = signed(state)
    answered = send(state, headers=headers)[1]

    assert 403 == send(state, headers={**headers, "Origin": "https://example.com"})[0]
    assert not [name for name in answered if name.lower().startswith("access-control")]


def presigner(state, secret=None, **config):
    session = boto3.Session(ACCOUNT, secret or state.secret, region_name=state.region)
    options = Config(s3={"addressing_style": "path"}, **config)
    return session.client("s3", endpoint_url=state.endpoint, config=options)


def fetched(url):
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_presigned_url_is_good_for_what_it_names_until_it_expires(state, monkeypatch):
    what = {"Bucket": "gate", "Key": "a b/ü+c"}
    sign = presigner(state, signature_version="s3v4").generate_presigned_url
    url = sign("get_object", Params=what, ExpiresIn=60)

    assert (200, b"held") == fetched(url)
    assert 403 == fetched(url.replace("Expires=60", "Expires=61"))[0]
    assert 403 == fetched(url.replace("/gate/", "/other/"))[0]
    assert 403 == fetched(url.replace("127.0.0.1", "localhost"))[0]
    assert 400 == fetched(url + "&X-Amz-Expires=60")[0]
    old = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=61)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: old)
    assert b"Request has expired" in fetched(sign("get_object", Params=what, ExpiresIn=60))[1]


def test_keys_that_the_cloud_gave_out_are_good(cloud, state):
    cloud.client("iam").create_user(UserName="gate-user")
    user = cloud.client("iam").create_access_key(UserName="gate-user")["AccessKey"]
    role = cloud.client("sts").assume_role(
        RoleArn="arn:aws:iam::000000000000:role/any", RoleSessionName="session"
    )["Credentials"]
    for key, token in ((user, None), (role, role["SessionToken"])):
        own = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], token, state.region)
        wrong = boto3.Session(key["AccessKeyId"], "wrong", token, state.region)
        assert own.client("s3", endpoint_url=state.endpoint).list_buckets()["Buckets"]
        with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
            wrong.client("s3", endpoint_url=state.endpoint).list_buckets()


def test_only_the_owner_of_the_key_can_read_it(cloud, state):
    assert 0o600 == stat.S_IMODE(cloud.places.state_file.stat().st_mode)
    assert 0o700 == stat.S_IMODE(cloud.places.home.stat().st_mode)
    assert 40 == len(state.secret)
    assert state.secret not in repr(state)


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc")
def test_key_stands_on_no_command_line(state):
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in marked_processes(state.run_id)]

    assert lines
    assert not [line for line in lines if state.secret.encode() in line]


def test_own_paths_are_signed_as_well(state):
    assert {"run_id": state.run_id} == call_emulator(state, "health")
    assert {"left"} == json.loads(
        send(state, path="/_compilegate/failures",
             headers=signed(state, "compilegate", path="/_compilegate/failures"))[2]
    ).keys()  # fmt: skip


def test_stored_malformed_requests_neither_act_nor_leave_a_traceback(cloud, state):
    """The many of test_gate_fuzz.py meet the gate alone, these the whole emulator."""
    log = cloud.places.logs / "emulator.log"
    before = log.stat().st_size  # other tests of this cloud let its workers die
    answers = {name: exchange(state.port, request) for name, request in stored(state.port)}

    assert [] == [name for name, answer in answers.items() if b"HTTP/1.1 2" in answer]
    assert b"Traceback" not in log.read_bytes()[before:]
    with pytest.raises(ClientError, match="does not exist"):
        cloud.client("cloudformation").describe_stacks(StackName="owned")

"""Who gets into the local cloud: those who sign with a key of its run, and nobody else."""

import datetime
import http.client
import json
import socket
import stat
import urllib.error
import urllib.request
from pathlib import Path

import boto3
import botocore.auth
import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from compilegate.localcloud.connection import call_emulator
from compilegate.localcloud.lifecycle import LocalCloud
from compilegate.localcloud.names import ACCOUNT
from tests.localcloud.conftest import FAST, make_places
from tests.localcloud.helpers import marked_processes
from tests.localcloud.raw_requests import exchange, stored

pytestmark = pytest.mark.e2e
STACK = "?Action=CreateStack&StackName=owned&TemplateBody={}&Version=2010-05-15"
JSON_TARGET = {"X-Amz-Target": "DynamoDB_20120810.ListTables"}
QUERY, JSON, REST = "<ErrorResponse", '"__type"', "<Error>"


def send(state, method="GET", path="/", *, headers=None, body=None):
    """Status, headers and body of a request as it stands; nothing is added to it but the host."""
    connection = http.client.HTTPConnection("127.0.0.1", state.port, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def signed(state, service="s3", method="GET", path="/", *, body=b"", headers=None, secret=None):
    """A request with its signature."""
    request = AWSRequest(
        method=method, url=f"{state.endpoint}{path}", data=body,
        headers={"Host": f"127.0.0.1:{state.port}", **(headers or {})},
    )  # fmt: skip
    signer = S3SigV4Auth if service == "s3" else SigV4Auth
    signer(Credentials(ACCOUNT, secret or state.secret), service, state.region).add_auth(request)
    return dict(request.headers.items())


@pytest.fixture(scope="module")
def state(cloud):
    cloud.client("s3").create_bucket(Bucket="gate")
    cloud.client("s3").put_object(Bucket="gate", Key="a b/ü+c", Body=b"held")
    return cloud.running_state()


@pytest.mark.parametrize(
    ("request_line", "headers", "shape", "code"),
    [
        (f"GET /{STACK}", {}, QUERY, "MissingAuthenticationToken"),
        ("POST /?Action=CreateUser&UserName=x", {}, QUERY, "MissingAuthenticationToken"),
        ("POST /", JSON_TARGET, JSON, "MissingAuthenticationTokenException"),
        ("POST /2015-03-31/functions", {}, JSON, "MissingAuthenticationTokenException"),
        ("GET /gate", {}, REST, "AccessDenied"),
        ("PUT /gate/new", {}, REST, "AccessDenied"),
        ("GET /_compilegate/health", {}, "", ""),
        ("POST /_compilegate/failures", {}, "", ""),
        ("GET /_ministack/health", {}, "", ""),
        ("POST /_ministack/reset", {}, "", ""),
        ("OPTIONS /", {"Access-Control-Request-Method": "POST"}, "", ""),
        ("GET /gate?AWSAccessKeyId=000000000000&Signature=x&Expires=9", {}, REST, "InvalidReq"),
        ("GET /", {"Authorization": "AWS 000000000000:x"}, REST, "InvalidRequest"),
        ("GET /", {"Authorization": "AWS4-HMAC-SHA256 Credential=x"}, REST, "Malformed"),
        ("GET /", {"Authorization": "Bearer x"}, REST, "InvalidRequest"),
    ],
)
def test_unsigned_request_is_refused_as_its_service_would(
    state, request_line, headers, shape, code
):
    status, answered, body = send(state, *request_line.split(), headers=headers)

    assert 403 == status
    assert shape in body
    assert code in body
    assert not [name for name in answered if name.lower().startswith("access-control")]


def test_page_cannot_create_a_stack_by_an_image(state, cloud):
    """A browser sends such a request without an Origin."""
    headers = {"Referer": "https://example.com/", "Sec-Fetch-Mode": "no-cors"}

    assert 403 == send(state, "GET", f"/{STACK}", headers=headers)[0]
    with pytest.raises(ClientError, match="does not exist"):
        cloud.client("cloudformation").describe_stacks(StackName="owned")


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        ("s3", "list_buckets", "SignatureDoesNotMatch"),
        ("dynamodb", "list_tables", "InvalidSignatureException"),
        ("lambda", "list_functions", "InvalidSignatureException"),
        ("sts", "get_caller_identity", "SignatureDoesNotMatch"),
        ("cloudwatch", "list_metrics", "SignatureDoesNotMatch"),
        ("sqs", "list_queues", "SignatureDoesNotMatch"),
        ("sagemaker", "list_training_jobs", "InvalidSignatureException"),
    ],
)
def test_sdk_understands_the_refusal_of_a_wrong_key(state, service, call, code):
    session = boto3.Session(ACCOUNT, "local", region_name="us-east-1")
    stranger = session.client(service, endpoint_url=state.endpoint)
    with pytest.raises(ClientError) as caught:
        getattr(stranger, call)()

    assert 403 == caught.value.response["ResponseMetadata"]["HTTPStatusCode"]
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


def test_what_was_signed_is_what_is_done(state):
    body = b'{"Limit": 1}'
    headers = signed(state, "dynamodb", "POST", body=body, headers=JSON_TARGET)

    assert 200 == send(state, "POST", "/", headers=headers, body=body)[0]
    assert 403 == send(state, "POST", "/", headers=headers, body=b'{"Limit": 2}')[0]
    assert 403 == send(state, "GET", "/", headers=headers, body=body)[0]
    assert 403 == send(state, "POST", "/other", headers=headers, body=body)[0]
    assert 403 == send(state, "POST", "/?a=b", headers=headers, body=body)[0]
    changed = {**headers, "X-Amz-Target": "DynamoDB_20120810.DeleteTable"}
    assert 403 == send(state, "POST", "/", headers=changed, body=body)[0]


def test_object_other_than_the_signed_one_is_refused(state, cloud):
    headers = signed(state, "s3", "PUT", "/gate/object", body=b"signed")
    refused = send(state, "PUT", "/gate/object", headers=headers, body=b"other!")

    assert (403, True) == (refused[0], "XAmzContentSHA256Mismatch" in refused[2])
    assert 200 == send(state, "PUT", "/gate/object", headers=headers, body=b"signed")[0]
    assert b"signed" == cloud.client("s3").get_object(Bucket="gate", Key="object")["Body"].read()


@pytest.mark.parametrize("name", ["Host", "X-Amz-Date", "X-Amz-Content-SHA256"])
def test_part_that_must_be_signed_is_missed(state, name):
    headers = signed(state)
    headers["Authorization"] = headers["Authorization"].replace(f"{name.lower()};", "")
    headers["Authorization"] = headers["Authorization"].replace(f";{name.lower()}", "")

    assert 403 == send(state, headers=headers)[0]


@pytest.mark.parametrize(
    "host", ["example.com", "example.com:{port}", "127.0.0.1", "127.0.0.1:1", "a.127.0.0.1:{port}"]
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
    assert 403 == fetched(url + "&X-Amz-Expires=60")[0]
    old = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=61)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: old)
    assert b"Request has expired" in fetched(sign("get_object", Params=what, ExpiresIn=60))[1]


def test_presigned_url_of_a_wrong_key_or_of_version_2_is_refused(state):
    what = {"Bucket": "gate", "Key": "a b/ü+c"}
    wrong = presigner(state, "wrong", signature_version="s3v4")
    old = presigner(state, signature_version="s3")

    assert 403 == fetched(wrong.generate_presigned_url("get_object", Params=what))[0]
    refused = fetched(old.generate_presigned_url("get_object", Params=what))
    assert (403, True) == (refused[0], b"Please use AWS4-HMAC-SHA256" in refused[1])


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


def test_socket_of_a_page_is_refused(state):
    lines = (
        "GET / HTTP/1.1", f"Host: 127.0.0.1:{state.port}", "Connection: Upgrade",
        "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", "",
    )  # fmt: skip
    with socket.create_connection(("127.0.0.1", state.port), timeout=5) as connection:
        connection.sendall("\r\n".join(lines).encode())

        assert b" 403 " in connection.recv(100)


def test_key_is_of_one_run_and_only_its_owner_can_read_it(cloud, state, tmp_path):
    mode = stat.S_IMODE(cloud.places.state_file.stat().st_mode)
    with LocalCloud(places=make_places(tmp_path)) as other:
        other_secret = other.start(attached=True, extra_arguments=FAST).secret

    assert 0o600 == mode
    assert 0o700 == stat.S_IMODE(cloud.places.home.stat().st_mode)
    assert (40, 40) == (len(state.secret), len(other_secret))
    assert state.secret != other_secret
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
    answers = {name: exchange(state.port, request) for name, request in stored(state.port)}

    assert [] == [name for name, answer in answers.items() if b"HTTP/1.1 2" in answer]
    assert "Traceback" not in (cloud.places.logs / "emulator.log").read_text()
    with pytest.raises(ClientError, match="does not exist"):
        cloud.client("cloudformation").describe_stacks(StackName="owned")

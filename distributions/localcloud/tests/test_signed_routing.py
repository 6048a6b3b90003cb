"""A request does what its signature names: nothing that is added unsigned chooses another."""

import io
import json
import re
from dataclasses import replace

import boto3
import pytest
from botocore.config import Config
from botocore.credentials import Credentials

from distributions.localcloud.tests.signed_requests import OddlyWritten, claim, send

pytestmark = pytest.mark.e2e

FLAG = {"Name": "/routing/flag", "Value": "kept", "Type": "String"}
OVERWRITE = json.dumps({**FLAG, "Value": "owned", "Overwrite": True}).encode()
TABLES = {"X-Amz-Target": "DynamoDB_20120810.ListTables"}
JSON_TYPE = {"Content-Type": "application/x-amz-json-1.0"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
IDENTITY = b"Action=GetCallerIdentity&Version=2011-06-15"
CREATE_USER = "Action=CreateUser&UserName=owned&Version=2010-05-08"
CHUNKS = b"4\r\nheld\r\n0\r\nx-amz-checksum-crc32:El2I0Q==\r\n\r\n"
CHUNKED = {
    "Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": "4",
    "X-Amz-Trailer": "x-amz-checksum-crc32",
}  # fmt: skip
TEXT = {"Content-Type": "text/plain"}
DELETE = b"<Delete><Object><Key>absent</Key></Object></Delete>"


@pytest.fixture(scope="module")
def state(cloud):
    cloud.client("s3").create_bucket(Bucket="routing")
    for key in ("a", "z"):
        cloud.client("s3").put_object(Bucket="routing", Key=key, Body=f"{key} held".encode())
    cloud.client("ssm").put_parameter(**FLAG)
    return cloud.running_state()


@pytest.fixture(scope="module")
def session(cloud):
    role = cloud.client("sts").assume_role(
        RoleArn="arn:aws:iam::000000000000:role/any", RoleSessionName="session"
    )["Credentials"]
    return Credentials(role["AccessKeyId"], role["SecretAccessKey"], role["SessionToken"])


@pytest.fixture(autouse=True, scope="module")
def unharmed(cloud, state):
    """Nothing was written, copied or created by what was added."""
    yield
    assert "kept" == cloud.client("ssm").get_parameter(Name=FLAG["Name"])["Parameter"]["Value"]
    assert not [user for user in cloud.client("iam").list_users()["Users"]
                if user["UserName"] == "owned"]  # fmt: skip
    for key in ("a", "z"):
        assert f"{key} held".encode() == (
            cloud.client("s3").get_object(Bucket="routing", Key=key)["Body"].read()
        )


# Arguments of claim(); "session" stands for a role's key with its token.
CLAIMS = {
    "get of a session": ("s3", "GET", "/routing/a", {"session": True}),
    "put in chunks": (
        "s3", "PUT", "/routing/new", {"body": CHUNKS, "headers": CHUNKED, "streamed": True},
    ),
    "presigned get of a session": (
        "s3", "GET", "/routing/a", {"presigned": True, "session": True},
    ),
    "presigned put": ("s3", "PUT", "/routing/new", {"presigned": True, "body": b"new"}),
    "presigned post": ("s3", "POST", "/routing?delete=", {"presigned": True, "body": DELETE}),
    "query": ("sts", "POST", "/", {"body": IDENTITY, "headers": FORM}),
    "presigned query": ("sts", "GET", f"/?{IDENTITY.decode()}", {"presigned": True}),
    "json": ("dynamodb", "POST", "/", {"body": b"{}", "headers": {**JSON_TYPE, **TABLES}}),
    "rest": ("lambda", "GET", "/2015-03-31/functions", {}),
}  # fmt: skip
HEADERS = {
    "X-Amz-Target": "AmazonSSM.PutParameter",
    "x-amz-copy-source": "/routing/z",
    "X-Amz-Security-Token": "another",
    "x-amz-acl": "public-read",
    "x-amz-new": "1",
    "X-Amz-Invocation-Type": "Event",
    "x-amz-request-route": "io-route",
    "X-Amz-Decoded-Content-Length": "3",
    "X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD",
    "X-Amz-Date": "20260101T000000Z",
}
PARAMETERS = (
    CREATE_USER, "X-Amz-Target=AmazonSSM.PutParameter", "x-amz-copy-source=/routing/z", "acl=",
    "tagging=", "X-Amz-Security-Token=another", "X-Amz-SignedHeaders=host%3Bx-amz-target",
    "X-Amz-Credential=000000000000/20260101/us-east-1/ssm/aws4_request",
)  # fmt: skip
HOSTS = ("ssm.us-east-1.amazonaws.com", "routing.s3.localhost:{port}", "iam.localhost:{port}")
PATHS = (
    "/2015-03-31/functions", "/routing/z", "/_ministack/reset", "/_ministack/config", "/health",
    "/v2/email/identities", "/v20180820/jobs", "/iceberg/v1/config", "/latest/meta-data",
    "/oauth2/token", "/queue/x", "/clusters", "/_aws/execute-api/x/y",
)  # fmt: skip

ALIKE = ("#", "#z", "#/../z", "/.", "//", "/../a")


@pytest.fixture(params=CLAIMS)
def request_of(request, state, session):
    """A request that is let in, of each kind of claim."""
    service, method, path, options = CLAIMS[request.param]
    options = dict(options)
    credentials = session if options.pop("session", False) else None
    return claim(state, service, method, path, credentials=credentials, **options)


def answer_of(state, request):
    return send(state, request.method, request.path, headers=request.headers, body=request.body)


def code_of(answer):
    """The error's code, in any protocol."""
    match = re.search(r'(?:<Code>|"__type": ?")(\w+)', answer[2])
    return match[1] if match else None


def names(headers):
    return {name.lower() for name in headers}


def test_claim_is_let_in_as_it_was_signed_and_nothing_else(state, request_of):
    """Not what is added unsigned, and no other host or path that a URL would read alike."""
    path, mark, query = request_of.path.partition("?")
    more = f"{request_of.path}{'&' if mark else '?'}"
    changed = [
        *(replace(request_of, path=more + parameter) for parameter in PARAMETERS),
        *(
            replace(request_of, headers={**request_of.headers, "Host": one.format(port=state.port)})
            for one in HOSTS
        ),
        *(replace(request_of, path=f"{one}{mark}{query}") for one in PATHS if one != path),
        *(replace(request_of, path=f"{path}{one}{mark}{query}") for one in ALIKE),
    ]  # fmt: skip

    assert answer_of(state, request_of)[0] in (200, 204)
    assert [] == [one for one in changed if answer_of(state, one)[0] not in (400, 403)]


def test_header_that_is_added_unsigned_is_refused(state, request_of):
    is_s3 = "/s3/" in f"{request_of.path}{request_of.headers}".replace("%2F", "/")
    codes = ("AccessDenied",) if is_s3 else ("SignatureDoesNotMatch", "InvalidSignatureException")
    body = OVERWRITE if "X-Amz-Signature=" in request_of.path else request_of.body
    for name, value in HEADERS.items():
        others = {k: v for k, v in request_of.headers.items() if k.lower() != name.lower()}
        answer = answer_of(state, replace(request_of, headers={**others, name: value}, body=body))

        assert answer[0] in (400, 403), name
        if len(others) == len(request_of.headers):  # a new one
            assert code_of(answer) in codes, name
            assert is_s3 == (f"<HeadersNotSigned>{name.lower()}</HeadersNotSigned>" in answer[2])


FORM_BODY = (
    b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\nz\r\n'
    b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nowned\r\n--x--\r\n'
)


@pytest.mark.parametrize("kind", ["presigned put", "presigned post"])
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-www-form-urlencoded", CREATE_USER.encode()),
        ("application/x-amz-json-1.1", OVERWRITE),
        ("multipart/form-data; boundary=x", FORM_BODY),
    ],
)
def test_body_of_a_presigned_url_calls_no_other_service(state, kind, content_type, body):
    """Its body is not signed, and neither is what type it has; that S3 answers shows its header."""
    service, method, path, _ = CLAIMS[kind]
    request = claim(state, service, method, path, presigned=True)
    headers = {**request.headers, "Content-Type": content_type}
    answer = answer_of(state, replace(request, headers=headers, body=body))

    assert "CreateUserResponse" not in answer[2]
    assert "x-amz-id-2" in names(answer[1]) or code_of(answer) == "InvalidRequest"


@pytest.mark.parametrize("kind", ["presigned put", "put in chunks"])
@pytest.mark.parametrize(
    ("trailer", "value"),
    [
        ("x-amz-target", "AmazonSSM.PutParameter"), ("x-amz-meta-name", "owned"),
        ("authorization", "AWS x:y"),
    ],
)  # fmt: skip
def test_trailer_of_a_body_is_no_header(state, cloud, kind, trailer, value):
    service, method, path, options = CLAIMS[kind]
    body = f"4\r\nheld\r\n0\r\n{trailer}:{value}\r\nx-amz-checksum-crc32:El2I0Q==\r\n\r\n".encode()
    request = claim(state, service, method, path, **{**options, "body": body})
    headers = {"Content-Encoding": "aws-chunked", **request.headers}
    answer = answer_of(state, replace(request, headers=headers, body=body))
    stored = cloud.client("s3").get_object(Bucket="routing", Key="new")

    assert (200, "") == (answer[0], answer[2])
    assert b"held" == stored["Body"].read()
    assert {} == stored["Metadata"]
    assert value != stored["ContentType"]


def test_form_is_refused_whose_policy_nobody_checks(state):
    """With a signature of its own or not, S3 takes a form by the policy in it."""
    headers = {"Content-Type": "Multipart/form-data; boundary=x"}
    by_url = claim(state, "s3", "POST", "/routing", presigned=True)
    by_header = claim(state, "s3", "POST", "/routing", body=FORM_BODY, headers=headers)

    assert 400 == answer_of(state, replace(by_url, headers=headers, body=FORM_BODY))[0]
    assert 400 == answer_of(state, by_header)[0]
    assert 403 == send(state, "POST", "/routing", headers=headers, body=FORM_BODY)[0]


OTHER_SCOPES = [
    ("s3", "POST /", {"X-Amz-Target": "AmazonSSM.PutParameter"}, 400, "InvalidSignatureException"),
    ("ssm", "POST /", TABLES, 400, "InvalidSignatureException"),
    ("dynamodb", "POST /", {"X-Amz-Target": "SageMaker.ListTrainingJobs"},
     400, "InvalidSignatureException"),
    ("sts", "POST /", {"X-Amz-Target": "AmazonSQS.ListQueues"}, 403, "SignatureDoesNotMatch"),
    ("no-service", "GET /2015-03-31/functions", {}, 403, "InvalidSignatureException"),
    ("no-service", f"POST /?{CREATE_USER}", {}, 403, "SignatureDoesNotMatch"),
    *((scope, line, {}, 400, "AuthorizationHeaderMalformed") for scope, line in (
        ("no-service", "GET /routing/a"), ("glacier", "GET /-/vaults"),
        ("compilegate", "GET /routing/a"),
    )),
    *((scope, line, {}, 403, "AccessDenied") for scope, line in (
        ("s3", "GET /_compilegate/health"), ("s3", "POST /_ministack/reset"),
        ("compilegate", "POST /_ministack/reset"), ("s3", "POST /_ministack/config"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("scope", "line", "headers", "status", "code"), OTHER_SCOPES)
def test_scope_of_another_service_is_refused(state, scope, line, headers, *, status, code):
    answer = answer_of(state, claim(state, scope, *line.split(), headers=headers))

    assert (status, code) == (answer[0], code_of(answer))


def test_parameter_in_another_case_hides_no_scope(state):
    """It may be written so; ministack then sees no credential and goes by the Action."""
    request = claim(state, "s3", "POST", f"/?{CREATE_USER}", presigned=True, presigner=OddlyWritten)
    answer = answer_of(state, request)

    assert (403, "SignatureDoesNotMatch") == (answer[0], code_of(answer))


@pytest.mark.parametrize("presigned", [False, True])
def test_scope_decides_whatever_the_path_looks_like(state, presigned):
    """S3 has no such bucket; ministack would let the service answer that the path reminds it of."""
    for path in (one for one in PATHS if not one.startswith(("/_", "/routing"))):
        answer = answer_of(state, claim(state, "s3", "GET", path, presigned=presigned))
        assert code_of(answer) in ("NoSuchBucket", "InvalidBucketName"), path


CALLS = {
    "s3": "list_buckets", "dynamodb": "list_tables", "dynamodbstreams": "list_streams",
    "ssm": "describe_parameters", "sns": "list_topics", "sqs": "list_queues",
    "events": "list_rules", "scheduler": "list_schedules", "iam": "list_roles",
    "sts": "get_caller_identity", "cloudformation": "list_stacks", "cloudwatch": "list_metrics",
    "logs": "describe_log_groups", "lambda": "list_functions", "kms": "list_keys",
    "stepfunctions": "list_state_machines", "sagemaker": "list_training_jobs",
    "resourcegroupstaggingapi": "get_resources", "ec2": "describe_vpcs",
}  # fmt: skip


def own_session(state, key):
    return boto3.Session(key.access_key, key.secret_key, key.token, region_name=state.region)


@pytest.mark.parametrize("service", CALLS)
def test_sdk_reaches_every_service(state, session, service):
    own = own_session(state, session).client(service, endpoint_url=state.endpoint)
    for client in (own, state.client(service)):
        answer = getattr(client, CALLS[service])()

        assert 200 == answer["ResponseMetadata"]["HTTPStatusCode"]


def test_what_sdks_do_with_objects(state, cloud):
    """Uploads of streams, copies, metadata, parts, many deletions, and URLs for all of it."""
    s3 = cloud.client("s3")
    s3.upload_fileobj(io.BytesIO(b"streamed"), "routing", "x/streamed")
    s3.copy_object(Bucket="routing", Key="x/copy", CopySource="routing/x/streamed")
    s3.put_object(Bucket="routing", Key="x/meta", Body=io.BytesIO(b"m"), Metadata={"name": "ü"[:0]},
                  ACL="private", ChecksumAlgorithm="SHA256", IfNoneMatch="*")  # fmt: skip
    part = s3.create_multipart_upload(Bucket="routing", Key="x/parts")["UploadId"]
    etag = s3.upload_part(Bucket="routing", Key="x/parts", PartNumber=1, UploadId=part, Body=b"p")
    s3.complete_multipart_upload(
        Bucket="routing", Key="x/parts", UploadId=part,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag["ETag"]}]},
    )  # fmt: skip
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket="routing", Prefix="x/")["Contents"]]

    assert ["x/copy", "x/meta", "x/parts", "x/streamed"] == keys
    deleted = s3.delete_objects(
        Bucket="routing", Delete={"Objects": [{"Key": key} for key in keys]}
    )["Deleted"]
    assert len(keys) == len(deleted)


TYPED = {"Key": "new", "ContentType": "text/plain"}
NAMED = {"Key": "new", "Metadata": {"name": "value"}}
URLS = [
    ("get_object", {"Key": "a"}, "GET", {}),
    ("head_object", {"Key": "a"}, "HEAD", {}),
    ("put_object", {"Key": "new"}, "PUT", TEXT),  # of a type that is not signed
    ("put_object", TYPED, "PUT", TEXT),
    ("put_object", NAMED, "PUT", {"x-amz-meta-name": "value"}),
    ("list_objects_v2", {}, "GET", {}),
    ("delete_object", {"Key": "absent"}, "DELETE", {}),
]


@pytest.mark.parametrize("with_token", [False, True])
def test_urls_that_sdks_presign(state, session, with_token):
    own = own_session(state, session if with_token else Credentials("0" * 12, state.secret))
    config = Config(s3={"addressing_style": "path"}, signature_version="s3v4")
    client = own.client("s3", endpoint_url=state.endpoint, config=config)
    for call, what, method, headers in URLS:
        url = client.generate_presigned_url(call, Params={"Bucket": "routing", **what})
        path = url.removeprefix(state.endpoint)
        answer = send(state, method, path, headers=headers, body=b"new" * (method == "PUT"))

        assert answer[0] in (200, 204), (call, what)

"""Every Markdown and message that leaves, with hostile texts wherever a job or a person may write.

Not a list of fields: each string of the records that a document is made of is replaced in turn, so
that a new field is tried as well. What a text in it would break, a code or a date, is left.
"""

import json
from collections.abc import Mapping
from copy import deepcopy

import pytest

from compilegate.domain.claims import Notification
from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.production.history import history
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import Author
from compilegate.domain.records.production import Review
from compilegate.report.history.render import render_history
from compilegate.report.history.view import HistoryView
from compilegate.report.notifications.review import ReviewNews, paragraphs
from tests.hostile_texts import HOSTILE
from tests.report import histories, samples
from tests.report.readers import LOOKS, OURS, URL, acting
from tests.report.samples import rendered
from tests.report.test_notifications import AT, MESSAGES, ON, changed, failed, waits
from tools.verify_aws.record import Agreement, Record, Row

# One of each kind; how each is made harmless, tests/domain/test_escaping.py tries.
TEXT = (
    "[x](javascript:alert(1)) ![x](http://evil.example) <b>b</b> www.evil.example @octocat #123 "
    "<!channel> ~~no~~ `x` \u202e | b\n\n[y]: http://evil.example\n```\n- [x][y]\n"
)


def places(value, path=()):
    """Where strings are; the items of a list are one place."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from places(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from places(item, (*path, "[]"))


def replaced(value, path, text):
    """A copy of a document with another text at a place."""
    if not path:
        return text if isinstance(value, str) else value
    first, *rest = path
    if isinstance(value, Mapping):
        return {
            key: replaced(item, tuple(rest), text) if key == first else item
            for key, item in value.items()
        }
    if isinstance(value, list | tuple) and first == "[]":
        return [replaced(item, tuple(rest), text) for item in value]
    return value


@pytest.mark.parametrize("sample", [samples.promote, samples.profiled])
def test_in_a_report_no_text_of_the_records_acts(sample):
    source = sample()
    plan = source.pop("plan")
    shown = set()
    for path in dict.fromkeys(places(source)):
        hostile = {**replaced(deepcopy(source), path, TEXT), "plan": plan}
        try:
            report = rendered(hostile)
        except (ValueError, KeyError):
            continue  # a code of the contract
        assert [] == acting(report.markdown), path
        check(message(report.subject, report.message), path)
        if "octocat" in report.markdown:
            shown.add(path)

    assert ("context", "trial") in shown
    assert ("decision", "reasons", "[]", "message") in shown
    kernel = ("evidence", "arms", "[]", "runs", "[]", "profile", "kernels", "[]", "name")
    assert (kernel in shown) == (sample is samples.profiled)


def test_in_a_history_no_text_of_the_ledger_acts():
    entries = [*histories.entries(36, changes=5), *OTHERS]
    kinds = dict.fromkeys(entry["kind"] for entry in entries)
    shown = set()
    for kind in kinds:
        of_kind = [entry for entry in entries if entry["kind"] == kind]
        for path in dict.fromkeys(path for entry in of_kind for path in places(entry)):
            hostile = [
                replaced(one, path, TEXT) if one["kind"] == kind and path != ("kind",) else one
                for one in entries
            ]
            try:
                markdown = page(hostile)
            except UnreadableRecordError:  # a flag that cannot be read may be on
                continue
            assert [] == acting(markdown), (kind, path)
            if "octocat" in markdown:
                shown.add((kind, path))

    assert {
        ("run", ("result", "reason")),
        ("flag", ("reason",)),
        ("unlocked", ("reason",)),
    } <= shown


OTHERS = [
    {"kind": "unlocked", "at": 1_790_000_100, "execution": "e", "by": "human:ada", "reason": "r"},
    {"kind": "run_waiting", "at": 1_790_000_200, "run": "r9", "attempt": 1, "job": "j", "arm": "a",
     "reason": "none", "wait_seconds": 300, "next_instance_type": "ml.g5.xlarge"},
    {"kind": "job_ignored", "at": 1_790_000_300, "job": "nightly", "role": "arn:etl",
     "code": "job_of_another_role"},
    {"kind": "failed", "at": 1_790_000_400, "trial": "t2", "reason": "r"},
    {"kind": "decided", "at": 1_790_000_500, "trial": "t1", "verdict": "promote",
     "decision_key": "decisions/t1", "decision_id": "d", "reasons": ["compile: proven"]},
]  # fmt: skip


def page(entries, name="bert-docs", metric="loss"):
    quality = {"metric": metric, "goal": "minimize", "margin": 0.05}
    view = HistoryView(name, history(entries), "prod", workload={"quality": quality})
    return render_history(view).markdown


def test_in_a_history_neither_name_nor_metric_acts():
    markdown = page(list(histories.entries(6)), TEXT, TEXT)

    assert "octocat" in markdown
    assert [] == acting(markdown)


FIELDS = ("subject", "text", "workload", "owner", "verdict", "decision_id", "act")


def message(subject, text, **more):
    return Notification("failed", "prod", subject, text, **more)


def check(notification, about=None):
    """That no text of a message acts on who reads it in a chat or in a mail."""
    own = [notification.link] if notification.link else []
    texts = json.loads(notification.envelope())
    chat = json.loads(texts["https"])
    content, metadata = chat["content"], chat["metadata"]
    for text in (
        content["title"], content["description"], metadata["summary"], *content["keywords"],
        *metadata["additionalContext"].values(),
    ):  # fmt: skip
        assert [] == acting(text, LOOKS, [*own, *(one.replace("&", "&amp;") for one in own)]), about
        assert not set("<>`") & set(text), about
    for step in content.get("nextSteps", ()):
        assert {"p", "code"} == {kind for kind, _ in acting(step, ())}, about
    assert len(own) >= len(URL.findall(texts["email"])), about
    assert not URL.search(texts["sms"]), about


@pytest.mark.parametrize("name", [name for name, *_ in MESSAGES])
def test_in_a_message_no_text_acts(name):
    (made,) = [make() for one, _, make in MESSAGES if one == name]
    for field in FIELDS:
        check(Notification(**{**vars(made), field: TEXT}), field)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_text_acts_alone(text):
    check(Notification(kind="failed", stage="prod", **dict.fromkeys(FIELDS, text)), text)


def test_the_links_of_ours_stay():
    own = "https://us-east-1.console.aws.amazon.com/s3/object/data?region=us-east-1&prefix=a%2Fb"
    made = message("s", f"Report: {own}\nreason: {TEXT}", link=own)
    texts = json.loads(made.envelope())

    check(made)
    assert [own] == [word for word in texts["email"].split() if URL.match(word)]
    assert own.replace("&", "&amp;") in json.loads(texts["https"])["content"]["description"]


LINES = "first\r\nApprove: compilegate flag approve other\n\n- forged\x85forged"


def held(why):
    author = Author("human:ana", AT, why)
    review = Review(AT, "r1", "t1", notes=(Reason("not_measured", why),))
    news = ReviewNews("bert-docs", "prod", review, ON, held_by=author)
    return message("s", "\n\n".join(paragraphs(news, None, None)))


@pytest.mark.parametrize("make", [changed, failed, waits, held])
def test_a_text_adds_no_line_to_a_message(make):
    lines = make(LINES).message.splitlines()

    assert [] == [line for line in lines if line.startswith(("Approve", "- forged", "forged"))]
    assert [] != [line for line in lines if "Approve: compilegate flag approve other" in line]


def test_in_the_record_of_a_verification_no_text_of_the_service_acts():
    rows = [Row("id", "Words of ours", "assumed", TEXT, Agreement.DIFFERS, TEXT)]
    page = Record({"region": TEXT}, rows).page()

    acts = [one for one in acting(page, OURS | {"h1", "code"}) if one != OUR_LINK]
    assert [] == acts
    assert "octocat" in page


OUR_LINK = ("a", "../tools/verify_aws/README.md")

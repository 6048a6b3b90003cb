"""The state that tells the topic, the same in every machine.

Its input is what a function answered: ``subject``, ``message`` and ``notification``
(compilegate/domain/notification.py). Without the last, where the function itself failed, the two
texts, and ``owner`` where it is known, are put into the same shape here.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.notification import SUBJECT_MAX
from stacks.states import State, jsonata, retry

_INPUT = "$states.input"
_PLAIN = (
    "$string({"
    f"'default': $string({{'schema': 1, 'kind': 'failed', 'subject': {_INPUT}.subject,"
    f" 'text': {_INPUT}.message}}),"
    f" 'email': {_INPUT}.message,"
    " 'https': $string({'version': '1.0', 'source': 'custom', 'content': {"
    f"'textType': 'client-markdown', 'title': {_INPUT}.subject, 'description': {_INPUT}.message"
    "}})})"
)
_HAS_NOTIFICATION = f"$exists({_INPUT}.notification)"
# An owner's subscription is told nothing that does not name the owner.
_OWNER = f"{_INPUT}.owner"
_PLAIN_ATTRIBUTES = (
    f"$boolean({_OWNER}) ? {{'owner': {{'DataType': 'String', 'StringValue': {_OWNER}}}}} : {{}}"
)


def notify(topic_arn: str, *, then: str, catches: Sequence[State]) -> State:
    """Publish the input and go on to ``then``; whatever fails goes where ``catches`` say."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Arguments": {
            "TopicArn": topic_arn,
            "Subject": jsonata(f"$substring({_INPUT}.subject, 0, {SUBJECT_MAX})"),
            "MessageStructure": "json",
            "Message": jsonata(f"{_HAS_NOTIFICATION} ? {_INPUT}.notification.message : {_PLAIN}"),
            "MessageAttributes": jsonata(
                f"{_HAS_NOTIFICATION} ? {_INPUT}.notification.attributes : ({_PLAIN_ATTRIBUTES})"
            ),
        },
        "Output": {},
        "TimeoutSeconds": 60,
        "Retry": [retry(["States.TaskFailed"], seconds=1, attempts=3)],
        "Catch": list(catches),
        "Next": then,
    }

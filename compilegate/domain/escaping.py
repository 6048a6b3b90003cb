"""Text that is not ours in what leaves: one function for each medium.

Jobs, workload files and people write what they like, and a reader's program makes links, pictures,
mentions and markup of some of it. Here it is shown as it was written and does nothing. Where a
medium has no escape, a zero-width space breaks what would act; people read over it. Bare host names
(``train.py``, ``example.com``) stay: what links them shows where to.

Rules: CommonMark 0.31 and GitHub Flavored Markdown 0.29 (extended autolinks), "Autolinked
references and URLs" and "Mentioning people and teams" of GitHub's documentation, "Formatting text
for app surfaces" of Slack's, "Format text in Teams with Markdown" of Microsoft's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce

from compilegate.domain.outside import visible

BREAK = "\N{ZERO WIDTH SPACE}"
_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
# An address, a mention of a person, a URL of any scheme. A host that begins so is a link as well.
ADDRESSES = (("@", f"@{BREAK}"), ("://", f":{BREAK}//"), ("www.", f"www{BREAK}."))
_WWW = re.compile(r"(?i)(www)\.")
# What is replaced character by character, in the state machines as well (stacks/states.py).
# Of chat: Slack's own markup is in angle brackets; Teams has Markdown without its escapes.
CHAT = (
    *_ENTITIES, *ADDRESSES, ("`", "'"), ("](", f"]{BREAK}("), ("][", f"]{BREAK}["),
    ("]:", f"]{BREAK}:"),
)  # fmt: skip
# An issue or a channel: #12, GH-12, #general.
_REFERENCE = re.compile(r"(?i)(#|(?<![a-z0-9])gh-)(?=\w)")
_MARKUP = re.compile(r"[\\`*_\[\]|~#!]")
# What makes a list or a heading of the line that it begins.
_OPENING = re.compile(r"^(\d{0,9})([-+=.)])(?=\s|$|[-=])")
# Two of them strike words out, three begin code; before a path it is a home folder.
_TILDE = re.compile(r"~(?!/)|(?<=\S)~")
# "CSV Injection" of OWASP.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_INDENTED = re.compile(r"(?m)^(?: {4,}|\t+ *| {1,3}\t)[ \t]*")


def escape_markdown(text: str) -> str:
    """One line for a Markdown document, wherever in a line of it."""
    flat = _replaced(" ".join(visible(str(text)).split()), _ENTITIES)
    flat = _OPENING.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", flat))
    return _without_links(_REFERENCE.sub(rf"\1{BREAK}", flat))


def escape_chat(text: str, own: Sequence[str] = ()) -> str:
    """The text of a message to a chat channel; URLs in ``own`` that stand alone stay links."""
    return _between(own, _chat_piece, text, partial(_replaced, pairs=_ENTITIES))


def escape_chat_code(text: str) -> str:
    """A command as a piece of code in a chat channel, which makes nothing of what is in it."""
    flat = _replaced(" ".join(visible(text).split()), _ENTITIES)
    return f"`{flat.replace('`', chr(39))}`"


def escape_mail(text: str, own: Sequence[str] = ()) -> str:
    """The text of a plain mail; URLs in ``own`` that stand alone stay links."""
    return _between(own, _without_links, text, str)


def escape_line(text: str) -> str:
    """A subject or a text message: ASCII, so that a space breaks what would be a link."""
    return _WWW.sub(r"\1 .", text.replace("://", ": //"))


def escape_cell(value: object) -> object:
    """A cell of a CSV file: spreadsheets compute texts that begin like a formula."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text[:1] in _FORMULA else text


def _chat_piece(text: str) -> str:
    plain = _INDENTED.sub("   ", _TILDE.sub("\N{TILDE OPERATOR}", visible(text)))
    return _REFERENCE.sub(rf"\1{BREAK}", _WWW.sub(rf"\1{BREAK}.", _replaced(plain, CHAT)))


def _without_links(text: str) -> str:
    return _WWW.sub(rf"\1{BREAK}.", _replaced(text, ADDRESSES))


def _replaced(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    return reduce(lambda one, pair: one.replace(*pair), pairs, text)


def _between(
    own: Sequence[str], theirs: Callable[[str], str], text: str, ours: Callable[[str], str]
) -> str:
    """The text with each of our URLs as ``ours`` has it, and all between as ``theirs`` has it."""
    if not own:
        return theirs(text)
    urls = "|".join(re.escape(url) for url in own)
    pieces = re.split(rf"(?<!\S)({urls})(?!\S)", text)
    return "".join(ours(one) if place % 2 else theirs(one) for place, one in enumerate(pieces))

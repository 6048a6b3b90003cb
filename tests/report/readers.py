"""What readers make of a text: GitHub's own parser of Markdown, another one, rules of chats."""

from __future__ import annotations

import re
from collections.abc import Collection
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt

# What our templates write; emphasis, links, pictures, code and HTML are none of it.
OURS = frozenset(
    ["p", "h3", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "blockquote"]
)
# What a message in a chat may look like: a team's asterisks and lists do no harm.
LOOKS = OURS | frozenset(["em", "h1", "h2", "h4", "h5", "h6", "hr", "ol", "br"])
# Of texts between tags, on GitHub: people and teams, issues; and of any reader: direction marks.
MENTIONS = re.compile(r"(?<![\w`])@[A-Za-z0-9]|(?:#|(?<![A-Za-z0-9])(?:GH|gh)-)\d")
DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
URL = re.compile(r"(?i)[a-z][a-z0-9+.-]*://\S|\bwww\.\S")
_OTHER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.in_code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, str(dict(attrs).get("href") or dict(attrs).get("src") or "")))
        self.in_code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self.in_code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if not self.in_code:  # where nobody is mentioned
            self.tags += [("mention", data)] if MENTIONS.search(data) else []
        self.tags += [("direction", data)] if DIRECTION.search(data) else []

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", data))

    def unknown_decl(self, data: str) -> None:
        self.tags.append(("declaration", data))

    def handle_pi(self, data: str) -> None:
        self.tags.append(("instruction", data))

    def handle_decl(self, decl: str) -> None:
        self.tags.append(("declaration", decl))


def _read(html: str) -> _Page:
    page = _Page()
    page.feed(html)
    page.close()
    return page


def pages(markdown: str) -> list[_Page]:
    """What each parser makes of it, raw HTML included."""
    markdown = markdown.encode(errors="replace").decode()
    github = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    return [_read(github), _read(_OTHER.render(markdown))]


def acting(
    markdown: str, allowed: Collection[str] = OURS, own: Collection[str] = ()
) -> list[tuple[str, str]]:
    """Links, pictures, code, HTML and mentions in a document, beside the URLs in ``own``."""
    return [
        (tag, target)
        for page in pages(markdown)
        for tag, target in page.tags
        if tag not in allowed and not (tag == "a" and target in own)
    ]


def words(markdown: str) -> str:
    """What GitHub's parser shows, in one line, without what takes no space."""
    return shown("".join(pages(markdown)[0].text))


def shown(text: str) -> str:
    """A text as a person sees it."""
    return " ".join(text.replace("\u200b", "").split())

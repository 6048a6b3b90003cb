"""Stores answers, reads them back, and says where two of them differ."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.frozen.wording import without_wording

DATA = Path(__file__).parent / "data"
SHORT = 40
MISSING = "(absent)"


@dataclass(frozen=True)
class Case:
    """One question; ``whole`` keeps the answer itself, otherwise a digest of each field."""

    id: str
    answer: Callable[[], Any]
    whole: bool = True


@dataclass(frozen=True)
class Difference:
    """One place where an answer is not the recorded one."""

    case: str
    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.case}: {self.path or '.'}\n    before {_shown(self.before)}\n    after  {_shown(self.after)}"  # noqa: E501


def canonical(value: Any) -> str:
    """JSON with sorted keys; figures as Python writes them."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def stored(case: Case) -> Any:
    """What is kept of the answer to a case, as it reads after a round trip through JSON."""
    answer = without_wording(json.loads(json.dumps(case.answer())))
    return answer if case.whole else _digested(answer)


def record(part: str, cases: Sequence[Case]) -> None:
    """Write the part's answers."""
    lines = [canonical([case.id, stored(case)]) for case in cases]
    assert len({case.id for case in cases}) == len(cases), "two cases have one id"
    DATA.mkdir(exist_ok=True)
    body = ("\n".join(lines) + "\n").encode()
    (DATA / f"{part}.jsonl.gz").write_bytes(gzip.compress(body, compresslevel=9, mtime=0))


def recorded(part: str) -> dict[str, Any]:
    """The part's answers by case."""
    text = gzip.decompress((DATA / f"{part}.jsonl.gz").read_bytes()).decode()
    return dict(json.loads(line) for line in text.splitlines())


def compare(part: str, cases: Sequence[Case], *, all_cases: bool = True) -> Iterator[Difference]:
    """Where today's answers differ; ``all_cases`` also reports recorded ones that have gone."""
    before = recorded(part)
    if all_cases:
        for gone in sorted(before.keys() - {case.id for case in cases}):
            yield Difference(gone, "", "recorded", MISSING)
    for case in cases:
        if case.id not in before:
            yield Difference(case.id, "", MISSING, "new: record it")
            continue
        # What has been declared as wording since is none in the recording either.
        old_answer = without_wording(before[case.id]) if case.whole else before[case.id]
        for path, old, new in differences(old_answer, stored(case)):
            yield Difference(case.id, path, old, new)


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Paths at which two documents differ, deepest first known, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            pair = before.get(key, MISSING), after.get(key, MISSING)
            yield from differences(*pair, f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(after, list):
        for index, pair in enumerate(zip_longest(before, after, fillvalue=MISSING)):
            yield from differences(*pair, f"{path}[{index}]")
    elif canonical(before) != canonical(after):  # 1 and 1.0 and true are not the same text
        yield path, before, after


def _digested(answer: Any) -> Any:
    """Each field in full where it is short, else the first digits of its digest."""
    if isinstance(answer, dict) and set(answer) == {"exit", "json"}:
        return {"exit": answer["exit"], "json": _digested(answer["json"])}
    if not isinstance(answer, dict):
        return answer
    return {key: _short(value) for key, value in answer.items()}


def _short(value: Any) -> Any:
    text = canonical(value)
    return value if len(text) <= SHORT else f"#{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _shown(value: Any) -> str:
    text = canonical(value)
    return text if len(text) <= 200 else f"{text[:197]}…"

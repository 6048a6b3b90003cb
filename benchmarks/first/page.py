"""The kept results as the tables of the README here."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.decision.tables import table
from compilegate.domain.arithmetic import median

PAGE = Path(__file__).with_name("README.md")
KEPT = Path(__file__).with_name("results.json")
Result = Mapping[str, Any]
AIM_MINUTES = 3.0


def write() -> None:
    """Bring the page up to date."""
    results = json.loads(KEPT.read_text())
    text = PAGE.read_text()
    for name, part in (("scripts", _scripts(results)), ("long runs", _long(results))):
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{part}\n{end}{after}"
    PAGE.write_text(text)


def _scripts(results: Mapping[str, Result]) -> str:
    counts = Counter(one["outcome"] for one in results.values())
    repositories = {name.split()[0] for name in results}
    head = ("script", "kind", "minutes", "of a core", "questions", "outcome", "what it lacked")
    rows = [
        (_short(name), one["kind"], _minutes(one), _core(one),
         str(one.get("questions", "")), one["outcome"], _lacked(one))
        for name, one in sorted(results.items())
    ]  # fmt: skip
    share = 100 * counts["answer"] / max(len(results), 1)
    said = (
        f"{len(results)} scripts of {len(repositories)} repositories: {counts['answer']} reached "
        f"the answer ({share:.0f} of 100), of {counts['not compiled']} `first` says that the "
        f"compiler fails on them, of {counts['file']} there is the file without a gain; every "
        "other named its cause."
    )
    return f"{said} {_pace(results.values())}\n\n{table(head, rows)}"


def _pace(results: Iterable[Result]) -> str:
    """The time until the answer, where the machine did little else for it."""
    quiet = [one for one in results if _own_core(one) and one["outcome"] == "answer"]
    if not quiet:
        return ""
    minutes = [one["minutes"] for one in quiet]
    within = sum(one <= AIM_MINUTES for one in minutes)
    shares = [
        sum(run["compile_seconds"] or 0.0 for run in one["runs"]) / 60 / one["minutes"]
        for one in quiet
    ]
    return (
        f"Minutes to the answer of the {len(quiet)} that were run with a core of their own: median "
        f"{median(minutes):.1f}, {within} within {AIM_MINUTES:g}, the longest {max(minutes):.1f}; "
        f"compiling is {100 * median(shares):.0f} % of it (median)."
    )


def _own_core(result: Result) -> bool:
    """Whether it ran before all else on its machine; the first rows did not."""
    return int(result.get("nice", 0)) < 0


def _minutes(result: Result) -> str:
    return f"{result['minutes']:.1f}" + ("" if _own_core(result) else " (shared)")


def _core(result: Result) -> str:
    """Minutes of one core; the first scripts were run before these were counted."""
    return f"{result['cpu_minutes']:.1f}" if "cpu_minutes" in result else ""


def _lacked(result: Result) -> str:
    parts = (result["problem"], result.get("fix"))
    text = "; ".join(" ".join(part.split())[:220] for part in parts if part)
    return text.replace("|", "\\|")


def _short(name: str) -> str:
    """Repository, path, and enough of the arguments to tell two runs of one script apart."""
    repository, path, *words = name.split()
    variant = next((one for one in words if one in ("--use-optimizer", "--compile=False")), "")
    return " ".join(part for part in (repository, path, variant) if part)


def _long(results: Mapping[str, Result]) -> str:
    head = ("script", "steps", "seconds, as it is", "compiled", "measured", "predicted", "interval",
            "steady, measured", "predicted", "compiling, s", "predicted")  # fmt: skip
    long = {name: one for name, one in sorted(results.items()) if "long" in one}
    rows = [_long_row(name, one["long"], one["gain"]) for name, one in long.items()]
    if not rows:
        return "Not measured yet."
    within = sum(low <= one["long"]["measured"] <= high for one in long.values()
                 for low, high in [one["long"]["interval"]])  # fmt: skip
    off = [abs(math.log(one["long"]["predicted"] / one["long"]["measured"]))
           for one in long.values()]  # fmt: skip
    widths = [math.log(high / low) / 2 for one in long.values()
              for low, high in [one["long"]["interval"]]]  # fmt: skip
    said = (
        f"{len(rows)} scripts: {within} measured gains lie in the predicted interval. The "
        f"prediction is off by {100 * (math.exp(median(off)) - 1):.0f} % (median), "
        f"{100 * (math.exp(max(off)) - 1):.0f} % at most; the interval is the prediction divided "
        f"and multiplied by {math.exp(median(widths)):.2f} (median)."
    )
    return f"{said}\n\n{table(head, rows)}"


def _long_row(name: str, long: Result, gain: Result) -> tuple[str, ...]:
    figures = (
        long["measured"], long["predicted"], *long["interval"], long["steady"], gain["steady"],
    )  # fmt: skip
    measured, predicted, low, high, steady, predicted_steady = (f"{one:.2f}" for one in figures)
    return (
        _short(name), str(long["steps"]), *(f"{one:.1f}" for one in long["seconds"]), measured,
        predicted, f"{low} to {high}", steady, predicted_steady,
        f"{long['overhead_seconds']:.0f}", f"{gain['overhead_seconds']:.0f}",
    )  # fmt: skip


if __name__ == "__main__":
    write()

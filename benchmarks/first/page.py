"""The kept results as the tables of the README here."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.decision.tables import table
from compilegate.domain.arithmetic import mean, median
from compilegate.domain.economics import AtLength
from compilegate_init.first.answer import at_length

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


def predicted(result: Result, seconds: float) -> AtLength:
    """What ``first`` says of a run of so many seconds, from the runs that it has made."""
    of_seeds: dict[int, dict[bool, float]] = {}
    for run in result["runs"]:
        if run["step_seconds"]:
            of_seeds.setdefault(run["seed"], {})[run["compiled"]] = run["step_seconds"]
    logs = [math.log(one[False] / one[True]) for one in of_seeds.values() if len(one) == 2]
    return at_length(seconds, logs, result["gain"]["spread"], result["gain"]["overhead_seconds"])


def _long(results: Mapping[str, Result]) -> str:
    head = ("script", "steps", "seconds, as it is", "compiled", "measured", "predicted", "interval")
    runs = [(name, one["long"], predicted(one, one["long"]["seconds"][0]))
            for name, one in sorted(results.items()) if "long" in one]  # fmt: skip
    if not runs:
        return "Not measured yet."
    within = sum(at.interval[0] <= long["measured"] <= at.interval[1] for _, long, at in runs)
    off = [abs(math.log(at.speedup / long["measured"])) for _, long, at in runs]
    widths = [math.log(at.interval[1] / at.interval[0]) / 2 for _, _, at in runs]
    rows = [
        (_short(name), str(long["steps"]), *(f"{one:.1f}" for one in long["seconds"]),
         f"{long['measured']:.2f}", f"{at.speedup:.2f}", "{:.2f} to {:.2f}".format(*at.interval))
        for name, long, at in runs
    ]  # fmt: skip
    said = (
        f"{len(rows)} scripts: {within} measured gains lie in the predicted interval, which is on "
        f"average a factor of {math.exp(mean(widths)):.2f} to either side. The prediction itself "
        f"is off by a factor of {math.exp(median(off)):.2f} (median), {math.exp(max(off)):.2f} at "
        "most."
    )
    return f"{said}\n\n{table(head, rows)}"


if __name__ == "__main__":
    write()

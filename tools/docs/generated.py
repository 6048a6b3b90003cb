"""The parts of pages made from code and data; ``python -m tools.docs`` writes them anew."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from compilegate import facts
from compilegate.domain import naming
from compilegate.domain.claims import Notification, command_at, decision_notification, subject_line
from compilegate.domain.compilers import COMPILERS as DESCRIPTORS
from compilegate.domain.compilers import Compiler, ComputeSpeedup
from compilegate.domain.console import s3_object
from compilegate.domain.decision import (
    ComparedRuns,
    DecidedFlag,
    Decision,
    FlagAction,
    QualityFigures,
    QualityRuns,
    SpeedSource,
    Speedup,
    Verdict,
)
from compilegate.domain.expected import REQUIRED, Key
from compilegate.domain.fields import LARGEST
from compilegate.domain.formats import duration
from compilegate.domain.judging.equivalence import upper_bound
from compilegate.domain.reasons import Reason, ReasonKind, Severity, registry
from compilegate.domain.workload.file import VERSION
from compilegate.domain.workload.model import Workload, library
from compilegate_doctor import COMPILERS, RULES
from compilegate_init.schema import workload_schema
from tools.docs import examples, pictures, tutorial, worked_example
from tools.docs.folders import with_imports
from tools.docs.markdown import between, table
from tools.verify_aws.assumptions import Assumption, load_assumptions

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ELIGIBILITY, REASONS = DOCS / "eligibility.md", DOCS / "reasons.md"
ASSUMPTIONS = ROOT / "tools" / "verify_aws" / "README.md"
MEASUREMENTS = ROOT / "benchmarks" / "README.md"
NOTIFICATIONS = DOCS / "notifications.md"
SEVERITY = re.compile(r"^\*\*`(?P<severity>[a-z]+)`\*\*")
REASON_ROW = re.compile(
    r"^\| (?P<codes>`[a-z0-9_]+`[^|]*?) \| (?:(?P<severities>[a-z, ]+) \| )?[^|]+ \|$", re.MULTILINE
)
CHANGED = re.compile(r"(?P<begin>.* what was proven) in (?P<what>.*)(?P<end>; .*)")
EXAMPLE = re.compile(r"(?P<begin><!-- decision -->\n```json\n).*?(?P<end>```\n)", re.DOTALL)


def documented_codes(page: str) -> dict[str, set[str]]:
    """Each reason code of a page's tables with the severities of its row, or of its table."""
    codes: dict[str, set[str]] = {}
    above = ""
    for line in page.splitlines():
        if title := SEVERITY.match(line):
            above = title["severity"]
        if row := REASON_ROW.match(line):
            severities = (row["severities"] or above).split(", ")
            codes |= {code: set(severities) for code in re.findall(r"`(\w+)`", row["codes"])}
    return codes


def _text(kind: ReasonKind) -> str:
    return f"{kind.meaning} {kind.fix}".rstrip()


def eligibility(page: str) -> str:
    """The rows of the registry, in the places that the page gives them."""

    def row(match: re.Match[str]) -> str:
        kind = registry()[match["codes"].strip("`")]
        severities = ", ".join(map(str, kind.severities))
        return f"| {match['codes']} | {severities} | {_text(kind)} |"

    return REASON_ROW.sub(row, page)


def reasons(page: str) -> str:
    """The codes of trials and of production by severity; those of a changed job share a row."""
    for name in ("trial", "production"):
        kinds = {code: kind for code, kind in registry().items() if kind.page == name}
        parts = [
            f"**`{severity}`**\n\n{table(('code', 'meaning, and what helps'), rows)}"
            for severity in Severity
            if (rows := _reason_rows(kinds, severity))
        ]
        page = between(page, name, "\n".join(parts))
    return page


def _reason_rows(kinds: Mapping[str, ReasonKind], severity: Severity) -> list[tuple[str, str]]:
    own = {code: kind for code, kind in sorted(kinds.items()) if kind.severities == (severity,)}
    changed = {code: match for code, kind in own.items() if (match := CHANGED.match(kind.meaning))}
    rows = [(f"`{code}`", _text(kind)) for code, kind in own.items() if code not in changed]
    if changed:
        first = next(iter(changed))
        codes = ", ".join(_changed(code, match["what"]) for code, match in changed.items())
        begin, end = changed[first].group("begin", "end")
        rows.append((codes, f"{begin}{end} {kinds[first].fix}"))
    return rows


def _changed(code: str, what: str) -> str:
    """The code, with what it is about where its name does not say that."""
    about = re.sub(r"^(.*) that the job recorded$", r"recorded \1", what.removeprefix("the "))
    plain = about == code.removesuffix("_changed").replace("_", " ")
    return f"`{code}`" if plain else f"`{code}` ({about})"


def doctor_rules(page: str) -> str:
    """The rules of the doctor, by the compilers that they are about."""
    titles: dict[tuple[str, ...], str] = {COMPILERS: "Every compiler"}
    titles |= {(name,): DESCRIPTORS[name].title for name in COMPILERS}
    sections = []
    for compilers, title in titles.items():
        rows = [
            f"- [`{rule.id}`]({rule.link}) ({rule.severity}): {rule.title}. {rule.why}\n"
            for rule in RULES
            if rule.compilers == compilers
        ]
        sections.append(f"### {title}\n\n{''.join(rows)}")
    return between(page, "rules", "\n".join(sections))


def how_it_decides(page: str) -> str:
    """A trial, the worked example, how many runs a proof takes, and classes of the check."""
    page = between(page, "trial", pictures.trial())
    page = between(page, "example", table(worked_example.HEAD, worked_example.rows()))
    return examples.with_output(between(page, "classes", _classes()))


def _classes() -> str:
    rows = [
        (f"{row['framework']}, {row['device']}, {row['precision']}",
         *map(str, (row["faults"], row["missed"])),
         f"{upper_bound(row['missed'], row['faults']):.3f}", row["date"])
        for row in facts.read("equivalence")["classes"]
    ]  # fmt: skip
    head = ("class", "harmful faults", "missed", "at most missed", "date")
    return table(head, rows) if rows else "This release knows no class.\n"


def compilers(page: str) -> str:
    """Every compiler that a candidate may name."""
    rows = [
        f"- `{one.name}`: {one.title}. Needs {_needs(one)}; {_modes(one)}"
        f"{_keeps(one)}; assumed gain "
        f"{_gain(one.compute_speedup)}. Proof: {one.proof}\n"
        for one in DESCRIPTORS.values()
    ]
    return between(page, "compilers", "".join(rows))


def _modes(compiler: Compiler) -> str:
    modes = ", ".join(f"`{mode}`" for mode in compiler.modes)
    return f"`compile_mode` {modes}; " if modes else ""


def _needs(compiler: Compiler) -> str:
    if compiler.kind is None or compiler.since is None:
        return "images of its own"
    return f"{library(compiler.kind)} {'.'.join(map(str, compiler.since))}"


def _keeps(compiler: Compiler) -> str:
    if not compiler.compiles:
        return "compiles nothing"
    return "keeps a cache" if compiler.keeps_cache else "keeps no cache"


def _gain(assumed: ComputeSpeedup | None) -> str:
    return "—" if assumed is None else f"{assumed.low:g} to {assumed.high:g}"


def schema_text() -> str:
    """What `compilegate schema` prints."""
    return json.dumps(workload_schema(), indent=2) + "\n"


def workload_keys(page: str) -> str:
    """Every key of the workload file, by section."""
    sections = dict(_sections("", {"schema": VERSION, **Workload.keys()}))
    shared = {section: _shared(section, sections) for section in sections}
    same = {section: like for section, (like, names) in shared.items()
            if names == list(sections[section])}  # fmt: skip
    parts = []
    for section, keys in sections.items():
        like, names = shared[section]
        rows = [
            _key_row(name, key, same.get(_path(section, name, key)))
            for name, key in keys.items() if name not in names
        ]  # fmt: skip
        if names:
            listed = ", ".join(_key_name(name, keys[name]) for name in names)
            rows.append(f"- {listed}: {_as(like)}\n")
        if section not in same:
            title = f"`{section}`" if section else "Top of the file"
            parts.append(f"### {title}\n\n{''.join(rows)}")
    return between(page, "keys", "\n".join(parts))


def _sections(path: str, keys: Mapping[str, Key]) -> Iterator[tuple[str, Mapping[str, Key]]]:
    """A section and those within it, by their paths."""
    yield path, keys
    for name, key in keys.items():
        if key.inner:
            yield from _sections(_path(path, name, key), key.inner.keys())


def _path(section: str, name: str, key: Key) -> str:
    path = f"{section}.{name}" if section else name
    return f"{path}[]" if key.kind == "sections" else path


def _shared(section: str, sections: Mapping[str, Mapping[str, Key]]) -> tuple[str, list[str]]:
    """The earlier section with most keys of these names and types, and those; one is chance."""
    keys = sections[section]
    shared = {
        other: [
            name for name in keys if name in theirs and _kind(theirs[name]) == _kind(keys[name])
        ]
        for other, theirs in takewhile(lambda item: item[0] != section, sections.items())
    }
    most = max(shared, key=lambda other: len(shared[other]), default="")
    return (most, shared[most]) if most and len(shared[most]) > 1 else ("", [])


def _key_row(name: str, key: Key, like: str | None) -> str:
    kind = _as(like) if like else _kind(key) + _default(key)
    return f"- {_key_name(name, key)} ({kind}): {key.about}\n"


def _as(section: str) -> str:
    return f"as in [`{section}`](#{section})"


def _key_name(name: str, key: Key) -> str:
    """In bold what must be there."""
    return f"**`{name}`**" if key.default is REQUIRED else f"`{name}`"


def _kind(key: Key) -> str:
    if key.kind == "choice":
        return ", ".join(f"`{word}`" for word in key.allowed)
    names = {
        "text": "text", "flag": "boolean", "numbers": "list of numbers",
        "texts": "list of texts", "mapping": "names to plain values",
        "figures": "names to plain values", "words": "names to texts",
        "section": "section", "sections": "list of sections", "number": "number",
        "integer": "integer",
    }  # fmt: skip
    low, high = (f"{bound:g}" for bound in (max(key.low, key.above), key.high))
    if key.kind == "version":
        return f"`{key.low}`"
    if key.kind not in ("number", "integer"):
        return names[key.kind]
    above, bounded = key.above > key.low, key.high < LARGEST
    begin = f"above {low}" if above else low if bounded else f"from {low}"
    bounds = f"{begin} to {high}" if bounded else begin
    return f"{names[key.kind]}, {key.unit}, {bounds}"


def _default(key: Key) -> str:
    if isinstance(key.default, bool):
        return f"; default `{str(key.default).lower()}`"
    if isinstance(key.default, str | int | float) and key.default != "":
        value = f"{key.default:g}" if isinstance(key.default, float) else key.default
        return f"; default `{value}`"
    return ""


def assumptions(page: str) -> str:
    """What is assumed of AWS."""
    head = ("behaviour (what relies on it)", "proven by", "`make verify-aws` looks at")
    rows = [
        (f"{one.behaviour} ([`{one.id}`](../../{one.relied_on}))",
         f"{_proof(one)}: {one.source}", one.check or f"not checked: {one.unchecked}")
        for one in load_assumptions()
    ]  # fmt: skip
    return between(page, "assumptions", table(head, rows))


def _proof(assumption: Assumption) -> str:
    file, _, _ = assumption.test.partition("::")
    return f"[{assumption.proof}](../../{file})" if file else str(assumption.proof)


def flag_reads(page: str) -> str:
    """What reading a flag takes, one at a time and in bursts, by ``flag-reads.json``."""
    stored = json.loads((ROOT / "benchmarks" / "flag-reads.json").read_text())
    reads = [
        ("a fresh process: boto3, its client, the first answer", "fresh_process_ms"),
        ("a client that has asked before", "warm_client_ms"),
        ("the same flag within a minute", "cached_ms"),
    ]
    bursts = [
        (f"{own['spread_seconds']:.0f}", f"{100 * own['used_by_others']:.0f} %",
         f"{own['fell_to_baseline']:,}", f"{own['waited_median']:.0f} s",
         f"{own['waited_longest']:.0f} s", f"{other['fell_to_baseline']:,}")
        for own, other in zip(stored["bursts"], stored["boto3_alone"], strict=True)
    ]  # fmt: skip
    head = ("within, seconds", "limit used by others", "fall to the baseline", "wait, median",
            "longest", "fall with boto3's own retries")  # fmt: skip
    answers = [(what, f"{stored['reads'][key]:.3g} ms") for what, key in reads]
    page = between(page, "reads", table(("one answer", "takes"), answers))
    return between(page, "bursts", table(head, bursts, "---:"))


def fleet(page: str) -> str:
    """What a fleet takes, by ``fleet.json``, and what it took before its reads were by time."""
    stored = json.loads((ROOT / "benchmarks" / "fleet.json").read_text())
    before = {
        (one["what"], one["workloads"], one["years"]): _taken(one) for one in stored["before"]
    }
    rows = [
        (one["what"], f"{one['workloads']:,}", f"{one['years']}", *_taken(one),
         *before.get((one["what"], one["workloads"], one["years"]), ("",) * 5))
        for one in stored["measured"]
    ]  # fmt: skip
    head = ("", "workloads", "years", *(f"{of}{what}" for of in ("", "before: ")
            for what in ("seconds", "CPU", "MB read", "requests", "MiB")))  # fmt: skip
    return between(page, "fleet", table(head, rows, "---:"))


def _taken(row: Mapping[str, Any]) -> tuple[str, ...]:
    requests = sum(row["requests"].values())
    return (
        f"{row['seconds']:g}", f"{row['cpu_seconds']:g}", f"{row['read_mb']:,g}", f"{requests:,}",
        f"{row['memory_mib']}",
    )  # fmt: skip


def measurements(page: str) -> str:
    """Reads of flags, what a fleet takes, and from a script to its verdict (``first_verdict``)."""
    stored = json.loads((ROOT / "benchmarks" / "first_verdict.json").read_text())
    head = ("kind", "script", "`init`", "edits", "`run --local` to the verdict", "load", "verdict",
            "failed trials", "before")  # fmt: skip
    rows = [
        (row["kind"], f"{row['repository']} `{row['file']}`", f"{row['init_seconds']} s",
         row["edits"] or "—", duration(row["verdict_seconds"]), f"{row['load']}",
         row["verdict"] or "—", f"{row['failed_trials']}", row["before"])
        for row in stored["rows"]
    ]  # fmt: skip
    return fleet(flag_reads(between(page, "first verdicts", table(head, rows))))


def decision_message() -> Notification:
    """The message about a trial that promotes."""
    stage, workload, trial = "prod", "bert-docs", "0mabc123"
    decision = Decision(
        workload, "9f2c4d1e7ab0", "2.1.0", "quality", Verdict.PROMOTE, "compile",
        (Reason("speedup_proven", "compile is 1.36x faster."),),
        speedup=Speedup(
            1.36, (1.31, 1.41), 0.95, lower_bound=1.33, blocks=3, full_runs=0,
            predicted=SpeedSource(1.36, (1.31, 1.41), ComparedRuns(3, 3)), measured=None,
            weight=0, disagreement=0.02,
        ),
        quality=QualityFigures(
            "eval_accuracy", "maximize", -0.0004, margin=0.005, spread=0.0008,
            runs=QualityRuns(3, 3, history=8), interval=(-0.002, 0.001), confidence=0.989, look=3,
        ),
        flag=DecidedFlag(naming.flag_parameter(stage, workload), FlagAction.ENABLE),
    )  # fmt: skip
    text = "Turn the compiler on: 1.36x faster, quality held"
    key = naming.report_key(workload, trial, "html")
    return decision_notification(
        decision,
        stage=stage,
        workload=workload,
        subject=subject_line(stage, f"{workload}: {text}"),
        text=f"{workload}: {text}.\n",
        owner="ml-platform",
        report=f"s3://data/{key}",
        link=s3_object("us-east-1", "data", key),
        act=command_at(f"compilegate report {workload} --trial {trial}", stage),
        flag_enabled=True,
    )


def notifications(page: str) -> str:
    """A message's body."""
    body = _json_by_line(decision_message().body())
    return EXAMPLE.sub(lambda match: match["begin"] + body + match["end"], page)


def _json_by_line(document: Mapping[str, Any]) -> str:
    fields = [
        f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in document.items()
    ]
    return "{\n" + ",\n".join(fields) + "\n}\n"


SCHEMA = DOCS / "workload.schema.json"
PAGES: Mapping[Path, Callable[[str], str]] = {
    REASONS: reasons,
    ASSUMPTIONS: assumptions,
    MEASUREMENTS: measurements,
    NOTIFICATIONS: notifications,
    DOCS / "architecture.md": with_imports,
    DOCS / "how-it-decides.md": how_it_decides,
    ELIGIBILITY: lambda page: examples.with_output(eligibility(page)),
    DOCS / "doctor.md": lambda page: examples.with_output(doctor_rules(page)),
    DOCS / "canary.md": pictures.canary,
    DOCS / "probation.md": pictures.probation,
    DOCS / "state-machines.md": pictures.state_machines,
    DOCS / "training.md": compilers,
    DOCS / "workload-file.md": workload_keys,
    DOCS / "commands.md": examples.with_output,
    DOCS / "first-hour.md": examples.with_output,
    DOCS / "planning.md": examples.with_output,
    ROOT / "README.md": examples.with_output,
    tutorial.PAGE: tutorial.with_recording,
}

"""Which jobs are runs of one workload.

Jobs of one script with the same signs (name without its time, tags, role, data, settings) belong
together at once. Of such sets two are one workload if what they share outweighs what differs, by
the points below: a name that others may have (``train``) needs the same data beside it, and a
workload that was given another name is seen by the same data, at a time after the first. Digests
of data and code are no sign: they change every night. Two scripts are never one workload.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from compilegate_discover.job import Job, Setup
from compilegate_discover.names import (
    SHORTEST_CUT,
    is_usual,
    may_be_cut,
    own_part,
    stable_stems,
    stem_of,
)

# What speaks for one workload, and against it; ENOUGH together join two sets of jobs.
ENOUGH = 3.0
SAME_NAME, USUAL_NAME, OTHER_NAME = 4.0, 1.0, -2.0
AT_ONCE = -4.0  # two names, and one began before the other had ended
AFTERWARDS = 1.0
SAME_DATA, OTHER_DATA = 3.0, -2.0
SAME_PLACE = 1.0
SAME_TAG, OTHER_TAG = 1.0, -4.0
SAME_SUBJECT, OTHER_SUBJECT = 1.0, -3.0
SAME_ROLE, OTHER_ROLE = 0.5, -2.0
SAME_SETTINGS, OTHER_SETTINGS = 0.5, -1.0
OTHER_IMAGE = -2.0
SHARED = 0.5  # of all names of settings, or places of data
# Above this number of sets with one sign only each and the next are compared.
MOST_COMPARED = 150
# A second try, or a second release.
_AGAIN = re.compile(r"(^|-)r[2-9](?=-|$)")
# Tags that say whose or which workload a job is of.
_TAG = re.compile(
    r"(.*[:_/-])?(owner|team|squad|project|cost-?_?cent(er|re)|workload|application|app|service|"
    r"component|pipeline(-?_?(name|arn))?|model(-?_?name)?|use-?_?case|product)",
    re.IGNORECASE,
)
OWNER_TAG = re.compile(r"(.*[:_/-])?(owner|team|squad)", re.IGNORECASE)
# Hyperparameters whose text says what is trained.
_SUBJECT = re.compile(
    r"(.*_)?(model|arch|architecture|backbone|dataset|task|target|label|market|country|language|"
    r"lang|product|segment|category|use_case|objective|tenant|customer|brand)"
    r"(_(name|id|type|name_or_path|col|column|code))?",
    re.IGNORECASE,
)
# Parts of a path that are new in every run and are none in a name: counts, Pipelines' executions.
_EACH_RUN = re.compile(
    r"((year|month|day|dt|date|hour|week|version|v|run|batch|snapshot|build|release)-?)?\d+|"
    r"(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{12}"
)
_S3 = "s3://"


@dataclass(frozen=True)
class Signs:
    """What identifies the workload of a job."""

    stem: str
    retried: bool
    usual: bool
    cut: bool
    repository: str
    tags: frozenset[tuple[str, str]]
    role: str
    data: frozenset[str]
    place: str
    subject: frozenset[tuple[str, str]]
    settings: frozenset[str]


@dataclass(frozen=True)
class Group:
    """The jobs of a workload, oldest first; ``name`` is what most of their names share.

    ``signs`` are text that finds the group again in a later reading.
    """

    name: str
    jobs: tuple[Job, ...]
    signs: tuple[str, ...]

    @property
    def newest(self) -> Job:
        """The last job that completed, else the last."""
        done = [job for job in self.jobs if job.completed]
        return (done or self.jobs)[-1]


def group_jobs(jobs: Iterable[Job]) -> list[Group]:
    """The workloads of the jobs, in no order of interest."""
    scripts = defaultdict[tuple[str, ...], list[Job]](list)
    for job in jobs:
        setup = job.setup
        unnamed = "" if setup.program else setup.repository
        scripts[setup.region, setup.program, unnamed].append(job)
    return [group for some in scripts.values() for group in _of_script(some)]


def _of_script(jobs: Sequence[Job]) -> Iterator[Group]:
    stems = {job.name: _AGAIN.sub("", stem_of(job.name)).strip("-") for job in jobs}
    final = {key: own_part(to) for key, to in stable_stems(Counter(stems.values())).items()}
    setups: dict[Setup, tuple[Hashable, ...]] = {}
    sets = defaultdict[Signs, list[Job]](list)
    for job in jobs:
        setup = job.setup
        if setup not in setups:
            setups[setup] = _signs_of(setup)
        stem, retried = final[stems[job.name]], stems[job.name] != stem_of(job.name)
        usual = is_usual(job.name, stem, setup.repository)
        cut = may_be_cut(job.name, stem)
        sets[Signs(stem, retried, usual, cut, *setups[setup])].append(job)  # type: ignore[arg-type]
    for some in _joined(sets):
        inside = sorted((job for one in some for job in sets[one]), key=lambda job: job.created)
        signs = sorted({text for one in some for text in _found_by(inside[0].setup, one)})
        yield Group(final[stems[inside[-1].name]], tuple(inside), tuple(signs))


def _found_by(setup: Setup, signs: Signs) -> Iterator[str]:
    """What finds the workload again: its name, where that is its own, and all signs together."""
    script = (setup.region, setup.program or setup.repository, signs.stem)
    every = (*script, signs.role, sorted(signs.tags), sorted(signs.data), sorted(signs.subject))
    for sign in (every,) if signs.usual else (script, every):
        yield hashlib.sha256(repr(sign).encode()).hexdigest()[:16]


def _signs_of(setup: Setup) -> tuple[Hashable, ...]:
    """The signs but for the name."""
    uris = {uri for _, uri in setup.channels} | {
        value for _, value in setup.settings if value.startswith(_S3)
    }
    tags = ((key.lower(), value) for key, value in setup.tags if _TAG.fullmatch(key) and value)
    subject = (
        (name.lower(), value)
        for name, value in setup.settings
        if _SUBJECT.fullmatch(name) and not value.startswith((_S3, "/"))
    )
    return (
        setup.repository,
        frozenset(tags),
        setup.role,
        frozenset(place_of(uri) for uri in uris if uri),
        place_of(setup.output),
        frozenset(subject),
        frozenset(name for name, _ in setup.settings),
    )


def place_of(uri: str) -> str:
    """A URI without the parts that are new in every run."""
    parts = [stem_of(part.replace("_", "-").replace("=", "-")) for part in uri.split("/")]
    return "/".join(part for part in parts if part and not _EACH_RUN.fullmatch(part))


def _joined(sets: Mapping[Signs, Sequence[Job]]) -> list[list[Signs]]:
    """The sets that are one workload, together."""
    ordered = sorted(sets, key=lambda one: (sets[one][0].created, one.stem))
    span = {
        one: (min(job.created for job in sets[one]), max(job.created for job in sets[one]))
        for one in ordered
    }
    leader = {one: one for one in ordered}

    def lead(signs: Signs) -> Signs:
        while leader[signs] is not signs:
            leader[signs] = leader[leader[signs]]
            signs = leader[signs]
        return signs

    for first, second in _pairs(ordered):
        if (
            lead(first) is not lead(second)
            and points(first, second) + _timing(first, second, span) >= ENOUGH
        ):
            leader[lead(second)] = lead(first)
    together = defaultdict[int, list[Signs]](list)
    for one in ordered:
        together[id(lead(one))].append(one)
    return list(together.values())


def _pairs(ordered: Sequence[Signs]) -> Iterator[tuple[Signs, Signs]]:
    """Sets that share a sign which may join them."""
    blocks = defaultdict[Hashable, list[Signs]](list)
    for one in ordered:
        blocks["name", one.stem[:SHORTEST_CUT]].append(one)
        for uri in one.data:
            blocks["data", uri].append(one)
    for block in blocks.values():
        few = len(block) <= MOST_COMPARED
        yield from combinations(block, 2) if few else pairwise(block)


def _timing(first: Signs, second: Signs, span: Mapping[Signs, tuple[float, float]]) -> float:
    """Two names of one workload follow each other; two workloads run side by side."""
    if _of_name(first, second) != OTHER_NAME:
        return 0.0
    (begin, end), (later_begin, later_end) = span[first], span[second]
    return AFTERWARDS if end < later_begin or later_end < begin else AT_ONCE


def points(first: Signs, second: Signs) -> float:
    """How much speaks for one workload, but for the times."""
    total = _of_name(first, second)
    if first.repository != second.repository:
        total += OTHER_IMAGE
    total += _compared(first.tags, second.tags, SAME_TAG, OTHER_TAG)
    total += _compared(first.subject, second.subject, SAME_SUBJECT, OTHER_SUBJECT)
    if first.data and second.data:
        total += SAME_DATA if _shared(first.data, second.data) >= SHARED else OTHER_DATA
    if first.place and first.place == second.place:
        total += SAME_PLACE
    if first.role and second.role:
        total += SAME_ROLE if first.role == second.role else OTHER_ROLE
    alike = not (first.settings or second.settings) or (
        _shared(first.settings, second.settings) >= SHARED
    )
    return total + (SAME_SETTINGS if alike else OTHER_SETTINGS)


def _of_name(first: Signs, second: Signs) -> float:
    """Points for the names, as far as one was cut."""
    shorter, longer = sorted((first, second), key=lambda one: len(one.stem))
    if shorter.stem != longer.stem and not (shorter.cut and longer.stem.startswith(shorter.stem)):
        return OTHER_NAME
    doubtful = first.usual or second.usual or first.retried != second.retried
    return USUAL_NAME if doubtful else SAME_NAME


def _shared(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second)


def _compared(
    first: frozenset[tuple[str, str]], second: frozenset[tuple[str, str]], same: float, other: float
) -> float:
    """Of the keys that both have: one that differs decides, else one that agrees counts."""
    mine, theirs = dict(first), dict(second)
    both = mine.keys() & theirs.keys()
    if any(mine[key] != theirs[key] for key in both):
        return other
    return same if both else 0.0

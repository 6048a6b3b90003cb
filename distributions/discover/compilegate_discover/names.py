"""What a training job's name says of its workload: the name without what is new in every run.

How names are made: the SageMaker SDK's ``name_from_base`` (``base-2026-11-26-20-15-00-123``, short
``base-261126-2015``), ``unique_name_from_base`` (``base-1764187200-1a2b``) and version 3's
``_get_unique_name`` (``base-20261126201500``, cut at 63 characters), SageMaker Pipelines
(``pipelines-EXECUTION-STEP-RANDOM``), Airflow's macros (``ds_nodash``, ``ts_nodash``) and Step
Functions' execution names (UUIDs).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from compilegate_init.proposal import NAMES

LONGEST = 63  # CreateTrainingJob's bound of a name
# A base that was cut for it has at least so many characters: of what is added a UUID is longest.
SHORTEST_CUT = 12
ANY = "#"
# Of an end that is drawn for each run: its least length, and of how many it is seen.
SHORTEST_END, ENDS = 4, 4
PIPELINE = re.compile(r"pipelines-[a-z0-9]{12}-(?P<step>.+)-[A-Za-z0-9]{10}")
_DAY = r"20\d\d(?P<mark>-?)(?:0[1-9]|1[0-2])(?P=mark)(?:0[1-9]|[12]\d|3[01])"
# Not the year of another day.
_TIME = r"(?!20\d\d-?[01]\d-?[0-3]\d)(?:[01]\d|2[0-3])-?[0-5]\d(?:-?[0-5]\d)?"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_HEX = "[0-9a-f]"
# Settings that are tried out on one workload, with a value: lr-0-01, lr-1e-5, seed-3.
_SETTING = "|".join(
    sorted(
        {
            name.replace("_", "-")
            for kind in ("batch_size", "learning_rate", "seed", "steps", "epochs")
            for name in NAMES[kind]
        }
        | {"dropout", "momentum", "warmup", "wd", "weight-decay"},
        key=len,
        reverse=True,
    )
)
_VALUE = r"(?:\d+-\d+e-?\d+|0-\d+|\d+(?:e-?\d+)?)"
# In this order: what is longer before what is a part of it.
_EACH_RUN = [
    re.compile(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])")
    for pattern in (
        rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
        rf"{_DAY}(?:[-t]?{_TIME}(?:-?\d{{3}}(?:\d{{3}})?)?z?)?",
        rf"\d\d?-?(?:{_MONTHS})[a-z]*-?20\d\d(?:[-t]?{_TIME}z?)?",
        rf"1[5-9]\d{{8}}(?:\d{{3}}|\d{{6}}|\d{{9}})?(?:-{_HEX}{{4}})?",
        r"2\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])-[0-2]\d[0-5]\d(?:[0-5]\d)?",
        r"20\d\d-?(?:0[1-9]|1[0-2]|w[0-5]\d)",
        rf"(?=[a-f]*\d){_HEX}{{7,40}}",
        rf"(?:{_SETTING})-?{_VALUE}",
        r"(?:retry|attempt|try|rerun|resume|restart)(?:-?\d{1,3})?",
    )
]
# What version 3 of the SDK has cut of its time stamp.
_CUT = re.compile(r"-(?:2|20|202\d{0,10})?$")
_PART = re.compile(r"([a-z]*)(\d+)")
# Names that many workloads have: defaults of the SDK and of its examples.
_WORDS = """
algorithm container cpu custom daily data dataset datasets date day deep default demo dev
distributed dt ecr estimator eval exec execution experiment features fine finetune finetuning
fit framework gpu huggingface input inputs job jobs latest learn learning lightning machine main
ml mlops model models month my neuron new nightly output outputs part parts path pipeline
pipelines processed prod production py python pytorch raw retrain retraining run runs sagemaker
scikit script sklearn stage staging step task tensorflow test torch train trainer training
trainingjob trainings trainingstep trainjob trainmodel trainstep tune tuning val validation week
weekly workflow workload xgboost year
"""
_USUAL = frozenset(_WORDS.split())


def stem_of(name: str) -> str:
    """The name in lower case without times, UUIDs, digests and counts of attempts."""
    pipeline = PIPELINE.fullmatch(name)
    text = (pipeline["step"] if pipeline else name).lower()
    cut = len(name) == LONGEST
    for pattern in _EACH_RUN:
        shorter = pattern.sub("", text)
        cut, text = cut and shorter == text, shorter
    if cut:
        text = _CUT.sub("", text)
    return "-".join(part for part in text.split("-") if part)


def may_be_cut(name: str, stem: str) -> bool:
    """Whether its tool may have cut the name's base to make room for what is new in each run."""
    return len(name) >= LONGEST - 1 and len(stem) >= SHORTEST_CUT


def is_usual(name: str, stem: str, repository: str) -> bool:
    """Whether other workloads may well have the same name.

    A pipeline's step has its name within the pipeline, which no job's name holds.
    """
    image = repository.rpartition("/")[2].lower()
    words = [word for word in stem.split("-") if word not in image.split("-")]
    return bool(PIPELINE.fullmatch(name)) or all(
        word in _USUAL or word.isdigit() or word == ANY for word in words
    )


def stable_stems(stems: Mapping[str, int]) -> dict[str, str]:
    """Each stem with ``#`` for the parts that nearly every one of its runs has for itself.

    ``stems`` are those of one script with their numbers of jobs. A number that comes back, as of
    a model's size, is a part of the name; one that is new in most runs counts them.
    """
    ends = _random_ends(stems)
    jobs = Counter[str]()
    for stem, number in stems.items():
        jobs[ends.get(stem, stem)] += number
    alike = defaultdict[tuple[str, ...], list[str]](list)
    for stem in jobs:
        alike[tuple(pattern for _, pattern in _parts(stem))].append(stem)
    stable = {key: to for group in alike.values() for key, to in _stable_stems(group, jobs).items()}
    return {stem: stable[ends.get(stem, stem)] for stem in stems}


def _random_ends(stems: Mapping[str, int]) -> dict[str, str]:
    """Stems that end in one of many words of one length, which hardly come back."""
    ends = defaultdict[tuple[str, int], list[str]](list)
    for stem in stems:
        start, _, end = stem.rpartition("-")
        if start and len(end) >= SHORTEST_END:
            ends[start, len(end)].append(stem)
    many = {
        key: some
        for key, some in ends.items()
        if len(some) >= max(ENDS, sum(stems[one] for one in some) / 2)
    }
    return {stem: f"{start}-{ANY}" for (start, _), some in many.items() for stem in some}


def _parts(stem: str) -> Iterator[tuple[str, str]]:
    """Each part as it is, and as a pattern of what may be new in each run."""
    for part in stem.split("-"):
        counted = _PART.fullmatch(part)
        has_digit = any(mark.isdigit() for mark in part)
        yield part, f"{counted[1]}{ANY}" if counted else ANY if has_digit else part


def _stable_stems(group: Sequence[str], stems: Mapping[str, int]) -> dict[str, str]:
    """Of stems that are alike: parts with few values stay, and set the runs apart."""
    rows = {stem: list(_parts(stem)) for stem in group}
    most = max(3, sum(stems[stem] for stem in group) / 2)
    values = [{row[place][0] for row in rows.values()} for place in range(len(rows[group[0]]))]
    fixed = [place for place, some in enumerate(values) if len(some) < most]
    if len(fixed) == len(values) and len(group) >= most:  # counted by several numbers together
        fixed = [place for place, some in enumerate(values) if len(some) == 1]
    apart = defaultdict[tuple[str, ...], list[str]](list)
    for stem, row in rows.items():
        apart[tuple(row[place][0] for place in fixed)].append(stem)
    if len(apart) > 1:
        return {
            key: to for some in apart.values() for key, to in _stable_stems(some, stems).items()
        }
    return {
        stem: "-".join(
            part if place in fixed else pattern for place, (part, pattern) in enumerate(row)
        )
        for stem, row in rows.items()
    }


def own_part(stem: str) -> str:
    """A stable stem without the parts that each run has for itself."""
    return "-".join(part for part in stem.split("-") if ANY not in part)

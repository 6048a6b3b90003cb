"""How many harmful faults of a compiler does the equivalence check miss, and how many does it alarm
for that are none?

    python -m benchmarks.equivalence [--only NAME ...] [--device cpu|cuda] [--runs] [--minutes 30]
        [--table]

Run it with the training environment's Python. Each trial is kept in build/equivalence when it is
made, and the next call goes on after it: sound compilations, each fault's harm by gradients, the
check on each fault; with --runs also full runs of every fault. Trials of another version of the
check are made again. results.json gets what is there in the end; --table writes
compilegate/facts/equivalence.json as well. --only limits it to faults or families. Under PyTorch
2.11 the faults that it alone has are tried, and nothing else.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from benchmarks.equivalence import harm, results
from benchmarks.equivalence.families import FAMILIES, Family
from benchmarks.equivalence.faults import Fault, catalogue
from benchmarks.equivalence.job import PRECISIONS
from benchmarks.equivalence.results import Records
from benchmarks.equivalence.trials import (
    MODES,
    ROOT,
    SEEDS,
    SEEDS_OF_DRAWING,
    UNSOUND,
    Sound,
    draws,
    equivalence,
    with_fault,
)

INSTALLED = ".".join(torch.__version__.split(".")[:2])
FAULTS_A_SOUND_ONE = 4
CERTAIN = 1000.0  # no bound is near
Trial = tuple[str, Callable[[], dict[str, Any]]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the trials that are missing, as long as there is time, and write what they come to."""
    options = _options(arguments)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    records = Records(ROOT / "build" / "equivalence" / f"{options.device}.jsonl")
    end = time.monotonic() + 60 * options.minutes
    for key, make in _trials(options, records):
        if time.monotonic() > end:
            print("Time is up; the same command goes on.")
            break
        begun = time.monotonic()
        records.add(key, **make())
        print(f"{time.monotonic() - begun:6.1f} s  {key}  {_said(records.all[key])}", flush=True)
    else:
        print("All trials are made.")
    if _is_older():
        return
    summary = results.summary(records, equivalence.digest(), options.device)
    results.write(summary, options.device, facts=options.table)
    print("\n".join(results.lines(summary)))


def _trials(options: argparse.Namespace, records: Records) -> Iterator[Trial]:
    """What is missing, sound and faulty in turns, so that every stop leaves a table of both."""
    sound, faults = _sound(options, records), _faults(options, records)
    several = list(itertools.islice(faults, FAULTS_A_SOUND_ONE))
    while (group := next(sound, None)) is not None or several:
        yield from itertools.chain(group or (), *several)
        several = list(itertools.islice(faults, FAULTS_A_SOUND_ONE))
    if options.runs:
        yield from _runs(options, records)


def _sound(options: argparse.Namespace, records: Records) -> Iterator[Iterator[Trial]]:
    """By compilation: all of its seeds, before another one is compiled."""
    chosen = [one for one in FAMILIES if not options.only or one in options.only]
    chosen = [] if _is_older() else chosen
    for mode, family, precision in itertools.product(MODES, chosen, PRECISIONS):
        captures = mode != "reduce-overhead" or options.device != "cpu"
        if captures and (options.device, family, mode) not in UNSOUND:
            yield _seeds(options, records, (family, precision, mode))


def _seeds(
    options: argparse.Namespace, records: Records, names: tuple[str, str, str]
) -> Iterator[Trial]:
    made: list[Sound] = []

    def examine(seed: int) -> dict[str, Any]:
        if not made:
            made.append(Sound(*names, options.device))
        place = dict(zip(("family", "precision", "mode"), names, strict=True))
        return {**place, "seed": seed, **_documented(made[0].document(seed))}

    family, _, mode = names
    for seed in range(SEEDS_OF_DRAWING if draws(FAMILIES[family].build(0)) else SEEDS[mode]):
        key = " ".join(("sound", *names, str(seed)))
        if _missing(records, key):
            yield key, functools.partial(examine, seed)


def _documented(document: dict[str, Any]) -> dict[str, Any]:
    return {"check": document["check"], "document": document}


def _faults(options: argparse.Namespace, records: Records) -> Iterator[Iterator[Trial]]:
    for fault, family, precision in _chosen(options):
        yield _fault(records, fault, family, precision, options.device)


def _fault(
    records: Records, fault: Fault, family: Family, precision: str, device: str
) -> Iterator[Trial]:
    """The harm of a fault and the check on it; at the last weights, where the first ones pass."""
    trial, of = f"{fault.name} {family.name} {precision}", (fault, family, precision, device)
    if records.all.get(f"harm {trial}", {}).get("source") != fault.source:
        yield f"harm {trial}", functools.partial(_harm, harm.by_gradients, *of)
    if _missing(records, f"first {trial}"):
        yield f"first {trial}", functools.partial(_examine, *of, "first")
    if _missing(records, f"last {trial}") and _looks_sound(records.all[f"first {trial}"]):
        yield f"last {trial}", functools.partial(_examine, *of, "last")


def _harm(measure: Callable[..., dict[str, Any]], fault: Fault, *of: Any) -> dict[str, Any]:
    return {**measure(fault, *of), "source": fault.source}


def _looks_sound(record: Mapping[str, Any]) -> bool:
    """Whether no ratio is beyond what any bound allows."""
    ratios = [one["ratio"] for one in record["document"]["parts"]]
    return all(one is not None and one < CERTAIN for one in ratios)


def _examine(
    fault: Fault, family: Family, precision: str, device: str, weights: str
) -> dict[str, Any]:
    document, places = with_fault(fault, family, precision, device, weights)
    if not places and not fault.live:
        sys.exit(f"{fault.name} changes nothing in {family.name}, {precision}: the fault is broken")
    return {**_documented(document), "places": places}


def _runs(options: argparse.Namespace, records: Records) -> Iterator[Trial]:
    for fault, family, precision in _chosen(options):
        key = f"runs {fault.name} {family.name} {precision}"
        if records.all.get(key, {}).get("source") != fault.source:
            of = (fault, family, precision, options.device)
            yield key, functools.partial(_harm, harm.by_runs, *of)


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Fault, Family, str]]:
    version = INSTALLED if _is_older() else None
    for family, fault in itertools.product(FAMILIES.values(), catalogue()):
        named = not options.only or {fault.name, family.name} & set(options.only)
        wanted = named and fault.version == version
        if family.name in fault.families and wanted:
            for precision in fault.precisions:
                yield fault, fault.model(family) if fault.model else family, precision


def _is_older() -> bool:
    """Whether the installed PyTorch is one of those that faults of their own are tried with."""
    return INSTALLED in {fault.version for fault in catalogue()}


def _missing(records: Records, key: str) -> bool:
    return records.all.get(key, {}).get("check") != equivalence.digest()


def _said(record: dict[str, Any]) -> str:
    if "document" not in record:
        return f"harmful: {record['harmful']}, effect {record.get('effect')}"
    parts = record["document"]["parts"]
    ratios = [f"{one['part']}.{one['arithmetic']} {_number(one['ratio'])}" for one in parts]
    unseen = [f"{one['part']} unseen: {one['code']}" for one in record["document"]["unseen"]]
    return ", ".join(ratios + unseen)


def _number(ratio: float | None) -> str:
    return "not finite" if ratio is None else f"{ratio:.3g}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.equivalence")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--runs", action="store_true", help="full runs of every fault, too")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--table", action="store_true", help="write the judge's table")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

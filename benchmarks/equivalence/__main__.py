"""How many harmful faults of a compiler does the equivalence check miss, and how many does it alarm
for that are none?

    python -m benchmarks.equivalence [--only NAME ...] [--device cpu|cuda] [--seeds 6] [--runs]
        [--minutes 30] [--table]

Run it with the training environment's Python. Each trial is kept in build/equivalence when it is
made, and the next call goes on after it: sound compilations, each fault's harm by gradients, the
check on each fault; with --runs also full runs of every fault. Trials of another version of the
check are made again. results.json gets what is there in the end; --table writes
compilegate/facts/equivalence.json as well. --only limits it to faults or families.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from benchmarks.equivalence import harm, results
from benchmarks.equivalence.faults import Fault, catalogue
from benchmarks.equivalence.families import FAMILIES, Family
from benchmarks.equivalence.job import PRECISIONS
from benchmarks.equivalence.results import Records
from benchmarks.equivalence.trials import MODES, ROOT, Sound, equivalence, with_fault

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
    found = results.summary(records, equivalence.digest(), options.device)
    results.write(found, options.device, facts=options.table)
    print("\n".join(results.lines(found)))


def _trials(options: argparse.Namespace, records: Records) -> Iterator[Trial]:
    """What is missing, in an order in which every stop leaves a table of all parts."""
    check = equivalence.digest()
    sound = list(_sound(options, records, check))
    faults = list(_faults(options, records, check))
    share = max(1, len(faults) // max(1, len(sound)))
    several = [faults[at : at + share] for at in range(0, len(faults), share)]
    for group, one in itertools.zip_longest(several, sound):
        yield from group or []
        yield from [one] if one else []
    if options.runs:
        yield from _runs(options, records)


def _sound(options: argparse.Namespace, records: Records, check: str) -> Iterator[Trial]:
    chosen = [one for one in FAMILIES if not options.only or one in options.only]
    for mode, family, precision in itertools.product(MODES, chosen, PRECISIONS):
        if mode == "reduce-overhead" and options.device == "cpu":
            continue  # captures nothing there: the same code as by default
        made: list[Sound] = []
        for seed in range(options.seeds):
            key = f"sound {family} {precision} {mode} {seed}"
            if _missing(records, key, check):
                place = {"family": family, "precision": precision, "mode": mode, "seed": seed}
                yield key, lambda made=made, place=place: _examine_sound(options, made, place)


def _examine_sound(
    options: argparse.Namespace, made: list[Sound], place: dict[str, Any]
) -> dict[str, Any]:
    names = [place[key] for key in ("family", "precision", "mode")]
    if not made:
        made.append(Sound(*names, options.device))
    return {**place, **_documented(made[0].document(place["seed"]))}


def _documented(document: dict[str, Any]) -> dict[str, Any]:
    return {"check": document["check"], "document": document}


def _faults(options: argparse.Namespace, records: Records, check: str) -> Iterator[Trial]:
    for fault, family, precision in _chosen(options):
        trial, where = f"{fault.name} {family.name} {precision}", (precision, options.device)
        if f"harm {trial}" not in records.all:
            yield f"harm {trial}", lambda a=(fault, family, *where): harm.by_gradients(*a)
        if _missing(records, f"first {trial}", check):
            yield f"first {trial}", lambda a=(fault, family, *where): _examine(*a, "first")
        if _missing(records, f"last {trial}", check):
            yield f"last {trial}", lambda a=(fault, family, *where): _examine(*a, "last")


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
        if key not in records.all:
            yield key, lambda a=(fault, family, precision, options.device): harm.by_runs(*a)


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Fault, Family, str]]:
    for fault in catalogue():
        for name, precision in itertools.product(fault.families, fault.precisions):
            wanted = not options.only or {fault.name, name} & set(options.only)
            if wanted and fault.stage != "optimizer":
                family = FAMILIES[name]
                yield fault, fault.model(family) if fault.model else family, precision


def _missing(records: Records, key: str, check: str) -> bool:
    return records.all.get(key, {}).get("check") != check


def _said(record: dict[str, Any]) -> str:
    if "document" not in record:
        return f"harmful: {record['harmful']}, effect {record.get('effect')}"
    parts = record["document"]["parts"]
    ratios = [f"{one['part']}.{one['arithmetic']} {one['ratio'] or float('nan'):.3g}" for one in parts]
    unseen = [f"{one['part']} unseen: {one['code']}" for one in record["document"]["unseen"]]
    return ", ".join(ratios + unseen)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.equivalence")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seeds", type=int, default=6, help="of each sound compilation")
    parser.add_argument("--runs", action="store_true", help="full runs of every fault, too")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--table", action="store_true", help="write the judge's table")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

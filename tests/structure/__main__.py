"""Prints the figures, and holds each that has shrunk: `python -m tests.structure`."""

from __future__ import annotations

import json

from tests.structure.figures import HELD, held, measured


def main() -> None:
    figures = held()
    print(f"{'figure':36}{'now':>8}{'held':>8}{'gate':>8}{'aim':>8}")
    for name, now in measured().items():
        figure = figures[name]
        gate = figure.get("gate", figure["aim"])
        print(f"{name:36}{now:8,}{figure['value']:8,}{gate:8,}{figure['aim']:8,}")
        figure["value"] = min(now, figure["value"])
    rows = (f"  {json.dumps(name)}: {json.dumps(figure)}" for name, figure in figures.items())
    HELD.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()

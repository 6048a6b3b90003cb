"""The worked example of docs/how-it-decides.md, from the judge's own explanation of its figures."""

# ruff: noqa: RUF001 - the page shows formulas with their own signs

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from compilegate.cli.main import app
from tools.docs.examples import EXAMPLES

MINUS = "\N{MINUS SIGN}0."
HEAD = ("step", "with the numbers", "gives")


def explained() -> dict[tuple[str, str], dict[str, Any]]:
    """Every figure of the example by section, and symbol or else name."""
    command = ["judge", str(EXAMPLES / "evidence.json"), "--explain", "--json"]
    items = json.loads(CliRunner().invoke(app, command).stdout)["explanation"]
    return {(item["section"], item["symbol"] or item["name"]): item for item in items}


def rows() -> list[tuple[str, str, str]]:
    """The steps from the runs to the decision."""
    of = explained()
    steps = [*_speed(of), *_quality(of), *_money(of)]
    return [(a, b.replace("-0.", MINUS), c.replace("-0.", MINUS)) for a, b, c in steps]


def _speed(of: dict[tuple[str, str], dict[str, Any]]) -> list[tuple[str, str, str]]:
    logs = [of["speed", f"L_{block}"]["value"] for block in range(3)]
    error, bound = of["speed", "se"]["inputs"], of["speed", "LB"]
    mean, se, t = (bound["inputs"][name] for name in ("mean(L)", "se", "t"))
    predicted, measured = of["full_runs", "e^P"], of["full_runs", "e^D"]
    share = of["full_runs", "share of the full runs"]["value"]
    whole, interval = of["full_runs", "S"], of["full_runs", "its interval"]
    proven = of["full_runs", "proven for whole jobs"]["value"]
    theta, whole_se, low_t = (
        whole["inputs"]["theta"],
        whole["inputs"]["se"],
        interval["inputs"]["t"],
    )
    low, high = interval["value"]
    return [
        ("three blocks, L_b", ", ".join(f"{log:.4f}" for log in logs),
         f"{mean:.4f}: {of['speed', 'S_blocks']['value']:.2f}x"),
        ("speed gate", f"{mean:.4f} − {t:.3f} × {error['s']:.5f}/√{error['R']}",
         f"{mean - t * se:.4f}: {bound['value']:.2f}x > 1.10x"),
        ("whole jobs",
         f"{1 - share:.3f} × ln {predicted['value']:.3f} + "
         f"{share:.3f} × ln {measured['value']:.3f}",
         f"θ = {theta:.4f}: {whole['value']:.2f}x"),
        (f"their interval, df {interval['inputs']['df']:.1f}",
         f"e^({theta:.4f} ∓ {low_t:.3f} × {whole_se:.5f})",
         f"{low:.2f}x to {high:.2f}x, one-sided {proven:.2f}x > 1.10x"),
    ]  # fmt: skip


def _quality(of: dict[tuple[str, str], dict[str, Any]]) -> list[tuple[str, str, str]]:
    difference, spread, df = (of["quality", name] for name in ("D", "s", "df"))
    level, tail = (of["quality", name] for name in ("a(n)", "p"))
    a, p = level["inputs"], tail["inputs"]
    n, beside, before = (df["inputs"][name] for name in ("n", "n_b", "n_0"))
    return [
        ("difference D", f"{difference['inputs']['mean(x)']:.5f} − "
         f"{difference['inputs']['mu']:.5f}", f"{difference['value']:.5f}"),
        (f"spread s, df {before - 1} + {beside - 1} + {n - 1}",
         f"√max({spread['inputs']['pooled']:.3g}, {spread['inputs']['own']:.3g})",
         f"{spread['value']:.6f}"),
        ("chance of this at a loss of m",
         f"P(t_{df['value']:g} > ({p['D']:.5f} + {p['margin']:g}) / "
         f"({spread['value']:.6f} √{1 / n + 1 / beside:.4f}) = {p['t']:.3f})",
         f"{tail['value']:.6f}"),
        ("error of this look a(n)", f"{a['c']:g} × {a['a']:g} × {a['n']} / {a['n_max']}",
         f"{level['value']:.6f}: held"),
    ]  # fmt: skip


def _money(of: dict[tuple[str, str], dict[str, Any]]) -> list[tuple[str, str, str]]:
    price, saving = of["money", "price of a run today"], of["money", "saving per run"]
    year, trial = of["money", "saving per year"], of["money", "cost of the trial so far"]
    low, high = of["money", "its interval"]["value"]
    share = saving["inputs"]["share"]
    return [
        ("saving", f"{price['inputs']['hours']:.3f} h × ${price['inputs']['USD per hour']:g} × "
         f"{share:.4f}", f"${saving['value']:.2f} a run, ${year['value']:,.0f} a year "
         f"(${low:,.0f} to ${high:,.0f})"),
        ("payback", f"${trial['value']:.2f} / ${saving['value']:.2f}",
         f"{of['money', 'payback']['value']:.1f} runs"),
    ]  # fmt: skip

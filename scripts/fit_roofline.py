"""Fit the shares of the roofline to the measured rows and write data/performance/roofline.yaml.

    FLEETPLAN_TEST_DATA=... python scripts/fit_roofline.py [FILE]

The residuals are those of LLMs that were left out of the fit, each LLM on each accelerator with equal weight.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import yaml
from measured_rows import observations, test_data

from planner.performance.roofline.fitting import Observation, fit_shares
from planner.performance.roofline.validation import LeftOut, left_out, weighted_quantile

_LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_DIGITS = 4
_HEAD = """\
# How far engines get of the peak figures of the hardware, and what is left unexplained: written by
# scripts/fit_roofline.py, sources F1, F2 and F3 of data/SOURCES.md. Each name stands in
# planner/performance/roofline/formula.py.
# Residuals: quantiles of ln(measured / modeled) over LLMs that were left out of the fit.
"""


def main() -> None:
    """Fit, validate, write."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("data/performance/roofline.yaml")
    rows = observations(test_data())
    fit = fit_shares(rows)
    unseen = list(left_out(rows, lambda row: row.llm, same_accelerator=True))
    document = {
        "common": _rounded(asdict(fit.common)),
        "engines": {engine: _rounded(asdict(shares)) for engine, shares in sorted(fit.engines.items())},
        "in_flight_most": max(row.in_flight for row in rows),
        "residuals": {
            "levels": list(_LEVELS),
            "itl": _quantiles(unseen, first=False),
            "ttft": _quantiles(unseen, first=True),
        },
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_HEAD + yaml.safe_dump(document, sort_keys=False, width=110), encoding="utf-8")
    print(f"{len(rows)} rows, {len(unseen)} predicted unseen, written to {target}")


def _quantiles(unseen: list[LeftOut], *, first: bool) -> list[float]:
    """Quantiles of ln(measured / modeled), each LLM on each accelerator counted once."""
    values: list[float] = []
    groups: list[tuple[str, str]] = []
    for one in unseen:
        measured = one.row.ttft_s if first else one.row.itl_s
        if measured is not None:
            values.append(math.log(measured / (one.ttft_s if first else one.itl_s)))
            groups.append(_group(one.row))
    counts = Counter(groups)
    weights = [1.0 / counts[group] for group in groups]
    return [round(weighted_quantile(values, weights, level), _DIGITS) for level in _LEVELS]


def _group(row: Observation) -> tuple[str, str]:
    return row.llm, row.accelerator


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.{_DIGITS}g}") for name, value in values.items()}


if __name__ == "__main__":
    main()
